"""Training of the worth model: ``python -m memory_pipelines.admission.worth.training``.

Belongs here: examples to weights. Does not belong here: reading a text (``features``), or judging one (``model``).
Written by the project and nowhere taken from: ``data/worth_examples_*.yaml``, and the examples of the intent
model, whose intents say what they are worth (at a fifth of the weight). The gold set takes no part.
"""

from collections import Counter
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from memory_pipelines.admission.worth.features import features
from memory_pipelines.admission.worth.model import LABELS, UNIT, WEIGHTS, WorthModel

STRENGTH = 25.0
"""Inverse of the L2 penalty; chosen, with ``INTENT_WEIGHT``, on examples that were held out of training."""
INTENT_WEIGHT = 0.2
RARE = 2
"""A feature must occur in so many examples."""
_WORTH = {
    "long": "logistics_complaint product_complaint service_complaint share_fact state_preference make_plan",
    "short": "order_status return_exchange refund_request cancel_order invoice_request coupon_inquiry account_issue "
    "product_inquiry recommendation_request",
    "discard": "thanks greeting farewell acknowledgement chit_chat calculation_request",
}


def examples() -> Iterator[tuple[str, str, float]]:
    """(text, label, weight) of all training rows."""
    folder = resources.files("memory_pipelines.admission").joinpath("data")
    for language in ("zh", "en"):
        rows = yaml.safe_load(folder.joinpath(f"worth_examples_{language}.yaml").read_text("utf-8"))
        for label, lines in rows.items():
            yield from ((line, label, 1.0) for line in lines.strip().splitlines())
    yield from ((text, label, INTENT_WEIGHT) for text, label in _intent_examples())


def _intent_examples() -> Iterator[tuple[str, str]]:
    worth = {intent: label for label, intents in _WORTH.items() for intent in intents.split()}
    slots: dict[str, dict[str, list[Any]]] = {}
    folder = resources.files("memory_pipelines.slices").joinpath("data")
    for file in sorted(f.name for f in folder.iterdir() if f.name.startswith("intent_examples")):
        rows = yaml.safe_load(folder.joinpath(file).read_text("utf-8"))
        slots = rows.get("slots", slots)
        for intent, by_language in rows["intents"].items():
            for language, by_action in by_language.items():
                for action, lines in by_action.items():
                    if intent in worth and action not in ("cues", "deny"):
                        for number, line in enumerate(lines.strip().splitlines()):
                            yield _filled(line, slots[language], number), worth[intent]


def _filled(line: str, slots: dict[str, list[Any]], number: int) -> str:
    for name, values in slots.items():
        line = line.replace(f"{{{name}}}", str(values[number % len(values)]))
    return line


def train() -> WorthModel:
    """The model of all examples: multinomial logistic regression over features of unit length."""
    from sklearn.feature_extraction import DictVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.preprocessing import normalize

    rows = list(examples())
    made = [features(text) for text, _, _ in rows]
    often = Counter(name for row in made for name in row)
    vectorizer = DictVectorizer()
    matrix = vectorizer.fit_transform([{k: v for k, v in row.items() if often[k] >= RARE} for row in made])
    head = LogisticRegression(C=STRENGTH, max_iter=2000, class_weight="balanced")
    head.fit(normalize(matrix), [label for _, label, _ in rows], sample_weight=[weight for *_, weight in rows])
    order = [list(head.classes_).index(label) for label in LABELS]
    weights = np.rint(head.coef_[order].T * UNIT).astype(np.int32)
    bias = np.rint(head.intercept_[order] * UNIT).astype(np.int32)
    return WorthModel(dict(zip(vectorizer.feature_names_, weights.tolist(), strict=True)), tuple(bias.tolist()))


def main() -> None:
    model = train()
    folder = Path(str(resources.files("memory_pipelines.admission").joinpath("data")))
    names = sorted(model.weights)
    np.savez_compressed(
        folder / WEIGHTS,
        names=np.frombuffer("\n".join(names).encode(), dtype=np.uint8),
        weights=np.array([model.weights[name] for name in names], dtype=np.int32),
        bias=np.array(model.bias, dtype=np.int32),
    )
    print(f"{len(names)} features")


if __name__ == "__main__":
    main()
