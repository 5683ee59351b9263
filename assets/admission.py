"""The gate looked at from outside: what other thresholds would keep, and how good that would be."""

from pathlib import Path

import dagster as dg

from assets.derived import memories
from assets.partitions import OWNERS
from memory_pipelines import figures
from memory_pipelines.pipeline import replay
from resources.platform import PlatformResource


class ReplayConfig(dg.Config):
    """Launchpad settings of a replay."""

    questions: str = ""
    """A JSONL file of questions with the turns that answer them: ``tenant``, ``subject``, ``gold_turn_ids``."""


@dg.asset(
    deps=[dg.AssetDep(memories, partition_mapping=dg.AllPartitionMapping())],
    group_name="admission",
    owners=OWNERS,
    kinds={"python"},
)
def admission_replay(config: ReplayConfig, memory: PlatformResource) -> dg.MaterializeResult:
    """Every stored decision under thresholds from .4 to .9, per scenario and arm: what would be kept, of that how much
    was used since, and which questions would lose their evidence. Nothing is derived for it."""
    from memory_pipelines.admission import replay as plots

    found = replay.replay_admission(memory.platform, Path(config.questions) if config.questions else None)
    if not found.decisions:
        return dg.MaterializeResult(metadata={"decisions": 0})
    volume = [
        dg.TableRecord(
            {
                **{"scenario": v.scenario, "arm": v.arm, "threshold": v.threshold, "decisions": v.decisions},
                **{"long": v.long, "short": v.short, "discard": v.discard},
            }
        )
        for v in found.volumes
    ]
    quality = [
        dg.TableRecord(
            {
                **{"threshold": q.threshold, "used_kept": _told(q.used_kept)},
                **{"kept_used": _told(q.kept_used), "answered": _told(q.answered)},
            }
        )
        for q in found.qualities
    ]
    return dg.MaterializeResult(
        metadata={
            "decisions": found.decisions,
            "used_memories": found.used,
            "questions": found.questions,
            "volume": dg.MetadataValue.table(volume),
            "quality": dg.MetadataValue.table(quality),
            "kept_by_threshold": _picture("kept", plots.volume_picture(found.volumes, found.in_force)),
            "quality_by_threshold": _picture("quality", plots.quality_picture(found.qualities, found.in_force)),
        }
    )


def _told(share: float | None) -> str:
    return "unknown" if share is None else f"{share:.3f}"


def _picture(title: str, png: bytes) -> dg.MarkdownMetadataValue:
    return dg.MetadataValue.md(figures.markdown(title, png))


ASSETS = [admission_replay]
