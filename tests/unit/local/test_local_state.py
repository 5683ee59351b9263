import json
import stat
import threading
from pathlib import Path

import pytest

from memory_pipelines.errors import SettingError
from memory_pipelines.local.state import ServerState, State, locked


def test_what_was_saved_is_read_back_and_only_by_its_owner(tmp_path: Path) -> None:
    state = State.load(tmp_path)
    assert state.servers == {}
    own = state.server("valkey")
    own.ports, own.password, own.pid, own.create_time = {"valkey": 20001}, "geheim 密码", 12, 1.25
    own.command = ["valkey-server", "/家/valkey.conf"]
    state.save()
    assert stat.S_IMODE((tmp_path / "state.json").stat().st_mode) == 0o600
    assert State.load(tmp_path).servers == {"valkey": own}
    assert [p.name for p in tmp_path.iterdir()] == ["state.json"]


def test_stopped_keeps_ports_and_password() -> None:
    own = ServerState({"postgres": 1}, "p", 7, 2.0, ["postgres"])
    own.stopped()
    assert own == ServerState({"postgres": 1}, "p", 0, 0.0, [])


def test_a_draft_left_by_a_crash_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "state.new").write_text("{half")
    state = State.load(tmp_path)
    state.server("milvus").ports["milvus"] = 5
    state.save()
    assert State.load(tmp_path).server("milvus").ports == {"milvus": 5}


def test_fields_of_a_later_version_are_ignored(tmp_path: Path) -> None:
    (tmp_path / "state.json").write_text(json.dumps({"servers": {"milvus": {"pid": 3, "colour": "red"}}}))
    assert State.load(tmp_path).server("milvus") == ServerState(pid=3)


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"servers": []}', '{"servers": {"milvus": 1}}'])
def test_a_damaged_file_is_named(tmp_path: Path, text: str) -> None:
    (tmp_path / "state.json").write_text(text)
    with pytest.raises(SettingError, match=r"state\.json is damaged"):
        State.load(tmp_path)


def test_the_lock_lets_one_in_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []
    said: list[str] = []
    told = threading.Event()

    def say(message: str) -> None:
        said.append(message)
        told.set()

    def second() -> None:
        with locked(tmp_path, say):
            order.append("second")

    with locked(tmp_path, say):
        thread = threading.Thread(target=second)
        thread.start()
        assert told.wait(10)
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]
    assert said == ["another process starts or stops the servers of this home; waiting for it"]
