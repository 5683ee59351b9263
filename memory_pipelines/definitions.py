"""Dagster's composition root, and the one module that knows assets, resources and jobs.

It is loaded by file (``workspace.yaml``) and is no part of the wheel.
"""

from typing import Any

import dagster as dg

from assets import admission, base, derived, landing, life, population, reward, stores, trained, upkeep
from jobs import schedules
from resources.platform import PlatformResource


def build_defs(**overrides: Any) -> dg.Definitions:
    """All definitions. ``overrides`` set fields of the platform resource, such as ``home`` and ``now``."""
    return dg.Definitions(
        assets=[
            landing.raw_logs,
            landing.noted_turns,
            *landing.ASSETS,
            *base.ASSETS,
            *trained.ASSETS,
            *population.ASSETS,
            *derived.ASSETS,
            *admission.ASSETS,
            *reward.ASSETS,
            *life.ASSETS,
            *upkeep.ASSETS,
            *stores.ASSETS,
        ],
        asset_checks=[*landing.CHECKS, *base.CHECKS, *derived.CHECKS, *reward.CHECKS, *life.CHECKS, *stores.CHECKS],
        jobs=schedules.JOBS,
        schedules=schedules.SCHEDULES,
        sensors=schedules.SENSORS,
        resources={"memory": PlatformResource(**overrides)},
        executor=dg.in_process_executor,
    )


defs = build_defs()
