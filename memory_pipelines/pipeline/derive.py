"""Steps 5 to 7 over the stores, by bucket of subjects: impact, slices, memories, edges, published.

Belongs here: which owners' rows are read and replaced. Does not belong here: what is derived (``slices``,
``admission``), or the protocol of publishing (``stores.publish``).
"""

from collections import Counter, defaultdict
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
from memory_pipelines.pipeline.quarantine import settle_events
from memory_pipelines.pipeline.reward import KIND, labelled_events
from memory_pipelines.projection import next_views
from memory_pipelines.reward.fit import RewardModel, feature_rows
from memory_pipelines.reward.labels import reward_events
from memory_pipelines.slices.events import (
    History,
    Labelled,
    histories,
    labelled_exchanges,
    next_change,
    settled_events,
)
from memory_pipelines.slices.graph import memory_edges
from memory_pipelines.slices.impact import score_impacts
from memory_pipelines.slices.merge import merge_slices
from memory_pipelines.stores.base import Replace, ReplaceRange
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
    SLICES,
    TableSpec,
)
from memory_pipelines.wiring import Platform

MOST_REPLACED = 2_000
"""Owners that one write names at most."""


MOST_EXCHANGES = 50_000
"""Exchanges whose owners are worked on at once: memory does not grow with the bucket."""
SHOWN_SLICES = ("intent", "feedback", "impact_label", "decision_impact", "emotion_score")
SHOWN_DECISIONS = ("outcome", "rule", "persistence", "structure", "personalisation", "score")


@dataclass(frozen=True)
class Portion:
    """Planned owners that are worked on together. ``reach``: every owner in it is planned, so all of it may be
    replaced; None: only the named ones are."""

    plan: Plan
    owners: tuple[str, ...]
    reach: ReplaceRange | None

    @property
    def where(self) -> list[tuple[str, str, object]]:
        """Filters for the portion's rows. The first and the last owner prune files and row groups."""
        first, last = self.owners[0], self.owners[-1]
        where: list[tuple[str, str, object]] = [("bucket", "=", self.plan.bucket)]
        where += [("owner", ">=", first), ("owner", "<=", last)]
        return where if self.reach else [*where, ("owner", "in", self.owners)]


def portions(platform: Platform, plan: Plan) -> list[Portion]:
    """The planned owners in the order of their keys, cut into portions of about ``MOST_EXCHANGES``."""
    if not plan.owners:
        return []
    version = plan.versions[EXCHANGES.name]
    rows = platform.lake.read(EXCHANGES, columns=["owner"], where=[("bucket", "=", plan.bucket)], version=version)
    sizes = {item["values"]: item["counts"] for item in rows["owner"].value_counts().to_pylist()}
    groups: list[list[str]] = []
    size = 0
    for owner in sorted(plan.owners):
        if not groups or size + sizes.get(owner, 0) > MOST_EXCHANGES or len(groups[-1]) >= MOST_REPLACED:
            groups.append([])
            size = 0
        groups[-1].append(owner)
        size += sizes.get(owner, 0)
    lows = [group[0] if number else None for number, group in enumerate(groups)]
    return [
        Portion(plan, tuple(group), ReplaceRange("owner", low, high) if plan.everything else None)
        for group, low, high in zip(groups, lows, [*lows[1:], None], strict=True)
    ]


@dataclass(frozen=True)
class Subjects:
    """A portion's labelled exchanges and behaviour."""

    labelled: dict[str, list[Labelled]]
    behaviour: dict[str, History]


LABEL_COLUMNS = {
    INTENTS.name: ["intent", "action", "category"],
    EMOTIONS.name: ["emotion_score", "emotion"],
    ENTITIES.name: ["entities", "language"],
}
SCORED = ["tenant", "subject", "exchange_id", "started_at", "ended_at", "day", "owner", "bucket"]
"""Columns of the exchanges that a score needs: without the texts reading takes half the time."""


def read_subjects(platform: Platform, portion: Portion, columns: Sequence[str] | None = None) -> Subjects:
    """Everything that the derived rows of the portion's owners are a function of.

    ``columns``: of the exchanges; default all."""
    plan = portion.plan
    committed = pa.array(list(platform.ledger.day_counts()), pa.string())
    tables: dict[str, pa.Table] = {}
    for spec in BASE_TABLES:
        where, wanted = portion.where, columns
        if spec is not EXCHANGES:
            where, wanted = (
                [*where, ("model_set", "=", plan.model_set)],
                ["exchange_id", "day", *LABEL_COLUMNS[spec.name]],
            )
        table = platform.lake.read(spec, columns=wanted, where=where, version=plan.versions[spec.name])
        tables[spec.name] = table.filter(pc.is_in(table["day"], value_set=committed))
    behaviour = platform.lake.read(BEHAVIOUR, where=portion.where)
    return Subjects(labelled_exchanges(**tables, as_of=plan.as_of), histories(behaviour, plan.as_of))


@uses_lake
def score_bucket(platform: Platform, bucket: int, *, everything: bool = False) -> int:
    """Step 5; it opens the bucket's derivation. By the champion of the reward models, or by rules while there is
    none. Returns the exchanges scored."""
    champion = platform.registry.champion(KIND)
    model = None if champion is None else RewardModel(champion.body)
    plan = platform.ledger.begin_derivation(bucket, everything=everything)
    if plan is None:
        return 0
    scored = 0
    for portion in portions(platform, plan):
        subjects = read_subjects(platform, portion, SCORED)
        impacts = score_impacts(
            subjects.labelled,
            subjects.behaviour,
            as_of=plan.as_of,
            model_set=plan.model_set,
            predicted=None if model is None else _predicted(platform, portion, model),
        )
        _replace_owners(platform, IMPACTS, portion, impacts)
        scored += impacts.num_rows
    return scored


def _predicted(platform: Platform, portion: Portion, model: RewardModel) -> dict[str, float]:
    """Exchange id → decision impact by the model, at the plan's versions."""
    plan = portion.plan
    events = labelled_events(platform, plan.versions, plan.model_set, plan.as_of, portion.where)
    behaviour = settled_events(platform.lake.read(BEHAVIOUR, where=portion.where))
    rows = reward_events(events, behaviour, plan.as_of)
    scores = model.predict(feature_rows(rows))
    return dict(zip(rows["exchange_id"].to_pylist(), scores.tolist(), strict=True))


@uses_lake
def merge_bucket(platform: Platform, bucket: int) -> pa.Table:
    """Step 6; returns the columns ``SHOWN_SLICES`` of the planned owners' slices."""
    plan = _plan(platform, bucket)
    shown = [SLICES.schema.empty_table().select(SHOWN_SLICES)]
    for portion in portions(platform, plan):
        subjects = read_subjects(platform, portion)
        impacts = _owned(platform, IMPACTS, portion)
        slices = merge_slices(
            subjects.labelled, impacts, subjects.behaviour, as_of=plan.as_of, model_set=plan.model_set
        )
        _replace_owners(platform, SLICES, portion, slices)
        shown.append(slices.select(SHOWN_SLICES))
    return pa.concat_tables(shown)


@uses_lake
def admit_bucket(platform: Platform, bucket: int) -> tuple[pa.Table, int]:
    """The gate; returns the columns ``SHOWN_DECISIONS`` of the planned owners' decisions, and their memories."""
    plan = _plan(platform, bucket)
    snapshot = Snapshot("empty", 0, {})
    shown = [DECISIONS.schema.empty_table().select(SHOWN_DECISIONS)]
    memories = 0
    for portion in portions(platform, plan):
        slices = _owned(platform, SLICES, portion)
        admitted = admit(slices, snapshot, scenario=platform.settings.scenario, as_of=plan.as_of)
        _replace_owners(platform, DECISIONS, portion, admitted.decisions)
        _replace_owners(platform, MEMORIES, portion, admitted.memories)
        shown.append(admitted.decisions.select(SHOWN_DECISIONS))
        memories += admitted.memories.num_rows
    return pa.concat_tables(shown), memories


@uses_lake
def link_bucket(platform: Platform, bucket: int) -> Counter[str]:
    """Step 7, the edges; returns how many of each kind the planned owners have."""
    kinds: Counter[str] = Counter()
    for portion in portions(platform, _plan(platform, bucket)):
        edges = memory_edges(_owned(platform, MEMORIES, portion), _owned(platform, SLICES, portion))
        _replace_owners(platform, EDGES, portion, edges)
        kinds.update(edges["kind"].to_pylist())
    return kinds


@uses_lake
def publish_bucket(platform: Platform, bucket: int) -> Published:
    """Step 7, the stores: publish the planned owners and end the bucket's derivation."""
    plan = _plan(platform, bucket)
    night = platform.ledger.last_night()  # memories do not grow younger because somebody is derived anew
    as_of = plan.as_of if night is None else max(plan.as_of, night)
    total = Published()
    due: dict[str, datetime | None] = {}
    repeats: dict[str, tuple[int, int]] = {}
    for portion in portions(platform, plan):
        total.add(publish_owners(platform, list(portion.owners), as_of, bucket))
        due |= _due(platform, portion)
        repeats |= settle_events(platform, portion.owners, portion.where)
    platform.ledger.end_derivation(plan, due, repeats)
    return total


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


def _owned(platform: Platform, spec: TableSpec, portion: Portion) -> pa.Table:
    return platform.lake.read(spec, where=portion.where)


def _replace_owners(platform: Platform, spec: TableSpec, portion: Portion, rows: pa.Table) -> None:
    """Replace the portion's owners' rows, and no others'."""
    replaced = portion.reach or Replace("owner", portion.owners)
    platform.lake.write(spec, rows, [replaced], {"bucket": portion.plan.bucket})


def _due(platform: Platform, portion: Portion) -> dict[str, datetime | None]:
    """When each owner is to be derived again though nothing touches it: time alone changes its rows then."""
    as_of = portion.plan.as_of
    starts = _times(platform, IMPACTS, portion.where)
    ahead = _times(platform, BEHAVIOUR, [*portion.where, ("occurred_at", ">=", as_of)])
    views = next_views(_owned(platform, MEMORIES, portion), as_of, platform.settings.profile)
    due: dict[str, datetime | None] = {}
    for owner in portion.owners:
        change = next_change(starts.get(owner, []), ahead.get(owner, []), as_of)
        due[owner] = min((at for at in (change, views.get(owner)) if at is not None), default=None)
    return due


def _times(platform: Platform, spec: TableSpec, where: Sequence[tuple[str, str, object]]) -> dict[str, list[datetime]]:
    """Owner key → times of its rows."""
    rows = platform.lake.read(spec, columns=["owner", "occurred_at"], where=where)
    result: dict[str, list[datetime]] = defaultdict(list)
    for owner, at in zip(rows["owner"].to_pylist(), rows["occurred_at"].to_pylist(), strict=True):
        result[owner].append(at)
    return result
