"""Embeddings from an OpenAI-compatible endpoint, within the budget of a run.

Belongs here: batches, retries and checks of ``/embeddings``. Does not belong here: chat (``models.llm``, whose
client, meter and reading of errors are used). No text of a request enters an exception.
"""

import hashlib
import re
import sys
import time
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from memory_pipelines.errors import IntegrityError, SettingError, StoreUnavailableError
from memory_pipelines.models import everyday
from memory_pipelines.models.base import Kind, Unrelated, Vectors
from memory_pipelines.models.llm import (
    ATTEMPTS,
    CostMeter,
    ModelRefusedError,
    Outcome,
    Usage,
    client,
    failure_of,
    token_bound,
)
from memory_pipelines.models.text import encodable
from memory_pipelines.settings import PREFIX, Settings

SETTING = f"{PREFIX}EMBEDDER"
BATCH = 64
TIMEOUT_SECONDS = 60.0
BLANK = "."
"""Stands for a text without a visible character, which endpoints refuse."""


class EndpointEmbedder:
    """One model of an endpoint. What it answers to one text need not be the same bits twice.

    Texts to be found count against the budget of the run; queries are only counted, since a reader has no end.
    ``sleep`` waits seconds."""

    def __init__(self, settings: Settings, model: str, sleep: Callable[[float], None] = time.sleep) -> None:
        """Sends nothing. Raises SettingError without a model or endpoint, or without the package ``openai``."""
        if not model:
            raise SettingError(f"{SETTING}=openai:MODEL must name a model")
        if not settings.llm_url.startswith(("http://", "https://")):
            raise SettingError(f"{SETTING}=openai:MODEL needs {PREFIX}LLM_URL, starting with http:// or https://")
        self._model = model
        self._sleep = sleep
        self._client = client(settings.llm_url, settings.llm_api_key.strip(), TIMEOUT_SECONDS)
        price = settings.llm_price_per_1k_in
        self._meters: dict[Kind, CostMeter] = {
            "passage": CostMeter(settings.llm_max_tokens_per_run, settings.llm_max_cost_per_run, price),
            "query": CostMeter(sys.maxsize, 0.0, price),
        }
        self._dimension: int | None = None

    @property
    def model_id(self) -> str:
        return f"openai-{re.sub('[^A-Za-z0-9]+', '-', self._model)[:64]}-{self.digest[:12]}"

    @property
    def dimension(self) -> int:
        """Asked of the endpoint once. Raises as :meth:`encode` does."""
        if self._dimension is None:
            self.encode([BLANK], "query")
        assert self._dimension is not None
        return self._dimension

    @property
    def digest(self) -> str:
        """Nobody sees the weights: the hash of the model's name."""
        return hashlib.sha256(self._model.encode()).hexdigest()

    @cached_property
    def unrelated(self) -> Unrelated:
        return everyday.measured(lambda texts, _: self.encode(texts, "query"))

    @property
    def spent(self) -> Usage:
        """So far, queries included."""
        return self._meters["passage"].spent + self._meters["query"].spent

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        """429, 5xx, timeouts and replies that are none are tried again, after what Retry-After says or 1, 2, 4 s.

        Raises BudgetExhaustedError, ModelRefusedError, StoreUnavailableError; SettingError for a wrong key, model or
        address; IntegrityError if the dimension changes."""
        sent = [encodable(text).strip() or BLANK for text in texts]
        parts = [self._batch(sent[start : start + BATCH], kind) for start in range(0, len(sent), BATCH)]
        return np.concatenate(parts) if parts else np.empty((0, self.dimension), dtype=np.float32)

    def _batch(self, texts: list[str], kind: Kind) -> Vectors:
        meter, bound = self._meters[kind], token_bound(texts)
        for attempt in range(ATTEMPTS):
            reserved = used = meter.reserve(bound, 0)
            try:
                vectors, outcome = self._request(texts, meter, reserved)
                used = outcome.usage
            finally:
                meter.settle(reserved, used)
            if vectors is not None:
                return self._checked(vectors)
            if outcome.refusal is not None:
                raise ModelRefusedError(f"the embedding endpoint refuses a request ({outcome.failure})")
            if not outcome.again:
                break
            if attempt + 1 < ATTEMPTS:
                self._sleep(outcome.wait if outcome.wait is not None else 2.0**attempt)
        raise StoreUnavailableError("embedding endpoint", f"{PREFIX}LLM_URL", outcome.failure)

    def _request(self, texts: list[str], meter: CostMeter, reserved: Usage) -> tuple[Vectors | None, Outcome]:
        import openai

        try:
            raw: Any = self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
        except (openai.APIError, ValueError) as error:
            return None, failure_of(error, reserved, SETTING)
        tokens = getattr(getattr(raw, "usage", None), "prompt_tokens", None)
        usage = meter.usage(max(0, tokens), 0) if isinstance(tokens, int) else reserved
        vectors = _rows(raw, len(texts))
        return vectors, Outcome(
            usage=usage, failure="" if vectors is not None else "the reply is no list of embeddings"
        )

    def _checked(self, vectors: Vectors) -> Vectors:
        if self._dimension not in (None, vectors.shape[1]):
            raise IntegrityError(f"the embedding endpoint answers {vectors.shape[1]} numbers, not {self._dimension}")
        self._dimension = vectors.shape[1]
        return vectors


def _rows(raw: Any, count: int) -> Vectors | None:
    """The vectors of a reply in the order of the texts, of norm 1; None for anything else than that many."""
    try:
        found = {int(item.index): np.asarray(item.embedding, dtype=np.float32) for item in raw.data}
        rows = np.stack([found[i] for i in range(count)])
        norms = np.linalg.norm(rows, axis=1, keepdims=True)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
    return rows / norms if rows.ndim == 2 and np.isfinite(norms).all() and norms.all() else None
