"""What a person tells about themself, and which of it is true until when.

Belongs here: facts with their changes and corrections, plans, small talk with the assistant, and
the questions that a test may ask. Does not belong here: orders and complaints (``life``).
"""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

from memory_pipelines.sample.book import Book
from memory_pipelines.sample.config import DAY
from memory_pipelines.sample.emit import Log
from memory_pipelines.sample.personal import plant
from memory_pipelines.sample.phrases import pick
from memory_pipelines.sample.rows import FILTER, FORGET, QUESTIONS, REMEMBER, SHORT, Line, Said

HABITS = (
    ("home_city", 0.6, 0.35),
    ("employer", 0.5, 0.3),
    ("food_preference", 0.6, 0.2),
    ("allergy", 0.25, 0.0),
    ("seat_preference", 0.45, 0.15),
    ("child_name", 0.35, 0.0),
    ("pet", 0.35, 0.0),
    ("hobby", 0.45, 0.2),
    ("meeting_time", 0.35, 0.0),
)
"""Predicate, share of persons who tell it, share of those who change it later."""
CORRECTED = "meeting_time"
"""The predicate that is first told wrong and corrected in the same conversation."""


MOST_CHANGES = 3
"""So often at most a value changes in a rich simulation; in the small sample once."""


class MemoryTalk:
    """The assistant's side of one person's life."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.rng = log.rng
        self.phrases = log.phrases
        self.book = Book(log, log.person.user_id)
        self.plans: list[tuple[str, str, Said]] = []
        self.workflows: list[Said] = []

    def schedule(self) -> list[tuple[int, Callable[[int], None]]]:
        """When the person will tell which fact, and when a new value of it."""
        rng, config = self.rng, self.log.config
        begin, end = max(config.begin, self.log.person.anonymous_until), config.end
        steps: list[tuple[int, Callable[[int], None]]] = []
        for predicate, told, changed in HABITS:
            if rng.random() >= told or begin >= end:
                continue
            at = begin + int((end - begin) * 0.75 * rng.random())
            steps.append((at, partial(self.tell, predicate=predicate)))
            again = at
            for _ in range(MOST_CHANGES if config.rich else 1):
                if rng.random() >= changed:
                    break
                again += int(DAY * (7 + 45 * rng.random()))
                steps.append((again, partial(self.tell, predicate=predicate)))
            if config.corrections and predicate != CORRECTED and rng.random() < config.corrections:
                steps.append((at + int(DAY * (1 + 6 * rng.random())), partial(self.correct, predicate=predicate)))
        if config.rich and begin < end and rng.random() < 0.15:
            steps.append((begin + int((end - begin) * rng.random()), self.teach))
        return steps

    # -- conversations ----------------------------------------------------------------------------

    def tell(self, at: int, predicate: str) -> None:
        """Tell a fact, or its new value if it was told before; the corrected one is put right at once."""
        fact = self.phrases.facts[predicate]
        before = self.book.current[predicate].value if predicate in self.book.current else ""
        lines = self._opening()
        value = self._new_value(predicate, before)
        lines.append(self._fact_line(fact.change if before else fact.tell, predicate, value, before))
        lines.append(self._say("ack", "agent", value=value))
        corrected = None
        if predicate == CORRECTED:
            corrected = self._new_value(predicate, value)
            lines.append(self._fact_line(fact.change, predicate, corrected, value))
            lines.append(self._say("ack", "agent", value=corrected))
        lines += self.aside()
        said = self._converse(at, lines, predicate)
        self.hold(predicate, value, said[0])
        if corrected is not None:
            self.hold(predicate, corrected, said[1], "correction")

    def correct(self, at: int, predicate: str) -> None:
        """Put a fact right that was told wrong on an earlier day."""
        before = self.book.current[predicate].value
        value = self._new_value(predicate, before)
        line = self._fact_line(self.phrases.facts[predicate].correct, predicate, value, before)
        lines = [*self._opening(), line, self._say("ack", "agent", value=value), *self.aside()]
        self.hold(predicate, value, self._converse(at, lines, predicate)[0], "correction")

    def teach(self, at: int) -> None:
        """Tell the assistant how something is always to be done."""
        lines = [*self._opening(), self._say("workflow", "user", REMEMBER, "workflow")]
        lines.append(self._say("workflow_reply", "agent"))
        self.workflows += self._converse(at, lines, "workflow")

    def hold(self, predicate: str, value: str, said: Said, why: str = "change") -> None:
        """From that turn on the predicate has this value; the one before ends there."""
        self.book.hold(predicate, value, said, why)

    def chat(self, at: int) -> None:
        """Small talk and sums, which leave nothing, and now and then a plan, which does."""
        lines = self._opening() + self.aside(always=True)
        if self.rng.random() < 0.25:
            day = datetime.fromtimestamp(at, UTC) + timedelta(days=3 + int(self.rng.random() * 18))
            date = self.phrases.date(day.month, day.day)
            value = pick(self.rng, self.phrases.pools["plan"])
            lines.append(self._say("plan", "user", REMEMBER, "plan", date=date, value=value))
            lines.append(self._say("plan_reply", "agent", date=date, value=value))
            said = self._converse(at, lines, "plan")
            self.plans.append((date, value, said[0]))
        else:
            if self.log.config.personal and self.rng.random() < self.log.config.personal:
                text, planted = plant(self.rng, self.phrases)
                lines.append(Line("user", text, SHORT, "personal_data", planted))
                lines.append(Line("agent", pick(self.rng, self.phrases.personal["agent_other"])))
            self._converse(at, lines, "")

    def _converse(self, at: int, lines: list[Line], kind: str) -> list[Said]:
        """Write the conversation; the person's own turns of that kind."""
        return [said for said in self.log.assistant(at, lines) if said.line.kind == kind]

    def _say(self, key: str, role: str, expected: str = "", kind: str = "", **slots: object) -> Line:
        return Line(role, pick(self.rng, self.phrases.assistant[key]).format_map(slots), expected, kind)

    def _fact_line(self, templates: tuple[str, ...], predicate: str, value: str, before: str) -> Line:
        text = pick(self.rng, templates).format(value=value, old=before)
        return Line("user", text, REMEMBER, predicate)

    def _new_value(self, predicate: str, before: str) -> str:
        return pick(self.rng, tuple(value for value in self.phrases.pools[predicate] if value != before))

    def _opening(self) -> list[Line]:
        lines: list[Line] = []
        if self.rng.random() < 0.2:
            lines.append(self._say("system", "system", FILTER, "system_row"))
        if self.rng.random() < 0.4:
            lines.append(self._say("hello", "user", FORGET, "greeting"))
            lines.append(self._say("hello_reply", "agent"))
        return lines

    def aside(self, always: bool = False) -> list[Line]:
        """Perhaps small talk, perhaps a sum (transient reasoning)."""
        lines: list[Line] = []
        mark = 0.35 + 0.65 * self.rng.random() if always else self.rng.random()
        if mark > 0.6:
            lines.append(self._say("chat", "user", FORGET, "small_talk"))
            lines.append(self._say("chat_reply", "agent"))
        if 0.35 < mark < 0.8:
            a, b = 10 + int(self.rng.random() * 90), 10 + int(self.rng.random() * 90)
            lines.append(self._say("sum", "user", FORGET, "arithmetic", a=a, b=b))
            lines.append(self._say("sum_reply", "agent", a=a, b=b, sum=a + b))
        return lines

    # -- truth ------------------------------------------------------------------------------------

    def finish(self, complaint_turns: list[str]) -> None:
        """Write the facts with their validity, and the questions with the turns that answer them."""
        self.book.tell_truth()
        for _, value, said in self.plans:
            self.book.remember([said], "semantic", "task", "plan", value)
        for said in self.workflows:
            self.book.remember([said], "procedural", "permanent", "workflow", None)
        for predicate, held in self.book.current.items():
            if predicate in self.phrases.facts:
                self.ask(pick(self.rng, self.phrases.facts[predicate].ask), held.value, [held.said.row_id], predicate)
        if complaint_turns:
            self.ask(self.phrases.assistant["complaint_ask"][0], None, complaint_turns, "logistics_complaint")
        if self.plans:
            date = self.plans[-1][0]
            due = [(value, said.row_id) for when, value, said in self.plans if when == date]
            question = self.phrases.assistant["plan_ask"][0].format(date=date)
            self.ask(question, due[-1][0], [row_id for _, row_id in due], "plan")

    def ask(self, question: str, answer: str | None, gold: list[str], kind: str) -> None:
        person = self.log.person
        self.log.truth(
            QUESTIONS,
            {
                "question": question,
                "language": person.language,
                "subject": f"u:{person.user_id}",
                "kind": kind,
                "answer": answer,
                "gold_turn_ids": gold,
            },
        )
