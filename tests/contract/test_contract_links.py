"""Identity links on PostgreSQL."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from suites import adapters
from suites.link_suite import LinkSuite

from memory_pipelines.settings import Settings
from memory_pipelines.stores import database, schema


@pytest.fixture
def engine(served: Settings) -> Iterator[sa.Engine]:
    engine = database.connect(adapters.text(adapters.postgres(served)))
    yield engine
    with engine.begin() as connection:
        connection.execute(schema.identity_links.delete())
        connection.execute(schema.owners.delete())
    engine.dispose()


class TestLinks(LinkSuite):
    pass
