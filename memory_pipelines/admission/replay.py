"""What the gate would keep under another threshold, from the decisions as they are stored.

Belongs here: the arithmetic of a replay, and its pictures. Does not belong here: reading decisions, uses or questions
(``pipeline.replay``). The same in SQL is in docs/admission.md.

Only what the score decided moves with the threshold. Hard rules stand, and so does what repetition promoted; that
fewer candidates would be short-term, and so fewer promoted, is left out.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from memory_pipelines import figures
from memory_pipelines.admission.judged import LONG, SHORT

THRESHOLDS = tuple(round(0.4 + 0.05 * step, 2) for step in range(11))
"""From .4, where short-term begins, to .9."""
COLUMNS = ("memory_id", "score", "short_from", "long_from", "rule", "outcome", "scenario", "arm")
"""What a replay needs of ``tables.DECISIONS``."""
BY_SCORE = "score"

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


@dataclass(frozen=True, slots=True)
class Volume:
    """What one scenario's arm would keep of its ``decisions`` if long-term memory began at ``threshold``."""

    scenario: str
    arm: str
    threshold: float
    decisions: int
    long: int
    short: int
    discard: int


@dataclass(frozen=True, slots=True)
class Quality:
    """How good what is kept long-term at ``threshold`` would be; None where nothing can be said.

    ``used_kept``: of the memories that were used, the share kept. ``kept_used``: of those kept, the share that was
    used. ``answered``: the share of questions that a kept memory rests on the evidence of."""

    threshold: float
    used_kept: float | None
    kept_used: float | None
    answered: float | None


def long_at(decisions: pa.Table, threshold: float) -> Mask:
    """Per decision, whether it would be long-term."""
    scores = decisions["score"].to_numpy()
    by_score = np.asarray(decisions["rule"].to_pylist(), dtype=object) == BY_SCORE
    long: Mask = np.where(by_score, scores >= threshold, _outcome_is(decisions, LONG))
    return long


def _short_at(decisions: pa.Table, long: Mask) -> Mask:
    by_score = np.asarray(decisions["rule"].to_pylist(), dtype=object) == BY_SCORE
    passes = decisions["score"].to_numpy() >= decisions["short_from"].to_numpy()
    short: Mask = np.where(by_score, passes, _outcome_is(decisions, SHORT)) & ~long
    return short


def _outcome_is(decisions: pa.Table, outcome: str) -> Mask:
    found: Mask = np.asarray(decisions["outcome"].to_pylist(), dtype=object) == outcome
    return found


def volumes(decisions: pa.Table) -> list[Volume]:
    """Kept volume of each scenario and arm at each of ``THRESHOLDS``."""
    result = []
    groups = sorted(set(zip(decisions["scenario"].to_pylist(), decisions["arm"].to_pylist(), strict=True)))
    scenarios = np.asarray(decisions["scenario"].to_pylist(), dtype=object)
    arms = np.asarray(decisions["arm"].to_pylist(), dtype=object)
    for scenario, arm in groups:
        own = decisions.filter(pa.array((scenarios == scenario) & (arms == arm)))
        for threshold in THRESHOLDS:
            long = long_at(own, threshold)
            short = int(_short_at(own, long).sum())
            kept = int(long.sum())
            result.append(Volume(scenario, arm, threshold, own.num_rows, kept, short, own.num_rows - kept - short))
    return result


def qualities(decisions: pa.Table, used: Collection[str], evidence: Sequence[Collection[str]] = ()) -> list[Quality]:
    """Quality at each of ``THRESHOLDS``. ``used``: memory ids that an agent was given or a person came back to;
    ``evidence``: per question the memory ids that rest on a turn which answers it.

    What was not kept could not be used: above the threshold in force ``used_kept`` is a loss that would have been
    felt; below it, it says nothing."""
    ids = decisions["memory_id"].to_pylist()
    in_use = np.fromiter((name in used for name in ids), dtype=np.bool_, count=len(ids))
    result = []
    for threshold in THRESHOLDS:
        long = long_at(decisions, threshold)
        both = int((long & in_use).sum())
        kept = {name for name, stays in zip(ids, long, strict=True) if stays}
        answered = sum(any(name in kept for name in names) for names in evidence)
        result.append(
            Quality(
                threshold,
                _share(both, int(in_use.sum())),
                _share(both, int(long.sum())) if used else None,
                _share(answered, len(evidence)),
            )
        )
    return result


def _share(part: int, whole: int) -> float | None:
    return round(part / whole, 4) if whole else None


def volume_picture(found: Sequence[Volume], in_force: Sequence[float]) -> bytes:
    """Share of the decisions that would be long-term, per scenario and arm; dashed: the thresholds in force."""
    drawn, axes = figures.figure("kept long-term by threshold", "threshold of long-term memory", "share of decisions")
    for number, (scenario, arm) in enumerate(sorted({(v.scenario, v.arm) for v in found})):
        line = [v for v in found if (v.scenario, v.arm) == (scenario, arm)]
        label = f"{scenario}, arm {arm} (n = {line[0].decisions:,})"
        colour = figures.COLOURS[number % len(figures.COLOURS)]
        axes.plot([v.threshold for v in line], [v.long / v.decisions for v in line], ".-", color=colour, label=label)
    for threshold in in_force:
        axes.axvline(threshold, color="grey", linewidth=1, linestyle="--")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=7)
    return figures.png(drawn)


def quality_picture(found: Sequence[Quality], in_force: Sequence[float]) -> bytes:
    """What is known of the quality, by threshold; dashed: the thresholds in force."""
    drawn, axes = figures.figure("quality of what is kept", "threshold of long-term memory", "share")
    lines = {
        "of used memories, kept": [q.used_kept for q in found],
        "of kept memories, used": [q.kept_used for q in found],
        "of questions, evidence kept": [q.answered for q in found],
    }
    for (label, values), colour in zip(lines.items(), figures.COLOURS, strict=False):
        known = [(q.threshold, value) for q, value in zip(found, values, strict=True) if value is not None]
        if known:
            axes.plot(*zip(*known, strict=True), ".-", color=colour, label=label)
    for threshold in in_force:
        axes.axvline(threshold, color="grey", linewidth=1, linestyle="--")
    axes.set_ylim(0, 1.02)
    if axes.lines[len(in_force) :]:
        axes.legend(fontsize=7)
    return figures.png(drawn)
