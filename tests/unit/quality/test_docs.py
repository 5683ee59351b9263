"""Data docs: a page per suite that shows expectations and no values, and the list of all pages."""

from pathlib import Path

import pandas as pd

from memory_pipelines.quality.docs import write_page
from memory_pipelines.quality.suites import run_suite


def impacts() -> pd.DataFrame:
    rows = [("o", f"x{i}", i % 10 / 10) for i in range(60)]
    return pd.DataFrame(rows, columns=["owner", "exchange_id", "decision_impact"])


def test_a_page_shows_what_was_expected_and_no_value() -> None:
    frame = impacts()
    frame.loc[3, "exchange_id"] = "SECRETONE"
    frame.loc[4, "decision_impact"] = 77.125
    found = run_suite("impact", frame)
    assert not found.passed
    assert {failure.name for failure in found.failures} >= {"impact in 0 to 1"}
    assert "impact is known" in found.held
    assert "values must be greater than or equal to" in found.page
    assert "SECRETONE" not in found.page
    assert "77.125" not in found.page


def test_pages_are_listed_and_replaced(tmp_path: Path) -> None:
    folder = tmp_path / "docs"
    write_page(folder, "impact", "old")
    assert write_page(folder, "impact", "<p>new</p>") == folder / "impact.html"
    write_page(folder, "behaviour", "<p>other</p>")
    assert (folder / "impact.html").read_text(encoding="utf-8") == "<p>new</p>"
    index = (folder / "index.html").read_text(encoding="utf-8")
    assert index.count('<a href="') == 2
    assert sorted(path.name for path in folder.iterdir()) == ["behaviour.html", "impact.html", "index.html"]
