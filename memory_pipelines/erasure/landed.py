"""Landed rows of a person: their turns, what agents said to them alone, and broken rows that name them.

Belongs here: which landed rows are a person's. Does not belong here: tables that know their owner
(``derived``), or rows of others in which these turns are quoted (``others``).
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from memory_pipelines.erasure.naming import conversations, keys_named, line_keys, parsed
from memory_pipelines.erasure.places import Stores, Target, Trace, row_key, tally, turn_key
from memory_pipelines.model import Owner, Role, stable_hash, touched_days
from memory_pipelines.stores.base import Lake, Replace
from memory_pipelines.tables import CONFLICTING_VERSION, QUARANTINE, TURNS

DAYS_PER_WRITE = 16
"""Days of turns that one write holds in memory."""
SILENCE = timedelta(hours=6)
"""A conversation without sessions is cut there (step 1)."""

_COLUMNS = ("turn_id", "conversation_id", "session_id", "subject", "role", "occurred_at", "content_hash", "day", "text")

Row = dict[str, Any]
Where = list[tuple[str, str, object]]


def trace(lake: Lake, owner: Owner) -> Trace:
    """The landed turns that are the owner's: those that name them, and those that name nobody in a stream of a
    conversation in which nobody else spoke."""
    tenant = owner.tenant
    named: Where = [("tenant", "=", tenant), ("subject", "=", owner.subject)]
    names = set(lake.read(TURNS, columns=["conversation_id"], where=named)["conversation_id"].to_pylist())
    if not names:
        return Trace()
    near = lake.read(TURNS, columns=_COLUMNS, where=[("tenant", "=", tenant), ("conversation_id", "in", names)])
    theirs: list[Row] = []
    shared_days: set[str] = set()
    crowded: set[str] = set()
    for stream in _streams(near.to_pylist()):
        here = [row for row in stream if row["subject"] == owner.subject]
        others = {row["subject"] for row in stream if row["role"] == Role.USER} - {owner.subject, None}
        if others:
            crowded.add(stream[0]["conversation_id"])
        theirs += here
        if here and not others:
            theirs += [row for row in stream if row["subject"] is None]
        elif here:
            shared_days.update(row["day"] for row in here)
    rows = frozenset(row_key(tenant, row["turn_id"], row["content_hash"]) for row in theirs)
    days = frozenset(row["day"] for row in theirs)
    ids = {row["turn_id"] for row in theirs}
    twins = _twins(lake, tenant, ids, rows)
    shared_days.update(day for _, day in twins)
    return Trace(
        rows,
        frozenset(turn_key(tenant, turn) for turn in ids - {turn for turn, _ in twins}),
        frozenset(stable_hash(tenant, name) for name in names - crowded),
        days,
        days | touched_days(shared_days),
        frozenset(key for row in theirs for key in line_keys(row["text"])),
    )


def _streams(rows: Iterable[Row]) -> Iterator[list[Row]]:
    groups: dict[tuple[str, str | None], list[Row]] = defaultdict(list)
    for row in rows:
        groups[row["conversation_id"], row["session_id"]].append(row)
    for (_, session), members in groups.items():
        members.sort(key=lambda row: row["occurred_at"])
        start = 0
        for i in range(1, len(members)):
            if session is None and members[i]["occurred_at"] - members[i - 1]["occurred_at"] >= SILENCE:
                yield members[start:i]
                start = i
        yield members[start:]


def _twins(lake: Lake, tenant: str, ids: set[str], rows: frozenset[str]) -> set[tuple[str, str]]:
    """(turn id, day) of rows that stay and bear one of ``ids`` as well: sources may count from 1 again."""
    columns = ["turn_id", "content_hash", "day"]
    found = lake.read(TURNS, columns=columns, where=[("tenant", "=", tenant), ("turn_id", "in", ids)]).to_pylist()
    stay = (row for row in found if row_key(tenant, row["turn_id"], row["content_hash"]) not in rows)
    return {(row["turn_id"], row["day"]) for row in stay}


@dataclass(frozen=True)
class Turns:
    """The table ``turns``."""

    name: str = "lake.turns"
    found_by: str = "subject, and unnamed rows of conversations in which nobody else spoke"

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        held = stores.lake.read(TURNS, columns=["tenant", "subject"]).group_by(["tenant", "subject"]).aggregate([])
        owners = [Owner(row["tenant"], row["subject"]) for row in held.to_pylist() if row["subject"] is not None]
        named = {owner.key: owner for owner in owners}
        result = {}
        for target in targets:
            rows = _unnamed(stores.lake, target)
            if target.key in named:
                rows += _named(stores.lake, named[target.key], target)
            if rows:
                result[target.key] = rows
        return result

    def delete(self, stores: Stores, target: Target) -> None:
        tenant, lake = target.owner.tenant, stores.lake
        own = lake.read(TURNS, columns=["day"], where=[("tenant", "=", tenant), ("subject", "=", target.owner.subject)])
        for days in _batches(sorted(target.trace.days.union(own["day"].to_pylist()))):
            columns = ["turn_id", "subject", "content_hash"]
            rows = lake.read(TURNS, columns=columns, where=[("tenant", "=", tenant), ("day", "in", days)])
            gone = [
                (row["turn_id"], row["content_hash"])
                for row in rows.to_pylist()
                if row["subject"] == target.owner.subject
                or row_key(tenant, row["turn_id"], row["content_hash"]) in target.trace.rows
            ]
            if gone:
                turns, contents = zip(*gone, strict=True)
                replaced = [Replace("day", tuple(days)), Replace("tenant", (tenant,))]
                replaced += [Replace("turn_id", turns), Replace("content_hash", contents)]
                lake.write(TURNS, TURNS.schema.empty_table(), replaced)


def _named(lake: Lake, owner: Owner, target: Target) -> int:
    where: Where = [("tenant", "=", owner.tenant), ("subject", "=", owner.subject)]
    if target.until is not None:
        where.append(("occurred_at", "<", target.until))
    return int(lake.read(TURNS, columns=["turn_id"], where=where).num_rows)


def _unnamed(lake: Lake, target: Target) -> int:
    """Rows of the trace that name somebody else or nobody."""
    tenant, rows = target.owner.tenant, target.trace.rows
    if not rows:
        return 0
    where: Where = [("tenant", "=", tenant), ("day", "in", target.trace.days)]
    found = lake.read(TURNS, columns=["turn_id", "content_hash", "subject"], where=where).to_pylist()
    unnamed = (row for row in found if row["subject"] != target.owner.subject)
    return sum(row_key(tenant, row["turn_id"], row["content_hash"]) in rows for row in unnamed)


def _batches(days: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(days), DAYS_PER_WRITE):
        yield days[start : start + DAYS_PER_WRITE]


@dataclass(frozen=True)
class Quarantine:
    """The table ``quarantine``: rows as read, so whom they name is read from them."""

    name: str = "lake.quarantine"
    found_by: str = "ids in the raw row, its conversation, or the turn that lost against another version"

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        rows = _broken_rows(stores.lake)
        return tally(target.key for row in rows for target in targets if _is_of(row, target))

    def delete(self, stores: Stores, target: Target) -> None:
        gone = [row for row in _broken_rows(stores.lake) if _is_of(row, target)]
        for tenant in sorted({row["tenant"] for row in gone}):
            raws = tuple(sorted({row["raw"] for row in gone if row["tenant"] == tenant}))
            replaced = [Replace("tenant", (tenant,)), Replace("raw", raws)]
            stores.lake.write(QUARANTINE, QUARANTINE.schema.empty_table(), replaced)


def _broken_rows(lake: Lake) -> list[Row]:
    """Every quarantined row with the owner keys that it names."""
    rows: list[Row] = lake.read(QUARANTINE, columns=["tenant", "reason", "raw", "day"]).to_pylist()
    for row in rows:
        row["keys"] = frozenset() if row["reason"] == CONFLICTING_VERSION else keys_named(row["raw"], row["tenant"])
    return rows


def _is_of(row: Row, target: Target) -> bool:
    return target.counts(row["day"]) and broken_row_names(row, target)


def broken_row_names(row: Row, target: Target) -> bool:
    """Whether a quarantined row (with its ``keys``) is the target's."""
    tenant, raw = target.owner.tenant, row["raw"]
    if row["reason"] == CONFLICTING_VERSION:
        lost = parsed(raw)
        return row["tenant"] == tenant and row_key(tenant, lost["turn_id"], lost["content_hash"]) in target.trace.rows
    if target.key in row["keys"]:
        return True
    if row["tenant"] == tenant:
        return any(stable_hash(tenant, name) in target.trace.conversations for name in conversations(raw))
    # a row that cannot be read landed under the default tenant, whosever it is
    return tenant in raw and not isinstance(parsed(raw), dict) and target.key in keys_named(raw, tenant)
