import os
import stat
from pathlib import Path

from memory_pipelines.local import postgres


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_way_to_the_data_is_opened_for_passing_through_only(tmp_path: Path) -> None:
    upper, lower = tmp_path / "upper", tmp_path / "upper" / "lower"
    lower.mkdir(parents=True)
    upper.chmod(0o700)
    lower.chmod(0o755)
    said: list[str] = []
    postgres.open_way(lower / "data", said.append)
    assert (mode(upper), mode(lower)) == (0o701, 0o755)
    assert any(str(upper) in message for message in said)
    assert not any(f"{lower} " in message for message in said)
    said.clear()
    postgres.open_way(lower / "data", said.append)
    assert said == []


def test_existing_data_run_as_their_owner(tmp_path: Path) -> None:
    user = postgres.os_user(tmp_path)
    if os.geteuid() == 0:
        assert user is not None
        assert user.pw_name == postgres.OS_USER
        os.chown(tmp_path, user.pw_uid, user.pw_gid)
        again = postgres.os_user(tmp_path)
        assert again is not None
        assert again.pw_uid == user.pw_uid
    else:
        assert user is None


def test_a_pid_file_that_names_a_stranger_is_dropped(tmp_path: Path) -> None:
    file = tmp_path / "postmaster.pid"
    file.write_text(f"{os.getpid()}\n{tmp_path}\n")
    (tmp_path / "PG_VERSION").write_text("18")
    postgres.drop_foreign_pid_file(tmp_path)
    assert not file.exists()


def test_a_pid_file_of_the_dead_is_left_to_the_server(tmp_path: Path) -> None:
    file = tmp_path / "postmaster.pid"
    postgres.drop_foreign_pid_file(tmp_path)
    for text in ("", "not a number", f"{2**22 + 1}\n"):
        file.write_text(text)
        postgres.drop_foreign_pid_file(tmp_path)
        assert file.read_text() == text
