"""Run one agent on one request within its limits, and keep its log however it ends."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Iterator
from typing import Any

from agenteval.agents.protocol import Agent, AgentFailure, AgentLog, Dialogue, Ending
from agenteval.agents.toolbox import Toolbox, clean
from agenteval.errors import (
    AgentevalError,
    BudgetExceeded,
    Filtered,
    InputError,
    ModelError,
    ModelUnavailable,
    RequestTimeout,
    TooLong,
    Unauthorized,
)
from agenteval.records import FailureStatus
from agenteval.text import raised_at, redacted

_log = logging.getLogger(__name__)
_GRACE = 2.0  # seconds a cancelled agent gets to close its connections
_MAX_OUTPUT = 100_000  # characters of last words
_BEAT = 0.05  # seconds between two checks that the event loop is not blocked
_JITTER = 0.25  # seconds that a busy machine may be late
_STATUS: tuple[tuple[type[Exception], FailureStatus], ...] = (
    (RequestTimeout, "error:timeout"),
    (TooLong, "unscored:too_long"),
    (Filtered, "unscored:refusal"),
)
_FATAL = (Unauthorized, BudgetExceeded, InputError, ModelUnavailable)  # all AgentevalError


async def drive(agent: Agent, task: Dialogue | str, tools: Toolbox) -> AgentLog | AgentFailure:
    """Return the log of the agent for a request or a turn of a dialogue, within the limits of the
    toolbox, or an AgentFailure if the endpoint, the adapter or a tool failed.

    A timeout and too many turns are endings of the agent; but no timeout is its own when the event
    loop stood still for a second and a tenth of the time, or an AsyncBackend took as much of it.
    Unauthorized, BudgetExceeded, InputError and ModelUnavailable are raised, `spent` set to what
    the case took: they would make every further case fail too.

    A stopped agent is cancelled, and again after 2 seconds. One that continues is logged and
    abandoned; asyncio waits for it when the process ends.
    """
    dialogue = Dialogue.of(task) if isinstance(task, str) else task
    tools.begin()
    work = asyncio.ensure_future(_work(agent, dialogue, tools))
    watch = _Watch(tools)
    halted = asyncio.ensure_future(watch.run())
    try:
        await asyncio.wait(
            {work, halted}, timeout=tools.limits.seconds, return_when=asyncio.FIRST_COMPLETED
        )
    finally:
        in_time = work.done()
        tools.close()
        seconds, lost, waited = round(tools.elapsed(), 6), watch.lost, tools.waited
        halted.cancel()
        await _stop(work)
    error = tools.defect or _error(work)
    for part in _parts(error):
        if isinstance(part, _FATAL):
            part.spent = tools.usage
            raise part
    ending: Ending = "finished"
    if tools.defect is not None:
        return _failure(tools.defect, tools, seconds, "defect of the tools: ")
    if tools.exhausted.is_set():
        ending = "iterations"
    elif not in_time:
        ending = "timeout"
        fault = _not_its_fault(tools.limits.seconds, lost, waited)
        if fault is None and isinstance(error, ModelError):
            fault = error  # the endpoint took the time, as the adapter says
        if fault is not None:
            return _failure(fault, tools, seconds)
    elif error is not None:
        return _failure(error, tools, seconds)
    return AgentLog(
        events=tuple(tools.events),
        output=clean(work.result())[:_MAX_OUTPUT] if ending == "finished" else "",
        messages=tuple(tools.messages),
        ending=ending,
        turns=tools.turns,
        seconds=seconds,
        usage=tools.usage,
        model=tools.model,
    )


async def _work(agent: Agent, dialogue: Dialogue, tools: Toolbox) -> str:
    try:
        output: object = await agent.run(dialogue, tools)
    except SystemExit as left:  # would end the event loop and every other case
        raise AgentevalError(f"the agent left with SystemExit({left.code!r})") from left
    if not isinstance(output, str):
        raise AgentevalError(f"the adapter returned {type(output).__name__} instead of text")
    return output


def _not_its_fault(limit: float, lost: float, waited: float) -> AgentevalError | None:
    """Return an error if the timeout was not the agent's fault, else None."""
    much = max(1.0, 0.1 * limit)
    if lost > much:
        return AgentevalError(
            f"the event loop stood still for {lost:.1f} s, so the timeout tells nothing about this"
            " agent; put blocking code into a plain function or a separate command"
        )
    if waited > much:
        duration = f"the tools took {waited:.1f} s to answer"
        return AgentevalError(f"{duration}, so the timeout tells nothing about this agent")
    return None


class _Watch:
    """Waits until the agent must be stopped, and measures how long the event loop was blocked."""

    def __init__(self, tools: Toolbox) -> None:
        self._tools = tools
        self._last = time.monotonic()
        self._lost = 0.0

    @property
    def lost(self) -> float:
        """Seconds for which the event loop was blocked so far."""
        return self._lost + self._late()

    async def run(self) -> None:
        """Return once there were too many turns or calls, or a defect of the tools."""
        while not (self._tools.exhausted.is_set() or self._tools.defect):
            await asyncio.sleep(_BEAT)
            self._lost += self._late()
            self._last = time.monotonic()

    def _late(self) -> float:
        late = time.monotonic() - self._last - _BEAT
        return late if late > _JITTER else 0.0


async def _stop(work: asyncio.Future[str]) -> None:
    """Cancel the agent; once more if it is not over after its grace."""
    # retrieve the exception of an abandoned agent, so that asyncio does not complain
    work.add_done_callback(lambda work: work.cancelled() or work.exception())
    for grace in (_GRACE, _JITTER):
        if work.cancel():
            await asyncio.wait({work}, timeout=grace)
    if not work.done():
        _log.warning("an agent ignored its cancellation and continues in the background")


def _error(work: asyncio.Future[Any]) -> Exception | None:
    """Return what a finished agent raised.

    An interrupt of the process is raised again; other exceptions that do not derive from Exception
    would bypass every handler up to the campaign.
    """
    if not work.done():
        return None
    if work.cancelled():
        return AgentevalError("the agent cancelled itself")
    error = work.exception()
    if isinstance(error, KeyboardInterrupt):
        raise error
    if error is not None and not isinstance(error, Exception):
        return AgentevalError(f"the agent left with {type(error).__name__}")
    return error


def _parts(error: Exception | None) -> Iterator[BaseException]:
    """Return the error, or the errors of an exception group."""
    if isinstance(error, ExceptionGroup):
        for part in error.exceptions:
            yield from _parts(part)
    elif error is not None:
        yield error


def _failure(error: Exception, tools: Toolbox, seconds: float, about: str = "") -> AgentFailure:
    parts = list(_parts(error))
    if len(parts) == 1 and isinstance(parts[0], Exception):
        error = parts[0]
    return AgentFailure(
        status=next((s for kind, s in _STATUS if isinstance(error, kind)), "error:infrastructure"),
        message=redacted(clean(about + _text(error)))[:500],
        events=tuple(tools.events),
        seconds=seconds,
        usage=tools.usage,
    )


def _text(error: Exception) -> str:
    name = type(error).__name__
    try:
        if isinstance(error, AgentevalError):
            return str(error)
        return f"unexpected {name}: {error}{raised_at(error)}"
    except Exception:  # noqa: BLE001  an exception of the agent's own may fail to print
        return f"unexpected {name}"
