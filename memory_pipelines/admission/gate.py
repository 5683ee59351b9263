"""The gate: candidates to decisions and memories, for all subjects of a table at once.

Belongs here: weights, thresholds, hard rules, promotion, permanence. Does not belong here: what the dimensions are
made of, what the rows of the result hold (``rows``), and anything that happens to a memory later.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import pyarrow as pa

from memory_pipelines import tables
from memory_pipelines.admission.dimensions import consequence, persistence, personalisation, structure, worth_of
from memory_pipelines.admission.extract import Candidate, Row, by_owner, candidates
from memory_pipelines.admission.judged import DISCARD, LONG, SHORT, Judged
from memory_pipelines.admission.ontology import Profile, predicate
from memory_pipelines.admission.ontology import profile as load_profile
from memory_pipelines.admission.rows import Columns, decision_row, memory_row, routing_of, session_ends
from memory_pipelines.admission.snapshot import Snapshot
from memory_pipelines.admission.validity import PROMOTION_MENTIONS, frequent
from memory_pipelines.model import WINDOW, Owner, Permanence, stable_hash, utc

SURE = 0.6
HIGH_IMPACT = 0.7


@dataclass(frozen=True)
class Admitted:
    """``decisions``: every candidate (``tables.DECISIONS``); ``memories``: those kept (``tables.MEMORIES``).

    Both sorted by (tenant, subject, occurred_at, memory_id)."""

    decisions: pa.Table
    memories: pa.Table


def arm_of(owner: Owner, profile: Profile) -> str:
    """A or B by a stable hash of the subject, B for the profile's share of subjects."""
    point = int(stable_hash("admission-arm", owner.tenant, owner.subject)[:8], 16) / 2**32
    return "B" if point < profile.arm_b_share else "A"


def _hard_rule(candidate: Candidate, profile: Profile, as_of: datetime) -> tuple[str, str] | None:
    """(rule, outcome) of the first hard rule that applies.

    Danger outranks a label; "never" outranks impact, since text that says nothing cannot have caused it.
    Labels of a whole slice do not bind the facts found in it by rule."""
    if candidate.claim:
        sure = candidate.claim.fact.strength >= SURE
        return ("health", LONG) if candidate.category == "health" and sure else None
    row, reading = candidate.row, candidate.reading
    if profile.small_talk and reading.small_talk:
        return "small_talk", DISCARD
    if reading.secret:
        return "secret", DISCARD
    if reading.danger:
        return "health", LONG
    worth = worth_of(reading)
    if candidate.category == "transient_reasoning" and worth < 1:
        return "transient_reasoning", DISCARD
    if candidate.category == "chit_chat" and not candidate.entities and worth < 0.5:
        return "chit_chat", DISCARD
    if row["impact_final"] and (row["decision_impact"] or 0.0) > HIGH_IMPACT:
        return "impact", LONG
    if candidate.category == "inquiry" and worth == 0.5 and (reading.asks or row["intent"] != "out_of_scope"):
        if as_of < row["occurred_at"] + WINDOW:
            return "open_inquiry", SHORT
        if (row["feedback"] or "none") == "none":
            return "closed_inquiry", DISCARD
    return None


def judge(candidate: Candidate, profile: Profile, snapshot: Snapshot, as_of: datetime, arm: str) -> Judged:
    """The decision on one candidate by itself (promotion by repetition comes after)."""
    p, s, z = persistence(candidate), structure(candidate), personalisation(candidate, snapshot)
    of_p, of_s, of_z = profile.weights
    score = round(of_p * p.value + of_s * s.value + of_z * z.value, 4)
    long_from = profile.arm_b_long if arm == "B" else profile.long
    if decided := _hard_rule(candidate, profile, as_of):
        rule, outcome = decided
    else:
        rule = "score"
        outcome = LONG if score >= long_from else SHORT if score >= profile.short else DISCARD
    parts = p.parts | s.parts | z.parts
    return Judged(candidate, p.value, s.value, z.value, parts, score, arm, long_from, rule, outcome)


def _windows(rows: Sequence[Row]) -> list[list[Row]]:
    """Disjoint week-long runs of at least three rows; ``rows`` in time order."""
    found, i = [], 0
    while i <= len(rows) - PROMOTION_MENTIONS:
        until = rows[i]["occurred_at"] + WINDOW
        run = [r for r in rows[i : i + PROMOTION_MENTIONS] if r["occurred_at"] <= until]
        if len(run) < PROMOTION_MENTIONS:
            i += 1
            continue
        end = i + PROMOTION_MENTIONS
        while end < len(rows) and rows[end]["occurred_at"] <= until:
            end += 1
        found.append(list(rows[i:end]))
        i = end
    return found


def _promotes(judged: Judged) -> bool:
    return judged.outcome == SHORT or judged.rule == "closed_inquiry"


def promote(judged: list[Judged]) -> list[Judged]:
    """Short-term claims that came up three times within a week become long-term.

    A fact promotes itself. Of episodes with the same intent about the same entity the earliest of the week
    is promoted and cites the others. ``judged`` are all of one owner, episodes in time order."""
    groups: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for item in judged:
        candidate = item.candidate
        if candidate.claim is None and _promotes(item) and candidate.row["intent"]:
            dates = {e["canonical"] for e in candidate.row["entities"] or [] if e["kind"] == "date"}
            for entity in candidate.entities:
                if entity not in dates:
                    groups[candidate.row["intent"], entity].append(candidate.row)
    cited: dict[str, dict[str, Row]] = defaultdict(dict)
    for key in sorted(groups):
        for run in _windows(groups[key]):
            cited[run[0]["slice_id"]].update((row["slice_id"], row) for row in run)
    result = []
    for item in judged:
        candidate = item.candidate
        if candidate.claim is not None:
            repeated = item.outcome == SHORT and frequent([row["occurred_at"] for row in candidate.rows])
            result.append(replace(item, rule="promoted", outcome=LONG) if repeated else item)
        elif found := cited.get(candidate.row["slice_id"]):
            rows = tuple(sorted(found.values(), key=lambda r: (r["occurred_at"], r["slice_id"])))
            result.append(replace(item, candidate=replace(candidate, rows=rows), rule="promoted", outcome=LONG))
        else:
            result.append(item)
    return result


def permanence_of(judged: Judged) -> Permanence:
    """``permanent`` for identity, health, family, preferences; ``task`` for plans and tasks; else the term."""
    candidate = judged.candidate
    kept = Permanence(predicate(candidate.predicate).permanence) if candidate.claim else Permanence.LONG
    if candidate.category == "task" and not consequence(candidate.row["feedback"]):
        kept = Permanence.TASK
    if judged.outcome == LONG or kept == Permanence.TASK:
        return kept
    return Permanence.SHORT


def admit(
    slices: pa.Table, snapshot: Snapshot, *, scenario: str, as_of: datetime, profile: Profile | None = None
) -> Admitted:
    """Decide what of the event slices (``tables.SLICES``) is remembered, as known at ``as_of`` (aware).

    A pure function per (tenant, subject): neither the order of rows nor other subjects in the table matter,
    and slices after ``as_of`` take no part. ``profile`` overrides the scenario's own (an experiment's share).
    Raises SettingError for an unknown scenario, IntegrityError for a slice without an own turn."""
    as_of = utc(as_of)
    profile = profile or load_profile(scenario)
    decisions, memories = Columns(tables.DECISIONS.schema), Columns(tables.MEMORIES.schema)
    for owner, rows in by_owner(slices, as_of):
        ends, arm = session_ends(rows), arm_of(owner, profile)
        judged = promote([judge(c, profile, snapshot, as_of, arm) for c in candidates(owner, rows)])
        for item in sorted(judged, key=lambda j: (j.candidate.row["occurred_at"], j.candidate.memory_id)):
            routing, kept = routing_of(item, profile), permanence_of(item)
            decisions.add(decision_row(item, kept, routing, profile, snapshot.version))
            if item.outcome != DISCARD:
                memories.add(memory_row(item, kept, routing, profile, ends))
    return Admitted(decisions.table(), memories.table())
