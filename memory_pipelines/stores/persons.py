"""Which subjects are one person, for the jobs: whose behaviour counts for whom, and whom a changed link touches.

Belongs here: reading links for many owners at once, in the caller's transaction. Does not belong here: making links
(``links``), what a person's subjects have in common (``pipeline.persons``).

A person is a user and the devices that are linked to this user alone. A login takes no lock: it leaves its row as one
whose owners are not touched yet, and the jobs touch them before they look who waits.
"""

from collections import defaultdict
from collections.abc import Collection

import sqlalchemy as sa

from memory_pipelines.stores import schema
from memory_pipelines.stores.schema import next_touch
from memory_pipelines.stores.statements import among, parts

_LINKS = schema.identity_links
_OPEN = _LINKS.c.unlinked_at.is_(None)


def others_of(connection: sa.Connection, owners: Collection[str] | None) -> dict[str, frozenset[str]]:
    """Owner key → keys of the other subjects of the same person, of those of ``owners`` (None: of all) that have any.

    One query where nobody is linked. Each only looks rows up: who joins whom is found here, since a plan for thousands
    of owners at once must not depend on the database's statistics. A device whose user was erased joins nobody."""
    devices = None if owners is None else _devices_near(connection, frozenset(owners))
    persons: dict[str, set[str]] = defaultdict(set)
    for device, users in _users(connection, devices).items():
        (user, named), *more = users.items()
        if named and not more:
            persons[user] |= {user, device}
    asked = None if owners is None else frozenset(owners)
    return {
        owner: frozenset(person - {owner})
        for person in persons.values()
        for owner in person
        if asked is None or owner in asked
    }


def _devices_near(connection: sa.Connection, owners: frozenset[str]) -> set[str]:
    """Devices with an open link to one of the owners, or to the only user of a device among them."""
    device, user = _LINKS.c.device_owner, _LINKS.c.user_owner
    users: dict[str, set[str]] = defaultdict(set)
    for part in parts(sorted(owners)):
        sides = (sa.select(device, user).where(_OPEN, among(connection, side, part)) for side in (device, user))
        for row in connection.execute(sa.union_all(*sides)):
            users[row.device_owner].add(row.user_owner)
    found = set(users)
    only = {one for owner in owners & found if len(users[owner]) == 1 for one in users[owner]}
    for part in parts(sorted(only - owners)):
        found.update(connection.execute(sa.select(device).where(_OPEN, among(connection, user, part))).scalars())
    return found


def _users(connection: sa.Connection, devices: Collection[str] | None) -> dict[str, dict[str, bool]]:
    """Device (of these; None: of all) → key of each user that it is linked to, and whether the user has a name still:
    an erasure takes it away."""
    query = sa.select(_LINKS.c.device_owner, _LINKS.c.user_owner, _LINKS.c.user_subject).where(_OPEN)
    queries = [query]
    if devices is not None:
        queries = [query.where(among(connection, _LINKS.c.device_owner, part)) for part in parts(sorted(devices))]
    found: dict[str, dict[str, bool]] = defaultdict(dict)
    for one in queries:
        for device, user, subject in connection.execute(one):
            found[device][user] = subject != ""
    return found


def ever_linked(connection: sa.Connection, owner: str) -> set[str]:
    """Keys of all whom a link has ever joined with the owner, undone or not: a user's devices, a device's users and
    their other devices."""
    users = set(connection.execute(sa.select(_LINKS.c.user_owner).where(_LINKS.c.device_owner == owner)).scalars())
    found = set(users)
    for part in parts(sorted(users | {owner})):
        query = sa.select(_LINKS.c.device_owner).where(among(connection, _LINKS.c.user_owner, part))
        found.update(connection.execute(query).scalars())
    return found - {owner}


def touch_known(connection: sa.Connection, owners: Collection[str], touch: int) -> None:
    """Mark those of the owners that the ledger knows as touched, with a number of ``next_touch``."""
    table = schema.owners
    for part in parts(sorted(owners)):
        these = among(connection, table.c.owner, part)
        in_order = sa.select(table.c.owner).where(these).order_by(table.c.owner)  # as end_derivation locks them
        connection.execute(in_order.with_for_update()).all()
        connection.execute(table.update().where(these).values(touched=touch))


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
        connection.execute(_LINKS.update().where(among(connection, _LINKS.c.link_id, part)).values(owners_touched=True))


def _users_concerned(connection: sa.Connection, devices: Collection[str]) -> dict[str, set[str]]:
    """Device → the users whom it joins now, or joined (as far as its rows tell) when it was last looked at; without
    those that join nobody, now as then."""
    now, before, left = (defaultdict[str, set[str]](set) for _ in range(3))
    for part in parts(sorted(devices)):
        columns = (_LINKS.c.device_owner, _LINKS.c.user_owner, _OPEN.label("is_open"), _LINKS.c.owners_touched)
        for row in connection.execute(sa.select(*columns).where(among(connection, _LINKS.c.device_owner, part))):
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
