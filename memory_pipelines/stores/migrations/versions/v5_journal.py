"""The journal of what was just said."""

import sqlalchemy as sa
from alembic import op

revision = "5"
down_revision = "4"


def upgrade() -> None:
    op.create_table(
        "journal",
        sa.Column("position", sa.BigInteger().with_variant(sa.Integer, "sqlite"), primary_key=True, autoincrement=True),
        sa.Column("owner", sa.String(32), nullable=False),
        sa.Column("tenant", sa.String(), nullable=False),
        sa.Column("of_subject", sa.String(), nullable=False),
        sa.Column("noted_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("turn_id", sa.String(), nullable=False),
        sa.Column("conversation_id", sa.String(), nullable=False),
        sa.Column("session_id", sa.String()),
        sa.Column("subject", sa.String()),
        sa.Column("role", sa.String(8), nullable=False),
        sa.Column("occurred_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("origin", sa.String()),
        sa.Column("edited_at", sa.DateTime(timezone=True)),
        sa.Column("vector_clock", sa.String()),
        sa.Column("content_hash", sa.String(32), nullable=False),
    )
    op.create_index("journal_turn", "journal", ["owner", "turn_id", "content_hash"], unique=True)
