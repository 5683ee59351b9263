"""Requests to forget somebody: filed, approved, carried out.

Belongs here: the rows of ``erasures``. Does not belong here: the erasure itself (``execute``).
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory_pipelines.erasure.certificate import Certificate
from memory_pipelines.errors import InputError, PermanentError
from memory_pipelines.model import Owner, iso, stable_hash
from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import translated, upsert

REQUESTED = "requested"
APPROVED = "approved"
HIDDEN = "unreachable"
ERASED = "erased"

_TABLE = schema.erasures


@dataclass(frozen=True)
class Request:
    """One request. ``owner`` is None once the name is forgotten; ``certificates`` by kind."""

    request_id: str
    key: str
    tenant: str
    owner: Owner | None
    state: str
    requested_at: datetime
    approved_by: str | None
    progress: dict[str, Any]
    certificates: dict[str, Certificate]


def request(engine: sa.Engine, owner: Owner, by: str, at: datetime) -> str:
    """File a request; returns its id. While one for the owner is open, that one's id is returned."""
    with translated(), engine.begin() as connection:
        states = connection.execute(
            sa.select(_TABLE.c.request_id, _TABLE.c.state).where(_TABLE.c.owner == owner.key)
        ).all()
        for request_id, state in states:
            if state != ERASED:
                return str(request_id)
        request_id = stable_hash("erasure", owner.key, len(states))
        row = {
            "request_id": request_id,
            "owner": owner.key,
            "tenant": owner.tenant,
            "subject": owner.subject,
            "state": REQUESTED,
            "requested_at": at,
            "progress": {"requested_by": by},
        }
        upsert(connection, _TABLE, [row], update=())
    return request_id


def approve(engine: sa.Engine, request_id: str, by: str, at: datetime) -> None:
    """Approve a request; one that is approved already stays as it is.

    Raises InputError for an unknown one, PermanentError if who asked would approve."""
    with translated(), engine.begin() as connection:
        found = _row(connection, request_id)
        if found["state"] == REQUESTED:
            if found["progress"].get("requested_by") == by:
                raise PermanentError("somebody else has to approve than the one who asked")
            progress = found["progress"] | {"approved_at": iso(at)}
            values = {"state": APPROVED, "approved_by": by, "progress": progress}
            connection.execute(_TABLE.update().where(_TABLE.c.request_id == request_id).values(**values))


def load(engine: sa.Engine, request_id: str) -> Request:
    """The request. Raises InputError for an unknown one."""
    with translated(), engine.begin() as connection:
        return _request(_row(connection, request_id))


def requests(engine: sa.Engine, state: str | None = None) -> list[Request]:
    """All requests, or those in one state, oldest first."""
    query = sa.select(_TABLE).order_by(_TABLE.c.requested_at, _TABLE.c.request_id)
    if state is not None:
        query = query.where(_TABLE.c.state == state)
    with translated(), engine.begin() as connection:
        return [_request(row) for row in connection.execute(query).mappings()]


def save(connection: sa.Connection, request_id: str, **values: Any) -> None:
    """Set columns of a request in the caller's transaction."""
    connection.execute(_TABLE.update().where(_TABLE.c.request_id == request_id).values(**values))


def erased_rows(engine: sa.Engine) -> dict[str, int]:
    """Landed rows that erasures took away: ``turns``, ``behaviour`` and ``quarantine``. Rows in = rows
    accounted for + these."""
    total = {"turns": 0, "behaviour": 0, "quarantine": 0}
    for done in requests(engine, ERASED):
        for certificate in done.certificates.values():
            for name in total:
                total[name] += certificate.body["places"].get(f"lake.{name}", {"before": 0})["before"]
    return total


def _row(connection: sa.Connection, request_id: str) -> sa.RowMapping:
    query = sa.select(_TABLE).where(_TABLE.c.request_id == request_id).with_for_update()
    row = connection.execute(query).mappings().first()
    if row is None:
        raise InputError(f"there is no erasure request {request_id}")
    return row


def _request(row: sa.RowMapping) -> Request:
    owner = None if row["subject"] is None else Owner(row["tenant"], row["subject"])
    certificates = {kind: Certificate.from_dict(value) for kind, value in (row["certificate"] or {}).items()}
    return Request(
        row["request_id"],
        row["owner"],
        row["tenant"],
        owner,
        row["state"],
        row["requested_at"],
        row["approved_by"],
        row["progress"],
        certificates,
    )
