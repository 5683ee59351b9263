"""Memories that are alike by the graph embedding.

Belongs here: edges ``similar``. Does not belong here: the embedding itself (``embedding``), edges by rule.
"""

from collections import defaultdict
from collections.abc import Sequence

from memory_pipelines.slices.graph.embedding import embed, similar
from memory_pipelines.slices.graph.links import MENTIONS, TOPIC_MENTIONS
from memory_pipelines.slices.graph.nodes import Edges, Memory

SIMILAR = "similar"
SIMILAR_FROM = 0.8
SHARING, APART = 0.8, 0.5
"""What a cosine counts where both name an entity that few others name, and where they do not."""


def alike(memories: Sequence[Memory], edges: Edges) -> Edges:
    """The nearest by graph embedding that no direct edge links yet, at most three a memory: cosine · ``SHARING`` or
    ``APART``. ``edges`` is the graph."""
    nodes = sorted({end for source, target, _ in edges for end in (source, target)})
    index = {node: i for i, node in enumerate(nodes)}
    undirected: dict[tuple[int, int], float] = {}
    holders: dict[str, int] = defaultdict(int)
    for (source, target, kind), weight in edges.items():
        one, other = index[source], index[target]
        pair = (one, other) if one < other else (other, one)
        undirected[pair] = max(weight, undirected.get(pair, 0.0))
        if kind == MENTIONS:
            holders[target.partition(":")[2]] += 1
    known = sorted((m for m in memories if m.node in index), key=lambda m: m.node)
    rows = [index[m.node] for m in known]
    result: Edges = {}
    for (i, j), cosine in similar(embed(nodes, undirected)[rows], SIMILAR_FROM).items():
        if (rows[i], rows[j]) not in undirected:  # ids and nodes are sorted alike
            shared = set(known[i].entities).intersection(known[j].entities)
            sharing = any(holders[entity] <= TOPIC_MENTIONS for entity in shared)
            result[known[i].node, known[j].node, SIMILAR] = round(cosine * (SHARING if sharing else APART), 4)
    return result
