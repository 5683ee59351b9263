"""Training: the shipped examples, fit, blend, calibration, threshold, metrics, and models at rest."""

from pathlib import Path

import numpy as np
import pytest

from memory_pipelines.errors import InputError, IntegrityError
from memory_pipelines.slices.intent import examples as intent_examples
from memory_pipelines.slices.intent import files as intent_files
from memory_pipelines.slices.intent import fit as intent_fit
from memory_pipelines.slices.intent.examples import load_examples
from memory_pipelines.slices.intent.files import from_body, load_model, to_body
from memory_pipelines.slices.intent.fit import Row, blend, fit_model, labels_of, scope_threshold
from memory_pipelines.slices.intent.metrics import better, calibration_error, head_metrics, scope_metrics
from memory_pipelines.slices.intent.model import HEADS, OUT_OF_SCOPE, IntentLabel, IntentModel, ontology_labels
from memory_pipelines.slices.intent.plots import class_table, confusion
from memory_pipelines.slices.intent.training import FILES, KINDS, train
from memory_pipelines.slices.resources import read_yaml

FALLBACK = {"intent": OUT_OF_SCOPE, "action": "inform", "category": "chit_chat"}
PLANTS = ["rose", "tulip", "daisy", "lily", "orchid", "poppy", "violet", "iris", "fern", "moss"]
BEASTS = ["dog", "cat", "horse", "cow", "goat", "sheep", "mouse", "rabbit", "donkey", "goose"]


def few_rows() -> list[Row]:
    """Ten rows a class; the action of some is unknown, no category is known."""
    rows = [Row(f"please water the {name} now", ("garden", "request", None), name) for name in PLANTS]
    rows += [Row(f"who feeds the {name} today", ("farm", "ask", None), name) for name in BEASTS]
    return [*rows, Row("给花浇水", ("garden", None, None), "浇水"), Row("喂一下牛", ("farm", None, None), "喂牛")]


@pytest.fixture(scope="module", params=[(), ("hash",)], ids=["fast", "embeddings"])
def model(request: pytest.FixtureRequest) -> IntentModel:
    rows = few_rows()
    return fit_model(rows, labels_of(rows), FALLBACK, request.param)


def test_ten_rows_a_class_are_enough_to_start(model: IntentModel) -> None:
    garden, farm = model.nearest(["please water the cactus now", "who feeds the hamster today"])
    assert (garden.intent, garden.action) == ("garden", "request")
    assert (farm.intent, farm.action) == ("farm", "ask")


def test_a_head_without_labels_gives_the_fallback(model: IntentModel) -> None:
    (label,) = model.classify(["please water the rose now"])
    assert (label.category, label.category_confidence) == ("chit_chat", 0.0)


def test_a_model_at_rest_is_the_same_model(model: IntentModel) -> None:
    body = to_body(model)
    again = from_body(body)
    texts = [row.text for row in few_rows()]
    assert again.classify(texts) == model.classify(texts)
    assert to_body(again) == body
    for broken in ("", "{}", body[:-9], body.replace('"format":1', '"format":2')):
        with pytest.raises(IntegrityError):
            from_body(broken)


def test_training_is_deterministic() -> None:
    rows = few_rows()
    assert to_body(fit_model(rows, labels_of(rows), FALLBACK)) == to_body(fit_model(rows, labels_of(rows), FALLBACK))


def test_one_intent_is_nothing_to_learn() -> None:
    rows = [Row("hello", ("greeting", None, None), "1"), Row("hi", ("greeting", None, None), "2")]
    with pytest.raises(InputError):
        fit_model(rows, labels_of(rows), FALLBACK)


def test_blend_finds_the_temperature() -> None:
    # logits that are four times too sure: of 100 rows 73 are right, as a difference of 1 says
    logits = np.tile([[4.0, 0.0]], (100, 1))
    truth = np.array([0] * 73 + [1] * 27)
    size, share = blend(logits, None, truth)
    assert 1 / size == pytest.approx(4.0, abs=0.1)
    assert share == 0.0


def test_blend_trusts_the_logits_that_are_right() -> None:
    truth = np.arange(200) % 2
    telling = np.eye(2)[truth] * 3 - np.eye(2)[(truth + (np.arange(200) % 10 == 0)) % 2]
    noise = np.eye(2)[np.arange(200) // 2 % 2] * 3.0
    size, share = blend(noise, telling, truth)
    assert share > 5 * size


def test_the_threshold_keeps_the_scope_and_finds_what_is_outside() -> None:
    inside = np.tile([[6.0, 0.0, -2.0]], (90, 1))
    outside = np.tile([[0.5, 0.0, -2.0]], (10, 1))
    truth = np.array([0] * 90 + [2] * 10)
    threshold = scope_threshold(np.vstack([inside, outside]), truth, 2)
    assert 0.59 < threshold <= 0.95
    assert scope_threshold(inside, truth[:90], None) >= 0.9
    assert scope_threshold(np.zeros((0, 3)), np.zeros(0, dtype=np.int64), 2) == 0.0


def label(intent: str, sure: float = 0.9) -> IntentLabel:
    return IntentLabel(intent, sure, "ask", 0.5, "fact", 0.5)


def test_metrics_of_a_head() -> None:
    truth = ["a", "a", "a", "b", None]
    found = head_metrics(truth, [label("a"), label("a"), label("b"), label("b"), label("c")], "intent")
    assert (found.n, found.accuracy) == (4, 0.75)
    assert found.macro_f1 == pytest.approx((0.8 + 2 / 3) / 2, abs=1e-4)
    assert found.ece == pytest.approx(0.15, abs=1e-4)
    assert found.confused == [("a", "b", 1)]
    assert found.classes["a"] == (1.0, 0.6667, 0.8, 3)
    assert class_table(found).splitlines()[2].startswith("| b |"), "the worst first"


def test_scope_metrics() -> None:
    found = scope_metrics(["a", "b", OUT_OF_SCOPE, OUT_OF_SCOPE], [label(x) for x in ("a", "a", OUT_OF_SCOPE, "b")])
    assert found == {"in_scope_accuracy": 0.5, "oos_recall": 0.5, "joint_accuracy": 0.5}


def test_calibration_error() -> None:
    assert calibration_error(np.full(100, 0.73), np.arange(100) < 73) == pytest.approx(0.0, abs=1e-9)
    assert calibration_error(np.full(100, 1.0), np.arange(100) < 50) == pytest.approx(0.5)


def test_only_better_is_better() -> None:
    good = head_metrics(["a", "b"] * 5, [label("a"), label("b")] * 5, "intent")
    bad = head_metrics(["a", "b"] * 5, [label("a"), label("a")] * 5, "intent")
    assert better(bad, good)[0]
    assert not better(good, bad)[0]
    assert not better(good, good)[0]


def test_the_confusion_plot_is_a_picture() -> None:
    names = [f"intent {i}" for i in range(40)]
    assert confusion(names, names[1:] + names[:1]).startswith(b"\x89PNG")
    assert confusion(["a", "b"], ["a", "a"]) == confusion(["a", "b"], ["a", "a"])


def test_every_label_has_examples_in_both_languages() -> None:
    labels = ontology_labels(read_yaml("ontology.yaml"))
    lines: dict[tuple[str, str], int] = {}
    for name in intent_examples.EXAMPLES:
        for intent, languages in read_yaml(name)["intents"].items():
            for language, groups in languages.items():
                count = sum(len(block.split()) > 0 and block.count("\n") for g, block in groups.items() if g != "cues")
                lines[intent, language] = lines.get((intent, language), 0) + count
    assert set(lines) == {(intent, language) for intent in labels["intent"] for language in ("zh", "en")}
    assert min(lines.values()) >= 14
    rows = [example.row for example in load_examples()]
    assert {row.labels[1] for row in rows} - {None} == set(labels["action"])
    assert {row.labels[2] for row in rows} == set(labels["category"])
    held = {e.row.group for e in load_examples() if e.held_out}
    assert not held & {e.row.group for e in load_examples() if not e.held_out}


@pytest.mark.parametrize("kind", KINDS)
def test_the_cards_meet_the_bar(kind: str) -> None:
    card = read_yaml(f"{FILES[kind]}.yaml")
    assert card["examples_sha256"] == intent_examples.examples_hash(), "retrain: the examples changed"
    floor = {"fast": (0.8, 0.78, 0.83), "accurate": (0.89, 0.88, 0.9)}[kind]
    for head, least in zip(HEADS, floor, strict=True):
        assert card["held_out"][head]["accuracy"] >= least
        assert card["held_out"][head]["ece"] <= 0.09


@pytest.mark.slow
def test_shipped_weights_are_what_the_trainer_makes(tmp_path: Path) -> None:
    shipped, trained = load_model("base-2"), train("fast").model
    # another CPU's exp may round a weight the other way
    assert np.abs(trained.weights.astype(int) - shipped.weights).max() <= 2
    assert trained.temperatures == pytest.approx(shipped.temperatures, abs=0.01)
    intent_files.save(trained, {}, tmp_path / "w.npz", tmp_path / "c.yaml")
    assert (tmp_path / "w.npz").stat().st_size < 2_000_000


def test_many_rows_are_rehearsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intent_fit, "FEW", 5)
    monkeypatch.setattr(intent_fit, "MOST_LANDMARKS", 8)
    rows = few_rows()
    model = fit_model(rows, labels_of(rows), FALLBACK, ("hash",))
    assert model.kernel is not None
    assert len(model.kernel.parts[0].rows) <= 8
    assert model.nearest(["please water the rose now"])[0].intent == "garden"
