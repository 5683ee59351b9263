"""How work is cut: days (UTC) up to step 4, buckets of subjects from step 5 on, never users.

Buckets are dynamic partitions, since their number is a setting of the lake: ``landed_logs`` registers them.
"""

import dagster as dg

from memory_pipelines.model import FIRST_DAY

DAYS = dg.DailyPartitionsDefinition(start_date=FIRST_DAY, timezone="UTC")
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


def buckets_of(context: dg.AssetExecutionContext) -> list[int]:
    """The buckets of this run, one or a range."""
    return [int(key) for key in context.partition_keys]
