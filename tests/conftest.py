"""Puts this folder on the path (``suites`` holds what tests share, ``servers`` starts real ones), and real servers."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from memory_pipelines.settings import Settings

if TYPE_CHECKING:
    from servers.together import Servers

# A loaded machine is no fault of the code: examples are bounded by number, never by time.
settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")

for name in (
    "access_suite",
    "feedback_suite",
    "journal_suite",
    "ledger_suite",
    "authority_suite",
    "publish_suite",
    "publish_world",
):
    pytest.register_assert_rewrite(f"suites.{name}")


@pytest.fixture(scope="session")
def real_servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator["Servers"]:
    """All real servers, with TLS and passwords, started for this session. One that cannot be had ends it."""
    from servers import cache, together

    with pytest.MonkeyPatch.context() as patch:
        try:
            with together.running(str(tmp_path_factory.mktemp("home"))) as servers:
                patch.setenv("SSL_CERT_FILE", servers.settings.ca_file)  # for Delta's client
                yield servers
        except cache.CannotBeHad as missing:
            pytest.exit(f"cannot be had: {missing}", returncode=1)


@pytest.fixture(scope="session")
def real(real_servers: "Servers") -> Settings:
    return real_servers.settings
