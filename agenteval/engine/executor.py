"""Evaluate the units of an experiment in this process or in Ray actors."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol

from agenteval.engine.unit import Evaluate, Evaluator
from agenteval.errors import InputError
from agenteval.store import Store


class Executor(AbstractContextManager[Any], Protocol):
    """Evaluates the units of all experiments of one command. Resources are released at the end of
    the `with` block. `distributed` is True if units run in other processes."""

    distributed: bool

    async def prepare(self, evaluator: Evaluator[Any], store: Store) -> Evaluate:
        """Return a function that evaluates a unit. Raises InputError if that is impossible."""
        ...


class LocalExecutor(nullcontext[None]):
    """Evaluates units in the event loop of this process."""

    distributed = False

    async def prepare(self, evaluator: Evaluator[Any], store: Store) -> Evaluate:
        """Return the evaluator's own method."""
        return evaluator.evaluate


def make_executor(workers: int | None = None, ray: str | None = None) -> Executor:
    """Return the executor for `--workers` and `--ray`. Processes are started when needed.

    Raises InputError if the number of workers is below 1, or if Ray is not installed.
    """
    if workers is not None and workers < 1:
        raise InputError(f"{workers}: must be at least 1", "--workers")
    if workers is None and ray is None:
        return LocalExecutor()
    from agenteval.engine.ray_executor import RayExecutor

    return RayExecutor(workers, ray)
