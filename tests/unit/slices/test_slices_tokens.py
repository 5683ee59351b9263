"""Tokens of sensitive fields on their way through the labelling steps and the gate: no entity, no fact, no half."""

from datetime import UTC, datetime

import pyarrow as pa
import pytest

from memory_pipelines.admission.facts import extract_facts
from memory_pipelines.admission.summary import gist
from memory_pipelines.slices.entities.find import extract
from memory_pipelines.slices.labels import own_texts
from memory_pipelines.stores.vault import KINDS, bare, token, tokens

AT = datetime(2024, 5, 17, tzinfo=UTC)
TOKENS = [token(kind, bytes(range(i, i + 8))) for i, kind in enumerate(KINDS)]


def test_labels_see_equal_texts_of_two_people_as_equal() -> None:
    texts = [f"my number is {token('phone', bytes([i] * 8))}" for i in (1, 2)]
    assert own_texts(pa.table({"own_text": [*texts, None]})) == ["my number is [phone]"] * 2 + [""]


@pytest.mark.parametrize("kind", KINDS)
def test_a_token_is_no_entity(kind: str) -> None:
    for text in ("我的是{}，改一下", "call me at {}", "订单 {} 呢", "联系人：{}", "I live in {}"):
        assert extract(text.format(bare(kind)), AT) == ()
    assert [e.canonical for e in extract(f"phone {bare(kind)} order 4055512345", AT)] == [
        "product/phone",
        "order_number/4055512345",
    ]


@pytest.mark.parametrize("name", TOKENS)
def test_a_token_is_no_value_of_a_fact(name: str) -> None:
    for text in ("I like {}.", "I work at {}", "我喜欢{}", "我住在{}", "my name is {}", "I love my phone {}"):
        assert [f for f in extract_facts(text.format(name), AT, "") if f.base != "possession"] == []
    facts = extract_facts(f"I like tea, my number is {name}. 我住在深圳，电话{name}", AT, "")
    assert {(f.predicate, f.value) for f in facts} == {("likes", "tea"), ("home_city", "shenzhen")}


@pytest.mark.parametrize("name", TOKENS)
@pytest.mark.parametrize("language", ["zh", "en"])
def test_a_gist_holds_whole_tokens(name: str, language: str) -> None:
    for length in range(60, 160, 7):
        made = gist("x" * length + " " + name + "y" * 120, language)
        assert name in made or not any(made.rstrip("…").endswith(name[:n]) for n in range(1, len(name)))
        assert tokens(made) <= {name}
