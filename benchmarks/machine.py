"""What a figure was measured on.

Belongs here: a description of the machine and of the versions that matter. Does not belong here: anything that
names the machine or its user.
"""

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

PACKAGES = ("memory-pipelines", "dagster", "deltalake", "numpy", "psycopg", "pyarrow", "sqlalchemy")


def describe() -> dict[str, Any]:
    """Processor, cores, memory in GB, system, Python and package versions, load at this moment, and the day."""
    import psutil

    return {
        "day": datetime.now(UTC).date().isoformat(),
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(psutil.virtual_memory().total / 1e9, 1),
        "load": [round(x, 2) for x in os.getloadavg()],
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "packages": {name: found for name in PACKAGES if (found := _version(name))},
    }


def line(machine: dict[str, Any]) -> str:
    """The description in one line, for the head of a table."""
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items())
    return (
        f"{machine['day']}; {machine['processor']}, {machine['cores']} cores, {machine['memory_gb']} GB; "
        f"{machine['system']}; Python {machine['python']}; {packages}; load before {machine['load']}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((x.partition(":")[2].strip() for x in lines if x.startswith("model name")), platform.processor())


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None
