"""What rows of others hold of a person with whom they spoke: turn ids, and the text of replies.

Belongs here: taking just that out of them. It is gone at once; the days and owners are then made anew by
their jobs, which may cut the exchanges otherwise. Does not belong here: the person's own rows.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import sqlalchemy as sa

from memory_pipelines.erasure.places import Stores, Target, row_key, tally, turn_key
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.base import Lake, Replace
from memory_pipelines.stores.statements import parts, translated
from memory_pipelines.tables import EXCHANGES, MEMORIES, SLICES, TURNS, TableSpec

Row = dict[str, Any]
Redact = Callable[[Lake, list[Row], Target], None]


def _borne(ids: Iterable[str] | None, target: Target) -> bool:
    """Whether one of the turn ids is the target's."""
    return any(turn_key(target.owner.tenant, turn) in target.trace.turns for turn in ids or ())


def _kept(ids: Iterable[str] | None, target: Target) -> list[str]:
    return [turn for turn in ids or () if turn_key(target.owner.tenant, turn) not in target.trace.turns]


@dataclass(frozen=True)
class Quotes:
    """Rows of one lake table that belong to others; ``turns`` is the column of turn ids."""

    spec: TableSpec
    turns: str
    redact: Redact
    found_by: str = "turn ids"

    @property
    def name(self) -> str:
        return f"lake.{self.spec.name} of others"

    def owners(self, stores: Stores, target: Target) -> list[str]:
        """Owner key of each such row."""
        if not target.trace.turns:
            return []
        columns = ["owner", self.turns, *self._context()]
        rows = stores.lake.read(self.spec, columns=columns, where=[("tenant", "=", target.owner.tenant)])
        return [row["owner"] for row in rows.to_pylist() if self._quotes(row, target)]

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        return tally(target.key for target in targets for _ in self.owners(stores, target))

    def delete(self, stores: Stores, target: Target) -> None:
        for owner in sorted(set(self.owners(stores, target))):
            rows: list[Row] = stores.lake.read(self.spec, where=[("owner", "=", owner)]).to_pylist()
            self.redact(stores.lake, [row for row in rows if self._quotes(row, target)], target)
            changed = pa.Table.from_pylist(rows, schema=self.spec.schema)
            stores.lake.write(self.spec, changed, [Replace("owner", (owner,))])

    def _context(self) -> list[str]:
        return ["context_turn_id"] if self.spec is EXCHANGES else []

    def _quotes(self, row: Row, target: Target) -> bool:
        context = [row[name] for name in self._context() if row[name] is not None]
        return row["owner"] != target.key and (_borne(row[self.turns], target) or _borne(context, target))


def _redact_exchanges(lake: Lake, rows: list[Row], target: Target) -> None:
    """Replies are joined anew from the turns that stay."""
    texts = _texts(lake, {row["conversation_id"] for row in rows}, target)
    for row in rows:
        row["turn_ids"] = _kept(row["turn_ids"], target)
        replies = (turn for turn in row["turn_ids"] if turn not in row["own_turn_ids"] and turn in texts)
        row["other_text"] = "\n".join(texts[turn] for turn in replies)
        row["vector_clock"] = None
        if row["context_turn_id"] is not None and _borne([row["context_turn_id"]], target):
            row["context_turn_id"] = None


def _texts(lake: Lake, conversations: set[str], target: Target) -> dict[str, str]:
    """Turn id → text of the version that counts, of turns that stay: the latest edit, else the smaller hash."""
    tenant = target.owner.tenant
    columns = ["turn_id", "content_hash", "subject", "edited_at", "text"]
    where: list[tuple[str, str, object]] = [("tenant", "=", tenant), ("conversation_id", "in", conversations)]
    found: dict[str, Row] = {}
    for row in lake.read(TURNS, columns=columns, where=where).to_pylist():
        gone = row_key(tenant, row["turn_id"], row["content_hash"]) in target.trace.rows
        known = found.get(row["turn_id"])
        if not gone and (known is None or _precedence(row) < _precedence(known)):
            found[row["turn_id"]] = row
    return {turn: row["text"] for turn, row in found.items()}


def _precedence(row: Mapping[str, Any]) -> tuple[float, str]:
    return (-row["edited_at"].timestamp() if row["edited_at"] is not None else 0.0, row["content_hash"])


def _redact_slices(lake: Lake, rows: list[Row], target: Target) -> None:
    """Replies are joined anew from the exchanges, which are redacted before."""
    ids = {exchange for row in rows for exchange in row["exchange_ids"]}
    owners = {row["owner"] for row in rows}
    exchanges = lake.read(EXCHANGES, columns=["exchange_id", "other_text"], where=[("owner", "in", owners)])
    pairs = zip(exchanges["exchange_id"].to_pylist(), exchanges["other_text"].to_pylist(), strict=True)
    replies = {exchange: text for exchange, text in pairs if exchange in ids and text}
    for row in rows:
        row["source_turn_ids"] = _kept(row["source_turn_ids"], target)
        row["reply_text"] = "\n".join(replies[exchange] for exchange in row["exchange_ids"] if exchange in replies)
        row["vector_clock"] = None


def _redact_memories(lake: Lake, rows: list[Row], target: Target) -> None:
    for row in rows:
        row["source_turn_ids"] = _kept(row["source_turn_ids"], target)


QUOTED_EXCHANGES = Quotes(EXCHANGES, "turn_ids", _redact_exchanges)
QUOTED_SLICES = Quotes(SLICES, "source_turn_ids", _redact_slices)
QUOTED_MEMORIES = Quotes(MEMORIES, "source_turn_ids", _redact_memories)


@dataclass(frozen=True)
class QuotedVersions:
    """``memory_versions`` of others. Their owners' epochs grow, so that no copy of the old row is read again, and their
    packs, which are such copies, go."""

    name: str = "postgres.memory_versions of others"
    found_by: str = "turn ids"

    def owners(self, stores: Stores, target: Target) -> list[str]:
        """Owner key of each such row."""
        with translated(), stores.engine.begin() as connection:
            return [row["owner"] for row in self._rows(connection, target)]

    def count(self, stores: Stores, targets: Sequence[Target]) -> dict[str, int]:
        return tally(target.key for target in targets for _ in self.owners(stores, target))

    def delete(self, stores: Stores, target: Target) -> None:
        table, people = schema.memory_versions, schema.people
        owners = sorted(set(self.owners(stores, target)))
        for owner in _people(stores.engine, owners):
            stores.hot.delete(owner)
        with translated(), stores.engine.begin() as connection:
            rows = self._rows(connection, target)
            for row in rows:
                this = (table.c.memory_id == row["memory_id"], table.c.version == row["version"])
                kept = _kept(row["source_turn_ids"], target)
                connection.execute(table.update().where(*this).values(source_turn_ids=kept))
            for part in parts(owners):
                connection.execute(people.update().where(people.c.owner.in_(part)).values(epoch=people.c.epoch + 1))
                connection.execute(schema.packs.delete().where(schema.packs.c.owner.in_(part)))

    @staticmethod
    def _rows(connection: sa.Connection, target: Target) -> list[sa.RowMapping]:
        table = schema.memory_versions
        if not target.trace.turns:
            return []
        query = sa.select(table.c.memory_id, table.c.version, table.c.owner, table.c.source_turn_ids)
        others = query.where(table.c.tenant == target.owner.tenant, table.c.owner != target.key)
        return [row for row in connection.execute(others).mappings() if _borne(row["source_turn_ids"], target)]


def _people(engine: sa.Engine, owners: Sequence[str]) -> list[Owner]:
    table = schema.people
    with translated(), engine.begin() as connection:
        found = [
            connection.execute(sa.select(table.c.tenant, table.c.subject).where(table.c.owner.in_(part))).all()
            for part in parts(owners)
        ]
    return [Owner(tenant, subject) for rows in found for tenant, subject in rows]
