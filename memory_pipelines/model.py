"""Keys, ids and small frozen types that every other module speaks.

Belongs here: what must mean the same in the lake, in every store and in every process. Does not
belong here: reading, writing, or anything that a model or a setting can change: ids never depend
on those.
"""

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum

from memory_pipelines.errors import InputError

DIGEST_BYTES = 16
FIRST_DAY = "2004-01-01"
"""The first day partition (UTC). An earlier time in a log is no time: an epoch of zero, mostly."""
TOUCHED_DAYS = range(-2, 4)
"""A landed turn can change the exchanges of the day before (a late reply), with them what becomes of turns
of the day before that (the opening); and exchanges of three days after: a late own turn moves the first own
turn of a run over midnight, whose exchange takes replies of the day after, and their rest opens the next."""
WINDOW = timedelta(days=7)
"""How long after an event behaviour still counts for it (feedback, impact, inquiries)."""
_LENGTHS = [b"%d:" % length for length in range(1024)]
INSTANT = timedelta(microseconds=1)
"""The smallest step of time that is kept."""


class Role(StrEnum):
    """Who spoke. Only ``USER`` rows are a subject's own turns. ``UNCHOSEN`` is what was said on a branch of a
    dialogue that was given up (an answer generated anew): step 1 counts it and drops it."""

    USER = "user"
    AGENT = "agent"
    SYSTEM = "system"
    UNCHOSEN = "unchosen"


class MemoryType(StrEnum):
    EPISODIC = "episodic"
    SEMANTIC = "semantic"
    PROCEDURAL = "procedural"


class Permanence(StrEnum):
    PERMANENT = "permanent"
    LONG = "long"
    TASK = "task"
    SHORT = "short"


class Tier(StrEnum):
    HOT = "hot"
    WARM = "warm"
    COLD = "cold"


class ImpactLabel(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


LOW_BELOW, HIGH_ABOVE = 0.3, 0.7


def impact_label(impact: float) -> ImpactLabel:
    """Name a decision impact in [0, 1]: low < .3 <= medium <= .7 < high."""
    if impact < LOW_BELOW:
        return ImpactLabel.LOW
    return ImpactLabel.HIGH if impact > HIGH_ABOVE else ImpactLabel.MEDIUM


def stable_hash(*parts: str | int | None) -> str:
    """128-bit BLAKE2b of the parts as 32 hex digits, equal in every process and version.

    Each part is length-prefixed, so ``("ab", "c")`` and ``("a", "bc")`` differ, as do ``None``
    and the empty string.
    """
    pieces = []
    for part in parts:
        if part is None:
            pieces.append(b"-;")
        else:
            raw = str(part).encode("utf-8", "surrogatepass")
            pieces += (_LENGTHS[len(raw)] if len(raw) < len(_LENGTHS) else b"%d:" % len(raw), raw)
    return hashlib.blake2b(b"".join(pieces), digest_size=DIGEST_BYTES).hexdigest()


_CANONICAL = json.JSONEncoder(ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def canonical_json(value: object) -> str:
    """JSON with sorted keys and no spaces: equal values give equal bytes."""
    return _CANONICAL.encode(value)


@dataclass(frozen=True, slots=True)
class Owner:
    """One subject of one tenant: the unit that owns exchanges, slices and memories."""

    tenant: str
    subject: str

    @property
    def key(self) -> str:
        """Opaque key for stores that must not hold names (vectors, graph, cache, object keys)."""
        return stable_hash(self.tenant, self.subject)

    def bucket(self, buckets: int) -> int:
        """Stable bucket in ``range(buckets)``."""
        return bucket_of(self.key, buckets)


def bucket_of(key: str, buckets: int) -> int:
    """The bucket of an owner of whom only the key is known."""
    return int(key[:8], 16) % buckets


def user_subject(user_id: str) -> str:
    return f"u:{user_id}"


def device_subject(fingerprint: str) -> str:
    return f"d:{fingerprint}"


def turn_id(conversation_id: str, at: datetime, role: str, text: str, ordinal: int) -> str:
    """Id of a turn whose source gives none; ``ordinal`` counts equal rows of one source."""
    return stable_hash("turn", conversation_id, iso(at), role, text, ordinal)


def own_event_id(content_hash: str) -> str:
    """Id of a behaviour event whose source gives none."""
    return stable_hash("event", content_hash)


def exchange_id(owner: Owner, first_own_turn: str) -> str:
    return stable_hash("exchange", owner.tenant, owner.subject, first_own_turn)


def slice_id(day: date, first_exchange: str) -> str:
    """``evt_<day>_<hash of the slice's first exchange>``."""
    return f"evt_{day:%Y%m%d}_{stable_hash('slice', first_exchange)}"


def memory_id(owner: Owner, kind: MemoryType, first_own_turn: str, predicate: str = "", value: str = "") -> str:
    """Id of a memory; depends on its first source turn and its claim, on no model and no setting."""
    return stable_hash("memory", owner.tenant, owner.subject, kind, first_own_turn, predicate, value)


def known_subject(text: str) -> str:
    """``text`` if it names a subject. Raises InputError: a forgotten prefix would name nobody, silently."""
    if not text.startswith(("u:", "d:")) or len(text) < 3:
        raise InputError("a subject is u:<user id> or d:<device fingerprint>")
    return text


def utc(value: datetime) -> datetime:
    """The instant in UTC; a naive time is refused, never guessed."""
    if value.tzinfo is None:
        raise ValueError("a time without a zone")
    return value if value.tzinfo is UTC else value.astimezone(UTC)


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def micros(instant: datetime) -> int:
    """Microseconds since 1970; a naive time is refused, never guessed."""
    return (utc(instant) - EPOCH) // timedelta(microseconds=1)


def iso(value: datetime) -> str:
    """RFC 3339 in UTC; microseconds only where there are any."""
    return utc(value).isoformat()[:-6] + "Z"


def day_of(value: datetime) -> str:
    """The UTC day, ``YYYY-MM-DD``: the key of a day partition."""
    return utc(value).date().isoformat()


def month_of(day: str) -> str:
    """The month of a day, ``YYYY-MM``."""
    return day[:7]


def day_start(day: str) -> datetime:
    return datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)


def shift_day(day: str, days: int) -> str:
    return (date.fromisoformat(day) + timedelta(days=days)).isoformat()


def days_between(first: str, last: str) -> list[str]:
    """All days from ``first`` to ``last``, both included."""
    count = (date.fromisoformat(last) - date.fromisoformat(first)).days + 1
    return [shift_day(first, i) for i in range(count)]


def unique(items: Iterable[str]) -> list[str]:
    """The items without repeats, in first-seen order."""
    return list(dict.fromkeys(items))


def touched_days(days: Iterable[str]) -> frozenset[str]:
    """The days whose cut may depend on turns of ``days``; none before the first partition."""
    around = {shift_day(day, shift) for day in days for shift in TOUCHED_DAYS}
    return frozenset(day for day in around if day >= FIRST_DAY)
