"""From the slices of one subject to candidates for memory: one episode each, and every claim they state.

Belongs here: grouping by subject, evidence, entities, what a text is made of (small talk, danger, steps). Does not
belong here: scores and decisions (``dimensions``, ``gate``).
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache, cached_property
from itertools import groupby
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.admission.clauses import Clause, clauses
from memory_pipelines.admission.corrections import Revision, revisions
from memory_pipelines.admission.fact import Fact
from memory_pipelines.admission.facts import extract_facts
from memory_pipelines.admission.ontology import alternatives, cue, cues, has_cue, predicate
from memory_pipelines.admission.summary import summary_language
from memory_pipelines.admission.validity import Claim, Mention, fold
from memory_pipelines.admission.workflow import steps_of
from memory_pipelines.admission.worth.model import Worth, worth_of_text
from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import MemoryType, Owner, memory_id, unique

SMALL_TALK_CHARACTERS = 80

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reading:
    """What the text of one slice is made of. ``coverage``: share of it that facts already keep, in [0, 1]."""

    facts: tuple[Fact, ...]
    language: str
    coverage: float
    small_talk: bool
    danger: bool
    asks: bool
    worth: Worth
    steps: tuple[str, ...] = ()
    unsure: bool = False
    secret: bool = False
    revisions: tuple[Revision, ...] = ()


@dataclass(frozen=True)
class Candidate:
    """Something that may be remembered. ``rows`` are the slices that state it, earliest first;
    ``claim`` is None for an episode; ``reading`` is that of the first slice; ``entities`` are canonical ids.

    What is asked for again and again is worked out once."""

    owner: Owner
    kind: MemoryType
    rows: tuple[Row, ...]
    reading: Reading
    entities: tuple[str, ...]
    claim: Claim | None = None

    @cached_property
    def row(self) -> Row:
        return self.rows[0]

    @cached_property
    def predicate(self) -> str:
        return self.claim.fact.predicate if self.claim else ""

    @property
    def value(self) -> str:
        return self.claim.fact.value if self.claim else ""

    @cached_property
    def category(self) -> str:
        """The ontology's category of a fact, the label's of an episode."""
        if self.claim:
            return predicate(self.predicate).category
        return self.row["category"] or ""

    @property
    def language(self) -> str:
        return self.claim.fact.language if self.claim else self.reading.language

    @cached_property
    def memory_id(self) -> str:
        return memory_id(self.owner, self.kind, self.row["own_turn_ids"][0], self.predicate, self.value)


@cache
def _small_talk() -> tuple[re.Pattern[str], re.Pattern[str]]:
    def compiled(words: list[str]) -> re.Pattern[str]:
        latin = [re.escape(w) for w in words if w.isascii()]
        han = [re.escape(w) for w in words if not w.isascii()]
        return re.compile(rf"\b(?:{alternatives(latin)})\b|{alternatives(han)}", re.I)

    return compiled(cues()["small_talk"]), compiled(cues()["small_talk_core"])


_SAYS, _WORD = re.compile(r"[^\W_]"), re.compile(r"\w")


def is_small_talk(text: str) -> bool:
    """Whether a text is nothing but greetings, thanks and acknowledgements (or signs), in either language."""
    if len(text) > SMALL_TALK_CHARACTERS:
        return False
    words, core = _small_talk()
    left = words.sub("", text.replace("’", "'"))
    return _SAYS.search(left) is None and (core.search(text) is not None or _WORD.search(text) is None)


_DENIED = re.compile(r"没有?|不会?|\b(?:not|no|never|without)\b", re.I)


def _danger(said: Sequence[Clause], text: str, facts: Iterable[Fact]) -> bool:
    """Whether a text tells of harm that no health fact keeps. Errs towards keeping."""
    if any(predicate(f.predicate).category == "health" for f in facts):
        return False
    if not has_cue("safety", text):
        return False
    for clause in said:
        found = cue(clause.language, "safety").search(clause.text)
        if found and clause.asserted and not _DENIED.search(clause.text[: found.start()]):
            return True
    return False


_NOTHING = Worth(0.0, 0.0, 1.0)


def _unsure(text: str, said: Sequence[Clause]) -> bool:
    """Whether a text only supposes, or doubts: it may matter for days, not for long."""
    if said and all(clause.supposed for clause in said):
        return True
    return has_cue("doubt", text)


def read(row: Row, before: str = "", earlier: Sequence[Fact] = ()) -> Reading:
    """The reading of one slice's own text; ``before`` is what the other side said last before it, ``earlier`` what its
    own side stated last in the same session."""
    text: str = row["text"] or ""
    if is_small_talk(text):
        return Reading((), summary_language(text, row["language"] or ""), 0.0, True, False, False, _NOTHING)
    places = {e["surface"] for e in row["entities"] or [] if e["kind"] == "place" and e["surface"]}
    said = list(clauses(text))
    facts = tuple(
        extract_facts(
            *(text, row["occurred_at"], row["language"] or ""), places=places, said=said, before=before, earlier=earlier
        )
    )
    covered = sum(end - start for start, end in {(f.start, f.end) for f in facts})
    asks = (
        "?" in text or "？" in text or any(cue(c.language, "question").search(c.text) for c in said if not c.asserted)
    )
    return Reading(
        facts=facts,
        language=summary_language(text, row["language"] or ""),
        coverage=round(min(1.0, covered / max(1, len(text.strip()))), 4),
        small_talk=False,
        danger=_danger(said, text, facts),
        asks=asks,
        worth=worth_of_text(text),
        steps=steps_of(text),
        unsure=not facts and _unsure(text, said),
        secret=not facts and has_cue("secret", text),
        revisions=revisions(said, before),
    )


COLUMNS = (
    *("tenant", "subject", "owner", "bucket", "slice_id", "session_id", "own_turn_ids", "source_turn_ids"),
    *("occurred_at", "ended_at", "text", "reply_text", "language", "entities", "intent", "action", "category"),
    *("feedback", "reason", "emotion", "emotion_score", "decision_impact", "impact_final", "model_set"),
)
"""What admission reads of ``tables.SLICES``."""


def by_owner(slices: pa.Table, as_of: datetime) -> Iterator[tuple[Owner, list[Row]]]:
    """The rows that had occurred by ``as_of`` of each owner, in (time, id) order; owners in order.

    Raises IntegrityError for a slice without an own turn, which no memory could be named after."""
    chosen = slices.select(COLUMNS)
    nameless = pc.equal(pc.coalesce(pc.list_value_length(chosen["own_turn_ids"]), 0), 0)
    for name in chosen["slice_id"].filter(nameless).to_pylist():
        raise IntegrityError(f"slice {name} has no turn of its subject")
    order = [(name, "ascending") for name in ("tenant", "subject", "occurred_at", "slice_id")]
    chosen = chosen.filter(pc.less_equal(chosen["occurred_at"], as_of)).sort_by(order)
    start = 0
    for key, run in groupby(zip(chosen["tenant"].to_pylist(), chosen["subject"].to_pylist(), strict=True)):
        size = sum(1 for _ in run)
        yield Owner(*key), chosen.slice(start, size).to_pylist()
        start += size


def canonical_entities(row: Row) -> tuple[str, ...]:
    return tuple(unique(e["canonical"] for e in row["entities"] or [] if e["canonical"]))


def _fact_entities(claim: Claim) -> tuple[str, ...]:
    """The slices' entities that a claim's object names."""
    found: set[str] = set()
    for mention in claim.mentions:
        said = mention.fact.object.casefold()
        for entity in mention.row["entities"] or []:
            surface = (entity["surface"] or "").casefold()
            if surface and entity["canonical"] and (surface in said or (len(said) > 1 and said in surface)):
                found.add(entity["canonical"])
    return tuple(sorted(found))


REPLY_REACH = timedelta(hours=24)


def _before(rows: Sequence[Row]) -> Iterator[str]:
    """What the other side said last before each row of an owner: of the slice before in its session, at most a day ago;
    where there is none, what its own replies begin with, since they may have opened it."""
    last: dict[str | None, Row] = {}
    for row in rows:
        earlier = last.get(row["session_id"])
        near = earlier and row["occurred_at"] - (earlier["ended_at"] or earlier["occurred_at"]) <= REPLY_REACH
        lines = ((earlier if near and earlier else row)["reply_text"] or "").splitlines()
        yield (lines[-1] if near else lines[0]) if lines else ""
        last[row["session_id"]] = row


def candidates(owner: Owner, rows: list[Row]) -> list[Candidate]:
    """All candidates of one owner: an episode or workflow per slice, then all claims. ``rows`` as of ``by_owner``."""
    readings: dict[str, Reading] = {}
    stated_last: dict[str | None, tuple[Fact, ...]] = {}
    for row, before in zip(rows, _before(rows), strict=True):
        reading = readings[row["slice_id"]] = read(row, before, stated_last.get(row["session_id"], ()))
        if reading.facts:
            stated_last[row["session_id"]] = reading.facts
    made = []
    for row in rows:
        reading = readings[row["slice_id"]]
        kind = MemoryType.PROCEDURAL if reading.steps else MemoryType.EPISODIC
        made.append(Candidate(owner, kind, (row,), reading, canonical_entities(row)))
    mentions = [Mention(fact, row) for row in rows for fact in readings[row["slice_id"]].facts]
    revised = [(revision, row) for row in rows for revision in readings[row["slice_id"]].revisions]
    for claim in fold(mentions, revised):
        stated = tuple(claim.rows)
        first = readings[stated[0]["slice_id"]]
        made.append(Candidate(owner, MemoryType.SEMANTIC, stated, first, _fact_entities(claim), claim))
    return made
