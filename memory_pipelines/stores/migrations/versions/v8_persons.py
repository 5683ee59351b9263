"""Which links have touched the owners that they concern: none yet."""

import sqlalchemy as sa
from alembic import op

revision = "8"
down_revision = "7"


def upgrade() -> None:
    op.add_column(
        "identity_links", sa.Column("owners_touched", sa.Boolean(), nullable=False, server_default=sa.false())
    )
    op.create_index(
        "identity_links_waiting",
        "identity_links",
        ["device_owner"],
        postgresql_where=sa.text("NOT owners_touched"),
        sqlite_where=sa.text("NOT owners_touched"),
    )
