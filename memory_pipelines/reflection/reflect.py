"""One person's week: memories in, a checked reflection out.

Belongs here: what the function takes part in (whose memories, until when, in which language) and which path
writes. Does not belong here: how either path finds insights, or any store.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date

from memory_pipelines.errors import IntegrityError
from memory_pipelines.model import Owner, utc
from memory_pipelines.reflection.events import Material
from memory_pipelines.reflection.llm import Writer
from memory_pipelines.reflection.schema import LLM, MONTH, STATISTICS, Reflection, Scope, age_order, check
from memory_pipelines.reflection.statistics import quiet, statistics
from memory_pipelines.reflection.wording import Wording
from memory_pipelines.stores.authority import StoredMemory

LANGUAGES = ("zh", "en")


def reflect(
    memories: Sequence[StoredMemory],
    week: date,
    *,
    owner: Owner,
    bucket: int,
    language: str | None = None,
    writer: Writer | None = None,
    names: Mapping[str, str] | None = None,
) -> Reflection:
    """The reflection of ``owner`` on the week that begins on Monday ``week`` (UTC).

    ``memories`` are the person's visible ones, long- and short-term, in any order; what occurred after the week
    takes no part. ``language``: zh or en, else that of most memories of the last four weeks (of all, if there are
    none). With a ``writer`` a language model writes; where it cannot, the statistical path does, and ``problems``
    say so. ``names``: canonical entity id → the name to show. Without a writer the result depends on nothing but
    the arguments.
    Raises ValueError for a day that is no Monday or another language, IntegrityError for another owner's memory."""
    if week.weekday():
        raise ValueError("a week begins on a Monday")
    if language not in (None, *LANGUAGES):
        raise ValueError("language must be zh or en")
    for memory in memories:
        if memory.owner != owner:
            raise IntegrityError(f"memory {memory.memory_id} is not of the person reflected on")
    scope = _scope(memories, week, owner, bucket, language)
    material = Material(scope)
    if quiet(material):
        return Reflection(owner, week, (), (), STATISTICS)
    counted = check(statistics(material, Wording(scope.language, names or {})), scope, STATISTICS)
    if writer is None:
        return Reflection(owner, week, counted.insights, counted.tasks, STATISTICS, problems=counted.problems)
    written = writer.write(material, [i.text for i in counted.insights])
    told = check(written.drafts or (), written.scope, LLM)
    problems = (*written.problems, *told.problems)
    if told.insights:
        return Reflection(owner, week, told.insights, told.tasks, LLM, written.cost, problems)
    problems = (*problems, "the statistical path wrote in place of the language model", *counted.problems)
    return Reflection(owner, week, counted.insights, counted.tasks, STATISTICS, written.cost, problems)


def _scope(memories: Sequence[StoredMemory], week: date, owner: Owner, bucket: int, language: str | None) -> Scope:
    empty = Scope(owner, bucket, week, "en", {})
    known = sorted((m for m in memories if utc(m.occurred_at) < empty.end), key=age_order)
    spoken = language or _language(m for m in known if m.occurred_at >= empty.end - MONTH) or _language(known) or "en"
    return Scope(owner, bucket, week, spoken, {m.memory_id: m for m in known})


def _language(memories: Iterable[StoredMemory]) -> str:
    """zh or en, whichever more memories are in; English in a draw, empty if there are none of either."""
    counts = Counter(m.language for m in memories)
    if not counts["zh"] + counts["en"]:
        return ""
    return "zh" if counts["zh"] > counts["en"] else "en"
