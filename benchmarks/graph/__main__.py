"""The slice graph measured: cause → effect, lift of edges, edges per slice, speed.

    python -m benchmarks.graph [--turns 30000] [--seeds 7 101 202] [--sizes 1000 100000] [--out FILE] [DATA_FOLDER]

Belongs here: the protocol, and what is printed. Does not belong here: how each figure comes about (the modules beside).

Protocol: simulated logs of 100 days (``memory_pipelines.sample``) of so many turns for each seed go through steps 1 to
6 and the gate, with embedded servers; rules and weights were chosen on seed 7. With a data folder, LoCoMo and MemDaily
go the same way. Edges are drawn from the tables. The speed is that of one subject.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from benchmarks.graph import causes, evidence, scale
from benchmarks.graph.worlds import World, public, simulated
from benchmarks.machine import describe, line


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.graph", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, nargs="?", help="folder of the public sets, one folder each")
    parser.add_argument("--turns", type=int, default=30_000, help="size of the simulated logs")
    parser.add_argument("--seeds", type=int, nargs="*", default=[7, 101, 202])
    parser.add_argument("--sizes", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    arguments = parser.parse_args(argv)
    if arguments.data is not None and not arguments.data.is_dir():
        parser.error(f"{arguments.data} is no folder")
    machine = describe()
    print(line(machine), flush=True)
    figures: dict[str, Any] = {"machine": machine}
    figures["scale"] = [_scale(size) for size in arguments.sizes]
    figures["simulated"] = {seed: _simulated(simulated(arguments.turns, seed), seed) for seed in arguments.seeds}
    if arguments.data is not None:
        figures["public"] = {name: _public(name, arguments.data) for name in ("locomo", "memdaily")}
    if arguments.out:
        arguments.out.write_text(json.dumps(figures, indent=1), encoding="utf-8")
    return 0


def _scale(size: int) -> dict[str, Any]:
    wall, processor, edges = scale.timed(size)
    found = scale.degrees(edges)
    kinds = Counter(kind for _, _, kind in edges)
    row = {"slices": size, "wall": round(wall, 2), "processor": round(processor, 2), "edges": len(edges)}
    row |= {"degree_p50": found[len(found) // 2], "degree_p99": found[len(found) * 99 // 100], "degree_max": found[-1]}
    print(f"{size:>8} slices of one subject: {row}; {dict(kinds)}", flush=True)
    return row | {"kinds": dict(kinds)}


def _simulated(world: World, seed: int) -> dict[str, Any]:
    from memory_pipelines.slices.graph.edges import memory_edges

    edges = memory_edges(world.memories, world.slices, world.behaviour)
    figures: dict[str, Any] = {"slices": world.slices.num_rows, "memories": world.memories.num_rows}
    figures["kinds"] = dict(Counter(edges["kind"].to_pylist()).most_common())
    print(f"\n== simulator, seed {seed}: {figures}")
    for name, score in causes.scores(world).items():
        print(
            f"{name:26} precision {score.precision:.3f} recall {score.recall:.3f} F1 {score.f1:.3f}"
            f" ({score.edges} edges, {score.pairs} pairs)"
        )
        figures[name] = {"precision": score.precision, "recall": score.recall, "f1": score.f1, "edges": score.edges}
        if name == "rules":
            for (cause, effect), (right, drawn) in score.by.items():
                print(f"    {cause:16} → {effect:16} {right:5} of {drawn:5} right")
    figures["lift"] = _lifts(world, "admitted, one order", world.memories, evidence.orders(world))
    return figures


def _public(name: str, data: Path) -> dict[str, Any]:
    world = public(name, data)
    print(f"\n== {name}: {world.slices.num_rows} slices, {world.memories.num_rows} memories")
    slices = _lifts(world, "slices", evidence.every_slice(world), evidence.questions(name, data))
    return {"slices": slices, "admitted": _lifts(world, "admitted", world.memories, evidence.questions(name, data))}


def _lifts(world: World, what: str, memories: Any, groups: Any) -> dict[str, Any]:
    base, found = evidence.lifts(world, memories, groups)
    print(f"{what}: {base}")
    for item in found:
        print(
            f"    {item.kind:36} {item.pairs:6} pairs, {item.together:5} together ({item.share:.4f}),"
            f" lift {item.lift:6.1f}, weight {item.weight:.2f}"
        )
    sys.stdout.flush()
    return {"base": base, "kinds": [asdict(item) for item in found]}


if __name__ == "__main__":
    sys.exit(main())
