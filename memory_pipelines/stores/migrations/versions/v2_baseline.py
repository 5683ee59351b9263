"""The first schema that migrations know: every table as of schema 2.

Belongs here: what was. It is never changed again.
"""

import sqlalchemy as sa
from alembic import op

revision = "2"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "accesses",
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=12), nullable=False),
        sa.PrimaryKeyConstraint("owner", "turn_id", "at", "kind"),
    )
    op.create_table(
        "batches",
        sa.Column("batch_id", sa.String(length=32), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("plan", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("batch_id"),
    )
    op.create_table(
        "chunks",
        sa.Column("file_id", sa.String(length=32), nullable=False),
        sa.Column("chunk", sa.Integer(), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("behaviour", sa.BigInteger(), nullable=False),
        sa.Column("filtered", sa.JSON(), nullable=False),
        sa.Column("quarantined", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("file_id", "chunk"),
    )
    op.create_table(
        "counters",
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("value", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("name"),
    )
    op.create_table(
        "days",
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("touched", sa.BigInteger(), nullable=False),
        sa.Column("written", sa.BigInteger(), nullable=False),
        sa.Column("cut", sa.BigInteger(), nullable=False),
        sa.Column("landed", sa.BigInteger(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.Column("draft", sa.JSON(none_as_null=True), nullable=True),
        sa.Column("counts", sa.JSON(none_as_null=True), nullable=True),
        sa.PrimaryKeyConstraint("day"),
    )
    op.create_table(
        "erasures",
        sa.Column("request_id", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=True),
        sa.Column("state", sa.String(length=16), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("approved_by", sa.String(), nullable=True),
        sa.Column("progress", sa.JSON(), nullable=False),
        sa.Column("certificate", sa.JSON(), nullable=True),
        sa.PrimaryKeyConstraint("request_id"),
    )
    op.create_index("erasures_owner", "erasures", ["owner"], unique=False)
    op.create_table(
        "files",
        sa.Column("file_id", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("complete", sa.Boolean(), nullable=False),
        sa.Column("format", sa.String(length=32), nullable=False),
        sa.Column("mapping", sa.String(), nullable=True),
        sa.Column("continues", sa.String(length=32), nullable=True),
        sa.Column("tail", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("file_id"),
    )
    op.create_table(
        "identity_links",
        sa.Column("link_id", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("device_owner", sa.String(length=32), nullable=False),
        sa.Column("device_subject", sa.String(), nullable=False),
        sa.Column("user_owner", sa.String(length=32), nullable=False),
        sa.Column("user_subject", sa.String(), nullable=False),
        sa.Column("linked_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("visible_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("unlinked_at", sa.DateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("link_id"),
    )
    op.create_index(
        "identity_links_open",
        "identity_links",
        ["device_owner", "user_owner"],
        unique=True,
        postgresql_where=sa.text("unlinked_at IS NULL"),
        sqlite_where=sa.text("unlinked_at IS NULL"),
    )
    op.create_index("identity_links_user", "identity_links", ["user_owner"], unique=False)
    op.create_table(
        "manifests",
        sa.Column(
            "manifest_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("landed_through", sa.DateTime(timezone=True), nullable=False),
        sa.Column("model_set", sa.String(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("manifest_id"),
    )
    op.create_table(
        "markers",
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=False),
        sa.Column("claim", sa.String(), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("owner", "turn_id", "claim"),
    )
    op.create_table(
        "master_key",
        sa.Column("one", sa.Integer(), nullable=False),
        sa.Column("fingerprint", sa.String(length=32), nullable=False),
        sa.PrimaryKeyConstraint("one"),
    )
    op.create_table(
        "memories",
        sa.Column("memory_id", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("version", sa.String(length=32), nullable=True),
        sa.Column("tier", sa.String(length=8), nullable=False),
        sa.Column("admitted_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("memory_id"),
    )
    op.create_index("memories_owner", "memories", ["owner"], unique=False)
    op.create_table(
        "memory_versions",
        sa.Column("memory_id", sa.String(length=32), nullable=False),
        sa.Column("version", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("memory_type", sa.String(length=16), nullable=False),
        sa.Column("permanence", sa.String(length=16), nullable=False),
        sa.Column("term", sa.String(length=8), nullable=False),
        sa.Column("summary", sa.Text(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("language", sa.String(length=8), nullable=False),
        sa.Column("predicate", sa.String(), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("structured", sa.Text(), nullable=False),
        sa.Column("confidence", sa.Float(), nullable=False),
        sa.Column("trust", sa.Float(), nullable=False),
        sa.Column("score", sa.Float(), nullable=False),
        sa.Column("decision_impact", sa.Float(), nullable=False),
        sa.Column("intent", sa.String(), nullable=False),
        sa.Column("entities", sa.JSON(), nullable=False),
        sa.Column("slice_ids", sa.JSON(), nullable=False),
        sa.Column("source_turn_ids", sa.JSON(), nullable=False),
        sa.Column("stores", sa.JSON(), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("valid_from", sa.DateTime(timezone=True), nullable=True),
        sa.Column("valid_to", sa.DateTime(timezone=True), nullable=True),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("path", sa.String(), nullable=False),
        sa.Column("model_set", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("memory_id", "version"),
    )
    op.create_index("memory_versions_owner", "memory_versions", ["owner"], unique=False)
    op.create_table(
        "models",
        sa.Column("model_id", sa.String(length=32), nullable=False),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("data_from", sa.DateTime(timezone=True), nullable=False),
        sa.Column("data_to", sa.DateTime(timezone=True), nullable=False),
        sa.Column("data_hash", sa.String(length=32), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("metrics", sa.JSON(), nullable=False),
        sa.Column("verdict", sa.String(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("model_id"),
    )
    op.create_table(
        "owners",
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("touched", sa.BigInteger(), nullable=False),
        sa.Column("derived", sa.BigInteger(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("repeated", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("conflicting", sa.BigInteger(), server_default="0", nullable=False),
        sa.PrimaryKeyConstraint("owner"),
    )
    op.create_index("owners_bucket", "owners", ["bucket"], unique=False)
    op.create_table(
        "pending",
        sa.Column("announcement", sa.BigInteger(), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("written_to", sa.String(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=True),
        sa.PrimaryKeyConstraint("announcement", "owner"),
    )
    op.create_index("pending_day", "pending", ["day"], unique=False)
    op.create_table(
        "people",
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("subject", sa.String(), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.Column("graph_version", sa.String(length=32), nullable=True),
        sa.PrimaryKeyConstraint("owner"),
    )
    op.create_table(
        "plans",
        sa.Column("bucket", sa.Integer(), nullable=False),
        sa.Column("as_of", sa.DateTime(timezone=True), nullable=False),
        sa.Column("model_set", sa.String(), nullable=False),
        sa.Column("versions", sa.JSON(), nullable=False),
        sa.Column("owners", sa.JSON(), nullable=False),
        sa.Column("everything", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("bucket"),
    )
    op.create_table(
        "promotions",
        sa.Column(
            "promotion_id", sa.BigInteger().with_variant(sa.Integer(), "sqlite"), autoincrement=True, nullable=False
        ),
        sa.Column("kind", sa.String(length=16), nullable=False),
        sa.Column("model_id", sa.String(length=32), nullable=False),
        sa.Column("at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("reason", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("promotion_id"),
    )
    op.create_table(
        "readmissions",
        sa.Column("file_id", sa.String(length=32), nullable=False),
        sa.Column("chunk", sa.Integer(), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("turns", sa.BigInteger(), nullable=False),
        sa.Column("behaviour", sa.BigInteger(), nullable=False),
        sa.Column("filtered", sa.JSON(), nullable=False),
        sa.Column("quarantined", sa.JSON(), nullable=False),
        sa.Column("positions", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("file_id", "chunk", "attempt"),
    )
    op.create_table(
        "reflection_tasks",
        sa.Column("task_id", sa.String(length=32), nullable=False),
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("week", sa.String(length=10), nullable=False),
        sa.Column("kind", sa.String(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("due_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("done", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("task_id"),
    )
    op.create_index("reflection_tasks_owner", "reflection_tasks", ["owner"], unique=False)
    op.create_table(
        "schema_version", sa.Column("version", sa.Integer(), nullable=False), sa.PrimaryKeyConstraint("version")
    )
    op.create_table(
        "sensitive_values",
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("token", sa.String(length=32), nullable=False),
        sa.Column("cipher", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "token"),
    )
    op.create_table(
        "slice_turns",
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("slice_id", sa.String(), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=False),
        sa.Column("current", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "slice_id", "turn_id"),
    )
    op.create_index("slice_turns_turn", "slice_turns", ["owner", "turn_id"], unique=False)
    op.create_table(
        "source_faults",
        sa.Column("source", sa.String(length=32), nullable=False),
        sa.Column("name", sa.String(), nullable=False),
        sa.Column("fault", sa.String(), nullable=False),
        sa.PrimaryKeyConstraint("source"),
    )
    op.create_table(
        "sources",
        sa.Column("source", sa.String(length=32), nullable=False),
        sa.Column("state", sa.String(length=64), nullable=False),
        sa.Column("file_id", sa.String(length=32), nullable=True),
        sa.Column("fault", sa.Boolean(), nullable=False),
        sa.PrimaryKeyConstraint("source"),
    )
    op.create_table(
        "subject_keys",
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("wrapped", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("owner"),
    )
    op.create_table(
        "suppressions",
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=False),
        sa.Column("until", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("owner", "turn_id"),
    )
    op.create_table(
        "tombstones",
        sa.Column("owner", sa.String(length=32), nullable=False),
        sa.Column("before", sa.DateTime(timezone=True), nullable=False),
        sa.Column("epoch", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner"),
    )
    op.create_table(
        "turn_conflicts",
        sa.Column("turn", sa.String(length=32), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.PrimaryKeyConstraint("turn", "day"),
    )
    op.create_index("turn_conflicts_day", "turn_conflicts", ["day"], unique=False)
    op.create_table(
        "turn_days",
        sa.Column("turn", sa.String(length=32), nullable=False),
        sa.Column("day", sa.String(length=10), nullable=False),
        sa.PrimaryKeyConstraint("turn"),
    )
    op.create_table(
        "watermarks",
        sa.Column("file_id", sa.String(length=32), nullable=False),
        sa.Column("value", sa.JSON(), nullable=False),
        sa.Column("edge", sa.JSON(), nullable=False),
        sa.PrimaryKeyConstraint("file_id"),
    )
