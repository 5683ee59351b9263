"""The journal on PostgreSQL."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from suites import adapters
from suites.journal_suite import JournalSuite

from memory_pipelines.settings import Settings
from memory_pipelines.stores import database, schema


@pytest.fixture
def engine(served: Settings) -> Iterator[sa.Engine]:
    engine = database.connect(adapters.text(adapters.postgres(served)))
    yield engine
    with engine.begin() as connection:
        for table in (schema.journal, schema.slice_turns, schema.suppressions, schema.tombstones):
            connection.execute(table.delete())
    engine.dispose()


class TestJournal(JournalSuite):
    pass
