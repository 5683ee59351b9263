"""The locks of steps: over the lake, which a purge of erased rows holds alone, and over landing."""

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from memory_pipelines.wiring import Platform

P = ParamSpec("P")
R = TypeVar("R")


def uses_lake(step: Callable[Concatenate[Platform, P], R]) -> Callable[Concatenate[Platform, P], R]:
    """A step that reads or writes the lake: it waits for a purge to end, and a purge waits for it."""

    @wraps(step)
    def held(platform: Platform, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with platform.exclusion.shared():
            return step(platform, *args, **kwargs)

    return held


def lands_alone(step: Callable[Concatenate[Platform, P], R]) -> Callable[Concatenate[Platform, P], R]:
    """A step that lands rows: the next one waits for it to end."""

    @wraps(step)
    def held(platform: Platform, /, *args: P.args, **kwargs: P.kwargs) -> R:
        with platform.exclusion.landing():
            return step(platform, *args, **kwargs)

    return held
