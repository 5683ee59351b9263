"""How much work a call is: the lines of a module that it runs. A count, so no clock can be wrong about it."""

import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any


def lines_run(module: ModuleType, call: Callable[[], object]) -> int:
    """How many lines of the module run during the call."""
    count = 0

    def tracer(frame: Any, event: str, _: Any) -> Any:
        nonlocal count
        if frame.f_code.co_filename != module.__file__:
            return None
        count += 1
        return tracer

    before = sys.gettrace()
    sys.settrace(tracer)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
