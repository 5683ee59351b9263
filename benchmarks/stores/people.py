"""Invented persons with memories and a graph, of any number, the same for the same seed.

Belongs here: sizes, texts, edges. Does not belong here: a store.

Sizes are lognormal (median 8 memories, sigma 1.5: half of the memories belong to the 7 % of the persons who have the
most). Texts are invented, half Chinese, half English, of 2 to 7 sentences. Edges are nearly as many as
simulated logs have (3.6 a memory, most are mentions). A memory in 20 is cold: its text is archived, it is in neither
vectors nor graph.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

import numpy as np

from memory_pipelines.model import MemoryType, Owner, Tier, memory_id, stable_hash
from memory_pipelines.projection import embedded_text
from memory_pipelines.stores.base import GraphEdge, GraphNode, Vector
from memory_pipelines.stores.publish import Draft, OwnerState

TENANT = "bench"
MEDIAN_MEMORIES, SIGMA = 8, 1.5
COLD_SHARE = 0.05
START = datetime(2023, 1, 1, tzinfo=UTC)
INTENTS = ("logistics_complaint", "cancel_order", "praise", "order_status", "chit_chat", "refund_request")
SENTENCES = {
    "zh": (
        "上周二下单的{thing}到现在还没有发货，物流页面停在{number}号仓库。",
        "我和家人搬到了新的小区，以后请都送到东门的{number}号柜子。",
        "这款{thing}用了三个月，电池只能撑半天，想换一个新的。",
        "客服说{number}个工作日内退款，可是银行卡里一直没有到账。",
        "孩子对花生过敏，买零食的时候请帮我留意配料表。",
        "下个月要去出差{number}天，想提前把{thing}准备好。",
        "谢谢，昨天收到了{thing}，包装很结实，颜色也和图片一样。",
        "每天晚上十点以后不要打电话，发短信就可以。",
        "我比较喜欢安静一点的{thing}，价格在{number}元左右都能接受。",
    ),
    "en": (
        "The {thing} I ordered last Tuesday has still not left warehouse {number}, and the page shows no news.",
        "We have moved to a new flat, so please send everything to locker {number} at the east gate from now on.",
        "After three months the battery of this {thing} lasts half a day, and I would like to exchange it.",
        "I was promised a refund within {number} working days, but nothing has arrived on my card so far.",
        "My daughter is allergic to peanuts, so please check the list of ingredients before you suggest a snack.",
        "Next month I shall travel for {number} days and want to have the {thing} ready before I leave.",
        "Thank you, the {thing} came yesterday, well packed and in exactly the colour that the picture shows.",
        "Please do not call after ten in the evening, a short message is enough.",
        "I prefer a {thing} that is quiet, and anything around {number} dollars is fine with me.",
    ),
}
THINGS = {
    "zh": ("耳机", "吸尘器", "手表", "书架", "台灯", "空气炸锅", "行李箱", "键盘"),
    "en": ("headphones", "vacuum cleaner", "watch", "bookshelf", "desk lamp", "air fryer", "suitcase", "keyboard"),
}


@dataclass(frozen=True, slots=True)
class Subject:
    """A person by number, with how many memories."""

    number: int
    memories: int

    @property
    def owner(self) -> Owner:
        return Owner(TENANT, f"u:{self.number}")


def subjects(memories: int, seed: int) -> list[Subject]:
    """Persons that have ``memories`` together."""
    draw = Random(seed)
    found: list[Subject] = []
    left = memories
    while left:
        size = min(left, max(1, round(draw.lognormvariate(math.log(MEDIAN_MEMORIES), SIGMA))))
        found.append(Subject(len(found), size))
        left -= size
    return found


def state(subject: Subject, seed: int, *, changed: bool = False) -> OwnerState:
    """What the stores shall show of a person; ``changed``: one more memory, and new scores of a tenth of the others."""
    draw = Random(f"{seed}:{subject.number}")
    owner = subject.owner
    entities = [f"product/{subject.number}_{n}" for n in range(1 + subject.memories // 2)]
    drafts: list[Draft] = []
    nodes: list[GraphNode] = []
    edges: dict[tuple[str, str, str], GraphEdge] = {}
    slices: list[tuple[str, str]] = []
    at = START
    for i in range(subject.memories + changed):
        at += timedelta(minutes=draw.randint(1, 20_000))
        named = sorted({entities[int(draw.paretovariate(0.6) - 1) % len(entities)] for _ in range(draw.randint(1, 5))})
        draft = _draft(draw, owner, i, at, named, bonus=0.01 if changed and i % 10 == 0 else 0.0)
        drafts.append(draft)
        row = draft.payload
        slices += [(row["slice_ids"][0], turn) for turn in row["source_turn_ids"]]
        links = [("next", 1) if draw.random() < 0.65 else None, ("causes", 3) if draw.random() < 0.75 else None]
        links.append(("similar", 9) if draw.random() < 0.18 else None)
        if draft.tier == Tier.COLD:
            continue
        before = len(nodes)
        nodes.append(GraphNode(row["memory_id"], "slice", row["intent"], row["decision_impact"], at))
        found = [(row["memory_id"], f"entity:{name}", "mentions") for name in named]
        found += [
            (nodes[before - back].node_id, row["memory_id"], kind)
            for kind, back in filter(None, links)
            if back <= before
        ]
        edges |= {key: GraphEdge(*key, 0.25 + len(key[2]) / 16) for key in found}
    reached = sorted({target for _, target, kind in edges if kind == "mentions"})
    nodes += [GraphNode(name, "entity", name.removeprefix("entity:"), 0.0, None) for name in reached]
    return OwnerState(owner, drafts, nodes, list(edges.values()), sorted(slices))


def _draft(draw: Random, owner: Owner, number: int, at: datetime, entities: list[str], bonus: float) -> Draft:
    language = draw.choice(("zh", "en"))
    said = [
        draw.choice(SENTENCES[language]).format(thing=draw.choice(THINGS[language]), number=draw.randint(2, 9999))
        for _ in range(draw.randint(2, 7))
    ]
    turns = [stable_hash("turn", owner.subject, number, side) for side in ("own", "reply")]
    tier = Tier.COLD if draw.random() < COLD_SHARE else draw.choice((Tier.HOT, Tier.WARM))
    summary, text = said[0], "\n".join(said[1:])
    payload = {
        "memory_id": memory_id(owner, MemoryType.EPISODIC, turns[0]),
        "owner": owner.key,
        "tenant": owner.tenant,
        "subject": owner.subject,
        "memory_type": MemoryType.EPISODIC.value,
        "permanence": "long",
        "term": "long",
        "summary": summary,
        "text": text,
        "language": language,
        "predicate": "",
        "value": "",
        "structured": "{}",
        "confidence": draw.random(),
        "trust": 0.5,
        "score": 0.6 + draw.random() / 4 + bonus,
        "decision_impact": draw.random(),
        "intent": draw.choice(INTENTS),
        "entities": entities,
        "slice_ids": [f"evt_{at:%Y%m%d}_{stable_hash('slice', turns[0])}"],
        "source_turn_ids": turns,
        "stores": ["relational", "vector", "graph"],
        "occurred_at": at,
        "valid_from": None,
        "valid_to": None,
        "expires_at": None,
        "path": "rules",
        "model_set": "bench",
    }
    return Draft(payload, tier, None if tier == Tier.COLD else embedded_text(summary, text))


class Directions:
    """Random vectors of norm 1, which stand for an embedding: as far apart as can be, so the index has it hardest."""

    def __init__(self, dimension: int, seed: int) -> None:
        self._dimension = dimension
        self._draw = np.random.default_rng(seed)

    def __call__(self, texts: Sequence[str]) -> list[Vector]:
        rows = self._draw.standard_normal((len(texts), self._dimension), dtype=np.float32)
        return list(rows / np.linalg.norm(rows, axis=1, keepdims=True))
