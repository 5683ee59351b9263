"""Fixtures of the recall tests; the world itself is in recall_world."""

import pytest
from recall_world import World


@pytest.fixture
def world() -> World:
    return World()
