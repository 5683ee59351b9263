"""Publishing batches that a killed process left open: rolled forward or back without waiting for the next publish.

Belongs here: which batches are taken for left, and who may end them. Does not belong here: how a batch ends
(``stores.publish``).
"""

from dataclasses import dataclass
from datetime import timedelta

from memory_pipelines.wiring import Platform

LEFT_AFTER = timedelta(minutes=5)
"""Age from which an open batch is looked at; whether somebody still works on it, its bucket's lock tells."""
COMMITTED = "committed"


@dataclass(frozen=True)
class Recovered:
    """Batches that were ended, and buckets that somebody holds: their publisher lives."""

    forward: int
    back: int
    busy: int


def left_open(platform: Platform, after: timedelta = LEFT_AFTER) -> list[int]:
    """The buckets that nobody holds, with open batches that are older than ``after``."""
    left = []
    for bucket in _old(platform, after):
        with platform.authority.publishing_if_free(bucket) as free:
            left += [bucket] if free else []
    return left


def _old(platform: Platform, after: timedelta) -> list[int]:
    latest = platform.clock.now() - after
    batches = platform.authority.open_batches()
    return sorted({batch.bucket for batch in batches if batch.since is None or batch.since <= latest})


def recover(platform: Platform, after: timedelta = LEFT_AFTER) -> Recovered:
    """End what was left open in buckets that nobody holds. Safe to repeat, and beside publishers."""
    ended, busy = [], 0
    for bucket in _old(platform, after):
        with platform.authority.publishing_if_free(bucket) as free:
            if free:
                ended += platform.publisher.recover(bucket)
            else:
                busy += 1
    forward = sum(batch.state == COMMITTED for batch in ended)
    return Recovered(forward, len(ended) - forward, busy)
