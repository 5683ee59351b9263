"""The builder of slices as a fixture."""

from collections.abc import Callable

import pytest
from admission_world import Row, make_slice


@pytest.fixture
def slice_row() -> Callable[..., Row]:
    return make_slice
