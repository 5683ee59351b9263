"""What each step learns from labelled rows, in one form: how to train, judge and compare, and what to show.

Belongs here: joining ``slices`` functions to one form. Does not belong here: numerics (``slices``), stores
(``trained``).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from memory_pipelines.errors import InputError
from memory_pipelines.models.sets import ModelSet
from memory_pipelines.pipeline.model_sets import knows_taggers, scorer_of, tagger_of
from memory_pipelines.slices.bodies import packed
from memory_pipelines.slices.labelled import EMOTION, ENTITIES, INTENT

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Learned:
    """A challenger, judged on held-out rows beside the current model.

    ``body``: its text; ``rows`` that it learned from; ``sources``: hash of rows that ship, if it learned from them;
    ``metrics``: JSON; ``better`` and ``reason``: the verdict. To show: ``figures`` of the hold-out, ``tables`` (lists
    of records) and ``texts`` (Markdown) by name, ``picture`` (PNG) with its title."""

    body: str
    rows: int
    metrics: Mapping[str, Any]
    better: bool
    reason: str
    figures: Mapping[str, float | int | str]
    picture: tuple[str, bytes]
    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    sources: str = ""


Learner = Callable[[ModelSet, str | None, Sequence[Row], Sequence[Row]], Learned]
"""(model set of the settings, body of the champion if there is one, rows to train, rows to judge) -> challenger."""


def learn_intents(chosen: ModelSet, champion: str | None, train: Sequence[Row], held: Sequence[Row]) -> Learned:
    """An intent model of the rows and of those that ship; fast or accurate, as that of the listed set."""
    from memory_pipelines.slices.intent.examples import ONTOLOGY, examples_hash, load_examples
    from memory_pipelines.slices.intent.files import from_body, load_model, to_body
    from memory_pipelines.slices.intent.fit import fit_model
    from memory_pipelines.slices.intent.labelled import all_labels, training_rows
    from memory_pipelines.slices.intent.metrics import better, evaluate
    from memory_pipelines.slices.intent.model import ontology_labels
    from memory_pipelines.slices.intent.plots import class_table, confusion
    from memory_pipelines.slices.resources import read_yaml

    listed = load_model(chosen)
    embedders = [] if listed.kernel is None else [part.embedder for part in listed.kernel.parts]
    own, judges = training_rows(train), training_rows(held)
    rows = [*(example.row for example in load_examples()), *own]
    ontology = read_yaml(ONTOLOGY)
    model = fit_model(rows, all_labels(ontology_labels(ontology), own), ontology["fallback"], embedders)
    metrics = evaluate(model, judges)
    current = listed if champion is None else from_body(champion)
    promote, reason = better(evaluate(current, judges)["intent"], metrics["intent"])
    intents = metrics["intent"]
    most = [{"true": a, "predicted": b, "rows": n} for a, b, n in intents.confused]
    truth = [row.labels[0] or "" for row in judges]
    given = [label.intent for label in model.classify([row.text for row in judges])]
    return Learned(
        body=to_body(model),
        rows=len(rows),
        metrics={head: found.as_json() for head, found in metrics.items()},
        better=promote,
        reason=reason,
        figures={"accuracy": intents.accuracy, "macro_f1": intents.macro_f1, "calibration_error": intents.ece},
        picture=("Confusion", confusion(truth, given)),
        tables={
            "heads": [{"head": head, **found.as_json()} for head, found in metrics.items()],
            **({"most_confused": most} if most else {}),
        },
        texts={"classes": class_table(intents)},
        sources=examples_hash(),
    )


FAST_EMBEDDER = "use"
"""Of an emotion head for a set without one: what the plain install has."""


def learn_emotions(chosen: ModelSet, champion: str | None, train: Sequence[Row], held: Sequence[Row]) -> Learned:
    """An emotion head of the rows alone, over the embedding of the listed set's head. Raises InputError if they are
    too few."""
    from memory_pipelines.slices.emotion.metrics import better, evaluate, scatter
    from memory_pipelines.slices.emotion.score import load_scorer
    from memory_pipelines.slices.emotion.training import FOLDS, Rows
    from memory_pipelines.slices.emotion.training import train as fit

    if len(train) < 2 * FOLDS:
        raise InputError(f"{len(train)} rows of emotion to train on; {2 * FOLDS} are needed")
    listed = load_scorer(chosen)
    named = all(row["emotion"] for row in train)
    rows = Rows(
        [row["text"] for row in train],
        [row["score"] for row in train],
        [row["emotion"] for row in train] if named else (),
    )
    body = packed(EMOTION, fit(rows, FAST_EMBEDDER if listed.head is None else listed.head.embedder).bytes())
    texts, truth = [row["text"] for row in held], [row["score"] for row in held]
    current = listed if champion is None else scorer_of(champion)
    given = [label.score for label in scorer_of(body).labels(texts)]
    metrics = evaluate(truth, given)
    promote, reason = better(evaluate(truth, [label.score for label in current.labels(texts)]), metrics)
    return Learned(
        body=body,
        rows=len(train),
        metrics=metrics.as_json(),
        better=promote,
        reason=reason,
        figures={name: value for name, value in metrics.as_json().items() if value is not None and name != "n"},
        picture=("Scores", scatter(truth, given)),
    )


def learn_entities(chosen: ModelSet, champion: str | None, train: Sequence[Row], held: Sequence[Row]) -> Learned:
    """A tagger of the rows alone, judged with the other finders of the set around it. Raises InputError if no row
    names an entity, SettingError if the set knows no tagger."""
    from memory_pipelines.slices.entities.metrics import bars, better, evaluate
    from memory_pipelines.slices.entities.tagger import Span
    from memory_pipelines.slices.entities.tagger_training import Row as Text
    from memory_pipelines.slices.entities.tagger_training import train as fit

    knows_taggers(chosen)

    def texts(rows: Sequence[Row]) -> list[Text]:
        return [Text(r["text"], tuple(Span(s["start"], s["end"], s["kind"]) for s in r["spans"])) for r in rows]

    judges = texts(held)
    kinds = {span["kind"] for row in (*train, *held) for span in row["spans"]}
    body = packed(ENTITIES, fit(texts(train)))
    old = evaluate(judges, kinds, chosen, None if champion is None else tagger_of(champion))
    new = evaluate(judges, kinds, chosen, tagger_of(body))
    promote, reason = better(old, new)
    figures = new.as_json()
    return Learned(
        body=body,
        rows=len(train),
        metrics=figures,
        better=promote,
        reason=reason,
        figures={name: figures[name] for name in ("precision", "recall", "f1")},
        picture=("F1 by kind", bars(old, new)),
        tables={"kinds": [{"kind": kind, **one} for kind, one in figures["kinds"].items()]},
    )


LEARNERS: Mapping[str, Learner] = {INTENT: learn_intents, EMOTION: learn_emotions, ENTITIES: learn_entities}
