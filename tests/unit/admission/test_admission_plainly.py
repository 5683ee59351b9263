"""Ways of saying that come to one plain sentence: what they state, whose it is, and what they do not state."""

from datetime import UTC, datetime

import pytest

from memory_pipelines.admission.clauses import language_of
from memory_pipelines.admission.facts import extract_facts

AT = datetime(2025, 6, 10, 9, tzinfo=UTC)

STATED = [
    ("榴莲的味道我真受不了", "dislikes", "榴莲"),
    ("荔枝我一碰就过敏", "allergy", "荔枝"),
    ("下班以后我就爱逛花市", "likes", "逛花市"),
    ("作为一名药剂师，我得值夜班", "job", "药剂师"),
    ("我给一家外贸公司打工", "employer", "一家外贸公司"),
    ("街坊们平时都喊我阿桂", "", ""),
    ("同事们都喊我阿桂", "nickname", "阿桂"),
    ("我弟弟在宜昌长大", "family.brother.hometown", "宜昌"),
    ("As a plumber, I know that noise", "job", "plumber"),
    ("Having asthma, I stay inside today", "condition", "asthma"),
    ("Walnuts give me hives", "allergy", "walnuts"),
    ("Curling is my guilty pleasure", "likes", "curling"),
    ("Karaoke is not my cup of tea", "dislikes", "karaoke"),
    ("My teammates call me Ziggy", "", ""),
    ("My friends call me Ziggy", "nickname", "ziggy"),
    ("We named our son Otis", "family.son.name", "otis"),
    ("The best way to reach me is by text", "contact", "text"),
]

NOTHING = [
    "我同事在洛阳住",
    "我在洛阳出差",
    "作为老客户我要投诉",
    "你们的服务我受不了",
    "这个我不喜欢",
    "如果我是护士就好了",
    "早上我要开会",
    "As a rule I don't answer",
    "As a child I was shy",
    "Being late, I took a cab",
    "My friend is into board games",
    "I have been in Bergen for two days",
    "I know Spanish people",
    "If I were a nurse, I'd know",
    "Please call me when it ships",
]


@pytest.mark.parametrize(("text", "predicate", "value"), STATED)
def test_a_way_of_saying_states_what_the_plain_sentence_does(text: str, predicate: str, value: str) -> None:
    found = [(f.predicate, f.value) for f in extract_facts(text, AT, language_of(text)) if not f.ends]
    assert found == ([(predicate, value)] if predicate else [])


@pytest.mark.parametrize("text", NOTHING)
def test_nothing_is_made_up(text: str) -> None:
    assert extract_facts(text, AT, language_of(text)) == []


@pytest.mark.parametrize("text", ["在杭州" * 90, "家里还也在" * 55, "I am the best nurse at Big Big " * 9])
def test_a_long_clause_is_read_at_once(text: str) -> None:
    """A frame whose parts may match the same words in turns would not come to an end here."""
    assert len(extract_facts(text, AT, language_of(text))) < 5
