"""Which subjects are one person, for the jobs: whose behaviour counts for whom, and whom a changed link touches.

Belongs here: reading links for many owners at once, in the caller's transaction. Does not belong here: making links
(``links``), what a person's subjects have in common (``pipeline.persons``).

A person is a user and the devices that are linked to this user alone. A login takes no lock: it leaves its row as one
whose owners are not touched yet, and the jobs touch them before they look who waits.
"""

from collections import defaultdict
from collections.abc import Collection, Iterator
from math import inf

import sqlalchemy as sa

from memory_pipelines.stores import schema
from memory_pipelines.stores.schema import next_touch
from memory_pipelines.stores.statements import among, parts

_LINKS = schema.identity_links
_OPEN = _LINKS.c.unlinked_at.is_(None)

MOST_SUBJECTS = 64
"""Of a person. More are a test account's, or a fingerprint's that changes with every visit: they join nobody, like a
shared device, so that what is read for one owner stays bounded."""


def others_of(
    connection: sa.Connection, owners: Collection[str] | None, most: float = MOST_SUBJECTS
) -> dict[str, frozenset[str]]:
    """Owner key → keys of the other subjects of the same person, of those of ``owners`` (None: of all) that have any.

    One query where nobody is linked. Each only looks rows up: who joins whom is found here, since a plan for thousands
    of owners at once must not depend on the database's statistics. A device whose user was erased joins nobody, nor do
    the subjects of a person of more than ``most``."""
    devices = None if owners is None else _devices_near(connection, frozenset(owners))
    persons: dict[str, set[str]] = defaultdict(set)
    for device, user in _only_users(connection, devices):
        persons[user] |= {user, device}
    asked = None if owners is None else frozenset(owners)
    return {
        owner: frozenset(person - {owner})
        for person in persons.values()
        if len(person) <= most
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


def _only_users(connection: sa.Connection, devices: Collection[str] | None) -> Iterator[tuple[str, str]]:
    """Devices (of these; None: of all) that are linked to one user, and this user. A shop's terminal is one row of the
    answer, however many log in there; an erasure takes the name of a user away."""
    device, user = _LINKS.c.device_owner, _LINKS.c.user_owner
    query = sa.select(device, sa.func.min(user).label("user")).where(_OPEN).group_by(device)
    query = query.having(sa.func.min(user) == sa.func.max(user), sa.func.min(_LINKS.c.user_subject) != "")
    queries = [query]
    if devices is not None:
        queries = [query.where(among(connection, device, part)) for part in parts(sorted(devices))]
    for one in queries:
        for row in connection.execute(one):
            yield row.device_owner, row.user


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
    rows = connection.execute(sa.select(_LINKS.c.link_id, _LINKS.c.device_owner, _OPEN.label("is_open")).where(waiting))
    found = rows.all()
    concerned = _users_concerned(connection, {row.device_owner for row in found})
    users = set[str]().union(*concerned.values())
    joined = others_of(connection, users, most=inf)  # also those of a person that has just become too large to be one
    touch_known(connection, concerned.keys() | users.union(*joined.values()), touch)
    for was_open, still in ((True, _OPEN), (False, sa.not_(_OPEN))):
        # not locked before: recall would wait. What was undone since is not as it was read, and goes on waiting
        for part in parts(sorted(row.link_id for row in found if row.is_open == was_open)):
            these = among(connection, _LINKS.c.link_id, part)
            connection.execute(_LINKS.update().where(these, still).values(owners_touched=True))


def _users_concerned(connection: sa.Connection, devices: Collection[str]) -> dict[str, set[str]]:
    """Device → the users whom it joins, or has joined at any time since it was last looked at, which a derivation under
    way may have read; without those that have joined nobody.

    A link that was looked at and is open was so all the time: beside one such user nobody else was joined, beside two
    nobody at all."""
    stayed, moved = defaultdict[str, set[str]](set), defaultdict[str, set[str]](set)
    for part in parts(sorted(devices)):
        columns = (_LINKS.c.device_owner, _LINKS.c.user_owner, _OPEN.label("is_open"), _LINKS.c.owners_touched)
        for row in connection.execute(sa.select(*columns).where(among(connection, _LINKS.c.device_owner, part))):
            if not row.owners_touched:
                moved[row.device_owner].add(row.user_owner)
            elif row.is_open:
                stayed[row.device_owner].add(row.user_owner)
    found = {device: stayed[device] or moved[device] for device in sorted(devices)}
    return {device: users for device, users in found.items() if users and len(stayed[device]) < 2}
