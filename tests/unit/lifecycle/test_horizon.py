"""Classes of persons and how far back their memories stay warm."""

from datetime import UTC, datetime, timedelta

from memory_pipelines.lifecycle.horizon import Activity, HorizonRules, PersonClass, horizon, person_class

NOW = datetime(2024, 6, 1, tzinfo=UTC)


def ago(days: float) -> datetime:
    return NOW - timedelta(days=days)


def active(first: float, last: float, *orders: float) -> Activity:
    return Activity(ago(first), ago(last), tuple(ago(d) for d in orders))


def test_borders_of_the_classes() -> None:
    assert person_class(active(29.9, 0), NOW) == PersonClass.NEW
    assert person_class(active(30, 90), NOW) == PersonClass.ORDINARY
    assert person_class(active(400, 90.1), NOW) == PersonClass.SILENT
    assert person_class(active(400, 0, *range(6)), NOW) == PersonClass.HIGH_VALUE
    assert person_class(active(400, 0, *range(5), 90), NOW) == PersonClass.ORDINARY  # the sixth is too old
    assert person_class(active(400, 0, *range(5), -1), NOW) == PersonClass.ORDINARY  # or yet to come
    assert person_class(active(10, 0, *range(6)), NOW) == PersonClass.HIGH_VALUE


def test_horizons() -> None:
    days = [horizon(a, NOW) for a in (active(1, 0), active(99, 0), active(400, 0, *range(6)), active(400, 200))]
    assert days == [timedelta(days=30), None, timedelta(days=365), timedelta(days=7)]


def test_rules_are_settable() -> None:
    rules = HorizonRules(new_for=timedelta(days=5), silent_after=timedelta(days=6), silent=timedelta(days=1))
    assert horizon(active(20, 7), NOW, rules) == timedelta(days=1)
    assert person_class(active(20, 5), NOW, rules) == PersonClass.ORDINARY
