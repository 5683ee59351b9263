"""A filled world over in-memory stores, and one whose lake is Delta on disk."""

from pathlib import Path

import pytest
from suites import erasure_world
from suites.erasure_world import World

from memory_pipelines.stores.lake import DeltaLake


@pytest.fixture
def world(tmp_path: Path) -> World:
    return erasure_world.fill(erasure_world.in_memory(), tmp_path)


@pytest.fixture
def on_disk(tmp_path: Path) -> World:
    world = erasure_world.in_memory()
    world.lake = DeltaLake(str(tmp_path / "lake"))
    return erasure_world.fill(world, tmp_path)
