import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from memory_pipelines.local import processes

SLEEP = "import time; print('on', flush=True); time.sleep(60)"
STUBBORN = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('on', flush=True); time.sleep(60)"


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[psutil.Process]:
    """A process of somebody else, whose command line even names the folder."""
    command = [sys.executable, "-c", SLEEP, str(tmp_path / "data")]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"on\n"
        yield psutil.Process(child.pid)
        child.kill()


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_a_port_with_a_listener_is_not_free(host: str) -> None:
    with socket.socket() as listener:
        listener.bind((host, 0))
        listener.listen()
        port = listener.getsockname()[1]
        assert not processes.is_free(port)
    assert processes.is_free(port)


def test_a_free_port_is_outside_what_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    port = processes.free_port(())
    assert port in processes.PORTS
    monkeypatch.setattr(processes, "PORTS", range(port, port + 2))
    assert processes.free_port({port}) == port + 1


def test_a_pid_alone_proves_nothing(stranger: psutil.Process, tmp_path: Path) -> None:
    pid, created, mark = stranger.pid, stranger.create_time(), str(tmp_path / "data")
    assert processes.recorded(pid, created, "python", mark) is not None
    assert processes.recorded(pid, created - 60, "python", mark) is None
    assert processes.recorded(pid, created, "postgres", mark) is None
    assert processes.recorded(pid, created, "python", str(tmp_path)) is None
    assert processes.recorded(0, created, "python", mark) is None
    assert processes.recorded(2**22 + 1, created, "python", mark) is None


def test_left_over_finds_by_argument_or_by_working_directory(stranger: psutil.Process, tmp_path: Path) -> None:
    assert processes.left_over("python", str(tmp_path / "data")) == [stranger]
    assert processes.left_over("python", str(tmp_path / "other")) == []
    assert processes.left_over("valkey-server", str(tmp_path / "data")) == []
    program = Path(stranger.exe()).name
    assert processes.left_over(program, "nowhere", workers_in=tmp_path) == [stranger]
    assert processes.left_over(program, "nowhere", workers_in=tmp_path / "data") == []


def test_stop_kills_what_does_not_listen(tmp_path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", STUBBORN], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"on\n"
    process = psutil.Process(child.pid)
    assert processes.memory(process) > 0
    processes.stop([(process, signal.SIGTERM)], 0.2)
    assert processes.is_gone(process)
    assert processes.memory(process) == 0
    processes.stop([(process, signal.SIGTERM)], 0.2)  # of one that is gone: nothing
    child.stdout.close()
    child.wait()


def test_a_long_log_keeps_its_end_from_a_line_start_on(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    processes.trim(log, 100, 50)
    assert processes.last_lines(log) == []
    log.write_text("".join(f"line {n:04d}\n" for n in range(100)))
    processes.trim(log, 1000, 50)
    assert log.stat().st_size == 1000
    processes.trim(log, 999, 45)
    assert log.read_text() == "line 0096\nline 0097\nline 0098\nline 0099\n"
    assert processes.last_lines(log, 2) == ["line 0098", "line 0099"]


def test_last_lines_of_odd_bytes(tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    log.write_bytes("\n 启动失败 \n\n".encode() + b"\xff\xfe\n")
    assert processes.last_lines(log) == ["启动失败", "\ufffd\ufffd"]
