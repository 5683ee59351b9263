"""Cause → effect against the simulator's known causes.

Belongs here: the score, what chance would give, what is left without order numbers. Does not belong here: inference.

An edge is right if one of its cause's own turns (or its event) and one of its effect's are a pair of ``truth/causes``.
Precision: right edges of all edges ``causes``, also of those to talk that the truth does not speak of. Recall: pairs
of the truth with a right edge, of all pairs, also of those that no subject's graph can hold (somebody logs in between).
Chance knows which effects have a cause, of what sort, and within how many days: it takes any such thing of the subject
("any"), or the latest ("latest").
"""

import random
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.graph.worlds import World

Pair = tuple[str, str, str]
"""Owner, cause node, effect node."""


@dataclass(frozen=True)
class Score:
    """``by``: (cause, effect) → right edges, edges."""

    edges: int
    right: int
    pairs: int
    found: int
    by: Mapping[tuple[str, str], tuple[int, int]]

    @property
    def precision(self) -> float:
        return self.right / self.edges if self.edges else 0.0

    @property
    def recall(self) -> float:
        return self.found / self.pairs if self.pairs else 0.0

    @property
    def f1(self) -> float:
        total = self.precision + self.recall
        return 2 * self.precision * self.recall / total if total else 0.0


def scores(world: World) -> dict[str, Score]:
    """By the rules, without any order number, and by chance."""
    rules = inferred(world)
    bare = without_orders(world)
    return {
        "rules": judged(world, rules),
        "rules, no order numbers": judged(world, inferred(bare)),
        "chance: latest": judged(world, by_chance(world, rules, latest=True)),
        "chance: any": judged(world, by_chance(world, rules, latest=False)),
    }


def inferred(world: World) -> list[Pair]:
    from memory_pipelines.slices.graph.edges import memory_edges

    edges = memory_edges(world.memories, world.slices, world.behaviour)
    found = edges.filter(pc.equal(edges["kind"], "causes"))
    return list(zip(*(found[name].to_pylist() for name in ("owner", "source", "target")), strict=True))


def without_orders(world: World) -> World:
    """The same world, where nobody names an order number and no event refers to one."""
    named = world.memories["entities"].to_pylist()
    kept = [[name for name in names or () if not name.startswith("order_number/")] for names in named]
    entities = pa.array(kept, world.memories.schema.field("entities").type)
    nothing = pa.nulls(world.behaviour.num_rows, pa.string())
    places = world.memories.schema.get_field_index("entities"), world.behaviour.schema.get_field_index("reference")
    return replace(
        world,
        memories=world.memories.set_column(places[0], "entities", entities),
        behaviour=world.behaviour.set_column(places[1], "reference", nothing),
    )


def judged(world: World, pairs: Sequence[Pair]) -> Score:
    ids, names, _ = _nodes(world)
    truth: dict[tuple[object, str, str], set[int]] = defaultdict(set)
    for number, row in enumerate(world.truth["causes"]):
        for cause in _ids(row["cause_ids"]):
            for effect in _ids(row["effect_ids"]):
                truth[row["tenant"], cause, effect].add(number)
    found: set[int] = set()
    by: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0])
    tenants = dict(zip(world.memories["owner"].to_pylist(), world.memories["tenant"].to_pylist(), strict=True))
    for owner, cause, effect in pairs:
        told = [truth.get((tenants[owner], a, b), set()) for a in ids[owner, cause] for b in ids[owner, effect]]
        hit = set().union(*told)
        found |= hit
        counts = by[names[owner, cause], names[owner, effect]]
        counts[0] += bool(hit)
        counts[1] += 1
    return Score(
        len(pairs),
        sum(right for right, _ in by.values()),
        len(world.truth["causes"]),
        len(found),
        {key: (right, edges) for key, (right, edges) in sorted(by.items())},
    )


def by_chance(world: World, pairs: Sequence[Pair], *, latest: bool) -> list[Pair]:
    """For each pair another cause of the same sort before the effect, within the days of the rule."""
    from memory_pipelines.slices.graph.rules import cause_rules

    _, names, times = _nodes(world)
    things: dict[tuple[str, str], list[tuple[datetime, str]]] = defaultdict(list)
    for (owner, node), at in times.items():
        things[owner, names[owner, node]].append((at, node))
    for known in things.values():
        known.sort()
    drawn = random.Random(7)
    result = []
    for owner, cause, effect in pairs:
        name = names[owner, cause]
        rules = cause_rules().by_effect[names[owner, effect]]
        within = max(tie.within for rule in rules if name in rule.causes for tie in rule.ties.values())
        known, until = things[owner, name], times[owner, effect]
        some = known[bisect_left(known, (until - within, "")) : bisect_left(known, (until, ""))]
        result.append((owner, (some[-1] if latest else drawn.choice(some))[1], effect))
    return result


def _ids(value: Any) -> list[str]:
    return list(value)


def _nodes(
    world: World,
) -> tuple[dict[tuple[str, str], list[str]], dict[tuple[str, str], str], dict[tuple[str, str], datetime]]:
    """By owner and node: ids of the log, class of intents or kind of event, time."""
    from memory_pipelines.slices.graph.nodes import event_node
    from memory_pipelines.slices.graph.rules import class_of

    ids: dict[tuple[str, str], list[str]] = {}
    names: dict[tuple[str, str], str] = {}
    times: dict[tuple[str, str], datetime] = {}
    columns = ["owner", "memory_id", "memory_type", "own_turn_ids", "intent", "occurred_at"]
    for row in world.memories.select(columns).to_pylist():
        key = row["owner"], row["memory_id"]
        if row["memory_type"] == "episodic":
            ids[key], names[key] = row["own_turn_ids"], class_of(row["intent"] or "") or ""
            times[key] = row["occurred_at"]
    for row in world.behaviour.select(["owner", "event_id", "kind", "occurred_at"]).to_pylist():
        key = row["owner"], event_node(row["kind"], row["event_id"])
        ids[key], names[key], times[key] = [row["event_id"]], row["kind"], row["occurred_at"]
    return ids, names, times
