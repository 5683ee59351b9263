"""Runs that a killed process left "started" are failed, or sensors would wait for them for hours.

Belongs here: telling a dead run from a live one. Does not belong here: what is run again, and when.
A run notes its process in a tag when its resource is set up (``resources.platform``); a run of another host, or
one that has not come so far, is left to Dagster's run monitoring.
"""

import dagster as dg

from resources.platform import PROCESS_TAG, is_alive

IN_PROGRESS = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
]


def reap(instance: dg.DagsterInstance) -> int:
    """Fail the runs in progress whose process is gone; returns their number."""
    dead = [
        run
        for run in instance.get_runs(dg.RunsFilter(statuses=IN_PROGRESS))
        if PROCESS_TAG in run.tags and not is_alive(run.tags[PROCESS_TAG])
    ]
    for run in dead:
        instance.report_run_failed(run, "the process of this run has died")
    return len(dead)
