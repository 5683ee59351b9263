"""Steps 1 to 4 over the stores, by day: exchanges, labels, and the commit that pins their versions.

Belongs here: which rows a day is cut from and replaces. Does not belong here: the cut and the labels (``slices``).
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

import pyarrow as pa

from memory_pipelines.errors import TransientError
from memory_pipelines.model import days_between, shift_day, stable_hash
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.slices.exchanges import REACH, DayCounts, cut_exchanges, needs_earlier
from memory_pipelines.stores.base import Replace
from memory_pipelines.tables import EMOTIONS, ENTITIES, EXCHANGES, INTENTS, QUARANTINE, TURNS, TableSpec
from memory_pipelines.wiring import Platform

BASE_TABLES = (EXCHANGES, INTENTS, EMOTIONS, ENTITIES)
"""The tables whose versions a manifest pins."""

Step = Callable[[pa.Table, str], pa.Table]
DayKey = tuple[str, str, str, int]
"""Day, owner, tenant, bucket."""


@uses_lake
def cut_days(platform: Platform, days: Collection[str]) -> dict[str, DayCounts]:
    """Step 1: cut the exchanges of ``days`` from the landed turns around them."""
    wanted = sorted(days)
    touches = platform.ledger.day_touches(wanted)
    counts: dict[str, DayCounts] = {}
    for part in _contiguous(wanted):
        turns = _turns_around(platform, part)
        cut = cut_exchanges(turns, part, platform.settings.buckets)
        files = tuple(f"day:{day}" for day in part)
        platform.lake.write(QUARANTINE, cut.conflicts, [Replace("file_id", files)])
        version = _replace_days(platform, EXCHANGES, cut.exchanges, part)
        platform.ledger.days_written({day: (touches[day], cut.counts[day].as_dict()) for day in part}, version)
        counts |= cut.counts
    return counts


def _turns_around(platform: Platform, days: Sequence[str]) -> pa.Table:
    first, last = shift_day(days[0], -REACH), shift_day(days[-1], REACH)
    turns = _turns(platform, first, last)
    while needs_earlier(turns, first):
        earlier = shift_day(first, -1)
        turns = pa.concat_tables([_turns(platform, earlier, earlier), turns])
        first = earlier
    return pa.concat_tables([turns, *_versions_elsewhere(platform, days_between(first, last))])


def _turns(platform: Platform, first: str, last: str) -> pa.Table:
    return platform.lake.read(TURNS, where=[("day", ">=", first), ("day", "<=", last)])


def _versions_elsewhere(platform: Platform, days: Sequence[str]) -> list[pa.Table]:
    """Versions, on other days, of turn ids that also occur on ``days``."""
    tables = []
    for day, hashes in platform.ledger.versions_elsewhere(days).items():
        turns = platform.lake.read(TURNS, where=[("day", "=", day)])
        ids = zip(turns["tenant"].to_pylist(), turns["turn_id"].to_pylist(), strict=True)
        tables.append(turns.filter(pa.array([stable_hash(t, i) in hashes for t, i in ids], pa.bool_())))
    return tables


@uses_lake
def label_days(platform: Platform, days: Collection[str], spec: TableSpec, step: Step) -> pa.Table:
    """Steps 2-4: label the exchanges of ``days`` with the model set of the settings; returns the labels."""
    wanted = sorted(days)
    exchanges = platform.lake.read(EXCHANGES, where=[("day", "in", wanted)])
    labels = step(exchanges, platform.settings.model_set)
    _replace_days(platform, spec, labels, wanted, model_set=platform.settings.model_set)
    return labels


def _replace_days(
    platform: Platform, spec: TableSpec, rows: pa.Table, days: Sequence[str], model_set: str | None = None
) -> int:
    """Replace the rows of days; owners whose rows change are announced first, so that a kill loses no change.

    Returns the version that was written."""
    replace = [Replace("day", tuple(days))]
    where: list[tuple[str, str, object]] = [("day", "in", list(days))]
    if model_set is not None:
        replace.append(Replace("model_set", (model_set,)))
        where.append(("model_set", "=", model_set))
    before = platform.lake.read(spec, where=where)
    announced = platform.ledger.announce(_changed(before, rows))
    version = platform.lake.write(spec, rows, replace)
    platform.ledger.announced_written(announced, spec.name, version)
    return version


def _changed(before: pa.Table, after: pa.Table) -> dict[str, set[tuple[str, str, int]]]:
    """Per day the (owner, tenant, bucket) whose rows differ between two tables."""
    result: dict[str, set[tuple[str, str, int]]] = {}
    imported = not before.num_rows  # then no row need be compared
    changed = set(_day_keys(after)) if imported else {key for key, _ in _row_set(before) ^ _row_set(after)}
    for day, owner, tenant, bucket in changed:
        result.setdefault(day, set()).add((owner, tenant, bucket))
    return result


def _row_set(table: pa.Table) -> set[tuple[DayKey, str]]:
    return {(key, repr(row)) for key, row in zip(_day_keys(table), table.to_pylist(), strict=True)}


def _day_keys(table: pa.Table) -> Iterator[DayKey]:
    return zip(*(table[name].to_pylist() for name in ("day", "owner", "tenant", "bucket")), strict=True)


@uses_lake
def commit_days(platform: Platform, days: Collection[str]) -> int:
    """The end of a day job: pin the table versions that hold ``days`` complete; returns the manifest's id.

    Raises TransientError where another run is cutting one of the days anew at this moment.
    """
    wanted = sorted(days)
    written = platform.ledger.written_days(wanted)
    versions = {spec.name: platform.lake.version(spec) for spec in BASE_TABLES}
    missing = unlabelled(platform, wanted, BASE_TABLES[1:], versions)
    if missing or len(written) < len(wanted):
        raise TransientError(
            f"days from {wanted[0]} to {wanted[-1]} are not complete: {missing} exchanges lack a label"
        )
    return platform.ledger.commit_days(
        written, versions=versions, model_set=platform.settings.model_set, at=platform.clock.now()
    )


@uses_lake
def unlabelled(
    platform: Platform, days: Collection[str], specs: Sequence[TableSpec], versions: Mapping[str, int] | None = None
) -> int:
    """Exchanges of ``days`` that lack a label of the model set in one of the label tables ``specs``."""
    where: list[tuple[str, str, object]] = [("day", "in", sorted(days))]
    model_set = platform.settings.model_set
    at = versions or {}
    ids = _ids(platform, EXCHANGES, where, at)
    missing: set[str] = set()
    for spec in specs:
        missing |= ids - _ids(platform, spec, [*where, ("model_set", "=", model_set)], at)
    return len(missing)


def _ids(
    platform: Platform, spec: TableSpec, where: Sequence[tuple[str, str, object]], versions: Mapping[str, int]
) -> set[str]:
    table = platform.lake.read(spec, columns=["exchange_id"], where=where, version=versions.get(spec.name))
    return set(table["exchange_id"].to_pylist())


def _contiguous(days: Sequence[str]) -> list[list[str]]:
    parts: list[list[str]] = []
    for day in days:
        if parts and shift_day(parts[-1][-1], 1) == day:
            parts[-1].append(day)
        else:
            parts.append([day])
    return parts
