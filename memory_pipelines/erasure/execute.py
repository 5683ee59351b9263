"""Carrying out an erasure: unreachable at once, then deleted place by place, purged, searched, certified.

Belongs here: the order of the steps and what the ledger keeps between them. Does not belong here: how a
place is emptied (``registry`` lists them). Every step looks before it acts, so a run that is killed anywhere
and started again ends the same; ``erasures.progress`` keeps what later steps could not find out any more.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from memory_pipelines.erasure.certificate import GONE, UNREACHABLE, Certificate, sign
from memory_pipelines.erasure.landed import trace
from memory_pipelines.erasure.places import Stores, Target, Trace
from memory_pipelines.erasure.plan import look, models_of, quoting
from memory_pipelines.erasure.registry import COPIES, PLACES, RELATIONAL, REMAINS, RING
from memory_pipelines.erasure.registry import HIDDEN as HIDDEN_TABLES
from memory_pipelines.erasure.requests import ERASED, HIDDEN, REQUESTED, Request, load, save
from memory_pipelines.erasure.scan import Evidence, gather, residues
from memory_pipelines.erasure.tombstones import Tombstone, keep_tombstone
from memory_pipelines.errors import PermanentError, TransientError
from memory_pipelines.model import Owner, iso, stable_hash
from memory_pipelines.stores import schema
from memory_pipelines.stores.exclusion import PATIENCE_SECONDS
from memory_pipelines.stores.schema import next_touch
from memory_pipelines.stores.statements import parts, translated, upsert
from memory_pipelines.tables import ALL, TURNS

VISIBLE = "visible memories"


def execute(
    stores: Stores, request_id: str, at: datetime, secret: bytes, *, patience_seconds: int = PATIENCE_SECONDS
) -> Certificate:
    """Erase the person of an approved request; returns the certificate *physically gone*. Safe to repeat.

    Raises PermanentError before the approval, TransientError where jobs hold the lake for longer than
    ``patience_seconds`` (the person is unreachable by then) or where something is left over.
    """
    request = load(stores.engine, request_id)
    if request.state == REQUESTED:
        raise PermanentError(f"erasure request {request_id} is not approved")
    if request.owner is None:
        return request.certificates[GONE]
    hide(stores, request.owner, request_id, at)
    with stores.exclusion.alone(patience_seconds):
        request = load(stores.engine, request_id)
        if request.owner is None:  # another process was faster
            return request.certificates[GONE]
        hide(stores, request.owner, request_id, at)  # whoever published meanwhile has ended
        _certify_hidden(stores, request.owner, request_id, at, secret)
        target, evidence, progress = _remember(stores, request.owner, request_id)
        _delete(stores, target, request_id, progress)
        _have_made_anew(stores, target.trace, progress["others"])
        for spec in ALL:
            stores.lake.purge(spec)
        _pin_versions(stores, at)
        return _certify_gone(stores, target, evidence, request_id, at, secret)


def hide(stores: Stores, owner: Owner, request_id: str, at: datetime) -> None:
    """The first step of an approved request: unreachable in one transaction, and kept from coming back by landing."""
    target = Target(owner)
    copies = stores.hot.held(owner)
    memories, people, stones = schema.memories, schema.people, schema.tombstones
    mine = (memories.c.owner == owner.key, memories.c.version.is_not(None))
    with translated(), stores.engine.begin() as connection:
        progress = _progress(connection, request_id)
        if "hidden" not in progress:
            before = {place.name: place.held(connection, [target]).get(owner.key, 0) for place in RELATIONAL}
            visible = connection.execute(sa.select(sa.func.count()).select_from(memories).where(*mine)).scalar_one()
            progress |= {"hidden": before, "visible": visible, "copies": copies}
        epoch = connection.execute(sa.select(people.c.epoch).where(people.c.owner == owner.key)).scalar_one_or_none()
        known = connection.execute(sa.select(stones).where(stones.c.owner == owner.key)).mappings().first()
        stone: dict[str, Any] = {"owner": owner.key, "before": at, "epoch": epoch or 0}
        if known is not None:
            stone |= {"before": max(at, known["before"]), "epoch": max(epoch or 0, known["epoch"])}
        upsert(connection, stones, [stone])
        connection.execute(memories.update().where(*mine).values(version=None))
        for place in HIDDEN_TABLES:
            place.drop(connection, target)
        save(connection, request_id, state=HIDDEN, progress=progress)
    keep_tombstone(stores.cold, owner.key, Tombstone(stone["before"], stone["epoch"]))
    stores.hot.wipe(owner)


def _progress(connection: sa.Connection, request_id: str) -> dict[str, Any]:
    table = schema.erasures
    query = sa.select(table.c.progress).where(table.c.request_id == request_id).with_for_update()
    return dict(connection.execute(query).scalar_one())


def _remember(stores: Stores, owner: Owner, request_id: str) -> tuple[Target, Evidence, dict[str, Any]]:
    """Keep what the landed turns tell, before they go: the trace, counts of every place, what is to be made anew."""
    progress = load(stores.engine, request_id).progress
    fresh = trace(stores.lake, owner)
    target = Target(owner, fresh | Trace.from_json(progress["trace"]) if "trace" in progress else fresh)
    if "before" not in progress:
        # what the first transaction took away, and what is there yet
        now = look(stores, target, PLACES)
        counted = progress["hidden"] | {COPIES.name: progress["copies"]}
        progress["before"] = {name: max(n, counted.get(name, 0)) for name, n in now.items()}
        progress["turns_version"] = stores.lake.version(TURNS)
    progress["trace"] = target.trace.as_json()
    progress["others"] = sorted(quoting(stores, target).union(progress.get("others", ())))
    progress["models"] = sorted({*models_of(stores, owner), *progress.get("models", ())})
    with translated(), stores.engine.begin() as connection:
        save(connection, request_id, progress=progress)
    return target, gather(stores.lake, target, progress["turns_version"]), progress


def _delete(stores: Stores, target: Target, request_id: str, progress: dict[str, Any]) -> None:
    """Empty the places in their order; the ledger notes each that was emptied."""
    for place in PLACES:
        if place.count(stores, [target]):
            place.delete(stores, target)
            progress["emptied"] = sorted({place.name, *progress.get("emptied", ())})
            with translated(), stores.engine.begin() as connection:
                save(connection, request_id, progress=progress)


def _have_made_anew(stores: Stores, of: Trace, others: list[str]) -> None:
    """Touch the days whose exchanges, and the owners whose rows, are other ones without the person."""
    days, owners = schema.days, schema.owners
    with translated(), stores.engine.begin() as connection:
        touch = next_touch(connection)
        for part in parts(sorted(of.around)):
            connection.execute(days.update().where(days.c.day.in_(part)).values(touched=touch))
        for part in parts(others):
            connection.execute(owners.update().where(owners.c.owner.in_(part)).values(touched=touch))


def _pin_versions(stores: Stores, at: datetime) -> None:
    """Purged versions cannot be read: what pins them is told the newest ones, derivations under way begin anew."""
    table = schema.manifests
    with translated(), stores.engine.begin() as connection:
        connection.execute(schema.plans.delete())
        last = connection.execute(sa.select(table).order_by(table.c.manifest_id.desc()).limit(1)).mappings().first()
        if last is None:
            return
        versions = {spec.name: stores.lake.version(spec) for spec in ALL if spec.name in last["versions"]}
        if versions != last["versions"]:
            fresh = {name: last[name] for name in ("landed_through", "model_set")}
            connection.execute(table.insert().values(created_at=at, versions=versions, **fresh))


# ---- certificates


def _certify_hidden(stores: Stores, owner: Owner, request_id: str, at: datetime, secret: bytes) -> None:
    """The first certificate: no reader reaches anything any more."""
    request = load(stores.engine, request_id)
    if UNREACHABLE in request.certificates:
        return
    target, memories = Target(owner), schema.memories
    before = {VISIBLE: request.progress["visible"], COPIES.name: request.progress["copies"]}
    before |= {place.name: request.progress["hidden"][place.name] for place in HIDDEN_TABLES}
    after = look(stores, target, [COPIES, *HIDDEN_TABLES])
    with translated(), stores.engine.begin() as connection:
        mine = (memories.c.owner == target.key, memories.c.version.is_not(None))
        after[VISIBLE] = connection.execute(sa.select(sa.func.count()).select_from(memories).where(*mine)).scalar_one()
        body = _body(request, UNREACHABLE, at, before, after)
        certificate = {UNREACHABLE: sign(body, secret).as_dict()}
        save(connection, request_id, certificate=certificate)


def _certify_gone(
    stores: Stores, target: Target, evidence: Evidence, request_id: str, at: datetime, secret: bytes
) -> Certificate:
    """Read everything again; the second certificate if nothing is left. The name is forgotten with it."""
    after = look(stores, target, PLACES)
    left = {name: n for name, n in after.items() if n} | residues(stores, evidence)
    if left:
        raise TransientError(f"erasure {request_id} left {sum(left.values())} traces in {', '.join(sorted(left))}")
    request = load(stores.engine, request_id)
    body = _body(request, GONE, at, request.progress["before"], after)
    body["made_anew"] = {"days": len(target.trace.around), "owners": len(request.progress["others"])}
    body["models"] = request.progress["models"]
    body["residues"] = 0
    body["remains"] = list(REMAINS)
    certificate = sign(body, secret)
    certificates = {kind: known.as_dict() for kind, known in request.certificates.items()}
    certificates[GONE] = certificate.as_dict()
    with translated(), stores.engine.begin() as connection:
        save(connection, request_id, state=ERASED, subject=None, progress={}, certificate=certificates)
    return certificate


def _body(
    request: Request, kind: str, at: datetime, before: Mapping[str, int], after: Mapping[str, int]
) -> dict[str, Any]:
    return {
        "certificate": kind,
        "request_id": request.request_id,
        "owner": request.key,
        "tenant": stable_hash("tenant", request.tenant),
        "requested_at": iso(request.requested_at),
        "approved_at": request.progress["approved_at"],
        "issued_at": iso(at),
        "places": {name: {"before": before[name], "after": after[name]} for name in sorted(before)},
        "survivors": sum(after.values()),
        "key": _key(before, after),
    }


def _key(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """What became of the key that the person's sensitive fields were encrypted with."""
    name = RING[0].name
    return ("destroyed" if before[name] else "none was made") if not after[name] else "kept"
