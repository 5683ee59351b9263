"""Certificates: what is signed, and with what."""

import json
import stat
from pathlib import Path

import pytest

from memory_pipelines.erasure.certificate import KEY_FILE, Certificate, certificate_secret, sign, verify
from memory_pipelines.errors import SettingError
from memory_pipelines.settings import Settings

BODY = {"places": {"lake.turns": {"before": 3, "after": 0}}, "survivors": 0, "issued_at": "2024-06-02T00:00:00Z"}


def test_a_signature_holds_in_any_order_of_keys_and_after_json() -> None:
    certificate = sign(BODY, b"secret")
    assert verify(certificate, b"secret")
    assert verify(Certificate(dict(reversed(BODY.items())), certificate.signature), b"secret")
    assert verify(Certificate.from_dict(json.loads(json.dumps(certificate.as_dict()))), b"secret")
    # HMAC-SHA256 of the canonical JSON, by another implementation (openssl dgst -sha256 -hmac)
    assert certificate.signature == "f82d8b85f95b4e825c682c54208ed633f49e7e37123ebfea155a08295c404819"


@pytest.mark.parametrize("change", [{"survivors": 1}, {"more": None}, {"issued_at": "2024-06-03T00:00:00Z"}])
def test_a_changed_body_does_not_verify(change: dict[str, object]) -> None:
    certificate = sign(BODY, b"secret")
    assert not verify(Certificate(BODY | change, certificate.signature), b"secret")
    assert not verify(certificate, b"Secret")
    assert not verify(Certificate(BODY, ""), b"secret")


def test_an_empty_secret_signs_nothing() -> None:
    with pytest.raises(SettingError, match="CERTIFICATE_SECRET"):
        sign(BODY, b"")


def test_the_secret_of_the_settings_wins(tmp_path: Path) -> None:
    home = tmp_path / "home"
    assert certificate_secret(Settings(home=str(home), certificate_secret="geheim 秘")) == "geheim 秘".encode()
    assert not home.exists()


def test_a_key_file_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    settings = Settings(home=str(tmp_path / "home"))
    secret = certificate_secret(settings)
    path = tmp_path / "home" / KEY_FILE
    assert len(secret) == 64
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert certificate_secret(settings) == secret
    assert [p.name for p in path.parent.iterdir()] == [KEY_FILE]
    assert certificate_secret(Settings(home=str(tmp_path / "other"))) != secret
