"""The slice graph within the pipeline: whose edges are written, from what, and what the run shows of it."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest
from pipeline_world import clean_run, cut, derive_all

from memory_pipelines.model import Owner
from memory_pipelines.pipeline import derive, files
from memory_pipelines.slices.graph.picture import draw
from memory_pipelines.tables import EDGES

SOMEBODY = Owner("default", "u:person-0815")


def test_only_the_edges_of_touched_subjects_are_written(
    month: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    platform = clean_run(month)
    before = platform.lake.read(EDGES)
    row = {
        "conversation_id": "c-more",
        "user_id": "person-0815",
        "turn_id": "h9",
        "role": "user",
        "text": "订单 20240301888 还没有到，顺丰太慢了，我要投诉",
        "occurred_at": int(datetime(2024, 3, 5, 9, tzinfo=UTC).timestamp()),
    }
    more = tmp_path / "logs" / "default" / "more.jsonl"
    more.parent.mkdir(parents=True)
    more.write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")
    files.land(platform, [more])
    written: list[tuple[set[str], Any]] = []
    write = platform.lake.write

    def noted(spec: Any, rows: Any, replaced: Any = (), *rest: Any, **named: Any) -> Any:
        if spec is EDGES:
            written.append((set(rows["owner"].to_pylist()), replaced))
        return write(spec, rows, replaced, *rest, **named)

    monkeypatch.setattr(platform.lake, "write", noted)
    cut(platform, list(platform.ledger.touched_days()))
    derive_all(platform)
    assert written
    for owners, replaced in written:
        assert owners <= {SOMEBODY.key}
        assert [r.values for r in replaced if r.column == "owner"] == [(SOMEBODY.key,)]
    after = platform.lake.read(EDGES)
    keys = [(name, "ascending") for name in EDGES.key]
    others = [table.filter(pc.not_equal(table["owner"], SOMEBODY.key)).sort_by(keys) for table in (before, after)]
    assert others[0].equals(others[1])
    own = [table.filter(pc.equal(table["owner"], SOMEBODY.key)).num_rows for table in (before, after)]
    assert own[1] > own[0]


def test_behaviour_is_a_cause_and_an_effect_and_a_run_shows_a_graph(
    month: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    linked: list[derive.Linked] = []
    link = derive.link_buckets

    def noted(*arguments: Any) -> derive.Linked:
        linked.append(link(*arguments))
        return linked[-1]

    monkeypatch.setattr(derive, "link_buckets", noted)
    platform = clean_run(month)
    edges = platform.lake.read(EDGES).to_pylist()
    causes = [edge for edge in edges if edge["kind"] == "causes"]
    assert any(edge["source"].startswith("event:order:") for edge in causes)
    assert any(edge["target"].startswith("event:") for edge in causes)
    assert sum((found.kinds for found in linked[1:]), linked[0].kinds).total() == len(edges)
    shown = [found.shown for found in linked if found.shown is not None]
    assert all(draw(portrait).startswith(b"\x89PNG") for portrait in shown)
    assert {"causes", "mentions"} <= {kind for portrait in shown for _, _, kind, _ in portrait.links}
