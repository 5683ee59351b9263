"""What the UI shows of a table's content: counts and means by closed-list columns, never a row of anybody.

Metadata outlives an erasure (Dagster does not prune it), so nothing here may hold text, a name or an id.
"""

import dagster as dg
import pyarrow as pa
import pyarrow.compute as pc

MOST_ROWS = 15


def value_counts(column: pa.ChunkedArray) -> dict[str, int]:
    """Rows per value, the most frequent first."""
    counts = [(str(c["values"]), c["counts"]) for c in pc.value_counts(column).to_pylist()]
    return dict(sorted(counts, key=lambda c: (-c[1], c[0])))


def means_by(table: pa.Table, by: str, columns: list[str]) -> dict[str, dg.TableMetadataValue]:
    """Metadata ``preview``: per value of ``by`` the number of rows and the means of ``columns``; none if empty."""
    if not table.num_rows:
        return {}
    groups = table.group_by(by).aggregate([(by, "count"), *((c, "mean") for c in columns)])
    ordered = groups.sort_by([(f"{by}_count", "descending"), (by, "ascending")]).slice(0, MOST_ROWS)
    records = [
        dg.TableRecord(
            {by: str(row[by]), "rows": row[f"{by}_count"], **{c: round(row[f"{c}_mean"] or 0.0, 3) for c in columns}}
        )
        for row in ordered.to_pylist()
    ]
    return {"preview": dg.MetadataValue.table(records)}


def picture(title: str, png: bytes) -> dg.MarkdownMetadataValue:
    """A picture that the UI shows."""
    from memory_pipelines.reward import plots

    return dg.MetadataValue.md(plots.markdown(title, png))
