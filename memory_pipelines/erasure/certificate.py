"""Signed statements of what an erasure did.

Belongs here: the form of a certificate, its signature and the key. Does not belong here: what is counted.
A certificate holds hashes, times and numbers: no name, no text.
"""

import hashlib
import hmac
import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from memory_pipelines.errors import SettingError
from memory_pipelines.model import canonical_json
from memory_pipelines.settings import PREFIX, Settings

UNREACHABLE = "unreachable"
GONE = "physically_gone"
KEY_FILE = "certificate.key"


@dataclass(frozen=True)
class Certificate:
    """``body`` is JSON; ``signature`` is HMAC-SHA256 over its canonical form, in hex."""

    body: Mapping[str, Any]
    signature: str

    @property
    def survivors(self) -> int:
        return int(self.body["survivors"])

    def as_dict(self) -> dict[str, Any]:
        return {"body": dict(self.body), "signature": self.signature}

    @classmethod
    def from_dict(cls, value: Mapping[str, Any]) -> Self:
        return cls(value["body"], value["signature"])


def sign(body: Mapping[str, Any], secret: bytes) -> Certificate:
    """The body with its signature. Raises SettingError for an empty secret."""
    return Certificate(body, _signature(body, secret))


def verify(certificate: Certificate, secret: bytes) -> bool:
    """Whether the certificate was signed with the secret and not changed since."""
    return hmac.compare_digest(_signature(certificate.body, secret), certificate.signature)


def _signature(body: Mapping[str, Any], secret: bytes) -> str:
    if not secret:
        raise SettingError(f"{PREFIX}CERTIFICATE_SECRET is empty")
    return hmac.new(secret, canonical_json(body).encode(), hashlib.sha256).hexdigest()


def certificate_secret(settings: Settings) -> bytes:
    """The secret of the settings, else of the key file in the home folder, which is made on first use (mode 0600)."""
    if settings.certificate_secret:
        return settings.certificate_secret.encode()
    path = settings.home_path / KEY_FILE
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f"{KEY_FILE}.{os.getpid()}.{secrets.token_hex(4)}")
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(secrets.token_hex(32))
        try:
            os.link(fresh, path)  # whole or not at all, and the first of two processes wins
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_text().strip().encode()
