"""Recall, measured: ``python -m benchmarks.recall DATA_FOLDER [--parts turns ablations …] [--cache FOLDER]``.

Belongs here: which parts there are, and the tables. Does not belong here: a protocol (``sets``, ``turns``, ``kept``,
``figures``).
No language model takes part. ``--cache`` keeps vectors, so that a second run costs no embedding.
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import machine
from benchmarks.recall import kept, rival, sets, turns
from benchmarks.recall.figures import MEASURES, Judged, mean
from benchmarks.recall.vectors import Kept
from memory_pipelines.models.base import Embedder
from memory_pipelines.models.embeddings import load_embedder
from memory_pipelines.recall.fusion import SHIPPED
from memory_pipelines.settings import Settings

PARTS = ("turns", "ablations", "kept", "languages", "mem0")


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.recall", description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of the sets, one folder each")
    parser.add_argument("--parts", nargs="*", choices=PARTS, default=list(PARTS))
    parser.add_argument("--embedder", default=Settings().embedder, help="as the setting MEMORY_PIPELINES_EMBEDDER")
    parser.add_argument("--cache", type=Path, help="folder that keeps vectors")
    parser.add_argument("--trajectories", type=int, default=25, help="of each MemDaily file")
    parser.add_argument("--pooled", type=int, default=10, help="MemDaily trajectories in one store")
    parser.add_argument("--mem0-python", type=Path, help="an interpreter that has mem0ai and faiss-cpu; else left out")
    chosen = parser.parse_args(arguments)
    if not chosen.data.is_dir():
        sys.exit(f"{chosen.data} is no folder")
    embedder: Embedder = load_embedder(Settings.load(embedder=chosen.embedder))
    if chosen.cache is not None:
        embedder = Kept(embedder, chosen.cache)
    print(machine.line(machine.describe()))
    print(f"{embedder.model_id}; an answer's items by score; no language model", flush=True)
    histories = {
        "LoCoMo, per conversation": sets.locomo(chosen.data),
        f"MemDaily, {chosen.pooled} trajectories a store": sets.memdaily(
            chosen.data, chosen.trajectories, chosen.pooled
        ),
        "LongMemEval, per question": sets.longmemeval(chosen.data),
    }
    for name, found in histories.items():
        if not any(history.questions for history in found):
            print(f"\n{name}: not in the folder")
            continue
        indexes = [turns.Index.of(history, embedder) for history in found if history.questions]
        for index in indexes:  # all questions at once: a model reads many faster than one by one
            embedder.encode([question.text for question in index.history.questions], "query")
        if "turns" in chosen.parts:
            _turn_tables(name, indexes)
        if "ablations" in chosen.parts:
            print(f"\n== {name}: ablations, R@10 by category")
            for label, weights in turns.ABLATIONS.items():
                _row(label, [one for index in indexes for one in index.judged(turns.reader(index, weights))])
        if "kept" in chosen.parts:
            _kept(name, [kept.Kept.of(index.history, embedder) for index in indexes])
        if "mem0" in chosen.parts and chosen.mem0_python is not None:
            print(f"\n== {name}: beside mem0, one run")
            for label, figures in rival.beside(chosen.mem0_python, indexes).items():
                print(f"  {label}: {figures}", flush=True)
    if "languages" in chosen.parts:
        _languages(chosen.data, embedder)


def _turn_tables(name: str, indexes: Sequence[turns.Index]) -> None:
    count = sum(len(index.rows) for index in indexes)
    print(f"\n== {name}: turn index, {len(indexes)} stores, {count} turns")
    shipped = [one for index in indexes for one in index.judged(turns.reader(index))]
    print("  " + ", ".join(MEASURES))
    for category, judged in _grouped(shipped).items():
        figures = " ".join(f"{mean(judged, measure):.3f}" for measure in MEASURES)
        print(f"  {category} (n = {len(judged)}): {figures}", flush=True)
    _row("budget of 1,500 tokens", [one for i in indexes for one in i.judged(turns.reader(i, SHIPPED, 1500))])
    for label in turns.plain(indexes[0]):
        _row(label, [one for index in indexes for one in index.judged(turns.plain(index)[label])])


def _kept(name: str, histories: Sequence[kept.Kept]) -> None:
    share, n = kept.lost(histories, sets.UNANSWERABLE)
    print(
        f"\n== {name}: through the pipeline, {sum(k.memories for k in histories)} memories of "
        f"{kept.breadth(histories):.1f} turns; evidence lost at the gate {share:.3f} (n = {n} turns); R@10 by category"
    )
    for label, weights in kept.WEIGHTS.items():
        _row(label, [one for history in histories for one in history.judged(weights)])
    _row("budget of 1,500 tokens", [one for history in histories for one in history.judged(SHIPPED, 1500)])


def _grouped(judged: Sequence[Judged]) -> dict[str, list[Judged]]:
    """All answerable ones, each category, and all with the unanswerable if there are any."""
    answerable = [one for one in judged if one.category != sets.UNANSWERABLE]
    groups = {"answerable": answerable}
    for category in sorted({one.category for one in judged}):
        groups[category] = [one for one in judged if one.category == category]
    if len(answerable) < len(judged):
        groups["all with evidence"] = list(judged)
    return groups


def _row(label: str, judged: Sequence[Judged]) -> None:
    figures = ", ".join(f"{category} {mean(found, 'R@10'):.3f}" for category, found in _grouped(judged).items())
    print(f"  {label}: {figures}; hit@1 {mean(_grouped(judged)['answerable'], 'hit@1'):.3f}", flush=True)


def _languages(data: Path, embedder: Embedder) -> None:
    history, pairs = sets.memorybank(data)
    if history is None:
        print("\nMemoryBank: not in the folder")
        return
    index = turns.Index.of(history, embedder)
    asked = [(pair.zh, pair.en, pair.person) for pair in pairs]
    embedder.encode([text for pair in asked for text in pair[:2]], "query")
    print(f"\n== MemoryBank, both languages in one store, {len(index.rows)} exchanges")
    for label, weights in (("as shipped", SHIPPED), ("BM25 + dense, no context", turns.ALONE)):
        for name, (value, n) in turns.across_languages(index, asked, weights).items():
            print(f"  {label}: {name} {value:.3f} (n = {n})", flush=True)


if __name__ == "__main__":
    main()
