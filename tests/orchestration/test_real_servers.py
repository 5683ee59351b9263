"""Sample logs through landing, days, derivation, publishing and recall on all five real servers at once."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sqlalchemy as sa
from pipeline_world import BUCKETS, EMBEDDER, NOW, clean_run, main_job, state
from suites import adapters

from memory_pipelines.clock import FixedClock
from memory_pipelines.settings import Settings
from memory_pipelines.wiring import Platform, connect

pytestmark = pytest.mark.servers

QUESTIONS = ("我的订单到哪里了？", "What do you know about me?")


@pytest.fixture(scope="module")
def platform(real: Settings) -> Iterator[Platform]:
    """An empty platform, the lake on the S3 server as well."""
    admin = sa.create_engine(adapters.postgres(real), isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text("CREATE DATABASE day"))
    admin.dispose()
    adapters.lake(real, "day-lake")
    settings = replace(
        real,
        postgres_url=adapters.text(sa.make_url(real.postgres_url).set(database="day")),
        lake_url="s3://day-lake/lake",
        s3_bucket="day",
        embedder=EMBEDDER,
        buckets=BUCKETS,
    )
    with connect(settings, clock=FixedClock(NOW)) as platform:
        for owner in sorted({owner for owner, _ in platform.graph.all_versions()}):
            _drop(platform, owner)
        yield platform


def _drop(platform: Platform, owner: str) -> None:
    """Remove other tests' graphs of an owner: this test counts them all."""
    platform.graph._write("MATCH (n) WHERE n.owner = $owner DETACH DELETE n", owner=owner)  # type: ignore[attr-defined]


def test_the_real_servers_hold_and_recall_what_the_in_memory_stores_do(platform: Platform, weeks: list[Path]) -> None:
    expected = clean_run(weeks)
    main_job(platform, weeks)
    assert state(platform) == state(expected)
    asked = 0
    for owner in expected.authority.owners():
        for question in QUESTIONS:
            answers = [
                p.recall.recall(question, tenant=owner.tenant, subject=owner.subject, limit=5)
                for p in (platform, expected)
            ]
            found, wanted = ([item.memory.memory_id for item in answer.items] for answer in answers)
            assert (found, answers[0].missing) == (wanted, ())
            asked += len(found)
    assert asked > 0
