"""Landing: from log files to landed rows. Unpartitioned; the ledger knows each file by its content."""

from collections import Counter

import dagster as dg

from assets.partitions import BUCKETS, OWNERS, bucket_keys
from memory_pipelines.pipeline import audit, files
from resources.platform import PlatformResource

raw_logs = dg.AssetSpec(
    "raw_logs",
    group_name="landing",
    description="Dialogue and behaviour logs as their systems wrote them: files in the inbox folder.",
    owners=OWNERS,
    kinds={"json", "csv", "parquet"},
)


@dg.asset(deps=[raw_logs], group_name="landing", owners=OWNERS, kinds={"python", "deltalake"})
def landed_logs(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Turns and behaviour events, cleaned row by row. Each file is read once; broken rows are quarantined
    with a reason, noise is dropped by named rules and counted. Late rows mark the days that they touch."""
    platform = memory.platform
    context.instance.add_dynamic_partitions(str(BUCKETS.name), bucket_keys(platform.settings.buckets))
    results = files.land(platform, files.log_files(platform.settings.inbox_path))
    counts = Counter(result.status for result in results)
    filtered: Counter[str] = Counter()
    quarantined: Counter[str] = Counter()
    for result in results:
        filtered.update(result.counts.filtered)
        quarantined.update(result.counts.quarantined)
    return dg.MaterializeResult(
        metadata={
            "files": dict(counts),
            "rows": sum(r.counts.rows for r in results),
            "turns": sum(r.counts.turns for r in results),
            "behaviour_events": sum(r.counts.behaviour for r in results),
            "rejected_rows": sum(quarantined.values()),
            "filtered_by_rule": dict(filtered),
            "quarantined_by_reason": dict(quarantined),
            "days_waiting": len(platform.ledger.touched_days()),
        }
    )


@dg.asset_check(asset=landed_logs)
def quarantine_share(memory: PlatformResource) -> dg.AssetCheckResult:
    """No file has more broken rows than the settable share, and every file could be read whole."""
    limit = memory.platform.settings.quarantine_max_share
    files = memory.platform.ledger.files()
    bad = [f["file_id"] for f in files if f["rows"] and f["quarantined"] / f["rows"] > limit]
    halted = [f["file_id"] for f in files if not f["complete"]]
    return dg.AssetCheckResult(
        passed=not bad and not halted,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={"limit": limit, "files": len(files), "above_limit": bad, "not_finished": halted},
    )


@dg.asset_check(asset=landed_logs)
def rows_accounted_for(memory: PlatformResource) -> dg.AssetCheckResult:
    """Rows in = turns in exchanges + filtered + nobody's + quarantined + duplicates + behaviour + not cut yet."""
    accounts = audit.accounts(memory.platform)
    return dg.AssetCheckResult(passed=accounts.balance == 0, metadata=accounts.as_dict())


ASSETS = [landed_logs]
CHECKS = [quarantine_share, rows_accounted_for]
