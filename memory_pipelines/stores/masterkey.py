"""The master key: where it lies, and how it wraps the keys of subjects.

Belongs here: reading, making and replacing the key file; derivation. Does not belong here: the ring itself
(``keyring``). No message holds a key.
"""

import base64
import binascii
import logging
import os
import secrets
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV
from cryptography.hazmat.primitives.hashes import SHA512
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from memory_pipelines.errors import IntegrityError, SettingError
from memory_pipelines.settings import PREFIX, Settings

SHORTEST = 32
"""Bytes of a master key."""
KEY_FILE = "master.key"

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class MasterKey:
    """Wraps and unwraps keys of subjects. ``fingerprint`` tells two master keys apart and nothing of either."""

    raw: bytes = field(repr=False)

    @cached_property
    def fingerprint(self) -> str:
        return self._derived(b"fingerprint", 16).hex()

    @cached_property
    def _cipher(self) -> AESSIV:
        return AESSIV(self._derived(b"wrap", 64))

    def _derived(self, use: bytes, length: int) -> bytes:
        return HKDF(SHA512(), length, salt=None, info=b"memory_pipelines master key: " + use).derive(self.raw)

    def rewrap(self, owner: str, key: bytes) -> bytes:
        """A subject's key as it is stored, bound to its owner."""
        return self._cipher.encrypt(key, [owner.encode()])

    def unwrapped(self, owner: str, wrapped: bytes) -> bytes:
        """The bytes of a stored key. Raises IntegrityError if it is not this owner's or was changed."""
        try:
            return self._cipher.decrypt(wrapped, [owner.encode()])
        except InvalidTag:
            raise IntegrityError(f"the key of {owner} does not open with the master key") from None

    def unwrap(self, owner: str, wrapped: bytes) -> AESSIV:
        """As ``unwrapped``, ready for use."""
        return AESSIV(self.unwrapped(owner, wrapped))


class MasterKeySource:
    """The master key of the settings, else of the key file in the home folder."""

    def __init__(self, settings: Settings) -> None:
        """Raises SettingError if both settings name a key, or the given one is none."""
        if settings.master_key and settings.master_key_file:
            raise SettingError(f"set {PREFIX}MASTER_KEY or {PREFIX}MASTER_KEY_FILE, not both")
        self._given = _decoded(settings.master_key, f"{PREFIX}MASTER_KEY") if settings.master_key else None
        self._named = bool(settings.master_key_file)
        named = Path(settings.master_key_file).expanduser()
        self._file = named if self._named else settings.home_path / KEY_FILE
        self._next = self._file.with_name(f"{self._file.name}.next")

    @property
    def where(self) -> str:
        """What somebody has to look at whose key does not fit."""
        place = "" if self._given else f", or put the key back into {self._file.name} of its folder"
        return f"set {PREFIX}MASTER_KEY or {PREFIX}MASTER_KEY_FILE to the key it was made with{place}"

    def load(self, *, make: bool) -> list[MasterKey]:
        """The keys that may be the current one: after a rotation that was killed, the file's and the next one's.

        ``make``: where no key is set and the home folder has none, one is made there (mode 0600). Raises SettingError
        for a file that cannot be read or holds no key."""
        if self._given is not None:
            return [self._given]
        if make and not self._named and not self._file.exists():
            self._file.parent.mkdir(parents=True, exist_ok=True)
            if _write_new(self._file):
                _log.warning("made the master key %s: keep a copy of it apart from the database's backup", self._file)
        return [key for path in (self._file, self._next) if (key := self._read(path)) is not None]

    def fresh(self) -> MasterKey:
        """A new key beside the current one; ``settle`` puts it in its place. Raises SettingError without a key file."""
        if self._given is not None:
            raise SettingError(f"put the key of {PREFIX}MASTER_KEY into a file and name that to rotate it")
        self._next.unlink(missing_ok=True)  # of a rotation that was given up: the current key lies in the file
        _write_new(self._next)
        return self.load(make=False)[-1]

    def settle(self, key: MasterKey) -> None:
        """Note which key is the current one: the next one takes the file's place."""
        if self._given is None and self._read(self._file) != key and self._read(self._next) == key:
            try:
                os.replace(self._next, self._file)
            except FileNotFoundError:  # another process was first
                return

    def _read(self, path: Path) -> MasterKey | None:
        try:
            return _decoded(path.read_text(), path.name)
        except FileNotFoundError:
            if self._named and path == self._file:
                raise SettingError(f"{PREFIX}MASTER_KEY_FILE names no file") from None
            return None
        except (OSError, UnicodeDecodeError):
            raise SettingError(f"the master key file {path.name} cannot be read") from None


def _decoded(text: str, where: str) -> MasterKey:
    try:
        raw = base64.b64decode(text.strip(), validate=True)
    except (binascii.Error, ValueError):
        raise SettingError(f"{where} must be base64") from None
    if len(raw) < SHORTEST:
        raise SettingError(f"{where} must hold {SHORTEST} bytes or more, as base64")
    return MasterKey(raw)


def _write_new(path: Path) -> bool:
    """Write a random key whole or not at all; False if another process was first."""
    fresh = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
        stream.write(base64.b64encode(secrets.token_bytes(64)) + b"\n")
        stream.flush()
        os.fsync(stream.fileno())
    try:
        os.link(fresh, path)
    except FileExistsError:
        return False
    finally:
        fresh.unlink()
    return True
