"""One person's life: what happens, what follows from it, and what is said about it.

Belongs here: the causal model and the scripts of dialogues. Does not belong here: row formats and
noise (``emit``), the phrases (YAML), the known demo persons (``demo``).

The causal model. Orders are an inhomogeneous Poisson process: the person's rate x weekday x season
x waking hours x the product of the effects that are active, sampled by thinning (Lewis and Shedler,
1979). A complaint comes out of an order, so who orders more complains more (confounding), and a
complaint follows a busy week (regression to the mean). An event's ``effect`` e is direct, others
held equal: for 7 days it multiplies the order rate by 1 - e (``down``) or by 1 + e (``up``).
"""

import math
from bisect import bisect_right
from datetime import UTC, datetime
from functools import partial
from random import Random

from memory_pipelines.model import WINDOW
from memory_pipelines.sample.agenda import MOST_UP, Agenda
from memory_pipelines.sample.company import Company
from memory_pipelines.sample.config import DAY, Config
from memory_pipelines.sample.emit import Log
from memory_pipelines.sample.memory_talk import MemoryTalk
from memory_pipelines.sample.people import Calendar, Person
from memory_pipelines.sample.personal import plant
from memory_pipelines.sample.phrases import Phrases, pick
from memory_pipelines.sample.rows import (
    CAUSES,
    EVENTS,
    FORGET,
    REMEMBER,
    SHORT,
    Event,
    Line,
    Order,
    Record,
    stamp,
)

WEEK = int(WINDOW.total_seconds())
COMPLAINTS = (("complaint_late", 0.42), ("complaint_lost", 0.68), ("complaint_damaged", 0.55))
"""Kinds of logistics complaints with their mean effect on an average person."""


class Life:
    """Runs one person from the first to the last second of the configuration."""

    def __init__(self, config: Config, person: Person, phrases: Phrases, calendar: Calendar, rng: Random) -> None:
        self.config = config
        self.person = person
        self.phrases = phrases
        self.calendar = calendar
        self.rng = rng
        self.log = Log(config, person, phrases, rng)
        self.talk = MemoryTalk(self.log)
        self.agenda = Agenda(config, person, calendar, rng)
        self.company = Company(self.log, self.agenda)
        self.events: list[Event] = []
        self.happened: dict[str, list[int]] = {kind: [] for kind in ("churn", "refund", "cancel", "order", "thanks")}
        self.effects: list[tuple[int, float]] = []
        self.churned = False

    def run(self) -> list[Record]:
        """All records of the life, not sorted."""
        person, begin = self.person, self.config.begin
        self.agenda.next(begin, person.order_rate, self._order)
        self.agenda.next(begin, person.visit_rate, self._visit)
        self.agenda.next(begin, person.chat_rate / 3, self._stray)
        if person.assistant:
            for at, step in self.talk.schedule():
                self.agenda.plan(self.agenda.awake(at), step)
            self.agenda.next(max(begin, person.anonymous_until), person.chat_rate, self._chat)
        if self.config.rich:
            self.company.plan()
        self.agenda.run()
        self._tell_truth()
        return self.log.records

    # -- behaviour --------------------------------------------------------------------------------

    def _factor(self, at: int) -> float:
        """The product of the effects that are active, at most ``MOST_UP``."""
        factor = 1.0
        for start, multiplier in self.effects:
            if start <= at < start + WEEK:
                factor *= multiplier
        return min(factor, MOST_UP)

    def _order(self, at: int) -> None:
        if self.churned:
            return
        self.agenda.next(at, self.person.order_rate, self._order)
        if self.agenda.accepted(at, self._factor(at)):
            self._story(at, self._buy(at))

    def _buy(self, at: int) -> Order:
        rng = self.rng
        value = round(self.person.basket * (0.4 + 1.2 * rng.random()), 2)
        number = f"SO{datetime.fromtimestamp(at, UTC):%Y%m%d}{int(rng.random() * 1e6):06}"
        slots = self.phrases.slots(rng) | {"order": number, "amount": value, "coupon": pick(rng, (10, 20, 30))}
        order = Order(number, value, slots, self.log.behaviour(at, "order", value=value, reference=number), at)
        self.happened["order"].append(at)
        return order

    def _story(self, at: int, order: Order) -> None:
        """What comes of an order, if anything."""
        fate = self.rng.random()
        if fate < 0.13:
            self.agenda.later(at, 30, 110, partial(self._complain, order=order, nth=1))
        elif fate < 0.19:
            self.agenda.later(at, 48, 130, partial(self._ask_refund, order=order))
        elif fate < 0.26:
            self.agenda.later(at, 40, 120, partial(self._praise, order=order))
        elif fate < 0.30:
            self.agenda.later(at, 1, 20, partial(self._change_address, order=order))

    def _visit(self, at: int) -> None:
        if self.churned:
            return
        self.agenda.next(at, self.person.visit_rate, self._visit)
        mood = self._factor(at)
        if not self.agenda.accepted(at, math.sqrt(mood)):
            return
        rng = self.rng
        bounce = rng.random() < 0.25 + 0.35 * (1 - min(mood, 1.0))
        dwell = 2 + 12 * rng.random() if bounce else 200 * math.exp(rng.random() - 0.5) * (0.4 + 0.6 * mood)
        self.log.behaviour(at, "visit", dwell=round(dwell, 1), bounce=bounce)
        if rng.random() < 0.16:
            self.agenda.later(at, 0, 1, self._question)

    # -- customer service -------------------------------------------------------------------------

    def _say(self, key: str, slots: dict[str, object], role: str = "user", expected: str = "", kind: str = "") -> Line:
        return Line(role, pick(self.rng, self.phrases.service[key]).format_map(slots), expected, kind)

    def _opened(self, at: int, lines: list[Line]) -> tuple[int, list[Line]]:
        """Perhaps a greeting before, perhaps a phone number within, perhaps shifted to cross midnight UTC."""
        if self.config.personal and self.rng.random() < self.config.personal:
            lines = self._revealing(lines)
        if self.rng.random() < self.config.midnight:
            at = at // DAY * DAY + DAY - 75
        if self.rng.random() < 0.4:
            greeting = [self._say("hello", {}, "user", FORGET, "greeting")]
            lines = [*greeting, self._say("agent_hello", self.phrases.slots(self.rng), "agent"), *lines]
        return at, lines

    def _revealing(self, lines: list[Line]) -> list[Line]:
        """The lines with a number or password after the first turn; the agent may repeat a phone number."""
        said = self.phrases.personal
        text, planted = plant(self.rng, self.phrases)
        kind = "personal_data" if planted.sensitive else "reference_number"
        told = [Line("user", text, SHORT, kind, planted)]
        if planted.kind == "phone" and self.rng.random() < 0.5:
            repeated = pick(self.rng, said["agent_phone"]).format(value=planted.value)
            told.append(Line("agent", repeated, planted=planted))
        else:
            told.append(Line("agent", pick(self.rng, said["agent_other"])))
        return [lines[0], *told, *lines[1:]]

    def _complain(self, at: int, order: Order, nth: int) -> None:
        if self.churned:
            return
        rng, slots = self.rng, order.slots
        key, mean = pick(rng, COMPLAINTS)
        compensated = rng.random() < (0.4 if nth == 1 else 0.3)
        own = [self._say(key if nth == 1 else "complaint_again", slots, "user", REMEMBER, "logistics_complaint")]
        if rng.random() < 0.5:
            own.append(self._say("complaint_push", slots, "user", REMEMBER, "logistics_complaint"))
        lines = [*own, self._say("agent_check", slots, "agent")]
        content = compensated or rng.random() < 0.15
        lines.append(self._say("agent_compensate" if compensated else "agent_no_help", slots, "agent"))
        thanked = False
        if rng.random() < 0.8:
            lines.append(self._say("thanks" if content else "angry", slots, "user", FORGET, "closing"))
            thanked = content
        at, lines = self._opened(at, lines)
        if compensated:
            effect = 0.08 * rng.random()
            self.agenda.later(at, 0.2, 2, partial(self._coupon, order=order, after=len(order.events)))
        else:
            effect = mean * self.person.sensitivity + 0.3 * (rng.random() - 0.5) + 0.15 * (nth - 1)
            effect = min(0.97, max(0.1, effect))
            if effect > 0.75 and rng.random() < 0.2:
                effect = 1.0
                self.agenda.later(at, 20, 90, partial(self._churn, order=order, after=len(order.events)))
            if rng.random() < 0.6 * effect:
                self.agenda.later(at, 1, 30, partial(self._cancel, order=order, after=len(order.events)))
            elif nth < 3 and rng.random() < 0.5:
                self.agenda.later(at, 14, 70, partial(self._complain, order=order, nth=nth + 1))
        self._happen("logistics_complaint", at, lines, order, effect, "down", compensated, nth, thanked)

    def _ask_refund(self, at: int, order: Order) -> None:
        if self.churned:
            return
        rng, slots = self.rng, order.slots
        granted = rng.random() < 0.65
        lines = [
            self._say("refund_ask", slots, "user", REMEMBER, "refund_request"),
            self._say("agent_refund_yes" if granted else "agent_refund_no", slots, "agent"),
        ]
        thanked = False
        if rng.random() < 0.7:
            lines.append(self._say("thanks" if granted else "angry", slots, "user", FORGET, "closing"))
            thanked = granted
        at, lines = self._opened(at, lines)
        if granted:
            self.agenda.later(at, 20, 80, partial(self._refund, order=order, after=len(order.events)))
        effect = (
            (0.03 + 0.2 * rng.random()) if granted else min(0.95, (0.3 + 0.4 * rng.random()) * self.person.sensitivity)
        )
        self._happen("refund_request", at, lines, order, effect, "down", granted, thanked=thanked)

    def _praise(self, at: int, order: Order) -> None:
        if self.churned:
            return
        lines = [
            self._say("praise", order.slots, "user", REMEMBER, "praise"),
            self._say("agent_glad", order.slots, "agent"),
        ]
        self._happen("praise", at, lines, order, 0.05 + 0.15 * self.rng.random(), "up", thanked=True)

    def _change_address(self, at: int, order: Order) -> None:
        if self.churned:
            return
        known = self.talk.book.current.get("delivery_address")
        # The small sample may name the address that is known already: it is kept as it is.
        pool = self.phrases.pools["address"]
        if self.config.rich and known is not None:
            pool = tuple(address for address in pool if address != known.value)
        value = pick(self.rng, pool).format(n=1 + int(180 * self.rng.random()) if self.config.rich else 0)
        slots = order.slots | {"value": value}
        lines = [
            self._say("address", slots, "user", REMEMBER, "address_change"),
            self._say("agent_address", slots, "agent"),
            self._say("thanks", slots, "user", FORGET, "closing"),
        ]
        event = self._happen("address_change", at, lines, order, thanked=True)
        self.talk.hold("delivery_address", value, event.said[0])

    def _question(self, at: int) -> None:
        """A product question that leads to nothing: short-term at most, no effect."""
        slots = self.phrases.slots(self.rng)
        service = self.phrases.service
        asked, answered = pick(self.rng, tuple(zip(service["question"], service["agent_answer"], strict=True)))
        lines = [
            Line("user", asked.format_map(slots), SHORT, "product_question"),
            Line("agent", answered.format_map(slots)),
        ]
        if self.rng.random() < 0.6:
            lines.append(self._say("question_more", slots, "user", FORGET, "closing"))
        at, lines = self._opened(at, lines)
        self.log.dialogue(at, lines)

    def _stray(self, at: int) -> None:
        """Somebody opens the chat and wants nothing."""
        self.agenda.next(at, self.person.chat_rate / 3, self._stray)
        if self.churned or not self.agenda.accepted(at, 1.0):
            return
        lines = [
            self._say("hello", {}, "user", FORGET, "greeting"),
            self._say("agent_hello", self.phrases.slots(self.rng), "agent"),
            self._say("bye", {}, "user", FORGET, "small_talk"),
        ]
        self.log.dialogue(at, lines)

    def _chat(self, at: int) -> None:
        """A conversation with the assistant that leaves nothing, or a plan."""
        self.agenda.next(at, self.person.chat_rate, self._chat)
        if self.agenda.accepted(at, 1.0):
            self.talk.chat(at)

    # -- consequences -----------------------------------------------------------------------------

    def _coupon(self, at: int, order: Order, after: int = 0) -> None:
        event_id = self.log.behaviour(at, "coupon", value=float(str(order.slots["coupon"])), reference=order.number)
        self._caused(order.events[after], "coupon", at, event_id)

    def _cancel(self, at: int, order: Order, after: int = 0) -> None:
        event_id = self.log.behaviour(at, "cancel", value=order.value, reference=order.number)
        self._caused(order.events[after], "cancel", at, event_id)
        self.happened["cancel"].append(at)

    def _refund(self, at: int, order: Order, after: int = 0) -> None:
        event_id = self.log.behaviour(at, "refund", value=order.value, reference=order.number)
        self._caused(order.events[after], "refund", at, event_id)
        self.happened["refund"].append(at)

    def _churn(self, at: int, order: Order, after: int = 0) -> None:
        if not self.churned:
            self._caused(order.events[after], "churn", at, self.log.behaviour(at, "churn"))
            self.happened["churn"].append(at)
            self.churned = True

    def _caused(self, cause: Event, effect: str, at: int, event_id: str) -> None:
        """A said event led to a behaviour event."""
        self._pair(cause.kind, [said.row_id for said in cause.said], cause.at, effect, [event_id], at)

    def _pair(
        self, cause: str, cause_ids: list[str], cause_at: int, effect: str, effect_ids: list[str], effect_at: int
    ) -> None:
        self.log.truth(
            CAUSES,
            {
                "person": f"u:{self.person.user_id}",
                "cause": cause,
                "cause_ids": cause_ids,
                "cause_at": stamp(cause_at),
                "effect": effect,
                "effect_ids": effect_ids,
                "effect_at": stamp(effect_at),
            },
        )

    def _happen(
        self,
        kind: str,
        at: int,
        lines: list[Line],
        order: Order,
        effect: float = 0.0,
        direction: str = "none",
        compensated: bool | None = None,
        repeat: int = 1,
        thanked: bool = False,
    ) -> Event:
        """Write the dialogue, let the effect begin, keep the event for the truth."""
        own = [said for said in self.log.dialogue(at, lines) if said.line.expected == REMEMBER]
        effect = round(effect, 4)
        event = Event(kind, own[0].at, own, order.number, effect, direction, compensated, repeat)
        self.events.append(event)
        ids = [said.row_id for said in own]
        self._pair("order", [order.event_id], order.at, kind, ids, event.at)
        if repeat > 1:
            before = order.events[-1]
            self._pair(before.kind, [said.row_id for said in before.said], before.at, kind, ids, event.at)
        order.events.append(event)
        if thanked:
            self.happened["thanks"].append(event.at + 1)
        if direction != "none":
            self.effects = [active for active in self.effects if active[0] + WEEK > at]
            self.effects.append((event.at, 1 - effect if direction == "down" else 1 + effect))
        return event

    # -- truth ------------------------------------------------------------------------------------

    def _within(self, kind: str, at: int) -> int:
        times = self.happened[kind]
        return bisect_right(times, at + WEEK) - bisect_right(times, at)

    def _feedback(self, event: Event) -> str:
        """The strongest of what followed within 7 days."""
        at = event.at
        if self._within("churn", at):
            return "churned"
        if self._within("refund", at):
            return "refunded"
        if self._within("cancel", at):
            return "canceled_order"
        unhappy = ("logistics_complaint", "refund_request")
        if any(other.kind in unhappy and at < other.at <= at + WEEK for other in self.events):
            return "complained_again"
        if self._within("order", at):
            return "bought_again"
        return "thanked" if self._within("thanks", at) else "none"

    def _tell_truth(self) -> None:
        for times in self.happened.values():
            times.sort()
        for event in self.events:
            self.log.truth(
                EVENTS,
                {
                    "subject": event.said[0].subject,
                    "person": f"u:{self.person.user_id}",
                    "kind": event.kind,
                    "occurred_at": stamp(event.at),
                    "turn_ids": [said.row_id for said in event.said],
                    "order": event.order,
                    "compensated": event.compensated,
                    "repeat": event.repeat,
                    "effect": event.effect,
                    "direction": event.direction,
                    "feedback": self._feedback(event),
                    "orders_after": self._within("order", event.at),
                    "expected_orders": round(self.person.order_rate * self.calendar.week_after(event.at), 4),
                    "window_closed": event.at + WEEK <= self.config.end,
                },
            )
        for event in self.events:
            self.talk.book.remember(event.said, "episodic", "long", event.kind, None)
        complaints = [e for e in self.events if e.kind == "logistics_complaint"]
        named = [e for e in complaints if e.said[0].subject.startswith("u:")]
        self.talk.finish([said.row_id for event in named for said in event.said])
        self.company.finish()
