"""Adds turns to mem0 and asks it; runs in an interpreter that has ``mem0ai`` and ``faiss-cpu``.

Belongs here: calls of mem0. Does not belong here: measures. Reads one JSON object from standard input, writes one as
the last line of standard output: ranks of turns by question and history, milliseconds a question, turns a second.
"""

import json
import os
import sys
import time


def main() -> None:
    order = json.load(sys.stdin)
    os.environ |= {"MEM0_TELEMETRY": "False", "MEM0_DIR": order["folder"], "OPENAI_API_KEY": "none"}
    from mem0 import Memory  # type: ignore[import-not-found]  # of the other interpreter

    url = f"http://127.0.0.1:{order['port']}/v1"
    embedder = {"model": "bench", "openai_base_url": url, "api_key": "none", "embedding_dims": order["dimension"]}
    store = {
        "collection_name": "bench",
        "path": f"{order['folder']}/faiss",
        "embedding_model_dims": order["dimension"],
        "distance_strategy": "cosine",
    }
    memory = Memory.from_config(
        {
            "embedder": {"provider": "openai", "config": embedder},
            "vector_store": {"provider": "faiss", "config": store},
            "llm": {"provider": "openai", "config": {"api_key": "none", "openai_base_url": url}},
            "history_db_path": f"{order['folder']}/history.db",
        }
    )
    start, count = time.perf_counter(), 0
    for k, work in enumerate(order["work"]):
        for i, text in enumerate(work["turns"]):
            memory.add(text, user_id=f"h{k}", infer=False, metadata={"place": i})
            count += 1
    rate = count / (time.perf_counter() - start)
    found, spent = [], []
    for k, work in enumerate(order["work"]):
        ranks = []
        for question in work["questions"]:
            start = time.perf_counter()
            results = memory.search(question, filters={"user_id": f"h{k}"}, top_k=15, threshold=0.0)["results"]
            spent.append(1000 * (time.perf_counter() - start))
            ranks.append([result["metadata"]["place"] for result in results])
        found.append(ranks)
    print(json.dumps({"found": found, "milliseconds": spent, "turns_per_second": rate}))


if __name__ == "__main__":
    main()
