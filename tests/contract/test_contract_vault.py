"""The key ring on PostgreSQL."""

from collections.abc import Iterator

import pytest
import sqlalchemy as sa
from suites import adapters
from suites.keyring_suite import TABLES, KeyRingSuite

from memory_pipelines.settings import Settings
from memory_pipelines.stores import database


@pytest.fixture
def engine(served: Settings) -> Iterator[sa.Engine]:
    engine = database.connect(adapters.text(adapters.postgres(served)))
    yield engine
    with engine.begin() as connection:
        for table in TABLES:
            connection.execute(table.delete())
    engine.dispose()


class TestKeyRing(KeyRingSuite):
    def test_no_key_enters_the_planners_statistics(self, vault: KeyRingSuite, engine: sa.Engine) -> None:
        """They outlive the rows that they were drawn from."""
        query = sa.text(
            "SELECT attstattarget FROM pg_attribute WHERE attname IN ('wrapped', 'cipher') "
            "AND attrelid IN ('subject_keys'::regclass, 'sensitive_values'::regclass)"
        )
        with engine.begin() as connection:
            assert connection.execute(query).scalars().all() == [0, 0]
