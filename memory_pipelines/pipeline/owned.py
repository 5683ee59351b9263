"""Filters for the rows of some owners, in tables that are cut by bucket.

Belongs here: which bucket is searched for whom, rows by their owner. Does not belong here: reading.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

import pyarrow as pa

from memory_pipelines.model import bucket_of

Places = Mapping[int, Sequence[str]]
"""Bucket → keys of owners in it."""


def placed(owners: Iterable[str], buckets: int) -> dict[int, tuple[str, ...]]:
    """The owners' places among so many buckets; buckets and keys in order."""
    places: dict[int, list[str]] = defaultdict(list)
    for owner in sorted(owners):
        places[bucket_of(owner, buckets)].append(owner)
    return {bucket: tuple(places[bucket]) for bucket in sorted(places)}


def rows_of(places: Places) -> list[tuple[str, str, object]]:
    """Filters for the owners' rows. In each bucket only its own owners are looked for: with those of all buckets
    hardly a row group could be passed over."""
    return [("bucket", "in", tuple(places)), ("owner", "by", ("bucket", places))]


def times_of(rows: pa.Table) -> dict[str, list[datetime]]:
    """Owner key → ``occurred_at`` of its rows."""
    times: dict[str, list[datetime]] = defaultdict(list)
    for owner, at in zip(rows["owner"].to_pylist(), rows["occurred_at"].to_pylist(), strict=True):
        times[owner].append(at)
    return times
