"""What a reflection is made of, and the checks that every insight passes whoever wrote it.

Belongs here: kinds, the frozen types, citation checks, ids, rows of ``tables.REFLECTIONS``. Does not belong
here: finding insights (``statistics``, ``llm``).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, date, datetime, time, timedelta

import pyarrow as pa

from memory_pipelines.model import Owner, iso, stable_hash, unique
from memory_pipelines.models.llm import FREE, Usage
from memory_pipelines.stores.authority import StoredMemory
from memory_pipelines.tables import REFLECTIONS

CORE_NEED, BEHAVIOUR_PATTERN = "core_need", "behaviour_pattern"
EMERGING_PREFERENCE, PREFERENCE_CHANGE = "emerging_preference", "preference_change"
TASK_PROGRESS, ANOMALY = "task_progress", "anomaly"
AGENT_BEHAVIOUR, ACTION_ITEM = "agent_behaviour", "action_item"
KINDS = (
    *(CORE_NEED, BEHAVIOUR_PATTERN, EMERGING_PREFERENCE, PREFERENCE_CHANGE),
    *(TASK_PROGRESS, ANOMALY, AGENT_BEHAVIOUR, ACTION_ITEM),
)

STATISTICS, LLM = "statistics", "llm"
MONTH = timedelta(weeks=4)
"""The window that a reflection looks at, and how long an insight is valid."""
MAX_TEXT = 400
_JOINER = "\u200d"
"""Holds an emoji of several signs together."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Whom and which week a reflection is about. ``memories``: what may be cited, by id, oldest first."""

    owner: Owner
    bucket: int
    week: date
    language: str
    memories: Mapping[str, StoredMemory]

    @property
    def start(self) -> datetime:
        return datetime.combine(self.week, time(), UTC)

    @property
    def end(self) -> datetime:
        """The Monday after, exclusive."""
        return self.start + timedelta(days=7)


@dataclass(frozen=True, slots=True)
class Draft:
    """An insight before its checks. ``subject`` says what it is about, in words that no wording changes."""

    kind: str
    subject: str
    text: str
    memory_ids: tuple[str, ...]
    confidence: float
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Insight:
    """A checked insight: a row of ``tables.REFLECTIONS`` once it is tabled. ``confidence`` in [0, 1]."""

    tenant: str
    subject: str
    insight_id: str
    week: str
    kind: str
    text: str
    language: str
    memory_ids: tuple[str, ...]
    own_turn_ids: tuple[str, ...]
    confidence: float
    valid_from: datetime
    valid_to: datetime
    due_at: datetime | None
    path: str
    owner: str
    bucket: int


@dataclass(frozen=True, slots=True)
class Task:
    """A follow-up: something to do by ``due_at``. Its id is the same in every week that proposes it."""

    task_id: str
    owner: Owner
    insight_id: str
    text: str
    language: str
    due_at: datetime
    memory_ids: tuple[str, ...]
    own_turn_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Reflection:
    """One person's week. ``path``: statistics or llm. ``cost``: of the language model, also when its reply was
    of no use. ``problems`` tell what was dropped or went wrong, without a word of any log."""

    owner: Owner
    week: date
    insights: tuple[Insight, ...]
    tasks: tuple[Task, ...]
    path: str
    cost: Usage = FREE
    problems: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Checked:
    """Insights by kind, then id; tasks by due time, then id; and why others were dropped."""

    insights: tuple[Insight, ...]
    tasks: tuple[Task, ...]
    problems: tuple[str, ...]


def age_order(memory: StoredMemory) -> tuple[datetime, str, str]:
    """Sort key of memories: oldest first, ties by id and version."""
    return memory.occurred_at, memory.memory_id, memory.version


def clean(text: str, limit: int = MAX_TEXT) -> str:
    """One line without control characters or what has no UTF-8 form, cut at ``limit`` characters."""
    whole = text.encode("utf-8", "ignore").decode("utf-8")
    line = " ".join("".join(c if c.isprintable() or c == _JOINER else " " for c in whole).split())
    return line if len(line) <= limit else line[: limit - 1] + "…"


def check(drafts: Iterable[Draft], scope: Scope, path: str) -> Checked:
    """The drafts that hold up: citations among the scope's memories, at least one of them, a text.

    Of two drafts of one kind about one subject the more confident stays. Order of drafts does not matter."""
    kept: dict[str, tuple[Insight, str]] = {}
    problems = []
    for draft in sorted(drafts, key=lambda d: (d.kind, d.subject, d.confidence, d.text)):
        asked = set(draft.memory_ids)
        cited = sorted((scope.memories[m] for m in asked & scope.memories.keys()), key=age_order)
        if len(cited) < len(asked):
            problems.append(f"{draft.kind}: dropped {len(asked) - len(cited)} citations of unknown memories")
        text = clean(draft.text)
        if not cited or not text:
            problems.append(f"{draft.kind}: dropped an insight without {'a text' if cited else 'citations'}")
            continue
        insight = _insight(draft, text, cited, scope, path)
        if insight.insight_id in kept:
            problems.append(f"{draft.kind}: dropped one of two insights about the same")
        kept[insight.insight_id] = insight, draft.subject
    insights = sorted((i for i, _ in kept.values()), key=lambda i: (KINDS.index(i.kind), i.insight_id))
    tasks = {t.task_id: t for t in (_task(i, subject, scope.owner) for i, subject in kept.values()) if t}
    return Checked(
        tuple(insights),
        tuple(sorted(tasks.values(), key=lambda t: (t.due_at, t.task_id))),
        tuple(sorted(problems)),
    )


def _insight(draft: Draft, text: str, cited: Sequence[StoredMemory], scope: Scope, path: str) -> Insight:
    until = scope.end + MONTH
    return Insight(
        tenant=scope.owner.tenant,
        subject=scope.owner.subject,
        insight_id=stable_hash("insight", scope.owner.key, scope.week.isoformat(), draft.kind, draft.subject),
        week=scope.week.isoformat(),
        kind=draft.kind,
        text=text,
        language=scope.language,
        memory_ids=tuple(m.memory_id for m in cited),
        own_turn_ids=tuple(unique(turn for m in cited for turn in m.source_turn_ids)),
        confidence=round(min(1.0, max(0.0, draft.confidence)), 4),
        valid_from=scope.end,
        valid_to=until if draft.due_at is None else max(until, draft.due_at + timedelta(days=1)),
        due_at=draft.due_at,
        path=path,
        owner=scope.owner.key,
        bucket=scope.bucket,
    )


def _task(insight: Insight, subject: str, owner: Owner) -> Task | None:
    if insight.kind != ACTION_ITEM or insight.due_at is None:
        return None
    return Task(
        task_id=stable_hash("task", owner.key, subject, iso(insight.due_at)),
        owner=owner,
        insight_id=insight.insight_id,
        text=insight.text,
        language=insight.language,
        due_at=insight.due_at,
        memory_ids=insight.memory_ids,
        own_turn_ids=insight.own_turn_ids,
    )


def to_table(reflections: Iterable[Reflection]) -> pa.Table:
    """All insights as rows of ``tables.REFLECTIONS``, by owner, week, kind and id."""
    insights = [i for r in reflections for i in r.insights]
    insights.sort(key=lambda i: (i.owner, i.week, KINDS.index(i.kind), i.insight_id))
    return pa.Table.from_pylist([asdict(i) for i in insights], schema=REFLECTIONS.schema)
