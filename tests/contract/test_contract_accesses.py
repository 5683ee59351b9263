"""Uses and markers on the embedded PostgreSQL."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from suites.access_suite import AccessSuite

from memory_pipelines.settings import Settings
from memory_pipelines.stores import database, schema


@pytest.fixture
def engine(embedded: Settings) -> Iterator[sa.Engine]:
    engine = database.connect(embedded.postgres_url)
    yield engine
    with engine.begin() as connection:
        for table in (schema.accesses, schema.markers):
            connection.execute(table.delete())
    engine.dispose()


@pytest.mark.embedded
class TestAccesses(AccessSuite):
    pass
