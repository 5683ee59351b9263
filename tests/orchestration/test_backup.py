"""A backup of a derived spring, put back: the same content, and nobody who was erased since."""

from pathlib import Path

import pytest
import sqlalchemy as sa
from pipeline_world import Killed, in_memory
from quarter_world import SECRET, Life, clock, dying, life_state, living

from memory_pipelines.erasure.places import KnownByKey, Target
from memory_pipelines.erasure.registry import PLACES
from memory_pipelines.errors import IntegrityError, PermanentError, SettingError, TransientError
from memory_pipelines.interchange import manifest as manifests
from memory_pipelines.interchange.folder import DiskFolder
from memory_pipelines.model import Owner
from memory_pipelines.pipeline import agreement, backups, forget, rebuild
from memory_pipelines.stores import schema
from memory_pipelines.stores.vault import Secret
from memory_pipelines.tables import ALL
from memory_pipelines.wiring import Platform

PHONE = "13800138000"
MOVED = {"unfinished", "accounts", "waiting"}


@pytest.fixture
def lived(life: Life, tmp_path: Path) -> Life:
    """With a key ring, cold memories, insights and a trained reward model."""
    home(life.platform, tmp_path / "home")
    life.run("reflection_job", "2024-06-03", "2024-06-24")
    life.run("tier_job", "2024-07-08", "2024-09-10")
    owner = life.platform.authority.owners()[0]
    life.platform.keyring.keep([Secret(owner, "phone", PHONE)])
    return life


def home(platform: Platform, path: Path) -> Platform:
    object.__setattr__(platform.settings, "home", str(path))
    return platform


def fresh(beside: Platform, *, cold: bool) -> Platform:
    """A platform that holds nothing; with ``cold`` the old one's bucket is still there."""
    empty = home(in_memory(certificate_secret=SECRET), beside.settings.home_path)
    clock(empty, beside.clock.now())
    if cold:
        empty.__dict__["cold"] = beside.cold
    return empty


def contents(platform: Platform) -> list[str]:
    return [rebuild.content(platform, store) for store in rebuild.STORES]


def erased(platform: Platform, owner: Owner) -> None:
    request = forget.request_erasure(platform, owner, "desk")
    forget.approve_erasure(platform, request, "officer")
    forget.erase_waiting(platform)


def holds(platform: Platform, owner: Owner) -> dict[str, int]:
    """Place → what it holds of somebody, looked for by key alone."""
    target = Target(KnownByKey(owner.tenant, owner.key))
    return {place.name: n for place in PLACES for n in place.count(platform.erasure_stores, [target]).values()}


def richest(platform: Platform) -> Owner:
    return max(platform.authority.owners(), key=lambda o: (len(platform.authority.visible(o)), o.key))


def test_a_backup_put_into_an_empty_platform_is_the_same(lived: Life, tmp_path: Path) -> None:
    platform = lived.platform
    before, state = contents(platform), life_state(platform)
    made = backups.backup(platform, str(tmp_path / "copy"))
    assert made.cold
    assert made.master_key
    assert contents(platform) == before, "a backup changes nothing"
    other = fresh(platform, cold=False)
    done = backups.restore(other, str(tmp_path / "copy"))
    assert done.persons == len(platform.authority.owners())
    assert (done.erased, done.archived) == (0, len(made.cold))
    assert contents(other) == before
    assert life_state(other) == state
    assert agreement.check(other).whole
    owner = platform.authority.owners()[0]
    (token,) = platform.keyring.keep([Secret(owner, "phone", PHONE)]).values()
    assert other.keyring.reveal({owner: [token]}) == {owner: {token: PHONE}}


def test_what_is_restored_goes_on_like_the_original(lived: Life, tmp_path: Path) -> None:
    """Everybody derived anew, and a night: the same on both."""
    platform = lived.platform
    backups.backup(platform, str(tmp_path / "copy"))
    other = fresh(platform, cold=False)
    backups.restore(other, str(tmp_path / "copy"))
    with living(other) as restored:
        for one in (lived, restored):
            with one.platform.engine.begin() as connection:
                connection.execute(schema.owners.update().values(touched=schema.next_touch(connection)))
        for one in (restored,):
            one.derive()
            one.run("tier_job", "2024-09-10", "2024-09-20")
    with living(platform) as original:
        original.derive()
        original.run("tier_job", "2024-09-10", "2024-09-20")
    assert contents(other) == contents(platform)


@pytest.mark.parametrize("known_by", ["database", "cold store"])
def test_who_was_erased_since_the_backup_is_not_there(lived: Life, tmp_path: Path, known_by: str) -> None:
    platform = lived.platform
    person = richest(platform)
    backups.backup(platform, str(tmp_path / "copy"))
    assert holds(platform, person)
    erased(platform, person)
    after = contents(platform)
    other = platform if known_by == "database" else fresh(platform, cold=True)
    if known_by == "database":
        platform.cold.delete(platform.cold.keys("tombstones/"))
    done = backups.restore(other, str(tmp_path / "copy"), replace_all=known_by == "database")
    assert done.erased == 1
    assert holds(other, person) == {}
    assert contents(other)[0] == after[0]
    assert not other.recall.recall("what do you know?", tenant=person.tenant, subject=person.subject).items
    assert forget.sweep_erased(other).survivors == {}
    for spec in ALL:
        assert not any(person.subject.encode() in content for _, content in other.lake.stored(spec)), spec.name
    assert agreement.check(other).whole


def test_nobody_is_visible_before_the_erasures_are_carried_out_again(
    lived: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = lived.platform
    person = richest(platform)
    backups.backup(platform, str(tmp_path / "copy"))
    erased(platform, person)
    seen: list[int] = []
    real = backups.execute

    def looking(*arguments: object, **named: object) -> object:
        seen.append(len(platform.authority.everything_visible()))
        return real(*arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(backups, "execute", looking)
    backups.restore(platform, str(tmp_path / "copy"), replace_all=True)
    assert seen == [0]


def test_a_restore_that_is_killed_is_run_again(lived: Life, tmp_path: Path) -> None:
    platform = lived.platform
    person = richest(platform)
    backups.backup(platform, str(tmp_path / "copy"))
    erased(platform, person)
    whole = fresh(platform, cold=False)
    whole.cold.put(f"tombstones/{person.key}.json", platform.cold.get(f"tombstones/{person.key}.json") or b"")
    with dying(whole, 0) as calls:
        backups.restore(whole, str(tmp_path / "copy"))
    wanted = contents(whole)
    for number in sorted({1, 2, 3, *range(5, len(calls), max(1, len(calls) // 12)), len(calls)}):
        other = fresh(platform, cold=False)
        other.cold.put(f"tombstones/{person.key}.json", platform.cold.get(f"tombstones/{person.key}.json") or b"")
        with pytest.raises(Killed), dying(other, number):
            backups.restore(other, str(tmp_path / "copy"))
        assert person not in other.authority.owners()
        if number > 1:
            with pytest.raises(TransientError, match="restore"):
                _ = other.ledger
        backups.restore(other, str(tmp_path / "copy"))
        assert contents(other) == wanted
        assert holds(other, person) == {}
        _ = other.ledger


def test_a_backup_that_was_changed_is_refused_before_anything_is(lived: Life, tmp_path: Path) -> None:
    platform = lived.platform
    made = backups.backup(platform, str(tmp_path / "copy"))
    before = contents(platform)
    for path in (next(iter(made.files)), manifests.NAME):
        file = tmp_path / "copy" / path
        whole = file.read_bytes()
        file.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(IntegrityError, match="not what was written"):
            backups.restore(platform, str(tmp_path / "copy"), replace_all=True)
        file.write_bytes(whole)
    assert contents(platform) == before


def test_a_backup_that_was_killed_is_none(lived: Life, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    platform = lived.platform
    put, files = DiskFolder.put, []

    def dies(self: DiskFolder, path: str, content: bytes) -> None:
        files.append(path)
        if len(files) > 10:
            raise Killed
        put(self, path, content)

    with monkeypatch.context() as patch:
        patch.setattr(DiskFolder, "put", dies)
        with pytest.raises(Killed):
            backups.backup(platform, str(tmp_path / "copy"))
    with pytest.raises(PermanentError, match="manifest"):
        backups.restore(platform, str(tmp_path / "copy"), replace_all=True)
    with pytest.raises(PermanentError, match="empty folder"):
        backups.backup(platform, str(tmp_path / "copy"))


def test_a_platform_that_holds_something_is_not_replaced_unasked(lived: Life, tmp_path: Path) -> None:
    backups.backup(lived.platform, str(tmp_path / "copy"))
    with pytest.raises(PermanentError, match="--replace"):
        backups.restore(lived.platform, str(tmp_path / "copy"))


def test_the_drill_of_a_lost_master_key(lived: Life, tmp_path: Path) -> None:
    """Restored without it, all but the kept values is there; put back, they are there as well."""
    platform = lived.platform
    owner = platform.authority.owners()[0]
    (token,) = platform.keyring.keep([Secret(owner, "phone", PHONE)]).values()
    backups.backup(platform, str(tmp_path / "copy"))
    key = (tmp_path / "home" / "master.key").read_bytes()
    for file in (tmp_path / "copy").rglob("*"):
        assert not file.is_file() or key.strip() not in file.read_bytes(), "the key is in no file of the backup"
    other = home(fresh(platform, cold=False), tmp_path / "elsewhere")
    with pytest.raises(SettingError, match="MASTER_KEY"):
        backups.restore(other, str(tmp_path / "copy"))
    assert other.authority.owners() == [], "refused before anything was written"
    backups.restore(other, str(tmp_path / "copy"), without_key=True)
    assert contents(other) == contents(platform)
    assert other.keyring.reveal({owner: [token]}) == {owner: {}}
    (tmp_path / "elsewhere").mkdir(exist_ok=True)
    (tmp_path / "elsewhere" / "master.key").write_bytes(key)
    assert other.keyring.reveal({owner: [token]}) == {owner: {token: PHONE}}
    assert other.keyring.check().broken == 0


def test_a_lake_of_other_buckets_is_refused(lived: Life, tmp_path: Path) -> None:
    backups.backup(lived.platform, str(tmp_path / "copy"))
    other = home(in_memory(buckets=3), lived.platform.settings.home_path)
    with pytest.raises(SettingError, match="2 buckets"):
        backups.restore(other, str(tmp_path / "copy"))


def test_days_that_were_not_committed_are_cut_anew(life: Life, tmp_path: Path) -> None:
    platform = home(life.platform, tmp_path / "home")
    with platform.engine.begin() as connection:
        touch = schema.next_touch(connection)
        connection.execute(schema.days.update().where(schema.days.c.day == "2024-05-06").values(touched=touch))
        connection.execute(schema.days.update().where(schema.days.c.day == "2024-05-06").values(written=touch))
    backups.backup(platform, str(tmp_path / "copy"))
    other = fresh(platform, cold=False)
    backups.restore(other, str(tmp_path / "copy"))
    assert list(other.ledger.touched_days()) == ["2024-05-06"]
    assert sa.inspect(other.engine).has_table("days")
