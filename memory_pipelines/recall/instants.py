"""Times as whole microseconds, for arrays. Nothing else belongs here."""

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)
DAY = timedelta(days=1) // MICROSECOND
NEVER = int(np.iinfo(np.int64).max)

Ints = NDArray[np.int64]


def micros(instant: datetime) -> int:
    """Microseconds since 1970."""
    return (instant - EPOCH) // MICROSECOND


def instants(times: Iterable[datetime | None], none: int) -> Ints:
    """The same of many; ``none`` stands for a time that is not given."""
    return np.array([none if time is None else micros(time) for time in times], dtype=np.int64)
