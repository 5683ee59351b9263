"""Steps 1 to 4 over the stores, by day: exchanges, labels, and the commit that pins their versions.

Belongs here: which rows a day is cut from and replaces. Does not belong here: the cut and the labels (``slices``).
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

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


MOST_ROWS = 200_000
"""Rows that are worked on at once: memory grows with the busiest day, not with the range of days."""


@uses_lake
def cut_days(platform: Platform, days: Collection[str]) -> dict[str, DayCounts]:
    """Step 1: cut the exchanges of ``days`` from the landed turns around them."""
    counts: dict[str, DayCounts] = {}
    for part in _portions(platform, TURNS, days):
        touches = platform.ledger.day_touches(part)
        cut = cut_exchanges(_turns_around(platform, part), part, platform.settings.buckets)
        files = tuple(f"day:{day}" for day in part)
        platform.lake.write(QUARANTINE, cut.conflicts, [Replace("file_id", files)])
        version = _replace_days(platform, EXCHANGES, cut.exchanges, part)
        platform.ledger.days_written({day: (touches[day], cut.counts[day].as_dict()) for day in part}, version)
        counts |= cut.counts
    return counts


def _portions(platform: Platform, spec: TableSpec, days: Collection[str]) -> Iterator[list[str]]:
    """``days`` in runs without gaps that have at most ``MOST_ROWS`` rows each, or are one day."""
    wanted = sorted(days)
    found = platform.lake.read(spec, columns=["day"], where=[("day", "in", wanted)])["day"].value_counts()
    sizes = {item["values"]: item["counts"] for item in found.to_pylist()}
    part: list[str] = []
    rows = 0
    for day in wanted:
        if part and (shift_day(part[-1], 1) != day or rows + sizes.get(day, 0) > MOST_ROWS):
            yield part
            part, rows = [], 0
        part.append(day)
        rows += sizes.get(day, 0)
    if part:
        yield part


def _turns_around(platform: Platform, days: Sequence[str]) -> pa.Table:
    """The turns of ``days``; of the days around them, those of the same conversations; and every version of each."""
    turns = _turns(platform, [("day", "in", list(days))])
    talks: tuple[str, str, object] = ("conversation_id", "in", turns["conversation_id"].unique().to_pylist())
    first, last = shift_day(days[0], -REACH), shift_day(days[-1], REACH)
    around = sorted(set(days_between(first, last)) - set(days))
    turns = pa.concat_tables([turns, _turns(platform, [("day", "in", around), talks])])
    while needs_earlier(turns, first):
        first = shift_day(first, -1)
        turns = pa.concat_tables([_turns(platform, [("day", "=", first), talks]), turns])
    return pa.concat_tables([turns, *_versions_elsewhere(platform, days_between(first, last), days)])


def _turns(platform: Platform, where: Sequence[tuple[str, str, object]]) -> pa.Table:
    return platform.lake.read(TURNS, where=where)


def _versions_elsewhere(platform: Platform, around: Sequence[str], days: Collection[str]) -> list[pa.Table]:
    """Versions, on other days than ``days``, of turn ids that also occur ``around`` them."""
    tables = []
    for day, hashes in platform.ledger.versions_elsewhere(around, days).items():
        turns = _turns(platform, [("day", "=", day)])
        ids = zip(turns["tenant"].to_pylist(), turns["turn_id"].to_pylist(), strict=True)
        tables.append(turns.filter(pa.array([stable_hash(t, i) in hashes for t, i in ids], pa.bool_())))
    return tables


@uses_lake
def label_days(
    platform: Platform, days: Collection[str], spec: TableSpec, step: Step, shown: str = "model_set"
) -> Counter[str]:
    """Steps 2-4: label the exchanges of ``days`` with the model set of the settings.

    Returns how many labels there are of each value of the column ``shown``."""
    model_set = platform.settings.model_set
    counts: Counter[str] = Counter()
    for part in _portions(platform, EXCHANGES, days):
        labels = step(platform.lake.read(EXCHANGES, where=[("day", "in", part)]), model_set)
        _replace_days(platform, spec, labels, part, model_set=model_set)
        counts.update(labels[shown].to_pylist())
    return counts


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
    model_set = platform.settings.model_set
    before = platform.ledger.manifest()
    switched = before is not None and before.model_set != model_set
    if switched:  # labels of another set are derived from, also where none of them was written just now
        platform.ledger.touch_everybody()
    manifest_id = platform.ledger.commit_days(written, versions=versions, model_set=model_set, at=platform.clock.now())
    if switched:  # those who were derived in between
        platform.ledger.touch_everybody()
    return manifest_id


@uses_lake
def unlabelled(
    platform: Platform, days: Collection[str], specs: Sequence[TableSpec], versions: Mapping[str, int] | None = None
) -> int:
    """Exchanges of ``days`` that lack a label of the model set in one of the label tables ``specs``."""
    ids = partial(_ids, platform, versions or {})
    count = 0
    for part in _portions(platform, EXCHANGES, days):
        where: list[tuple[str, str, object]] = [("day", "in", part)]
        exchanges = ids(EXCHANGES, where)
        missing = pa.repeat(pa.scalar(False), len(exchanges))
        for spec in specs:
            labelled = ids(spec, [*where, ("model_set", "=", platform.settings.model_set)])
            missing = pc.or_(missing, pc.invert(pc.is_in(exchanges, value_set=labelled)))
        count += pc.sum(missing).as_py() or 0
    return count


def _ids(
    platform: Platform, versions: Mapping[str, int], spec: TableSpec, where: Sequence[tuple[str, str, object]]
) -> pa.Array:
    rows = platform.lake.read(spec, columns=["exchange_id"], where=where, version=versions.get(spec.name))
    return rows["exchange_id"].combine_chunks()
