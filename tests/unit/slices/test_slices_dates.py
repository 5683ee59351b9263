"""Date expressions against a Friday, 2024-05-17."""

from datetime import UTC, datetime

import pytest

from memory_pipelines.slices.entities.dates import find_dates

AT = datetime(2024, 5, 17, 8, 12, tzinfo=UTC)

CASES = [
    ("明天下午三点", ["2024-05-18"]),
    ("大前天", ["2024-05-14"]),
    ("三天前买的", ["2024-05-14"]),
    ("两周后", ["2024-05-31"]),
    ("三个月前", ["2024-02"]),
    ("上周五到货", ["2024-05-10"]),
    ("下下周一", ["2024-05-27"]),
    ("这周四", ["2024-05-16"]),
    ("星期天", ["2024-05-19"]),
    ("上周", ["2024-W19"]),
    ("12月3日", ["2023-12-03"]),
    ("六月三号", ["2024-06-03"]),
    ("去年十二月三号", ["2023-12-03"]),
    ("上个月5号", ["2024-04-05"]),
    ("2024年5月1日和2024-06-02", ["2024-05-01", "2024-06-02"]),
    ("2023年8月", ["2023-08"]),
    ("明年", ["2025"]),
    ("the day after tomorrow", ["2024-05-19"]),
    ("last friday", ["2024-05-10"]),
    ("next monday", ["2024-05-20"]),
    ("in two weeks", ["2024-05-31"]),
    ("2 years ago", ["2022"]),
    ("may 17th, 2023", ["2023-05-17"]),
    ("3 january", ["2024-01-03"]),
    ("next month", ["2024-06"]),
    ("in june", ["2024-06"]),
    ("2月30日", []),
    ("2024-13-01", []),
    ("以后天天来", []),
    ("i may 5 times", []),
    ("999 years ago and 999周后", ["1025", "2043-07-10"]),
    ("", []),
]


@pytest.mark.parametrize(("text", "expected"), CASES)
def test_resolved(text: str, expected: list[str]) -> None:
    assert [span.iso for span in find_dates(text, AT)] == expected


def test_a_leap_day_without_a_year_is_the_nearest_one() -> None:
    assert find_dates("2月29日", datetime(2024, 12, 1, tzinfo=UTC))[0].iso == "2024-02-29"
    assert find_dates("2月29日", datetime(2022, 12, 1, tzinfo=UTC)) == []


def test_the_end_of_the_calendar_is_no_date() -> None:
    assert find_dates("明天", datetime(9999, 12, 31, tzinfo=UTC)) == []


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValueError, match="zone"):
        find_dates("明天", datetime(2024, 5, 17))  # noqa: DTZ001
