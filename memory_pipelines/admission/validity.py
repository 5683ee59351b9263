"""Claims with validity windows: which value of a predicate held from when to when, in event time.

Belongs here: folding all mentions of one subject into claims, whatever order they arrived in. Does not
belong here: reading text (``facts``) or judging worth (``gate``).
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from memory_pipelines.admission.corrections import Revision, renewed
from memory_pipelines.admission.fact import Fact
from memory_pipelines.admission.ontology import predicate
from memory_pipelines.model import WINDOW

PROMOTION_MENTIONS = 3


@dataclass(frozen=True, slots=True)
class Mention:
    """One fact as one slice states it; ``row`` is the slice's row."""

    fact: Fact
    row: dict[str, Any]

    @property
    def at(self) -> datetime:
        when: datetime = self.row["occurred_at"]
        return when

    @property
    def order(self) -> tuple[datetime, str, int, str, str]:
        return self.at, self.row["slice_id"], self.fact.start, self.fact.predicate, self.fact.value


@dataclass(slots=True)
class Claim:
    """One value over one window: mentions in event-time order; ``valid_to`` is None while current."""

    mentions: list[Mention] = field(default_factory=list)
    valid_to: datetime | None = None

    @property
    def fact(self) -> Fact:
        """The fact as it was first stated."""
        return self.mentions[0].fact

    @property
    def valid_from(self) -> datetime:
        return self.mentions[0].at

    @property
    def rows(self) -> list[dict[str, Any]]:
        """The rows of the slices that state it, each once, earliest first."""
        return list({mention.row["slice_id"]: mention.row for mention in self.mentions}.values())


def frequent(times: Sequence[datetime], count: int = PROMOTION_MENTIONS, within: timedelta = WINDOW) -> bool:
    """Whether ``count`` of the sorted times lie within one window of event time."""
    return any(later - first <= within for first, later in zip(times, times[count - 1 :], strict=False))


def _slot(fact: Fact) -> tuple[str, str]:
    """What one value at a time can fill."""
    cardinality = predicate(fact.predicate).cardinality
    if cardinality == "single":
        return fact.predicate, ""
    return fact.predicate, fact.key if cardinality == "keyed" else fact.value


def _one_slice(mentions: list[Mention]) -> list[Mention]:
    """What a slice says in the end: of contradicting mentions of a slot the last one, earlier denials kept."""
    stated: dict[tuple[str, str], int] = {}
    for i, mention in enumerate(mentions):
        if not mention.fact.ends:
            stated[_slot(mention.fact)] = i
    last: dict[tuple[str, str], int] = {}
    for i, mention in enumerate(mentions):
        last[mention.fact.predicate, mention.fact.value] = i
    keep = []
    for i, mention in enumerate(mentions):
        fact = mention.fact
        superseded = not fact.ends and stated[_slot(fact)] != i
        if not superseded and last[fact.predicate, fact.value] == i:
            keep.append(mention)
    return keep


Open = dict[str, dict[str, Claim]]
"""Predicate → slot → the claim that holds."""


def fold(mentions: Iterable[Mention], revisions: Iterable[tuple[Revision, dict[str, Any]]] = ()) -> list[Claim]:
    """The claims of one subject from all its mentions, in event-time order of their first mention.

    A newer value of a single-valued predicate closes the older at the newer's time; a repeated value joins the open
    claim; an ending closes it without a successor, and where nothing of the kind was known, it is a claim that was
    over when it was made; a value that comes back after it was closed is a new claim. ``revisions``, each with the
    row of its slice, speak against values: each is a mention of what holds when it is said. The result does not
    depend on the order of ``mentions`` or ``revisions``."""
    by_slice: dict[tuple[datetime, str], list[Mention]] = defaultdict(list)
    revised: dict[tuple[datetime, str], list[tuple[Revision, dict[str, Any]]]] = defaultdict(list)
    for mention in sorted(mentions, key=lambda m: m.order):
        by_slice[mention.at, mention.row["slice_id"]].append(mention)
    for revision, row in sorted(revisions, key=lambda r: r[0].start):
        revised[row["occurred_at"], row["slice_id"]].append((revision, row))
    claims: list[Claim] = []
    current: Open = defaultdict(dict)
    for key in sorted({*by_slice, *revised}):
        stated = by_slice.get(key, [])
        # What a slice speaks against is what held before it.
        against = [(revision, row, _holding(current, row)) for revision, row in revised.get(key, ())]
        for mention in _one_slice(stated):
            _tell(mention, claims, current)
        for revision, row, held in against:
            for fact in renewed(revision, held, [m.fact for m in stated]):
                _tell(Mention(fact, row), claims, current)
    return claims


def _holding(current: Open, row: dict[str, Any]) -> list[tuple[Fact, bool]]:
    """What holds, the latest statement last, each with whether it was made in the session of ``row``."""
    held = sorted((claim.mentions[-1] for slots in current.values() for claim in slots.values()), key=lambda m: m.order)
    return [(m.fact, row["session_id"] is not None and m.row["session_id"] == row["session_id"]) for m in held]


def _tell(mention: Mention, claims: list[Claim], current: Open) -> None:
    """What one mention changes."""
    fact, (name, slot) = mention.fact, _slot(mention.fact)
    slot = _meant(current[name], slot, fact)
    if fact.ends:
        ended = [_end(current[n], slot, fact, mention.at) for n in _of_kin(name)]
        known = any(c.fact.predicate == name and c.fact.value == fact.value for c in claims)
        if not any(ended) and not known and fact.object and predicate(name).remembers_end:
            claims.append(Claim([mention], mention.at))
        return
    if opposite := predicate(name).opposite:
        _close(current[name.removesuffix(fact.base) + opposite], slot, mention.at)
    held = current[name].get(slot)
    if held and held.fact.value == fact.value:
        held.mentions.append(mention)
        return
    _close(current[name], slot, mention.at)
    current[name][slot] = Claim([mention])
    claims.append(current[name][slot])


def _meant(open_claims: dict[str, Claim], slot: str, fact: Fact) -> str:
    """The open slot that a shorter key means: 例会 after 周一例会, "meeting" after "monday meeting"."""
    if predicate(fact.predicate).cardinality != "keyed" or not slot or slot in open_claims:
        return slot
    longer = [known for known in open_claims if known.endswith(slot) or slot.endswith(known) or _words(known, slot)]
    return longer[0] if len(longer) == 1 else slot


def _words(one: str, other: str) -> bool:
    """Whether all words of one key are of the other: "monday meeting" and "monday team meeting"."""
    few, many = sorted((one.split(), other.split()), key=len)
    return len(few) > 1 and set(few) <= set(many)


_CHILDREN = ("child", "son", "daughter")


def _of_kin(name: str) -> list[str]:
    """The predicates that an ending may mean: "my child is not called Rory" that of a son too."""
    parts = name.split(".")
    if len(parts) == 3 and parts[1] in _CHILDREN and parts[2] == "name":
        return [f"{parts[0]}.{relation}.name" for relation in _CHILDREN]
    return [name]


def _close(open_claims: dict[str, Claim], slot: str, at: datetime) -> None:
    if held := open_claims.pop(slot, None):
        held.valid_to = at


def _end(open_claims: dict[str, Claim], slot: str, fact: Fact, at: datetime) -> bool:
    """Close what an ending names; one that names nothing closes all values of its predicate. False if there was
    none."""
    if not (fact.key or fact.value):
        found = bool(open_claims)
        for name in list(open_claims):
            _close(open_claims, name, at)
        return found
    held = open_claims.get(slot)
    if held and fact.value in ("", held.fact.value):
        _close(open_claims, slot, at)
        return True
    return False
