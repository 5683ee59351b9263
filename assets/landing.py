"""Landing: from log files to landed rows, and back from quarantine. Unpartitioned; the ledger knows each file by its
content. Metadata names files by id and reasons: no personal text."""

from collections import Counter
from pathlib import Path

import dagster as dg

from assets.partitions import BUCKETS, OWNERS, bucket_keys
from memory_pipelines.pipeline import audit, files
from memory_pipelines.pipeline import quarantine as broken
from memory_pipelines.stores.notes import ChunkCounts
from resources.platform import PlatformResource

MOST_SHOWN = 200
"""Lines of the table of quarantined rows, and keys of faulty sources."""

raw_logs = dg.AssetSpec(
    "raw_logs",
    group_name="landing",
    description="Dialogue and behaviour logs as their systems wrote them: files in the inbox folder.",
    owners=OWNERS,
    kinds={"json", "csv", "parquet"},
)

noted_turns = dg.AssetSpec(
    "noted_turns",
    group_name="landing",
    description="The journal: turns as agents note them while they talk. Recall knows them at once; landing takes them "
    "over like any log.",
    owners=OWNERS,
    kinds={"postgresql"},
)


@dg.asset(deps=[raw_logs, noted_turns], group_name="landing", owners=OWNERS, kinds={"python", "deltalake"})
def landed_logs(context: dg.AssetExecutionContext, memory: PlatformResource) -> dg.MaterializeResult:
    """Turns and behaviour events, cleaned row by row. Each file is read once, of a file that grew the new rows, of the
    journal what was noted since; broken rows are quarantined with a reason, noise is dropped by named rules and
    counted. Late rows mark the days that they touch."""
    platform = memory.platform
    context.instance.add_dynamic_partitions(str(BUCKETS.name), bucket_keys(platform.settings.buckets))
    results = files.land(platform, files.inbox(platform))
    noted = files.land_journal(platform)
    total = ChunkCounts.total([*(result.counts for result in results), noted])
    return dg.MaterializeResult(
        metadata={
            "files": dict(Counter(result.status for result in results)),
            "rows": total.rows,
            "turns": total.turns,
            "noted_turns": noted.turns,
            "behaviour_events": total.behaviour,
            "rejected_rows": sum(total.quarantined.values()),
            "filtered_by_rule": total.filtered,
            "quarantined_by_reason": total.quarantined,
            "days_waiting": len(platform.ledger.touched_days()),
        }
    )


@dg.asset(deps=[landed_logs], group_name="landing", owners=OWNERS, kinds={"deltalake"})
def quarantine(memory: PlatformResource) -> dg.MaterializeResult:
    """Rows that are broken, kept as they were read: how many of which file, and why. The rows themselves:
    `memory-pipelines quarantine --show`. Fix the cause, then materialise `readmitted_rows`."""
    held = broken.held(memory.platform)
    reasons: Counter[str] = Counter()
    for entry in held:
        reasons[entry.reason] += entry.rows
    records = [
        dg.TableRecord({"file": e.file_id, "reason": e.reason, "rows": e.rows, "share": round(e.share, 4)})
        for e in held[:MOST_SHOWN]
    ]
    return dg.MaterializeResult(
        metadata={
            "rejected_rows": reasons.total(),
            "by_reason": dict(reasons.most_common()),
            "by_file": dg.MetadataValue.table(records, _TABLE),
        }
    )


_TABLE = dg.TableSchema(
    columns=[
        dg.TableColumn("file", "string", description="id; `memory-pipelines files` shows its name"),
        dg.TableColumn("reason", "string"),
        dg.TableColumn("rows", "int"),
        dg.TableColumn("share", "float", description="of the file's rows"),
    ]
)


class ReadmitConfig(dg.Config):
    """Which quarantined rows to read again; empty: all of them."""

    reason: str = ""
    file: str = ""
    mapping: str = ""


@dg.asset(deps=[quarantine], group_name="landing", owners=OWNERS, kinds={"python", "deltalake"})
def readmitted_rows(config: ReadmitConfig, memory: PlatformResource) -> dg.MaterializeResult:
    """Quarantined rows read again with today's readers, mapping and rules: those that are good now are landed, and
    their days wait. In the config `reason`, `file` (its id or name) and `mapping` (a path on the server) narrow it."""
    platform = memory.platform
    results = broken.readmit(
        platform,
        reason=config.reason or None,
        file=config.file or None,
        mapping=Path(config.mapping) if config.mapping else None,
    )
    left: Counter[str] = Counter()
    for result in results:
        left.update(result.counts.quarantined)
    return dg.MaterializeResult(
        metadata={
            "rows": left.total(),
            "turns": sum(r.counts.turns for r in results),
            "behaviour_events": sum(r.counts.behaviour for r in results),
            "by_reason": dict(left),
            "rejected_rows": sum(platform.ledger.landed().quarantined.values()),
            "without_mapping": [r.file_id for r in results if r.error],
            "days_waiting": len(platform.ledger.touched_days()),
        }
    )


@dg.asset_check(asset=quarantine)
def quarantine_share(memory: PlatformResource) -> dg.AssetCheckResult:
    """No file has more broken rows than the settable share, and every file could be read whole. `memory-pipelines
    files` names those that could not, and says why."""
    platform = memory.platform
    limit = platform.settings.quarantine_max_share
    landed = platform.ledger.files()
    there = {source.key for source in files.inbox(platform)}
    faulty = [fault.source for fault in platform.ledger.faults() if fault.source in there]
    bad = [f["file_id"] for f in landed if f["rows"] and sum(f["quarantined"].values()) / f["rows"] > limit]
    halted = [f["file_id"] for f in landed if not f["complete"]]
    return dg.AssetCheckResult(
        passed=not bad and not halted and not faulty,
        severity=dg.AssetCheckSeverity.WARN,
        metadata={
            "limit": limit,
            "files": len(landed),
            "above_limit": bad,
            "not_finished": halted,
            "faulty_sources": len(faulty),
            "faulty_source_keys": faulty[:MOST_SHOWN],
        },
    )


@dg.asset_check(asset=landed_logs)
def rows_accounted_for(memory: PlatformResource) -> dg.AssetCheckResult:
    """Rows in = turns in exchanges + filtered + nobody's + quarantined + duplicates + behaviour + not cut yet."""
    accounts = audit.accounts(memory.platform)
    return dg.AssetCheckResult(passed=accounts.balance == 0, metadata=accounts.as_dict())


ASSETS = [landed_logs, quarantine, readmitted_rows]
CHECKS = [quarantine_share, rows_accounted_for]
