"""The sync form of an experiment: plain, in a running loop, interrupted; who hears of it."""

from __future__ import annotations

import asyncio
import os
import signal
import threading

import pytest

from agenteval.cli.running import Interrupted, Stopped, Warned, Watch, synchronous
from agenteval.reporting.report import Report

DONE = Report(title="half", tables=())


async def adouble(number: int, *, name: str = "x") -> str:
    """The number twice, with a name."""
    await asyncio.sleep(0)
    return f"{name}{2 * number}"


async def awork() -> Report:
    """Works until it is cancelled, and has something to show then."""
    try:
        await asyncio.sleep(30)
    except asyncio.CancelledError as error:
        raise Stopped(DONE) from error
    return Report(title="whole", tables=())


def test_it_works_inside_a_running_loop() -> None:
    async def notebook() -> str:
        return synchronous(adouble)(3)

    assert asyncio.run(notebook()) == "x6"


@pytest.mark.parametrize("inside", [False, True])
def test_ctrl_c_shows_what_was_done(inside: bool) -> None:
    def interrupted() -> None:
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
        with pytest.raises(Interrupted) as caught:
            synchronous(awork)()
        assert caught.value.report is DONE

    async def notebook() -> None:
        interrupted()

    if not inside:
        interrupted()
        return
    loop = asyncio.new_event_loop()  # asyncio.run would take the signal for itself
    loop.run_until_complete(notebook())
    loop.close()


def test_a_cancelled_async_form_is_cancelled() -> None:
    async def outer() -> Report:
        task = asyncio.ensure_future(awork())
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await task
        assert isinstance(caught.value, Stopped)
        return caught.value.report

    assert asyncio.run(outer()) is DONE


def test_what_matters_is_told_at_once_or_kept_for_the_report() -> None:
    heard: list[str] = []
    loud, quiet = Watch(heard.append), Watch()
    for watch in (loud, quiet):
        watch.note("90 calls")
        watch.warn("3 runs name no system")
        watch.warn_list("found:", ["a", "b", "c"], most=2)
    assert heard == [
        "90 calls",
        "3 runs name no system",
        "found:",
        "  a",
        "  b",
        "  ... and 1 more",
    ]
    assert [isinstance(line, Warned) for line in heard] == [False, *[True] * 5]
    assert loud.notes == []
    assert quiet.notes == ["3 runs name no system", "found: a; b; ... and 1 more"]
