"""The master key: what is a key, where it lies, what it wraps."""

import base64
from pathlib import Path

import pytest

from memory_pipelines.errors import IntegrityError, SettingError
from memory_pipelines.settings import Settings
from memory_pipelines.stores.masterkey import KEY_FILE, MasterKey, MasterKeySource

RAW = bytes(range(32))
KEY = base64.b64encode(RAW).decode()


def test_a_key_is_wrapped_for_its_owner_alone() -> None:
    master = MasterKey(RAW)
    wrapped = master.rewrap("ann", b"k" * 64)
    assert master.unwrapped("ann", wrapped) == b"k" * 64
    assert MasterKey(RAW).rewrap("ann", b"k" * 64) == wrapped
    for owner, key in (("bob", master), ("ann", MasterKey(RAW[::-1]))):
        with pytest.raises(IntegrityError, match="does not open"):
            key.unwrap(owner, wrapped)


def test_a_fingerprint_tells_keys_apart_and_shows_none() -> None:
    master = MasterKey(RAW)
    assert master.fingerprint == MasterKey(RAW).fingerprint != MasterKey(RAW + b"x").fingerprint
    assert RAW.hex()[:8] not in master.fingerprint
    assert repr(RAW) not in repr(master)


@pytest.mark.parametrize("text", ["not base64!", base64.b64encode(RAW[:31]).decode(), "ÄÖ", "=", "\n"])
def test_what_is_no_key(text: str, tmp_path: Path) -> None:
    named = tmp_path / "key"
    named.write_text(text)
    for settings in (Settings(master_key=text), Settings(master_key_file=str(named))):
        with pytest.raises(SettingError, match="base64") as error:
            MasterKeySource(settings).load(make=True)
        assert text.strip() == "" or text not in str(error.value) or len(text) < 3


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="MASTER_KEY_FILE names no file"):
        MasterKeySource(Settings(master_key_file=str(tmp_path / "none"))).load(make=True)
    with pytest.raises(SettingError, match="cannot be read"):
        MasterKeySource(Settings(master_key_file=str(tmp_path))).load(make=False)
    with pytest.raises(SettingError, match="not both"):
        MasterKeySource(Settings(master_key=KEY, master_key_file="x"))


def test_the_file_of_the_home_is_made_once(tmp_path: Path) -> None:
    source = MasterKeySource(Settings(home=str(tmp_path)))
    assert source.load(make=False) == []
    [made] = source.load(make=True)
    assert source.load(make=True) == MasterKeySource(Settings(home=str(tmp_path))).load(make=False) == [made]
    assert (tmp_path / KEY_FILE).stat().st_mode & 0o777 == 0o600
