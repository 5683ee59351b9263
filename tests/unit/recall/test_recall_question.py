"""Questions that gather from many places."""

import pytest

from memory_pipelines.recall.question import gathers


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("What books has Tim read?", True), ("Which endorsement deals did John get?", True), ("How many pets?", True),
        ("What are my plans?", True), ("我去过哪些城市", True), ("有几个人和我同乡", True),
        ("Which team did John sign with?", False), ("When did she move?", False), ("我的快递在哪", False),
    ],
)  # fmt: skip
def test_gathers(query: str, expected: bool) -> None:
    assert gathers(query) is expected
