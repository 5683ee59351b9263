"""The fault matrix of publishing: every step of the protocol with everything that may happen to it, as it is measured.

``python -m suites.fault_matrix`` (with ``tests`` on the path) prints the table of docs/stores-protocol.md.
"""

from collections.abc import Callable
from dataclasses import dataclass

from suites.publish_world import DIMENSION, LATER, Faults, Killed, Stores, World, expected, world

from memory_pipelines.errors import MemoryPipelinesError, PermanentError, StoreUnavailableError
from memory_pipelines.stores import database
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryVectors
from memory_pipelines.stores.publish import STEPS, OwnerState, Step
from memory_pipelines.stores.relational import PostgresAuthority

OLD, NEW = "old", "new"


def _unavailable() -> BaseException:
    return StoreUnavailableError("a store", "A_SETTING", "Timeout")


def _full() -> BaseException:
    return PermanentError("the store's disk is full")


def _raising(make: Callable[[], BaseException]) -> Callable[[], object]:
    def fail() -> object:
        raise make()

    return fail


FAULTS: dict[str, Callable[[str, int], Faults]] = {
    "killed before it": lambda call, number: Faults(number, "before"),
    "killed in the middle": lambda call, number: Faults(number, "torn"),
    "killed after it": lambda call, number: Faults(ended={call: _raising(Killed)}),
    "store down": lambda call, number: Faults(refuse={call: _unavailable}),
    "done, answered too late": lambda call, number: Faults(ended={call: _raising(_unavailable)}),
    "disk full": lambda call, number: Faults(refuse={call: _full}),
}


@dataclass(frozen=True)
class Outcome:
    """What readers see after the fault, and after the recovery alone; ``ended``: how many batches it ended."""

    seen: str
    after: str
    ended: int


def fakes() -> Stores:
    """Stores in memory, empty."""
    engine = database.connect("sqlite://")
    vectors = MemoryVectors()
    vectors.ensure(DIMENSION)
    return Stores(engine, PostgresAuthority(engine), vectors, MemoryGraph(), MemoryHot(), MemoryCold())


def outcome(step: Step, fault: str) -> Outcome:
    """One publish with one fault at the first call of a step, then a recovery, in stores of its own.

    Raises AssertionError where a reader sees half a batch, or a store holds anything but what is visible."""
    stores, at = fakes(), world()
    stores.publish(at.bucket, at.old)
    calls = _calls_of(at)
    try:
        stores.publish(at.bucket, at.new, LATER, FAULTS[fault](step.call, calls.index(step.call) + 1))
    except (Killed, MemoryPipelinesError):
        pass
    else:
        raise AssertionError(f"{step.name} is not called")
    seen = side(stores, at)
    ended = stores.publisher().recover(at.bucket)
    after = side(stores, at)
    stores.assert_clean(at.bucket, at.owners)
    return Outcome(seen, after, len(ended))


def side(stores: Stores, at: World) -> str:
    """Which of the two states readers see of everybody."""
    before = {s.owner: s for s in at.old}
    old = [expected(before.get(s.owner, OwnerState(s.owner))) for s in at.new]
    new, seen = [expected(s) for s in at.new], [stores.read(s.owner) for s in at.new]
    assert seen in (old, new), "half a batch is visible"
    return NEW if seen == new else OLD


def _calls_of(at: World) -> list[str]:
    stores, faults = fakes(), Faults()
    stores.publish(at.bucket, at.old)
    stores.publish(at.bucket, at.new, LATER, faults)
    return faults.calls


def matrix() -> str:
    """The table, in Markdown."""
    lines = ["| step | call | " + " | ".join(FAULTS) + " |", "|---" * (2 + len(FAULTS)) + "|"]
    for step in STEPS:
        cells = []
        for fault in FAULTS:
            found = outcome(step, fault)
            cells.append(f"{found.seen}{_recovery(found)}")
        lines.append(f"| {step.phase}: {step.name} | `{step.call}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _recovery(found: Outcome) -> str:
    if not found.ended:
        return ""
    return ", rolled back" if found.after == OLD else ", rolled forward"


if __name__ == "__main__":
    print(matrix())
