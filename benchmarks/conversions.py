"""Public dialogue sets as logs that the platform reads.

Belongs here: how each set's files become rows, and what was assumed where the set says nothing. Does not belong
here: running or judging anything. Each converter reads a folder of the data and writes one log file; no text of
a set is kept in the repository.

Assumptions. Times: only LoCoMo has them (of sessions; turns follow 30 seconds apart); elsewhere conversation
``k`` begins ``k`` hours after ``BEGIN`` and its messages follow a minute apart. MemDaily and MemoryBank have times
too: MemDaily's are of clocks in China; MemoryBank's are days, on which dialogues begin at ``BEGIN``'s hour and
messages follow a minute apart. Speakers: in LoCoMo both are
people, each a subject. In CrossWOZ a subject is the annotator who played the customer, in tau-bench the
customer whose id a tool told, in ABCD the customer of the scenario, in SGD and USS each dialogue is one customer, in
MemDaily each trajectory one user, in JDDC each line is one customer. JDDC has no roles: within a line of
questions (``train.enc``) speakers are taken to alternate, the customer first, and the line of answers
(``train.dec``) is the agent's; that is often wrong, so this set shows cleaning and accounts, not quality.
Ratings of USS: the one of a whole dialogue (its last line, which nobody said) is an event of the kind ``rating``,
the mean of its annotators; those of single messages are left out.
"""

import csv
import gzip
import io
import json
import re
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

BEGIN = datetime(2024, 1, 1, 9, tzinfo=UTC)
JDDC_ROWS = 20_000
_TURN = re.compile(r"^(user|assistant|tool): ", re.M)
_CUSTOMER = re.compile(r"[a-z]+_[a-z]+_\d+")
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")


@dataclass(frozen=True)
class Question:
    """``evidence``: turn ids that answer it; empty where the set says nothing."""

    subject: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True)
class DataSet:
    """``convert`` writes ``file`` from the data folder; ``samples`` are asked of the people most is known about."""

    name: str
    scenario: str
    file: str
    convert: Callable[[Path, Path], None]
    samples: tuple[str, ...] = ()


# ---- LoCoMo


def locomo(data: Path, file: Path) -> None:
    """The first conversation of the dev set, as native JSON lines."""
    _write_lines(file, locomo_rows(locomo_sample(data)))


def locomo_all(data: Path, file: Path) -> None:
    """All conversations of the dev set, as native JSON lines."""
    samples = json.loads((data / "locomo" / "locomo_dev.json").read_text(encoding="utf-8"))
    _write_lines(file, (row for sample in samples for row in locomo_rows(sample)))


def locomo_rows(sample: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every turn with its own id; image captions are left out."""
    name, conversation = sample["sample_id"], sample["conversation"]
    for session, turns in sorted(conversation.items()):
        if not isinstance(turns, list):
            continue
        at = datetime.strptime(conversation[f"{session}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for i, turn in enumerate(turns):
            yield {
                "turn_id": f"{name}/{turn['dia_id']}",
                "conversation_id": name,
                "session_id": f"{name}/{session}",
                "user_id": turn["speaker"],
                "role": "user",
                "occurred_at": (at + timedelta(seconds=30 * i)).isoformat(),
                "text": turn["text"],
            }


def locomo_questions(sample: dict[str, Any]) -> list[Question]:
    """The conversation's answerable questions (category 5 is not), each with the turns that answer it.

    Asked of the speaker whom the question names; of nobody (an empty subject) if it names both or neither."""
    name, conversation = sample["sample_id"], sample["conversation"]
    known = {turn["dia_id"] for turns in conversation.values() if isinstance(turns, list) for turn in turns}
    speakers = (conversation["speaker_a"], conversation["speaker_b"])
    questions = []
    for item in sample["qa"]:
        found = _EVIDENCE.findall(" ".join(item.get("evidence") or []))
        ids = dict.fromkeys(f"D{int(session)}:{int(turn)}" for session, turn in found)
        evidence = tuple(f"{name}/{turn}" for turn in ids if turn in known)
        if item["category"] == 5 or not evidence:
            continue
        named = [speaker for speaker in speakers if speaker in item["question"]]
        questions.append(Question(f"u:{named[0]}" if len(named) == 1 else "", item["question"], evidence))
    return questions


def locomo_speakers(sample: dict[str, Any]) -> tuple[str, str]:
    """The subjects of both speakers."""
    conversation = sample["conversation"]
    return f"u:{conversation['speaker_a']}", f"u:{conversation['speaker_b']}"


def locomo_sample(data: Path) -> dict[str, Any]:
    """The first conversation of the dev set, as its file has it."""
    samples: list[dict[str, Any]] = json.loads((data / "locomo" / "locomo_dev.json").read_text(encoding="utf-8"))
    return samples[0]


# ---- CrossWOZ


def crosswoz(data: Path, file: Path) -> None:
    """The validation set, as OpenAI messages."""
    with zipfile.ZipFile(data / "crosswoz_zh" / "val.json.zip") as archive:
        dialogues = json.loads(archive.read("val.json"))
    _write_lines(file, crosswoz_rows(dialogues))


def crosswoz_rows(dialogues: dict[str, Any]) -> Iterator[dict[str, Any]]:
    roles = {"usr": "user", "sys": "assistant"}
    for k, (name, dialogue) in enumerate(sorted(dialogues.items())):
        said = [(roles[message["role"]], message["content"]) for message in dialogue["messages"]]
        yield _conversation(k, name, f"annotator-{dialogue['sys-usr'][1]}", said)


# ---- JDDC


def jddc(data: Path, file: Path) -> None:
    """The first 20,000 messages, as CSV."""
    jddc_csv(data, file, JDDC_ROWS)


def jddc_csv(data: Path, file: Path, limit: int) -> None:
    folder = data / "jddc_baseline_zh"
    with (folder / "train.enc").open(encoding="utf-8") as asked, (folder / "train.dec").open(encoding="utf-8") as told:
        pairs = list(zip(asked, told, strict=True))
    stream = io.StringIO(newline="")
    rows = list(islice(jddc_rows(pairs), limit))
    writer = csv.DictWriter(stream, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    file.write_text(stream.getvalue(), encoding="utf-8", newline="")


def jddc_rows(pairs: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """Messages are what stands between commas; a line of questions and its line of answers are a conversation."""
    for k, (asked, told) in enumerate(pairs):
        said = [(("user", "agent")[i % 2], text) for i, text in enumerate(_pieces(asked))]
        said += [("agent", text) for text in _pieces(told)]
        for i, (role, text) in enumerate(said):
            yield {
                "conversation_id": f"jddc-{k}",
                "user_id": f"jddc-{k}",
                "role": role,
                "occurred_at": _time(k, i),
                "text": text,
            }


def _pieces(line: str) -> list[str]:
    return [piece for piece in line.strip().split(",") if piece]


# ---- tau-bench


def tau_bench(data: Path, file: Path) -> None:
    """All few-shot conversations, as OpenAI messages; tool results are rows of the role ``tool``."""
    shown = []
    for path in sorted((data / "tau_bench").glob("*few_shot.jsonl")):
        domain = "airline" if "Airline" in path.name else "retail"
        lines = path.read_text(encoding="utf-8").splitlines()
        shown += [(f"{domain}-{i}", json.loads(line)["messages_display"]) for i, line in enumerate(lines)]
    _write_lines(file, tau_bench_rows(shown))


def tau_bench_rows(shown: list[tuple[str, str]]) -> Iterator[dict[str, Any]]:
    """A message ``None`` is one that only calls a tool: it has no content."""
    for k, (name, text) in enumerate(shown):
        parts = _TURN.split(text)
        said = [(role, body.strip()) for role, body in zip(parts[1::2], parts[2::2], strict=True)]
        customer = next((body for role, body in said if role == "tool" and _CUSTOMER.fullmatch(body)), name)
        yield _conversation(k, name, customer, [(role, None if body == "None" else body) for role, body in said])


# ---- MemDaily


def memdaily(data: Path, file: Path) -> None:
    """All trajectories; messages keep their fields, so that their times are the mapping's business."""
    _write_lines(
        file,
        (
            row
            for path in sorted((data / "memdaily_zh").glob("*.json"))
            for row in memdaily_rows(path.stem, json.loads(path.read_text(encoding="utf-8")))
        ),
    )


def memdaily_rows(name: str, trajectories: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for trajectory in trajectories:
        owner = f"{name}/{trajectory['tid']}"
        for message in trajectory["message_list"]:
            yield message | {"owner": owner, "mid": f"{owner}/{message['mid']}"}


# ---- MemoryBank


def memorybank(data: Path, file: Path) -> None:
    """The histories in both languages; people of the two are two."""
    _write_lines(
        file,
        (
            row
            for language in ("cn", "en")
            for row in memorybank_rows(
                json.loads((data / "memorybank" / f"memory_bank_{language}.json").read_text(encoding="utf-8"))
            )
        ),
    )


def memorybank_rows(people: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for name, person in people.items():
        for day, exchanges in person["history"].items():
            at = datetime.fromisoformat(day).replace(hour=BEGIN.hour, tzinfo=UTC)
            said = [pair for each in exchanges for pair in (("user", each["query"]), ("assistant", each["response"]))]
            for i, (role, text) in enumerate(said):
                yield {
                    "conversation_id": f"{name}/{day}",
                    "user_id": name,
                    "role": role,
                    "occurred_at": (at + timedelta(minutes=i)).isoformat(),
                    "text": text,
                }


# ---- SGD, USS, ABCD


def sgd(data: Path, file: Path) -> None:
    """All dialogues, as OpenAI messages."""
    dialogues = [
        dialogue
        for path in sorted((data / "sgd" / "train").glob("dialogues_*.json.gz"))
        for dialogue in json.loads(gzip.decompress(path.read_bytes()))
    ]
    _write_lines(file, sgd_rows(dialogues))


def sgd_rows(dialogues: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for k, dialogue in enumerate(dialogues):
        said = [(_SIDES[turn["speaker"]], turn["utterance"]) for turn in dialogue["turns"]]
        yield _conversation(k, dialogue["dialogue_id"], dialogue["dialogue_id"], said)


def uss(data: Path, file: Path) -> None:
    """All dialogues, as rows; each ends in its rating."""
    text = (data / "uss_satisfaction" / "SGD.txt").read_text(encoding="utf-8")
    _write_lines(file, uss_rows(text))


def uss_rows(text: str) -> Iterator[dict[str, Any]]:
    for k, block in enumerate(filter(None, (block.strip("\n") for block in text.split("\n\n")))):
        for i, line in enumerate(block.split("\n")):
            side, said, _, ratings = line.split("\t")
            row = {"user_id": f"uss-{k}", "conversation_id": f"uss-{k}", "occurred_at": _time(k, i)}
            if said == "OVERALL":
                marks = [int(mark) for mark in ratings.split(",")]
                yield row | {"kind": "rating", "value": sum(marks) / len(marks), "reference": f"uss-{k}"}
            else:
                yield row | {"role": _SIDES[side], "text": said}


def abcd(data: Path, file: Path) -> None:
    """The sample's dialogues, as OpenAI messages; what the agent clicked has the role ``tool``."""
    path = data / "abcd_partial" / "abcd_sample.json"
    _write_lines(file, abcd_rows(json.loads(path.read_text(encoding="utf-8"))))


def abcd_rows(dialogues: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    roles = {"customer": "user", "agent": "assistant", "action": "tool"}
    for k, dialogue in enumerate(dialogues):
        said = [(roles[side], text) for side, text in dialogue["original"]]
        customer = dialogue["scenario"]["personal"]["customer_name"]
        yield _conversation(k, str(dialogue["convo_id"]), customer, said)


# ---- what they share

_SIDES = {"USER": "user", "SYSTEM": "assistant"}


def _conversation(k: int, name: str, user: str, said: list[tuple[str, str | None]]) -> dict[str, Any]:
    messages = [{"role": role, "content": text, "created_at": _time(k, i)} for i, (role, text) in enumerate(said)]
    return {"id": name, "user": user, "messages": messages}


def _time(conversation: int, message: int) -> str:
    return (BEGIN + timedelta(hours=conversation, minutes=message)).isoformat()


def _write_lines(file: Path, rows: Iterator[dict[str, Any]]) -> None:
    with file.open("w", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


DATA_SETS = (
    DataSet("locomo", "assistant", "locomo.jsonl", locomo),
    DataSet(
        "crosswoz",
        "customer_service",
        "crosswoz.jsonl",
        crosswoz,
        ("我之前想找什么样的酒店？", "我问过哪些景点？", "之前推荐的餐馆人均消费多少？"),
    ),
    DataSet(
        "jddc",
        "customer_service",
        "jddc.csv",
        jddc,
        ("我之前反映过什么问题？", "我的订单怎么了？", "我要求退货了吗？"),
    ),
    DataSet(
        "tau_bench",
        "customer_service",
        "tau_bench.jsonl",
        tau_bench,
        ("What did I want to return or exchange?", "Which flight did I ask about?", "What is my address?"),
    ),
)
