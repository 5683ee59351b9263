"""The log of one person: rows as a company would have them, the noise among them, and the truth.

Belongs here: row formats, ids, noise, what is expected of each row. Does not belong here: what
happens in a life (``life``), rows that are exported again (``exports``), files (``write``).
"""

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from memory_pipelines.model import turn_id
from memory_pipelines.sample import exports
from memory_pipelines.sample.config import DAY
from memory_pipelines.sample.people import ORIGINS
from memory_pipelines.sample.personal import Planted
from memory_pipelines.sample.phrases import pick
from memory_pipelines.sample.records import Records
from memory_pipelines.sample.rows import (
    ASSISTANT,
    BEHAVIOUR,
    DIALOGUES,
    DUPLICATE,
    FILTER,
    PERSONAL,
    QUARANTINE,
    Line,
    Record,
    Said,
    Seat,
    Written,
    stamp,
)

FAR_FUTURE = "2099-01-01T00:00:00Z"
ANGRY, HAPPY, MILD = ("😡", "😭", "🙄", "💔"), ("👍", "😊", "🎉", "❤️"), ("🙏", "😊", "😂")
EMOJI = {"logistics_complaint": ANGRY, "refund_request": ANGRY, "praise": HAPPY}


@dataclass
class Log(Records):
    """The log, conversation by conversation. All draws come from ``rng``, in the order of the calls."""

    conversations: int = 0
    events: int = 0

    def tell_personal(self, stream: str, row_id: str, subject: str, role: str, planted: Planted) -> None:
        self.truth(
            PERSONAL,
            {
                "stream": stream,
                "row_id": row_id,
                "subject": subject,
                "role": role,
                "kind": planted.kind,
                "value": planted.value,
                "sensitive": planted.sensitive,
            },
        )

    def offline(self, at: int) -> int:
        """When something of that time reaches the log: at once, or days later where the device is offline."""
        if self.config.offline and self.rng.random() < self.config.offline:
            later = at + int(DAY * (0.5 + 12 * self.rng.random()))
            return later if later < self.config.end else at
        return at

    # -- customer service -------------------------------------------------------------------------

    def dialogue(self, at: int, lines: list[Line]) -> list[Said]:
        """Write one customer-service session; the person's own turns, in order.

        Transcripts of phone calls carry no turn ids: theirs is what ``model.turn_id`` makes of them.
        """
        config, person, rng = self.config, self.person, self.rng
        origin = pick(rng, ORIGINS[person.language])
        seat = self.seat(at, origin)
        conversation = self.conversation("cs")
        session = None if rng.random() < config.sessionless else f"s-{conversation}"
        offset = person.offset_hours if origin in ("wechat_mini", "email") else 0
        lag = self._lag(at)
        named = origin != "phone"
        own: list[Said] = []
        rows: list[dict[str, Any]] = []
        written: list[Written] = []
        now = at
        for number, line in enumerate(lines):
            text = line.text
            if named and rng.random() < config.markup:
                text = pick(rng, (f"<p>{text}</p>", f"{text}<br/>", f"&nbsp;{text}"))
            elif named and line.role == "user" and rng.random() < config.emoji:
                text += pick(rng, EMOJI.get(line.kind, MILD))
            row = self.row(conversation, session, now, offset, line.role, text, origin, seat)
            if named:
                row_id = f"{conversation}-{number:02}"
                row = {"turn_id": row_id, **row}
                rows.append(row)
            else:
                row_id = turn_id(conversation, datetime.fromtimestamp(now, UTC), line.role, text, 0)
            self.records.append(Record(person.tenant, DIALOGUES, now + lag, row))
            subject = self.subject(now, seat)
            written.append(Written(row_id, now, subject, len(self.records) - 1))
            if line.planted is not None:
                self.tell_personal(DIALOGUES, row_id, subject, line.role, line.planted)
            if line.expected:
                self.expect(DIALOGUES, row_id, now, line.expected, line.kind, subject)
                own.append(Said(row_id, now, line, subject, len(self.records) - 1))
            now += 15 + int(rng.random() * 75)
        if config.rich:
            edited = exports.export(self, written, lines)
            rows = [row for row in rows if row["turn_id"] != edited]
        self._noise(conversation, session, at, now, lag, origin, rows, len(lines), seat)
        return own

    def seat(self, at: int, origin: str) -> Seat:
        """The device of a session, and whether its rows name the user. A phone call knows its caller."""
        person, rng, config = self.person, self.rng, self.config
        device = person.device_id
        if person.second_device and at >= person.second_from and rng.random() < 0.4:
            device = person.second_device
        out = bool(config.logged_out) and rng.random() < config.logged_out
        return Seat(device, out and origin != "phone" and at >= person.anonymous_until)

    def subject(self, at: int, seat: Seat) -> str:
        """Whom a row of that seat and time names."""
        return f"d:{seat.device}" if seat.logged_out or at < self.person.anonymous_until else f"u:{self.person.user_id}"

    def conversation(self, prefix: str) -> str:
        self.conversations += 1
        return f"{prefix}-{self.person.key}-{self.conversations:04}"

    def _lag(self, at: int) -> int:
        """Seconds by which a session's rows reach the log late, into the next month's file."""
        after = at + 2 * DAY
        first_of_month = datetime.fromtimestamp(after, UTC).day <= 2
        late = first_of_month and after < self.config.end and self.rng.random() < self.config.late
        return 2 * DAY if late else 0

    def row(
        self,
        conversation: str,
        session: str | None,
        at: int,
        offset: int,
        role: str,
        text: str,
        origin: str,
        seat: Seat,
    ) -> dict[str, Any]:
        """One row of customer service, without a turn id."""
        person = self.person
        anonymous = at < person.anonymous_until
        return {
            "conversation_id": conversation,
            "session_id": session,
            "user_id": None if anonymous or seat.logged_out else person.user_id,
            "device_id": None if origin == "phone" and not anonymous else seat.device,
            "role": role,
            "occurred_at": stamp(at, offset),
            "text": text,
            "origin": origin,
            **self.tenant(),
        }

    def tenant(self) -> dict[str, str]:
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
        seat: Seat,
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
            row = self.row(conversation, session, at, 0, role, text, origin, seat)
            row = {"turn_id": row_id, **row, **(changes or {})}
            self.records.append(Record(person.tenant, DIALOGUES, at + lag, row))
            self.expect(DIALOGUES, row_id, at, expected, kind, self.subject(at, seat))

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
            self.expect(DIALOGUES, row["turn_id"], first, DUPLICATE, "duplicate", self.subject(first, seat))
        for _ in range(some(config.broken)):
            text = pick(rng, self.phrases.service["question_more"])
            kind = pick(rng, ("no_time", "future_time", "empty_text", "nul_byte", "wrong_type", "bad_json"))
            if kind == "bad_json":
                half = f'{{"turn_id": "{conversation}-x", "role": "user", "text": "{text}'
                self.records.append(Record(person.tenant, DIALOGUES, last + lag, half))
                self.expect(DIALOGUES, None, first, QUARANTINE, kind, self.subject(first, seat))
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
        conversation = self.conversation("pa")
        messages: list[dict[str, str]] = []
        own: list[Said] = []
        now = at
        for line in lines:
            role = "assistant" if line.role == "agent" else line.role
            messages.append({"role": role, "content": line.text, "created_at": stamp(now)})
            if line.expected or line.planted is not None:
                row_id = turn_id(conversation, datetime.fromtimestamp(now, UTC), line.role, line.text, 0)
                if line.planted is not None:
                    self.tell_personal(ASSISTANT, row_id, f"u:{person.user_id}", line.role, line.planted)
                if line.expected:
                    self.expect(ASSISTANT, row_id, now, line.expected, line.kind)
                if line.role == "user":
                    own.append(Said(row_id, now, line, f"u:{person.user_id}", len(self.records) - 1))
            now += 5 + int(rng.random() * 55)
        row = {"id": conversation, "user": person.user_id, "created_at": stamp(at), "messages": messages}
        self.records.append(Record(person.tenant, ASSISTANT, self.offline(at), row | self.tenant()))
        # The record comes last: verdicts of its messages stand before it.
        return [said._replace(record=len(self.records) - 1) for said in own]

    # -- behaviour --------------------------------------------------------------------------------

    def behaviour(
        self,
        at: int,
        kind: str,
        value: float | None = None,
        dwell: float | None = None,
        bounce: bool | None = None,
        reference: str | None = None,
        guest: str = "",
        device: str = "",
    ) -> str:
        """Write one behaviour event, and now and then a broken one beside it; returns its id.

        ``guest`` did it instead of the person, ``device`` is given where it is known.
        """
        person, rng = self.person, self.rng
        self.events += 1
        # Orders need a login; only visits are seen of somebody who is logged out.
        seat = Seat(device) if device or not self.config.rich else self.seat(at, "" if kind == "visit" else "phone")
        anonymous = at < person.anonymous_until or seat.logged_out
        row: dict[str, Any] = {
            "event_id": f"b-{person.key}-{self.events:05}",
            "user_id": guest or (None if anonymous else person.user_id),
            "device_id": seat.device or person.device_id,
            "kind": kind,
            "occurred_at": stamp(at),
            "value": value,
            "dwell_seconds": dwell,
            "bounce": None if bounce is None else str(bounce).lower(),
            "reference": reference,
            **self.tenant(),
        }
        arrived = self.offline(at)
        self.records.append(Record(person.tenant, BEHAVIOUR, arrived, row))
        if self.config.rich:
            exports.export_event(self, row, arrived)
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
        return str(row["event_id"])
