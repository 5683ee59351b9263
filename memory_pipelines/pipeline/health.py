"""The health of the memory as numbers: slice freshness, ripple activation, impact skew, sync latency.

Belongs here: reading what ``quality.health`` judges. Does not belong here: limits and formulas.
"""

from datetime import datetime

from memory_pipelines.pipeline.audit import accounts
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.reward import impacts_in_use
from memory_pipelines.quality import health
from memory_pipelines.quality.health import Metric
from memory_pipelines.tables import DECISIONS, SLICES
from memory_pipelines.wiring import Platform


@uses_lake
def slice_freshness(platform: Platform, as_of: datetime) -> Metric:
    return health.slice_freshness_rate(platform.lake.read(SLICES, columns=["occurred_at"]), as_of)


def ripple_activation(platform: Platform, as_of: datetime) -> Metric:
    owners = platform.authority.owners()
    uses = platform.accesses.by_owner([owner.key for owner in owners])
    return health.ripple_activation_rate(platform.authority.everything_visible(), uses, as_of)


@uses_lake
def impact_skew(platform: Platform, as_of: datetime) -> Metric:
    rows, reference = impacts_in_use(platform)
    return health.impact_skew(rows, as_of, reference)


def sync_latency(platform: Platform, as_of: datetime) -> Metric:
    """Login to visible memories, of the logins of the 7 days before that a recall has followed."""
    return health.sync_latency(platform.links.latencies(as_of))


@uses_lake
def further_metrics(platform: Platform) -> list[Metric]:
    """Admission per dimension, quarantine and duplicates: watched, not alerted on."""
    totals = accounts(platform)
    quarantined = sum(totals.quarantined.values())
    return [
        *health.admission_ratios(platform.lake.read(DECISIONS)),
        health.quarantine_rate(totals.rows, quarantined, platform.settings.quarantine_max_share),
        health.duplicate_rate(totals.rows, totals.duplicates),
    ]
