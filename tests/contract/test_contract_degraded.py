"""Recall while a server hangs or is gone: real servers behind a proxy that stops forwarding, or refuses.

Each test has a platform of its own against the session's servers; only one store lies behind the proxy.
"""

import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from urllib.parse import urlsplit

import pytest
import sqlalchemy as sa
from suites import adapters
from suites.proxy import Proxy, proxied

from memory_pipelines.clock import FixedClock
from memory_pipelines.model import Owner, Tier
from memory_pipelines.recall import Answer
from memory_pipelines.recall.guard import FIRST_REST, WORKERS
from memory_pipelines.settings import Settings
from memory_pipelines.stores.base import GraphEdge, GraphNode
from memory_pipelines.stores.publish import Draft, OwnerState
from memory_pipelines.wiring import Platform

NOW = datetime(2024, 6, 1, tzinfo=UTC)
URLS = {
    "relational": "postgres_url",
    "vector": "milvus_url",
    "graph": "neo4j_url",
    "hot": "redis_url",
    "cold": "s3_url",
}
QUERY = "Where is my parcel?"
FACTS = (
    "The parcel of the customer is late",
    "The customer asked where the parcel is",
    "The parcel came from SF Express",
)
DEADLINE = 0.5
"""Of the hung store; the others have all the time that a loaded machine may take."""


def payload(owner: Owner, number: int, summary: str) -> dict[str, object]:
    return {
        "memory_id": f"{owner.key[:8]}m{number}", "owner": owner.key, "tenant": owner.tenant, "subject": owner.subject,
        "memory_type": "episodic", "permanence": "long", "term": "long", "summary": summary,
        "text": f"words of {number}", "language": "en", "predicate": "", "value": "", "structured": "{}",
        "confidence": 0.9, "trust": 1.0, "score": 0.8, "decision_impact": 0.9, "intent": "logistics_inquiry",
        "entities": ["carrier/sf_express"], "slice_ids": [f"s{number}"], "source_turn_ids": [f"t{number}"],
        "stores": ["vector", "graph"], "occurred_at": NOW - timedelta(days=number + 1), "valid_from": None,
        "valid_to": None, "expires_at": None, "path": "rules", "model_set": "base-1",
    }  # fmt: skip


def publish(platform: Platform, owner: Owner) -> None:
    """Three memories, joined in the graph; the oldest is archived."""
    rows = [payload(owner, n, summary) for n, summary in enumerate(FACTS)]
    drafts = [Draft(row, Tier.HOT, str(row["summary"])) for row in rows[:2]] + [Draft(rows[2], Tier.COLD, None)]
    names = [str(row["memory_id"]) for row in rows[:2]]
    nodes = [GraphNode(name, "slice", "logistics_inquiry", 0.9, NOW) for name in names]
    edges = [GraphEdge(names[0], names[1], "next", 0.9)]
    turns = [(f"s{n}", f"t{n}") for n in range(3)]
    platform.publisher.publish(0, [OwnerState(owner, drafts, nodes, edges, turns)], NOW)


@pytest.fixture(scope="module")
def direct(served: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Settings]:
    """The servers as they are, with a database and a bucket of this module."""
    admin = sa.create_engine(adapters.postgres(served), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text("CREATE DATABASE degraded"))
    url = adapters.text(adapters.postgres(served, "degraded"))
    home = str(tmp_path_factory.mktemp("degraded"))
    yield replace(served, home=home, embedder="hash", postgres_url=url, s3_bucket="degraded")
    with admin.connect() as connection:
        connection.execute(sa.text("DROP DATABASE degraded WITH (FORCE)"))
    admin.dispose()


@pytest.fixture(scope="module")
def owner(direct: Settings) -> Owner:
    """Somebody with memories in all stores."""
    owner = Owner("degraded", "u:ann")
    with Platform(direct, FixedClock(NOW)) as platform:
        platform.vectors.ensure(platform.embedder.dimension)
        publish(platform, owner)
        assert ask(platform, owner).missing == (), "leaves copies in the hot store"
    return owner


Behind = Callable[[str], tuple[Platform, Proxy]]


@pytest.fixture
def behind(direct: Settings) -> Iterator[Behind]:
    """Makes a platform of which one store lies behind a proxy."""
    opened: list[object] = []

    def make(store: str) -> tuple[Platform, Proxy]:
        if direct.ca_file:
            pytest.skip("a certificate names the server's own address")
        url = getattr(direct, URLS[store])
        target = urlsplit(url)
        context = proxied(str(target.hostname), int(target.port or 0))
        proxy = context.__enter__()
        opened.append(context)
        through = url.replace(f":{target.port}", f":{proxy.port}", 1)
        waits = {f"deadline_{name}": 30.0 for name in URLS} | {f"deadline_{store}": DEADLINE, "deadline_first": 60.0}
        platform = Platform(replace(direct, **{URLS[store]: through}, **waits), FixedClock(NOW))
        return platform, proxy

    yield make
    for context in opened:
        context.__exit__(None, None, None)  # type: ignore[attr-defined]


def ask(platform: Platform, owner: Owner) -> Answer:
    return platform.recall.recall(QUERY, tenant=owner.tenant, subject=owner.subject, explain=True)


def told(answer: Answer) -> list[str]:
    return [item.memory.summary for item in answer.items]


def threads(store: str) -> int:
    """Threads that wait for the store, or for work."""
    return sum(thread.name == f"recall-{store}" for thread in threading.enumerate())


@pytest.mark.parametrize("store", URLS)
def test_a_server_that_hangs_is_missing_and_holds_up_nobody_for_long(store: str, owner: Owner, behind: Behind) -> None:
    platform, proxy = behind(store)
    whole = ask(platform, owner)
    assert (len(whole.items), whole.missing) == (3, ())
    if store == "graph":
        del platform.recall  # this reader has the graph, and would not ask for it again
    proxy.hang()
    answers = [ask(platform, owner) for _ in range(3)]
    for answer in answers:
        assert store in answer.missing or store in ("hot", "cold"), "hot copies and archived texts may not be needed"
        assert set(answer.missing) <= {store}, "no other store is kept from answering"
        assert len(answer.items) == 3, "from what is left"
    before = threads(store)
    for _ in range(WORKERS + 4):
        ask(platform, owner)
    assert threads(store) - before < WORKERS / 2, "most are refused, and leave no thread behind"
    proxy.go_on()
    assert recovers(platform, owner), "a probe finds that it is there again"
    assert told(ask(platform, owner)) == told(whole)


def recovers(platform: Platform, owner: Owner) -> bool:
    """Whether an answer is whole again within some rests of the breaker."""
    for _ in range(40):
        if ask(platform, owner).missing == ():
            return True
        time.sleep(FIRST_REST)
    return False


@pytest.mark.parametrize("store", ["relational", "vector", "graph", "hot"])
def test_a_server_that_is_gone_is_missing_from_the_first_recall_on(store: str, owner: Owner, behind: Behind) -> None:
    platform, proxy = behind(store)
    proxy.stop()
    answer = ask(platform, owner)
    assert store in answer.missing or store == "hot"
    assert len(answer.items) == 3
    proxy.start()
    assert recovers(platform, owner)


def test_without_the_relational_store_nothing_is_noted_and_the_copies_answer(owner: Owner, behind: Behind) -> None:
    from memory_pipelines.errors import StoreUnavailableError

    platform, proxy = behind("relational")
    row = {"role": "user", "text": "my parcel is still missing", "occurred_at": NOW.isoformat(), "session_id": "s"}
    platform.session.note([row], tenant=owner.tenant, subject=owner.subject)
    assert row["text"] in told(ask(platform, owner))
    proxy.hang()
    answer = ask(platform, owner)
    assert row["text"] in told(answer)
    assert "relational" in answer.missing
    with pytest.raises(StoreUnavailableError):
        platform.session.note([row], tenant=owner.tenant, subject=owner.subject)
    proxy.go_on()
    assert recovers(platform, owner)
