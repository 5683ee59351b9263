"""The benchmark of the reward model: its figures by hand, and its shop on a shop of three rows."""

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from benchmarks.reward import retail, simulator, speed
from benchmarks.reward.worlds import of_rows
from memory_pipelines.tables import BEHAVIOUR

HEAD = "InvoiceNo,StockCode,Description,Quantity,InvoiceDate,UnitPrice,CustomerID,Country\n"


def test_correlations_and_calibration_by_hand() -> None:
    scores, effects = np.array([0.1, 0.15, 0.9]), np.array([0.0, 0.1, 0.8])
    found = simulator.judge(scores, effects)
    assert found.spearman == 1
    assert found.pearson == pytest.approx(np.corrcoef(scores, effects)[0, 1], abs=1e-4)
    assert simulator.curve(scores, effects) == [(0.125, 0.05, 2), (0.9, 0.8, 1)]
    assert found.error == pytest.approx((2 * 0.075 + 0.1) / 3, abs=1e-4)
    assert found.above == pytest.approx(1.15 / 3 - 0.3, abs=1e-4)
    with pytest.raises(ValueError, match="constant"):
        simulator.judge(np.ones(3), effects)


def test_ties_share_their_rank() -> None:
    assert simulator._ranks(np.array([3.0, 1.0, 3.0, 2.0])).tolist() == [3.5, 1, 3.5, 2]


def test_effects_are_joined_by_owner_and_exchange() -> None:
    rows = pa.table({"owner": ["o", "p"], "exchange_id": ["e", "e"]})
    assert str(of_rows({("o", "e"): 0.5}, rows).tolist()) == "[0.5, nan]"


def test_a_perfect_oracle_would_find_the_effects() -> None:
    draw = np.random.default_rng(1)
    features = draw.random((400, 3))
    oracle = simulator._oracle(features, features[:, 1])
    assert simulator.judge(oracle.predict(features), features[:, 1]).pearson > 0.95


def shop(folder: Path, lines: list[str]) -> Path:
    (folder / "online_retail").mkdir()
    with gzip.open(folder / "online_retail" / retail.FILE, "wt", encoding="utf-8") as file:
        file.write(HEAD + "".join(f"{line}\n" for line in lines))
    return folder


def test_invoices_become_orders_and_cancellations(tmp_path: Path) -> None:
    rows = retail.read(
        shop(
            tmp_path,
            [
                "1,a,A,2,2011-01-03 08:00:00,2.5,17.0,UK",
                "1,b,B,1,2011-01-03 08:00:00,1.0,17.0,UK",
                "C2,a,A,-2,2011-01-04 09:00:00,2.5,17.0,UK",
                "3,c,nobody,1,2011-01-04 09:00:00,2.5,,UK",
                "4,d,free,1,2011-01-04 09:00:00,0.0,18.0,UK",
            ],
        )
    )
    assert rows.schema == BEHAVIOUR.schema
    found = sorted((row["event_id"], row["kind"], row["subject"], row["value"]) for row in rows.to_pylist())
    assert found == [("1", "order", "u:17", 6.0), ("C2", "cancel", "u:17", 5.0)]


def test_both_protocols_run_on_a_made_up_shop(tmp_path: Path) -> None:
    """Half of the customers come each third day, half each twelfth; a cancellation changes nothing."""
    lines, start, number = [], datetime(2011, 1, 1, 9, tzinfo=UTC), 0
    for customer in range(60):
        step = 3 if customer % 2 else 12
        for day in range(customer % 3, 180, step):
            number += 1
            at = start + timedelta(days=day)
            lines.append(f"{number},a,A,1,{at:%Y-%m-%d %H:%M:%S},2.5,{customer}.0,UK")
            if number % 10 == 0:
                lines.append(f"C{number},a,A,-1,{at + timedelta(hours=1):%Y-%m-%d %H:%M:%S},2.5,{customer}.0,UK")
    behaviour = retail.read(shop(tmp_path, lines))
    within = retail.order_within_a_week(behaviour)
    assert within["purchases"].auc["expected orders"] > 0.95
    # two thirds of those who buy within a week always do; of the others classes of rates cannot tell who will
    assert within["Mondays"].auc["expected orders"] >= 0.66
    falls = retail.cancellations(behaviour)
    for fall in falls.values():
        assert fall.low <= fall.fall <= fall.high
        assert abs(fall.fall) < 0.15
    assert falls["matched purchases"].rows <= falls["cancellations"].rows


def test_made_up_events_of_the_speed_are_trained_on_and_scored() -> None:
    steps = list(speed.run(3_000, 150))
    assert [step.name for step in steps][1::2] == ["training", "scoring"]
    assert all(step.events == 3_000 and step.processor > 0 for step in steps)
    assert [step.name for step in speed.run(500, 1)][-1] == "features for scoring"
    assert speed.peak_memory() > 0
