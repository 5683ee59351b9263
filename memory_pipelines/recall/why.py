"""One line for people: why an item is in an answer. Wording only."""

from collections.abc import Mapping

from memory_pipelines.model import ImpactLabel, Tier, impact_label
from memory_pipelines.recall.answer import Reasons
from memory_pipelines.recall.columns import entity_name
from memory_pipelines.recall.prompt import NOTED, day
from memory_pipelines.recall.ripple import Path
from memory_pipelines.recall.snapshot import Snapshot
from memory_pipelines.stores.authority import StoredMemory

_LEGS = {
    "bm25": {"zh": "用词相符", "en": "shares words with the query"},
    "dense": {"zh": "语义相近", "en": "is close in meaning"},
    "facts": {"zh": "是当前有效的事实", "en": "is a fact that holds now"},
    "time": {"zh": "在所问的时间内", "en": "is of the time that was asked about"},
}


def why(memory: StoredMemory, reasons: Reasons, snapshot: Snapshot, language: str) -> str:
    """The strongest reasons, in the order of the legs; a session's opening has no leg."""
    parts = [_LEGS[score.leg][language] for score in reasons.legs if score.leg in _LEGS]
    linked = next((path for path in reasons.paths if path.hops), None)
    if linked is not None:
        parts.append(_link(linked, snapshot, language))
    if not parts:
        parts.append(_unsaid(memory, reasons)[language])
    if memory.path == NOTED:
        parts.append("刚说过" if language == "zh" else "was just said")
    if impact_label(memory.decision_impact) is ImpactLabel.HIGH:
        parts.append("高影响" if language == "zh" else "had a high impact")
    if reasons.validity == "superseded":
        parts.append("已失效" if language == "zh" else "no longer holds")
    if memory.tier == Tier.COLD:
        parts.append("取自归档" if language == "zh" else "comes from the archive")
    return "；".join(parts) if language == "zh" else ", ".join(parts)


def _unsaid(memory: StoredMemory, reasons: Reasons) -> Mapping[str, str]:
    """Why something is there that no leg has found."""
    if memory.predicate:
        return {"zh": "取代了相符的旧信息", "en": "replaces what matched"}
    if reasons.relevance:
        return {"zh": "紧邻相符的记录", "en": "stands beside what matched"}
    return {"zh": "近期的重要事件", "en": "is a recent event"}


def _link(path: Path, snapshot: Snapshot, language: str) -> str:
    anchor = snapshot.rows[snapshot.by_memory[path.anchor]]
    names = [entity_name(hop.via) for hop in path.hops if hop.via is not None]
    when = day(anchor.occurred_at, language)
    if language == "zh":
        through = f"经{'、'.join(names)}" if names else ""
        return f"{through}与{when}的相符记录相连（{len(path.hops)}跳）"
    through = f" through {', '.join(names)}" if names else ""
    return f"is linked{through} to a match of {when} ({len(path.hops)} hop{'s' if len(path.hops) > 1 else ''})"
