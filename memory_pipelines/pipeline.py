"""The steps of the platform over its stores: read, call one pure function, write.

Belongs here: what each asset does, so that the CLI, the benchmarks and Dagster do the same. Does not
belong here: what a step computes (the domain folders) or when it runs (``jobs``).

Steps 1-4 work on days and end in ``commit_days``; steps 5-7 work on the owners of one bucket that
something touched, and end in ``publish``. Each step may be killed and run again.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.errors import InputError, TransientError
from memory_pipelines.landing.land import file_hash, land_file
from memory_pipelines.landing.readers import detect_format
from memory_pipelines.model import days_between, shift_day, stable_hash
from memory_pipelines.slices.clean import clean_turns
from memory_pipelines.slices.events import History, Labelled, histories, labelled_exchanges, next_close
from memory_pipelines.slices.exchanges import REACH, DayCounts, cut_exchanges, needs_earlier
from memory_pipelines.stores.base import ChunkCounts, Replace
from memory_pipelines.stores.ledger import Plan
from memory_pipelines.stores.publish import Published
from memory_pipelines.tables import (
    BEHAVIOUR,
    DECISIONS,
    EDGES,
    EMOTIONS,
    ENTITIES,
    EXCHANGES,
    IMPACTS,
    INTENTS,
    MEMORIES,
    QUARANTINE,
    SLICES,
    TURNS,
    TableSpec,
)
from memory_pipelines.wiring import Platform

BASE_TABLES = (EXCHANGES, INTENTS, EMOTIONS, ENTITIES)
"""The tables whose versions a manifest pins."""
MOST_REPLACED = 2_000
"""Owners named in one write; with more the bucket is written whole."""

Step = Callable[[pa.Table, str], pa.Table]


# ---- landing


@dataclass(frozen=True)
class LandedFile:
    """``status``: landed, known (its content was landed before) or unreadable (see ``error``)."""

    name: str
    status: str
    counts: ChunkCounts = field(default_factory=ChunkCounts)
    error: str = ""


def log_files(folder: Path) -> list[Path]:
    """The log files below a folder, in order of their paths; hidden files and ``truth/`` folders are none."""
    if not folder.is_dir():
        return []
    files = (p for p in sorted(folder.rglob("*")) if p.is_file())
    return [p for p in files if not any(x.startswith(".") or x == "truth" for x in p.relative_to(folder).parts)]


def land(platform: Platform, paths: Sequence[Path], progress: Callable[[str], None] | None = None) -> list[LandedFile]:
    """Land files one after the other. An unreadable file is reported and does not stop the others."""
    results = []
    for path in paths:
        try:
            counts = land_file(
                path,
                lake=platform.lake,
                ledger=platform.ledger,
                clean=_clean,
                default_tenant=platform.settings.tenant,
                buckets=platform.settings.buckets,
                landed_at=platform.clock.now(),
            )
            status = "known" if counts is None else "landed"
            results.append(LandedFile(path.name, status, counts or ChunkCounts()))
        except InputError as error:
            results.append(LandedFile(path.name, "unreadable", error=str(error)))
        if progress is not None:
            progress(f"{path.name}: {results[-1].status}, {results[-1].counts.rows} rows")
    return results


def unlanded(platform: Platform, paths: Sequence[Path]) -> list[Path]:
    """The files whose content is not landed whole, and which some reader can read."""
    complete = {f["file_id"] for f in platform.ledger.files() if f["complete"]}
    return [path for path in paths if _readable(path) and file_hash(path) not in complete]


def _readable(path: Path) -> bool:
    try:
        detect_format(path)
    except InputError:
        return False
    return True


def _clean(turns: pa.Table) -> tuple[pa.Table, dict[str, int]]:
    cleaned = clean_turns(turns)
    return cleaned.turns, cleaned.filtered


# ---- steps 1-4: days


def cut_days(platform: Platform, days: Collection[str]) -> dict[str, DayCounts]:
    """Step 1: cut the exchanges of ``days`` from the landed turns around them."""
    wanted = sorted(days)
    touches = platform.ledger.day_touches(wanted)
    counts: dict[str, DayCounts] = {}
    for part in _contiguous(wanted):
        turns = _turns_around(platform, part)
        cut = cut_exchanges(turns, part, platform.settings.buckets)
        _replace_days(platform, EXCHANGES, cut.exchanges, part)
        files = tuple(f"day:{day}" for day in part)
        platform.lake.write(QUARANTINE, cut.conflicts, [Replace("file_id", files)])
        counts |= cut.counts
    platform.ledger.days_written({day: (touches[day], counts[day].as_dict()) for day in wanted})
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


def label_days(platform: Platform, days: Collection[str], spec: TableSpec, step: Step) -> pa.Table:
    """Steps 2-4: label the exchanges of ``days`` with the model set of the settings; returns the labels."""
    wanted = sorted(days)
    exchanges = platform.lake.read(EXCHANGES, where=[("day", "in", wanted)])
    labels = step(exchanges, platform.settings.model_set)
    _replace_days(platform, spec, labels, wanted, model_set=platform.settings.model_set)
    return labels


def _replace_days(
    platform: Platform, spec: TableSpec, rows: pa.Table, days: Sequence[str], model_set: str | None = None
) -> None:
    """Replace the rows of days; owners whose rows change are announced first, so that a kill loses no change."""
    replace = [Replace("day", tuple(days))]
    where: list[tuple[str, str, object]] = [("day", "in", list(days))]
    if model_set is not None:
        replace.append(Replace("model_set", (model_set,)))
        where.append(("model_set", "=", model_set))
    before = platform.lake.read(spec, where=where)
    for day, owners in _changed(before, rows).items():
        platform.ledger.announce(day, owners)
    platform.lake.write(spec, rows, replace)


def _changed(before: pa.Table, after: pa.Table) -> dict[str, set[tuple[str, str, int]]]:
    """Per day the (owner, tenant, bucket) whose rows differ between two tables."""
    difference = _row_set(before) ^ _row_set(after)
    result: dict[str, set[tuple[str, str, int]]] = {}
    for day, owner, tenant, bucket, _ in difference:
        result.setdefault(day, set()).add((owner, tenant, bucket))
    return result


def _row_set(table: pa.Table) -> set[tuple[str, str, str, int, str]]:
    keys = zip(*(table[n].to_pylist() for n in ("day", "owner", "tenant", "bucket")), strict=True)
    return {(*key, repr(row)) for key, row in zip(keys, table.to_pylist(), strict=True)}


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


# ---- steps 5-7: buckets


@dataclass(frozen=True)
class Subjects:
    """The planned owners' labelled exchanges and behaviour."""

    labelled: dict[str, list[Labelled]]
    behaviour: dict[str, History]


def read_subjects(platform: Platform, plan: Plan) -> Subjects:
    """Everything that the derived rows of the planned owners are a function of."""
    committed = pa.array(list(platform.ledger.day_counts()), pa.string())
    where = _where_owners(plan)
    tables: dict[str, pa.Table] = {}
    for spec in BASE_TABLES:
        own = where if spec is EXCHANGES else [*where, ("model_set", "=", plan.model_set)]
        table = platform.lake.read(spec, where=own, version=plan.versions[spec.name])
        tables[spec.name] = table.filter(pc.is_in(table["day"], value_set=committed))
    behaviour = platform.lake.read(BEHAVIOUR, where=where)
    return Subjects(labelled_exchanges(**tables, as_of=plan.as_of), histories(behaviour, plan.as_of))


def _where_owners(plan: Plan) -> list[tuple[str, str, object]]:
    where: list[tuple[str, str, object]] = [("bucket", "=", plan.bucket)]
    return where if plan.everything else [*where, ("owner", "in", sorted(plan.owners))]


def score_bucket(platform: Platform, bucket: int, *, everything: bool = False) -> int:
    """Step 5; it opens the bucket's derivation. Returns the exchanges scored."""
    from memory_pipelines.slices.impact import score_impacts

    plan = platform.ledger.begin_derivation(bucket, everything=everything)
    if plan is None:
        return 0
    subjects = read_subjects(platform, plan)
    impacts = score_impacts(subjects.labelled, subjects.behaviour, as_of=plan.as_of, model_set=plan.model_set)
    _replace_owners(platform, IMPACTS, plan, impacts)
    return int(impacts.num_rows)


def merge_bucket(platform: Platform, bucket: int) -> pa.Table:
    """Step 6; returns the SLICES rows of the planned owners."""
    from memory_pipelines.slices.merge import merge_slices

    plan = _plan(platform, bucket)
    subjects = read_subjects(platform, plan)
    impacts = _owned(platform, IMPACTS, plan)
    slices = merge_slices(subjects.labelled, impacts, subjects.behaviour, as_of=plan.as_of, model_set=plan.model_set)
    _replace_owners(platform, SLICES, plan, slices)
    return slices


def admit_bucket(platform: Platform, bucket: int) -> tuple[pa.Table, pa.Table]:
    """The gate; returns DECISIONS and MEMORIES of the planned owners."""
    from memory_pipelines.admission.dimensions import Snapshot
    from memory_pipelines.admission.gate import admit

    plan = _plan(platform, bucket)
    snapshot = Snapshot("empty", 0, {})
    admitted = admit(_owned(platform, SLICES, plan), snapshot, scenario=platform.settings.scenario, as_of=plan.as_of)
    _replace_owners(platform, DECISIONS, plan, admitted.decisions)
    _replace_owners(platform, MEMORIES, plan, admitted.memories)
    return admitted.decisions, admitted.memories


def link_bucket(platform: Platform, bucket: int) -> pa.Table:
    """Step 7, the edges; returns EDGES of the planned owners."""
    from memory_pipelines.slices.graph import memory_edges

    plan = _plan(platform, bucket)
    edges = memory_edges(_owned(platform, MEMORIES, plan), _owned(platform, SLICES, plan))
    _replace_owners(platform, EDGES, plan, edges)
    return edges


def publish_bucket(platform: Platform, bucket: int) -> Published:
    """Step 7, the stores: publish the planned owners and end the bucket's derivation."""
    from memory_pipelines.projection import owner_states

    plan = _plan(platform, bucket)
    states = owner_states(
        list(plan.owners),
        memories=_owned(platform, MEMORIES, plan),
        edges=_owned(platform, EDGES, plan),
        slices=_owned(platform, SLICES, plan),
        known=platform.authority.people(plan.owners),
        as_of=plan.as_of,
        profile=platform.settings.profile,
    )
    done = platform.publisher.publish(bucket, states, platform.clock.now())
    platform.ledger.end_derivation(plan, _due(platform, plan))
    return done


def derive_bucket(platform: Platform, bucket: int, *, everything: bool = False) -> Published:
    """Steps 5-7 of one bucket, one after the other."""
    score_bucket(platform, bucket, everything=everything)
    merge_bucket(platform, bucket)
    admit_bucket(platform, bucket)
    link_bucket(platform, bucket)
    return publish_bucket(platform, bucket)


def _plan(platform: Platform, bucket: int) -> Plan:
    plan = platform.ledger.plan(bucket)
    if plan is None:
        raise InputError(f"bucket {bucket} has no derivation under way: materialise decision_impact first")
    return plan


def _owned(platform: Platform, spec: TableSpec, plan: Plan) -> pa.Table:
    return platform.lake.read(spec, where=_where_owners(plan))


def _replace_owners(platform: Platform, spec: TableSpec, plan: Plan, rows: pa.Table) -> None:
    """Replace the planned owners' rows, and no others'."""
    partition = {"bucket": plan.bucket}
    if plan.everything:
        platform.lake.write(spec, rows, [], partition)
    elif len(plan.owners) > MOST_REPLACED:
        old = platform.lake.read(spec, where=[("bucket", "=", plan.bucket)])
        planned = pc.is_in(old["owner"], value_set=pa.array(sorted(plan.owners), pa.string()))
        platform.lake.write(spec, pa.concat_tables([old.filter(pc.invert(planned)), rows]), [], partition)
    elif plan.owners:
        platform.lake.write(spec, rows, [Replace("owner", tuple(sorted(plan.owners)))], partition)


def _due(platform: Platform, plan: Plan) -> dict[str, datetime | None]:
    """When each planned owner's next 7-day window closes."""
    rows = platform.lake.read(IMPACTS, columns=["owner", "occurred_at"], where=_where_owners(plan))
    due: dict[str, datetime | None] = dict.fromkeys(plan.owners)
    for owner, at in zip(rows["owner"].to_pylist(), rows["occurred_at"].to_pylist(), strict=True):
        closes = next_close(at, plan.as_of)
        known = due.get(owner)
        if closes is not None and (known is None or closes < known):
            due[owner] = closes
    return due


# ---- what adds up


def store_differences(platform: Platform) -> dict[str, int]:
    """Entries that one store has and the authority does not show, or the other way round."""
    shown, graphs = platform.authority.routed("vector"), platform.authority.graphs()
    vectors_missing = vectors_extra = graphs_missing = graphs_extra = 0
    for owner in platform.authority.owners():
        held = platform.vectors.entry_ids(owner)
        wanted = shown.get(owner.key, set())
        vectors_missing += len(wanted - held)
        vectors_extra += len(held - wanted)
        versions, visible = platform.graph.versions(owner), graphs.get(owner.key)
        graphs_missing += visible is not None and visible not in versions
        graphs_extra += len(versions - {visible})
    return {
        "vectors_missing": vectors_missing,
        "vectors_extra": vectors_extra,
        "graphs_missing": graphs_missing,
        "graphs_extra": graphs_extra,
    }


@dataclass(frozen=True)
class Accounts:
    """Rows in = in exchanges + filtered + nobody + quarantined + duplicates + behaviour + uncut."""

    rows: int
    in_exchanges: int
    filtered: dict[str, int]
    nobody: int
    quarantined: dict[str, int]
    duplicates: int
    behaviour: int
    uncut: int
    """Landed turns of days that no day job has cut yet."""

    @property
    def balance(self) -> int:
        """0 where every row is accounted for."""
        known = self.in_exchanges + self.nobody + self.duplicates + self.behaviour + self.uncut
        return self.rows - known - sum(self.filtered.values()) - sum(self.quarantined.values())

    def as_dict(self) -> dict[str, Any]:
        return asdict(self) | {"balance": self.balance}


def accounts(platform: Platform) -> Accounts:
    """Where every row that was ever read is now."""
    landed = platform.ledger.landed()
    days = list(platform.ledger.day_counts().values())
    conflicts = sum(day["conflicts"] for day in days)
    quarantined = dict(landed.quarantined)
    if conflicts:
        quarantined["conflicting_version"] = conflicts
    return Accounts(
        landed.rows,
        sum(day["in_exchanges"] for day in days),
        landed.filtered,
        sum(day["nobody"] for day in days),
        quarantined,
        sum(day["duplicates"] for day in days),
        landed.behaviour,
        landed.turns - sum(day["landed"] for day in days),
    )
