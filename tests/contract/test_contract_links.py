"""Identity links on the embedded PostgreSQL."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from suites.link_suite import LinkSuite

from memory_pipelines.settings import Settings
from memory_pipelines.stores import database, schema


@pytest.fixture
def engine(embedded: Settings) -> Iterator[sa.Engine]:
    engine = database.connect(embedded.postgres_url)
    yield engine
    with engine.begin() as connection:
        connection.execute(schema.identity_links.delete())
    engine.dispose()


@pytest.mark.embedded
class TestLinks(LinkSuite):
    pass
