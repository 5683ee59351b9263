"""mem0 beside the reader: the same turns, the same vectors, one run.

Belongs here: the endpoint that hands mem0 our vectors, its process, the table. Does not belong here: calls of mem0
(``mem0_worker``, which runs in mem0's own interpreter).

mem0 adds raw turns (``infer=False``), one ``add`` a turn, into FAISS on disk, and is asked with ``search``. It gets its
vectors over HTTP from this process, where they are at hand; passages as passages, questions as questions. The reader
has its stores in memory and its vectors at hand. So its times hold no network, mem0's hold the local endpoint:
both without the model's own time. Rates and times are of one process and one caller.
"""

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np

from benchmarks.recall.figures import Judged, judge, mean
from benchmarks.recall.sets import UNANSWERABLE
from benchmarks.recall.turns import Asked, Index, plain, reader
from memory_pipelines.models.base import Embedder

WORKER = Path(__file__).with_name("mem0_worker.py")


def beside(python: Path, indexes: Sequence[Index]) -> dict[str, str]:
    """R@10, milliseconds a question (median, 95th percentile), turns a second added, by system."""
    judged, times, added = _mem0(python, indexes)
    figures = {"mem0, raw add": _line(judged, times, added)}
    names = ["the reader", *list(plain(indexes[0]))[:2]]
    for name in names:
        found: list[Judged] = []
        spent: list[float] = []
        start, count = time.perf_counter(), 0
        asks: list[tuple[Index, Asked]] = []
        for index in indexes:
            ask = reader(index) if name == "the reader" else plain(index)[name]
            ask(index.history.questions[0])  # the first one reads the rows and counts the terms
            asks.append((index, ask))
            count += len(index.rows)
        rate = count / (time.perf_counter() - start)
        for index, ask in asks:
            found += index.judged(_timed(ask, spent))
        figures[name] = _line(found, spent, rate)
    return figures


def _timed(ask: Asked, spent: list[float]) -> Asked:
    def timed(question):  # type: ignore[no-untyped-def]
        start = time.perf_counter()
        try:
            return ask(question)
        finally:
            spent.append(1000 * (time.perf_counter() - start))

    return timed


def _line(judged: Sequence[Judged], times: Sequence[float], rate: float) -> str:
    good = [one for one in judged if one.category != UNANSWERABLE]
    return (
        f"R@5 {mean(good, 'R@5'):.3f}, R@10 {mean(good, 'R@10'):.3f}, hit@1 {mean(good, 'hit@1'):.3f} "
        f"(n = {len(good)}); "
        f"ms a question {np.median(times):.1f} median, {np.quantile(times, 0.95):.1f} p95; {rate:.0f} turns/s added"
    )


def _mem0(python: Path, indexes: Sequence[Index]) -> tuple[list[Judged], list[float], float]:
    work = [
        {
            "turns": [row.text for row in index.rows],
            "questions": [question.text for question in index.history.questions],
        }
        for index in indexes
    ]
    with tempfile.TemporaryDirectory(prefix="mp-mem0-") as folder, _endpoint(indexes) as port:
        order = {"work": work, "port": port, "folder": folder, "dimension": indexes[0].embedder.dimension}
        done = subprocess.run(
            [str(python), str(WORKER)], input=json.dumps(order), capture_output=True, text=True, check=False, cwd=folder
        )
    if done.returncode:
        raise SystemExit(f"mem0 ended with {done.returncode}:\n{done.stderr[-2000:]}")
    answer = json.loads(done.stdout.splitlines()[-1])
    judged = []
    for index, found in zip(indexes, answer["found"], strict=True):
        sessions = {turn.turn_id: turn.session for turn in index.history.turns}
        for question, ranks in zip(index.history.questions, found, strict=True):
            ids = [frozenset({index.rows[i].memory_id}) for i in ranks]
            judged.append(judge(question.category, ids, question.gold, sessions))
    return judged, answer["milliseconds"], answer["turns_per_second"]


@contextmanager
def _endpoint(indexes: Sequence[Index]) -> Iterator[int]:
    """An OpenAI-compatible embeddings endpoint on this machine over the vectors that are at hand; gives its port."""
    embedder: Embedder = indexes[0].embedder
    # mem0 puts texts on one line before it asks
    known = {row.text.replace("\n", " "): v for i in indexes for row, v in zip(i.rows, i.vectors, strict=True)}
    for index in indexes:
        asked = [question.text for question in index.history.questions]
        known |= {text.replace("\n", " "): v for text, v in zip(asked, embedder.encode(asked, "query"), strict=True)}

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
            texts = [texts] if isinstance(texts, str) else texts
            rows = [known[t] if t in known else embedder.encode([t])[0] for t in texts]
            data = [{"object": "embedding", "index": i, "embedding": v.tolist()} for i, v in enumerate(rows)]
            usage = {"prompt_tokens": 0, "total_tokens": 0}
            body = json.dumps({"object": "list", "model": "bench", "data": data, "usage": usage}).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: a line a call would drown the table."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield server.server_address[1]
    finally:
        server.shutdown()
        server.server_close()
