"""Memory horizon: how far back a person's slices stay warm, by what kind of customer the person is.

Belongs here: the classes and their horizons. Does not belong here: what a horizon does to a memory (``tiers``).
Classes and days are fixed; where a class begins is settable.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum


class PersonClass(StrEnum):
    NEW = "new"
    ORDINARY = "ordinary"
    HIGH_VALUE = "high_value"
    SILENT = "silent"


@dataclass(frozen=True)
class HorizonRules:
    """Where classes begin, and how far back each looks. An ordinary person has the profile's age."""

    new_for: timedelta = timedelta(days=30)
    silent_after: timedelta = timedelta(days=90)
    high_value_orders: int = 6
    """Orders within ``high_value_within``."""
    high_value_within: timedelta = timedelta(days=90)
    new: timedelta = timedelta(days=30)
    high_value: timedelta = timedelta(days=365)
    silent: timedelta = timedelta(days=7)


DEFAULT_RULES = HorizonRules()


@dataclass(frozen=True, slots=True)
class Activity:
    """A person's rows of any kind: the first, the last, and the times of orders."""

    first_seen: datetime
    last_seen: datetime
    orders: tuple[datetime, ...] = ()


def person_class(activity: Activity, as_of: datetime, rules: HorizonRules = DEFAULT_RULES) -> PersonClass:
    """The class at ``as_of``; of several the first of high-value, silent, new."""
    recent = sum(as_of - rules.high_value_within < at <= as_of for at in activity.orders)
    if recent >= rules.high_value_orders:
        return PersonClass.HIGH_VALUE
    if as_of - activity.last_seen > rules.silent_after:
        return PersonClass.SILENT
    return PersonClass.NEW if as_of - activity.first_seen < rules.new_for else PersonClass.ORDINARY


def horizon(activity: Activity, as_of: datetime, rules: HorizonRules = DEFAULT_RULES) -> timedelta | None:
    """The age after which a person's episodic memories are cold; None: the profile's."""
    ages = {
        PersonClass.NEW: rules.new,
        PersonClass.HIGH_VALUE: rules.high_value,
        PersonClass.SILENT: rules.silent,
    }
    return ages.get(person_class(activity, as_of, rules))
