"""Which vector collection is live; Alembic's own table takes the place of ``schema_version``."""

import sqlalchemy as sa
from alembic import op

revision = "3"
down_revision = "2"


def upgrade() -> None:
    op.create_table(
        "collections",
        sa.Column("collection", sa.String(255), primary_key=True),
        sa.Column("embedder", sa.String(), nullable=False),
        sa.Column("model_id", sa.String(), nullable=False),
        sa.Column("dimension", sa.Integer(), nullable=False),
        sa.Column("state", sa.String(8), nullable=False),
        sa.Column("since", sa.DateTime(timezone=True), nullable=False),
    )
    live = sa.text("state = 'live'")
    op.create_index("collections_live", "collections", ["state"], unique=True, postgresql_where=live, sqlite_where=live)
    op.drop_table("schema_version")
