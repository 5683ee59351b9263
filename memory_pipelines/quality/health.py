"""The health of the platform as numbers with limits.

Belongs here: pure functions from rows to a ``Metric``. Does not belong here: reading the rows, keeping the history,
raising an alarm. Texts hold counts only: they land in event logs. Windows are [as_of - days, as_of).
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

import pyarrow as pa

from memory_pipelines.model import MemoryType, Tier
from memory_pipelines.quality.distribution import (
    DEFAULT_LIMITS,
    Histogram,
    Limits,
    check_impacts,
    final_impacts,
    summarise,
)
from memory_pipelines.stores.authority import AccessKind, StoredMemory

WEEK, MONTH = timedelta(days=7), timedelta(days=30)
FRESHNESS_LEAST = 0.15
ACTIVATION_LEAST = 0.08
LATENCY_MOST = 3.0
LONG_TERM_FROM = 0.7
DIMENSIONS = ("persistence", "structure", "personalisation")

Uses = Mapping[str, Mapping[str, Sequence[tuple[datetime, str]]]]
"""Owner key → turn id → (when, kind) of each use, as ``stores.accesses`` returns them."""


@dataclass(frozen=True)
class Metric:
    """One number. ``value`` None: nothing to measure, which passes; ``limit`` None: shown, never alerted on.

    ``detail`` holds what the number was made from, and a ``note`` where it needs a word.
    """

    name: str
    value: float | None
    limit: float | None
    passed: bool
    detail: dict[str, float | int | str] = field(default_factory=dict)


def slice_freshness_rate(slices: pa.Table, as_of: datetime) -> Metric:
    """Slices of the last 7 days / slices of the last 30; a steady flow gives .23. Alert below .15.

    Slices that all are older than 30 days give 0: the flow has stopped. ``share_of_all`` is the ratio over all slices.
    """
    times = [at for at in slices["occurred_at"].to_pylist() if at < as_of]
    week, month = (sum(at >= as_of - age for at in times) for age in (WEEK, MONTH))
    if not times:
        return _nothing("slice_freshness_rate", FRESHNESS_LEAST, "no slices yet")
    rate = _ratio(week, month) if month else 0.0
    counts = {"week": week, "month": month, "all": len(times), "share_of_all": _ratio(week, len(times))}
    return Metric("slice_freshness_rate", rate, FRESHNESS_LEAST, rate >= FRESHNESS_LEAST, counts)


def ripple_activation_rate(memories: Iterable[StoredMemory], uses: Uses, as_of: datetime) -> Metric:
    """Slices activated in 7 days / hot and warm slices of owners with recalls in those days. Alert below .08.

    A recall is known by what it presented or activated. A slice inherits the uses of any turn that it shares.
    """
    activated: set[tuple[str, str]] = set()
    recalled: set[str] = set()
    for owner, turns in uses.items():
        for turn, rows in turns.items():
            kinds = {kind for at, kind in rows if as_of - WEEK <= at < as_of}
            if AccessKind.ACTIVATED in kinds:
                activated.add((owner, turn))
            if kinds & {AccessKind.ACTIVATED, AccessKind.PRESENTED}:
                recalled.add(owner)
    near = [
        m for m in memories if m.memory_type == MemoryType.EPISODIC and m.tier != Tier.COLD and m.owner.key in recalled
    ]
    if not near:
        note = "no hot or warm slices of those recalled" if recalled else "no recalls in 7 days"
        return _nothing("ripple_activation_rate", ACTIVATION_LEAST, note)
    reached = sum(any((m.owner.key, turn) in activated for turn in m.source_turn_ids) for m in near)
    rate = _ratio(reached, len(near))
    counts: dict[str, float | int | str] = {"activated": reached, "slices": len(near), "owners": len(recalled)}
    return Metric("ripple_activation_rate", rate, ACTIVATION_LEAST, rate >= ACTIVATION_LEAST, counts)


def impact_skew(
    rows: pa.Table, as_of: datetime, reference: Histogram | None = None, limits: Limits = DEFAULT_LIMITS
) -> Metric:
    """Standard deviation of the final impacts of 90 days; alert above .45, and on every other fault of their
    distribution. ``rows``: IMPACTS or SLICES."""
    impacts = final_impacts(rows, as_of)
    summary, problems = summarise(impacts, limits), check_impacts(impacts, reference, limits)
    detail: dict[str, float | int | str] = {"n": summary.n, "mean": summary.mean}
    detail |= {f"share_{label}": share for label, share in summary.shares.items()}
    detail |= {"note": summary.note} if summary.note else {}
    detail |= {problem.name: problem.text for problem in problems}
    value = summary.deviation if summary.n else None
    return Metric("impact_skew", value, limits.deviation_most, not problems, detail)


def sync_latency(seconds: Sequence[float]) -> Metric:
    """95th percentile (nearest rank) of login → memories visible, in seconds. Alert above 3."""
    if not seconds:
        return _nothing("sync_latency", LATENCY_MOST, "no logins measured")
    ordered = sorted(seconds)
    value = round(ordered[math.ceil(0.95 * len(ordered)) - 1], 4)
    detail: dict[str, float | int | str] = {"logins": len(ordered), "slowest": round(ordered[-1], 4)}
    return Metric("sync_latency", value, LATENCY_MOST, value <= LATENCY_MOST, detail)


def admission_ratios(decisions: pa.Table) -> list[Metric]:
    """Share of DECISIONS rows admitted long-term, and per dimension the share that alone reaches .7. No limits."""
    total = decisions.num_rows
    if not total:
        return [_nothing(f"admission_{name}", None, "no decisions yet") for name in ("long_term", *DIMENSIONS)]
    admitted = decisions["outcome"].to_pylist().count("long")
    metrics = [Metric("admission_long_term", _ratio(admitted, total), None, True, {"long": admitted, "all": total})]
    for name in DIMENSIONS:
        high = sum(value is not None and value >= LONG_TERM_FROM for value in decisions[name].to_pylist())
        metrics.append(Metric(f"admission_{name}", _ratio(high, total), None, True, {"high": high, "all": total}))
    return metrics


def quarantine_rate(rows: int, quarantined: int, most: float) -> Metric:
    """Quarantined rows / rows read; alert above ``most``."""
    return _share("quarantine_rate", quarantined, rows, most)


def duplicate_rate(rows: int, duplicates: int) -> Metric:
    """Rows that repeat another / rows read. No limit: sources repeat themselves."""
    return _share("duplicate_rate", duplicates, rows, None)


def _share(name: str, part: int, whole: int, most: float | None) -> Metric:
    if not whole:
        return _nothing(name, most, "no rows read yet")
    rate = _ratio(part, whole)
    return Metric(name, rate, most, most is None or rate <= most, {"rows": part, "all": whole})


def _ratio(part: int, whole: int) -> float:
    return round(part / whole, 4)


def _nothing(name: str, limit: float | None, note: str) -> Metric:
    return Metric(name, None, limit, True, {"note": note})
