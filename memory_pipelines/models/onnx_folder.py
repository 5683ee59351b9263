"""An embedding model of the user's own: a folder in the layout of sentence-transformers.

Belongs here: reading ``model.onnx`` (or ``onnx/model.onnx``), ``tokenizer.json`` and, where they are, the small
configuration files beside them. Does not belong here: fetching anything; no code of the folder is run.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from memory_pipelines.errors import SettingError
from memory_pipelines.models import everyday
from memory_pipelines.models.base import Kind, Unrelated, Vectors
from memory_pipelines.models.runtime import session
from memory_pipelines.models.text import encodable
from memory_pipelines.settings import PREFIX

SETTING = f"{PREFIX}EMBEDDER"
MAX_TOKENS = 512
_PROMPTS = {"passage": ("passage", "document"), "query": ("query",)}


class OnnxFolder:
    """One text a call at its own length, so that a vector does not depend on the batch. Mean pooling, or the
    first token's vector where ``1_Pooling/config.json`` says so. Safe to share between threads."""

    def __init__(self, folder: Path) -> None:
        """Raises SettingError for a folder without the files, a model of other inputs, or missing wheels."""
        try:
            import onnxruntime
            import tokenizers
        except ImportError as error:
            raise SettingError(
                f"{SETTING}=onnx:FOLDER needs the package {error.name} (in the extra memory-pipelines[models])"
            ) from None
        models = [path for path in (folder / "model.onnx", folder / "onnx" / "model.onnx") if path.is_file()]
        words = folder / "tokenizer.json"
        if not models or not words.is_file():
            raise SettingError(f"{SETTING}=onnx:FOLDER must name a folder with model.onnx and tokenizer.json")
        self._folder = folder
        try:
            self._tokenizer = tokenizers.Tokenizer.from_file(str(words))
            self._session = session(onnxruntime, str(models[0]))
        except Exception as error:  # both raise types of their own, or plain Exception
            raise SettingError(
                f"{SETTING}: the model of the folder cannot be loaded ({type(error).__name__})"
            ) from None
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(self._config("sentence_bert_config.json").get("max_seq_length") or MAX_TOKENS)
        self._inputs = {given.name for given in self._session.get_inputs()}
        if unknown := self._inputs - {"input_ids", "attention_mask", "token_type_ids"}:
            raise SettingError(
                f"{SETTING}: the model wants inputs that no tokenizer gives: {', '.join(sorted(unknown))}"
            )
        self._first = bool(self._config("1_Pooling/config.json").get("pooling_mode_cls_token"))
        prompts = self._config("config_sentence_transformers.json").get("prompts") or {}
        self._prompts = {
            kind: next((prompts[name] for name in names if name in prompts), "") for kind, names in _PROMPTS.items()
        }
        files = [words, *sorted(models[0].parent.glob("model.onnx*"))]
        self._digest = hashlib.sha256(b"".join(_hash(path) for path in files)).hexdigest()
        self._dimension = len(self._one("a", "passage"))

    @property
    def model_id(self) -> str:
        return f"onnx-{re.sub('[^A-Za-z0-9]+', '-', self._folder.name)[:64]}-{self._digest[:12]}"

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def digest(self) -> str:
        """Of the model's files and the tokenizer."""
        return self._digest

    @cached_property
    def unrelated(self) -> Unrelated:
        return everyday.measured(self.encode)

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        rows = np.empty((len(texts), self._dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[:] = self._one(text, kind)
        return rows

    def _one(self, text: str, kind: Kind) -> Vectors:
        encoding = self._tokenizer.encode(self._prompts[kind] + encodable(text))
        ids = encoding.ids or [0]
        given = {
            "input_ids": ids,
            "attention_mask": [1] * len(ids),
            "token_type_ids": encoding.type_ids or [0] * len(ids),
        }
        output = self._session.run(None, {k: np.array([v], np.int64) for k, v in given.items() if k in self._inputs})[0]
        tokens = np.asarray(output[0], dtype=np.float32)  # (tokens, width), or (width,) if the graph pools itself
        if tokens.ndim == 2:
            tokens = tokens[0] if self._first else tokens.mean(axis=0)
        norm = float(np.linalg.norm(tokens))
        if not norm or not np.isfinite(norm):
            tokens, norm = np.eye(1, tokens.shape[-1], dtype=np.float32)[0], 1.0
        unit: Vectors = tokens / np.float32(norm)
        return unit

    def _config(self, name: str) -> dict[str, Any]:
        try:
            found = json.loads((self._folder / name).read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {}
        except ValueError:
            raise SettingError(f"{SETTING}: {name} of the folder is no JSON") from None
        return found if isinstance(found, dict) else {}


def _hash(path: Path) -> bytes:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").digest()
