"""Data docs: what Great Expectations found, as pages for people.

Belongs here: the page of one run, and the folder that holds the newest page of each suite. Does not belong here: the
suites, or where the folder is.
"""

import html
import os
from pathlib import Path
from typing import Any

INDEX = "index.html"


def render(result: Any) -> str:
    """A validation result as HTML. It shows expectations and counts; the result must hold no values of rows."""
    from great_expectations.render.renderer.page_renderer import ValidationResultsPageRenderer
    from great_expectations.render.view.view import DefaultJinjaPageView

    for found in result.results:
        observed = found.result.get("observed_value")
        if hasattr(observed, "item"):  # the renderer takes no numpy scalar
            found.result["observed_value"] = observed.item()
    view: Any = DefaultJinjaPageView()
    page: str = view.render(ValidationResultsPageRenderer().render(result))
    return page


def write_page(folder: Path, suite: str, page: str) -> Path:
    """Put a suite's page in place of its last one, and list all pages in ``index.html``; returns the page's path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{suite}.html"
    _replace(path, page)
    names = sorted(html.escape(found.stem) for found in folder.glob("*.html") if found.name != INDEX)
    links = "".join(f'<li><a href="{name}.html">{name}</a></li>' for name in names)
    head = "<!doctype html><meta charset=utf-8><title>Data docs</title><h1>Data docs</h1>"
    _replace(folder / INDEX, f"{head}<ul>{links}</ul>")
    return path


def _replace(path: Path, text: str) -> None:
    new = path.with_suffix(f".{os.getpid()}.new")
    new.write_text(text, encoding="utf-8")
    new.replace(path)
