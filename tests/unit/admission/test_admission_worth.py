"""The worth model's reading of a text: who is spoken of, and in whose words."""

import pytest

from memory_pipelines.admission.worth.features import features
from memory_pipelines.admission.worth.model import worth_of_text


def voices(text: str) -> set[str]:
    return {name[2:] for name in features(text) if name.startswith("v=") and name[-1] not in "?."}


@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("My friend collects spoons", "theirs alone"),
        ("My friend lent me her flat", "self and theirs"),
        ("I collect spoons", "self"),
        ('The mug says "I hate mornings"', "self quoted"),
        ("歌词：我住在黄土高坡", "self quoted"),
        ("我朋友在南极待过", "theirs alone"),
        ("我朋友借了我两万块", "self and theirs"),
        ("我爸在南极待过", "first kin"),
    ],
)
def test_a_text_shows_who_is_spoken_of(text: str, there: str) -> None:
    assert there in voices(text)


def test_what_is_of_ones_own_and_named_shows() -> None:
    assert "f=own name ?" in features("Where do I get a belt for my old Triumph?")
    assert "f=own name ?" in features("我那台A7多少钱能修？")
    assert "f=own name" not in features("Where do I get a belt?")


@pytest.mark.parametrize(
    ("kept", "dropped"),
    [
        ("I'm allergic to nickel", 'The villain says "I\'m allergic to nickel"'),
        ("我辞职了", "网上有人说：我辞职了，去种地。笑死"),
        ("我妹妹在敦煌当导游", "听说隔壁老王的妹妹在敦煌当导游"),
    ],
)
def test_ones_own_fact_outweighs_the_same_words_of_others(kept: str, dropped: str) -> None:
    assert worth_of_text(kept).long > 0.5 > worth_of_text(dropped).long
