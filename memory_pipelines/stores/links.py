"""Which device belongs to whom: the links that logins make.

Belongs here: their rows in the relational store, and what may be joined because of them. Does not belong
here: recognising a device, proposing links, joining memories (``recall``).

A link says that device and user are one person. Logging out does not undo it; ``unlink`` does, and is for
links that were wrong: to everybody it is then as if the link had never been.
"""

from collections.abc import Collection
from datetime import datetime, timedelta
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from memory_pipelines.errors import PermanentError
from memory_pipelines.model import Owner, device_subject, iso, stable_hash, user_subject, utc
from memory_pipelines.stores import schema
from memory_pipelines.stores.persons import others_of
from memory_pipelines.stores.statements import reading, translated

DEVICE = device_subject("")
USER = user_subject("")

_LINKS = schema.identity_links

_SECOND = timedelta(seconds=1)


def devices_of(user: sa.ColumnElement[str], tenant: sa.ColumnElement[str]) -> sa.Select[Any]:
    """(owner key, subject) of the devices of a user that are linked to nobody else."""
    other = _LINKS.alias()
    shared = sa.exists().where(
        other.c.device_owner == _LINKS.c.device_owner,
        other.c.user_owner != _LINKS.c.user_owner,
        other.c.unlinked_at.is_(None),
    )
    of_user = (_LINKS.c.user_owner == user, _LINKS.c.tenant == tenant)
    found = sa.select(_LINKS.c.device_owner, _LINKS.c.device_subject)
    return found.where(*of_user, _LINKS.c.unlinked_at.is_(None), ~shared)


_LINKED = devices_of(sa.bindparam("user"), sa.bindparam("of_tenant"))


class IdentityLinks:
    """Links of devices and users over an engine of ``database.connect``. Every call is one statement.

    A time without a zone raises ValueError; all else as ``statements.translated`` says."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self._reading = reading(engine)

    def link(self, device: Owner, user: Owner, at: datetime) -> None:
        """The user logged in on the device at ``at``; nothing changes while the two are linked.

        A link that was made at the same instant and undone since stays undone. Raises PermanentError
        on two tenants, or unless the subjects are a device's and a user's."""
        _check(device, user)
        row = {
            "link_id": stable_hash(device.key, user.key, iso(at)),
            "tenant": device.tenant,
            "device_owner": device.key,
            "device_subject": device.subject,
            "user_owner": user.key,
            "user_subject": user.subject,
            "linked_at": at,
        }
        with translated(), self._engine.begin() as connection:
            dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
            # No target: both the same login again and a link that is open already leave the old row.
            connection.execute(dialect.insert(_LINKS).values(row).on_conflict_do_nothing())

    def unlink(self, device: Owner, user: Owner, at: datetime) -> None:
        """The link was wrong; one made after ``at`` stays, so that a repeated call undoes nothing new."""
        _check(device, user)
        self._set(device, user, _LINKS.c.linked_at <= utc(at), unlinked_at=utc(at), owners_touched=False)

    def seen(self, device: Owner, user: Owner, at: datetime) -> None:
        """Note that a recall of the user could use the device's memories; the first time stands."""
        self._set(device, user, _LINKS.c.visible_at.is_(None), visible_at=utc(at))

    def linked(self, owner: Owner) -> tuple[Owner, ...]:
        """The owner first; for a user then the devices linked to nobody else, by subject.

        A device that is logged out sees its own memories only."""
        if not owner.subject.startswith(USER):
            return (owner,)
        with translated(), self._reading.connect() as connection:
            named = {"user": owner.key, "of_tenant": owner.tenant}
            devices = sorted(row.device_subject for row in connection.execute(_LINKED, named))
        return owner, *(Owner(owner.tenant, device) for device in devices)

    def others_of(self, owners: Collection[str] | None = None) -> dict[str, frozenset[str]]:
        """Owner key → keys of the other subjects of the same person, of those of ``owners`` (None: of all) that have
        any. For a device those are its user and the user's other devices."""
        with translated(), self._engine.begin() as connection:
            return others_of(connection, owners)

    def shared(self, device: Owner) -> bool:
        """Whether more than one user is linked to the device (a family's, a shop's): its memories join nobody."""
        query = sa.select(sa.func.count()).where(_LINKS.c.device_owner == device.key, _LINKS.c.unlinked_at.is_(None))
        with translated(), self._engine.begin() as connection:
            return int(connection.execute(query).scalar_one()) > 1

    def latencies(self, as_of: datetime, days: int = 7) -> list[float]:
        """Seconds from login to visible memories, of the links made in the ``days`` before ``as_of``, oldest first.

        Only of those that a recall had used by then: the time until somebody asked is in it. An instant
        before the login (another machine's clock) counts as 0."""
        as_of = utc(as_of)
        query = (
            sa.select(_LINKS.c.linked_at, _LINKS.c.visible_at)
            .where(_LINKS.c.linked_at > as_of - timedelta(days=days), _LINKS.c.linked_at <= as_of)
            .where(_LINKS.c.visible_at <= as_of)
            .order_by(_LINKS.c.linked_at, _LINKS.c.link_id)
        )
        with translated(), self._engine.begin() as connection:
            return [max(0.0, (seen - made) / _SECOND) for made, seen in connection.execute(query)]

    def _set(self, device: Owner, user: Owner, when: sa.ColumnElement[bool], **values: datetime | bool) -> None:
        """Change the open link of the two, if there is one."""
        of_both = (_LINKS.c.device_owner == device.key, _LINKS.c.user_owner == user.key)
        statement = _LINKS.update().where(*of_both, _LINKS.c.unlinked_at.is_(None), when).values(**values)
        with translated(), self._engine.begin() as connection:
            connection.execute(statement)


def _check(device: Owner, user: Owner) -> None:
    if device.tenant != user.tenant:
        raise PermanentError("a device and a user of two tenants cannot be linked")
    for owner, prefix, name in ((device, DEVICE, "device"), (user, USER, "user")):
        if not owner.subject.removeprefix(prefix).strip() or not owner.subject.startswith(prefix):
            raise PermanentError(f"the subject of a {name} must be {prefix}<id>")
