"""The statistical reflection: what can be counted in a person's memories, told by template.

Belongs here: needs, patterns, preferences, changes, anomalies and what follows from them for the agent. Does not
belong here: plans (``plans``), checks of citations (``schema``), a language model.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from math import comb, sqrt

from memory_pipelines.model import iso
from memory_pipelines.reflection.events import Event, Material, base, monday, shown_value, structured, support
from memory_pipelines.reflection.plans import plan_drafts, plans
from memory_pipelines.reflection.schema import (
    ACTION_ITEM,
    AGENT_BEHAVIOUR,
    ANOMALY,
    BEHAVIOUR_PATTERN,
    CORE_NEED,
    EMERGING_PREFERENCE,
    MONTH,
    PREFERENCE_CHANGE,
    Draft,
)
from memory_pipelines.reflection.wording import Wording, lexicon
from memory_pipelines.stores.authority import StoredMemory

NEEDS = 3
"""So many core needs at most; each was raised twice or more."""
EMERGING_MENTIONS = 3
REPEATED_COMPLAINTS = 2
REPEATED_QUESTIONS = 3
PATTERN_WEEKS = timedelta(weeks=8)
HOURS = 3
"""Length of a part of the day, for patterns."""
SIGNIFICANCE = 0.01
"""Of a whole family of tests: each weekday is tested at a seventh of it, each part of the day at an eighth."""
ANOMALY_Z = 2.0
ANOMALY_HISTORY = 4
"""Weeks before this one that there must be; at most ``ANOMALY_MEMORY`` of them are looked at."""
ANOMALY_MEMORY = 26
CALL_BACK = timedelta(days=3)


def quiet(material: Material) -> bool:
    """Whether the week holds nothing to reflect on: no event, no fact that ended, no plan due then or a week later."""
    scope = material.scope
    soon = (scope.end + timedelta(days=7)).date()
    return not (
        any(material.this_week(e.at) for e in material.recent)
        or material.closed
        or any(scope.week <= plan.day < soon for plan in plans(material) if plan.open)
    )


def statistics(material: Material, wording: Wording) -> list[Draft]:
    """All that the rules find; to be asked of a week that is not quiet."""
    return [
        *_core_needs(material, wording),
        *_patterns(material, wording),
        *_emerging_facts(material, wording),
        *_emerging_topics(material, wording),
        *_changes(material, wording),
        *plan_drafts(material, wording),
        *_anomaly(material, wording),
        *_complaints(material, wording),
        *_told_first(material, wording),
        *_health(material, wording),
    ]


def _cite(events: Iterable[Event]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(e.memory_id for e in events))


def _draft(
    kind: str, subject: str, text: str, material: Material, cited: tuple[str, ...], count: int | None = None
) -> Draft:
    """A draft as sure as ``count`` mentions (else as many as it cites) make it."""
    sure = support(len(cited) if count is None else count, (material.scope.memories[m] for m in cited))
    return Draft(kind, subject, text, cited, sure)


def _busy(material: Material) -> bool:
    return any(material.this_week(e.at) for e in material.recent)


def _by_intent(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Events by intent, without small talk and what has none."""
    ignored = {"", *lexicon()["small_talk"]}
    found: dict[str, list[Event]] = defaultdict(list)
    for event in events:
        if event.intent not in ignored:
            found[event.intent].append(event)
    return found


def _aims(events: Iterable[Event]) -> dict[str, list[Event]]:
    """Events by intent, of those that somebody comes for."""
    return {intent: group for intent, group in _by_intent(events).items() if intent not in lexicon()["no_aims"]}


def trend(count: int, before: int) -> str:
    """Of two counts of equal windows: new if there were none before; rising or falling if they differ by two
    standard deviations of the difference of two Poisson counts, sqrt(count + before); else steady."""
    z = (count - before) / sqrt(count + before)
    if not before:
        return "new"
    return "rising" if z >= 2 else "falling" if z <= -2 else "steady"


def _core_needs(material: Material, wording: Wording) -> list[Draft]:
    if not _busy(material):
        return []
    now, then = _aims(material.recent), _aims(material.before)
    drafts = []
    for intent, events in sorted(now.items(), key=lambda item: (-len(item[1]), item[0]))[:NEEDS]:
        count, before = len(events), len(then.get(intent, ()))
        if count < 2:
            continue
        text = wording.say(
            "core_need",
            intent=wording.intent(intent),
            count=count,
            before=before,
            trend=wording.trend(trend(count, before)),
        )
        drafts.append(_draft(CORE_NEED, intent, text, material, _cite(events), count))
    return drafts


def binomial_tail(successes: int, trials: int, probability: float) -> float:
    """P(X >= successes) of a binomial variable."""
    outcomes = range(successes, trials + 1)
    return sum(comb(trials, k) * probability**k * (1 - probability) ** (trials - k) for k in outcomes)


def _patterns(material: Material, wording: Wording) -> list[Draft]:
    """Weekdays and parts of the day that hold more active days than chance would put there: of all events, and of
    one intent where they are not those of all."""
    events = material.between(material.scope.end - PATTERN_WEEKS, material.scope.end)
    drafts = []
    for cut in (_WEEKDAYS, _HOURS):
        told: set[int] = set()
        for intent, group in (("", events), *sorted(_aims(events).items())):
            hits = Counter(cell for _, cell in {(e.at.date(), cut.cell(e)) for e in group if cut.known(e)})
            total = sum(hits.values())
            for cell in _unusual(hits, total, cut.cells):
                found = [e for e in group if cut.known(e) and cut.cell(e) == cell]
                if cell in told or not material.this_week(found[-1].at):
                    continue
                text = cut.say(wording, cell, what=wording.what(intent), count=hits[cell], total=total)
                subject = f"{cut.name} {cell} {intent}"
                drafts.append(_draft(BEHAVIOUR_PATTERN, subject, text, material, _cite(found), hits[cell]))
                if not intent:
                    told.add(cell)
    return drafts


@dataclass(frozen=True)
class _Cut:
    """A way to cut time into equal cells. ``known``: whether an event's cell is."""

    name: str
    cells: int
    cell: Callable[[Event], int]
    known: Callable[[Event], bool]
    names: Callable[[Wording, int], Mapping[str, object]]

    def say(self, wording: Wording, cell: int, **values: object) -> str:
        return wording.say(self.name, **self.names(wording, cell), **values)


_WEEKDAYS = _Cut(
    "weekday", 7, lambda e: e.at.weekday(), lambda e: True, lambda wording, cell: {"weekday": wording.weekday(cell)}
)
_HOURS = _Cut(
    "hours",
    24 // HOURS,
    lambda e: e.at.hour // HOURS,
    lambda e: e.exact,
    lambda wording, cell: {"start": cell * HOURS, "stop": (cell + 1) * HOURS},
)


def _unusual(hits: Counter[int], total: int, cells: int) -> list[int]:
    """Cells that hold more of ``total`` than chance would put there, by an exact binomial test (Bonferroni)."""
    return [
        cell for cell, count in sorted(hits.items()) if binomial_tail(count, total, 1 / cells) < SIGNIFICANCE / cells
    ]


def _emerges(count: int, before: int) -> bool:
    return count >= EMERGING_MENTIONS and count >= 2 * before


def _emerging_facts(material: Material, wording: Wording) -> list[Draft]:
    """Preferences that came up three times in four weeks or more, once in this one, twice as often as before."""
    drafts = []
    recent, earlier = material.scope.end - MONTH, material.scope.end - 2 * MONTH
    groups: dict[tuple[str, str], list[StoredMemory]] = defaultdict(list)
    for fact in material.facts:
        if material.holds(fact) and not _category(fact) & set(lexicon()["not_preferences"]):
            groups[fact.predicate, fact.value].append(fact)
    for (predicate, value), facts in sorted(groups.items()):
        times = sorted(at for fact in facts for at in material.mentions(fact))
        count = sum(at >= recent for at in times)
        before = sum(earlier <= at < recent for at in times)
        if _emerges(count, before) and material.this_week(times[-1]):
            claim = facts[-1].summary.rstrip("。.")
            text = wording.say("emerging_fact", claim=claim, count=count, before=before)
            cited = tuple(f.memory_id for f in facts)
            drafts.append(_draft(EMERGING_PREFERENCE, f"{predicate} {value}", text, material, cited, count))
    return drafts


def _category(fact: StoredMemory) -> set[str]:
    """What a fact is about: the category that admission gave it, and its predicate."""
    found = structured(fact).get("category")
    return {base(fact.predicate), *([found] if isinstance(found, str) else [])}


def _topics(events: Iterable[Event]) -> dict[tuple[str, str], list[Event]]:
    """Events by intent and entity, without dates and order numbers."""
    found: dict[tuple[str, str], list[Event]] = defaultdict(list)
    hidden = lexicon()["not_topics"]
    for intent, group in _by_intent(events).items():
        for event in group:
            for entity in dict.fromkeys(event.entities):
                if entity.partition("/")[0] not in hidden:
                    found[intent, entity].append(event)
    return found


def _complains(intent: str) -> bool:
    return "complaint" in intent.split("_")


def _emerging_topics(material: Material, wording: Wording) -> list[Draft]:
    """The same of an intent about an entity; complaints are no interest (``_complaints``)."""
    drafts = []
    then = _topics(material.before)
    for (intent, entity), events in sorted(_topics(material.recent).items()):
        count, before = len(events), len(then.get((intent, entity), ()))
        if _complains(intent) or not _emerges(count, before) or not material.this_week(events[-1].at):
            continue
        text = wording.say(
            "emerging_topic",
            entity=wording.entity(entity),
            intent=wording.intent(intent),
            count=count,
            before=before,
        )
        drafts.append(_draft(EMERGING_PREFERENCE, f"{intent} {entity}", text, material, _cite(events), count))
    return drafts


def _changes(material: Material, wording: Wording) -> list[Draft]:
    """Facts that ended in the week with another in their place: old → new. Plans have their own words."""
    began = _Began(material)
    drafts = []
    for old in material.closed:
        new = began.after(old)
        if new is None or old.valid_to is None:
            continue
        values = {"day": wording.day(old.valid_to.date()), "old": shown_value(old), "new": shown_value(new)}
        if old.predicate == new.predicate:
            text = wording.say("changed_value", label=wording.predicate(old.predicate), **values)
        else:
            labels = {"old_label": wording.predicate(old.predicate), "new_label": wording.predicate(new.predicate)}
            text = wording.say("changed_claim", **labels, **values)
        subject = f"{old.predicate} {old.value} {iso(old.valid_to)}"
        sure = min(old.confidence, new.confidence)
        drafts.append(Draft(PREFERENCE_CHANGE, subject, text, (old.memory_id, new.memory_id), sure))
    return drafts


class _Began:
    """The facts that began within the week, by what they can take the place of."""

    def __init__(self, material: Material) -> None:
        self._found: dict[tuple[object, ...], dict[tuple[str, str], StoredMemory]] = defaultdict(dict)
        facts = [f for f in material.facts if base(f.predicate) != "plan" and f.valid_from is not None]
        for fact in sorted(facts, key=lambda f: (f.value, f.predicate, f.memory_id)):
            for key in self._keys(fact, fact.valid_from):
                self._found[key].setdefault((fact.predicate, fact.value), fact)

    @staticmethod
    def _keys(fact: StoredMemory, at: datetime | None) -> tuple[tuple[object, ...], ...]:
        whose = fact.predicate.removesuffix(base(fact.predicate))
        return (at, "value", whose, fact.value), (at, "predicate", fact.predicate)

    def after(self, old: StoredMemory) -> StoredMemory | None:
        """What began when ``old`` ended: its value under another predicate of the same person (a liking that
        turned), else another value of its predicate."""
        for key in self._keys(old, old.valid_to):
            for named, fact in self._found.get(key, {}).items():
                if named != (old.predicate, old.value):
                    return fact
        return None


def _anomaly(material: Material, wording: Wording) -> list[Draft]:
    """A week with far more or fewer events than the person's own weeks before it.

    z = (count - mean) / s, with s the sample deviation of those weeks, at least sqrt(mean), since events that come
    independently vary by as much (Poisson), and at least one event."""
    scope = material.scope
    events = [e for e in material.recent if material.this_week(e.at)]
    if not events:
        return []
    weeks = min(ANOMALY_MEMORY, (scope.week - monday(material.events[0].at)).days // 7)
    if weeks < ANOMALY_HISTORY:
        return []
    first = scope.start - timedelta(weeks=weeks)
    counted = Counter(monday(e.at) for e in material.between(first, scope.start))
    history = [counted[(first + timedelta(weeks=i)).date()] for i in range(weeks)]
    mean = sum(history) / weeks
    variance = sum((n - mean) ** 2 for n in history) / (weeks - 1)
    z = (len(events) - mean) / max(sqrt(variance), sqrt(mean), 1.0)
    if abs(z) <= ANOMALY_Z:
        return []
    sentence = "anomaly_more" if z > 0 else "anomaly_less"
    text = wording.say(sentence, count=len(events), weeks=weeks, mean=mean, z=z)
    return [_draft(ANOMALY, "events", text, material, _cite(events))]


def _complaints(material: Material, wording: Wording) -> list[Draft]:
    """Repeated complaints about one entity: what the agent should change, and a call back."""
    groups: dict[str, dict[Event, None]] = defaultdict(dict)
    for (intent, entity), events in _topics(material.recent).items():
        if _complains(intent):
            groups[entity].update(dict.fromkeys(events))
    drafts = []
    due = material.scope.end + CALL_BACK
    for entity, found in sorted(groups.items()):
        events = sorted(found, key=lambda e: (e.at, e.memory_id))
        if len(events) < REPEATED_COMPLAINTS or not material.this_week(events[-1].at):
            continue
        name, cited, subject = wording.entity(entity), _cite(events), f"complaints {entity}"
        text = wording.say("complaints", count=len(events), entity=name)
        advice = _draft(AGENT_BEHAVIOUR, subject, text, material, cited, len(events))
        text = wording.say("call_back", day=wording.day(due.date()), entity=name)
        drafts += [advice, Draft(ACTION_ITEM, subject, text, cited, advice.confidence, due)]
    return drafts


def _told_first(material: Material, wording: Wording) -> list[Draft]:
    """Questions that come back: tell before being asked."""
    drafts = []
    groups = _by_intent(material.recent)
    for intent in lexicon()["told_first"]:
        events = groups.get(intent, [])
        if len(events) >= REPEATED_QUESTIONS and material.this_week(events[-1].at):
            text = wording.say("tell_first", count=len(events), intent=wording.intent(intent))
            drafts.append(_draft(AGENT_BEHAVIOUR, f"tell first {intent}", text, material, _cite(events), len(events)))
    return drafts


def _health(material: Material, wording: Wording) -> list[Draft]:
    """Health facts first stated in the week: what to check before a recommendation."""
    drafts = []
    for fact in material.facts:
        known = base(fact.predicate) in lexicon()["health"]
        if known and material.holds(fact) and material.this_week(fact.occurred_at):
            text = wording.say("health", claim=fact.summary.rstrip("。."))
            subject = f"{fact.predicate} {fact.value}"
            drafts.append(Draft(AGENT_BEHAVIOUR, subject, text, (fact.memory_id,), fact.confidence))
    return drafts
