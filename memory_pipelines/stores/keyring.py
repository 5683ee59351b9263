"""The key ring: a key for every subject, wrapped by the master key, and the values that are encrypted with it.

Belongs here: keys and ciphers, and their rows in the relational store. Does not belong here: finding sensitive
values, deciding who may see one, where the master key lies (``masterkey``).

AES-SIV (RFC 5297) everywhere: deterministic, so that every run gives the same token to the same value, and bound to
owner and kind. The first 60 bits of a value's synthetic IV are its token: without the subject's key they are noise.
"""

import secrets
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESSIV

from memory_pipelines.errors import IntegrityError, PermanentError, SettingError
from memory_pipelines.model import Owner
from memory_pipelines.stores import schema
from memory_pipelines.stores.masterkey import MasterKey, MasterKeySource
from memory_pipelines.stores.statements import parts, translated, upsert
from memory_pipelines.stores.vault import TOKEN, Secret, token

KEY_BYTES = 64
"""AES-256 twice, as AES-SIV needs it."""

_KEYS, _VALUES, _MASTER = schema.subject_keys, schema.sensitive_values, schema.master_key


@dataclass(frozen=True)
class RingCheck:
    """What ``KeyRing.check`` counted; ``broken`` keys or values cannot be opened."""

    keys: int
    values: int
    broken: int


class KeyRing:
    """A ``Vault`` over an engine of ``database.connect``.

    Raises SettingError where the master key is missing or another one than the ring was made with; a new one is only
    made for a ring that has none yet. All else as ``statements.translated`` says."""

    def __init__(self, engine: sa.Engine, source: MasterKeySource) -> None:
        self._engine = engine
        self._source = source

    def keep(self, secrets: Collection[Secret]) -> dict[Secret, str]:
        """The token of each value; keys and values are read and written for all of them together."""
        if not secrets:
            return {}
        owners = {owner: owner.key for owner in {secret.owner for secret in secrets}}
        made: dict[Secret, str] = {}
        with translated(), self._engine.begin() as connection:
            master = self._open(connection, create=True)
            assert master is not None, "made"
            keys = self._keys(connection, sorted(owners.values()), master)
            rows: dict[tuple[str, str], dict[str, object]] = {}
            for secret in secrets:
                owner = owners[secret.owner]
                cipher = keys[owner].encrypt(_bytes(secret.value), _bound(owner, secret.kind))
                made[secret] = name = token(secret.kind, cipher)
                rows[owner, name] = {"owner": owner, "token": name, "cipher": cipher}
            upsert(connection, _VALUES, [rows[key] for key in sorted(rows)], update=())
        return made

    def reveal(self, wanted: Mapping[Owner, Collection[str]]) -> dict[Owner, dict[str, str]]:
        """The values of the owners' own tokens, in one statement; without a master key, nothing."""
        names = {owner.key: owner for owner, tokens in wanted.items() if tokens}
        pairs = sorted((owner.key, t) for owner, tokens in wanted.items() for t in tokens if TOKEN.fullmatch(t))
        result: dict[Owner, dict[str, str]] = {owner: {} for owner in wanted}
        if not pairs:
            return result
        query = sa.select(_VALUES.c.owner, _VALUES.c.token, _VALUES.c.cipher, _KEYS.c.wrapped).join(
            _KEYS, _KEYS.c.owner == _VALUES.c.owner
        )
        with translated(), self._engine.begin() as connection:
            master = self._open(connection, create=False)
            if master is None:
                return result
            for part in parts(pairs):
                for row in connection.execute(query.where(sa.tuple_(_VALUES.c.owner, _VALUES.c.token).in_(part))):
                    key = master.unwrap(row.owner, row.wrapped)
                    result[names[row.owner]][row.token] = _opened(key, row.owner, row.token, row.cipher)
        return result

    def rotate(self) -> int:
        """Wrap every key anew with a fresh master key, all or none; returns how many.

        Tokens and values stay. Until it has ended others wait for the ring; then they need the new key."""
        with translated(), self._engine.begin() as connection:
            master = self._open(connection, create=False, alone=True)
            if master is None:
                raise PermanentError("the key ring is empty: there is nothing to rotate")
            fresh = self._source.fresh()
            owners = connection.execute(sa.select(_KEYS.c.owner).order_by(_KEYS.c.owner)).scalars().all()
            for part in parts(owners):
                rows = connection.execute(sa.select(_KEYS).where(_KEYS.c.owner.in_(part))).all()
                anew = [{"owner": o, "wrapped": fresh.rewrap(o, master.unwrapped(o, wrapped))} for o, wrapped in rows]
                upsert(connection, _KEYS, anew)
            connection.execute(_MASTER.update().values(fingerprint=fresh.fingerprint))
        with translated(), self._engine.begin() as connection:
            # the next key takes the file's place under the lock, or a later rotation's key could be taken for it;
            # killed before this, whoever comes next does it
            self._open(connection, create=False)
        return len(owners)

    def check(self) -> RingCheck:
        """Open every key and every value of the ring."""
        query = sa.select(_VALUES, _KEYS.c.wrapped).outerjoin(_KEYS, _KEYS.c.owner == _VALUES.c.owner)
        keys = values = broken = 0
        with translated(), self._engine.begin() as connection:
            master = self._open(connection, create=False)
            if master is None:
                return RingCheck(0, 0, 0)
            for row in connection.execute(sa.select(_KEYS)):
                keys += 1
                broken += not _opens(master, row)
            for row in connection.execute(query):
                values += 1
                broken += not _opens(master, row)
        return RingCheck(keys, values, broken)

    def _open(self, connection: sa.Connection, *, create: bool, alone: bool = False) -> MasterKey | None:
        """The master key that the ring was made with; held against a rotation until the transaction ends.

        None for a ring that is not there yet, unless ``create``, and for a reader without a key."""
        held = sa.select(_MASTER.c.fingerprint).with_for_update(read=not alone)
        known = connection.execute(held).scalar_one_or_none()
        if known is None:
            if not create:
                return None
            fingerprint = self._source.load(make=True)[0].fingerprint
            upsert(connection, _MASTER, [{"one": 1, "fingerprint": fingerprint}], update=())
            known = connection.execute(held).scalar_one()  # another process may have been first
        for _ in range(2):  # between the reading of both files another reader may have put the next key in its place
            keys = self._source.load(make=False)
            if not keys and not create and not alone:
                return None
            for key in keys:
                if key.fingerprint == known:
                    self._source.settle(key)
                    return key
        how = "opens with another master key" if keys else "was made with a master key that is not here"
        raise SettingError(f"the key ring {how}; {self._source.where}")

    @staticmethod
    def _keys(connection: sa.Connection, owners: Sequence[str], master: MasterKey) -> dict[str, AESSIV]:
        """The keys of the owners; missing ones are made. Of two that are made at once, one stays, and both find it."""
        wrapped = _wrapped(connection, owners)
        missing = [owner for owner in owners if owner not in wrapped]
        if missing:
            fresh = [{"owner": o, "wrapped": master.rewrap(o, secrets.token_bytes(KEY_BYTES))} for o in missing]
            upsert(connection, _KEYS, fresh, update=())
            wrapped |= _wrapped(connection, missing)
        return {owner: master.unwrap(owner, wrapped[owner]) for owner in owners}


def _wrapped(connection: sa.Connection, owners: Iterable[str]) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    for part in parts(list(owners)):
        rows = connection.execute(sa.select(_KEYS.c.owner, _KEYS.c.wrapped).where(_KEYS.c.owner.in_(part)))
        found |= {row.owner: row.wrapped for row in rows}
    return found


def _bytes(value: str) -> bytes:
    return value.encode("utf-8", "surrogatepass")


def _bound(owner: str, kind: str) -> list[bytes]:
    return [owner.encode(), kind.encode()]


def _opened(key: AESSIV, owner: str, name: str, cipher: bytes) -> str:
    kind = name[1:].partition(":")[0]
    try:
        return key.decrypt(cipher, _bound(owner, kind)).decode("utf-8", "surrogatepass")
    except InvalidTag:
        raise IntegrityError(f"a kept value of {owner} does not open with its key") from None


def _opens(master: MasterKey, row: sa.Row[Any]) -> bool:
    """Whether a row's key opens, and its value with it where it has one; a value without its key does not."""
    if row.wrapped is None:
        return False
    try:
        key = master.unwrap(row.owner, row.wrapped)
        if "token" in row._fields:
            _opened(key, row.owner, row.token, row.cipher)
    except IntegrityError:
        return False
    return True
