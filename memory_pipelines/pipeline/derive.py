"""Steps 5 to 7 over the stores, by bucket of subjects: impact, slices, memories, edges, published.

Belongs here: which owners' rows are read and replaced. Does not belong here: what is derived (``slices``,
``admission``), or the protocol of publishing (``stores.publish``).
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import cache, partial

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.admission.gate import admit
from memory_pipelines.admission.ontology import Profile
from memory_pipelines.admission.ontology import profile as scenario_profile
from memory_pipelines.admission.snapshot import ALL_SUBJECTS, EMPTY, Snapshot
from memory_pipelines.errors import InputError
from memory_pipelines.model import canonical_json, stable_hash
from memory_pipelines.pipeline.daily import BASE_TABLES
from memory_pipelines.pipeline.life import Shown, publish_owners
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.owned import Places, placed, rows_of, times_of
from memory_pipelines.pipeline.persons import behaviour_ahead, behaviour_of
from memory_pipelines.pipeline.quarantine import settle_events
from memory_pipelines.pipeline.reward import KIND, labelled_events
from memory_pipelines.projection import next_views
from memory_pipelines.reward.fit import RewardModel, provisional
from memory_pipelines.reward.labels import event_features
from memory_pipelines.slices.events import (
    History,
    Labelled,
    histories,
    labelled_exchanges,
    next_change,
    settled_events,
)
from memory_pipelines.slices.graph.edges import MEMORY_COLUMNS, SLICE_COLUMNS, memory_edges
from memory_pipelines.slices.graph.picture import Portrait, portrait
from memory_pipelines.slices.impact import RULES, Stages, score_impacts
from memory_pipelines.slices.merge import merge_slices
from memory_pipelines.stores.base import Replace, ReplaceRange
from memory_pipelines.stores.ledger import Plan
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
    POPULATION,
    SLICES,
    TIME,
    TableSpec,
)
from memory_pipelines.wiring import Platform

MOST_REPLACED = 2_000
"""Owners that one write names at most."""


MOST_EXCHANGES = 50_000
"""Exchanges whose owners are worked on at once: memory does not grow with the bucket."""
SHOWN_SLICES = ("intent", "feedback", "impact_label", "decision_impact", "emotion_score")
SHOWN_DECISIONS = ("outcome", "rule", "arm", "persistence", "structure", "personalisation", "score")


@dataclass(frozen=True)
class Portion:
    """Planned owners that are worked on together, of plans against the same versions.

    ``reach``: every owner in it is planned, so all of it may be replaced; None: only the named ones are."""

    plan: Plan
    places: Places
    reach: ReplaceRange | None = None

    @property
    def buckets(self) -> tuple[int, ...]:
        return tuple(self.places)

    @property
    def owners(self) -> tuple[str, ...]:
        return tuple(owner for owners in self.places.values() for owner in owners)

    @property
    def where(self) -> list[tuple[str, str, object]]:
        """Filters for the portion's rows. Where all owners of a range are planned its bounds prune as well, and cost
        less than their names."""
        if self.reach is None:
            return rows_of(self.places)
        return [
            ("bucket", "in", self.buckets),
            ("owner", ">=", min(self.owners)),
            ("owner", "<=", max(self.owners)),
        ]


def portions(platform: Platform, plans: Sequence[Plan], counted: TableSpec = IMPACTS) -> Iterator[Portion]:
    """The planned owners, cut into portions of about ``MOST_EXCHANGES``.

    A few owners of many buckets make one portion: what it costs to open and to write tables is paid once.
    ``counted``: of one row an exchange, as step 5 leaves the impacts: in fewer and narrower files than EXCHANGES."""
    for plan in plans:
        if plan.owners and plan.everything:
            groups = _cut(sorted(plan.owners), _sizes(platform, counted, plan, [("bucket", "=", plan.bucket)]))
            lows = [group[0] if number else None for number, group in enumerate(groups)]
            for group, low, high in zip(groups, lows, [*lows[1:], None], strict=True):
                yield Portion(plan, {plan.bucket: tuple(group)}, ReplaceRange("owner", low, high))
    some = [plan for plan in plans if plan.owners and not plan.everything]
    for alike in _alike(some):
        places = {plan.bucket: sorted(plan.owners) for plan in sorted(alike, key=lambda plan: plan.bucket)}
        sizes = _sizes(platform, counted, alike[0], rows_of(places))
        for group in _cut([owner for owners in places.values() for owner in owners], sizes):
            yield Portion(alike[0], placed(group, platform.settings.buckets))


def _alike(plans: Sequence[Plan]) -> list[list[Plan]]:
    """Plans by what they read, apart from their bucket and owners."""
    groups: dict[str, list[Plan]] = defaultdict(list)
    for plan in plans:
        groups[
            stable_hash(plan.as_of.isoformat(), plan.model_set, plan.snapshot, canonical_json(plan.versions))
        ].append(plan)
    return list(groups.values())


def _sizes(
    platform: Platform, counted: TableSpec, plan: Plan, where: Sequence[tuple[str, str, object]]
) -> dict[str, int]:
    """Owner key → its rows of ``counted``, of those that ``where`` finds."""
    rows = platform.lake.read(counted, columns=["owner"], where=where, version=plan.versions.get(counted.name))
    return {item["values"]: item["counts"] for item in rows["owner"].value_counts().to_pylist()}


def _cut(owners: Sequence[str], sizes: Mapping[str, int]) -> list[list[str]]:
    groups: list[list[str]] = []
    size = 0
    for owner in owners:
        if not groups or size + sizes.get(owner, 0) > MOST_EXCHANGES or len(groups[-1]) >= MOST_REPLACED:
            groups.append([])
            size = 0
        groups[-1].append(owner)
        size += sizes.get(owner, 0)
    return groups


@dataclass(frozen=True)
class Subjects:
    """A portion's labelled exchanges, and the behaviour of the persons."""

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
    behaviour = behaviour_of(platform, portion.owners, portion.where)
    return Subjects(read_labelled(platform, portion, columns), histories(behaviour, portion.plan.as_of))


def read_labelled(
    platform: Platform, portion: Portion, columns: Sequence[str] | None = None
) -> dict[str, list[Labelled]]:
    """Owner key → labelled exchanges of the portion's owners, of committed days."""
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
    return labelled_exchanges(**tables, as_of=plan.as_of)


@uses_lake
def score_buckets(platform: Platform, buckets: Sequence[int], *, everything: bool = False) -> int:
    """Step 5; it opens the buckets' derivation. By the champion of the reward models, or by rules while there is
    none. Returns the exchanges scored."""
    champion = platform.registry.champion(KIND)
    model = None if champion is None else RewardModel(champion.body)
    begun = [platform.ledger.begin_derivation(bucket, everything=everything) for bucket in buckets]
    scored = 0
    for portion in portions(platform, [plan for plan in begun if plan is not None], EXCHANGES):
        plan = portion.plan
        subjects = read_subjects(platform, portion, SCORED)
        impacts = score_impacts(
            subjects.labelled,
            subjects.behaviour,
            as_of=plan.as_of,
            model_set=plan.model_set,
            predicted=None if model is None else _predicted(platform, portion, model),
            scored_by=RULES if model is None else model.model_id,
        )
        _replace_owners(platform, IMPACTS, portion, impacts)
        scored += impacts.num_rows
    return scored


def _predicted(platform: Platform, portion: Portion, model: RewardModel) -> dict[str, Stages]:
    """Exchange id → both stages of the decision impact by the model, at the plan's versions."""
    plan = portion.plan
    events = labelled_events(platform, plan.versions, plan.model_set, plan.as_of, portion.where)
    behaviour = behaviour_of(platform, portion.owners, portion.where)
    rows, features = event_features(events, behaviour, plan.as_of)
    stages = zip(model.predict(features).tolist(), model.predict(provisional(features)).tolist(), strict=True)
    return dict(zip(rows["exchange_id"].to_pylist(), stages, strict=True))


@uses_lake
def merge_buckets(platform: Platform, buckets: Sequence[int]) -> pa.Table:
    """Step 6; returns the columns ``SHOWN_SLICES`` of the planned owners' slices."""
    shown = [SLICES.schema.empty_table().select(SHOWN_SLICES)]
    for portion in portions(platform, _plans(platform, buckets)):
        plan = portion.plan
        subjects = read_subjects(platform, portion)
        impacts = _owned(platform, IMPACTS, portion)
        slices = merge_slices(
            subjects.labelled, impacts, subjects.behaviour, as_of=plan.as_of, model_set=plan.model_set
        )
        _replace_owners(platform, SLICES, portion, slices)
        shown.append(slices.select(SHOWN_SLICES))
    return pa.concat_tables(shown)


@uses_lake
def admit_buckets(platform: Platform, buckets: Sequence[int]) -> tuple[pa.Table, int]:
    """The gate; returns the columns ``SHOWN_DECISIONS`` of the planned owners' decisions, and their memories."""
    profile = replace(scenario_profile(platform.settings.scenario), arm_b_share=platform.settings.arm_b_share)
    population = cache(partial(snapshots, platform))
    shown = [DECISIONS.schema.empty_table().select(SHOWN_DECISIONS)]
    memories = 0
    for portion in portions(platform, _plans(platform, buckets)):
        slices = _owned(platform, SLICES, portion)
        decisions, admitted = _admit(slices, population(portion.plan.snapshot), profile, portion.plan)
        _replace_owners(platform, DECISIONS, portion, decisions)
        _replace_owners(platform, MEMORIES, portion, admitted)
        shown.append(decisions.select(SHOWN_DECISIONS))
        memories += admitted.num_rows
    return pa.concat_tables(shown), memories


def _admit(
    slices: pa.Table, population: Mapping[str, Snapshot], profile: Profile, plan: Plan
) -> tuple[pa.Table, pa.Table]:
    """Decisions and memories, each tenant by its own population."""
    decisions, memories = [DECISIONS.schema.empty_table()], [MEMORIES.schema.empty_table()]
    for tenant in sorted(pc.unique(slices["tenant"]).to_pylist()):
        own = slices.filter(pc.equal(slices["tenant"], tenant))
        snapshot = population.get(tenant, Snapshot(plan.snapshot))
        done = admit(own, snapshot, scenario=profile.name, as_of=plan.as_of, profile=profile)
        decisions.append(done.decisions)
        memories.append(done.memories)
    return pa.concat_tables(decisions), pa.concat_tables(memories)


def snapshots(platform: Platform, version: str) -> dict[str, Snapshot]:
    """Tenant → its figures in a version of the population snapshot; a tenant of few subjects has none."""
    if version == EMPTY:
        return {}
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    rows = platform.lake.read(POPULATION, columns=["tenant", "key", "subjects"], where=[("snapshot", "=", version)])
    for tenant, key, subjects in zip(*(column.to_pylist() for column in rows.columns), strict=True):
        counts[tenant][key] = subjects
    return {tenant: Snapshot(version, figures.pop(ALL_SUBJECTS), figures) for tenant, figures in counts.items()}


@dataclass(frozen=True)
class Linked:
    """``kinds``: edges of the planned owners by kind; ``shown``: the graph that there is most to see in."""

    kinds: Counter[str]
    shown: Portrait | None


@uses_lake
def link_buckets(platform: Platform, buckets: Sequence[int]) -> Linked:
    """Step 7, the edges."""
    kinds: Counter[str] = Counter()
    seen: list[Portrait] = []
    for portion in portions(platform, _plans(platform, buckets)):
        memories = platform.lake.read(MEMORIES, columns=MEMORY_COLUMNS, where=portion.where)
        slices = platform.lake.read(SLICES, columns=SLICE_COLUMNS, where=portion.where)
        behaviour = settled_events(platform.lake.read(BEHAVIOUR, where=portion.where))
        known = behaviour.filter(pc.less(behaviour["occurred_at"], pa.scalar(portion.plan.as_of, TIME)))
        edges = memory_edges(memories, slices, known)
        _replace_owners(platform, EDGES, portion, edges)
        kinds.update(edges["kind"].to_pylist())
        shown = portrait(memories, edges)
        seen += [] if shown is None else [shown]
    return Linked(kinds, max(seen, key=lambda shown: shown.worth, default=None))


@uses_lake
def publish_buckets(platform: Platform, buckets: Sequence[int]) -> Shown:
    """Step 7, the stores: publish the planned owners and end the buckets' derivation."""
    plans = _plans(platform, buckets)
    night = platform.ledger.last_night()  # memories do not grow younger because somebody is derived anew
    total = Shown()
    due: dict[str, datetime | None] = {}
    repeats: dict[str, tuple[int, int]] = {}
    for portion in portions(platform, plans):
        as_of = portion.plan.as_of if night is None else max(portion.plan.as_of, night)
        memories = _owned(platform, MEMORIES, portion)
        behaviour = _owned(platform, BEHAVIOUR, portion)
        total.add(publish_owners(platform, portion.owners, as_of, memories))
        due |= _due(platform, portion, memories, behaviour)
        repeats |= settle_events(platform, portion.owners, behaviour)
    for plan in plans:
        platform.ledger.end_derivation(plan, due, repeats)
    return total


@uses_lake
def derive_buckets(platform: Platform, buckets: Sequence[int], *, everything: bool = False) -> Shown:
    """Steps 5-7, one after the other."""
    score_buckets(platform, buckets, everything=everything)
    merge_buckets(platform, buckets)
    admit_buckets(platform, buckets)
    link_buckets(platform, buckets)
    return publish_buckets(platform, buckets)


def _plans(platform: Platform, buckets: Sequence[int]) -> list[Plan]:
    plans = [platform.ledger.plan(bucket) for bucket in buckets]
    if None in plans:
        raise InputError(
            "nothing to derive: no day is committed yet, or decision_impact was not materialised for the bucket"
        )
    return [plan for plan in plans if plan is not None]


def _owned(platform: Platform, spec: TableSpec, portion: Portion) -> pa.Table:
    return platform.lake.read(spec, where=portion.where)


def _replace_owners(platform: Platform, spec: TableSpec, portion: Portion, rows: pa.Table) -> None:
    """Replace the portion's owners' rows, and no others'."""
    places = Replace("bucket", tuple(str(bucket) for bucket in portion.buckets))
    platform.lake.write(spec, rows, [places, portion.reach or Replace("owner", portion.owners)])


def _due(platform: Platform, portion: Portion, memories: pa.Table, behaviour: pa.Table) -> dict[str, datetime | None]:
    """When each owner is to be derived again though nothing touches it: time alone changes its rows then."""
    as_of = portion.plan.as_of
    starts = times_of(platform.lake.read(IMPACTS, columns=["owner", "occurred_at"], where=portion.where))
    ahead = behaviour_ahead(platform, portion.owners, behaviour, as_of)
    views = next_views(memories, as_of, platform.settings.profile)
    due: dict[str, datetime | None] = {}
    for owner in portion.owners:
        change = next_change(starts.get(owner, []), ahead.get(owner, []), as_of)
        due[owner] = min((at for at in (change, views.get(owner)) if at is not None), default=None)
    return due
