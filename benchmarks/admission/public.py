"""What the gate keeps of public dialogues: volume, and evidence of questions.

Belongs here: protocols over public sets. Does not belong here: their formats (``conversions``). A set that is not in
the folder is named and left out.

Protocol. *Volume*: each set in the scenario of ``conversions``, as of a day after its last turn; a turn of a subject
counts as long if a long-term memory cites its slice, as short if only a short-term one does, else as discarded.
Inquiries whose seven days have closed are judged closed. *Evidence*: LoCoMo (answerable questions, all five
conversations) and MemDaily (all trajectories): the share of a question's evidence turns that are among the source
turns of the slices that memories cite, the mean over questions; ``long``: by long-term memories alone, which is what
is left after nine days.
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pyarrow as pa

from benchmarks import conversions
from benchmarks.admission.path import Turn, admitted, labelled

MOST_TURNS = 6000
CHINA = timedelta(hours=8)


@dataclass(frozen=True)
class Kept:
    """Turn ids by what became of them, and all own turns."""

    long: frozenset[str]
    short: frozenset[str]
    own: frozenset[str]


def kept(slices: pa.Table, memories: pa.Table) -> Kept:
    """What memories cite: the source turns of their slices, those of long-term memories first."""
    of_slice = dict(zip(slices["slice_id"].to_pylist(), slices["source_turn_ids"].to_pylist(), strict=True))
    own = frozenset(turn for turns in slices["own_turn_ids"].to_pylist() for turn in turns)
    cited: dict[str, set[str]] = {"long": set(), "short": set()}
    for term, ids in zip(memories["term"].to_pylist(), memories["slice_ids"].to_pylist(), strict=True):
        cited[term].update(turn for name in ids for turn in of_slice[name])
    return Kept(frozenset(cited["long"]), frozenset(cited["short"] - cited["long"]), own)


def through(turns: Sequence[Turn], scenario: str) -> Kept:
    """All turns through the gate, a day after the last."""
    as_of = max(turn.at for turn in turns) + timedelta(days=1)
    slices = labelled(turns).slices(as_of)
    return kept(slices, admitted(slices, scenario, as_of).memories)


def evidence_share(questions: Sequence[Sequence[str]], turns: frozenset[str]) -> float:
    """Mean over questions of the share of their evidence that is among ``turns``."""
    return sum(sum(e in turns for e in evidence) / len(evidence) for evidence in questions) / len(questions)


def _turn(row: dict[str, Any]) -> Turn:
    at = datetime.fromisoformat(row["occurred_at"])
    own = row["role"] == "user"
    name = row.get("turn_id") or f"{row['conversation_id']}/{row['occurred_at']}/{row['role']}"
    return Turn(
        *(name, row["conversation_id"], row["user_id"] if own else "", "user" if own else "agent"),
        *(at, row["text"], row.get("session_id")),
    )


def _messages(rows: Sequence[dict[str, Any]]) -> list[Turn]:
    turns = []
    for row in rows:
        for i, message in enumerate(row["messages"]):
            if message["content"]:
                at, own = datetime.fromisoformat(message["created_at"]), message["role"] == "user"
                role = "user" if own else "agent"
                turns.append(
                    Turn(f"{row['id']}/{i}", row["id"], row["user"] if own else "", role, at, message["content"])
                )
    return turns


def _locomo(data: Path) -> tuple[list[Turn], list[Sequence[str]]]:
    samples = json.loads((data / "locomo" / "locomo_dev.json").read_text(encoding="utf-8"))
    turns = [_turn(row) for sample in samples for row in conversions.locomo_rows(sample)]
    return turns, [q.evidence for sample in samples for q in conversions.locomo_questions(sample)]


def _memdaily(data: Path) -> tuple[list[Turn], list[Sequence[str]]]:
    turns: list[Turn] = []
    questions: list[Sequence[str]] = []
    for path in sorted((data / "memdaily_zh").glob("*.json")):
        for trajectory in json.loads(path.read_text(encoding="utf-8")):
            owner = f"{path.stem}/{trajectory['tid']}"
            for message in trajectory["message_list"]:
                day, _, clock = message["time"].replace("年", "-").replace("月", "-").partition("日")
                at = datetime.fromisoformat(f"{day}T{clock.split()[-1]}").replace(tzinfo=UTC) - CHINA
                turns.append(Turn(f"{owner}/{message['mid']}", owner, owner, "user", at, message["message"]))
            questions.extend(
                [f"{owner}/{mid}" for mid in question["target_step_id"]]
                for question in trajectory["question_list"]
                if "[ERROR" not in f"{question['question']}{question['answer']}" and question["target_step_id"]
            )
    return turns, questions


def _crosswoz(data: Path) -> list[Turn]:
    import zipfile

    with zipfile.ZipFile(data / "crosswoz_zh" / "val.json.zip") as archive:
        return _messages(list(conversions.crosswoz_rows(json.loads(archive.read("val.json")))))


def _memorybank(data: Path) -> list[Turn]:
    turns = []
    for language in ("cn", "en"):
        people = json.loads((data / "memorybank" / f"memory_bank_{language}.json").read_text(encoding="utf-8"))
        turns += [
            _turn(row | {"user_id": f"{language}/{row['user_id']}"}) for row in conversions.memorybank_rows(people)
        ]
    return turns


def _abcd(data: Path) -> list[Turn]:
    path = data / "abcd_partial" / "abcd_sample.json"
    return _messages(list(conversions.abcd_rows(json.loads(path.read_text(encoding="utf-8")))))


VOLUME: dict[str, tuple[str, str, Callable[[Path], list[Turn]]]] = {
    "CrossWOZ": ("crosswoz_zh", "customer_service", _crosswoz),
    "ABCD": ("abcd_partial", "customer_service", _abcd),
    "MemoryBank": ("memorybank", "assistant", _memorybank),
}
EVIDENCE: dict[str, tuple[str, Callable[[Path], tuple[list[Turn], list[Sequence[str]]]]]] = {
    "LoCoMo": ("locomo", _locomo),
    "MemDaily": ("memdaily_zh", _memdaily),
}


def _volume(name: str, found: Kept) -> str:
    long, short = len(found.own & found.long), len(found.own & found.short)
    n = len(found.own)
    return f"| {name} | {n} | {long / n:.3f} | {short / n:.3f} | {(n - long - short) / n:.3f} |"


def main(data: Path) -> None:
    print("\n== public dialogues\n| set | own turns | long | short | discarded |\n| --- | --: | --: | --: | --: |")
    lines = []
    for name, (folder, read) in EVIDENCE.items():
        if not (data / folder).is_dir():
            print(f"{name}: not in the folder")
            continue
        turns, questions = read(data)
        found = through(turns, "assistant")
        print(_volume(name, found), flush=True)
        any_term, long = evidence_share(questions, found.long | found.short), evidence_share(questions, found.long)
        lines.append(
            f"{name}: evidence kept {any_term:.3f}, by long-term memories alone {long:.3f} (n = {len(questions)} questions)"  # noqa: E501
        )
    for name, (folder, scenario, load) in VOLUME.items():
        if not (data / folder).is_dir():
            print(f"{name}: not in the folder")
            continue
        print(_volume(name, through(load(data)[:MOST_TURNS], scenario)), flush=True)
    print("\n".join(lines))
