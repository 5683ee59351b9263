"""What happened to whom and when, as sorted arrays that answer many window queries at once.

Belongs here: owners' timelines, counts and sums over windows, first and last times. Does not belong here: what a
window means (``features``) or what is expected in it (``labels``).

Times are int64 microseconds since 1970; owners are integer codes. A window is given by two instants and holds what
lies in (after, until]; all queries are vectors of equal length.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from memory_pipelines.tables import TIME

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

_SCALE = 10_000
"""Values are summed as integers of this fraction: a running sum of floats would carry other owners' digits."""
_MOST = 1e11
"""A larger value is no amount; with it, millions of rows still fit the sum."""


class Timeline:
    """Moments of many owners, with one value each (default 1)."""

    def __init__(self, owners: Ints, times: Ints, count: int, values: Floats | None = None) -> None:
        """``owners`` are codes below ``count``; rows in any order, equal rows count each; values lose digits past 4."""
        order = np.lexsort((times, owners))
        self._times = times[order]
        values = np.ones(len(times)) if values is None else np.clip(values, -_MOST, _MOST)
        scaled = np.rint(values * _SCALE).astype(np.int64)
        self._sums = np.concatenate(([0], np.cumsum(scaled[order], dtype=np.int64)))
        self._starts = np.searchsorted(owners[order], np.arange(count + 1))

    def through(self, owners: Ints, at: Ints) -> Ints:
        """Position behind the last moment of each owner that is not after ``at``."""
        low, high = self._starts[owners], self._starts[owners + 1]
        while True:
            open_ = low < high
            if not open_.any():
                return low
            middle = (low + high) // 2
            right = open_ & (self._times[np.where(open_, middle, 0)] <= at)
            low = np.where(right, middle + 1, low)
            high = np.where(open_ & ~right, middle, high)

    def total(self, owners: Ints, after: Ints, until: Ints) -> Floats:
        """Sum of values in (after, until]; 0 where the window is empty."""
        first, last = self.through(owners, after), self.through(owners, until)
        sums: Floats = (self._sums[np.maximum(first, last)] - self._sums[first]) / _SCALE
        return sums

    def up_to(self, owners: Ints, at: Ints) -> Ints:
        """How many moments of the owner are not after ``at``."""
        return self.through(owners, at) - self._starts[owners]

    def last(self, owners: Ints, at: Ints, nth: int = 1) -> Floats:
        """Microseconds from the ``nth`` newest moment that is not after ``at`` to ``at``; NaN where there is none."""
        found = self.through(owners, at)
        known = found - nth >= self._starts[owners]
        return self._gap(at, found - nth, known)

    def next(self, owners: Ints, at: Ints) -> Floats:
        """Microseconds from ``at`` to the first moment after it; NaN where there is none."""
        found = self.through(owners, at)
        known = found < self._starts[owners + 1]
        return -self._gap(at, found, known)

    def first(self, owners: Ints) -> Ints:
        """Each owner's first moment; the largest integer where there is none."""
        start = self._starts[owners]
        known = start < self._starts[owners + 1]
        first = np.full(len(owners), np.iinfo(np.int64).max)
        first[known] = self._times[start[known]]
        return first

    def _gap(self, at: Ints, positions: Ints, known: NDArray[np.bool_]) -> Floats:
        gap = np.full(len(at), np.nan)
        gap[known] = at[known] - self._times[positions[known]]
        return gap


def micros(column: pa.ChunkedArray) -> Ints:
    """A timestamp column without nulls as microseconds since 1970."""
    return np.asarray(column.cast(TIME).cast(pa.int64()).to_numpy(), dtype=np.int64)


def floats(column: pa.ChunkedArray) -> Floats:
    """A numeric or boolean column; null becomes NaN."""
    return np.asarray(pc.fill_null(column.cast(pa.float64()), float("nan")).to_numpy(), dtype=np.float64)


def codes(columns: Sequence[pa.ChunkedArray]) -> tuple[list[Ints], list[str]]:
    """The strings of several columns as codes of one shared, sorted vocabulary, and the vocabulary."""
    parts = [column.combine_chunks() for column in columns]
    words = pc.unique(pa.chunked_array(parts, pa.string())).sort()
    found = [np.asarray(pc.index_in(part, value_set=words).to_numpy(zero_copy_only=False)) for part in parts]
    return [part.astype(np.int64) for part in found], words.to_pylist()
