"""Tombstones: what keeps an erased person from coming back with an old file.

Belongs here: reading tombstones, their copies in the cold store, and dropping what they forbid from rows that are
about to be landed.
Does not belong here: writing them (``execute``). Events after the erasure are allowed.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa

from memory_pipelines.erasure.landed import SILENCE
from memory_pipelines.erasure.naming import conversations, keys_named
from memory_pipelines.model import Owner, Role, canonical_json, day_of, iso
from memory_pipelines.stores import schema
from memory_pipelines.stores.base import ColdStore
from memory_pipelines.stores.statements import translated

Row = Mapping[str, Any]
Rows = dict[str, list[dict[str, Any]]]


def load_tombstones(engine: sa.Engine) -> dict[str, datetime]:
    """Owner key → the instant before which nothing of theirs may be landed."""
    table = schema.tombstones
    with translated(), engine.begin() as connection:
        return {row.owner: row.before for row in connection.execute(sa.select(table.c.owner, table.c.before))}


@dataclass(frozen=True)
class Tombstone:
    """Nothing of the owner from before the instant may come back; ``epoch`` is the last one that readers knew."""

    before: datetime
    epoch: int

    def later(self, other: "Tombstone | None") -> "Tombstone":
        """Both in one."""
        return self if other is None else Tombstone(max(self.before, other.before), max(self.epoch, other.epoch))


KEPT = "tombstones/"
"""Prefix of the cold store's copies: they outlive the database, so that a restore finds who was erased since."""


def keep_tombstone(cold: ColdStore, owner: str, stone: Tombstone) -> None:
    """Leave a tombstone in the cold store; of two of an owner's, what is later counts."""
    kept = stone.later(_read(cold, owner))
    cold.put(f"{KEPT}{owner}.json", canonical_json({"before": iso(kept.before), "epoch": kept.epoch}).encode())


def kept_tombstones(cold: ColdStore) -> dict[str, Tombstone]:
    """Owner key → tombstone, of those in the cold store."""
    owners = (key.removeprefix(KEPT).removesuffix(".json") for key in cold.keys(KEPT))
    return {owner: stone for owner in sorted(owners) if (stone := _read(cold, owner)) is not None}


def all_tombstones(engine: sa.Engine) -> dict[str, Tombstone]:
    """Owner key → tombstone, of those in the database."""
    table = schema.tombstones
    with translated(), engine.begin() as connection:
        return {row.owner: Tombstone(row.before, row.epoch) for row in connection.execute(sa.select(table))}


def _read(cold: ColdStore, owner: str) -> Tombstone | None:
    content = cold.get(f"{KEPT}{owner}.json")
    if content is None:
        return None
    value = json.loads(content)
    return Tombstone(datetime.fromisoformat(value["before"]), value["epoch"])


@dataclass
class _Stream:
    """A stretch of a conversation: who spoke in it so far. ``silent``: until when erased persons may not be heard."""

    last: datetime
    silent: datetime | None = None
    others: bool = False

    def hides(self, at: datetime) -> bool:
        return self.silent is not None and not self.others and at < self.silent


class Forgotten:
    """Drops, from one file's rows chunk by chunk, what the tombstones forbid.

    A turn or event of an erased person before the erasure; a turn that names nobody in a stream of a conversation
    in which none but erased persons spoke so far in this file; a broken row that names an erased person, or such
    a conversation, and is not of a later day. One instance a file, with its chunks in order.
    """

    def __init__(self, tombstones: Mapping[str, datetime]) -> None:
        self._tombstones = tombstones
        self._before = cache(lambda tenant, subject: tombstones.get(Owner(tenant, subject).key))
        self._streams: dict[tuple[str, str, str | None], _Stream] = {}
        self._named: dict[tuple[str, str], set[str]] = {}

    def __call__(self, rows: Rows) -> tuple[Rows, int]:
        """Rows by kind (``turn``, ``behaviour``, ``quarantine``); returns those that may land, and how many may not."""
        streams = self._listen(rows["turn"])
        turns = zip(rows["turn"], streams, strict=True)
        kept = {
            "turn": [row for row, stream in turns if not self._forbids_turn(row, stream)],
            "behaviour": [row for row in rows["behaviour"] if not self._forbids(row)],
            "quarantine": [row for row in rows["quarantine"] if not self._forbids_broken(row)],
        }
        return kept, sum(len(rows[kind]) - len(kept[kind]) for kind in kept)

    def _listen(self, turns: Sequence[Row]) -> list[_Stream]:
        """The stream of each turn; it may go on from the chunk before."""
        streams: dict[int, _Stream] = {}
        for i in sorted(range(len(turns)), key=lambda i: turns[i]["occurred_at"]):
            row = turns[i]
            talk = (row["tenant"], row["conversation_id"], row["session_id"])
            stream = self._streams.get(talk)
            if stream is None or (talk[2] is None and abs(row["occurred_at"] - stream.last) >= SILENCE):
                stream = self._streams[talk] = _Stream(row["occurred_at"])
            stream.last = max(stream.last, row["occurred_at"])
            streams[i] = stream
            if row["subject"] is not None and row["role"] == Role.USER:
                before = self._before(row["tenant"], row["subject"])
                stream.others |= before is None
                if before is not None:
                    stream.silent = max(before, stream.silent or before)
                for name in talk[1:]:
                    if name is not None:
                        self._named.setdefault((row["tenant"], name), set()).add(row["subject"])
        return [streams[i] for i in range(len(turns))]

    def _forbids_turn(self, row: Row, stream: _Stream) -> bool:
        return stream.hides(row["occurred_at"]) if row["subject"] is None else self._forbids(row)

    def _forbids(self, row: Row) -> bool:
        before = self._before(row["tenant"], row["subject"])
        return before is not None and row["occurred_at"] < before

    def _forbids_broken(self, row: Row) -> bool:
        tenant, raw = row["tenant"], row["raw"]
        times = [self._tombstones[key] for key in keys_named(raw, tenant) if key in self._tombstones]
        for name in conversations(raw):
            speakers = [self._before(tenant, subject) for subject in self._named.get((tenant, name), ())]
            if None not in speakers:
                times += [before for before in speakers if before is not None]
        return bool(times) and (row["day"] is None or row["day"] <= day_of(max(times)))
