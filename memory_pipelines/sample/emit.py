"""The log of one person: rows as a company would have them, the noise among them, and the truth.

Belongs here: row formats, ids, noise, what is expected of each row. Does not belong here: what
happens in a life (``life``), files (``write``).
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from random import Random
from typing import Any, NamedTuple

from memory_pipelines.model import turn_id
from memory_pipelines.sample.config import DAY, Config
from memory_pipelines.sample.people import ORIGINS, Person
from memory_pipelines.sample.phrases import Phrases, pick

DIALOGUES = "dialogues"
ASSISTANT = "assistant"
BEHAVIOUR = "behaviour"
EVENTS = "truth/events"
FACTS = "truth/facts"
EXPECTED = "truth/expected"
QUESTIONS = "truth/questions"

REMEMBER = "remember"
SHORT = "short"
FORGET = "forget"
FILTER = "filter"
QUARANTINE = "quarantine"
DUPLICATE = "duplicate"

BEHAVIOUR_COLUMNS = (
    "event_id", "user_id", "device_id", "kind", "occurred_at", "value", "dwell_seconds", "bounce", "reference",
)  # fmt: skip
FAR_FUTURE = "2099-01-01T00:00:00Z"
ANGRY, HAPPY, MILD = ("😡", "😭", "🙄", "💔"), ("👍", "😊", "🎉", "❤️"), ("🙏", "😊", "😂")
EMOJI = {"logistics_complaint": ANGRY, "refund_request": ANGRY, "praise": HAPPY}


class Record(NamedTuple):
    """One row of one stream. ``arrived`` (seconds since 1970) orders the files and names their month;
    ``row`` is a mapping, or text where the row itself is broken; truth has streams ``truth/...``."""

    tenant: str
    stream: str
    arrived: int
    row: dict[str, Any] | str


class Line(NamedTuple):
    """A turn to be said. ``expected`` and ``kind`` are empty for the other side's turns."""

    role: str
    text: str
    expected: str = ""
    kind: str = ""


class Said(NamedTuple):
    """A written turn of the person's own."""

    row_id: str
    at: int
    line: Line


def stamp(at: int, offset_hours: int = 0) -> str:
    """RFC 3339, in UTC (``Z``) or with the offset."""
    if not offset_hours:
        return datetime.fromtimestamp(at, UTC).isoformat()[:19] + "Z"
    return datetime.fromtimestamp(at, timezone(timedelta(hours=offset_hours))).isoformat()


@dataclass
class Log:
    """Collects one person's records. All draws come from ``rng``, in the order of the calls."""

    config: Config
    person: Person
    phrases: Phrases
    rng: Random
    records: list[Record] = field(default_factory=list)
    conversations: int = 0
    events: int = 0

    def truth(self, stream: str, row: dict[str, Any]) -> None:
        self.records.append(Record(self.person.tenant, stream, 0, {"tenant": self.person.tenant} | row))

    def expect(self, stream: str, row_id: str | None, at: int, expected: str, kind: str) -> None:
        """Say what should become of a row; ``row_id`` is None where the row is too broken to have one."""
        subject = self.person.subject(at)
        self.truth(
            EXPECTED, {"stream": stream, "row_id": row_id, "subject": subject, "expected": expected, "kind": kind}
        )

    # -- customer service -------------------------------------------------------------------------

    def dialogue(self, at: int, lines: list[Line]) -> list[Said]:
        """Write one customer-service session; the person's own turns, in order.

        Transcripts of phone calls carry no turn ids: theirs is what ``model.turn_id`` makes of them.
        """
        config, person, rng = self.config, self.person, self.rng
        origin = pick(rng, ORIGINS[person.language])
        conversation = self._conversation("cs")
        session = None if rng.random() < config.sessionless else f"s-{conversation}"
        offset = person.offset_hours if origin in ("wechat_mini", "email") else 0
        lag = self._lag(at)
        named = origin != "phone"
        own: list[Said] = []
        rows: list[dict[str, Any]] = []
        now = at
        for number, line in enumerate(lines):
            text = line.text
            if named and rng.random() < config.markup:
                text = pick(rng, (f"<p>{text}</p>", f"{text}<br/>", f"&nbsp;{text}"))
            elif named and line.role == "user" and rng.random() < config.emoji:
                text += pick(rng, EMOJI.get(line.kind, MILD))
            row: dict[str, Any] = self._row(conversation, session, now, offset, line.role, text, origin)
            if named:
                row_id = f"{conversation}-{number:02}"
                row = {"turn_id": row_id} | row
                rows.append(row)
            else:
                row_id = turn_id(conversation, datetime.fromtimestamp(now, UTC), line.role, text, 0)
            self.records.append(Record(person.tenant, DIALOGUES, now + lag, row))
            if line.expected:
                self.expect(DIALOGUES, row_id, now, line.expected, line.kind)
                own.append(Said(row_id, now, line))
            now += 15 + int(rng.random() * 75)
        self._noise(conversation, session, at, now, lag, origin, rows, len(lines))
        return own

    def _conversation(self, prefix: str) -> str:
        self.conversations += 1
        return f"{prefix}-{self.person.key}-{self.conversations:04}"

    def _lag(self, at: int) -> int:
        """Seconds by which a session's rows reach the log late, into the next month's file."""
        after = at + 2 * DAY
        first_of_month = datetime.fromtimestamp(after, UTC).day <= 2
        late = first_of_month and after < self.config.end and self.rng.random() < self.config.late
        return 2 * DAY if late else 0

    def _row(
        self, conversation: str, session: str | None, at: int, offset: int, role: str, text: str, origin: str
    ) -> dict[str, Any]:
        person = self.person
        row: dict[str, Any] = {
            "conversation_id": conversation,
            "session_id": session,
            "user_id": None if at < person.anonymous_until else person.user_id,
            "device_id": None if origin == "phone" and at >= person.anonymous_until else person.device_id,
            "role": role,
            "occurred_at": stamp(at, offset),
            "text": text,
            "origin": origin,
        }
        return row | self._tenant()

    def _tenant(self) -> dict[str, str]:
        """Rows of the first tenant do not name it, as most companies' logs do not."""
        return {} if self.person.tenant == self.config.tenants[0] else {"tenant": self.person.tenant}

    def _noise(
        self,
        conversation: str,
        session: str | None,
        first: int,
        last: int,
        lag: int,
        origin: str,
        rows: list[dict[str, Any]],
        turns: int,
    ) -> None:
        """Extra rows of one session: so many per true turn as the configuration says, on average."""
        config, rng, person = self.config, self.rng, self.person
        count = 0

        def some(share: float) -> int:
            return int(share * turns + rng.random())

        def add(role: str, text: str, expected: str, kind: str, changes: dict[str, object] | None = None) -> None:
            nonlocal count
            at = first + 1 + int(rng.random() * max(1, last - first - 1))
            row_id = f"{conversation}-n{count:02}"
            count += 1
            row = {"turn_id": row_id} | self._row(conversation, session, at, 0, role, text, origin) | (changes or {})
            self.records.append(Record(person.tenant, DIALOGUES, at + lag, row))
            self.expect(DIALOGUES, row_id, at, expected, kind)

        for _ in range(some(config.heartbeats)):
            add(pick(rng, ("system", "system", "user")), "[heartbeat]", FILTER, "heartbeat")
        for _ in range(some(config.tracking)):
            text = pick(
                rng, ("[event] page_view /orders", "[event] click add_to_cart", '{"event":"page_view","ms":120}')
            )
            add("system", text, FILTER, "tracking")
        for _ in range(some(config.automatic_replies)):
            add("agent", pick(rng, self.phrases.noise["automatic_reply"]), FILTER, "automatic_reply")
        for _ in range(some(config.system_rows)):
            text = pick(rng, self.phrases.noise["system_row"])
            name = pick(rng, self.phrases.pools["reply_name"])
            add("system", text.format(reply_name=name), FILTER, "system_row")
        for _ in range(some(config.duplicates) if rows else 0):
            row = pick(rng, tuple(rows))
            self.records.append(Record(person.tenant, DIALOGUES, last + lag, row))
            self.expect(DIALOGUES, row["turn_id"], first, DUPLICATE, "duplicate")
        for _ in range(some(config.broken)):
            text = pick(rng, self.phrases.service["question_more"])
            kind = pick(rng, ("no_time", "future_time", "empty_text", "nul_byte", "wrong_type", "bad_json"))
            if kind == "bad_json":
                half = f'{{"turn_id": "{conversation}-x", "role": "user", "text": "{text}'
                self.records.append(Record(person.tenant, DIALOGUES, last + lag, half))
                self.expect(DIALOGUES, None, first, QUARANTINE, kind)
                continue
            changes: dict[str, dict[str, object]] = {
                "no_time": {"occurred_at": None},
                "future_time": {"occurred_at": FAR_FUTURE},
                "empty_text": {"text": ""},
                "nul_byte": {"text": f"{text}\x00"},
                "wrong_type": {"text": 12345},
            }
            # A row without text is nothing to repair: it is filtered, not quarantined.
            add("user", text, FILTER if kind == "empty_text" else QUARANTINE, kind, changes[kind])

    # -- personal assistant -----------------------------------------------------------------------

    def assistant(self, at: int, lines: list[Line]) -> list[Said]:
        """Write one personal-assistant conversation in OpenAI's form; the person's own turns, in order.

        The form has no message ids, so each is ``model.turn_id`` of its conversation, time, role
        (``agent`` for ``assistant``) and text.
        """
        person, rng = self.person, self.rng
        conversation = self._conversation("pa")
        messages: list[dict[str, str]] = []
        own: list[Said] = []
        now = at
        for line in lines:
            role = "assistant" if line.role == "agent" else line.role
            messages.append({"role": role, "content": line.text, "created_at": stamp(now)})
            if line.expected:
                row_id = turn_id(conversation, datetime.fromtimestamp(now, UTC), line.role, line.text, 0)
                self.expect(ASSISTANT, row_id, now, line.expected, line.kind)
                if line.role == "user":
                    own.append(Said(row_id, now, line))
            now += 5 + int(rng.random() * 55)
        row = {"id": conversation, "user": person.user_id, "created_at": stamp(at), "messages": messages}
        self.records.append(Record(person.tenant, ASSISTANT, at, row | self._tenant()))
        return own

    # -- behaviour --------------------------------------------------------------------------------

    def behaviour(
        self,
        at: int,
        kind: str,
        value: float | None = None,
        dwell: float | None = None,
        bounce: bool | None = None,
        reference: str | None = None,
    ) -> None:
        """Write one behaviour event, and now and then a broken one beside it."""
        person, rng = self.person, self.rng
        self.events += 1
        row: dict[str, Any] = {
            "event_id": f"b-{person.key}-{self.events:05}",
            "user_id": None if at < person.anonymous_until else person.user_id,
            "device_id": person.device_id,
            "kind": kind,
            "occurred_at": stamp(at),
            "value": value,
            "dwell_seconds": dwell,
            "bounce": None if bounce is None else str(bounce).lower(),
            "reference": reference,
        } | self._tenant()
        self.records.append(Record(person.tenant, BEHAVIOUR, at, row))
        if rng.random() < self.config.broken / 2:
            row_id = f"{row['event_id']}-x"
            flaw = pick(rng, ("no_time", "negative_value", "future_time", "no_kind"))
            changes: dict[str, dict[str, object]] = {
                "no_time": {"occurred_at": None},
                "negative_value": {"kind": "order", "value": -20.0},
                "future_time": {"occurred_at": FAR_FUTURE},
                "no_kind": {"kind": None},
            }
            self.records.append(Record(person.tenant, BEHAVIOUR, at, row | {"event_id": row_id} | changes[flaw]))
            self.expect(BEHAVIOUR, row_id, at, QUARANTINE, flaw)
