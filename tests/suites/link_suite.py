"""What identity links promise, on every engine. ``engine`` is a fixture of the inheriting module."""

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone

import pytest
import sqlalchemy as sa

from memory_pipelines.errors import PermanentError, StoreUnavailableError
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.links import IdentityLinks
from memory_pipelines.stores.persons import MOST_SUBJECTS, ever_linked, touch_relinked
from memory_pipelines.stores.statements import upsert

AT = datetime(2024, 6, 1, 12, 0, 0, 250, tzinfo=UTC)
SECOND, DAY = timedelta(seconds=1), timedelta(days=1)
USER, OTHER = Owner("acme", "u:李雷"), Owner("acme", "u:bob")
PHONE, LAPTOP = Owner("acme", "d:phone"), Owner("acme", "d:laptop 💻")
SHOP = Owner("acme", "d:shop")


def rows(engine: sa.Engine) -> list[sa.Row[tuple[datetime, datetime | None, datetime | None]]]:
    table = schema.identity_links
    query = sa.select(table.c.linked_at, table.c.visible_at, table.c.unlinked_at).order_by(table.c.linked_at)
    with engine.begin() as connection:
        return list(connection.execute(query))


def known(engine: sa.Engine, *owners: Owner) -> None:
    """The ledger knows the owners, and all are derived."""
    row = {"bucket": 0, "touched": 0, "derived": 0, "due_at": None}
    with engine.begin() as connection:
        upsert(connection, schema.owners, [row | {"owner": o.key, "tenant": o.tenant} for o in owners])


def touched(engine: sa.Engine, *more: Owner) -> set[Owner]:
    """Whom of the known persons and ``more`` links have touched since they were last derived; then they are."""
    table = schema.owners
    with engine.begin() as connection:
        touch_relinked(connection)
        keys = set(connection.execute(sa.select(table.c.owner).where(table.c.touched > table.c.derived)).scalars())
        connection.execute(table.update().values(derived=table.c.touched))
    return {owner for owner in (USER, OTHER, PHONE, LAPTOP, SHOP, *more) if owner.key in keys}


class LinkSuite:
    @pytest.fixture
    def links(self, engine: sa.Engine) -> IdentityLinks:
        return IdentityLinks(engine)

    def test_nobody_is_linked_at_first(self, links: IdentityLinks) -> None:
        assert links.linked(USER) == (USER,)
        assert links.linked(PHONE) == (PHONE,)
        assert links.linked(Owner("", "")) == (Owner("", ""),)
        assert not links.shared(PHONE)
        assert links.latencies(AT) == []

    def test_a_user_sees_their_devices_and_a_device_itself(self, links: IdentityLinks) -> None:
        links.link(PHONE, USER, AT)
        links.link(LAPTOP, USER, AT + SECOND)
        assert links.linked(USER) == (USER, LAPTOP, PHONE)
        assert links.linked(PHONE) == (PHONE,)
        assert links.linked(OTHER) == (OTHER,)

    def test_linking_again_while_linked_changes_nothing(self, links: IdentityLinks, engine: sa.Engine) -> None:
        for later in (timedelta(), timedelta(), SECOND, DAY):
            links.link(PHONE, USER, AT + later)
        assert rows(engine) == [(AT, None, None)]

    def test_logins_at_once_make_one_link(self, links: IdentityLinks, engine: sa.Engine) -> None:
        if engine.dialect.name == "sqlite":  # one connection, which threads cannot share
            for i in range(8):
                links.link(PHONE, USER, AT + i * SECOND)
        else:
            with ThreadPoolExecutor(8) as pool:
                list(pool.map(lambda i: links.link(PHONE, USER, AT + i * SECOND), range(8)))
        assert len(rows(engine)) == 1

    def test_unlinking_acts_at_once_and_keeps_the_row(self, links: IdentityLinks, engine: sa.Engine) -> None:
        links.link(PHONE, USER, AT)
        links.unlink(PHONE, OTHER, AT + SECOND)
        assert links.linked(USER) == (USER, PHONE)
        links.unlink(PHONE, USER, AT + SECOND)
        links.unlink(PHONE, USER, AT + DAY)
        assert links.linked(USER) == (USER,)
        assert rows(engine) == [(AT, None, AT + SECOND)]

    def test_a_later_login_links_again(self, links: IdentityLinks, engine: sa.Engine) -> None:
        links.link(PHONE, USER, AT)
        links.unlink(PHONE, USER, AT + SECOND)
        links.link(PHONE, USER, AT)  # the first call repeated, not a login
        assert links.linked(USER) == (USER,)
        links.link(PHONE, USER, AT + DAY)
        links.unlink(PHONE, USER, AT + SECOND)  # the same again: undoes nothing new
        assert links.linked(USER) == (USER, PHONE)
        assert rows(engine) == [(AT, None, AT + SECOND), (AT + DAY, None, None)]

    def test_the_devices_of_several_users_join_nobody(self, links: IdentityLinks) -> None:
        links.link(PHONE, USER, AT)
        links.link(LAPTOP, USER, AT)
        links.link(PHONE, OTHER, AT + DAY)
        assert links.shared(PHONE)
        assert not links.shared(LAPTOP)
        assert links.linked(USER) == (USER, LAPTOP)
        assert links.linked(OTHER) == (OTHER,)
        links.unlink(PHONE, USER, AT + 2 * DAY)
        assert not links.shared(PHONE)
        assert links.linked(OTHER) == (OTHER, PHONE)

    def test_a_person_is_a_user_and_the_devices_of_nobody_else(self, links: IdentityLinks, engine: sa.Engine) -> None:
        assert links.others_of() == links.others_of([]) == links.others_of([USER.key, PHONE.key]) == {}
        links.link(PHONE, USER, AT)
        links.link(LAPTOP, USER, AT)
        links.link(SHOP, USER, AT)
        links.link(SHOP, OTHER, AT)
        everybody = {owner.key for owner in (USER, PHONE, LAPTOP)}
        expected = {key: everybody - {key} for key in everybody}
        assert links.others_of() == expected
        assert links.others_of([PHONE.key, OTHER.key, SHOP.key]) == {PHONE.key: expected[PHONE.key]}
        assert links.others_of([USER.key, *(f"nobody {i}" for i in range(6_000))]) == {USER.key: expected[USER.key]}
        links.unlink(PHONE, USER, AT + SECOND)
        links.unlink(SHOP, OTHER, AT + SECOND)
        assert links.others_of([LAPTOP.key]) == {LAPTOP.key: {USER.key, SHOP.key}}
        with engine.begin() as connection:
            assert ever_linked(connection, PHONE.key) == {owner.key for owner in (USER, LAPTOP, SHOP)}
            assert ever_linked(connection, OTHER.key) == {SHOP.key}

    def test_a_device_of_somebody_erased_joins_nobody(self, links: IdentityLinks, engine: sa.Engine) -> None:
        links.link(PHONE, USER, AT)
        links.link(LAPTOP, USER, AT)
        with engine.begin() as connection:
            connection.execute(schema.identity_links.update().values(user_subject=""))
        assert links.others_of() == {}

    def test_a_changed_link_touches_the_subjects_of_the_person_once(
        self, links: IdentityLinks, engine: sa.Engine
    ) -> None:
        known(engine, USER, PHONE, LAPTOP, OTHER)
        assert touched(engine) == set()
        links.link(PHONE, USER, AT)
        assert touched(engine) == {USER, PHONE}
        links.link(PHONE, USER, AT + SECOND)
        assert touched(engine) == set()
        links.link(LAPTOP, USER, AT)
        assert touched(engine) == {USER, PHONE, LAPTOP}
        links.unlink(PHONE, OTHER, AT + SECOND)
        assert touched(engine) == set()
        links.unlink(PHONE, USER, AT + SECOND)
        assert touched(engine) == {USER, PHONE, LAPTOP}
        links.unlink(PHONE, USER, AT + SECOND)
        assert touched(engine) == set()
        links.link(PHONE, USER, AT + DAY)
        links.unlink(PHONE, USER, AT + 2 * DAY)
        assert touched(engine) >= {USER, PHONE}

    def test_nobody_becomes_known_by_a_link(self, links: IdentityLinks, engine: sa.Engine) -> None:
        known(engine, PHONE)
        links.link(PHONE, USER, AT)
        links.link(LAPTOP, OTHER, AT)
        assert touched(engine) == {PHONE}
        with engine.begin() as connection:
            assert connection.execute(sa.select(schema.owners.c.owner)).scalars().all() == [PHONE.key]

    def test_a_device_that_becomes_shared_touches_whom_it_leaves_and_joins(
        self, links: IdentityLinks, engine: sa.Engine
    ) -> None:
        third = Owner("acme", "u:third")
        known(engine, USER, OTHER, PHONE, LAPTOP)
        links.link(PHONE, USER, AT)
        links.link(LAPTOP, USER, AT)
        touched(engine)
        links.link(PHONE, OTHER, AT)
        assert touched(engine) == {USER, PHONE, LAPTOP}, "the other user never had it"
        links.link(PHONE, third, AT)
        links.unlink(PHONE, third, AT + SECOND)
        assert touched(engine) == set(), "it joins nobody, now as before"
        links.unlink(PHONE, USER, AT + SECOND)
        assert touched(engine) == {OTHER, PHONE}
        links.link(PHONE, USER, AT + DAY)
        links.unlink(PHONE, OTHER, AT + DAY)
        assert touched(engine) >= {USER, OTHER, PHONE, LAPTOP}, "from one to the other while nobody looked"

    def test_whom_a_device_joined_while_nobody_looked_is_touched(self, links: IdentityLinks, engine: sa.Engine) -> None:
        """A derivation under way reads links as they are at each of its steps."""
        known(engine, USER, OTHER, PHONE)
        links.link(PHONE, USER, AT)
        links.link(PHONE, OTHER, AT)
        assert touched(engine) == {USER, OTHER, PHONE}, "it joins nobody, but did join the first"
        links.unlink(PHONE, OTHER, AT + SECOND)
        assert touched(engine) == {USER, PHONE}
        links.link(PHONE, OTHER, AT + DAY)
        links.unlink(PHONE, USER, AT + DAY)
        links.link(PHONE, USER, AT + 2 * DAY)
        assert touched(engine) == {USER, OTHER, PHONE}, "for a while it was the other one's alone"

    def test_a_user_of_too_many_devices_joins_nobody(self, links: IdentityLinks, engine: sa.Engine) -> None:
        devices = [Owner("acme", f"d:{number}") for number in range(MOST_SUBJECTS)]
        known(engine, USER, *devices)
        for device in devices[1:]:
            links.link(device, USER, AT)
        assert len(links.others_of([USER.key])[USER.key]) == MOST_SUBJECTS - 1
        assert touched(engine, *devices) == {USER, *devices[1:]}
        links.link(devices[0], USER, AT)
        assert links.others_of() == links.others_of([USER.key, devices[1].key]) == {}
        assert touched(engine, *devices) == {USER, *devices}, "they were one person"
        links.unlink(devices[0], USER, AT + SECOND)
        assert len(links.others_of([devices[1].key])[devices[1].key]) == MOST_SUBJECTS - 1
        assert touched(engine, *devices) == {USER, *devices}

    def test_a_login_does_not_wait_for_a_job(self, links: IdentityLinks, engine: sa.Engine) -> None:
        if engine.dialect.name == "sqlite":
            pytest.skip("one connection: writers take turns")
        known(engine, USER, PHONE)
        with ThreadPoolExecutor(1) as pool, engine.begin() as job:
            schema.next_touch(job)
            job.execute(schema.owners.update().values(bucket=1))
            pool.submit(links.link, PHONE, USER, AT).result(timeout=30)
            pool.submit(links.unlink, PHONE, USER, AT).result(timeout=30)
        assert touched(engine) == {USER, PHONE}

    def test_tenants_are_apart(self, links: IdentityLinks, engine: sa.Engine) -> None:
        foreign = Owner("rival", PHONE.subject)
        with pytest.raises(PermanentError, match="two tenants"):
            links.link(foreign, USER, AT)
        with pytest.raises(PermanentError, match="two tenants"):
            links.unlink(foreign, USER, AT)
        assert rows(engine) == []
        links.link(foreign, Owner("rival", USER.subject), AT)
        links.link(PHONE, OTHER, AT)
        assert links.linked(USER) == (USER,)
        assert not links.shared(foreign)

    @pytest.mark.parametrize(
        ("device", "user"), [("u:a", "u:b"), ("d:a", "d:b"), ("u:a", "d:b"), ("", ""), ("d:", "u:b"), ("d:a", "u: ")]
    )
    def test_only_a_device_and_a_user_are_linked(self, links: IdentityLinks, device: str, user: str) -> None:
        with pytest.raises(PermanentError, match=r"subject of a (device|user) must be"):
            links.link(Owner("acme", device), Owner("acme", user), AT)

    def test_a_time_without_a_zone_is_refused(self, links: IdentityLinks, engine: sa.Engine) -> None:
        for call in (links.link, links.unlink, links.seen):
            with pytest.raises(ValueError, match="zone"):
                call(PHONE, USER, AT.replace(tzinfo=None))
        assert rows(engine) == []

    def test_latencies(self, links: IdentityLinks) -> None:
        east = timezone(timedelta(hours=8))
        links.link(PHONE, USER, AT)
        links.seen(PHONE, USER, (AT + 1.5 * SECOND).astimezone(east))
        links.seen(PHONE, USER, AT + DAY)  # the first time stands
        links.link(LAPTOP, USER, AT + DAY)
        assert links.latencies(AT + DAY) == [1.5]
        links.seen(LAPTOP, USER, AT + DAY - SECOND)  # another machine's clock
        assert links.latencies(AT + DAY) == [1.5, 0.0]
        assert links.latencies(AT + DAY, days=1) == [0.0]
        assert links.latencies(AT + SECOND) == links.latencies(AT - SECOND) == links.latencies(AT + 9 * DAY) == []

    def test_a_link_that_is_none_is_not_seen(self, links: IdentityLinks, engine: sa.Engine) -> None:
        links.seen(PHONE, USER, AT)
        links.link(PHONE, USER, AT)
        links.unlink(PHONE, USER, AT + SECOND)
        links.seen(PHONE, USER, AT + SECOND)
        links.link(PHONE, USER, AT + DAY)
        links.seen(PHONE, OTHER, AT + DAY)
        links.seen(PHONE, USER, AT + DAY + SECOND)
        assert [row.visible_at for row in rows(engine)] == [None, AT + DAY + SECOND]
        assert links.latencies(AT + 2 * DAY) == [1.0]

    def test_names_are_only_data(self, links: IdentityLinks) -> None:
        odd = Owner("acme", "d:'; DROP TABLE identity_links; --")
        links.link(odd, USER, AT)
        assert links.linked(USER) == (USER, odd)

    def test_a_store_that_is_gone_is_named_and_nobody_else(self) -> None:
        links = IdentityLinks(sa.create_engine("postgresql+psycopg://nobody:x@127.0.0.1:1/none"))
        for call in (lambda: links.linked(USER), lambda: links.link(PHONE, USER, AT)):
            with pytest.raises(StoreUnavailableError, match="MEMORY_PIPELINES_POSTGRES_URL") as error:
                call()
            assert "李雷" not in str(error.value)
