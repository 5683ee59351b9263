"""Do edges join what belongs together? Lift of each kind of edge on evidence of one question, or of one order.

Belongs here: pairs that belong together, pairs that edges join, their lift. Does not belong here: drawing edges.

Two memories of a subject belong together if both hold evidence of one question (LoCoMo, MemDaily), or speak of one
order (the simulator). Lift = share of joined pairs that belong together / share of all pairs of a subject that do.
``weight`` = 1 − 1 / lift: the share that belongs together for another reason than chance. In public sets every slice
counts as admitted ("slices"), or what the gate admits does ("admitted").
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks.conversions import locomo_questions
from benchmarks.graph.worlds import World

MOST_HOLDERS = 400
"""Entities that more memories name are left out of the pairs: what they say is chance already."""
Node = tuple[str, str]
"""Owner and node."""


@dataclass(frozen=True)
class Lift:
    kind: str
    pairs: int
    together: int
    share: float
    lift: float

    @property
    def weight(self) -> float:
        return max(0.0, 1 - 1 / self.lift) if self.lift else 0.0


def questions(name: str, data: Path) -> Iterator[tuple[str, ...]]:
    """Turn ids of each question's evidence."""
    if name == "locomo":
        for sample in json.loads((data / "locomo" / "locomo_dev.json").read_text(encoding="utf-8")):
            for question in locomo_questions(sample):
                yield question.evidence
        return
    for path in sorted((data / "memdaily_zh").glob("*.json")):
        for trajectory in json.loads(path.read_text(encoding="utf-8")):
            for item in trajectory["question_list"]:
                if "[ERROR" not in item["question"] and "[ERROR" not in str(item["answer"]):
                    yield tuple(f"{path.stem}/{trajectory['tid']}/{mid}" for mid in _flat(item["target_step_id"]))


def orders(world: World) -> Iterator[tuple[str, ...]]:
    """Turn ids of all that was said of each order."""
    said: dict[tuple[object, object, object], list[str]] = defaultdict(list)
    for row in world.truth["events"]:
        said[row["tenant"], row["person"], row["order"]] += _strings(row["turn_ids"])
    yield from map(tuple, said.values())


def every_slice(world: World) -> pa.Table:
    """Each slice as a long-term episode, as if the gate let everything pass."""
    from memory_pipelines.tables import MEMORIES

    kept = ("tenant", "subject", "owner", "bucket", "occurred_at", "intent", "own_turn_ids")
    rows = []
    for row in world.slices.to_pylist():
        memory: dict[str, Any] = dict.fromkeys(MEMORIES.schema.names) | {name: row[name] for name in kept}
        memory |= {"memory_id": row["slice_id"], "slice_ids": [row["slice_id"]], "memory_type": "episodic"}
        memory |= {"term": "long", "stores": ["graph"], "confidence": 1.0}
        rows.append(memory | {"entities": sorted({e["canonical"] for e in row["entities"]})})
    return pa.Table.from_pylist(rows, schema=MEMORIES.schema)


def lifts(world: World, memories: pa.Table, groups: Iterator[tuple[str, ...]]) -> tuple[dict[str, float], list[Lift]]:
    """What there is (memories, pairs, pairs that belong together, their share), and the lift by kind of edge."""
    from memory_pipelines.slices.graph.nodes import is_chosen

    chosen = [row for row in memories.to_pylist() if is_chosen(row)]
    holding: dict[str, list[Node]] = defaultdict(list)
    for row in chosen:
        for turn in row["own_turn_ids"]:
            holding[turn].append((row["owner"], row["memory_id"]))
    together = set()
    for turns in groups:
        nodes = sorted({node for turn in turns for node in holding.get(turn, ())})
        together |= {(a, b) for a, b in combinations(nodes, 2) if a[0] == b[0]}
    pairs = sum(n * (n - 1) // 2 for n in Counter(row["owner"] for row in chosen).values())
    share = len(together) / pairs
    result = []
    for kind, joined in sorted(_joined(world, memories, {row["memory_id"]: row for row in chosen}).items()):
        right = len(joined & together)
        result.append(Lift(kind, len(joined), right, right / len(joined), right / len(joined) / share))
    return {"memories": len(chosen), "pairs": pairs, "together": len(together), "share": share}, result


def _joined(world: World, memories: pa.Table, chosen: dict[str, dict[str, Any]]) -> dict[str, set[tuple[Node, Node]]]:
    """Kind of edge → pairs of memories that it joins."""
    from memory_pipelines.slices.graph.edges import memory_edges

    groups: dict[str, set[tuple[Node, Node]]] = defaultdict(set)
    holders: dict[Node, list[Node]] = defaultdict(list)
    direct = []
    for edge in memory_edges(memories, world.slices, world.behaviour).to_pylist():
        source, target = (edge["owner"], edge["source"]), (edge["owner"], edge["target"])
        if edge["kind"] == "mentions":
            holders[target].append(source)
        elif edge["source"] in chosen and edge["target"] in chosen:
            pair = (source, target) if source < target else (target, source)
            groups[edge["kind"]].add(pair)
            direct.append((edge["kind"], edge["weight"], pair))
    for kind, weight, pair in direct:
        if kind == "next":
            groups[f"next, weight {weight}"].add(pair)
        if kind == "similar":
            shared = set(chosen[pair[0][1]]["entities"]) & set(chosen[pair[1][1]]["entities"])
            groups["similar, sharing an entity" if shared else "similar, sharing none"].add(pair)
    for (_, entity), named in holders.items():
        if 2 <= len(named) <= MOST_HOLDERS:
            low = 2 ** int(math.log2(len(named)))
            joined = set(combinations(sorted(named), 2))
            groups[f"an entity of {low:3} to {2 * low - 1}"] |= joined
            if len(named) < 16:
                groups[f"an entity of 2 to 15, {entity.partition(':')[2].partition('/')[0]}"] |= joined
    return groups


def _flat(ids: Any) -> Iterator[int]:
    if isinstance(ids, list):
        for item in ids:
            yield from _flat(item)
    else:
        yield ids


def _strings(value: Any) -> list[str]:
    return list(value)
