"""How well an embedder finds what was said: ``python -m benchmarks.understanding.embeddings DATA_FOLDER``.

Belongs here: protocols over public sets of this layout, and speed. Does not belong here: the sets, or a model.
A set whose file is missing is named and left out. Every figure comes with its n:

* ``locomo/*.json``: share of a question's evidence turns among the 10 first, of one conversation's turns (English);
* ``memdaily_zh/*.json``: is the first message evidence, in pools of 1 and of 10 trajectories (Chinese; people of
  different trajectories have the same names and roles);
* ``memorybank``: a turn asks for its translation in a pool of all turns in both languages, itself left out;
* ``zh_question_pairs/*.csv.gz``: area under the ROC curve of the cosine of pairs that mean the same or do not.

Rankings of the first two: cosine, BM25, and z-scores of both added .7 to .3. ``benchmarks.recall`` measures the reader.
"""

import argparse
import csv
import gzip
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import machine
from benchmarks.conversions import locomo_questions
from memory_pipelines.models.base import Embedder
from memory_pipelines.models.embeddings import load_embedder
from memory_pipelines.recall import dense, text
from memory_pipelines.recall.bm25 import Bm25
from memory_pipelines.settings import Settings

POOLED = (1, 10)
"""Trajectories of MemDaily that make one pool."""
PAIRS = 2000
SPEED_TEXTS = 1000
DENSE_WEIGHT = 0.7

Scores = NDArray[np.float64]


@dataclass(frozen=True)
class Pool:
    """``questions``: text and positions of the passages that answer it."""

    passages: Sequence[str]
    questions: Sequence[tuple[str, frozenset[int]]]


@dataclass(frozen=True)
class Figure:
    name: str
    value: float
    n: int


def locomo(folder: Path) -> list[Pool]:
    """One pool per conversation: every turn, with who said it."""
    pools = []
    for file in sorted((folder / "locomo").glob("*.json")):
        for sample in json.loads(file.read_text(encoding="utf-8")):
            turns = [t for session in sample["conversation"].values() if isinstance(session, list) for t in session]
            at = {f"{sample['sample_id']}/{turn['dia_id']}": i for i, turn in enumerate(turns)}
            asked = [(q.text, frozenset(at[turn] for turn in q.evidence)) for q in locomo_questions(sample)]
            pools.append(Pool([f"{turn['speaker']}: {turn['text']}" for turn in turns], asked))
    return pools


def memdaily(folder: Path, limit: int, pooled: int) -> list[Pool]:
    """Pools of ``pooled`` trajectories that are dealt from all files; ``limit`` trajectories a file."""
    files = sorted((folder / "memdaily_zh").glob("*.json"))
    dealt = [t for row in zip(*(_trajectories(f)[:limit] for f in files), strict=False) for t in row]
    pools = []
    for start in range(0, len(dealt), pooled):
        passages: list[str] = []
        questions = []
        for trajectory in dealt[start : start + pooled]:
            at = {m["mid"]: len(passages) + i for i, m in enumerate(trajectory["message_list"])}
            passages += [message["message"] for message in trajectory["message_list"]]
            for item in trajectory["question_list"]:
                gold = frozenset(at[mid] for mid in _flat(item["target_step_id"]) if mid in at)
                broken = "[ERROR" in item["question"] or "[ERROR" in str(item["answer"])
                if gold and not broken:
                    questions.append((item["question"], gold))
        pools.append(Pool(passages, questions))
    return pools


def _trajectories(file: Path) -> list[dict[str, Any]]:
    trajectories: list[dict[str, Any]] = json.loads(file.read_text(encoding="utf-8"))
    return trajectories


def _flat(ids: Any) -> Iterator[int]:
    if isinstance(ids, list):
        for item in ids:
            yield from _flat(item)
    else:
        yield ids


def translations(folder: Path) -> list[tuple[str, str]]:
    """(Chinese, English) turns of people whose days have as many turns in both."""
    histories = [folder / "memorybank" / f"memory_bank_{language}.json" for language in ("cn", "en")]
    if not all(file.exists() for file in histories):
        return []
    zh, en = (list(json.loads(file.read_text(encoding="utf-8")).values()) for file in histories)
    pairs = []
    for one, other in zip(zh, en, strict=False):
        for day, turns in one.get("history", {}).items():
            found = other.get("history", {}).get(day, [])
            if len(found) == len(turns):
                pairs += [(a["query"], b["query"]) for a, b in zip(turns, found, strict=True)]
    distinct = {zh: en for zh, en in pairs if zh.strip() and en.strip()}
    return list({en: (zh, en) for zh, en in distinct.items()}.values())


def question_pairs(file: Path) -> list[tuple[str, str, bool]]:
    """A sample of pairs with whether they mean the same."""
    with gzip.open(file, "rt", encoding="utf-8", newline="") as lines:
        rows = [(row["s1"], row["s2"], row["label"] == "1") for row in csv.DictReader(lines)]
    return random.Random(0).sample(rows, min(PAIRS, len(rows)))


# ---- rankings


def rankings(pool: Pool, embedder: Embedder) -> dict[str, list[list[int]]]:
    """Positions of the passages, best first, by ranking and question."""
    passages = embedder.encode(pool.passages)
    questions = embedder.encode([question for question, _ in pool.questions], "query")
    bm25 = Bm25.of([text.tokens(passage) for passage in pool.passages])
    everything = np.ones(len(pool.passages), dtype=np.bool_)
    found: dict[str, list[list[int]]] = {"cosine": [], "bm25": [], "z .7/.3": []}
    for (question, _), vector in zip(pool.questions, questions, strict=True):
        cosines = (passages @ vector).astype(np.float64)
        words, _ = bm25.score(text.tokens(question), everything)
        mixed = DENSE_WEIGHT * _standard(cosines) + (1 - DENSE_WEIGHT) * _standard(words)
        for name, scores in zip(found, (cosines, words, mixed), strict=True):
            found[name].append(np.argsort(-scores, kind="stable").tolist())
    return found


def _standard(scores: Scores) -> Scores:
    standard: Scores = (scores - scores.mean()) / (scores.std() or 1.0)
    return standard


def recall_at(order: Sequence[int], gold: frozenset[int], depth: int) -> float:
    """Share of the gold among the first ``depth``."""
    return len(gold & set(order[:depth])) / len(gold)


def hit(order: Sequence[int], gold: frozenset[int]) -> float:
    """Whether the first is gold."""
    return float(bool(order) and order[0] in gold)


def retrieval(pools: Sequence[Pool], embedder: Embedder) -> list[Figure]:
    """hit@1 and recall@10 of each ranking, mean over questions."""
    firsts: dict[str, list[float]] = {}
    tens: dict[str, list[float]] = {}
    for pool in pools:
        for name, orders in rankings(pool, embedder).items():
            for order, (_, gold) in zip(orders, pool.questions, strict=True):
                firsts.setdefault(name, []).append(hit(order, gold))
                tens.setdefault(name, []).append(recall_at(order, gold, 10))
    measures: tuple[tuple[str, dict[str, list[float]]], ...] = (("hit@1", firsts), ("recall@10", tens))
    return [
        Figure(f"{measure}, {name}", float(np.mean(values)), len(values))
        for measure, found in measures
        for name, values in found.items()
    ]


def crossing(pairs: Sequence[tuple[str, str]], embedder: Embedder) -> list[Figure]:
    """How often the translation is the first, and among the first three: by cosine, and by z-scores per language."""
    both = [zh for zh, _ in pairs] + [en for _, en in pairs]
    passages, asking = embedder.encode(both), embedder.encode(both, "query")
    rows = np.arange(len(both))
    ranks: dict[str, list[int]] = {"cosine": [], "z per language": []}
    for i in range(len(both)):
        cosines = (passages @ asking[i]).astype(np.float64)
        twin = (i + len(pairs)) % len(both)
        ranks["cosine"].append(_rank(cosines, twin, i))
        scores, others = np.empty(len(both)), rows[rows != i]
        languages = [("zh", others < len(pairs)), ("en", others >= len(pairs))]
        scores[others] = dense.normalised(others, cosines[others], languages, embedder.unrelated).scores
        ranks["z per language"].append(_rank(scores, twin, i))
    return [
        Figure(f"translation {what}, {name}", float(np.mean([r <= most for r in values])), len(values))
        for what, most in (("first", 1), ("in the first 3", 3))
        for name, values in ranks.items()
    ]


def _rank(scores: Scores, row: int, but: int) -> int:
    """From 1, without ``but``; ties count against the row."""
    ahead = scores >= scores[row]
    ahead[[row, but]] = False
    return int(ahead.sum()) + 1


def area(pairs: Sequence[tuple[str, str, bool]], embedder: Embedder) -> Figure:
    """Area under the ROC curve of the cosine, ties half (Mann and Whitney's U)."""
    left, right = embedder.encode([a for a, _, _ in pairs]), embedder.encode([b for _, b, _ in pairs])
    cosines, same = (left * right).sum(axis=1), np.array([pair[2] for pair in pairs])
    yes, no = cosines[same], np.sort(cosines[~same])
    if not len(yes) or not len(no):
        return Figure("AUC", float("nan"), len(pairs))
    below = (np.searchsorted(no, yes, "left") + np.searchsorted(no, yes, "right")) / 2
    return Figure("AUC", float(below.mean() / len(no)), len(pairs))


# ---- speed


def speed(texts: Sequence[str], embedder: Embedder) -> list[Figure]:
    """Texts per second of one call and per processor second; milliseconds of a query alone. No text twice."""
    wall, processor = time.perf_counter(), time.process_time()
    embedder.encode(texts)
    wall, processor = time.perf_counter() - wall, time.process_time() - processor
    single = []
    busy = time.process_time()
    for query in texts[:200]:
        start = time.perf_counter()
        embedder.encode([query], "query")
        single.append(1000 * (time.perf_counter() - start))
    busy = time.process_time() - busy
    return [
        Figure("texts/s, one call", len(texts) / wall, len(texts)),
        Figure("texts/s per processor second", len(texts) / processor, len(texts)),
        Figure("processor ms a query, mean", 1000 * busy / len(single), len(single)),
        Figure("ms a query, median", float(np.median(single)), len(single)),
        Figure("ms a query, 95th percentile", float(np.quantile(single, 0.95)), len(single)),
    ]


def resident() -> float:
    """Resident memory of this process, MB."""
    import psutil

    return psutil.Process().memory_info().rss / 1e6


def measure(folder: Path, embedder: Embedder, limit: int) -> dict[str, list[Figure]]:
    """Figures by set; none for a set that is not in the folder."""
    pools = {"locomo": locomo(folder)}
    pools |= {f"memdaily_zh, {size} trajectories a pool": memdaily(folder, limit, size) for size in POOLED}
    texts = sorted({passage for part in pools.values() for pool in part for passage in pool.passages})
    sample = random.Random(0).sample(texts, min(SPEED_TEXTS, len(texts)))
    found = {"speed": speed(sample, embedder) if sample else []}  # first: later the cache would know the texts
    found |= {name: retrieval(part, embedder) if part else [] for name, part in pools.items()}
    turns = translations(folder)
    found["memorybank"] = crossing(turns, embedder) if turns else []
    files = sorted((folder / "zh_question_pairs").glob("*.csv.gz"))
    found["zh_question_pairs"] = [
        replace(area(question_pairs(file), embedder), name=f"AUC, {file.name.partition('.')[0]}") for file in files
    ]
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path)
    parser.add_argument("--embedder", default=Settings().embedder, help="as the setting MEMORY_PIPELINES_EMBEDDER")
    parser.add_argument("--trajectories", type=int, default=25, help="of each MemDaily file")
    chosen = parser.parse_args(arguments)
    before = resident()
    embedder = load_embedder(Settings.load(embedder=chosen.embedder))
    embedder.encode(["warm", "暖"])
    loaded = resident()
    say: Callable[[str], None] = print
    say(machine.line(machine.describe()))
    say(f"{embedder.model_id}, {embedder.dimension} numbers; resident +{loaded - before:.0f} MB when loaded")
    for name, figures in measure(chosen.data, embedder, chosen.trajectories).items():
        say(f"{name}: not in the folder" if not figures else name)
        for figure in figures:
            say(f"  {figure.name}: {figure.value:.3f} (n = {figure.n})")
    say(f"resident +{resident() - before:.0f} MB at the end")


if __name__ == "__main__":
    main()
