"""A home of its own for one measurement: embedded servers and lake in a temporary folder.

Belongs here: making and removing it. Does not belong here: what is measured.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def temporary_home() -> Iterator[Path]:
    """A folder for one platform. On leaving, its servers are stopped and it is removed, whatever happened."""
    from memory_pipelines import local

    with tempfile.TemporaryDirectory(prefix="mp-bench-", ignore_cleanup_errors=True) as folder:
        home = Path(folder) / "home"
        home.mkdir()
        try:
            yield home
        finally:
            local.down(home)
