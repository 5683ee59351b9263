"""The patterns of the ontology, tried together: none is lost, and the same ones match as one by one."""

import itertools
import re

import pytest

from benchmarks.admission import gold
from memory_pipelines.admission.clauses import clauses
from memory_pipelines.admission.ontology import LANGUAGES, Patterns, patterns, raw_patterns, usable_patterns
from memory_pipelines.admission.subject import SELF, read_phrase, variants

MODES = ("verb", "noun")


def _sets(language: str) -> list[Patterns]:
    chosen = [usable_patterns(language, mode, dated) for mode, dated in itertools.product(MODES, (True, False))]
    return [*chosen, raw_patterns(language)]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_pattern_is_tried_where_it_may_be(language: str) -> None:
    for mode in MODES:
        of_mode = patterns(language, mode)
        raw = [p for p in of_mode if p.raw]
        assert list(usable_patterns(language, mode, True).each) == [p for p in of_mode if p not in raw]
        assert list(usable_patterns(language, mode, False).each) == [p for p in of_mode if not (p in raw or p.dated)]
        assert set(raw) <= set(raw_patterns(language).each)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_any_matches_is_made_of_each(language: str) -> None:
    """A branch of its own for every pattern, in order, with its own case: what one matches, all together do."""
    for chosen in _sets(language):
        sources = [re.sub(r"\(\?P<\w+>", "(?:", p.regex.pattern) for p in chosen.each]
        cased = [not p.regex.flags & re.I for p in chosen.each]
        branches = [f"({s})" if c else f"((?i:{s}))" for s, c in zip(sources, cased, strict=True)]
        assert chosen.any.pattern == "|".join(branches)
        assert chosen.any.groups == len(chosen.each)  # a group of a pattern's own would shift the places


@pytest.mark.parametrize("language", LANGUAGES)
def test_together_they_match_as_one_by_one(language: str) -> None:
    phrases = {
        text
        for row in gold.load("dev", [language])
        for clause in clauses(row.text)
        if clause.language == language
        for text, _ in variants(read_phrase(clause.text, language, SELF), language)
    }
    seen = set()
    for chosen in _sets(language):
        for phrase in phrases:
            alone = [(p, match[0]) for p in chosen.each if (match := p.regex.match(phrase))]
            assert [(p, match[0]) for p, match in chosen.matches(phrase)] == alone
            seen.update(p for p, _ in alone)
    assert len(seen) > 50
