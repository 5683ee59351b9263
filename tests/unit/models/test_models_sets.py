"""Model sets: what exists, and that a fingerprint follows what the files hold."""

from pathlib import Path

import pytest

from memory_pipelines.errors import SettingError
from memory_pipelines.models import sets
from memory_pipelines.models.sets import load_model_set, parted, with_trained
from memory_pipelines.settings import Settings


def test_the_default_setting_is_a_model_set() -> None:
    found = load_model_set(Settings().model_set)
    assert found.name == "base-1"
    assert found.embedding == Settings().embedder
    assert set(found.digests) == {"intent", "emotion", "entities"}
    assert len(found.fingerprint) == 16
    assert load_model_set("base-1") is found


def test_an_unknown_set_names_the_setting() -> None:
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_MODEL_SET"):
        load_model_set("no-such-set")


def test_fingerprint_follows_files_and_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    data.mkdir()
    steps = {step: data / f"{step}.yaml" for step in sets.STEPS}
    for step, file in steps.items():
        file.write_text(f"of: {step}", encoding="utf-8")

    def fingerprint(rules: int = 1) -> str:
        listed = "".join(f"  {step}: {{rules: {rules}, files: {{one: {step}.yaml}}}}\n" for step in steps)
        (data / "model_sets.yaml").write_text(f"s:\n{listed}  embedding: {{name: use}}\n", encoding="utf-8")
        return load_model_set.__wrapped__("s").fingerprint

    monkeypatch.setattr("importlib.resources.files", lambda package: tmp_path)
    before = fingerprint()
    assert fingerprint() == before
    assert fingerprint(rules=2) != before
    steps["emotion"].write_text("of: another emotion", encoding="utf-8")
    assert fingerprint() != before


def own_sets(home: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (home / "model_sets.yaml").write_text(text, encoding="utf-8")
    monkeypatch.setenv("MEMORY_PIPELINES_HOME", str(home))


def test_a_set_of_the_home_extends_a_shipped_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "names.yaml").write_text("product: {a: B}", encoding="utf-8")
    own_sets(tmp_path, "mine: {extends: base-2, entities: {files: {dictionary: names.yaml}}}", monkeypatch)
    mine = sets.read_sets()["mine"]
    assert mine["intent"] == sets.read_sets()["base-2"]["intent"]
    assert mine["entities"]["files"]["dictionary"] == str(tmp_path / "names.yaml")
    before = load_model_set.__wrapped__("mine").fingerprint
    assert before != load_model_set("base-2").fingerprint
    (tmp_path / "names.yaml").write_text("product: {a: C}", encoding="utf-8")
    assert load_model_set.__wrapped__("mine").fingerprint != before


@pytest.mark.parametrize(
    "text",
    ["base-2: {extends: base-1}", "- mine", "mine: {extends: none}", "mine: 1", "mine: {extends: base-1, intent: 3}"],
)
def test_a_set_of_the_home_of_another_form_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    own_sets(tmp_path, text, monkeypatch)
    with pytest.raises(SettingError):
        sets.read_sets()


def test_a_set_with_a_trained_model_is_named_after_both() -> None:
    name = with_trained("base-2", "intent", "0123456789abcdef")
    assert name == "base-2+intent-0123456789ab"
    assert parted(name) == ("base-2", "intent-0123456789ab")
    assert with_trained(name, "intent", "fedcba9876543210") == "base-2+intent-fedcba987654"
    assert parted("base-1") == ("base-1", "")
