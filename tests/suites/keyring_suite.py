"""What the key ring promises beyond a vault, on every engine. ``engine`` is a fixture of the inheriting module."""

import base64
import logging
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa
from suites.vault_suite import ANN, BOB, PHONE, VaultSuite

from memory_pipelines.errors import PermanentError, SettingError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.settings import Settings
from memory_pipelines.stores import schema
from memory_pipelines.stores.keyring import KeyRing, RingCheck
from memory_pipelines.stores.masterkey import KEY_FILE, MasterKeySource
from memory_pipelines.stores.vault import Secret

SECRET = Secret(ANN, "phone", PHONE)
TABLES = (schema.sensitive_values, schema.subject_keys, schema.master_key)


def ring(engine: sa.Engine, home: Path, **settings: str) -> KeyRing:
    return KeyRing(engine, MasterKeySource(Settings(home=str(home), **settings)))  # type: ignore[arg-type]


def rows(engine: sa.Engine, table: sa.Table) -> list[sa.Row[tuple[object, ...]]]:
    with engine.begin() as connection:
        return list(connection.execute(sa.select(table).order_by(*table.primary_key)))


def some_key(byte: int = 1) -> str:
    return base64.b64encode(bytes([byte]) * 64).decode()


class KeyRingSuite(VaultSuite):
    @pytest.fixture
    def vault(self, engine: sa.Engine, tmp_path: Path) -> KeyRing:
        return ring(engine, tmp_path)

    def test_tokens_are_equal_in_every_process(self, vault: KeyRing, engine: sa.Engine, tmp_path: Path) -> None:
        assert vault.keep([SECRET]) == ring(engine, tmp_path).keep([SECRET])
        assert (len(rows(engine, schema.subject_keys)), len(rows(engine, schema.sensitive_values))) == (1, 1)

    def test_nothing_is_stored_in_the_clear(self, vault: KeyRing, engine: sa.Engine) -> None:
        vault.keep([SECRET, Secret(BOB, "password", "swordfish")])
        stored = repr([rows(engine, table) for table in TABLES])
        for clear in (PHONE, "swordfish", ANN.subject, "acme"):
            assert clear not in stored
        with engine.begin() as connection:
            raw = connection.execute(sa.select(schema.subject_keys.c.wrapped)).scalars().all()
        assert len(set(raw)) == 2
        assert {len(key) for key in raw} == {80}

    def test_landings_at_once_agree_on_a_new_key(self, engine: sa.Engine, tmp_path: Path) -> None:
        secrets = [Secret(Owner("acme", f"u:{i}"), "phone", PHONE) for i in range(50)]

        def keep(turn: int) -> dict[Secret, str]:
            return ring(engine, tmp_path).keep(secrets if turn % 2 else secrets[::-1])

        if engine.dialect.name == "sqlite":  # one connection, which threads cannot share
            made = [keep(i) for i in range(4)]
        else:
            with ThreadPoolExecutor(8) as pool:
                made = list(pool.map(keep, range(16)))
        assert all(tokens == made[0] for tokens in made)
        assert ring(engine, tmp_path).check() == RingCheck(50, 50, 0)

    def test_a_destroyed_key_is_made_anew(self, vault: KeyRing, engine: sa.Engine) -> None:
        [old] = vault.keep([SECRET]).values()
        bobs = vault.keep([Secret(BOB, "phone", PHONE)])
        with engine.begin() as connection:
            connection.execute(schema.subject_keys.delete().where(schema.subject_keys.c.owner == ANN.key))
        assert vault.reveal({ANN: {old}}) == {ANN: {}}
        assert vault.check() == RingCheck(1, 2, 1)
        with engine.begin() as connection:
            connection.execute(schema.sensitive_values.delete().where(schema.sensitive_values.c.owner == ANN.key))
        [new] = vault.keep([SECRET]).values()
        assert new != old
        assert vault.reveal({ANN: {old, new}}) == {ANN: {new: PHONE}}
        assert vault.keep([Secret(BOB, "phone", PHONE)]) == bobs

    def test_rows_of_one_owner_are_no_good_under_another(self, vault: KeyRing, engine: sa.Engine) -> None:
        """Who may write to the database and not read the master key gains nothing by moving rows."""
        made = vault.keep([SECRET, Secret(BOB, "phone", "2")])
        with engine.begin() as connection:
            connection.execute(schema.sensitive_values.delete().where(schema.sensitive_values.c.owner == BOB.key))
            connection.execute(schema.sensitive_values.update().values(owner=BOB.key))
        with pytest.raises(PermanentError, match="does not open") as error:
            vault.reveal({BOB: {made[SECRET]}})
        assert PHONE not in str(error.value)

    # ---- the master key

    def test_the_first_use_makes_a_key_file(
        self, engine: sa.Engine, tmp_path: Path, caplog: pytest.LogCaptureFixture
    ) -> None:
        home = tmp_path / "new" / "home"
        assert ring(engine, home).reveal({ANN: {"[phone:abcdefghijkm]"}}) == {ANN: {}}
        assert not home.exists()
        with caplog.at_level(logging.WARNING):
            ring(engine, home).keep([SECRET])
            ring(engine, home).keep([Secret(BOB, "phone", PHONE)])
        assert len(caplog.messages) == 1
        assert "keep a copy" in caplog.messages[0]
        assert (home / KEY_FILE).stat().st_mode & 0o777 == 0o600
        assert [path.name for path in home.iterdir()] == [KEY_FILE]
        assert (home / KEY_FILE).read_text().strip() not in caplog.text

    def test_another_master_key_is_refused_and_none_is_made(self, engine: sa.Engine, tmp_path: Path) -> None:
        [name] = ring(engine, tmp_path).keep([SECRET]).values()
        before = [rows(engine, table) for table in TABLES]
        other, empty = ring(engine, tmp_path, master_key=some_key()), ring(engine, tmp_path / "elsewhere")
        for wrong in (other.keep, empty.keep):
            with pytest.raises(SettingError, match=r"key ring .* MEMORY_PIPELINES_MASTER_KEY"):
                wrong([SECRET, Secret(BOB, "phone", PHONE)])
        with pytest.raises(SettingError, match="opens with another master key"):
            other.reveal({ANN: {name}})
        assert empty.reveal({ANN: {name}}) == {ANN: {}}  # a reader without a key: tokens stay
        assert [rows(engine, table) for table in TABLES] == before
        assert not (tmp_path / "elsewhere").exists()

    def test_a_key_of_the_settings(self, engine: sa.Engine, tmp_path: Path) -> None:
        made = ring(engine, tmp_path, master_key=some_key()).keep([SECRET])
        assert list(tmp_path.iterdir()) == []
        named = tmp_path / "key"
        named.write_text(some_key() + "\n")
        assert ring(engine, tmp_path, master_key_file=str(named)).keep([SECRET]) == made

    # ---- rotation

    def test_a_rotation_keeps_tokens_and_values(self, vault: KeyRing, engine: sa.Engine, tmp_path: Path) -> None:
        made = vault.keep([SECRET, Secret(BOB, "phone", "2")])
        before, old = rows(engine, schema.subject_keys), (tmp_path / KEY_FILE).read_text()
        values = rows(engine, schema.sensitive_values)
        assert vault.rotate() == 2
        assert vault.keep([SECRET, Secret(BOB, "phone", "2")]) == made
        assert rows(engine, schema.sensitive_values) == values
        assert not set(rows(engine, schema.subject_keys)) & set(before)
        assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]
        assert (tmp_path / KEY_FILE).read_text() != old
        assert ring(engine, tmp_path).check() == RingCheck(2, 2, 0)
        with pytest.raises(SettingError, match="another master key"):
            ring(engine, tmp_path, master_key=old.strip()).keep([SECRET])

    def test_rotations_while_others_land(self, vault: KeyRing, engine: sa.Engine, tmp_path: Path) -> None:
        made = vault.keep([SECRET])

        def work(turn: int) -> None:
            if turn % 4 == 0:
                ring(engine, tmp_path).rotate()
            secrets = [SECRET, *(Secret(Owner("acme", f"u:{turn}-{i}"), "phone", PHONE) for i in range(20))]
            assert ring(engine, tmp_path).keep(secrets)[SECRET] == made[SECRET]

        if engine.dialect.name == "sqlite":  # one connection, which threads cannot share
            for turn in range(12):
                work(turn)
        else:
            with ThreadPoolExecutor(6) as pool:
                list(pool.map(work, range(60)))
        assert ring(engine, tmp_path).check().broken == 0
        assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]

    @pytest.mark.parametrize("committed", [False, True])
    def test_a_rotation_that_was_killed(
        self, vault: KeyRing, engine: sa.Engine, tmp_path: Path, committed: bool
    ) -> None:
        """Killed before the commit the old key stands, after it the next one; both files are there."""
        made = vault.keep([SECRET])
        old = (tmp_path / KEY_FILE).read_text()
        if committed:
            vault.rotate()
            (tmp_path / KEY_FILE).rename(tmp_path / f"{KEY_FILE}.next")
            (tmp_path / KEY_FILE).write_text(old)
        else:
            (tmp_path / f"{KEY_FILE}.next").write_text(some_key())
        assert ring(engine, tmp_path).reveal({ANN: set(made.values())}) == {ANN: {made[SECRET]: PHONE}}
        assert ((tmp_path / KEY_FILE).read_text() == old) != committed
        assert ring(engine, tmp_path).rotate() == 1
        assert ring(engine, tmp_path).keep([SECRET]) == made
        assert [path.name for path in tmp_path.iterdir()] == [KEY_FILE]

    def test_what_cannot_be_rotated(self, vault: KeyRing, engine: sa.Engine, tmp_path: Path) -> None:
        with pytest.raises(PermanentError, match="empty"):
            vault.rotate()
        given = ring(engine, tmp_path, master_key=some_key())
        given.keep([SECRET])
        with pytest.raises(SettingError, match="into a file"):
            given.rotate()
        assert given.check() == RingCheck(1, 1, 0)

    def test_a_store_that_is_gone_is_named(self, tmp_path: Path) -> None:
        gone = ring(sa.create_engine("postgresql+psycopg://nobody:x@127.0.0.1:1/none"), tmp_path)
        for call in (lambda: gone.keep([SECRET]), lambda: gone.reveal({ANN: {"[phone:abcdefghijkm]"}})):
            with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_POSTGRES_URL") as error:
                call()
            assert PHONE not in str(error.value)
