"""Which subjects are one person, for the jobs: whose behaviour counts for whom, and whom a changed link touches.

Belongs here: reading links for many owners at once, in the caller's transaction. Does not belong here: making links
(``links``), what a person's subjects have in common (``pipeline.persons``).

A person is a user and the devices that are linked to this user alone. A login takes no lock: it leaves its row as one
whose owners are not touched yet, and the jobs touch them before they look who waits.
"""

from collections import defaultdict
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa

from memory_pipelines.stores import schema
from memory_pipelines.stores.schema import next_touch
from memory_pipelines.stores.statements import parts

_LINKS = schema.identity_links
_OPEN = _LINKS.c.unlinked_at.is_(None)


def joining(*columns: sa.Column[Any]) -> sa.Select[Any]:
    """These columns of the links that join: of devices that are linked to nobody else. One whose user was erased joins
    nobody, and keeps the device from joining anybody."""
    other = _LINKS.alias()
    shared = sa.exists().where(
        other.c.device_owner == _LINKS.c.device_owner,
        other.c.user_owner != _LINKS.c.user_owner,
        other.c.unlinked_at.is_(None),
    )
    return sa.select(*columns).where(_OPEN, ~shared, _LINKS.c.user_subject != "")


def others_of(connection: sa.Connection, owners: Collection[str] | None) -> dict[str, frozenset[str]]:
    """Owner key → keys of the other subjects of the same person, of those of ``owners`` (None: of all) that have any.

    One query where nobody is linked."""
    users: set[str] | None = None
    if owners is not None:
        users = set()
        for part in parts(sorted(owners)):
            either = sa.or_(_LINKS.c.device_owner.in_(part), _LINKS.c.user_owner.in_(part))
            users.update(connection.execute(joining(_LINKS.c.user_owner).where(either)).scalars())
    pairs = joining(_LINKS.c.user_owner, _LINKS.c.device_owner)
    chosen = [pairs] if users is None else [pairs.where(_LINKS.c.user_owner.in_(part)) for part in parts(sorted(users))]
    persons: dict[str, set[str]] = defaultdict(set)
    for query in chosen:
        for user, device in connection.execute(query):
            persons[user] |= {user, device}
    asked = None if owners is None else frozenset(owners)
    return {
        owner: frozenset(person - {owner})
        for person in persons.values()
        for owner in person
        if asked is None or owner in asked
    }


def ever_linked(connection: sa.Connection, owner: str) -> set[str]:
    """Keys of all whom a link has ever joined with the owner, undone or not: a user's devices, a device's users and
    their other devices."""
    users = set(connection.execute(sa.select(_LINKS.c.user_owner).where(_LINKS.c.device_owner == owner)).scalars())
    found = set(users)
    for part in parts(sorted(users | {owner})):
        found.update(
            connection.execute(sa.select(_LINKS.c.device_owner).where(_LINKS.c.user_owner.in_(part))).scalars()
        )
    return found - {owner}


def touch_known(connection: sa.Connection, owners: Collection[str], touch: int) -> None:
    """Mark those of the owners that the ledger knows as touched, with a number of ``next_touch``."""
    if not owners:
        return
    table = schema.owners
    statement = table.update().where(table.c.owner == sa.bindparam("key")).values(touched=touch)
    connection.execute(statement, [{"key": owner} for owner in sorted(owners)])  # as end_derivation locks them


def touch_relinked(connection: sa.Connection) -> None:
    """Touch the owners whose person a link, or its undoing, has changed since this was last called."""
    waiting = sa.not_(_LINKS.c.owners_touched)  # as the index has it
    if connection.execute(sa.select(_LINKS.c.link_id).where(waiting).limit(1)).first() is None:
        return
    touch = next_touch(connection)
    # locked: an undoing that comes meanwhile marks its row after this has, not before
    query = sa.select(_LINKS.c.link_id, _LINKS.c.device_owner).where(waiting).order_by(_LINKS.c.link_id)
    rows = connection.execute(query.with_for_update()).all()
    concerned = _users_concerned(connection, {row.device_owner for row in rows})
    users = set[str]().union(*concerned.values())
    touch_known(connection, concerned.keys() | users.union(*others_of(connection, users).values()), touch)
    for part in parts([row.link_id for row in rows]):
        connection.execute(_LINKS.update().where(_LINKS.c.link_id.in_(part)).values(owners_touched=True))


def _users_concerned(connection: sa.Connection, devices: Collection[str]) -> dict[str, set[str]]:
    """Device → the users whom it joins now, or joined (as far as its rows tell) when it was last looked at; without
    those that join nobody, now as then."""
    now, before, left = (defaultdict[str, set[str]](set) for _ in range(3))
    for part in parts(sorted(devices)):
        columns = (_LINKS.c.device_owner, _LINKS.c.user_owner, _OPEN.label("is_open"), _LINKS.c.owners_touched)
        for row in connection.execute(sa.select(*columns).where(_LINKS.c.device_owner.in_(part))):
            if row.is_open:
                now[row.device_owner].add(row.user_owner)
                if row.owners_touched:
                    before[row.device_owner].add(row.user_owner)
            elif not row.owners_touched:
                left[row.device_owner].add(row.user_owner)
    found: dict[str, set[str]] = {}
    for device in sorted(devices):
        users = set() if before[device] else left[device]
        for joined in (now[device], before[device]):
            users = users | joined if len(joined) == 1 else users
        if users:
            found[device] = users
    return found
