"""Memories and edges per second of every store, latency of publishing batches, reads at that size.

    python -m benchmarks.stores [--servers embedded|real] [--memories 100000] [--minutes 12] [--out FILE.json]

Belongs here: the protocol, the table. Does not belong here: what is timed (``measure``).

Protocol: invented persons (``people``, seed 7) whose sizes have a long tail; texts in two languages, 3.6 edges a
memory, a memory in 20 cold; random vectors of the shipped embedder's dimension stand for embeddings and their making
is not counted. They are written by the product's publisher and adapters, bucket by bucket, in the publisher's batches
of 2,000 memories, by one process into empty stores; then 1 % of the persons are published changed (one memory more,
new scores of a tenth, so a graph anew). What does not answer in time is tried again, as jobs do. A store's rate counts
the seconds in its adapter's calls alone, the publisher's all. A batch lasts from its first look at the pointers to its
last transaction. Reads are whole recalls without packs, and what a recall calls, of persons drawn by how much they
have, one caller, once the vector store answers again after the writing.
``--servers real``: those of ``make test-servers``, with TLS and passwords, on the same machine. One run.
"""

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.machine import describe, line

WRITES = (
    ("relational", "memories", ("authority.prepare", "authority.commit", "authority.finish")),
    ("vectors", "vectors", ("vectors.upsert", "vectors.delete")),
    ("graph", "nodes", ("graph.write", "graph.drop")),
    ("graph", "edges", ("graph.write", "graph.drop")),
    ("cold", "texts", ("cold.archive", "cold.delete")),
    ("hot", "persons", ("hot.delete",)),
)
"""Store, what it is counted in, the calls that write it: nodes and edges come in the same calls."""


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stores", description=__doc__.partition("\n")[0])
    parser.add_argument("--servers", choices=("embedded", "real"), default="embedded", help="whose stores")
    parser.add_argument("--memories", type=int, default=100_000, help="memories of all persons together")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="begin no writing after so many")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    arguments = parser.parse_args(argv)
    from benchmarks.stores import measure, site

    machine = describe()
    print(line(machine), flush=True)
    with (site.embedded if arguments.servers == "embedded" else site.real)() as found:
        empty = found.disk_mb()
        figures = measure.run(
            found.stores,
            arguments.memories,
            servers=found.processor_seconds,
            most_seconds=60 * arguments.minutes,
            say=lambda text: print(text, file=sys.stderr, flush=True),
        )
        figures |= {
            "servers": arguments.servers,
            "versions": dict(found.servers),
            "disk_mb": {role: full - empty[role] for role, full in found.disk_mb().items()},
            "load_after": [round(x, 2) for x in os.getloadavg()],
        }
    print(table(figures))
    if arguments.out:
        arguments.out.write_text(json.dumps({"machine": machine, "figures": figures}, indent=1), encoding="utf-8")
    return 0


def table(figures: Mapping[str, Any]) -> str:
    """The figures as lines: what was written, the two publishes, reads, files."""
    held, servers = figures["held"], ", ".join(f"{role}: {name}" for role, name in figures["versions"].items())
    lines = [
        f"\n{figures['servers']} ({servers}); load after {figures['load_after']}",
        f"{figures['memories']} of {figures['asked']} memories of {figures['persons']} persons (median "
        f"{figures['median_size']}, largest {figures['largest']}); held: {held['vectors']} vectors, "
        f"{held['nodes']} nodes, {held['edges']} edges",
    ]
    for title, name in (("first publish", "first"), ("1 % of the persons changed", "changed")):
        lines += ["", *_published(title, figures[name])]
    lines += ["", f"{'reads, milliseconds':<34}{'n':>8}{'median':>10}{'p95':>10}"]
    for name, times in figures["reads"].items():
        if isinstance(times, Mapping):
            lines.append(f"{name:<34}{times['n']:>8}{1000 * times['median']:>10.1f}{1000 * times['p95']:>10.1f}")
        else:
            lines.append(f"{name.replace('_', ' '):<34}{times:>18.0f}")
    sizes = ", ".join(f"{role} {size:.0f}" for role, size in figures["disk_mb"].items())
    return "\n".join([*lines, "", f"files grew by, MB: {sizes}"])


def _published(title: str, told: Mapping[str, Any]) -> list[str]:
    batch, seconds = told["batch"], told["seconds"]
    lines = [
        f"{title}: {told['memories']} memories, {told['persons']} persons in {seconds:.1f} s, "
        f"{told['memories'] / seconds:.0f} memories/s; this process {told['processor_seconds']:.1f} s of processor",
        f"batches: {batch['n']}, median {batch['median']:.2f} s, p95 {batch['p95']:.2f} s, most {batch['most']:.2f} s; "
        f"a store did not answer in time {told['unanswered']} times",
        f"{'store':<12}{'unit':<12}{'n':>10}{'seconds':>10}{'of all':>8}{'units/s':>10}{'server, s':>11}",
    ]
    for role, unit, calls in WRITES:
        spent = sum(told["calls"].get(call, {"seconds": 0.0})["seconds"] for call in calls)
        rate = f"{told[unit] / spent:>10.0f}" if spent else f"{'-':>10}"
        server = told["server_processor_seconds"].get(role, 0.0)
        lines.append(f"{role:<12}{unit:<12}{told[unit]:>10}{spent:>10.1f}{spent / seconds:>8.0%}{rate}{server:>11.1f}")
    inside = sum(call["seconds"] for name, call in told["calls"].items() if name != "embed")
    lines.append(f"{'outside of the stores':<34}{seconds - inside:>10.1f}{(seconds - inside) / seconds:>8.0%}")
    return lines


if __name__ == "__main__":
    sys.exit(main())
