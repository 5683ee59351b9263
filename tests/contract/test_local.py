"""The embedded servers themselves: started, killed, started again, with their data."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from memory_pipelines.errors import SettingError, StoreUnavailableError
from memory_pipelines.local import Endpoints, down, processes, status, supervisor, up
from memory_pipelines.local.servers import SERVERS, Place

pytestmark = pytest.mark.embedded

NAMES = [server.name for server in SERVERS]
STARTER = """
import json, sys, time
from pathlib import Path
from memory_pipelines.local import up
endpoints = up(Path(sys.argv[1]), only=sys.argv[3:] or None)
print(json.dumps(endpoints.settings()), flush=True)
time.sleep(float(sys.argv[2]))
"""


def starter(home: Path, seconds: float, *only: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", STARTER, str(home), str(seconds), *only]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def answer(process: subprocess.Popen[str]) -> dict[str, str]:
    assert process.stdout is not None
    settings: dict[str, str] = json.loads(process.stdout.readline())
    return settings


def pids(home: Path) -> dict[str, int | None]:
    return {s.name: s.pid for s in status(home)}


def kill(pid: int) -> None:
    process = psutil.Process(pid)
    process.kill()
    while not processes.is_gone(process):
        time.sleep(0.02)


def ours(home: Path, name: str) -> list[psutil.Process]:
    server = next(s for s in SERVERS if s.name == name)
    return processes.left_over(server.program, server.mark(Place(home / "servers" / name, {}, "")))


class Drivers:
    """One value per store, written and read through the driver that production uses."""

    def __init__(self, endpoints: Endpoints) -> None:
        self.at = endpoints

    def postgres(self, value: str | None) -> str:
        from sqlalchemy import create_engine, text
        from sqlalchemy.pool import NullPool

        with create_engine(self.at.postgres_url, poolclass=NullPool).begin() as connection:
            if value is not None:
                connection.execute(text("CREATE TABLE kept (value TEXT)"))
                connection.execute(text("INSERT INTO kept VALUES (:value)"), {"value": value})
            return str(connection.execute(text("SELECT value FROM kept")).scalar_one())

    def arcadedb(self, value: str | None) -> str:
        import neo4j

        with neo4j.GraphDatabase.driver(self.at.neo4j_url, auth=(self.at.neo4j_user, self.at.neo4j_password)) as driver:
            if value is not None:
                driver.execute_query("CREATE (:Kept {value: $value})", value=value, database_=self.at.neo4j_database)
            found = driver.execute_query("MATCH (k:Kept) RETURN k.value AS value", database_=self.at.neo4j_database)
            return str(found.records[0]["value"])

    def milvus(self, value: str | None) -> str:
        from pymilvus import MilvusClient

        client = MilvusClient(uri=self.at.milvus_url)
        if value is not None:
            client.create_collection("kept", dimension=4, metric_type="COSINE", consistency_level="Strong")
            client.insert("kept", [{"id": 1, "vector": [1.0, 0.0, 0.0, 0.0], "value": value}])
        client.load_collection("kept")
        found = client.search("kept", [[1.0, 0.0, 0.0, 0.0]], limit=1, output_fields=["value"])
        client.close()
        return str(found[0][0]["entity"]["value"])

    def valkey(self, value: str | None) -> str:
        import redis

        with redis.Redis.from_url(self.at.redis_url, decode_responses=True) as client:
            if value is not None:
                client.set("kept", value)
            return str(client.get("kept"))

    def ministack(self, value: str | None) -> str:
        import boto3

        client: Any = boto3.client(
            "s3",
            endpoint_url=self.at.s3_url,
            aws_access_key_id=self.at.s3_access_key,
            aws_secret_access_key=self.at.s3_secret_key,
            region_name="us-east-1",
        )
        if value is not None:
            client.create_bucket(Bucket="kept")
            client.put_object(Bucket="kept", Key="键/key", Body=value.encode())
        body: bytes = client.get_object(Bucket="kept", Key="键/key")["Body"].read()
        return body.decode()

    def run(self, name: str, value: str | None = None) -> str:
        exchange: Callable[[str | None], str] = getattr(self, name)
        return exchange(value)


Homes = tuple[Path, Path, Endpoints, dict[str, str]]


@pytest.fixture(scope="module")
def base() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="memory-pipelines-"))
    yield folder
    for home in folder.iterdir():
        down(home)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def homes(base: Path) -> Homes:
    """Two homes, started at the same time: one here, one by a process that was killed since."""
    one, two = base / "one", base / "二 two"
    other = starter(two, 300)
    endpoints = up(one)
    settings = answer(other)
    other.kill()
    other.wait()
    assert other.stdout is not None
    other.stdout.close()
    drivers = Drivers(endpoints)
    for name in NAMES:
        assert drivers.run(name, f"价值 {name}") == f"价值 {name}"
    return one, two, endpoints, settings


def test_two_homes_do_not_collide_and_outlive_their_starter(homes: Homes) -> None:
    one, two, _, settings = homes
    assert all(s.running and s.memory > 1_000_000 for home in (one, two) for s in status(home))
    used = [s.port for home in (one, two) for s in status(home)]
    assert len(set(used)) == len(used) == 10
    before = pids(two)
    assert up(two).settings() == settings
    assert pids(two) == before


def test_a_second_up_reuses_what_runs(homes: Homes) -> None:
    one, _, endpoints, _ = homes
    before = pids(one)
    said: list[str] = []
    assert up(one, progress=said.append) == endpoints
    assert pids(one) == before
    assert said == []
    assert up(one, only={"valkey"}) == Endpoints(redis_url=endpoints.redis_url)


def test_everything_listens_on_the_loopback_address_only(homes: Homes) -> None:
    one, _, _, _ = homes
    listening: dict[str, set[int]] = {}
    for found in status(one):
        assert found.pid is not None
        process = psutil.Process(found.pid)
        for member in (process, *process.children(recursive=True)):
            for connection in member.net_connections("inet"):
                if connection.status == psutil.CONN_LISTEN:
                    assert connection.laddr.ip in {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
                    listening.setdefault(found.name, set()).add(connection.laddr.port)
    recorded = json.loads((one / "servers" / "state.json").read_text())["servers"]
    assert listening == {name: set(own["ports"].values()) for name, own in recorded.items()}


def test_passwords_are_asked_for_and_in_no_command_line(homes: Homes) -> None:
    one, _, endpoints, _ = homes
    recorded = json.loads((one / "servers" / "state.json").read_text())["servers"]
    for own in recorded.values():
        assert own["password"] not in " ".join(psutil.Process(own["pid"]).cmdline())
        assert len(own["password"]) == 32
    import psycopg
    import redis

    wrong = endpoints.postgres_url.replace(recorded["postgres"]["password"], "wrong").replace("+psycopg", "")
    with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
        psycopg.connect(wrong)
    with pytest.raises(redis.AuthenticationError):
        redis.Redis(port=recorded["valkey"]["ports"]["valkey"]).ping()


def test_both_databases_are_there(homes: Homes) -> None:
    import psycopg

    _, _, endpoints, _ = homes
    with psycopg.connect(endpoints.dagster_url.replace("+psycopg", "")) as connection:
        row = connection.execute("SELECT current_database(), current_setting('fsync')").fetchone()
        assert row == ("dagster", "on")
        connection.execute("CREATE EXTENSION vector")


@pytest.mark.parametrize("name", NAMES)
def test_a_killed_server_comes_back_with_its_port_and_data(homes: Homes, name: str) -> None:
    one, _, endpoints, _ = homes
    before = pids(one)
    pid = before[name]
    assert pid is not None
    kill(pid)
    assert [s.name for s in status(one) if not s.running] == [name]
    assert up(one) == endpoints
    after = pids(one)
    assert after[name] not in (None, pid)
    assert {n: p for n, p in after.items() if n != name} == {n: p for n, p in before.items() if n != name}
    assert Drivers(endpoints).run(name) == f"价值 {name}"


def test_workers_whose_parent_was_killed_are_cleared(homes: Homes, monkeypatch: pytest.MonkeyPatch) -> None:
    one, _, endpoints, _ = homes
    pid = pids(one)["postgres"]
    assert pid is not None
    worker = psutil.Process(pid).children()[0]
    worker.suspend()  # it cannot notice that its parent is gone
    kill(pid)
    assert not processes.is_gone(worker)
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.5)
    assert up(one) == endpoints
    assert processes.is_gone(worker)
    assert Drivers(endpoints).run("postgres") == "价值 postgres"


def test_a_server_that_the_state_file_forgot_is_replaced(homes: Homes) -> None:
    one, _, endpoints, _ = homes
    file = one / "servers" / "state.json"
    state = json.loads(file.read_text())
    state["servers"]["valkey"] |= {"pid": 0, "create_time": 0.0}
    file.write_text(json.dumps(state))
    old = pids(one)["valkey"]
    assert old is None
    assert up(one) == endpoints
    assert len(ours(one, "valkey")) == 1
    assert Drivers(endpoints).run("valkey") == "价值 valkey"


def test_a_busy_port_asked_for_is_refused_and_a_recorded_one_replaced(base: Path) -> None:
    home = base / "busy"
    first = up(home, only={"valkey"})
    Drivers(first).run("valkey", "v")
    port = status(home)[NAMES.index("valkey")].port
    assert port is not None
    with pytest.raises(SettingError, match=f"valkey already runs with port {port}"):
        up(home, only={"valkey"}, ports={"valkey": processes.free_port({port})})
    down(home)
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen()
        with pytest.raises(SettingError, match=f"port {port} asked for valkey .* MEMORY_PIPELINES_REDIS_URL"):
            up(home, only={"valkey"}, ports={"valkey": port})
        said: list[str] = []
        second = up(home, only={"valkey"}, progress=said.append)
    assert second.redis_url != first.redis_url
    assert any(f"port {port} is taken by another process" in message for message in said)
    assert Drivers(second).run("valkey") == "v"
    down(home)
    wish = processes.free_port({port})
    assert up(home, only={"valkey"}, ports={"valkey": wish}).redis_url.endswith(f"127.0.0.1:{wish}/0")


def test_two_processes_at_once_end_with_one_set(base: Path) -> None:
    home = base / "race"
    racers = [starter(home, 0, "valkey", "ministack", "postgres") for _ in range(2)]
    first, second = (answer(racer) for racer in racers)
    assert first == second
    for racer in racers:
        racer.communicate()
        assert racer.returncode == 0
    assert [len(ours(home, name)) for name in ("valkey", "ministack", "postgres")] == [1, 1, 1]


def test_a_starter_killed_while_it_makes_the_database_is_made_good(base: Path) -> None:
    home = base / "half"
    killed = starter(home, 0, "postgres")
    while not list(home.glob("servers/postgres/initdb-*/data/*")):
        assert killed.poll() is None
        time.sleep(0.02)
    killed.kill()
    killed.communicate()
    assert not (home / "servers" / "postgres" / "data").exists()
    draft = next(home.glob("servers/postgres/initdb-*/data"))
    makers = processes.left_over("initdb", str(draft))
    assert makers
    for maker in makers:
        maker.suspend()  # as slow as can be: it would write after the next starter has tidied up
    endpoints = up(home, only={"postgres"})
    assert all(processes.is_gone(maker) for maker in makers)
    assert Drivers(endpoints).run("postgres", "x") == "x"
    assert list(home.glob("servers/postgres/initdb-*")) == []


def test_a_server_that_ends_is_reported_with_its_log(base: Path) -> None:
    home = base / "broken"
    up(home, only={"valkey"})
    down(home)
    manifest = next((home / "servers" / "valkey" / "data").rglob("*.manifest"))
    manifest.write_text("no manifest\n")
    with pytest.raises(StoreUnavailableError) as raised:
        up(home, only={"valkey"})
    message = str(raised.value)
    assert "embedded valkey on 127.0.0.1:" in message
    assert str(home / "servers" / "valkey" / "server.log") in message
    assert "no manifest" in message
    assert "MEMORY_PIPELINES_REDIS_URL" in message


def test_a_server_that_does_not_answer_in_time_is_stopped(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = base / "mute"
    up(home, only={"valkey"})
    pid = pids(home)["valkey"]
    assert pid is not None
    os.kill(pid, signal.SIGSTOP)
    monkeypatch.setattr(supervisor, "START_SECONDS", 0.1)
    monkeypatch.setattr(supervisor, "STOP_SECONDS", 0.5)
    with pytest.raises(StoreUnavailableError, match=r"no answer in 0\.1 s"):
        up(home, only={"valkey"})
    monkeypatch.undo()
    up(home, only={"valkey"})
    assert pids(home)["valkey"] not in (None, pid)


def test_a_reused_pid_is_not_killed(base: Path) -> None:
    home = base / "reused"
    up(home, only={"valkey"})
    down(home)
    stranger = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(120)"], cwd=home / "servers" / "valkey")
    try:
        file = home / "servers" / "state.json"
        state = json.loads(file.read_text())
        created = psutil.Process(stranger.pid).create_time()
        state["servers"]["valkey"] |= {"pid": stranger.pid, "create_time": created}
        file.write_text(json.dumps(state))
        assert not any(s.running for s in status(home))
        assert down(home) == []
        file.write_text(json.dumps(state))
        up(home, only={"valkey"})
        assert pids(home)["valkey"] != stranger.pid
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_down_stops_everything_of_its_home_once(homes: Homes) -> None:
    one, two, endpoints, _ = homes
    before = [psutil.Process(pid) for pid in pids(one).values() if pid]
    families = before + [child for process in before for child in process.children(recursive=True)]
    assert down(one) == list(reversed(NAMES))
    assert all(processes.is_gone(process) for process in families)
    assert down(one) == []
    assert not any(s.running for s in status(one))
    assert all(s.running for s in status(two))
    assert up(one) == endpoints
    drivers = Drivers(endpoints)
    assert [drivers.run(name) for name in NAMES] == [f"价值 {name}" for name in NAMES]
