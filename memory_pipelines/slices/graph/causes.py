"""What led to what: cause → effect among what a subject said and did.

Belongs here: which of the earlier things is the cause of a later one. Does not belong here: which causes lead to which
effects, within how many days and how surely (``data/causes.yaml``).

A thing is an event of the behaviour, or a *matter*: memories of one class of intents that follow each other in one
session within two hours, since saying it again is no new event. A matter's node is its first memory that names an
order, else the first that names anything. What ties two things, strongest first: the same ``order`` number, the same
``session``, an ``entity`` that both name (no date, no place, nobody), or ``time`` alone. Two things that name order
numbers, and none in common, are never tied; what names nothing is no cause, and no effect by time alone. For each rule
an effect has one cause: of those with the strongest tie the latest. Each effect looks at a bounded number of earlier
things, so the work is linear.
"""

from collections import defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from memory_pipelines.slices.events import NEAR
from memory_pipelines.slices.graph.nodes import Deed, Edges, Memory
from memory_pipelines.slices.graph.rules import Rule, cause_rules, class_of

CAUSES = "causes"
TIES = ("order", "session", "entity", "time")
KEPT = 8
"""Earlier things that an effect looks at, of each class: the latest of its order, session, each entity, and of all."""
_UNTYING = ("order_number/", "date/", "place/", "person/")
_UNNAMING = ("date/", "person/")


@dataclass(slots=True)
class Thing:
    """A matter or an event: ``name`` is the class of its intent or its kind, ``node`` stands for it."""

    name: str
    node: str
    at: datetime
    until: datetime
    said: bool
    names: int = 2
    """How much it names: an order 2, something else 1, nothing 0."""
    session: str | None = None
    orders: set[str] = field(default_factory=set)
    entities: set[str] = field(default_factory=set)


def causes(episodes: Sequence[Memory], deeds: Iterable[Deed]) -> Edges:
    """Edges ``causes`` from cause to effect; ``episodes`` are in time order, ``deeds`` in any."""
    edges: Edges = {}
    earlier = _Earlier()
    rules = cause_rules()
    things = _in_time([*_matters(episodes), *_events(deeds)])
    spoken = {order for thing in things if thing.said for order in thing.orders}
    for effect in things:
        for rule in rules.by_effect.get(effect.name, ()):
            found = _best(effect, rule, earlier, spoken)
            if found is not None:
                cause, weight = found
                edges[cause.node, effect.node, CAUSES] = weight
        if effect.name in rules.causes:
            earlier.add(effect)
    return edges


def _matters(episodes: Sequence[Memory]) -> Iterator[Thing]:
    open_matters: dict[tuple[str, str | None], Thing] = {}
    for memory in episodes:
        name = class_of(memory.intent)
        if name is None:
            continue
        matter = open_matters.get((name, memory.session))
        if matter is not None and _continues(memory, matter):
            matter.until = memory.at
            if _names(memory) > matter.names:
                matter.node, matter.at, matter.names = memory.node, memory.at, _names(memory)
        else:
            if matter is not None:
                yield matter
            matter = Thing(name, memory.node, memory.at, memory.at, True, _names(memory), memory.session)
            open_matters[name, memory.session] = matter
        matter.orders |= memory.orders
        matter.entities |= {e for e in memory.entities if not e.startswith(_UNTYING)}
    yield from open_matters.values()


def _names(memory: Memory) -> int:
    if memory.orders:
        return 2
    return 1 if any(not entity.startswith(_UNNAMING) for entity in memory.entities) else 0


def _continues(memory: Memory, matter: Thing) -> bool:
    """Whether it is said again, or said on: soon after, and about no other order."""
    other = bool(memory.orders and matter.orders and not memory.orders & matter.orders)
    return memory.at - matter.until < NEAR and not other


def _events(deeds: Iterable[Deed]) -> Iterator[Thing]:
    for deed in deeds:
        yield Thing(deed.kind, deed.node, deed.at, deed.at, False, orders=set() if deed.order is None else {deed.order})


def _in_time(things: Iterable[Thing]) -> list[Thing]:
    return sorted(things, key=lambda thing: (thing.at, thing.node))


class _Earlier:
    """The latest things of each class, by what may tie a later one to them."""

    def __init__(self) -> None:
        self._places: dict[tuple[str, str, str], deque[Thing]] = defaultdict(lambda: deque(maxlen=KEPT))

    def add(self, thing: Thing) -> None:
        for place in self._of(thing):
            self._places[thing.name, *place].append(thing)

    def near(self, effect: Thing, name: str) -> Iterator[Thing]:
        """Things of the class that may be tied to the effect, some of them more than once."""
        for place in self._of(effect):
            yield from self._places.get((name, *place), ())

    @staticmethod
    def _of(thing: Thing) -> Iterator[tuple[str, str]]:
        yield "time", ""
        if thing.session is not None:
            yield "session", thing.session
        for order in thing.orders:
            yield "order", order
        for entity in thing.entities:
            yield "entity", entity


def tie(cause: Thing, effect: Thing, spoken: Set[str] = frozenset()) -> str | None:
    """The strongest of ``TIES`` between two things; None where nothing ties them, or order numbers tell them apart.

    ``spoken``: the order numbers that the subject named. What is said without a number is not about one of those."""
    if cause.orders and effect.orders:
        return "order" if cause.orders & effect.orders else None
    if not cause.names:
        return None
    if cause.session is not None and cause.session == effect.session:
        return "session"
    if cause.entities & effect.entities:
        return "entity"
    known = effect.said and not cause.said and not spoken.isdisjoint(cause.orders)
    return "time" if effect.names and not known else None


def _best(effect: Thing, rule: Rule, earlier: _Earlier, spoken: Set[str]) -> tuple[Thing, float] | None:
    best: tuple[int, datetime, str] | None = None
    found: tuple[Thing, float] | None = None
    for name in rule.causes:
        for cause in earlier.near(effect, name):
            how = tie(cause, effect, spoken)
            strength = None if how is None else rule.ties.get(how)
            if how is None or strength is None or not strength.after < effect.at - cause.at <= strength.within:
                continue
            if cause.said and effect.said and effect.at - cause.until < NEAR and cause.name == effect.name:
                continue
            rank = (-TIES.index(how), cause.at, cause.node)
            if best is None or rank > best:
                best, found = rank, (cause, strength.weight)
    return found
