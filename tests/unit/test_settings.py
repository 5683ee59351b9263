"""Settings: defaults, parsing, refusals; and every one is documented."""

import os
import re
from dataclasses import fields
from pathlib import Path

import pytest

from memory_pipelines.errors import SettingError
from memory_pipelines.settings import PREFIX, Settings, documented

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "settings.md"


def test_defaults() -> None:
    made = Settings.load({})
    assert made == Settings()
    assert (made.tenant, made.buckets, made.scenario, made.profile) == ("default", 8, "customer_service", "assistant")
    assert (made.quarantine_max_share, made.token_budget, made.model_set) == (0.2, 1500, "base-2")
    assert not any(getattr(made, name) for name in ("postgres_url", "neo4j_url", "milvus_url", "redis_url", "s3_url"))


def test_the_environment_is_read_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MEMORY_PIPELINES_TENANT", "acme")
    assert Settings.load().tenant == "acme"
    monkeypatch.setenv("MEMORY_PIPELINES_TENANT", "other")
    assert Settings.load().tenant == "other"


def test_values_are_parsed_and_overrides_win() -> None:
    environ = {PREFIX + "BUCKETS": "64", PREFIX + "QUARANTINE_MAX_SHARE": "0.5", PREFIX + "TENANT": "a", "HOME": "/x"}
    made = Settings.load(environ, tenant="b")
    assert (made.buckets, made.quarantine_max_share, made.tenant) == (64, 0.5, "b")


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("BUKETS", "8", "MEMORY_PIPELINES_BUKETS is no setting; see docs/settings.md"),
        ("", "8", "MEMORY_PIPELINES_ is no setting"),
        ("BUCKETS", "many", "MEMORY_PIPELINES_BUCKETS must be int"),
        ("BUCKETS", "8.5", "MEMORY_PIPELINES_BUCKETS must be int"),
        ("BUCKETS", "", "MEMORY_PIPELINES_BUCKETS must be int"),
        ("BUCKETS", "0", "MEMORY_PIPELINES_BUCKETS must be 1 to 4096"),
        ("BUCKETS", "4097", "MEMORY_PIPELINES_BUCKETS must be 1 to 4096"),
        ("QUARANTINE_MAX_SHARE", "half", "MEMORY_PIPELINES_QUARANTINE_MAX_SHARE must be float"),
        ("QUARANTINE_MAX_SHARE", "1.01", r"MEMORY_PIPELINES_QUARANTINE_MAX_SHARE must be in \[0, 1\]"),
        ("QUARANTINE_MAX_SHARE", "nan", r"MEMORY_PIPELINES_QUARANTINE_MAX_SHARE must be in \[0, 1\]"),
        ("TOKEN_BUDGET", "1e3", "MEMORY_PIPELINES_TOKEN_BUDGET must be int"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: str, message: str) -> None:
    with pytest.raises(SettingError, match=message):
        Settings.load({PREFIX + name: value})


def test_a_bad_value_is_not_repeated_in_the_message() -> None:
    with pytest.raises(SettingError) as caught:
        Settings.load({PREFIX + "BUCKETS": "s3cret"})
    assert "s3cret" not in str(caught.value)
    assert caught.value.__cause__ is None


def test_folders(tmp_path: Path) -> None:
    made = Settings(home=str(tmp_path))
    assert (made.home_path, made.inbox_path, made.lake_location) == (
        tmp_path,
        tmp_path / "inbox",
        str(tmp_path / "lake"),
    )
    other = Settings(home="~/x", inbox="in", lake_url="s3://bucket/prefix")
    assert other.home_path == Path(os.path.expanduser("~/x"))
    assert other.inbox_path == Path.cwd() / "in"
    assert other.lake_location == "s3://bucket/prefix"


def test_every_setting_says_what_it_means() -> None:
    rows = documented()
    assert [name for name, _, _ in rows] == [PREFIX + f.name.upper() for f in fields(Settings)]
    assert all(meaning and "|" not in meaning for _, _, meaning in rows)
    assert ("MEMORY_PIPELINES_BUCKETS", "8") in [(name, default) for name, default, _ in rows]


def test_the_page_of_settings_lists_exactly_the_settings() -> None:
    rows = re.findall(r"^\| `(MEMORY_PIPELINES_\w+)` \|(.*?)\| (.*) \|$", DOCUMENT.read_text(encoding="utf-8"), re.M)
    assert [(name, default.strip("` "), meaning) for name, default, meaning in rows] == documented()
