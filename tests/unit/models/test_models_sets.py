"""Model sets: what exists, here and in a home, and that a fingerprint follows what the files hold."""

from pathlib import Path

import pytest

from memory_pipelines.errors import SettingError
from memory_pipelines.models.sets import load_model_set, parted, read_sets, shipped_set, with_trained
from memory_pipelines.settings import Settings

MINE = "mine: {extends: base-2, entities: {files: {dictionary: names.yaml}}}"


def home_with(home: Path, text: str, names: str = "product: {a: B}") -> Path:
    home.mkdir(exist_ok=True)
    (home / "model_sets.yaml").write_text(text, encoding="utf-8")
    (home / "names.yaml").write_text(names, encoding="utf-8")
    return home


def test_the_default_setting_is_a_model_set() -> None:
    found = load_model_set(Settings().model_set)
    assert found.name == "base-2"
    assert found.embedding == Settings().embedder
    assert set(found.digests) == set(found.steps) == {"intent", "emotion", "entities"}
    assert len(found.fingerprint) == 16
    assert load_model_set("base-2") == found == shipped_set("base-2")


def test_every_set_that_ships_holds_something_else() -> None:
    fingerprints = {name: load_model_set(name).fingerprint for name in read_sets()}
    assert set(fingerprints) == {"base-1", "base-2", "accurate-2"}
    assert len(set(fingerprints.values())) == 3


@pytest.mark.parametrize(
    "name", ["no-such-set", "base-2+", "base-2+intent", "base-2+intent-ab", "base-2+mood-0123456789ab"]
)
def test_an_unknown_set_names_the_setting(name: str) -> None:
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_MODEL_SET"):
        load_model_set(name)


def test_a_set_of_the_home_extends_a_shipped_one(tmp_path: Path) -> None:
    home = home_with(tmp_path, MINE)
    mine, base = load_model_set("mine", home), load_model_set("base-2")
    assert mine.steps["intent"] == base.steps["intent"]
    assert mine.digests["intent"] == base.digests["intent"]
    assert mine.digests["entities"] != base.digests["entities"]
    assert mine.steps["entities"]["files"]["dictionary"] == str(home / "names.yaml")
    with pytest.raises(SettingError, match="known are accurate-2, base-1, base-2"):
        load_model_set("mine")


def test_the_fingerprint_follows_what_files_and_settings_hold(tmp_path: Path) -> None:
    def fingerprint(*home: str) -> str:
        return load_model_set("mine", home_with(tmp_path / home[0], *home[1:])).fingerprint

    first = fingerprint("one", MINE)
    assert fingerprint("two", MINE) == first, "where the home lies does not count"
    assert fingerprint("one", MINE, "product: {a: C}") != first
    assert fingerprint("one", MINE.replace("entities: {", "entities: {rules: 1, ")) != first
    assert load_model_set("mine+emotion-0123456789ab", tmp_path / "two").fingerprint != first


def test_a_set_whose_file_is_missing_says_which(tmp_path: Path) -> None:
    home = home_with(tmp_path, MINE)
    (home / "names.yaml").unlink()
    with pytest.raises(SettingError, match=r"names\.yaml"):
        load_model_set("mine", home)


@pytest.mark.parametrize(
    "text",
    ["base-2: {extends: base-1}", "- mine", "mine: {extends: none}", "mine: 1", "mine: {extends: base-1, intent: 3}"],
)
def test_a_set_of_the_home_of_another_form_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(SettingError):
        read_sets(home_with(tmp_path, text))


def test_a_set_with_trained_models_is_named_after_all() -> None:
    name = with_trained("base-2", "intent", "0123456789abcdef")
    assert name == "base-2+intent-0123456789ab"
    assert parted(name) == ("base-2", {"intent": "0123456789ab"})
    assert with_trained(name, "intent", "fedcba9876543210") == "base-2+intent-fedcba987654"
    assert with_trained("base-2+entities-0123456789ab", "intent", "a" * 32) == (
        "base-2+intent-aaaaaaaaaaaa+entities-0123456789ab"
    )
    assert parted("base-1") == ("base-1", {})
    assert load_model_set(name).trained == {"intent": "0123456789ab"}
