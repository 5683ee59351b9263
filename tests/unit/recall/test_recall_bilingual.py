"""A pool in two languages: the same thing said in the other language is found."""

import pytest
from recall_world import ALICE, NOW, make_memory

from memory_pipelines.models.embeddings import local_embedder
from memory_pipelines.recall import dense
from memory_pipelines.recall.legs import ranked
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.stores.base import VectorRow
from memory_pipelines.stores.fakes import MemoryVectors

PAIRS = {
    "violin": ("我儿子每周六上午去上小提琴课", "My son takes violin lessons every Saturday morning"),
    "roof": ("上个月的暴雨把屋顶冲漏了", "The heavy rain last month made the roof leak"),
    "camera": ("我把旧相机卖给了邻居", "I sold my old camera to a neighbour"),
    "knee": ("医生说我的膝盖不能再跑步了", "The doctor says my knee must not run any more"),
    "visa": ("护照下个月到期，要去续签", "My passport runs out next month and must be renewed"),
    "bread": ("她自己烤的面包特别香", "The bread she bakes herself smells wonderful"),
    "boss": ("新来的主管经常让我们加班", "The new supervisor often makes us work overtime"),
    "garden": ("我们在阳台上种了番茄", "We planted tomatoes on the balcony"),
}


@pytest.mark.parametrize("name", ["use", "e5", "e5+use"])
@pytest.mark.parametrize("direction", [(0, 1), (1, 0)])
def test_a_translation_is_found_among_the_first_three(name: str, direction: tuple[int, int]) -> None:
    """Everything but the query's own wording is in the pool, in both languages."""
    asked, told = direction
    model = local_embedder(name)
    rows = [
        make_memory(f"{topic}-{language}", said[i])
        for topic, said in PAIRS.items()
        for i, language in enumerate(("zh", "en"))
    ]
    for topic, said in PAIRS.items():
        others = [row for row in rows if row.memory_id != f"{topic}-{('zh', 'en')[asked]}"]
        store = MemoryVectors()
        store.ensure(model.dimension)
        vectors = model.encode([row.summary for row in others])
        store.upsert(
            [
                VectorRow(row.entry_id, ALICE, vector, row.language, NOW)
                for row, vector in zip(others, vectors, strict=True)
            ]
        )
        snapshot = Snapshot(ALICE, others)
        query = model.encode([said[asked]], "query")[0]
        hits = dense.search(store, model, query, snapshot, snapshot.usable(NOW, frozenset()), set())
        first = [snapshot.rows[found.row].memory_id for found in ranked(dense.NAME, hits).found[:3]]
        assert f"{topic}-{('zh', 'en')[told]}" in first
