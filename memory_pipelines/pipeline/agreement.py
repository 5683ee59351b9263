"""Whether all stores hold what the authority shows, nothing less and nothing more; and bringing them back to it.

Belongs here: what every store holds against what is committed. Does not belong here: how a store is made again
(``pipeline.rebuild``), batches under way (``pipeline.recovery``).

All of it is compared at once without a lock; what differs is looked at again while its bucket is held, so a publish
under way is never taken for a fault.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field

import sqlalchemy as sa

from memory_pipelines.erasure.places import KnownByKey
from memory_pipelines.model import bucket_of
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.rebuild import remake
from memory_pipelines.stores import schema
from memory_pipelines.stores.statements import translated
from memory_pipelines.wiring import Platform

COLD_KEY = re.compile(r"[0-9a-f]{32}/([0-9a-f]{32})/[0-9a-f]{32}\.[0-9a-f]{32}\.json\.gz")
"""Of the bucket's objects, those that are archived texts; the group is the owner's key."""
STORES = ("vector", "graph", "cold", "relational", "keys")

Held = dict[str, set[str]]
"""Owner key → ids."""


@dataclass
class Agreement:
    """By store: what committed versions reference and is ``missing``; what is held and nothing references
    (``extra``); what a repair put ``right``; ``lost``: missing, and nothing to make it from."""

    missing: Counter[str] = field(default_factory=Counter)
    extra: Counter[str] = field(default_factory=Counter)
    right: Counter[str] = field(default_factory=Counter)
    lost: Counter[str] = field(default_factory=Counter)

    @property
    def whole(self) -> bool:
        return not (self.missing or self.extra)

    def rows(self) -> list[dict[str, str | int]]:
        """A row a store, for people."""
        names = ("missing", "extra", "right", "lost")
        return [{"store": store, **{name: getattr(self, name)[store] for name in names}} for store in STORES]


@uses_lake
def check(platform: Platform) -> Agreement:
    """Compare all stores; nothing is changed, but batches that were left open in a bucket with a fault are ended."""
    return _go_over(platform, repair=False)


@uses_lake
def repair(platform: Platform) -> Agreement:
    """Remove what nothing references, make again what is missing. Safe to repeat, and beside publishers."""
    return _go_over(platform, repair=True)


def _go_over(platform: Platform, *, repair: bool) -> Agreement:
    result = Agreement()
    suspects: dict[int, set[tuple[str, str]]] = defaultdict(set)
    held = {store: _held(platform, store) for store in STORES}  # before the authority: what comes later is newer
    for store, found in held.items():
        wanted = _wanted(platform, store)
        for key in found.keys() | wanted.keys():
            if found.get(key, set()) != wanted.get(key, set()):
                suspects[bucket_of(key, platform.settings.buckets)].add((store, key))
    for bucket, pairs in sorted(suspects.items()):
        with platform.authority.publishing(bucket):
            platform.publisher.recover(bucket)
            for store in STORES:
                owners = sorted(key for name, key in pairs if name == store)
                if owners:
                    _settle(platform, store, owners, held[store], result, repair=repair)
    return result


def _settle(
    platform: Platform, store: str, owners: list[str], before: Held, result: Agreement, *, repair: bool
) -> None:
    """Look again at owners whose bucket is held; ``before``: what the first look found in the store."""
    wanted = _wanted(platform, store, owners)
    seen = {key: before.get(key, set()) | wanted.get(key, set()) for key in owners}
    there = _still_held(platform, store, seen)
    missing = {key: wanted.get(key, set()) - there[key] for key in owners}
    extra = {key: there[key] - wanted.get(key, set()) for key in owners}
    result.missing[store] += sum(map(len, missing.values()))
    result.extra[store] += sum(map(len, extra.values()))
    if not repair:
        return
    for key, items in extra.items():
        _remove(platform, store, key, items)
    result.right[store] += sum(map(len, extra.values()))
    lacking = [key for key in owners if missing[key]]
    if lacking and store in ("vector", "graph", "cold"):
        remake(platform, store, lacking)
    there = _still_held(platform, store, missing)
    for key in lacking:
        result.lost[store] += len(missing[key] - there[key])
        result.right[store] += len(missing[key] & there[key])


def _held(platform: Platform, store: str) -> Held:
    """Everything that a store holds."""
    if store == "vector":
        return _grouped((owner, entry) for entry, owner in platform.vectors.entries())
    if store == "graph":
        return _grouped(platform.graph.all_versions())
    if store == "cold":
        objects = platform.cold.keys()
        matches = (COLD_KEY.fullmatch(key) for key in objects)
        return _grouped((match[1], match[0]) for match in matches if match)
    if store == "relational":
        return platform.authority.stored_versions()
    return _grouped((key, "key") for key in _owners_in(platform, schema.subject_keys))


def _wanted(platform: Platform, store: str, owners: Collection[str] | None = None) -> Held:
    """What committed versions reference: of some owners, or of everybody."""
    authority = platform.authority
    if store == "vector":
        return authority.routed("vector", owners)
    if store == "graph":
        return {key: {version} for key, version in authority.graphs(owners).items()}
    if store == "cold":
        return authority.archived(owners)
    if store == "relational":
        return authority.pointed(owners)
    having = _owners_in(platform, schema.sensitive_values)
    return {key: {"key"} for key in having if owners is None or key in owners}


def _still_held(platform: Platform, store: str, items: Held) -> Held:
    """Of the items, those that the store holds now."""
    if store == "vector":
        found = platform.vectors.fetch({entry for entries in items.values() for entry in entries})
        return {key: entries & found.keys() for key, entries in items.items()}
    if store == "graph":
        return {key: versions & platform.graph.versions(KnownByKey("", key)) for key, versions in items.items()}
    if store == "cold":
        return {key: {name for name in names if name in platform.cold.keys(name)} for key, names in items.items()}
    now = _held(platform, store) if store == "keys" else platform.authority.stored_versions(list(items))
    return {key: names & now.get(key, set()) for key, names in items.items()}


def _remove(platform: Platform, store: str, key: str, items: set[str]) -> None:
    if store == "vector":
        platform.vectors.delete(items)
    elif store == "graph":
        for version in sorted(items):
            platform.graph.drop(KnownByKey("", key), version)
    elif store == "cold":
        platform.cold.delete(items)
    elif store == "relational":
        platform.authority.drop_unseen(items)
    elif items:
        keys, values = schema.subject_keys, schema.sensitive_values
        used = sa.exists().where(values.c.owner == keys.c.owner)  # one may have come meanwhile
        with translated(), platform.engine.begin() as connection:
            connection.execute(keys.delete().where(keys.c.owner == key, sa.not_(used)))


def _owners_in(platform: Platform, table: sa.Table) -> set[str]:
    with translated(), platform.engine.begin() as connection:
        return set(connection.execute(sa.select(table.c.owner).distinct()).scalars())


def _grouped(pairs: Iterable[tuple[str, str]]) -> Held:
    result: Held = defaultdict(set)
    for key, item in pairs:
        result[key].add(item)
    return dict(result)
