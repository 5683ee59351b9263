"""The wheel: what is in it, and that the thin install is enough for recall."""

import json
import os
import re
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

PROBE = """
import importlib.abc, json, os, sys
absent = set(json.loads(os.environ["ABSENT"]))

class OnlyTheThinInstall(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in absent:
            raise ModuleNotFoundError(f"{name} is not in the thin install", name=name)

sys.meta_path.insert(0, OnlyTheThinInstall())
import memory_pipelines
assert "site" in memory_pipelines.__file__, memory_pipelines.__file__
from memory_pipelines.recall import Recall
from memory_pipelines.stores import cold, graph, hot, relational, vectors
from memory_pipelines.stores.database import connect
from memory_pipelines.models.embeddings import load_embedder
from memory_pipelines.settings import Settings
from memory_pipelines.stores.fakes import MemoryCold, MemoryGraph, MemoryHot, MemoryVectors
from memory_pipelines.clock import SystemClock
from memory_pipelines import cli
authority = relational.PostgresAuthority(connect("sqlite://"))
recall = Recall(authority, MemoryVectors(), MemoryGraph(), MemoryHot(), MemoryCold(),
                load_embedder(Settings(embedder="use")), SystemClock(), 1500)
print(recall.recall("where is my parcel?", tenant="t", subject="u:1").items)
try:
    import dagster
except ModuleNotFoundError:
    print("no dagster")
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_wheel_holds_the_library_and_its_data_and_nothing_else(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {t for t in tops if not t.endswith(".dist-info")} == {"memory_pipelines"}
    assert "memory_pipelines/definitions.py" not in names
    shipped = {p.relative_to(ROOT).as_posix() for p in (ROOT / "memory_pipelines").rglob("*") if p.is_file()}
    data = {name for name in shipped if not name.endswith((".py", ".pyc"))}
    assert data, "there is package data"
    assert data <= set(names)


def test_the_thin_install_recalls_without_dagster(wheel: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    environment = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "DAGSTER_HOME"}}
    environment |= {"PYTHONPATH": str(site), "ABSENT": json.dumps(sorted(_absent_modules()))}
    done = subprocess.run(
        [sys.executable, "-P", "-c", PROBE], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.split() == ["()", "no", "dagster"]


def _absent_modules() -> set[str]:
    """Top-level modules that are installed here but would not be by the thin install."""
    waiting, seen = ["memory-pipelines"], set()
    while waiting:
        name = waiting.pop()
        if name in seen:
            continue
        seen.add(name)
        try:
            requirements = metadata.requires(name) or []
        except metadata.PackageNotFoundError:
            continue  # needed on another platform or Python only
        # drivers name some of their own needs as extras (psycopg[binary]): take those, not ours
        own = name == "memory-pipelines"
        wanted = [r for r in requirements if not (own and "extra ==" in r)]
        waiting += [re.split(r"[ ;<>=!~\[(]", r)[0].lower().replace("_", "-") for r in wanted]
    present = metadata.packages_distributions().items()
    return {module for module, names in present if not {n.lower().replace("_", "-") for n in names} & seen}
