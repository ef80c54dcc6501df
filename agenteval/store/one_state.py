"""A function that reads a store in several steps, and means one state of it."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

from agenteval.store.store import Store

_P = ParamSpec("_P")
_R = TypeVar("_R")


def of_one_state(
    read: Callable[Concatenate[Store, _P], _R],
) -> Callable[Concatenate[Store, _P], _R]:
    """The function, with all that it reads of the store, its first argument, in one snapshot."""

    @wraps(read)
    def within(store: Store, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with store.snapshot():
            return read(store, *args, **kwargs)

    return within
