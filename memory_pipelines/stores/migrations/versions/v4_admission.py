"""Population snapshots, the one that a derivation pins, and where each version of a memory is."""

import json

import sqlalchemy as sa
from alembic import op

from memory_pipelines.model import stable_hash

revision = "4"
down_revision = "3"

_ROWS = 1000


def upgrade() -> None:
    op.create_table(
        "snapshots",
        sa.Column(
            "snapshot_id", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True
        ),
        sa.Column("snapshot", sa.String(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("landed_through", sa.DateTime(timezone=True), nullable=False),
        sa.Column("subjects", sa.BigInteger(), nullable=False),
        sa.Column("known_subjects", sa.BigInteger(), nullable=False),
        sa.Column("keys", sa.BigInteger(), nullable=False),
        sa.Column("movement", sa.Float(), nullable=False),
        sa.Column("everybody", sa.Boolean(), nullable=False),
    )
    op.add_column("plans", sa.Column("snapshot", sa.String(), nullable=False, server_default="empty"))
    op.add_column("memory_versions", sa.Column("places", sa.JSON(), nullable=False, server_default="{}"))
    _note_places()


def _note_places() -> None:
    """Of what is visible; versions that nobody sees are removed by the next publish."""
    connection = op.get_bind()
    query = sa.text(
        "SELECT v.memory_id, v.version, v.owner, v.tenant, v.stores, m.tier FROM memory_versions v "
        "JOIN memories m ON m.memory_id = v.memory_id AND m.version = v.version"
    )
    note = sa.text("UPDATE memory_versions SET places = :places WHERE memory_id = :memory AND version = :version")
    rows = connection.execute(query).all()
    for start in range(0, len(rows), _ROWS):
        changes = []
        for row in rows[start : start + _ROWS]:
            stores = json.loads(row.stores) if isinstance(row.stores, str) else row.stores
            entry = f"{row.memory_id}.{row.version}"
            places = {"relational": entry}
            if row.tier == "cold":
                places["cold"] = f"{stable_hash(row.tenant)}/{row.owner}/{entry}.json.gz"
            else:
                places |= {"vector": entry} if "vector" in stores else {}
                places |= {"graph": row.memory_id} if "graph" in stores else {}
            changes.append({"places": json.dumps(places), "memory": row.memory_id, "version": row.version})
        connection.execute(note, changes)
