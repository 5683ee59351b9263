"""Dates of the second revision against a Friday, 2024-05-17: tense, ranges, holidays."""

import itertools
from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory_pipelines.slices.entities.said_dates import find_said_dates
from memory_pipelines.slices.language import fold

AT = datetime(2024, 5, 17, 8, 12, tzinfo=UTC)

CASES = [
    # a bare weekday: ahead, back, neither
    ("预计周一送达", ["2024-05-20"]),
    ("周一买的", ["2024-05-13"]),
    ("周一", ["2024-05-13"]),
    ("arrives on monday", ["2024-05-20"]),
    ("i bought it on monday", ["2024-05-13"]),
    ("due friday", ["2024-05-17"]),
    ("will it be here by tuesday or wednesday", ["2024-05-21", "2024-05-22"]),
    ("delivered on sat", ["2024-05-11"]),
    ("sat on the chair", []),
    ("这周末会到吗", ["2024-05-18"]),
    # said weeks are ISO weeks
    ("next friday", ["2024-05-24"]),
    ("last friday", ["2024-05-10"]),
    ("下周五", ["2024-05-24"]),
    ("下周末", ["2024-05-25"]),
    # recurring days are no date
    ("每周一开会", []),
    ("周一到周五上班", []),
    ("every friday", []),
    ("on fridays", []),
    # forecasts and ranges
    ("预计5月20日-22日送达", ["2024-05-20", "2024-05-22"]),
    ("expected may 20 - 22", ["2024-05-20", "2024-05-22"]),
    ("预计1月3日送达", ["2025-01-03"]),
    ("预计明年3月到货", ["2025-03"]),
    ("3-5天到", []),
    ("in 3 business days", ["2024-05-22"]),
    # days of a month
    ("下个月3号", ["2024-06-03"]),
    ("3号之前能到吗", ["2024-06-03"]),
    ("15号买的", ["2024-05-15"]),
    ("3号楼", []),
    ("10号线", []),
    ("by the 3rd", ["2024-06-03"]),
    ("on the 3rd floor", []),
    # months
    ("去年五月", ["2023-05"]),
    ("5月", ["2024-05"]),
    ("12月买的", ["2023-12"]),
    ("三个月", []),
    ("两个月", []),
    ("月底", ["2024-05"]),
    ("下个月底", ["2024-06"]),
    ("年底", ["2024-12"]),
    ("end of next month", ["2024-06"]),
    ("in december", ["2023-12"]),
    ("i will come in december", ["2024-12"]),
    ("told may 3 times", []),
    # slashes
    ("on 5/20", ["2024-05-20"]),
    ("by 25/12", ["2024-12-25"]),
    ("4/5 stars", []),
    ("5/20/2024", ["2024-05-20"]),
    ("from 5/1/24", ["2024-05-01"]),
    ("24/7", []),
    # spans from today
    ("in a couple of weeks", ["2024-05-31"]),
    ("a fortnight ago", ["2024-05-03"]),
    ("two weeks from monday", ["2024-06-03"]),
    ("a week from tomorrow", ["2024-05-25"]),
    ("过三天再来", ["2024-05-20"]),
    # holidays
    ("双十一买的手机", ["2023-11-11"]),
    ("双十一会有活动吗", ["2024-11-11"]),
    ("双11", ["2024-11-11"]),
    ("去年双十一", ["2023-11-11"]),
    ("五一去了北京", ["2024-05-01"]),
    ("五一路", []),
    ("国庆会放假", ["2024-10-01"]),
    ("618大促", ["2024-06-18"]),
    ("订单618123", []),
    ("春节", ["2024-02-10"]),
    ("去年春节", ["2023-01-22"]),
    ("明年中秋", ["2025-10-06"]),
    ("端午節快樂", ["2024-06-10"]),
    ("black friday deal", ["2023-11-24"]),
    ("last christmas", ["2023-12-25"]),
    ("next christmas", ["2024-12-25"]),
    ("mother's day", ["2024-05-12"]),
    # what the first revision reads
    ("上周五到货", ["2024-05-10"]),
    ("大前天", ["2024-05-14"]),
    ("2024年5月1日和2024-06-02", ["2024-05-01", "2024-06-02"]),
    ("the 15th of june, 2024", ["2024-06-15"]),
    ("二月三十", []),
    ("", []),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_resolved(text: str, expected: list[str]) -> None:
    assert [span.iso for span in find_said_dates(fold(text), AT, "holidays.yaml")] == expected


def test_lunar_holidays_end_where_their_table_ends() -> None:
    assert find_said_dates("春节", datetime(2060, 5, 1, tzinfo=UTC), "holidays.yaml") == []
    assert find_said_dates("明天", datetime(9999, 12, 31, tzinfo=UTC), "holidays.yaml") == []


@settings(max_examples=150, deadline=None)
@given(st.lists(st.sampled_from([case[0] for case in CASES]) | st.text(max_size=6), max_size=4).map(" ".join))
def test_dates_do_not_overlap(text: str) -> None:
    found = find_said_dates(fold(text), AT, "holidays.yaml")
    assert all(one.end <= other.start for one, other in itertools.pairwise(found))
    assert all(0 <= span.start < span.end <= len(text) for span in found)
