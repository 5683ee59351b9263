"""Talks of several users: a group of friends or a family, and a second user of one device.

Belongs here: what guests say and what is true of them. A guest exists in one person's life alone,
so that more persons change nobody's life. Does not belong here: the person's own talk with the
assistant (``memory_talk``) and with customer service (``life``).
"""

from datetime import UTC, datetime, timedelta

from memory_pipelines.sample.book import Book
from memory_pipelines.sample.emit import Log
from memory_pipelines.sample.phrases import pick
from memory_pipelines.sample.rows import DIALOGUES, FORGET, REMEMBER, SHORT, Line, Record, Said, Seat

ORIGINS = {"zh": "wechat_group", "zh-Hant": "line_group", "en": "group_chat"}


class GroupTalk:
    """What the guests in one person's life say."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.rng = log.rng
        self.phrases = log.phrases
        self.books = {guest: Book(log, guest) for guest in log.person.guests}
        self.own = Book(log, log.person.user_id)

    def talk(self, at: int) -> None:
        """One talk: a greeting, what the others answer, perhaps a fact about one of them, perhaps a plan."""
        rng, group, guests = self.rng, self.phrases.group, self.log.person.guests
        lines = [Line("user", pick(rng, group["opening"]), FORGET, "small_talk", guest=pick(rng, (*guests, "")))]
        lines += [Line("user", pick(rng, group["answer"]), FORGET, "small_talk", guest=guest) for guest in guests]
        told: tuple[str, str] | None = None
        speaker = pick(rng, guests)
        if rng.random() < 0.5:
            predicate = pick(rng, group["fact"])
            known = self.books[speaker].current.get(predicate)
            if known is None:
                value = pick(rng, self.phrases.pools[predicate])
                told = predicate, value
                text = pick(rng, self.phrases.facts[predicate].tell).format(value=value)
                lines.append(Line("user", text, REMEMBER, predicate, guest=speaker))
        plan = ""
        if rng.random() < 0.5:
            day = datetime.fromtimestamp(at, UTC) + timedelta(days=2 + int(rng.random() * 12))
            plan = pick(rng, group["gathering"])
            text = pick(rng, group["plan"]).format(date=self.phrases.date(day.month, day.day), value=plan)
            lines.append(Line("user", text, REMEMBER, "plan"))
        lines += [
            Line("user", pick(rng, group["closing"]), FORGET, "closing", guest=guest)
            for guest in guests
            if rng.random() < 0.6
        ]
        for said in self._write(at, lines, ORIGINS[self.log.person.language]):
            if said.line.kind == "plan":
                self.own.remember([said], "semantic", "task", "plan", plan)
            elif told is not None and said.line.kind == told[0]:
                self.books[speaker].hold(*told, said)

    def ask(self, at: int) -> None:
        """The guest asks customer service something, on the person's device."""
        phrases, rng = self.phrases, self.rng
        slots = phrases.slots(rng)
        pairs = tuple(zip(phrases.service["question"], phrases.service["agent_answer"], strict=True))
        asked, answered = pick(rng, pairs)
        guest = self.log.person.guests[0]
        lines = [
            Line("user", asked.format_map(slots), SHORT, "product_question", guest=guest),
            Line("agent", answered.format_map(slots), guest=guest),
        ]
        self._write(at, lines, "web_app")

    def _write(self, at: int, lines: list[Line], origin: str) -> list[Said]:
        """Rows of the dialogue stream, each naming its speaker; the turns with a verdict."""
        log, person = self.log, self.log.person
        conversation = log.conversation("gr")
        said: list[Said] = []
        now = at
        for number, line in enumerate(lines):
            user = line.guest or person.user_id
            row_id = f"{conversation}-{number:02}"
            row = log.row(conversation, conversation, now, 0, line.role, line.text, origin, Seat(person.device_id))
            # Members of a group are known by their accounts: nobody in it is anonymous.
            device = person.device_id if origin == "web_app" else None
            row = {"turn_id": row_id, **row, "user_id": user, "device_id": device}
            log.records.append(Record(person.tenant, DIALOGUES, now, row))
            if line.expected:
                log.expect(DIALOGUES, row_id, now, line.expected, line.kind, f"u:{user}")
                said.append(Said(row_id, now, line, f"u:{user}", len(log.records) - 1))
            now += 10 + int(self.rng.random() * 200)
        return [one for one in said if one.line.expected == REMEMBER]

    def finish(self) -> None:
        """Write what is true of the guests."""
        for book in self.books.values():
            book.tell_truth()
