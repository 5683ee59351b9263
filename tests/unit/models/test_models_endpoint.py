"""Embeddings of a scripted OpenAI-compatible server: order, batches, retries, the budget."""

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from suites.llm_server import Answer, LlmServer, serving

from memory_pipelines.errors import IntegrityError, SettingError, StoreUnavailableError
from memory_pipelines.models.embeddings import load_embedder
from memory_pipelines.models.endpoint import BATCH, EndpointEmbedder
from memory_pipelines.models.llm import BudgetExhaustedError, ModelRefusedError, Usage
from memory_pipelines.settings import Settings


def reply(rows: Sequence[Sequence[float]], tokens: int | None = 5, order: Sequence[int] = ()) -> Answer:
    data = [{"object": "embedding", "index": i, "embedding": rows[i]} for i in order or range(len(rows))]
    body: dict[str, Any] = {"object": "list", "model": "m", "data": data}
    if tokens is not None:
        body["usage"] = {"prompt_tokens": tokens, "total_tokens": tokens}
    return Answer(raw=json.dumps(body).encode())


def embedder(server: LlmServer, waits: list[float] | None = None, **settings: Any) -> EndpointEmbedder:
    return EndpointEmbedder(Settings(llm_url=server.url, **settings), "m", sleep=(waits or []).append)


def test_rows_come_in_the_order_of_the_texts_and_of_norm_one() -> None:
    with serving([reply([[3, 4], [0, 2]], order=[1, 0])]) as server:
        model = embedder(server, llm_api_key="secret", llm_price_per_1k_in=2.0)
        rows = model.encode(["一", "two \0 words"])
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0, 1]], np.float32))
    assert rows.dtype == np.float32
    assert model.dimension == 2
    assert model.spent == Usage(1, 5, 0, 0.01)
    assert server.requests[0] == {"model": "m", "input": ["一", "two   words"], "encoding_format": "float"}
    assert server.headers[0]["authorization"] == "Bearer secret"


def test_blank_texts_have_a_row_and_none_are_not_sent() -> None:
    with serving([reply([[1, 0], [1, 0]]), reply([[1, 0]])]) as server:
        model = embedder(server)
        model.encode(["", " \n"])
        assert model.encode([]).shape == (0, 2)
    assert [r["input"] for r in server.requests] == [[".", "."]]


def test_batches() -> None:
    with serving([reply([[1, 0]] * BATCH), reply([[0, 1]])]) as server:
        rows = embedder(server).encode(["x"] * (BATCH + 1))
    assert rows[-1].tolist() == [0, 1]
    assert [len(r["input"]) for r in server.requests] == [BATCH, 1]


def test_the_dimension_is_asked_once() -> None:
    with serving([reply([[1, 0, 0]])]) as server:
        model = embedder(server)
        assert (model.dimension, model.dimension) == (3, 3)
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    "broken",
    [
        Answer(status=500),
        Answer(raw=b"<html>"),
        reply([]),
        reply([[1, 0], [1, 0]], order=[1]),
        reply([[0, 0], [0, 0]]),
        reply([[1, 0], [1, float("nan")]]),
        reply([[1], [1, 2]]),
    ],
)
def test_what_is_no_reply_is_tried_again(broken: Answer) -> None:
    waits: list[float] = []
    with serving([broken, reply([[1, 0], [0, 1]])]) as server:
        model = EndpointEmbedder(Settings(llm_url=server.url), "m", sleep=waits.append)
        assert model.encode(["a", "b"]).tolist() == [[1, 0], [0, 1]]
    assert waits == [1.0]


def test_a_server_that_stays_away_is_a_store_that_does_not_answer() -> None:
    waits: list[float] = []
    with serving([Answer(status=429, headers={"Retry-After": "7"})]) as server:
        model = EndpointEmbedder(Settings(llm_url=server.url), "m", sleep=waits.append)
        with pytest.raises(StoreUnavailableError, match=r"HTTP 429\); check MEMORY_PIPELINES_LLM_URL"):
            model.encode(["words of a person"])
    assert waits == [7.0, 7.0, 7.0]
    assert len(server.requests) == 4


@pytest.mark.parametrize(("status", "setting"), [(401, "LLM_API_KEY"), (404, "MEMORY_PIPELINES_EMBEDDER")])
def test_a_wrong_setting_is_named(status: int, setting: str) -> None:
    with serving([Answer(status=status)]) as server, pytest.raises(SettingError, match=setting):
        embedder(server).encode(["a"])


def test_a_refusal_says_nothing_of_the_text() -> None:
    said = {"message": "the input 'words of a person' is too long"}
    with serving([Answer(status=400, error=said)]) as server, pytest.raises(ModelRefusedError) as caught:
        embedder(server).encode(["words of a person"])
    assert "person" not in str(caught.value)


def test_the_budget_holds_for_passages_and_not_for_queries() -> None:
    with serving([reply([[1, 0]], tokens=90)]) as server:
        model = embedder(server, llm_max_tokens_per_run=100)
        model.encode(["x" * 80])
        with pytest.raises(BudgetExhaustedError):
            model.encode(["x" * 80])
        for _ in range(3):
            model.encode(["x" * 80], "query")
    assert model.spent == Usage(4, 360)


def test_a_model_that_changes_its_dimension() -> None:
    with serving([reply([[1, 0]]), reply([[1, 0, 0]])]) as server:
        model = embedder(server)
        model.encode(["a"])
        with pytest.raises(IntegrityError, match="3 numbers, not 2"):
            model.encode(["b"])


def test_by_setting() -> None:
    with serving([reply([[1, 0]])]) as server:
        model = load_embedder(Settings(embedder="openai:text-embedding-3-small", llm_url=server.url))
        model.encode(["a"])
        model.encode(["a"])
    assert model.model_id.startswith("openai-text-embedding-3-small-")
    assert len(server.requests) == 1
    for wrong in (Settings(embedder="openai:m"), Settings(embedder="openai:", llm_url="http://127.0.0.1/v1")):
        with pytest.raises(SettingError, match="MEMORY_PIPELINES_EMBEDDER=openai:MODEL"):
            load_embedder(wrong)
