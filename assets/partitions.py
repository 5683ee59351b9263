"""How work is cut: days (UTC) up to step 4, buckets of subjects from step 5 on, never users.

Buckets are dynamic partitions, since their number is a setting of the lake: ``landed_logs`` registers them.
"""

from collections.abc import Iterable

import dagster as dg
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    PARTITION_NAME_TAG,
)

from memory_pipelines.model import FIRST_DAY

DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_DAY, timezone="UTC")
WEEKS = dg.WeeklyPartitionsDefinition(start_date="2004-01-05", day_offset=1, timezone="UTC")
"""Weeks begin on Monday."""
QUARTERS = dg.TimeWindowPartitionsDefinition(
    cron_schedule="0 0 1 1,4,7,10 *", start=FIRST_DAY, fmt="%Y-%m-%d", timezone="UTC", end_offset=1
)
"""With the quarter under way: a retraining that a check asks for must see what is new."""
BUCKETS = dg.DynamicPartitionsDefinition(name="bucket")
DAYS_PER_RUN = 30
"""One exception fails all days of a run, and each run costs seconds: about a month is the middle."""

OWNERS = ["team:memory"]


def bucket_key(bucket: int) -> str:
    return f"{bucket:04d}"


def bucket_keys(buckets: int) -> list[str]:
    return [bucket_key(i) for i in range(buckets)]


def days_of(context: dg.AssetExecutionContext) -> list[str]:
    """The days of this run, one or a range."""
    return list(context.partition_keys)


def days_checked(context: dg.AssetCheckExecutionContext, days: Iterable[str]) -> list[str]:
    """Of ``days`` those of the check's run: checks know no partitions, and other days may be under way in another run.

    All of them where the run names none.
    """
    tags = context.run.tags
    day = tags.get(PARTITION_NAME_TAG, "")
    first = tags.get(ASSET_PARTITION_RANGE_START_TAG, day)
    last = tags.get(ASSET_PARTITION_RANGE_END_TAG, day)
    return [d for d in days if first <= d <= last or not first]


def buckets_of(context: dg.AssetExecutionContext) -> list[int]:
    """The buckets of this run, one or a range."""
    return [int(key) for key in context.partition_keys]
