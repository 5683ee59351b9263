"""Scores of the gold set: what counts as kept, as a right fact, as current."""

import json
from collections import Counter, defaultdict
from dataclasses import replace
from datetime import UTC, datetime

from benchmarks.admission import gold, scores, simulator
from benchmarks.admission.gold import Gold, GoldFact, Result
from memory_pipelines.admission.worth.training import examples

AT = datetime(2024, 5, 17, tzinfo=UTC)
ROW = Gold("en-1", "en", "likes", "assistant", AT, "", "text", "long", "semantic", "permanent", ())
TEA = GoldFact("self", "likes", "green tea", False, "")
LONG = frozenset(("long",))


def result(remember: str, *facts: GoldFact) -> Result:
    return Result(remember, "semantic", "permanent", facts)


def test_kept_counts_both_sides() -> None:
    short = replace(ROW, remember="short")
    pairs = [(ROW, result("long")), (ROW, result("short")), (short, result("long")), (short, result("discard"))]
    score = scores.kept(pairs, LONG)
    assert (score.right, score.found, score.expected) == (1, 2, 2)
    assert (score.precision, score.recall, score.f1) == (0.5, 0.5, 0.5)
    assert scores.agreement(pairs, lambda g: g.stratum) == {"likes": (1, 4)}
    assert scores.recall_of(pairs, lambda g: g.type) == {"semantic": (1, 2)}
    assert scores.permanence(pairs) == (4, 4)


def test_values_overlap_by_containment_or_words() -> None:
    assert scores.overlaps("a nurse", "nurse")
    assert scores.overlaps("靠走道", "靠走道的位子")
    assert scores.overlaps("繁體中文", "繁体中文")
    assert scores.overlaps("I don't drink", "do not drink")
    assert not scores.overlaps("Leeds", "London")
    assert not scores.overlaps("花生", "核桃")


def test_a_fact_is_matched_once_and_by_person_predicate_and_state() -> None:
    assert scores.matches([TEA], [TEA, TEA]) == [TEA]
    for other in (replace(TEA, who="son"), replace(TEA, predicate="dislikes"), replace(TEA, ends=True)):
        assert scores.matches([TEA], [other]) == []
    told = scores.facts([(replace(ROW, facts=(TEA,)), result("long", replace(TEA, value="tea")))])
    assert (told["likes"].right, told["likes"].found, told["likes"].expected) == (1, 1, 1)


def test_other_predicates_are_one_class() -> None:
    fact = {"who": "self", "predicate": "other:size", "value": "44", "ends": False, "date": None}
    row = {"id": "x", "stratum": "s", "scenario": "assistant", "said_at": "2024-05-17T00:00:00+00:00", "before": ""}
    row |= {"text": "t", "remember": "long", "type": "semantic", "permanence": "long", "facts": [fact]}
    assert gold.parse(row, "en").facts == (GoldFact("self", "other", "44", False, ""),)


def test_no_training_text_is_in_the_gold_set() -> None:
    trained = {text for text, _, _ in examples()}
    short = {row.text for split in ("dev", "test") for row in gold.load(split) if len(row.text) > 12}
    assert not trained & short


def grams(text: str) -> frozenset[str]:
    told = "".join(text.casefold().split())
    return frozenset(told[at : at + 5] for at in range(max(1, len(told) - 4)))


def test_no_training_text_is_nearly_in_the_fresh_part() -> None:
    """Near: the two share more than three in ten of their runs of five characters."""
    holding = defaultdict(set)
    rows = {row.id: grams(row.text) for row in gold.load("fresh")}
    for key, found in rows.items():
        for gram in found:
            holding[gram].add(key)
    near = [
        (key, text)
        for text in {text for text, _, _ in examples()}
        for told in [grams(text)]
        for key, shared in Counter(key for gram in told for key in holding.get(gram, ())).items()
        if shared > 0.3 * len(told | rows[key])
    ]
    assert not near


def test_every_part_has_all_strata_in_both_languages_and_no_id_twice() -> None:
    rows = {split: gold.load(split) for split in gold.SPLITS}
    for split in gold.SPLITS:
        strata = {row.stratum for row in rows["paraphrases" if split in gold.PARAPHRASES else "dev"]}
        for language in gold.LANGUAGES:
            assert {row.stratum for row in rows[split] if row.language == language} == strata
    ids = [row.id for part in rows.values() for row in part]
    assert len(ids) == len(set(ids))


def test_current_values_are_compared_with_the_truth() -> None:
    def memory(value: str, ended: bool = False) -> dict[str, object]:
        told = json.dumps({"object": value})
        return {"subject": "u:1", "predicate": "home_city", "valid_to": AT if ended else None, "structured": told}

    facts = [
        {"subject": "u:1", "predicate": "home_city", "value": "Leeds", "current": False},
        {"subject": "u:1", "predicate": "home_city", "value": "York", "current": True},
    ]
    (right,) = simulator.compare(facts, [memory("Leeds", ended=True), memory("York")])
    (wrong,) = simulator.compare(facts, [memory("Leeds"), memory("York")])
    assert right.right
    assert not wrong.right
