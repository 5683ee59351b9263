"""Days named in a sentence, seen from the day it was said."""

from datetime import date

import pytest

from memory_pipelines.admission.dates import find_date

SAID = date(2024, 6, 5)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("明天", date(2024, 6, 6)),
        ("后天", date(2024, 6, 7)),
        ("大后天", date(2024, 6, 8)),
        ("周五", date(2024, 6, 7)),
        ("周一", date(2024, 6, 10)),
        ("下周三", date(2024, 6, 12)),
        ("下个月3号", date(2024, 7, 3)),
        ("1月2日", date(2025, 1, 2)),
        ("2023年12月31日", date(2023, 12, 31)),
        ("明年3月1日", date(2025, 3, 1)),
        ("三天后", date(2024, 6, 8)),
        ("两个月后", date(2024, 8, 5)),
        ("2024-07-01", date(2024, 7, 1)),
        ("七月二十一号", date(2024, 7, 21)),
        ("十二月三日", date(2024, 12, 3)),
        ("明年十月十号", date(2025, 10, 10)),
        ("下个月二十号", date(2024, 7, 20)),
        ("没有日期", None),
        ("二月三十号", None),
        ("13月40日", None),
    ],
)
def test_chinese(text: str, expected: date | None) -> None:
    hit = find_date(text, SAID, "zh")
    assert (hit.day if hit else None) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("tomorrow", date(2024, 6, 6)),
        ("the day after tomorrow", date(2024, 6, 7)),
        ("on Friday", date(2024, 6, 7)),
        ("Monday", date(2024, 6, 10)),
        ("next Monday", date(2024, 6, 10)),
        ("last Monday", date(2024, 5, 27)),
        ("on June 12th", date(2024, 6, 12)),
        ("12 June", date(2024, 6, 12)),
        ("the 3rd of March 2026", date(2026, 3, 3)),
        ("January 2", date(2025, 1, 2)),
        ("May 20", date(2024, 5, 20)),
        ("in two weeks", date(2024, 6, 19)),
        ("next month", date(2024, 7, 1)),
        ("in 3 months", date(2024, 9, 5)),
        ("the ninth of August", date(2024, 8, 9)),
        ("on the twenty-second of July", date(2024, 7, 22)),
        ("November the first", date(2024, 11, 1)),
        ("I may go", None),
        ("the second may help", None),
        ("February the thirtieth", None),
        ("February 31", None),
    ],
)
def test_english(text: str, expected: date | None) -> None:
    hit = find_date(text, SAID, "en")
    assert (hit.day if hit else None) == expected


def test_the_span_covers_the_preposition() -> None:
    text = "I leave on 12 June early"
    hit = find_date(text, SAID, "en")
    assert hit is not None
    assert text[hit.start : hit.end] == "on 12 June"


def test_months_end_where_they_end() -> None:
    hit = find_date("in a month", date(2024, 1, 31), "en")
    assert hit is not None
    assert hit.day == date(2024, 2, 29)
