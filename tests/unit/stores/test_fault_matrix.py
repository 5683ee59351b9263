"""Every step of publishing with every fault: all or nothing, as the document says."""

from pathlib import Path

import pytest
from suites import fault_matrix
from suites.fault_matrix import FAULTS, NEW, OLD, outcome
from suites.publish_world import LATER, Faults, world

from memory_pipelines.stores.publish import STEPS, Step

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "stores-protocol.md"


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.call)
def test_all_or_nothing(step: Step, fault: str) -> None:
    found = outcome(step, fault)
    assert found.after == found.seen, "a recovery changes nothing that a reader sees"
    committed = step.phase == "finish" or (
        step.phase == "commit" and fault in ("killed after it", "done, answered too late")
    )
    torn = step.phase == "commit" and fault == "killed in the middle"  # one transaction: done whole
    assert found.seen == (NEW if committed or torn else OLD)


def test_the_steps_are_all_that_a_publish_calls_in_their_order() -> None:
    stores, at, faults = fault_matrix.fakes(), world(), Faults()
    stores.publish(at.bucket, at.old)
    stores.publish(at.bucket, at.new, LATER, faults)
    assert list(dict.fromkeys(faults.calls)) == [step.call for step in STEPS]


def test_the_document_has_the_matrix_as_it_is() -> None:
    assert fault_matrix.matrix() in DOCUMENT.read_text(encoding="utf-8")
