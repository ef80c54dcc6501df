"""What a command says when it ends before its plan is done."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

from agenteval.cli.console import note, warn

if TYPE_CHECKING:
    from agenteval.evaluators.utility.plan import CellPlan
    from agenteval.experiment import Ended
    from agenteval.trust.means import Rating


class _Stopped(Protocol):
    @property
    def stopped(self) -> str | None: ...
    @property
    def left_out(self) -> int: ...


def why_stopped(ended: _Stopped, left: str) -> str:
    """Why it ended early; `left` says of what was left out that it was, e.g. "calls not made"."""
    return f"stopped, {ended.left_out} {left}: {ended.stopped}" if ended.left_out else (
        f"{ended.stopped}"
    )  # fmt: skip


def how_far(ended: Ended | None, plan: CellPlan, ratings: Iterable[Rating]) -> str | None:
    """How much of the plan is judged, when it was interrupted (None) or stopped; else None.

    What an endpoint or a budget left without an answer is not judged: it is asked again.
    """
    if ended is not None and not ended.stopped:
        return None
    judged = sum(not r.status.startswith("error:") for r in ratings)
    return f"{judged} of {plan.cells} cells are judged"


def say_waiting() -> None:
    """At the first Ctrl-C, while requests are under way of which the replies are kept."""
    note("interrupted: waiting for the replies under way; once more ends it at once")


def say_finishing() -> None:
    """At the first Ctrl-C, where one run after the other is made."""
    note("interrupted: finishing the run under way; once more ends it at once")


def say_interrupted(kept: str = "what is done is stored") -> int:
    """At the end of a command that was interrupted: what is kept, and how to go on; returns the
    exit code, which `main` turns into that of the signal."""
    warn(f"interrupted: {kept}; the same command goes on from here")
    return 130


REPLIES = "the replies that came are stored"  # of commands that keep nothing else until their end


def say_early(ended: Ended | None, far: str) -> int:
    """Say that it ended early, and how far it came; returns the exit code."""
    if ended is None:
        warn(f"interrupted: {far}; the same command goes on")
        return 130
    warn(f"{why_stopped(ended, 'calls not made')} ({far}; the same command goes on)")
    return 3
