"""The ledger of uses as recall writes it, on PostgreSQL."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from suites import adapters
from suites.feedback_suite import FeedbackSuite

from memory_pipelines.settings import Settings
from memory_pipelines.stores import database, schema

WRITTEN = (
    schema.accesses,
    schema.suppressions,
    schema.memories,
    schema.memory_versions,
    schema.people,
    schema.slice_turns,
    schema.batches,
)


@pytest.fixture
def engine(served: Settings) -> Iterator[sa.Engine]:
    engine = database.connect(adapters.text(adapters.postgres(served)))
    yield engine
    with engine.begin() as connection:
        for table in WRITTEN:
            connection.execute(table.delete())
    engine.dispose()


class TestFeedback(FeedbackSuite):
    pass
