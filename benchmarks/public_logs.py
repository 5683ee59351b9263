"""Public dialogue sets imported, run through all steps, published and recalled from.

    python -m benchmarks.public_logs DATA_FOLDER [--only locomo crosswoz jddc tau_bench] [--out FILE.json]

Belongs here: the protocol and what is printed. Does not belong here: the formats of the sets (``conversions``).

Protocol: each set in a fresh home with embedded servers; one converted file is landed, all days are cut and
labelled, all subjects derived and published, then questions are asked as of the end of the last day. Every row
read must be accounted for, else the run fails. For LoCoMo: R@10 of evidence turns, the mean over answerable
questions of the share of a question's evidence turns that are among the source turns of the 10 memories
recalled (of the person named in the question; 5 of each speaker if it names both or neither); beside it, what
the same share would be if all that is still remembered were recalled. It is a figure
for information: a memory holds several turns, so it does not compare with figures over single turns.
"""

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.conversions import DATA_SETS, DataSet, Question, locomo_questions, locomo_sample, locomo_speakers
from benchmarks.machine import describe, line
from benchmarks.workplace import temporary_home

if TYPE_CHECKING:
    from memory_pipelines.recall.answer import Answer
    from memory_pipelines.wiring import Platform

RECALLED = 10


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.public_logs", description=__doc__.partition("\n")[0])
    parser.add_argument("data", type=Path, help="folder of the public sets, one folder each")
    parser.add_argument("--only", nargs="+", choices=[d.name for d in DATA_SETS], help="these sets alone")
    parser.add_argument("--out", type=Path, help="also write the figures to this JSON file")
    arguments = parser.parse_args(argv)
    machine = describe()
    print(line(machine))
    figures = [run(s, arguments.data) for s in DATA_SETS if not arguments.only or s.name in arguments.only]
    if arguments.out:
        arguments.out.write_text(json.dumps({"machine": machine, "sets": figures}, indent=1), encoding="utf-8")
    return 1 if any(f["balance"] for f in figures) else 0


def run(data_set: DataSet, data: Path) -> dict[str, Any]:
    """One set through everything; prints and returns its figures."""
    from memory_pipelines.settings import Settings
    from memory_pipelines.wiring import connect

    print(f"\n== {data_set.name} (scenario {data_set.scenario})", flush=True)
    with tempfile.TemporaryDirectory(prefix="mp-bench-logs-") as folder, temporary_home() as home:
        log = Path(folder) / data_set.file
        data_set.convert(data, log)
        settings = replace(Settings.load({}), home=str(home), scenario=data_set.scenario)
        with connect(settings) as platform:
            seconds = _through_all_steps(platform, log)
            figures = {"name": data_set.name, "seconds": seconds} | _figures(platform)
            _print(figures)
            manifest = platform.ledger.manifest()
            assert manifest is not None
            as_of = manifest.landed_through
            if data_set.name == "locomo":
                figures["recall"] = _locomo(platform, data, as_of)
            else:
                for question in _samples(platform, data_set, as_of):
                    _show(question, _ask(platform, question.subject, question.text, as_of, 3))
    return figures


def _through_all_steps(platform: "Platform", log: Path) -> dict[str, float]:
    from memory_pipelines.pipeline import daily, derive, files
    from memory_pipelines.slices.emotion.score import label_emotions
    from memory_pipelines.slices.entities.find import label_entities
    from memory_pipelines.slices.intent.predict import label_intents
    from memory_pipelines.tables import EMOTIONS, ENTITIES, INTENTS

    marks = [time.perf_counter()]
    for landed in files.land(platform, [log]):
        assert landed.status == "landed", landed.error
    marks.append(time.perf_counter())
    days = list(platform.ledger.touched_days())
    daily.cut_days(platform, days)
    daily.label_days(platform, days, INTENTS, label_intents)
    daily.label_days(platform, days, EMOTIONS, label_emotions)
    daily.label_days(platform, days, ENTITIES, label_entities)
    daily.commit_days(platform, days)
    marks.append(time.perf_counter())
    derive.derive_buckets(platform, platform.ledger.touched_buckets())
    marks.append(time.perf_counter())
    names = ("land", "steps 1-4", "steps 5-7")
    return {name: round(b - a, 1) for name, a, b in zip(names, marks[:-1], marks[1:], strict=True)}


def _figures(platform: "Platform") -> dict[str, Any]:
    from memory_pipelines.pipeline import audit
    from memory_pipelines.tables import DECISIONS, EXCHANGES, INTENTS, MEMORIES, SLICES

    decisions = platform.lake.read(DECISIONS, columns=["outcome", "rule"])
    memories = platform.lake.read(MEMORIES, columns=["memory_type", "predicate"])
    visible = platform.authority.counts()
    return audit.accounts(platform).as_dict() | {
        "exchanges": platform.lake.read(EXCHANGES, columns=["owner"]).num_rows,
        "slices": platform.lake.read(SLICES, columns=["owner"]).num_rows,
        "intents": _counted(platform.lake.read(INTENTS, columns=["intent"])["intent"]),
        "outcomes": _counted(decisions["outcome"]),
        "rules": _counted(decisions["rule"]),
        "memories": _counted(memories["memory_type"]),
        "predicates": _counted(memories["predicate"]),
        "visible": visible,
    }


def _counted(column: Any) -> dict[str, int]:
    return dict(Counter(column.to_pylist()).most_common())


def _print(figures: dict[str, Any]) -> None:
    print(
        f"{figures['rows']} rows in = {figures['in_exchanges']} turns in exchanges"
        f" + {sum(figures['filtered'].values())} filtered {figures['filtered']} + {figures['nobody']} of nobody"
        f" + {sum(figures['quarantined'].values())} quarantined {figures['quarantined']}"
        f" + {figures['duplicates']} duplicates + {figures['uncut']} uncut; balance {figures['balance']}"
    )
    print(f"{figures['exchanges']} exchanges, {figures['slices']} event slices; intents {figures['intents']}")
    print(f"decisions {figures['outcomes']}, by rule {figures['rules']}")
    print(f"memories in the lake {figures['memories']}, visible {figures['visible']}")
    print(f"predicates of facts { {k: v for k, v in figures['predicates'].items() if k} }")
    print(f"seconds {figures['seconds']}", flush=True)


# ---- recall


def _ask(platform: "Platform", subject: str, query: str, as_of: datetime, limit: int) -> "Answer":
    return platform.recall.recall(
        query, tenant=platform.settings.tenant, subject=subject, as_of=as_of, limit=limit, explain=True
    )


def _show(question: Question, answer: "Answer") -> None:
    from memory_pipelines.cli import print_answer

    print(f"\n{question.subject} asks: {question.text}")
    print_answer(answer)


def _samples(platform: "Platform", data_set: DataSet, as_of: datetime) -> list[Question]:
    """The set's questions, one each to the people of whom most is remembered and has not expired."""
    from memory_pipelines.tables import MEMORIES

    rows = platform.lake.read(MEMORIES, columns=["subject", "expires_at"]).to_pylist()
    known = Counter(r["subject"] for r in rows if r["expires_at"] is None or r["expires_at"] > as_of)
    people = sorted(known, key=lambda subject: (-known[subject], subject))
    return [Question(subject, text) for subject, text in zip(people, data_set.samples, strict=False)]


def _locomo(platform: "Platform", data: Path, as_of: datetime) -> dict[str, Any]:
    """R@10 of evidence turns over all answerable questions; shows the first ones of each speaker."""
    sample = locomo_sample(data)
    questions, speakers = locomo_questions(sample), locomo_speakers(sample)
    held = _held(platform, speakers, as_of)
    shown = [next(q for q in questions if q.subject == speaker) for speaker in speakers]
    shown.append(next(q for q in questions if q not in shown))
    shares, reachable = [], []
    for question in questions:
        asked = [question.subject] if question.subject else speakers
        answers = [_ask(platform, who, question.text, as_of, RECALLED // len(asked)) for who in asked]
        found = {turn for answer in answers for item in answer.items for turn in item.memory.source_turn_ids}
        shares.append(sum(turn in found for turn in question.evidence) / len(question.evidence))
        reachable.append(sum(turn in held for turn in question.evidence) / len(question.evidence))
        if question in shown:
            _show(question, answers[0])
            print(f"    evidence found: {shares[-1]:.2f}")
    n = len(questions)
    mean, most, whole = sum(shares) / n, sum(reachable) / n, sum(share == 1 for share in shares)
    print(f"\nR@{RECALLED} of evidence turns {mean:.3f}, n = {n} questions, {whole} with all of their evidence;")
    print(f"{most:.3f} if everything that is still remembered were recalled: the rest expired or was not admitted")
    return {"r_at_10": round(mean, 4), "n": n, "all_found": whole, "reachable": round(most, 4)}


def _held(platform: "Platform", subjects: Sequence[str], as_of: datetime) -> set[str]:
    """Turn ids that some memory of the subjects still holds."""
    from memory_pipelines.model import Owner

    memories = [
        memory for who in subjects for memory in platform.authority.visible(Owner(platform.settings.tenant, who))
    ]
    return {t for m in memories if m.expires_at is None or m.expires_at > as_of for t in m.source_turn_ids}


if __name__ == "__main__":
    sys.exit(main())
