"""A picture of one subject's slice graph, for the metadata of a run.

Belongs here: which subject and which of its nodes are shown, what they are called, drawing. Does not belong here:
edges. A run's metadata is never pruned, so a picture holds nothing of a person: intents, the word ``fact``, kinds of
behaviour, days counted from the first memory shown, and names of entities that ship with the product. Any other
entity is shown as its kind.
"""

import io
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.model import MemoryType
from memory_pipelines.slices.graph.nodes import ENTITY, EVENT, Row
from memory_pipelines.slices.resources import read_yaml

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_MEMORIES = 16
MOST_ENTITIES = 14
LANES = ("entities", "facts", "slices", "behaviour")
COLOURS = {
    "mentions": "#b0b0b0",
    "evidence": "#8172b3",
    "causes": "#c44e52",
    "next": "#4c72b0",
    "same_topic": "#55a868",
    "similar": "#dd8452",
}
SEEN = {"mentions": 0, "causes": 4}
"""How much an edge adds to what there is to see; other kinds 1."""
DPI = 90


@dataclass(frozen=True)
class Dot:
    """A node as shown; ``x`` is its place in the order of time."""

    label: str
    lane: str
    x: float


@dataclass(frozen=True)
class Portrait:
    """One graph without anybody in it. ``worth``: how much there is to see; the greatest is shown."""

    worth: tuple[bool, int, int, int]
    dots: tuple[Dot, ...]
    links: tuple[tuple[int, int, str, float], ...]
    """Positions in ``dots``, kind and weight."""


def portrait(memories: pa.Table, edges: pa.Table) -> Portrait | None:
    """The most telling graph of the owners in EDGES rows: one with causes, of most kinds of edges; None without any."""
    by_owner: dict[str, list[Row]] = defaultdict(list)
    for row in edges.select(["owner", "source", "target", "kind", "weight"]).to_pylist():
        by_owner[row["owner"]].append(row)
    if not by_owner:
        return None
    worth = {owner: _worth(rows) for owner, rows in by_owner.items()}
    owner = max(worth, key=lambda name: (worth[name], name))
    columns = ["memory_id", "memory_type", "intent", "occurred_at"]
    own = memories.filter(pc.equal(memories["owner"], owner)).select(columns)
    return _drawn(worth[owner], {row["memory_id"]: row for row in own.to_pylist()}, by_owner[owner])


def _worth(edges: Sequence[Row]) -> tuple[bool, int, int, int]:
    """A graph that is larger than a picture counts no more than a full one."""
    kinds = {edge["kind"] for edge in edges}
    causes = sum(edge["kind"] == "causes" for edge in edges)
    return causes > 0, len(kinds), min(causes, MOST_MEMORIES), -abs(len(edges) - 3 * MOST_MEMORIES)


def _drawn(worth: tuple[bool, int, int, int], memories: Mapping[str, Row], edges: Sequence[Row]) -> Portrait:
    shown = _window(memories, edges)
    first = memories[shown[0]]["occurred_at"] if shown else None
    place: dict[str, Dot] = {}
    for x, name in enumerate(shown):
        row = memories[name]
        days = (row["occurred_at"] - first).days
        said = "fact" if row["memory_type"] == MemoryType.SEMANTIC else (row["intent"] or "slice")
        lane = "facts" if row["memory_type"] == MemoryType.SEMANTIC else "slices"
        place[name] = Dot(f"{said}\nday {days}", lane, float(x))
    others: dict[str, list[float]] = defaultdict(list)
    for edge in edges:
        for near, far, shift in ((edge["source"], edge["target"], 0.35), (edge["target"], edge["source"], -0.35)):
            if near in place and far not in memories:
                others[far].append(place[near].x + (shift if far.startswith(EVENT) else 0.0))
    named = (n for n in others if n.startswith(ENTITY))
    telling = (n for n in named if len(others[n]) > 1 or n.removeprefix(ENTITY) in _public())
    entities = sorted(telling, key=lambda n: (-len(others[n]), n))[:MOST_ENTITIES]
    for name in sorted(entities, key=lambda n: (sum(others[n]) / len(others[n]), n)):
        place[name] = Dot(_entity_label(name), "entities", sum(others[name]) / len(others[name]))
    for name in sorted(n for n in others if n.startswith(EVENT)):
        place[name] = Dot(name.split(":")[1], "behaviour", sum(others[name]) / len(others[name]))
    drawn = [e for e in edges if e["source"] in place and e["target"] in place]
    ends = {end for edge in drawn for end in (edge["source"], edge["target"])}
    names = sorted(ends, key=lambda n: (LANES.index(place[n].lane), place[n].x, n))
    at = {name: i for i, name in enumerate(names)}
    links = tuple((at[e["source"]], at[e["target"]], e["kind"], e["weight"]) for e in drawn)
    return Portrait(worth, tuple(place[name] for name in names), links)


def _window(memories: Mapping[str, Row], edges: Sequence[Row]) -> list[str]:
    """Consecutive memories in order of time, those between which there is the most to see."""
    ends = {end for edge in edges for end in (edge["source"], edge["target"])}
    known = sorted((n for n in memories if n in ends), key=lambda n: (memories[n]["occurred_at"], n))
    at = {name: i for i, name in enumerate(known)}
    counts = [0] * (len(known) + 1)
    for edge in edges:
        last = max(at.get(edge["source"], -1), at.get(edge["target"], -1))
        counts[last] += SEEN.get(edge["kind"], 1)
    starts = range(max(1, len(known) - MOST_MEMORIES + 1))
    best = max(starts, key=lambda i: (sum(counts[i : i + MOST_MEMORIES]), -i))
    return known[best : best + MOST_MEMORIES]


@cache
def _public() -> frozenset[str]:
    """Canonical ids of organisations, places and products that ship with the product."""
    names = {f"{kind}/{key}" for kind, items in read_yaml("organisations.yaml").items() for key in items}
    names |= {f"place/{key}" for key in read_yaml("places.yaml")["place"]}
    return frozenset(names | {f"product/{key}" for key in read_yaml("products.yaml")["kinds"]})


def _entity_label(node: str) -> str:
    canonical = node.removeprefix(ENTITY)
    kind, _, name = canonical.partition("/")
    return name if canonical in _public() else kind


def draw(shown: Portrait) -> bytes:
    """PNG: time from left to right, a lane for each sort of node, a colour for each kind of edge, width by weight."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

    width = max([dot.x for dot in shown.dots], default=0.0)
    figure = Figure(figsize=(min(18.0, 4.0 + 0.85 * width), 6.4), dpi=DPI, layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    spots = _spots(shown.dots)
    for source, target, kind, weight in shown.links:
        _draw_link(axes, spots[source], spots[target], kind, weight)
    for dot, (x, y) in zip(shown.dots, spots, strict=True):
        box: dict[str, Any] = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": "#444444"}
        axes.text(x, y, dot.label, fontsize=7, ha="center", va="center", bbox=box, zorder=3)
    axes.set_yticks([_height(lane) for lane in LANES], list(LANES))
    axes.set_xticks([])
    axes.set_xlim(-0.8, width + 0.8)
    axes.set_ylim(-0.8, _height(LANES[0]) + 0.8)
    for side in ("top", "right", "bottom", "left"):
        axes.spines[side].set_visible(False)
    present = [kind for kind in COLOURS if any(link[2] == kind for link in shown.links)]
    handles = [Line2D([], [], color=COLOURS[kind], linewidth=2) for kind in present]
    figure.legend(handles, present, loc="outside lower center", ncols=len(COLOURS), fontsize=8, frameon=False)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})  # equal graphs give equal bytes
    return buffer.getvalue()


def _height(lane: str) -> float:
    return 2.0 * (len(LANES) - 1 - LANES.index(lane))


def _spots(dots: Sequence[Dot]) -> list[tuple[float, float]]:
    """Where each dot is drawn: neighbours of a lane stand on three steps, so that labels do not cover each other."""
    seen: dict[str, int] = defaultdict(int)
    spots = []
    for dot in dots:
        step = (0.0, 0.45, -0.45)[seen[dot.lane] % 3]
        seen[dot.lane] += 1
        spots.append((dot.x, _height(dot.lane) + step))
    return spots


def _draw_link(axes: "Axes", start: tuple[float, float], end: tuple[float, float], kind: str, weight: float) -> None:
    arrow = "-|>" if kind in ("causes", "next", "evidence") else "-"
    bend = 0.0 if kind in ("mentions", "evidence") else {"next": -0.25, "causes": 0.15}.get(kind, 0.3)
    properties = {
        "arrowstyle": arrow,
        "color": COLOURS[kind],
        "linewidth": 0.6 + 2 * weight,
        "alpha": 0.45 if kind == "mentions" else 0.85,
        "connectionstyle": f"arc3,rad={bend}",
        "shrinkA": 8,
        "shrinkB": 8,
    }
    axes.annotate("", xy=end, xytext=start, arrowprops=properties, zorder=1)
