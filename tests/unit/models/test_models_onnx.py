"""ONNX by hand, and a folder in the layout of sentence-transformers."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from memory_pipelines.errors import SettingError
from memory_pipelines.models import onnx_proto
from memory_pipelines.models.embeddings import load_embedder
from memory_pipelines.models.onnx_folder import OnnxFolder
from memory_pipelines.models.runtime import session
from memory_pipelines.settings import Settings

TABLE = np.array([[0, 0, 0], [3, 0, 0], [0, 4, 0], [0, 0, 5], [1, 1, 1]], dtype=np.float32)
WORDS = {"[UNK]": 0, "parcel": 1, "late": 2, "refund": 3, "ask": 4}


def lookup(*inputs: str) -> bytes:
    """Token ids to rows of the table; further inputs are declared and added nowhere."""
    given = [onnx_proto.value(name, onnx_proto.INT64, ["batch", "tokens"]) for name in ("input_ids", *inputs)]
    return onnx_proto.model(
        [onnx_proto.node("Gather", ["table", "input_ids"], ["last_hidden_state"])],
        [onnx_proto.tensor("table", TABLE)],
        given,
        [onnx_proto.value("last_hidden_state", onnx_proto.FLOAT, ["batch", "tokens", 3])],
    )


def folder(at: Path, model: bytes | None = None, **configs: Any) -> Path:
    at.mkdir(exist_ok=True)
    (at / "model.onnx").write_bytes(lookup() if model is None else model)
    tokenizer = Tokenizer(models.WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.enable_padding(length=9)
    tokenizer.save(str(at / "tokenizer.json"))
    for name, value in configs.items():
        file = at / f"{name.replace('__', '/')}.json"
        file.parent.mkdir(exist_ok=True)
        file.write_text(json.dumps(value), encoding="utf-8")
    return at


def test_a_graph_with_every_kind_of_attribute() -> None:
    nodes = [
        onnx_proto.node("Gemm", ["x", "w"], ["y"], alpha=0.5, transB=1),
        onnx_proto.node("Transpose", ["y"], ["t"], perm=[1, 0]),
        onnx_proto.node("Softmax", ["t"], ["z"], axis=-1),
    ]
    weights = np.array([[1, 2], [3, 4], [5, 6]], np.float32)
    made = onnx_proto.model(
        nodes,
        [onnx_proto.tensor("w", weights)],
        [onnx_proto.value("x", onnx_proto.FLOAT, ["rows", 2])],
        [onnx_proto.value("z", onnx_proto.FLOAT, [3, "rows"])],
    )
    x = np.array([[1, 0], [0, 1]], np.float32)
    expected = np.exp(0.5 * weights @ x.T)
    expected /= expected.sum(axis=1, keepdims=True)
    assert session(onnxruntime, made).run(None, {"x": x})[0] == pytest.approx(expected, abs=1e-6)


def test_large_tensors_and_lengths_of_several_bytes() -> None:
    table = np.arange(300_000, dtype=np.int64).reshape(-1, 3)
    made = onnx_proto.model(
        [onnx_proto.node("Gather", ["table", "x"], ["y"])],
        [onnx_proto.tensor("table", table)],
        [onnx_proto.value("x", onnx_proto.INT64, [1])],
        [onnx_proto.value("y", onnx_proto.INT64, [1, 3])],
    )
    assert session(onnxruntime, made).run(None, {"x": np.array([-1])})[0].tolist() == [[299_997, 299_998, 299_999]]


def test_the_mean_of_the_tokens(tmp_path: Path) -> None:
    model = OnnxFolder(folder(tmp_path / "My model"))
    rows = model.encode(["parcel late", "refund", "", "\0", "😀"])
    assert rows[0] == pytest.approx([0.6, 0.8, 0])
    assert rows[1] == pytest.approx([0, 0, 1])
    assert np.linalg.norm(rows, axis=1) == pytest.approx(1)
    assert model.dimension == 3
    assert model.model_id == f"onnx-My-model-{model.digest[:12]}"


def test_the_first_token_where_the_folder_says_so(tmp_path: Path) -> None:
    model = OnnxFolder(folder(tmp_path / "m", **{"1_Pooling__config": {"pooling_mode_cls_token": True}}))
    assert model.encode(["late parcel parcel"])[0] == pytest.approx([0, 1, 0])


def test_prompts_and_length_of_the_folder(tmp_path: Path) -> None:
    configs = {
        "config_sentence_transformers": {"prompts": {"query": "ask ", "document": ""}},
        "sentence_bert_config": {"max_seq_length": 2},
    }
    model = OnnxFolder(folder(tmp_path / "m", **configs))
    assert model.encode(["parcel"])[0] == pytest.approx([1, 0, 0])
    assert model.encode(["parcel"], "query")[0] == pytest.approx(np.array([4, 1, 1]) / np.sqrt(18))
    assert np.array_equal(model.encode(["parcel late refund"]), model.encode(["parcel late"]))


def test_inputs_that_the_model_asks_for(tmp_path: Path) -> None:
    model = OnnxFolder(folder(tmp_path / "m", lookup("attention_mask", "token_type_ids")))
    assert model.encode(["refund"])[0] == pytest.approx([0, 0, 1])
    with pytest.raises(SettingError, match="pixel_values"):
        OnnxFolder(folder(tmp_path / "n", lookup("pixel_values")))


def test_the_digest_is_of_the_files(tmp_path: Path) -> None:
    one, same = OnnxFolder(folder(tmp_path / "a")), OnnxFolder(folder(tmp_path / "b"))
    other = OnnxFolder(folder(tmp_path / "c", lookup("attention_mask")))
    assert one.digest == same.digest != other.digest
    assert one.model_id != same.model_id


def test_by_setting_and_what_is_no_such_folder(tmp_path: Path) -> None:
    good = folder(tmp_path / "m")
    assert load_embedder(Settings(embedder=f"onnx:{good}")).dimension == 3
    with pytest.raises(SettingError, match=r"model\.onnx and tokenizer\.json"):
        load_embedder(Settings(embedder=f"onnx:{tmp_path / 'nothing'}"))
    broken = folder(tmp_path / "broken", b"no model")
    with pytest.raises(SettingError, match="cannot be loaded"):
        OnnxFolder(broken)
    (good / "1_Pooling").mkdir()
    (good / "1_Pooling" / "config.json").write_text("{", encoding="utf-8")
    with pytest.raises(SettingError, match="is no JSON"):
        OnnxFolder(good)
