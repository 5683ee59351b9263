"""One embedded home for all tests of this folder that need servers, and small logs."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline_world import MONTH, WEEKS, House, write_logs


@pytest.fixture(scope="session")
def house() -> Iterator[House]:
    """Embedded servers of their own: these tests kill them."""
    from memory_pipelines import local

    # not below pytest's own folder: PostgreSQL's user must be able to reach it
    with tempfile.TemporaryDirectory(prefix="mp-jobs-") as folder, pytest.MonkeyPatch.context() as patch:
        house = House(Path(folder) / "home")
        for name, value in house.environment.items():
            patch.setenv(name, value)
        try:
            local.up(house.home)
            yield house
        finally:
            local.down(house.home)


@pytest.fixture(scope="session")
def month(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A month of two tenants' logs."""
    return write_logs(tmp_path_factory.mktemp("month"), MONTH)


@pytest.fixture(scope="session")
def weeks(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """A few persons' fortnight."""
    return write_logs(tmp_path_factory.mktemp("weeks"), WEEKS)
