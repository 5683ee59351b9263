"""The replay of admission over the stores: decisions as they are, what was used of them, questions if there are some.

Belongs here: reading. Does not belong here: what follows from it (``admission.replay``).
"""

import json
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from memory_pipelines.admission.replay import COLUMNS, Quality, Volume, qualities, volumes
from memory_pipelines.errors import InputError
from memory_pipelines.lifecycle.scores import access_times
from memory_pipelines.model import Owner
from memory_pipelines.pipeline.lock import uses_lake
from memory_pipelines.tables import DECISIONS, MEMORIES, SLICES
from memory_pipelines.wiring import Platform

Question = tuple[Owner, frozenset[str]]
"""Who is asked about, and the turns that answer."""


@dataclass(frozen=True)
class Replay:
    """The decisions under other thresholds. ``in_force``: the thresholds by which they were made; ``used``: how many
    memories were used; ``questions``: how many were asked."""

    decisions: int
    used: int
    questions: int
    in_force: tuple[float, ...]
    volumes: list[Volume]
    qualities: list[Quality]


@uses_lake
def replay_admission(platform: Platform, questions: Path | None = None) -> Replay:
    """Every decision of everybody under each threshold; nothing is derived. ``questions``: see ``read_questions``."""
    decisions = platform.lake.read(DECISIONS, columns=COLUMNS)
    used = _used(platform)
    asked = [] if questions is None else read_questions(questions)
    evidence = _evidence(platform, asked)
    in_force = tuple(sorted(set(decisions["long_from"].to_pylist())))
    return Replay(
        decisions.num_rows, len(used), len(asked), in_force, volumes(decisions), qualities(decisions, used, evidence)
    )


def read_questions(path: Path) -> list[Question]:
    """A JSONL file of ``tenant``, ``subject`` and ``gold_turn_ids``, as ``memory-pipelines sample`` writes them to
    ``truth/questions.jsonl``. Raises InputError, with the line, for anything else."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read ({type(error).__name__})") from None
    return [_question(line, number, path) for number, line in enumerate(lines, 1)]


def _question(line: str, number: int, path: Path) -> Question:
    try:
        row = json.loads(line)
        return Owner(row["tenant"], row["subject"]), frozenset(row["gold_turn_ids"])
    except (ValueError, KeyError, TypeError):
        raise InputError(f"line {number} of {path} is no question with tenant, subject and gold_turn_ids") from None


def _used(platform: Platform) -> set[str]:
    """Memory ids that an agent was given or a person came back to."""
    uses = platform.accesses.by_owner(platform.accesses.owners())
    rows = platform.lake.read(
        MEMORIES, columns=["owner", "memory_id", "own_turn_ids"], where=[("owner", "in", sorted(uses))]
    )
    return {r["memory_id"] for r in rows.to_pylist() if access_times(r["own_turn_ids"], uses[r["owner"]])}


def _evidence(platform: Platform, asked: list[Question]) -> list[set[str]]:
    """Per question the ids of decided memories, kept or not, that rest on one of its turns."""
    owners = sorted({owner.key for owner, _ in asked})
    by_turn = _slices_by_turn(platform.lake.read(SLICES, where=[("owner", "in", owners)], columns=_SLICE_COLUMNS))
    by_slice: dict[tuple[str, str], set[str]] = defaultdict(set)
    where = [("owner", "in", owners)]
    for row in platform.lake.read(DECISIONS, columns=["owner", "memory_id", "slice_id"], where=where).to_pylist():
        by_slice[row["owner"], row["slice_id"]].add(row["memory_id"])
    for row in platform.lake.read(MEMORIES, columns=["owner", "memory_id", "slice_ids"], where=where).to_pylist():
        for slice_id in row["slice_ids"]:
            by_slice[row["owner"], slice_id].add(row["memory_id"])
    return [
        {name for turn in turns for place in by_turn.get((owner.key, turn), ()) for name in by_slice.get(place, ())}
        for owner, turns in asked
    ]


_SLICE_COLUMNS = ["owner", "slice_id", "source_turn_ids"]


def _slices_by_turn(slices: pa.Table) -> dict[tuple[str, str], list[tuple[str, str]]]:
    found: dict[tuple[str, str], list[tuple[str, str]]] = defaultdict(list)
    for row in slices.to_pylist():
        for turn in row["source_turn_ids"]:
            found[row["owner"], turn].append((row["owner"], row["slice_id"]))
    return found
