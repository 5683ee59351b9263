"""One embedded home for all tests of this folder that need servers, and small logs."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from pipeline_world import MONTH, WEEKS, House, clean_run, in_memory, write_logs
from quarter_world import SECRET, TOWN, Life, copied, living, write_spring

from memory_pipelines.landing.sources import log_files
from memory_pipelines.wiring import Platform


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


@pytest.fixture(scope="session")
def spring(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a spring's log."""
    return write_spring(tmp_path_factory.mktemp("spring"))


@pytest.fixture(scope="session")
def derived(spring: Path) -> Platform:
    """That spring derived and published; to be copied."""
    return clean_run(log_files(spring), certificate_secret=SECRET)


@pytest.fixture
def life(derived: Platform) -> Iterator[Life]:
    """The same in stores of the test's own."""
    with living(copied(derived)) as life:
        yield life


@pytest.fixture(scope="session")
def town_derived(tmp_path_factory: pytest.TempPathFactory) -> Platform:
    """More persons' spring derived and published; to be copied."""
    folder = write_spring(tmp_path_factory.mktemp("town"), TOWN)
    return clean_run(log_files(folder), certificate_secret=SECRET)


@pytest.fixture
def town(town_derived: Platform) -> Iterator[Life]:
    """More persons' spring, in stores of the test's own."""
    with living(copied(town_derived)) as life:
        yield life


@pytest.fixture
def nobody() -> Iterator[Life]:
    """A platform that nothing was ever landed on."""
    with living(in_memory(certificate_secret=SECRET)) as life:
        yield life
