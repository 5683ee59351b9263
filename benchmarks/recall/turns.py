"""The turn index: every turn of a history is a memory, and the product's own reader is asked.

Belongs here: turns as memories, the rankings that are compared, the ablations. Does not belong here: what the gate
keeps (``kept``), measures.

A turn becomes an episodic memory with its text (and who said it) and its time: no facts, no graph, neutral trust. An
answer's items count in the order of their scores; the token budget is out of the way, the reader's thresholds are not.
An item covers its one turn.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta

import numpy as np

from benchmarks.recall.figures import Judged, judge
from benchmarks.recall.sets import History, Question, Turn
from benchmarks.recall.store import Stores
from memory_pipelines.model import Owner
from memory_pipelines.models.base import Embedder, Vectors
from memory_pipelines.recall import dense, text
from memory_pipelines.recall.bm25 import Bm25
from memory_pipelines.recall.fusion import SHIPPED, Weights
from memory_pipelines.recall.legs import DEPTH, ranked, ranked_rows
from memory_pipelines.recall.selection import MAX_ITEMS
from memory_pipelines.stores.authority import StoredMemory

ALONE = Weights(
    words_onward=0, words_back=0, dense_onward=0, dense_back=0, session=0, speaker=0, facts=0, time=0, ripple=0
)
"""BM25 and cosine added, and nothing else."""
ABLATIONS: Mapping[str, Weights] = {
    "as shipped": SHIPPED,
    "without neighbours": replace(SHIPPED, words_onward=0, words_back=0, dense_onward=0, dense_back=0),
    "without the session's share": replace(SHIPPED, session=0),
    "without the speaker": replace(SHIPPED, speaker=0),
    "without the time leg": replace(SHIPPED, time=0),
    "without dense": replace(SHIPPED, dense=0),
    "without BM25": replace(SHIPPED, dense=1),
    "BM25 + dense, no context": ALONE,
    "dense share .7": replace(SHIPPED, dense=0.7),
}
RRF = 60

Ranking = list[frozenset[str]]
Asked = Callable[[Question], Ranking]


@dataclass(frozen=True)
class Index:
    """A history with the vectors of its turns."""

    history: History
    rows: list[StoredMemory]
    vectors: Vectors
    embedder: Embedder

    @classmethod
    def of(cls, history: History, embedder: Embedder) -> "Index":
        rows = [_memory(turn) for turn in history.turns]
        return cls(history, rows, embedder.encode([row.text for row in rows]), embedder)

    def stores(self) -> Stores:
        stores = Stores(self.embedder, max(turn.at for turn in self.history.turns) + timedelta(days=1))
        stores.publish(_OWNER, self.rows, self.rows, self.vectors)
        return stores

    def judged(self, ask: Asked) -> list[Judged]:
        sessions = {turn.turn_id: turn.session for turn in self.history.turns}
        return [judge(q.category, ask(q), q.gold, sessions) for q in self.history.questions]


_OWNER = Owner("bench", "u:history")


def _memory(turn: Turn) -> StoredMemory:
    return StoredMemory(
        memory_id=turn.turn_id,
        version="v1",
        owner=_OWNER,
        memory_type="episodic",
        permanence="long",
        term="long",
        summary="",
        text=turn.told,
        language=turn.language,
        predicate="",
        value="",
        structured="{}",
        confidence=1.0,
        trust=1.0,
        score=1.0,
        decision_impact=0.0,
        intent="",
        entities=(),
        slice_ids=(),
        source_turn_ids=(turn.turn_id,),
        stores=("vector",),
        occurred_at=turn.at,
        valid_from=None,
        valid_to=None,
        expires_at=None,
        admitted_at=turn.at,
        tier="hot",
        path="",
        model_set="",
    )


def reader(index: Index, weights: Weights = SHIPPED, budget: int = 1_000_000) -> Asked:
    """The product's reader over all turns."""
    recall = index.stores().recall(weights, budget)

    def ask(question: Question) -> Ranking:
        answer = recall.recall(
            question.text, tenant=_OWNER.tenant, subject=_OWNER.subject, as_of=question.at, limit=MAX_ITEMS
        )
        items = sorted(answer.items, key=lambda item: -item.score)
        return [frozenset(item.memory.source_turn_ids) for item in items]

    return ask


def plain(index: Index) -> dict[str, Asked]:
    """What the reader is held against, over the same turns, tokens and vectors: BM25, cosine, and both by reciprocal
    ranks weighted by relevance, and by z-scores .7 to .3."""
    bm25 = Bm25.of([text.tokens(row.text) for row in index.rows])
    everything = np.ones(len(index.rows), dtype=np.bool_)

    def scores(question: Question) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        vector = index.embedder.encode([question.text], "query")[0]
        words, coverage = bm25.score(text.tokens(question.text), everything)
        return words, coverage, (index.vectors @ vector).astype(np.float64)

    def ranking(values: np.ndarray) -> Ranking:
        best = np.argsort(-values, kind="stable")[:MAX_ITEMS]
        return [frozenset({index.rows[i].memory_id}) for i in best]

    def reciprocal(question: Question) -> Ranking:
        words, coverage, cosines = scores(question)
        near = np.sort(np.argsort(-cosines, kind="stable")[: dense.OVERFETCH * DEPTH])
        spoken = np.array([index.rows[i].language for i in near])
        masks = [(language, spoken == language) for language in sorted({*spoken.tolist()})]
        hits = dense.normalised(near, cosines[near], masks, index.embedder.unrelated)
        fused = np.zeros(len(index.rows))
        for leg in (ranked_rows("bm25", words, coverage), ranked("dense", hits)):
            for rank, one in enumerate(leg.found, 1):
                fused[one.row] += one.relevance / (RRF + rank)
        return ranking(fused)

    return {
        "plain BM25": lambda q: ranking(scores(q)[0]),
        "plain dense": lambda q: ranking(scores(q)[2]),
        "reciprocal ranks of both": reciprocal,
        "z-scores .7 dense, .3 BM25": lambda q: ranking(0.7 * _standard(scores(q)[2]) + 0.3 * _standard(scores(q)[0])),
    }


def _standard(values: np.ndarray) -> np.ndarray:
    standard: np.ndarray = (values - values.mean()) / (values.std() or 1.0)
    return standard


def across_languages(
    index: Index, pairs: Sequence[tuple[str, str, int]], weights: Weights
) -> dict[str, tuple[float, int]]:
    """A question (Chinese, English, person) asked in both languages of everybody's history in both.

    *same history*: of the days and exchanges among the first 5 items of the one question, the share that is among the
    first 5 of the other too, in whichever language; *own person*: share of the first 10 items that are of the person
    who is asked about; *both languages*: whether the first 10 hold exchanges in both."""
    ask = reader(index, weights)
    at = max(turn.at for turn in index.history.turns) + timedelta(days=1)
    agreed, own, both = [], [], []
    for zh, en, person in pairs:
        found = {}
        for language, asked in (("zh", zh), ("en", en)):
            ranked_ids = [next(iter(item)).split("/", 1) for item in ask(Question(asked, frozenset(), "", at))[:10]]
            found[language] = ranked_ids
            own.append(sum(rest.split("/")[0] == str(person) for _, rest in ranked_ids) / max(1, len(ranked_ids)))
            both.append(float(len({spoken for spoken, _ in ranked_ids}) == 2))
        top = {name: {rest for _, rest in ids[:5]} for name, ids in found.items()}
        agreed.append(len(top["zh"] & top["en"]) / max(1, min(len(top["zh"]), len(top["en"]))))
    n = len(agreed)
    return {
        "same history among the first 5": (float(np.mean(agreed)), n),
        "items of the person asked about, first 10": (float(np.mean(own)), 2 * n),
        "both languages among the first 10": (float(np.mean(both)), 2 * n),
    }
