"""Who may use a store, and which server a client takes for it: every refusal is one error that names the setting."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from suites import adapters

from memory_pipelines.clock import SystemClock
from memory_pipelines.errors import SettingError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.settings import Settings
from memory_pipelines.stores import database
from memory_pipelines.wiring import Platform

if TYPE_CHECKING:
    from servers.together import Servers

WRONG = "wrong-password"
OWNER = Owner("tenant", "u:1")


def ask_postgres(at: Settings) -> None:
    database.connect(at.postgres_url, ca_file=at.ca_file).dispose()


def ask_neo4j(at: Settings) -> None:
    store = adapters.graph(at)
    try:
        store.versions(OWNER)
    finally:
        store.close()


def ask_redis(at: Settings) -> None:
    store = adapters.hot(at)
    try:
        store.get(OWNER, "pack")
    finally:
        store.close()


def ask_s3(at: Settings) -> None:
    store = adapters.cold(at, "trust")
    try:
        store.ensure()
    finally:
        store.close()


def ask_milvus(at: Settings) -> None:
    store = adapters.vectors(at, "trust")
    try:
        store.count()
    finally:
        store.close()


ASK: dict[str, Callable[[Settings], None]] = {
    "postgres": ask_postgres,
    "neo4j": ask_neo4j,
    "redis": ask_redis,
    "s3": ask_s3,
    "milvus": ask_milvus,
}
SETTING = {store: f"{store.upper()}_URL" for store in ASK}


def in_url(url: str, password: str = "", user: str = "") -> str:
    """The URL with another password or user in it."""
    scheme, rest = url.split("://")
    credentials, place = rest.split("@")
    own_user, own_password = credentials.split(":")
    return f"{scheme}://{user or own_user}:{password or own_password}@{place}"


def with_wrong(what: str, at: Settings) -> Settings:
    changes: dict[str, Callable[[], dict[str, str]]] = {
        "postgres password": lambda: {"postgres_url": in_url(at.postgres_url, WRONG)},
        "postgres user": lambda: {"postgres_url": in_url(at.postgres_url, user="nobody")},
        "neo4j password": lambda: {"neo4j_password": WRONG},
        "neo4j user": lambda: {"neo4j_user": "nobody"},
        "neo4j database": lambda: {"neo4j_database": "nowhere"},
        "redis password": lambda: {"redis_url": in_url(at.redis_url, WRONG)},
        "redis user": lambda: {"redis_url": in_url(at.redis_url, user="nobody")},
        "s3 secret": lambda: {"s3_secret_key": WRONG},
        "s3 access key": lambda: {"s3_access_key": "nobody"},
        "milvus password": lambda: {"milvus_token": f"root:{WRONG}"},
        "milvus user": lambda: {"milvus_token": f"nobody:{WRONG}"},
        "milvus token": lambda: {"milvus_token": ""},
    }
    return replace(at, **changes[what]())  # type: ignore[arg-type]


EVERYWHERE = ["postgres password", "postgres user", "neo4j password", "neo4j user", "redis password"]
REAL = ["neo4j database", "redis user", "s3 secret", "s3 access key", "milvus password", "milvus user", "milvus token"]
NAMED = {
    "postgres password": "POSTGRES_URL",
    "postgres user": "POSTGRES_URL",
    "neo4j password": "NEO4J_USER and ..._PASSWORD",
    "neo4j user": "NEO4J_USER and ..._PASSWORD",
    "neo4j database": "NEO4J_DATABASE",
    "redis password": "REDIS_URL",
    "redis user": "REDIS_URL",
    "s3 secret": "S3_ACCESS_KEY and ..._SECRET_KEY",
    "s3 access key": "S3_ACCESS_KEY and ..._SECRET_KEY",
    "milvus password": "MILVUS_TOKEN",
    "milvus user": "MILVUS_TOKEN",
    "milvus token": "MILVUS_TOKEN",
}


def assert_refused(what: str, at: Settings) -> None:
    with pytest.raises(SettingError, match=f"MEMORY_PIPELINES_{NAMED[what]}") as error:
        ASK[what.partition(" ")[0]](with_wrong(what, at))
    assert WRONG not in str(error.value)


@pytest.mark.parametrize("what", EVERYWHERE)
def test_wrong_credentials_name_the_setting(served: Settings, what: str) -> None:
    assert_refused(what, served)


@pytest.mark.servers
@pytest.mark.parametrize("what", REAL)
def test_wrong_credentials_that_embedded_servers_do_not_check(real: Settings, what: str) -> None:
    assert_refused(what, real)


@pytest.mark.servers
@pytest.mark.parametrize("store", ASK)
def test_a_certificate_of_a_known_authority_is_taken(real: Settings, store: str) -> None:
    ASK[store](real)


@pytest.mark.servers
@pytest.mark.parametrize("store", ASK)
def test_a_certificate_of_a_strange_authority_names_the_setting(
    real_servers: "Servers", store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")  # Redis' client trusts the system's authorities as well
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_CA_FILE"):
        ASK[store](replace(real_servers.settings, ca_file=str(real_servers.stranger)))


@pytest.mark.servers
@pytest.mark.parametrize("store", ASK)
def test_no_client_trusts_a_server_without_the_authority(
    real: Settings, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises((SettingError, StoreUnavailableError), match=f"CA_FILE|{SETTING[store]}"):
        ASK[store](replace(real, ca_file=""))


PLAIN = {"rediss://": "redis://", "https://": "http://", "bolt+s://": "bolt://", "verify-full": "disable"}


@pytest.mark.servers
@pytest.mark.parametrize("store", ASK)
def test_a_server_with_tls_is_not_reached_without(real: Settings, store: str) -> None:
    changed: dict[str, Any] = {}
    for name in (f"{SETTING[s].lower()}" for s in SETTING):
        url = getattr(real, name)
        for secret, plain in PLAIN.items():
            url = url.replace(secret, plain)
        changed[name] = url
    with pytest.raises(StoreUnavailableError, match=SETTING[store]):
        ASK[store](replace(real, **changed))


@pytest.mark.parametrize("store", [name for name in ASK if name != "postgres"])
def test_an_authority_that_cannot_be_read_names_the_setting(tmp_path: Path, store: str) -> None:
    at = Settings(
        home=str(tmp_path),
        ca_file=str(tmp_path / "none.pem"),
        neo4j_url="bolt+s://127.0.0.1:1",
        redis_url="rediss://127.0.0.1:1/0",
        s3_url="https://127.0.0.1:1",
        s3_access_key="a",
        s3_secret_key="b",
        milvus_url="https://127.0.0.1:1",
    )
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_CA_FILE names no file"):
        ASK[store](at)


def test_an_authority_of_postgres_that_cannot_be_read(tmp_path: Path) -> None:
    url = "postgresql+psycopg://a:b@127.0.0.1:1/c?sslmode=verify-full"
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_CA_FILE names no file"):
        database.connect(url, ca_file=str(tmp_path / "none.pem"))


def test_the_lake_needs_the_authority_in_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    s3 = {"s3_url": "https://127.0.0.1:1", "s3_access_key": "a", "s3_secret_key": "b"}
    at = Settings(home=str(tmp_path), lake_url="s3://bucket/lake", ca_file="ca.pem", **s3)
    with pytest.raises(SettingError, match="SSL_CERT_FILE"):
        _ = Platform(at, SystemClock()).lake
    monkeypatch.setenv("SSL_CERT_FILE", "ca.pem")
    _ = Platform(at, SystemClock()).lake
