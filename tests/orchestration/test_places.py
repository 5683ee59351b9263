"""Whatever any writer touches is in the registry of places: recorded in a run of everything, and read from servers."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
import sqlalchemy as sa
from pipeline_world import WEEKS, House
from quarter_world import Life

from memory_pipelines.erasure.registry import KINDS, PLACES, kind_of
from memory_pipelines.model import Owner
from memory_pipelines.pipeline import forget
from memory_pipelines.stores.authority import AccessKind
from memory_pipelines.stores.graph import _label
from memory_pipelines.stores.hot import _value
from memory_pipelines.stores.vault import Secret
from memory_pipelines.wiring import Platform

CHANGED = re.compile(r"\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+\"?(\w+)")
PARTS = ("publisher", "recall", "buffers", "session", "feedback", "erasure_stores", "all_vectors")


@dataclass
class Touched:
    """(store, name) of everything that was written."""

    names: set[tuple[str, str]] = field(default_factory=set)

    def unknown(self) -> set[tuple[str, str]]:
        return {(store, name) for store, name in self.names if kind_of(store, name) is None}


@dataclass
class _Recorded:
    store: Any
    names_of: dict[str, Any]
    touched: Touched
    part: str

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.store, name)
        if name not in self.names_of:
            return found

        def recorded(*arguments: Any, **named: Any) -> Any:
            for what in self.names_of[name](*arguments):
                self.touched.names.add((self.part, what))
            return found(*arguments, **named)

        return recorded


WRITES = {
    "lake": {"write": lambda table, *_: [table.name]},
    "graph": {"write": lambda graphs: {_label(node) for one in graphs for node in one.nodes}},
    "hot": {"put": lambda owner, name, *_: [_value(owner, name).decode()]},
    "cold": {"put": lambda key, *_: [key], "archive": list},
}


@contextmanager
def recorded(platform: Platform) -> Iterator[Touched]:
    touched, whole = Touched(), {part: getattr(platform, part) for part in WRITES}

    def execute(_: Any, __: Any, statement: str, *___: Any) -> None:
        if match := CHANGED.match(statement):
            touched.names.add(("relational", match[1]))

    sa.event.listen(platform.engine, "before_cursor_execute", execute)
    platform.__dict__.update({part: _Recorded(whole[part], WRITES[part], touched, part) for part in WRITES})
    for part in PARTS:
        platform.__dict__.pop(part, None)
    try:
        yield touched
    finally:
        platform.__dict__.update(whole)
        for part in PARTS:
            platform.__dict__.pop(part, None)
        sa.event.remove(platform.engine, "before_cursor_execute", execute)


def everything(life: Life) -> Owner:
    """All jobs that write, a recall, a link, an erasure."""
    platform = life.platform
    person = max(platform.authority.owners(), key=lambda o: (len(platform.authority.visible(o)), o.key))
    platform.ledger.fix_buckets(platform.settings.buckets)
    with platform.engine.begin() as connection:
        connection.execute(sa.text("UPDATE owners SET touched = touched + 100"))
    life.derive()
    life.run("reward_job", "2024-04-01")
    life.run("reflection_job", "2024-06-03", "2024-06-24")
    life.run("tier_job", "2024-07-08", "2024-09-10")
    platform.session.identify("d:phone", person.subject, tenant=person.tenant)
    said = {"role": "user", "text": "call 13800138000 about my order", "occurred_at": platform.clock.now().isoformat()}
    platform.session.note([said], tenant=person.tenant, subject=person.subject)
    life.run("land_logs")
    platform.keyring.keep([Secret(person, "phone", "13800138000")])
    answer = platform.recall.recall("where is my order?", tenant=person.tenant, subject=person.subject)
    platform.feedback.used(answer)
    denied = [item.memory.memory_id for item in answer.items[:1]]
    platform.feedback.tell(AccessKind.NEGATED, denied, tenant=person.tenant, subject=person.subject)
    request = forget.request_erasure(platform, person, "desk")
    forget.approve_erasure(platform, request, "officer")
    life.run("erasure_job")
    return person


def test_all_that_a_run_of_everything_writes_is_in_the_registry(life: Life, tmp_path: object) -> None:
    object.__setattr__(life.platform.settings, "home", str(tmp_path))
    with recorded(life.platform) as touched:
        everything(life)
    assert touched.unknown() == set()
    assert {store for store, _ in touched.names} == {"lake", "graph", "hot", "cold", "relational"}
    places = {kind.place for store, name in touched.names if (kind := kind_of(store, name)) is not None}
    assert {"cold", "graph", "hot", "lake.memories", "postgres.subject_keys"} <= places


@pytest.mark.parametrize(
    ("store", "name"),
    [
        ("cold", "notes/ann.txt"),
        ("hot", "mp:session:ann"),
        ("graph", "Person"),
        ("vector", "other"),
        ("lake", "copies"),
        ("relational", "people_old"),
        ("home", "export.csv"),
    ],
)
def test_a_name_that_nobody_registered_is_unknown(store: str, name: str) -> None:
    assert kind_of(store, name) is None


def test_each_kind_is_emptied_by_a_place_or_says_why_it_need_not_be() -> None:
    names = {place.name for place in PLACES}
    assert {kind.place for kind in KINDS if kind.place is not None} <= names
    assert all(kind.why for kind in KINDS if kind.place is None)
    of_others = {name for name in names if name.endswith((" of others", " of linked subjects"))}
    assert names - of_others == {kind.place for kind in KINDS if kind.place is not None}


@pytest.mark.embedded
def test_all_that_servers_and_home_hold_after_the_main_job_is_in_the_registry(house: House) -> None:
    from neo4j import GraphDatabase
    from pymilvus import MilvusClient
    from redis import Redis

    house.reset(WEEKS)
    with house.instance() as instance:
        house.main_job(instance)
    with house.platform() as platform:
        owner = platform.authority.owners()[0]
        platform.recall.recall("where is my order?", tenant=owner.tenant, subject=owner.subject)
        settings = platform.settings
        held = {("relational", name) for name in sa.inspect(platform.engine).get_table_names()}
        held |= {("cold", key) for key in platform.cold.keys()}  # noqa: SIM118
        client = MilvusClient(uri=settings.milvus_url, dedicated=True)
        held |= {("vector", name) for name in client.list_collections()}
        client.close()
        with Redis.from_url(settings.redis_url) as redis:
            held |= {("hot", key.decode()) for key in redis.scan_iter()}
        with GraphDatabase.driver(settings.neo4j_url, auth=(settings.neo4j_user, settings.neo4j_password)) as driver:
            rows = driver.execute_query("MATCH (n) RETURN DISTINCT labels(n) AS l", database_=settings.neo4j_database)
            held |= {("graph", label) for record in rows.records for label in record["l"]}
    held |= {("lake", path.name) for path in (house.home / "lake").iterdir()}
    held |= {("home", path.name) for path in house.home.iterdir()}
    assert {item for item in held if kind_of(*item) is None} == set()
    assert {store for store, _ in held} >= {"relational", "vector", "hot", "graph", "lake", "home"}
