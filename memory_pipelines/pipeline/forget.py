"""Erasure over the stores.

Belongs here: approved requests carried out, the weekly sweep. Does not belong here: what a place is or how it
is emptied (``erasure``).
"""

from dataclasses import dataclass

from memory_pipelines.erasure.certificate import Certificate, certificate_secret
from memory_pipelines.erasure.execute import execute
from memory_pipelines.erasure.plan import Plan, dry_run
from memory_pipelines.erasure.requests import APPROVED, HIDDEN, approve, request, requests
from memory_pipelines.erasure.sweep import Sweep, sweep
from memory_pipelines.model import Owner
from memory_pipelines.wiring import Platform


def request_erasure(platform: Platform, owner: Owner, by: str) -> str:
    """File a request to forget somebody; returns its id. Nothing happens before its approval."""
    return request(platform.engine, owner, by, platform.clock.now())


def approve_erasure(platform: Platform, request_id: str, by: str) -> None:
    approve(platform.engine, request_id, by, platform.clock.now())


def plan_erasure(platform: Platform, owner: Owner) -> Plan:
    """The dry run: what every place holds of the person."""
    with platform.exclusion.shared():
        return dry_run(platform.erasure_stores, owner)


def waiting_erasures(platform: Platform) -> list[str]:
    """Ids of requests that are approved and not carried out to the end."""
    engine = platform.engine
    return [r.request_id for state in (APPROVED, HIDDEN) for r in requests(engine, state)]


@dataclass(frozen=True)
class Erased:
    """One request carried out."""

    request_id: str
    certificate: Certificate

    @property
    def survivors(self) -> int:
        """What was still found after the deletion; 0 in every certificate that is issued."""
        return self.certificate.survivors


def erase_waiting(platform: Platform) -> list[Erased]:
    """Carry out every approved request; one that was killed is resumed."""
    secret = certificate_secret(platform.settings)
    return [
        Erased(request_id, execute(platform.erasure_stores, request_id, platform.clock.now(), secret))
        for request_id in waiting_erasures(platform)
    ]


def sweep_erased(platform: Platform) -> Sweep:
    """Count again what any place holds of anybody who was erased."""
    with platform.exclusion.shared():
        return sweep(platform.erasure_stores)
