"""Steps 5 to 7 over the stores, by bucket of subjects: impact, slices, memories, edges, published.

Belongs here: which owners' rows are read and replaced. Does not belong here: what is derived (``slices``,
``admission``), or the protocol of publishing (``stores.publish``).
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.admission.dimensions import Snapshot
from memory_pipelines.admission.gate import admit
from memory_pipelines.errors import InputError
from memory_pipelines.pipeline.daily import BASE_TABLES
from memory_pipelines.pipeline.life import publish_owners
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.reward import KIND, labelled_events
from memory_pipelines.projection import next_views
from memory_pipelines.reward.fit import RewardModel, feature_rows
from memory_pipelines.reward.labels import reward_events
from memory_pipelines.slices.events import History, Labelled, histories, labelled_exchanges, next_change
from memory_pipelines.slices.graph import memory_edges
from memory_pipelines.slices.impact import score_impacts
from memory_pipelines.slices.merge import merge_slices
from memory_pipelines.stores.base import Replace
from memory_pipelines.stores.ledger import Plan
from memory_pipelines.stores.publish import Published
from memory_pipelines.tables import (
    BEHAVIOUR,
    DECISIONS,
    EDGES,
    EXCHANGES,
    IMPACTS,
    MEMORIES,
    SLICES,
    TableSpec,
)
from memory_pipelines.wiring import Platform

MOST_REPLACED = 2_000
"""Owners named in one write; with more the bucket is written whole."""


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


@uses_lake
def score_bucket(platform: Platform, bucket: int, *, everything: bool = False) -> int:
    """Step 5; it opens the bucket's derivation. By the champion of the reward models, or by rules while there is
    none. Returns the exchanges scored."""
    champion = platform.registry.champion(KIND)
    plan = platform.ledger.begin_derivation(bucket, everything=everything)
    if plan is None:
        return 0
    subjects = read_subjects(platform, plan)
    impacts = score_impacts(
        subjects.labelled,
        subjects.behaviour,
        as_of=plan.as_of,
        model_set=plan.model_set,
        predicted=None if champion is None else _predicted(platform, plan, RewardModel(champion.body)),
    )
    _replace_owners(platform, IMPACTS, plan, impacts)
    return int(impacts.num_rows)


def _predicted(platform: Platform, plan: Plan, model: RewardModel) -> dict[str, float]:
    """Exchange id → decision impact by the model, at the plan's versions."""
    events = labelled_events(platform, plan.versions, plan.model_set, plan.as_of, _where_owners(plan))
    rows = reward_events(events, platform.lake.read(BEHAVIOUR, where=_where_owners(plan)), plan.as_of)
    scores = model.predict(feature_rows(rows))
    return dict(zip(rows["exchange_id"].to_pylist(), scores.tolist(), strict=True))


@uses_lake
def merge_bucket(platform: Platform, bucket: int) -> pa.Table:
    """Step 6; returns the SLICES rows of the planned owners."""
    plan = _plan(platform, bucket)
    subjects = read_subjects(platform, plan)
    impacts = _owned(platform, IMPACTS, plan)
    slices = merge_slices(subjects.labelled, impacts, subjects.behaviour, as_of=plan.as_of, model_set=plan.model_set)
    _replace_owners(platform, SLICES, plan, slices)
    return slices


@uses_lake
def admit_bucket(platform: Platform, bucket: int) -> tuple[pa.Table, pa.Table]:
    """The gate; returns DECISIONS and MEMORIES of the planned owners."""
    plan = _plan(platform, bucket)
    snapshot = Snapshot("empty", 0, {})
    admitted = admit(_owned(platform, SLICES, plan), snapshot, scenario=platform.settings.scenario, as_of=plan.as_of)
    _replace_owners(platform, DECISIONS, plan, admitted.decisions)
    _replace_owners(platform, MEMORIES, plan, admitted.memories)
    return admitted.decisions, admitted.memories


@uses_lake
def link_bucket(platform: Platform, bucket: int) -> pa.Table:
    """Step 7, the edges; returns EDGES of the planned owners."""
    plan = _plan(platform, bucket)
    edges = memory_edges(_owned(platform, MEMORIES, plan), _owned(platform, SLICES, plan))
    _replace_owners(platform, EDGES, plan, edges)
    return edges


@uses_lake
def publish_bucket(platform: Platform, bucket: int) -> Published:
    """Step 7, the stores: publish the planned owners and end the bucket's derivation."""
    plan = _plan(platform, bucket)
    night = platform.ledger.last_night()  # memories do not grow younger because somebody is derived anew
    as_of = plan.as_of if night is None else max(plan.as_of, night)
    done = publish_owners(platform, list(plan.owners), as_of, bucket)
    platform.ledger.end_derivation(plan, _due(platform, plan))
    return done


@uses_lake
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
        raise InputError(
            "nothing to derive: no day is committed yet, or decision_impact was not materialised for the bucket"
        )
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
    """When each planned owner is to be derived again though nothing touches it: time alone changes its rows then."""
    where = _where_owners(plan)
    starts = _times(platform, IMPACTS, where)
    ahead = _times(platform, BEHAVIOUR, [*where, ("occurred_at", ">=", plan.as_of)])
    views = next_views(_owned(platform, MEMORIES, plan), plan.as_of, platform.settings.profile)
    due: dict[str, datetime | None] = {}
    for owner in plan.owners:
        change = next_change(starts.get(owner, []), ahead.get(owner, []), plan.as_of)
        due[owner] = min((at for at in (change, views.get(owner)) if at is not None), default=None)
    return due


def _times(platform: Platform, spec: TableSpec, where: Sequence[tuple[str, str, object]]) -> dict[str, list[datetime]]:
    """Owner key → times of its rows."""
    rows = platform.lake.read(spec, columns=["owner", "occurred_at"], where=where)
    result: dict[str, list[datetime]] = defaultdict(list)
    for owner, at in zip(rows["owner"].to_pylist(), rows["occurred_at"].to_pylist(), strict=True):
        result[owner].append(at)
    return result
