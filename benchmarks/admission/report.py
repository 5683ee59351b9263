"""What is printed of the scores. Belongs here: tables of the gold set. Does not belong here: any count."""

from collections.abc import Sequence

from benchmarks.admission import scores
from benchmarks.admission.scores import Pair, Score

LONG = frozenset(("long",))
KEPT = frozenset(("long", "short"))


def _figures(score: Score) -> str:
    return f"{score.precision:.3f} | {score.recall:.3f} | {score.f1:.3f}"


def print_gold(split: str, pairs: Sequence[Pair], languages: Sequence[str]) -> None:
    """The tables of one part of the gold set."""
    print(f"\n== gold set, {split}: n = {len(pairs)} turns")
    print("| language | n | long P | R | F1 | kept P | R | F1 | outcome | type | permanence | facts P | R | F1 |")
    print("| --- | --: | " + " | ".join(["--:"] * 12) + " |")
    for language in [*languages, "all"]:
        chosen = [pair for pair in pairs if language in (pair[0].language, "all")]
        right = sum(gold.remember == result.remember for gold, result in chosen)
        shares = " | ".join(f"{a / max(1, b):.3f}" for a, b in (scores.types(chosen), scores.permanence(chosen)))
        fact = sum(scores.facts(chosen).values(), Score(0, 0, 0))
        print(
            f"| {language} | {len(chosen)} | {_figures(scores.kept(chosen, LONG))} | {_figures(scores.kept(chosen, KEPT))} "  # noqa: E501
            f"| {right / len(chosen):.3f} | {shares} | {_figures(fact)} |"
        )
    print("\nRecall of long by type:")
    for language in languages:
        chosen = [pair for pair in pairs if pair[0].language == language]
        told = scores.recall_of(chosen, lambda gold: gold.type)
        print(f"{language}: " + ", ".join(f"{name} {a / b:.2f} ({b})" for name, (a, b) in told.items()))
    print("\nTurns with the labelled outcome, by stratum:")
    for language in languages:
        chosen = [pair for pair in pairs if pair[0].language == language]
        told = scores.agreement(chosen, lambda gold: gold.stratum)
        print(f"{language}: " + ", ".join(f"{name} {a}/{b}" for name, (a, b) in told.items()))
    print("\nFacts by predicate (P, R, expected):")
    for language in languages:
        chosen = [pair for pair in pairs if pair[0].language == language]
        told_facts = scores.facts(chosen)
        print(
            f"{language}: "
            + ", ".join(f"{n} {s.precision:.2f} {s.recall:.2f} ({s.expected})" for n, s in told_facts.items())
        )
