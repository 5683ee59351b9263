"""Public sets of questions with evidence, as histories.

Belongs here: how each set's files become turns and questions. Does not belong here: indexing, asking, judging. A set
whose files are missing gives no histories.

* ``locomo/*.json``: a history is a conversation of two people, its unit is the turn (with who said it; captions of
  pictures are left out). Evidence ids that are glued or padded are mended, those without a turn dropped, and
  with them questions that keep none. Category 5 must not be answered: it is reported apart.
* ``memdaily_zh/*.json``: ``pooled`` trajectories, dealt from all files, make one history; its unit is the message.
  Each trajectory begins the day after the one before has ended: one life, not ten at a time. Questions with
  ``[ERROR`` are dropped.
* ``memorybank``: all dialogues in both languages are one history, its unit is the own turn with its reply. The set has
  no gold, so a question in one language must find what it finds in the other: see ``pairs``.
* ``longmemeval/*.json``: LongMemEval's layout (``question``, ``question_date``, ``haystack_sessions``,
  ``haystack_session_ids``, ``haystack_dates``, ``answer_session_ids``, turns with ``has_answer``): a history a
  question, its unit the turn; questions that end in ``_abs`` have no answer and are reported apart.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.conversions import locomo_rows, locomo_speakers

LOCOMO = {1: "multi-hop", 2: "temporal", 3: "open domain", 4: "single hop", 5: "unanswerable"}
UNANSWERABLE = "unanswerable"
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_DAY = timedelta(days=1)
_MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class Turn:
    """One unit of a history; ``session`` is what the set calls one."""

    turn_id: str
    session: str
    speaker: str
    at: datetime
    text: str
    language: str
    conversation: str = ""

    @property
    def told(self) -> str:
        """The text with who said it, where that is known."""
        return f"{self.speaker}: {self.text}" if self.speaker else self.text


@dataclass(frozen=True)
class Question:
    """``gold``: ids of the turns that answer it; ``at``: when it is asked."""

    text: str
    gold: frozenset[str]
    category: str
    at: datetime


@dataclass(frozen=True)
class History:
    """What one store holds, and what it is asked."""

    name: str
    turns: Sequence[Turn]
    questions: Sequence[Question] = field(default_factory=tuple)


def locomo(folder: Path) -> list[History]:
    return [
        _conversation(sample)
        for file in sorted((folder / "locomo").glob("*.json"))
        for sample in json.loads(file.read_text(encoding="utf-8"))
    ]


def _conversation(sample: dict[str, Any]) -> History:
    turns = sorted(
        (
            Turn(
                row["turn_id"],
                row["session_id"],
                row["user_id"],
                datetime.fromisoformat(row["occurred_at"]),
                row["text"],
                "en",
                row["conversation_id"],
            )
            for row in locomo_rows(sample)
        ),
        key=lambda turn: turn.at,
    )
    known, end = {turn.turn_id for turn in turns}, turns[-1].at + _DAY
    questions = []
    for item in sample["qa"]:
        found = _EVIDENCE.findall(" ".join(item.get("evidence") or []))
        ids = {f"{sample['sample_id']}/D{int(session)}:{int(turn)}" for session, turn in found}
        if ids & known:
            questions.append(Question(item["question"], frozenset(ids & known), LOCOMO[item["category"]], end))
    return History(sample["sample_id"], turns, questions)


def speakers(sample: dict[str, Any]) -> tuple[str, str]:
    """The two subjects of a LoCoMo conversation."""
    return locomo_speakers(sample)


def memdaily(folder: Path, limit: int, pooled: int) -> list[History]:
    """``limit``: trajectories of each file."""
    files = sorted((folder / "memdaily_zh").glob("*.json"))
    read = [[(file.stem, t) for t in json.loads(file.read_text(encoding="utf-8"))[:limit]] for file in files]
    dealt = [item for row in zip(*read, strict=False) for item in row]
    return [_pool(start, dealt[start : start + pooled]) for start in range(0, len(dealt), pooled)]


def _pool(number: int, trajectories: Sequence[tuple[str, dict[str, Any]]]) -> History:
    turns: list[Turn] = []
    asked: list[tuple[str, frozenset[str], str]] = []
    begin = datetime(2024, 1, 1, tzinfo=UTC)
    for name, trajectory in trajectories:
        life = f"{name}/{trajectory['tid']}"
        times = [_clock(message["time"]) for message in trajectory["message_list"]]
        shift = begin - min(times).replace(hour=0, minute=0)
        for message, at in zip(trajectory["message_list"], times, strict=True):
            turns.append(Turn(f"{life}/{message['mid']}", life, "", at + shift, message["message"], "zh", life))
        begin = (max(times) + shift).replace(hour=0, minute=0) + _DAY
        ids = {turn.turn_id for turn in turns}
        for item in trajectory["question_list"]:
            gold = frozenset(f"{life}/{mid}" for mid in _flat(item["target_step_id"])) & ids
            if gold and "[ERROR" not in item["question"] and "[ERROR" not in str(item["answer"]):
                asked.append((item["question"], gold, name.partition("_")[2].rpartition("_")[0]))
    end = turns[-1].at + _DAY
    return History(f"pool {number}", turns, [Question(*question, end) for question in asked])


def _clock(text: str) -> datetime:
    """``2024年04月01日 周一 08:42``, a clock in China."""
    day, _, hour = text.split()
    return datetime.strptime(f"{day} {hour} +0800", "%Y年%m月%d日 %H:%M %z").astimezone(UTC)


def _flat(ids: Any) -> Iterator[int]:
    if isinstance(ids, list):
        for item in ids:
            yield from _flat(item)
    else:
        yield ids


@dataclass(frozen=True)
class Pair:
    """One question in both languages, and the person it is asked of by number."""

    zh: str
    en: str
    person: int


def memorybank(folder: Path) -> tuple[History | None, list[Pair]]:
    """(everybody's history in both languages, question pairs); an exchange's id is ``language/person/day/number``.

    Persons stand in the same order in both files, days and numbers are the same where both have as many."""
    turns: list[Turn] = []
    asked: dict[str, list[list[str]]] = {}
    for name, language in (("cn", "zh"), ("en", "en")):
        file = folder / "memorybank" / f"memory_bank_{name}.json"
        if not file.exists():
            return None, []
        for k, person in enumerate(json.loads(file.read_text(encoding="utf-8")).values()):
            for day, exchanges in person.get("history", {}).items():
                at = datetime.fromisoformat(day).replace(hour=9, tzinfo=UTC)
                for i, each in enumerate(exchanges):
                    said = f"{each['query']}\n{each['response']}"
                    life = f"{language}/{k}"
                    turns.append(Turn(f"{life}/{day}/{i}", f"{life}/{day}", "", at + i * _MINUTE, said, language, life))
        lines = (folder / "memorybank" / f"probing_questions_{name}.jsonl").read_text(encoding="utf-8").splitlines()
        asked[language] = [next(iter(json.loads(line).values())) for line in lines if line.strip()]
    pairs = [
        Pair(zh, en, k)
        for k, (ours, theirs) in enumerate(zip(asked["zh"], asked["en"], strict=False))
        if len(ours) == len(theirs)
        for zh, en in zip(ours, theirs, strict=True)
    ]
    return History("memorybank", turns), pairs


def longmemeval(folder: Path) -> list[History]:
    return [
        _haystack(item)
        for file in sorted((folder / "longmemeval").glob("*.json"))
        for item in json.loads(file.read_text(encoding="utf-8"))
    ]


def _haystack(item: dict[str, Any]) -> History:
    turns, gold = [], set()
    sessions = zip(item["haystack_session_ids"], item["haystack_dates"], item["haystack_sessions"], strict=True)
    for session, date, said in sessions:
        at = _date(date)
        marked = {i for i, turn in enumerate(said) if turn.get("has_answer")}
        if session in item["answer_session_ids"]:
            gold |= {f"{session}/{i}" for i in marked or range(len(said))}
        for i, turn in enumerate(said):
            speaker = turn["role"] if turn["role"] != "user" else ""
            turns.append(Turn(f"{session}/{i}", session, speaker, at + i * _MINUTE, turn["content"], "en", session))
    unanswerable = item["question_id"].endswith("_abs")
    category = UNANSWERABLE if unanswerable else item["question_type"]
    question = Question(item["question"], frozenset(gold), category, _date(item["question_date"]))
    return History(item["question_id"], turns, [question] if gold else [])


def _date(text: str) -> datetime:
    """``2023/05/20 (Sat) 02:21``."""
    day, _, hour = text.split()
    return datetime.strptime(f"{day} {hour}", "%Y/%m/%d %H:%M").replace(tzinfo=UTC)
