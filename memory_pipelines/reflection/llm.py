"""The reflection that a language model writes: prompt, one re-ask, what to do when it fails.

Belongs here: how a person's memories are asked about, and giving up. Does not belong here: the endpoint's client
and the run's meter (``models.llm``), the checks of what comes back (``reply``, ``schema``).
Requests go one by one; a provider's batch API (half the price, hours of delay) is not used.
"""

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib import resources
from string import Template

from memory_pipelines.models.llm import (
    FREE,
    BudgetExhaustedError,
    ChatModel,
    Message,
    ModelRefusedError,
    ModelUnavailableError,
    Usage,
    load_chat_model,
)
from memory_pipelines.reflection.budget import REPLY_TOKENS, chosen, shown
from memory_pipelines.reflection.events import Material
from memory_pipelines.reflection.reply import MAX_INSIGHTS, NAME, SCHEMA, Parsed, due_range, invents, read
from memory_pipelines.reflection.schema import KINDS, MAX_TEXT, Draft, Scope
from memory_pipelines.settings import Settings

GIVE_UP_AFTER = 3
"""Persons in a row for whom the endpoint does not answer: then it is not asked again in this run."""
MOST_ERRORS = 10
_LANGUAGES = {"zh": "Chinese (简体中文)", "en": "English"}


@dataclass(frozen=True, slots=True)
class Written:
    """``drafts`` is None if nothing usable came back. ``scope``: the memories that the model saw, and may cite."""

    drafts: tuple[Draft, ...] | None
    scope: Scope
    cost: Usage = FREE
    problems: tuple[str, ...] = ()


class Writer:
    """Asks one model for the reflections of one run. After ``GIVE_UP_AFTER`` failures in a row it stops asking."""

    def __init__(self, model: ChatModel) -> None:
        self._model = model
        self._failures = 0

    @property
    def cost(self) -> Usage:
        """What the run has cost so far."""
        return self._model.meter.spent

    def write(self, material: Material, counts: Sequence[str]) -> Written:
        """Drafts of one person's week; ``counts`` are the sentences of the statistical path, for the numbers.

        Raises SettingError for a wrong key, model or address: every person would meet it."""
        memories = chosen(material)
        scope = replace(material.scope, memories={m.memory_id: m for m in memories})
        if self._failures >= GIVE_UP_AFTER:
            return Written(None, scope, problems=("the language model was given up in this run",))
        messages = [Message("system", _rules(scope)), Message("user", _data(scope, counts))]
        first, cost, problem = self._ask(messages, scope, FREE)
        if first is None:
            return Written(None, scope, cost, (problem,))
        parsed, text = first
        if not parsed.errors:
            return _grounded(parsed, scope, cost, ())
        problems = [f"first reply: {e}" for e in parsed.errors[:MOST_ERRORS]]
        again = [*messages, Message("assistant", text[:4_000]), Message("user", _repair(parsed))]
        second, cost, problem = self._ask(again, scope, cost)
        if second is not None:
            problems += [f"second reply: {e}" for e in second[0].errors[:MOST_ERRORS]]
            if second[0].drafts is not None:
                parsed = second[0]
        else:
            problems.append(problem)
        return _grounded(parsed, scope, cost, problems)

    def _ask(
        self, messages: Sequence[Message], scope: Scope, cost: Usage
    ) -> tuple[tuple[Parsed, str] | None, Usage, str]:
        """(what came back, cost with this call, what went wrong)."""
        try:
            reply = self._model.complete(messages, name=NAME, schema=SCHEMA, max_tokens=REPLY_TOKENS)
        except BudgetExhaustedError as error:
            return None, cost + error.usage, str(error)
        except (ModelRefusedError, ModelUnavailableError) as error:
            self._failures += 1
            return None, cost + error.usage, str(error)
        self._failures = 0
        return (read(reply.text, reply.truncated, scope), reply.text), cost + reply.usage, ""


def _grounded(parsed: Parsed, scope: Scope, cost: Usage, problems: Sequence[str]) -> Written:
    """What was parsed, without insights that name what no memory has."""
    if parsed.drafts is None:
        return Written(None, scope, cost, tuple(problems))
    kept = tuple(d for d in parsed.drafts if not invents(d, scope.memories))
    found = len(parsed.drafts) - len(kept)
    invented = [f"dropped {found} insights with an address or number that no cited memory has"] if found else []
    return Written(kept, scope, cost, (*problems, *invented))


@cache
def _prompt(name: str) -> Template:
    text = resources.files("memory_pipelines.reflection").joinpath("prompts", name).read_text("utf-8")
    return Template(text)


def _rules(scope: Scope) -> str:
    first, last = due_range(scope)
    return _prompt("system.txt").substitute(
        limit=MAX_INSIGHTS,
        kinds=", ".join(KINDS),
        language=_LANGUAGES[scope.language],
        characters=MAX_TEXT,
        first_due=first.isoformat(),
        last_due=last.isoformat(),
    )


def _data(scope: Scope, counts: Sequence[str]) -> str:
    """One JSON document; ``<`` is escaped, so that no text can look like a mark of the prompt's own."""
    document = {
        "week": [scope.start.date().isoformat(), due_range(scope)[0].isoformat()],
        "memories": [shown(m) for m in scope.memories.values()],
        "counts": list(counts),
    }
    return json.dumps(document, ensure_ascii=False, sort_keys=True).replace("<", "\\u003c")


def _repair(parsed: Parsed) -> str:
    return _prompt("repair.txt").substitute(errors="\n".join(f"- {e}" for e in parsed.errors[:MOST_ERRORS]))


def load_writer(settings: Settings, sleep: Callable[[float], None] = time.sleep) -> Writer | None:
    """The writer of one run with its own budget; None if the settings name no endpoint."""
    model = load_chat_model(settings, sleep)
    return Writer(model) if model else None
