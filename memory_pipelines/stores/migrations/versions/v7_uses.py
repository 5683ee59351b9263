"""How each memory was used, beside the pointer to its version."""

import sqlalchemy as sa
from alembic import op

revision = "7"
down_revision = "6"


def upgrade() -> None:
    op.add_column("memories", sa.Column("accessed_at", sa.DateTime(timezone=True)))
    op.add_column("memories", sa.Column("activations", sa.SmallInteger(), nullable=False, server_default="0"))
