"""The annotation loop over the stores: uncertain events out, human labels in; and the explanation of scores.

Belongs here: reading, one call into ``reward``, writing. Does not belong here: which events are uncertain, words.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from memory_pipelines.errors import InputError
from memory_pipelines.model import Owner
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.pipeline.reward import KIND
from memory_pipelines.reward.annotate import most_uncertain, read_answers, write_questions
from memory_pipelines.reward.fit import RewardModel, feature_rows
from memory_pipelines.stores.base import Replace
from memory_pipelines.tables import ANNOTATIONS, EXCHANGES, IMPACTS, REWARD_EVENTS
from memory_pipelines.wiring import Platform


@dataclass(frozen=True)
class Imported:
    """``rows`` came in; ``faults``: (row number, what is wrong), the first row being 1."""

    rows: int
    faults: list[tuple[int, str]]


@uses_lake
def export_uncertain(platform: Platform, file: Path, number: int) -> int:
    """Write a CSV of the most uncertain of the collected events; returns how many.

    By the champion, or by the scores in use while there is none. Raises InputError if no events were collected."""
    rows = platform.lake.read(REWARD_EVENTS)
    if not rows.num_rows:
        raise InputError("no events were collected yet: run reward_job first")
    champion = platform.registry.champion(KIND)
    if champion is not None:
        scores = RewardModel(champion.body).predict(feature_rows(rows))
    else:
        used = platform.lake.read(IMPACTS, columns=["owner", "exchange_id", "decision_impact"])
        known = {(r["owner"], r["exchange_id"]): r["decision_impact"] for r in used.to_pylist()}
        keys = list(zip(rows["owner"].to_pylist(), rows["exchange_id"].to_pylist(), strict=True))
        rows = rows.filter(pa.array([key in known for key in keys]))
        scores = pa.array([known[key] for key in keys if key in known], pa.float64()).to_numpy()
    asked = most_uncertain(rows, scores, number).to_pylist()
    names = [row["exchange_id"] for row in asked]
    said = platform.lake.read(
        EXCHANGES, columns=["owner", "exchange_id", "own_text"], where=[("exchange_id", "in", names)]
    )
    texts = {(row["owner"], row["exchange_id"]): row["own_text"] for row in said.to_pylist()}
    write_questions(file, [row | {"text": texts.get((row["owner"], row["exchange_id"]), "")} for row in asked])
    return len(asked)


@uses_lake
def import_annotations(platform: Platform, file: Path) -> Imported:
    """Bring the answers of a file in, in place of those of a file of that name before; an event that is not there is
    a fault. Raises InputError where the file cannot be read, or no row of it is good: the earlier ones stay."""
    answers, faults = read_answers(file)
    wanted = {(Owner(a.tenant, a.subject).key, a.exchange_id): a for a in answers}
    there = platform.lake.read(
        IMPACTS,
        columns=["owner", "bucket", "exchange_id", "occurred_at"],
        where=[("owner", "in", sorted({owner for owner, _ in wanted}))],
    )
    rows = []
    for row in there.to_pylist():
        answer = wanted.pop((row["owner"], row["exchange_id"]), None)
        if answer is not None:
            said: dict[str, Any] = {"tenant": answer.tenant, "subject": answer.subject, "impact": answer.impact}
            rows.append(row | said | {"source": file.name})
    faults += [(0, f"no such event: {exchange}") for _, exchange in sorted(wanted)]
    if not rows:
        raise InputError(f"{file.name} has no good row, nothing was changed" + (f"; {faults[0][1]}" if faults else ""))
    platform.lake.write(ANNOTATIONS, pa.Table.from_pylist(rows, ANNOTATIONS.schema), [Replace("source", (file.name,))])
    return Imported(len(rows), faults)
