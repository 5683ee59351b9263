"""The ledger: which files, days and owners are done, and which table versions belong together.

Belongs here: bookkeeping of the jobs, each change in one transaction. Does not belong here: the notes of landing
(``landing_ledger``), or what is visible to a reader (``authority``). A touch is a number that grows in commit order;
whoever works off a touch first reads it, then the data, and notes the number read, so a touch that comes meanwhile
stays.
"""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

import sqlalchemy as sa

from memory_pipelines.errors import SettingError, TransientError
from memory_pipelines.model import day_start, shift_day
from memory_pipelines.stores import schema
from memory_pipelines.stores.landing_ledger import FileLedger, touch_owners
from memory_pipelines.stores.persons import touch_relinked
from memory_pipelines.stores.schema import hold_touches, next_touch
from memory_pipelines.stores.statements import translated, upsert

NO_SNAPSHOT = "empty"
"""Version of the population snapshot that derivations pin as long as none was made."""


@dataclass(frozen=True)
class Manifest:
    """Table versions that belong together; ``landed_through`` is the ``as_of`` of what is derived from them."""

    manifest_id: int
    landed_through: datetime
    model_set: str
    versions: dict[str, int]


@dataclass(frozen=True)
class Plan:
    """What one derivation of a bucket works on. ``owners``: owner key → touch number read.

    ``everything``: the owners are all of the bucket's, so whole partitions may be replaced; ``snapshot``: the version
    of the population snapshot.
    """

    bucket: int
    as_of: datetime
    model_set: str
    versions: dict[str, int]
    owners: dict[str, int]
    everything: bool
    snapshot: str


@dataclass(frozen=True)
class SnapshotInUse:
    """A population snapshot that came into use. ``subjects`` were counted, of ``known_subjects``; ``movement`` in
    [0, 1]: how far distinctiveness moved; ``everybody``: whether all were touched for it."""

    snapshot: str
    created_at: datetime
    landed_through: datetime
    subjects: int
    known_subjects: int
    keys: int
    movement: float
    everybody: bool


class Ledger(FileLedger):
    """The ledger in a relational database. Every method is one transaction and safe to repeat."""

    def fix_buckets(self, buckets: int) -> None:
        """Note the number of buckets on first use. Raises SettingError if the lake was cut into another number,
        TransientError while a restore has not ended."""
        table = schema.counters
        with translated(), self._engine.begin() as connection:
            upsert(connection, table, [{"name": "buckets", "value": buckets}], update=())
            if connection.execute(sa.select(table).where(table.c.name == "restoring")).first():
                raise TransientError("a restore was begun and has not ended: run it again")
            known = connection.execute(sa.select(table.c.value).where(table.c.name == "buckets")).scalar_one()
        if known != buckets:
            raise SettingError(f"this lake is cut into {known} buckets: set MEMORY_PIPELINES_BUCKETS to that")

    def note_night(self, as_of: datetime) -> None:
        """Tiers were carried out as of an instant: nothing is published as of an earlier one any more."""
        table = schema.counters
        second = int(as_of.timestamp())
        with translated(), self._engine.begin() as connection:
            upsert(connection, table, [{"name": "night", "value": second}], update=())
            connection.execute(
                table.update().where(table.c.name == "night", table.c.value < second).values(value=second)
            )

    def last_night(self) -> datetime | None:
        """The latest instant as of which tiers were carried out."""
        table = schema.counters
        with translated(), self._engine.begin() as connection:
            second = connection.execute(sa.select(table.c.value).where(table.c.name == "night")).scalar_one_or_none()
        return None if second is None else datetime.fromtimestamp(second, UTC)

    # ---- day job

    def touched_days(self) -> dict[str, int]:
        """Day → touch number, for days whose landed rows are not in the lake's exchanges, or not committed."""
        table = schema.days
        waiting = sa.or_(table.c.touched > table.c.cut, table.c.touched > table.c.written)
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(sa.select(table.c.day, table.c.touched).where(waiting).order_by(table.c.day))
            return {row.day: row.touched for row in rows}

    def day_touches(self, days: Collection[str]) -> dict[str, int]:
        """The touch number of each day, read before its data."""
        table = schema.days
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(sa.select(table.c.day, table.c.touched).where(table.c.day.in_(sorted(days))))
            known = {row.day: row.touched for row in rows}
        return {day: known.get(day, 0) for day in sorted(days)}

    def versions_elsewhere(self, around: Collection[str], days: Collection[str]) -> dict[str, set[str]]:
        """Days besides ``days`` that hold a version of a turn id that also occurs ``around``: day → turn hashes."""
        table = schema.turn_conflicts
        with translated(), self._engine.begin() as connection:
            here = sa.select(table.c.turn).where(table.c.day.in_(sorted(around)))
            rows = connection.execute(
                sa.select(table.c.turn, table.c.day).where(table.c.turn.in_(here), table.c.day.not_in(sorted(days)))
            )
            found: dict[str, set[str]] = {}
            for turn, day in rows:
                found.setdefault(day, set()).add(turn)
        return found

    def announce(self, changes: Mapping[str, Collection[tuple[str, str, int]]]) -> list[int]:
        """Note by day the (owner, tenant, bucket) whose rows are about to change, before they do.

        Returns a number a day. Every commit of a day touches its owners until one pins the version that
        ``announced_written`` names.
        """
        numbers, rows = [], []
        with translated(), self._engine.begin() as connection:
            for day, owners in sorted(changes.items()):
                numbers.append(next_touch(connection))
                rows += [
                    {"announcement": numbers[-1], "owner": o, "day": day, "tenant": t, "bucket": b}
                    for o, t, b in sorted(owners)
                ]
            upsert(connection, schema.pending, rows, update=())
        return numbers

    def announced_written(self, announcements: Collection[int], table: str, version: int) -> None:
        """The announced changes are in the lake, in this version of this table."""
        waiting = schema.pending
        with translated(), self._engine.begin() as connection:
            connection.execute(
                waiting.update()
                .where(waiting.c.announcement.in_(sorted(announcements)))
                .values(written_to=table, version=version)
            )

    def days_written(self, days: Mapping[str, tuple[int, Mapping[str, int]]], version: int | None = None) -> None:
        """The exchanges of days are in the lake as of a touch number, with these counts; not committed yet.

        ``version`` is that of the write: a note of an older write than the one that is noted changes nothing.
        """
        table = schema.days
        rows = [
            {
                "day": day,
                "touched": touch,
                "written": touch,
                "cut": 0,
                "landed": counts["landed"],
                "version": version,
                "draft": dict(counts),
            }
            for day, (touch, counts) in sorted(days.items())
        ]
        with translated(), self._engine.begin() as connection:
            later = set()
            if version is not None:
                hold_touches(connection)
                later = set(
                    connection.execute(
                        sa.select(table.c.day).where(table.c.day.in_(sorted(days)), table.c.version > version)
                    ).scalars()
                )
            kept = [row for row in rows if row["day"] not in later]
            upsert(connection, table, kept, update=("written", "landed", "version", "draft"))

    def written_days(self, days: Collection[str]) -> dict[str, int]:
        """Day → touch number up to which its exchanges are written."""
        table = schema.days
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(
                sa.select(table.c.day, table.c.written).where(table.c.day.in_(sorted(days)), table.c.draft.is_not(None))
            )
            return {row.day: row.written for row in rows}

    def commit_days(
        self, touches: Mapping[str, int], *, versions: Mapping[str, int], model_set: str, at: datetime
    ) -> int:
        """Days are cut, labelled and checked: touch the announced owners, write a manifest; returns its id."""
        table, waiting = schema.days, schema.pending
        with translated(), self._engine.begin() as connection:
            touch = next_touch(connection)
            announced = connection.execute(
                sa.select(waiting.c.tenant, waiting.c.owner, waiting.c.bucket).where(waiting.c.day.in_(sorted(touches)))
            ).all()
            touch_owners(connection, {(t, o, b) for t, o, b in announced}, touch)
            connection.execute(
                table.update()
                .where(table.c.day == sa.bindparam("d"))
                .values(cut=sa.bindparam("touch"), counts=table.c.draft),
                [{"d": day, "touch": touch_read} for day, touch_read in sorted(touches.items())],
            )
            last = connection.execute(
                sa.select(sa.func.max(table.c.day)).where(table.c.landed > 0, table.c.counts.is_not(None))
            ).scalar_one() or max(touches)
            before = self._manifest(connection)
            merged = dict(before.versions) if before else {}
            for name, version in versions.items():
                merged[name] = max(version, merged.get(name, -1))
            for name, version in merged.items():
                connection.execute(
                    waiting.delete().where(
                        waiting.c.day.in_(sorted(touches)), waiting.c.written_to == name, waiting.c.version <= version
                    )
                )
            inserted = connection.execute(
                schema.manifests.insert().values(
                    created_at=at,
                    landed_through=day_start(shift_day(last, 1)),
                    model_set=model_set,
                    versions=merged,
                )
            )
            key = inserted.inserted_primary_key
        assert key is not None
        return int(key[0])

    def draft_counts(self) -> dict[str, dict[str, int]]:
        """Counts of every day that is written and waits for its commit."""
        table = schema.days
        waiting = sa.and_(table.c.draft.is_not(None), table.c.written > table.c.cut)
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(sa.select(table.c.day, table.c.draft).where(waiting).order_by(table.c.day))
            return {row.day: row.draft for row in rows}

    def day_counts(self) -> dict[str, dict[str, int]]:
        """Counts of every day that is in the manifest."""
        table = schema.days
        with translated(), self._engine.begin() as connection:
            rows = connection.execute(sa.select(table.c.day, table.c.counts).order_by(table.c.day))
            return {day: counts for day, counts in rows if counts is not None}

    def repin(self, table: str, before: int, after: int) -> None:
        """A table was written anew with the same rows: a manifest that pins the version before pins the one after."""
        manifests = schema.manifests
        with translated(), self._engine.begin() as connection:
            hold_touches(connection)  # no manifest is written meanwhile
            newest = self._manifest(connection)
            if newest is not None and newest.versions.get(table) == before:
                connection.execute(
                    manifests.update()
                    .where(manifests.c.manifest_id == newest.manifest_id)
                    .values(versions={**newest.versions, table: after})
                )

    def manifest(self) -> Manifest | None:
        with translated(), self._engine.begin() as connection:
            return self._manifest(connection)

    @staticmethod
    def _manifest(connection: sa.Connection) -> Manifest | None:
        table = schema.manifests
        row = connection.execute(sa.select(table).order_by(table.c.manifest_id.desc()).limit(1)).mappings().first()
        if row is None:
            return None
        return Manifest(row["manifest_id"], row["landed_through"], row["model_set"], row["versions"])

    # ---- bucket job

    def touched_buckets(self) -> list[int]:
        """Buckets with owners that were touched or whose window has closed."""
        table = schema.owners
        with translated(), self._engine.begin() as connection:
            touch_relinked(connection)
            manifest = self._manifest(connection)
            if manifest is None:
                return []
            rows = connection.execute(
                sa.select(table.c.bucket).where(_waiting(manifest.landed_through)).distinct().order_by(table.c.bucket)
            )
            return [bucket for (bucket,) in rows]

    def begin_derivation(self, bucket: int, *, everything: bool = False) -> Plan | None:
        """Plan the bucket's waiting owners (or all) against the newest manifest; None without a manifest."""
        table = schema.owners
        with translated(), self._engine.begin() as connection:
            hold_touches(connection)  # no touch that is read may belong to a newer manifest
            touch_relinked(connection)
            manifest = self._manifest(connection)
            if manifest is None:
                return None
            chosen = sa.select(table.c.owner, table.c.touched).where(table.c.bucket == bucket)
            total = connection.execute(
                sa.select(sa.func.count()).select_from(table).where(table.c.bucket == bucket)
            ).scalar_one()
            if not everything:
                chosen = chosen.where(_waiting(manifest.landed_through))
            owners = {row.owner: row.touched for row in connection.execute(chosen.order_by(table.c.owner))}
            in_use = self._snapshot(connection)
            plan: dict[str, Any] = {
                "bucket": bucket,
                "as_of": manifest.landed_through,
                "model_set": manifest.model_set,
                "versions": manifest.versions,
                "owners": owners,
                "everything": len(owners) == total,
                "snapshot": NO_SNAPSHOT if in_use is None else in_use.snapshot,
            }
            upsert(connection, schema.plans, [plan])
        return Plan(**plan)

    def known_owners(self) -> int:
        """How many owners there are."""
        with translated(), self._engine.begin() as connection:
            return connection.execute(sa.select(sa.func.count()).select_from(schema.owners)).scalar_one()

    def snapshot(self) -> SnapshotInUse | None:
        """The population snapshot in use; None: everything is neutral still."""
        with translated(), self._engine.begin() as connection:
            return self._snapshot(connection)

    @staticmethod
    def _snapshot(connection: sa.Connection) -> SnapshotInUse | None:
        table = schema.snapshots
        columns = [table.c[field.name] for field in fields(SnapshotInUse)]
        row = connection.execute(sa.select(*columns).order_by(table.c.snapshot_id.desc()).limit(1)).mappings().first()
        return None if row is None else SnapshotInUse(**row)

    def use_snapshot(self, found: SnapshotInUse) -> None:
        """Bring a population snapshot into use: derivations that begin from now on pin it."""
        with translated(), self._engine.begin() as connection:
            touch = next_touch(connection)
            connection.execute(schema.snapshots.insert().values(asdict(found)))
            if found.everybody:
                connection.execute(schema.owners.update().values(touched=touch))

    def touch_everybody(self) -> None:
        """Have every owner derived anew: a model that all depend on has changed."""
        with translated(), self._engine.begin() as connection:
            connection.execute(schema.owners.update().values(touched=next_touch(connection)))

    def plan(self, bucket: int) -> Plan | None:
        """The bucket's running or last plan."""
        table = schema.plans
        with translated(), self._engine.begin() as connection:
            row = connection.execute(sa.select(table).where(table.c.bucket == bucket)).mappings().first()
        return None if row is None else Plan(**row)

    def end_derivation(
        self,
        plan: Plan,
        due: Mapping[str, datetime | None],
        repeats: Mapping[str, tuple[int, int]] | None = None,
    ) -> None:
        """The planned owners are derived and published; ``due``: when an owner's next window closes; ``repeats``: how
        many of its behaviour events say another one again, the same and otherwise."""
        table, again = schema.owners, repeats or {}
        rows = []
        for owner, touch in sorted(plan.owners.items()):
            same, other = again.get(owner, (0, 0))
            rows.append({"o": owner, "touch": touch, "due": due.get(owner), "same": same, "other": other})
        if not rows:
            return
        statement = (
            table.update()
            .where(table.c.owner == sa.bindparam("o"))
            .values(
                derived=sa.bindparam("touch"),
                due_at=sa.bindparam("due", type_=schema.Instant),
                repeated=sa.bindparam("same"),
                conflicting=sa.bindparam("other"),
            )
        )
        with translated(), self._engine.begin() as connection:
            connection.execute(statement, rows)

    def repeated_events(self) -> tuple[int, int]:
        """Behaviour events that say another one again, the same and otherwise, among owners that were derived."""
        table = schema.owners
        sums = [sa.func.coalesce(sa.func.sum(column), 0) for column in (table.c.repeated, table.c.conflicting)]
        with translated(), self._engine.begin() as connection:
            same, other = connection.execute(sa.select(*sums)).one()
        return int(same), int(other)


def _waiting(as_of: datetime) -> sa.ColumnElement[bool]:
    table = schema.owners
    return sa.or_(table.c.touched > table.c.derived, table.c.due_at <= as_of)
