"""Where a person stands, in one read, on every engine. ``engine``: an empty one, a fixture of the inheriting module."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta

import pytest
import sqlalchemy as sa
from suites.authority_suite import change, row
from suites.journal_suite import said
from suites.publish_world import AT, world

from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.authority import Head, Person, VectorCollection
from memory_pipelines.stores.batches import Batch
from memory_pipelines.stores.journal import TurnJournal
from memory_pipelines.stores.links import IdentityLinks
from memory_pipelines.stores.live import CollectionRegister
from memory_pipelines.stores.packs import Kept, PackShelf
from memory_pipelines.stores.relational import PostgresAuthority
from memory_pipelines.stores.statements import upsert

SECOND, YEARS = timedelta(seconds=1), timedelta(days=9999)
LIVE = VectorCollection("memories_use", "use", "use-1", 512)


@contextmanager
def statements(engine: sa.Engine) -> Iterator[list[str]]:
    """Those that the engine runs meanwhile."""
    found: list[str] = []

    def noted(connection: object, cursor: object, statement: str, *rest: object) -> None:
        found.append(statement)

    sa.event.listen(engine, "before_cursor_execute", noted)
    try:
        yield found
    finally:
        sa.event.remove(engine, "before_cursor_execute", noted)


class HeadSuite:
    @pytest.fixture
    def authority(self, engine: sa.Engine) -> PostgresAuthority:
        return PostgresAuthority(engine)

    @pytest.fixture
    def links(self, engine: sa.Engine) -> IdentityLinks:
        return IdentityLinks(engine)

    @pytest.fixture
    def user(self) -> Owner:
        return world().owners[0]

    @pytest.fixture
    def phone(self, user: Owner) -> Owner:
        return Owner(user.tenant, "d:phone")

    def show(self, authority: PostgresAuthority, owner: Owner, *numbers: int) -> list[str]:
        rows = [row(owner, n) for n in numbers]
        ids = [str(r["memory_id"]) for r in rows]
        pointers = ((i, "v1", "hot") for i in ids)
        batch = Batch(owner.key, 1, "preparing", (change(owner, *pointers, graph_version="g"),))
        authority.prepare(batch, rows, AT)
        authority.commit(batch, AT)
        authority.finish(batch)
        return ids

    def suppress(self, engine: sa.Engine, owner: Owner, turn: str) -> None:
        with engine.begin() as connection:
            rows = [{"owner": owner.key, "turn_id": turn, "until": AT + YEARS}]
            upsert(connection, schema.suppressions, rows)

    def test_of_nobody_there_is_nothing(self, authority: PostgresAuthority, user: Owner) -> None:
        assert authority.head(user, AT) == Head((Person(user, 0, None, frozenset()),))

    @pytest.mark.parametrize("subject", ["u:\ud800", "u:a\x00b", "u:" + "长" * 9_000], ids=ascii)
    def test_a_subject_is_not_sent(self, authority: PostgresAuthority, user: Owner, subject: str) -> None:
        odd = Owner(user.tenant, subject)
        nobody = Person(odd, 0, None, frozenset())
        assert authority.head(odd, AT) == Head((nobody,))
        assert authority.person(odd) == nobody

    def test_one_statement_says_what_each_store_of_it_says(
        self, authority: PostgresAuthority, links: IdentityLinks, engine: sa.Engine, user: Owner, phone: Owner
    ) -> None:
        self.show(authority, user, 1, 2)
        self.show(authority, phone, 3)
        PackShelf(engine).put([Kept(phone, 1, "form", b"pack", 0)])
        links.link(phone, user, AT)
        journal, register = TurnJournal(engine), CollectionRegister(engine)
        journal.append([said("t1", owner=phone), said("t2", 1, owner=phone)], AT)
        journal.append([said("t3", owner=Owner(user.tenant, "u:else"))], AT)
        register.adopt(LIVE, AT)
        register.begin(VectorCollection("memories_new", "e5", "e5-1", 384), AT)
        with statements(engine) as run:
            head = authority.head(user, AT)
        assert len(run) == 1
        nothing = frozenset[str]()
        assert head.persons == (Person(user, 1, "g", nothing), Person(phone, 1, "g", nothing, packed=True))
        assert head.marks == journal.marks([user, phone], AT)
        assert head.marks.keys() == {phone}
        assert head.live == register.live() == LIVE
        assert [authority.person(one) for one in (user, phone)] == list(head.persons)
        assert authority.head(phone, AT).persons == head.persons[1:], "a device sees its own alone"

    def test_devices_are_those_of_this_user_alone_by_subject(
        self, authority: PostgresAuthority, links: IdentityLinks, user: Owner, phone: Owner
    ) -> None:
        desk, shop, gone = (Owner(user.tenant, f"d:{name}") for name in ("desk", "shop", "gone"))
        for device in (phone, desk, shop, gone):
            links.link(device, user, AT)
        links.link(shop, Owner(user.tenant, "u:else"), AT)
        links.unlink(gone, user, AT + SECOND)
        found = [person.owner for person in authority.head(user, AT).persons]
        assert found == [user, desk, phone] == list(links.linked(user))
        assert len(authority.head(Owner("another tenant", user.subject), AT).persons) == 1

    def test_a_suppression_names_memories_of_its_own_subject(
        self, authority: PostgresAuthority, links: IdentityLinks, engine: sa.Engine, user: Owner, phone: Owner
    ) -> None:
        self.show(authority, user, 1)
        (hidden,) = self.show(authority, phone, 1)
        tablet = Owner(user.tenant, "d:tablet")
        self.show(authority, tablet, 1, 2)
        for device in (phone, tablet):
            links.link(device, user, AT)
        for turn in ("turn-1", "no memory's"):
            self.suppress(engine, phone, turn)
        self.suppress(engine, tablet, "turn-3")
        with statements(engine) as run:
            own, *devices = authority.head(user, AT).persons
        assert (own.suppressed, [d.suppressed for d in devices]) == (frozenset(), [{hidden}, frozenset()])
        assert len(run) <= 4, "as many for many devices as for one"  # PostgreSQL may be asked for its transaction
        assert [authority.person(one.owner) for one in (own, *devices)] == [own, *devices]

    def test_a_suppressed_turn_counts_in_no_mark(
        self, authority: PostgresAuthority, engine: sa.Engine, user: Owner
    ) -> None:
        journal = TurnJournal(engine)
        journal.append([said("t1", owner=user), said("t2", 1, owner=user)], AT)
        before = authority.head(user, AT).marks
        self.suppress(engine, user, "t1")
        assert authority.head(user, AT).marks == journal.marks([user], AT) != before
        assert authority.head(user, AT + YEARS).marks == before, "as it is after the suppression's end"
