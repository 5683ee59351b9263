"""Times as whole microseconds, for arrays. Nothing else belongs here."""

from collections.abc import Iterable
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.model import micros

DAY = timedelta(days=1) // timedelta(microseconds=1)
NEVER = int(np.iinfo(np.int64).max)

Ints = NDArray[np.int64]


def instants(times: Iterable[datetime | None], none: int) -> Ints:
    """The same of many; ``none`` stands for a time that is not given."""
    return np.array([none if time is None else micros(time) for time in times], dtype=np.int64)
