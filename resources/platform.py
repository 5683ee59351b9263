"""The one resource of the code location: settings become a platform for the time of a run or a tick."""

import socket
from datetime import datetime
from typing import Any

import dagster as dg
from pydantic import Field, PrivateAttr

from memory_pipelines.clock import FixedClock, SystemClock
from memory_pipelines.settings import Settings
from memory_pipelines.wiring import Platform, connect

PROCESS_TAG = "memory_pipelines/process"
"""``<host>/<process id>/<when it started>`` of the process that executes a run."""


def this_process() -> str:
    """The tag's value for the calling process."""
    import psutil

    process = psutil.Process()
    return f"{socket.gethostname()}/{process.pid}/{process.create_time():.2f}"


def is_alive(process: str) -> bool:
    """Whether a tagged process lives; of another host's it is not known, so it is taken for alive."""
    import psutil

    host, pid, started = process.rsplit("/", 2)
    if host != socket.gethostname():
        return True
    try:
        return f"{psutil.Process(int(pid)).create_time():.2f}" == started
    except psutil.NoSuchProcess:
        return False


class PlatformResource(dg.ConfigurableResource):  # type: ignore[type-arg]
    """Stores, models and ledger. Secrets stay in the environment: nothing of them is in run config."""

    home: str = Field("", description="State folder, if not MEMORY_PIPELINES_HOME")
    now: str = Field("", description="Fixed present as RFC 3339, for replays; empty: the machine's clock")

    _platform: Platform | None = PrivateAttr(default=None)

    def open(self) -> Platform:
        """A platform of the caller's own, to close."""
        overrides: dict[str, Any] = {"home": self.home} if self.home else {}
        settings = Settings.load(**overrides)
        clock = FixedClock(datetime.fromisoformat(self.now)) if self.now else SystemClock()
        return connect(settings, clock=clock)

    def setup_for_execution(self, context: dg.InitResourceContext) -> None:
        if context.run is not None and context.instance is not None:
            context.instance.add_run_tags(context.run.run_id, {PROCESS_TAG: this_process()})
        self._platform = self.open()

    def teardown_after_execution(self, context: dg.InitResourceContext) -> None:
        if self._platform is not None:
            self._platform.close()

    @property
    def platform(self) -> Platform:
        assert self._platform is not None, "outside of a run use open()"
        return self._platform
