"""Erasure: a person's request to be forgotten, carried out in every place and proved.

Belongs here: the list of places, the plan, its execution, the residue scan, certificates, tombstones and the
sweep. Does not belong here: when it runs, who may approve, and the stores themselves.
"""

from memory_pipelines.erasure.certificate import Certificate, certificate_secret, verify
from memory_pipelines.erasure.execute import execute
from memory_pipelines.erasure.places import Stores
from memory_pipelines.erasure.plan import Plan, dry_run
from memory_pipelines.erasure.requests import Request, approve, erased_rows, load, request, requests
from memory_pipelines.erasure.sweep import Sweep, sweep
from memory_pipelines.erasure.tombstones import Forgotten, load_tombstones

__all__ = [
    "Certificate",
    "Forgotten",
    "Plan",
    "Request",
    "Stores",
    "Sweep",
    "approve",
    "certificate_secret",
    "dry_run",
    "erased_rows",
    "execute",
    "load",
    "load_tombstones",
    "request",
    "requests",
    "sweep",
    "verify",
]
