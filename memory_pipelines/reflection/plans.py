"""Plans with dates: which are done, past their date, to come or moved, and what to follow up.

Belongs here: plan facts and dated episodes, evidence that something was done. Does not belong here: reading a
date in a text, or any other rule (``statistics``).
"""

import re
from collections import defaultdict, deque
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from functools import cache

from memory_pipelines.model import MemoryType
from memory_pipelines.reflection.events import Material, base, plan_day, shown_value
from memory_pipelines.reflection.schema import ACTION_ITEM, MONTH, TASK_PROGRESS, Draft, age_order
from memory_pipelines.reflection.wording import Wording, lexicon
from memory_pipelines.stores.authority import StoredMemory

SOON = timedelta(weeks=2)
"""Plans due this soon after the week are followed up."""
WORDS = 12
"""So many words of a plan are looked for in what was said later, ``LATER`` newest memories each: no plan costs
more than their product, however long the history."""
LATER = 20


@dataclass(frozen=True, slots=True)
class Plan:
    """``said``: the plan in the person's words; ``open``: nobody cancelled or moved it;
    ``moved_from``: the plan that this one replaced within the week."""

    memory: StoredMemory
    day: date
    said: str
    open: bool
    moved_from: StoredMemory | None

    @property
    def subject(self) -> str:
        """The same for every mention of one plan; an episode has no words but its own."""
        return f"plan {self.day.isoformat()} {self.memory.value or self.memory.memory_id}"


def plans(material: Material) -> list[Plan]:
    """The plans that have a date within four weeks of the week's end, either side, by date; each once, as last said."""
    facts = [m for m in material.facts if base(m.predicate) == "plan" and plan_day(m)]
    moved = {(m.valid_to, shown_value(m).casefold()): m for m in facts if m in material.closed}
    told = {slice_id for m in facts for slice_id in m.slice_ids}
    intents = lexicon()["plan_intents"]
    episodes = [
        m
        for m in material.scope.memories.values()
        if m.memory_type == MemoryType.EPISODIC and m.intent in intents and not told.intersection(m.slice_ids)
    ]
    first, last = (material.scope.end - MONTH).date(), (material.scope.end + MONTH).date()
    found: dict[str, Plan] = {}
    for memory in sorted(
        [*facts, *episodes], key=lambda m: (m.memory_type != MemoryType.SEMANTIC or material.holds(m), age_order(m))
    ):
        day = plan_day(memory)
        if day is not None and first <= day < last:
            semantic = memory.memory_type == MemoryType.SEMANTIC
            said = shown_value(memory) if semantic else memory.text or memory.summary
            before = moved.get((memory.valid_from, said.casefold())) if semantic else None
            plan = Plan(memory, day, said, not semantic or material.holds(memory), before)
            found[plan.subject] = plan
    return sorted(found.values(), key=lambda p: (p.day, p.subject))


def plan_drafts(material: Material, wording: Wording) -> list[Draft]:
    """What became of the plans, and what to follow up."""
    planned = [plan for plan in plans(material) if plan.open]
    if not planned:
        return []
    scope, drafts, evidence = material.scope, [], _Done(material)
    tomorrow = scope.end + timedelta(days=1)
    for plan in planned:
        day, due = wording.day(plan.day), datetime.combine(plan.day, time(), UTC)
        proof = evidence.of(plan)
        if proof is not None:
            if material.this_week(proof.occurred_at):
                text = wording.say("done", plan=plan.said, day=day)
                drafts.append(_progress(plan, text, proof))
        elif due < scope.end:
            drafts.append(_progress(plan, wording.say("overdue", plan=plan.said, day=day)))
            if material.this_week(due):
                drafts.append(_follow_up(plan, wording.say("ask_done", plan=plan.said, day=day), tomorrow))
        else:
            if plan.moved_from is not None and (old := plan_day(plan.moved_from)):
                text = wording.say("moved", plan=plan.said, old=wording.day(old), day=day)
                drafts.append(_progress(plan, text, plan.moved_from))
            else:
                drafts.append(_progress(plan, wording.say("upcoming", plan=plan.said, day=day)))
            if due < scope.end + SOON:
                drafts.append(_follow_up(plan, wording.say("remind", plan=plan.said, day=day), due))
    return drafts


def _progress(plan: Plan, text: str, also: StoredMemory | None = None) -> Draft:
    memories = [plan.memory, *([also] if also else [])]
    sure = min(m.confidence for m in memories)
    return Draft(TASK_PROGRESS, plan.subject, text, tuple(m.memory_id for m in memories), sure)


def _follow_up(plan: Plan, text: str, due: datetime) -> Draft:
    return Draft(ACTION_ITEM, plan.subject, text, (plan.memory.memory_id,), plan.memory.confidence, due)


class _Done:
    """Later memories that say that something was done, by the words they share with a plan."""

    def __init__(self, material: Material) -> None:
        done, denied = _cues("done"), _cues("not_done")
        self._words: dict[str, set[str]] = {}
        self._later: dict[str, deque[StoredMemory]] = defaultdict(lambda: deque(maxlen=LATER))
        since = material.scope.end - 2 * MONTH
        for memory in material.scope.memories.values():
            text = memory.text or memory.summary
            if memory.occurred_at >= since and done.search(text) and not denied.search(text):
                self._words[memory.memory_id] = words(text)
                for word in self._words[memory.memory_id]:
                    self._later[word].append(memory)

    def of(self, plan: Plan) -> StoredMemory | None:
        """The first memory from the day before the plan's (time zones) that shares half of its words or more.

        Earlier talk may be of another plan of the same words: a needless follow-up does less harm than a lost one."""
        since = max(plan.memory.occurred_at, datetime.combine(plan.day, time(), UTC) - timedelta(days=1))
        wanted = set(sorted(words(plan.said))[:WORDS])
        near = {m.memory_id: m for word in wanted for m in self._later.get(word, ()) if m.occurred_at >= since}
        near.pop(plan.memory.memory_id, None)
        enough = [m for m in near.values() if len(wanted & self._words[m.memory_id]) >= len(wanted) / 2]
        return min(enough, key=lambda m: (m.occurred_at, m.memory_id), default=None)


@cache
def _cues(name: str) -> re.Pattern[str]:
    listed = lexicon()[name]
    latin = "|".join(rf"\b{re.escape(w)}\b" if w[0].isalpha() else re.escape(w) for w in listed["en"])
    return re.compile(f"{'|'.join(map(re.escape, listed['zh']))}|{latin}", re.I)


def words(text: str) -> set[str]:
    """What a text is compared by: Latin words of three letters or more that say something, pairs of Han characters."""
    head = text[:2000].casefold()
    latin = set(re.findall(r"[a-z\u00c0-\u024f0-9]{3,}", head)) - set(lexicon()["filler"])
    han = {run[i : i + 2] for run in re.findall("[\u3400-\u9fff]+", head) for i in range(len(run) - 1)}
    return latin | han
