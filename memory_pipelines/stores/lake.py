"""The lake: one Delta table a ``TableSpec``, on disk or S3, through deltalake.

Belongs here: creating, writing and reading tables, and what may enter Delta's log. Does not belong
here: table shapes (``tables``), the canonical form (``stores.canonical``), when a table may be purged.
The driver must not be used in a forked child: spawn.
"""

import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from memory_pipelines.errors import InputError, IntegrityError, PermanentError, StoreUnavailableError, TransientError
from memory_pipelines.stores import canonical
from memory_pipelines.stores.base import Compacted, Replace, Replaced, ReplaceRange
from memory_pipelines.tables import TableSpec

SETTING = "MEMORY_PIPELINES_LAKE_URL"
TRIES = 10
FIRST_WAIT = 0.05
LONGEST_WAIT = 1.0
ROW_GROUP = 2048
"""Rows of a row group: few, so that rows of few owners are found without decoding many others'."""
SPILL_BYTES = 1 << 30
"""Memory of a compaction; what does not fit is sorted on disk."""
CHECKPOINT_INTERVAL = "10"
"""Commits between two checkpoints: opening a table reads the commits since the last one."""
LOG_RETENTION = "delta.logRetentionDuration"
UNUSABLE = ("no space left", "storagefull", "quota", "permission", "read-only", "not a directory", "create local")
REFUSED = ("accessdenied", "invalidaccesskeyid", "signaturedoesnotmatch", "nosuchbucket", "403 forbidden")


class _Handles(threading.local):
    """Tables as this thread has them open, by name: to look for newer commits is cheaper than to read a log anew.

    ``newest``: the last version seen; ``pinned``: an older one."""

    def __init__(self) -> None:
        self.newest: dict[str, Any] = {}
        self.pinned: dict[str, Any] = {}


class DeltaLake:
    """Tables under ``<location>/<name>``. A write is one commit; readers see whole versions only.

    Delta's log keeps the predicate of a write for ever. So only statistics and partition columns,
    which it shows anyway, go into it; a ``Replace`` of any other column (a subject) is done here:
    rows of the partition that stay are written again with the new ones, in the same commit.
    """

    def __init__(self, location: str, storage_options: Mapping[str, str] | None = None) -> None:
        self._location = location.rstrip("/")
        self._options = dict(storage_options or {})
        self._handles = _Handles()

    def write(
        self, table: TableSpec, rows: pa.Table, replace: Sequence[Replaced], partition: dict[str, int] | None = None
    ) -> int:
        """See the port. A concurrent write of the same rows makes this one start again, up to ten times.

        Raises IntegrityError if a row is not among what the write replaces, or does not fit the schema."""
        fresh = canonical.conform(table, rows)
        canonical.check_replaced(table, fresh, replace, partition)
        for tried in range(TRIES):
            if tried:
                time.sleep(min(FIRST_WAIT * 2**tried, LONGEST_WAIT))
            with _answering(table):
                version = self._commit(table, fresh, replace, partition)
            if version is not None:
                return version
        raise TransientError(f"table {table.name} had {TRIES} conflicting writes; retry later")

    def read(
        self,
        table: TableSpec,
        *,
        columns: Sequence[str] | None = None,
        where: Sequence[tuple[str, str, object]] = (),
        version: int | None = None,
    ) -> pa.Table:
        """See the port. Rows come in no particular order."""
        names = list(table.schema.names) if columns is None else canonical.known_columns(table, columns)
        expression = canonical.where_expression(table, where)
        with _answering(table):
            stored = self._open(table) if version is None else self._open_at(table, version)
            if stored is None:
                return canonical.select(table, table.schema.empty_table(), columns, ())
            return _rows(table, stored, names, expression, _pruning(table, where))

    def query(self, statement: str, *tables: TableSpec) -> pa.Table:
        """Answer a SQL query (DataFusion's dialect) over the newest versions of tables, each by its name.

        Raises InputError with the engine's words for a query that it does not take."""
        from deltalake import QueryBuilder
        from deltalake.exceptions import DeltaError

        builder = QueryBuilder()
        for table in tables:
            with _answering(table):
                builder.register(table.name, self._open(table) or self._create(table))
        try:
            return pa.table(builder.execute(statement).read_all())
        except DeltaError as error:
            raise InputError(f"the query cannot be answered: {str(error).splitlines()[0]}") from None

    def version(self, table: TableSpec) -> int:
        with _answering(table):
            stored = self._open(table)
            return -1 if stored is None else int(stored.version())

    def compact(self, table: TableSpec, most_files: int) -> Compacted | None:
        """See the port. A partition's rows are sorted in whole, with row groups that a range of owners can prune."""
        from deltalake import WriterProperties
        from deltalake.exceptions import CommitFailedError

        with _answering(table):
            stored = self._open(table)
            if stored is None:
                return None
            before, files = int(stored.version()), Counter(tuple(place.items()) for place in _partitions(stored))
            crowded = [dict(place) for place, count in files.items() if count > most_files]
            if not crowded:
                return None
            column = table.partition_by[-1] if table.partition_by else ""
            values = sorted({str(place[column]) for place in crowded if column})
            try:
                stored.optimize.z_order(
                    [table.sort_by],
                    partition_filters=[(column, "in", values)] if column else None,
                    max_spill_size=SPILL_BYTES,
                    writer_properties=WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP),
                )
            except CommitFailedError:
                return None
            return Compacted(before, int(stored.version()), files.total(), len(_partitions(stored)))

    def vacuum(self, table: TableSpec, keep: timedelta) -> int:
        with _answering(table):
            stored = self._open(table)
            if stored is None:
                return 0
            hours = int(keep.total_seconds() // 3600)
            return len(stored.vacuum(retention_hours=hours, enforce_retention_duration=False, dry_run=False))

    def purge(self, table: TableSpec) -> None:
        """See the port. The log is begun anew from a checkpoint: what it kept of old predicates goes with it."""
        with _answering(table):
            stored = self._open(table)
            if stored is None:
                return
            stored.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False, full=True)
            stored.alter.set_table_properties({LOG_RETENTION: "interval 0 seconds"})
            stored.create_checkpoint()
            stored.cleanup_metadata()
            stored.alter.set_table_properties({LOG_RETENTION: "interval 30 days"})

    def stored(self, table: TableSpec) -> Iterator[tuple[str, bytes]]:
        """See the port; reads below the table's folder, whatever Delta knows of it."""
        import pyarrow.fs as fs
        from deltalake.fs import DeltaStorageHandler

        with _answering(table):
            if self._open(table) is None:
                return
            files = fs.PyFileSystem(DeltaStorageHandler(self._uri(table), self._options))
            found = files.get_file_info(fs.FileSelector("", recursive=True))
        for path in sorted(info.path for info in found if info.type == fs.FileType.File):
            with _answering(table), files.open_input_file(path) as stream:
                content = stream.read()
            yield path, content

    def _open(self, table: TableSpec) -> Any:
        """The newest version of the table, or None before its first write."""
        from deltalake import DeltaTable
        from deltalake.exceptions import TableNotFoundError

        known = self._handles.newest.get(table.name)
        if known is not None:
            known.update_incremental()
            return known
        try:
            stored = DeltaTable(self._uri(table), storage_options=self._options)
        except TableNotFoundError:
            return None
        self._handles.newest[table.name] = stored
        return stored

    def _open_at(self, table: TableSpec, version: int) -> Any:
        """A version of the table, or None for the one before its first write. Raises IntegrityError if unknown."""
        from deltalake import DeltaTable

        known = self._handles.pinned.get(table.name)
        if version < 0 or (known is not None and known.version() == version):
            return None if version < 0 else known
        newest = self._open(table)
        if newest is None or newest.version() == version:
            return newest
        if version > newest.version():
            raise IntegrityError(f"table {table.name} has no version {version}")
        stored = DeltaTable(self._uri(table), version=version, storage_options=self._options)
        self._handles.pinned[table.name] = stored
        return stored

    def _create(self, table: TableSpec) -> Any:
        from deltalake import DeltaTable

        return DeltaTable.create(
            self._uri(table),
            schema=table.schema,
            mode="ignore",
            partition_by=list(table.partition_by),
            configuration={
                "delta.dataSkippingStatsColumns": ",".join(table.statistics),
                "delta.checkpointInterval": CHECKPOINT_INTERVAL,
            },
            storage_options=self._options,
        )

    def _commit(
        self, table: TableSpec, fresh: pa.Table, replace: Sequence[Replaced], partition: dict[str, int] | None
    ) -> int | None:
        """One try: the new version, or None if another writer was faster."""
        from deltalake import WriterProperties, write_deltalake
        from deltalake.exceptions import CommitFailedError

        try:
            stored = self._open(table) or self._create(table)
            if any(isinstance(item, Replace) and not item.values for item in replace):
                return int(stored.version())
            _extend(table, stored)
            public = [item for item in replace if _public(table, item.column)]
            kept = table.schema.empty_table()
            if len(public) < len(replace):
                region = [condition for item in public for condition in _conditions(item)]
                region += [(column, "=", value) for column, value in (partition or {}).items()]
                expression = canonical.where_expression(table, region)
                old = _rows(table, stored, table.schema.names, expression, _pruning(table, region))
                kept = old.filter(pc.invert(canonical.matches(table, old, replace, partition)))
            write_deltalake(
                stored,
                canonical.ordered(table, pa.concat_tables([kept, fresh])),
                mode="overwrite",
                predicate=_predicate(table, public, partition),
                writer_properties=WriterProperties(compression="ZSTD", max_row_group_size=ROW_GROUP),
            )
        except CommitFailedError:
            self._handles.newest.pop(table.name, None)
            return None
        return int(stored.version())

    def _uri(self, table: TableSpec) -> str:
        return f"{self._location}/{table.name}"


def _partitions(stored: Any) -> list[dict[str, Any]]:
    """The partition values of each file of the version."""
    files = pa.table(stored.get_add_actions())
    return files["partition"].to_pylist() if "partition" in files.column_names else [{}] * files.num_rows


def _rows(
    table: TableSpec,
    stored: Any,
    names: Sequence[str],
    expression: pc.Expression | None,
    pruning: list[tuple[str, str, Any]] | None,
) -> pa.Table:
    lacking = set(_lacking(table, stored))
    there = [name for name in names if name not in lacking]
    rows = stored.to_pyarrow_dataset(file_pruning_predicate=pruning).to_table(columns=there, filter=expression)
    for name in names:
        if name in lacking:
            rows = rows.append_column(name, pa.nulls(rows.num_rows, table.schema.field(name).type))
    return canonical.conform(table, rows.select(names), names)


def _lacking(table: TableSpec, stored: Any) -> list[str]:
    """Columns that came after the table was made: null in all its rows, until the next write adds them."""
    held = {field.name for field in stored.schema().fields}
    return [name for name in table.schema.names if name not in held]


def _extend(table: TableSpec, stored: Any) -> None:
    """Add the columns that the table lacks, in a version of its own."""
    from deltalake import Schema

    lacking = _lacking(table, stored)
    if lacking:
        fresh = Schema.from_arrow(pa.schema([table.schema.field(name) for name in lacking]))
        stored.alter.add_columns(fresh.fields)


def _pruning(table: TableSpec, where: Sequence[tuple[str, str, object]]) -> list[tuple[str, str, Any]] | None:
    """Of the filters, those that name partitions: files of others are not even looked at."""
    chosen: list[tuple[str, str, Any]] = []
    for column, operator, value in where:
        if column in table.partition_by and operator == "=":
            chosen.append((column, operator, str(value)))
        elif column in table.partition_by and isinstance(value, list | tuple):
            chosen.append((column, "in", [str(one) for one in value]))
    return chosen or None


def _conditions(item: Replaced) -> list[tuple[str, str, object]]:
    if isinstance(item, Replace):
        return [(item.column, "in", item.values)]
    return [(item.column, operator, bound) for operator, bound in _bounds(item)]


def _bounds(item: ReplaceRange) -> list[tuple[str, str]]:
    return [(operator, bound) for operator, bound in ((">=", item.low), ("<", item.high)) if bound is not None]


def _public(table: TableSpec, column: str) -> bool:
    """May values of the column enter Delta's log? Those of the declared statistics and partitions do anyway."""
    kind = table.schema.field(column).type
    return column in (*table.statistics, *table.partition_by) and (
        pa.types.is_string(kind) or pa.types.is_integer(kind)
    )


def _predicate(table: TableSpec, replace: Sequence[Replaced], partition: dict[str, int] | None) -> str | None:
    """SQL for the rows that a commit replaces; None for all of them."""
    parts = [f"{column} = {_literal(table, column, value)}" for column, value in sorted((partition or {}).items())]
    for item in replace:
        if isinstance(item, Replace):
            values = ", ".join(_literal(table, item.column, value) for value in sorted(set(item.values)))
            parts.append(f"{item.column} IN ({values})")
        else:
            parts += [f"{item.column} {operator} {_literal(table, item.column, b)}" for operator, b in _bounds(item)]
    return " AND ".join(parts) or None


def _literal(table: TableSpec, column: str, value: str | int) -> str:
    if pa.types.is_integer(table.schema.field(column).type):
        return str(int(value))
    return "'" + str(value).replace("'", "''") + "'"


@contextmanager
def _answering(table: TableSpec) -> Iterator[None]:
    """The driver's errors leave as the library's, without their texts: some quote rows."""
    from deltalake.exceptions import DeltaError

    try:
        yield
    except (DeltaError, OSError) as error:
        text = str(error).lower()
        if any(word in text for word in UNUSABLE):
            raise PermanentError(
                f"the lake cannot write table {table.name} (full, read-only or no folder); check {SETTING}"
            ) from None
        if any(word in text for word in REFUSED):
            raise PermanentError(f"the lake is refused access to table {table.name}; check {SETTING}") from None
        if isinstance(error, OSError) and not isinstance(error, FileNotFoundError):
            raise StoreUnavailableError("lake", SETTING, type(error).__name__) from None
        raise PermanentError(f"the lake cannot use table {table.name} ({type(error).__name__})") from None
