"""The gate: candidates to decisions and memories, for all subjects of a table at once.

Belongs here: weights, thresholds, hard rules, promotion, permanence, the two result tables. Does not
belong here: what the dimensions are made of, and anything that happens to a memory later.
"""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any

import pyarrow as pa

from memory_pipelines import tables
from memory_pipelines.admission.dimensions import Snapshot, consequence, persistence, personalisation, structure
from memory_pipelines.admission.extract import Candidate, Row, by_owner, candidates
from memory_pipelines.admission.ontology import FAMILY, Profile, predicate
from memory_pipelines.admission.ontology import profile as load_profile
from memory_pipelines.admission.routing import Routing, route
from memory_pipelines.admission.summary import episode_summary, fact_summary
from memory_pipelines.admission.validity import PROMOTION_MENTIONS, frequent
from memory_pipelines.model import WINDOW, Owner, Permanence, canonical_json, stable_hash, unique, utc

SHORT_TERM = timedelta(days=9)
SURE = 0.6
HIGH_IMPACT = 0.7
LONG, SHORT, DISCARD = "long", "short", "discard"


@dataclass(frozen=True)
class Admitted:
    """``decisions``: every candidate (``tables.DECISIONS``); ``memories``: those kept (``tables.MEMORIES``).

    Both sorted by (tenant, subject, occurred_at, memory_id)."""

    decisions: pa.Table
    memories: pa.Table


@dataclass(frozen=True, slots=True)
class Judged:
    """A candidate with its dimensions, score, the rule that decided and the outcome."""

    candidate: Candidate
    persistence: float
    structure: float
    personalisation: float
    score: float
    arm: str
    rule: str
    outcome: str


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
    if reading.danger:
        return "health", LONG
    if candidate.category == "transient_reasoning":
        return "transient_reasoning", DISCARD
    if candidate.category == "chit_chat" and not candidate.entities:
        return "chit_chat", DISCARD
    if row["impact_final"] and (row["decision_impact"] or 0.0) > HIGH_IMPACT:
        return "impact", LONG
    if candidate.category == "inquiry" and (reading.asks or row["intent"] != "out_of_scope"):
        if as_of < row["occurred_at"] + WINDOW:
            return "open_inquiry", SHORT
        if (row["feedback"] or "none") == "none":
            return "closed_inquiry", DISCARD
    return None


def judge(candidate: Candidate, profile: Profile, snapshot: Snapshot, as_of: datetime) -> Judged:
    """The decision on one candidate by itself (promotion by repetition comes after)."""
    p, s, z = (
        persistence(candidate, profile),
        structure(candidate, profile),
        personalisation(candidate, profile, snapshot),
    )
    weighted = zip(profile.weights, (p.value, s.value, z.value), strict=True)
    score = round(sum(weight * value for weight, value in weighted), 4)
    arm = arm_of(candidate.owner, profile)
    if decided := _hard_rule(candidate, profile, as_of):
        rule, outcome = decided
    else:
        rule = "score"
        long = profile.arm_b_long if arm == "B" else profile.long
        outcome = LONG if score >= long else SHORT if score >= profile.short else DISCARD
    return Judged(candidate, p.value, s.value, z.value, score, arm, rule, outcome)


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


def _trust(candidate: Candidate) -> float:
    """How far to believe it: what people say of themselves .8, of relatives .7; + .05 per repetition to .95;
    an episode is a record of what was said, .85."""
    if candidate.claim is None:
        return 0.85
    base = 0.7 if candidate.predicate.startswith(FAMILY) else 0.8
    return round(min(0.95, base + 0.05 * (len(candidate.rows) - 1)), 4)


def _confidence(candidate: Candidate) -> float:
    """That the reading is right. Facts: 1 − Π (1 − strength) over slices, .99 at most; episodes by their labels."""
    row = candidate.row
    if candidate.claim is None:
        return round(0.6 + 0.15 * (row["intent"] not in (None, "out_of_scope")) + 0.15 * bool(candidate.entities), 4)
    wrong = 1.0
    for strength in sorted({m.row["slice_id"]: m.fact.strength for m in candidate.claim.mentions}.values()):
        wrong *= 1 - strength
    return round(min(0.99, 1 - wrong), 4)


def _structured(candidate: Candidate) -> dict[str, Any]:
    row = candidate.row
    if candidate.claim is None:
        named = {
            "category": candidate.category,
            "intent": row["intent"],
            "action": row["action"],
            "reason": row["reason"],
        }
        told = {"feedback": row["feedback"], "emotion": row["emotion"], "mentions": len(candidate.rows)}
        return {k: v for k, v in (named | told).items() if v not in (None, "", "none")}
    fact = candidate.claim.fact
    parts = fact.predicate.split(".")
    evidence = [
        {"slice_id": m.row["slice_id"], "start": m.fact.start, "end": m.fact.end} for m in candidate.claim.mentions
    ]
    triple = {
        "subject": parts[1] if len(parts) > 1 else "self",
        "predicate": fact.base,
        "object": fact.object,
        "value": fact.value,
        "category": candidate.category,
        "evidence": evidence,
    }
    return triple | ({"date": fact.day} if fact.day else {})


def _routing(judged: Judged, profile: Profile) -> Routing:
    candidate, row, claim = judged.candidate, judged.candidate.row, judged.candidate.claim
    followed = 0.0 if claim else consequence(row["feedback"])
    text = fact_summary(claim.fact, profile, None) if claim else row["text"] or ""
    return route(candidate.kind, candidate.category, judged.structure, len(candidate.entities), followed, text)


def _decision_row(judged: Judged, routing: Routing, profile: Profile) -> Row:
    candidate, row = judged.candidate, judged.candidate.row
    return {
        "tenant": candidate.owner.tenant,
        "subject": candidate.owner.subject,
        "memory_id": candidate.memory_id,
        "slice_id": row["slice_id"],
        "memory_type": candidate.kind.value,
        "permanence": permanence_of(judged).value,
        "persistence": judged.persistence,
        "structure": judged.structure,
        "personalisation": judged.personalisation,
        "score": judged.score,
        "arm": judged.arm,
        "rule": judged.rule,
        "outcome": judged.outcome,
        "stores": list(routing.stores) if judged.outcome != DISCARD else [],
        "fit": canonical_json(routing.fit),
        "scenario": profile.label,
        "model_set": row["model_set"],
        "occurred_at": row["occurred_at"],
        "owner": row["owner"],
        "bucket": row["bucket"],
    }


def _memory_row(judged: Judged, routing: Routing, profile: Profile) -> Row:
    candidate, row, claim = judged.candidate, judged.candidate.row, judged.candidate.claim
    impacts = [r["decision_impact"] for r in candidate.rows if r["decision_impact"] is not None]
    text: str = row["text"] or ""
    if claim:
        start, end = claim.fact.sentence
        text = text[start:end].strip()
        summary = fact_summary(claim.fact, profile, claim.valid_to)
    else:
        summary = episode_summary(row, profile, candidate.language)
    last = max(r["ended_at"] or r["occurred_at"] for r in candidate.rows)
    return {
        "tenant": candidate.owner.tenant,
        "subject": candidate.owner.subject,
        "memory_id": candidate.memory_id,
        "memory_type": candidate.kind.value,
        "permanence": permanence_of(judged).value,
        "term": judged.outcome,
        "summary": summary,
        "text": text,
        "language": candidate.language,
        "predicate": candidate.predicate,
        "value": candidate.value,
        "structured": canonical_json(_structured(candidate)),
        "confidence": _confidence(candidate),
        "trust": _trust(candidate),
        "score": judged.score,
        "slice_ids": [r["slice_id"] for r in candidate.rows],
        "own_turn_ids": unique(turn for r in candidate.rows for turn in r["own_turn_ids"]),
        "source_turn_ids": unique(turn for r in candidate.rows for turn in r["source_turn_ids"] or []),
        "entities": list(candidate.entities),
        "intent": row["intent"],
        "decision_impact": max(impacts) if impacts else None,
        "occurred_at": row["occurred_at"],
        "valid_from": claim.valid_from if claim else None,
        "valid_to": claim.valid_to if claim else None,
        "expires_at": last + SHORT_TERM if judged.outcome == SHORT else None,
        "stores": list(routing.stores),
        "path": "rules" if claim else "rules+small_model",
        "model_set": row["model_set"],
        "owner": row["owner"],
        "bucket": row["bucket"],
    }


def admit(
    slices: pa.Table, snapshot: Snapshot, *, scenario: str, as_of: datetime, profile: Profile | None = None
) -> Admitted:
    """Decide what of the event slices (``tables.SLICES``) is remembered, as known at ``as_of`` (aware).

    A pure function per (tenant, subject): neither the order of rows nor other subjects in the table matter,
    and slices after ``as_of`` take no part. ``profile`` overrides the scenario's own (an experiment's share).
    Raises SettingError for an unknown scenario, IntegrityError for a slice without an own turn."""
    as_of = utc(as_of)
    profile = profile or load_profile(scenario)
    decisions: list[Row] = []
    memories: list[Row] = []
    for owner, rows in by_owner(slices, as_of):
        judged = promote([judge(c, profile, snapshot, as_of) for c in candidates(owner, rows)])
        for item in sorted(judged, key=lambda j: (j.candidate.row["occurred_at"], j.candidate.memory_id)):
            routing = _routing(item, profile)
            decisions.append(_decision_row(item, routing, profile))
            if item.outcome != DISCARD:
                memories.append(_memory_row(item, routing, profile))
    return Admitted(
        pa.Table.from_pylist(decisions, schema=tables.DECISIONS.schema),
        pa.Table.from_pylist(memories, schema=tables.MEMORIES.schema),
    )
