"""Runs whose text seems to talk to the judge: where the commands find them, and how they say it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenteval.cli.console import clean, out
from agenteval.trust.flagged import Examined, Flag, Flags, flags_among, stored_flags

if TYPE_CHECKING:
    from agenteval.records import Run, View

__all__ = [
    "Flag", "Flags", "flags_of", "printed", "say", "stored_flags",
]  # fmt: skip


def flags_of(items: Iterable[tuple[Run, View]]) -> Flags:
    """The flags of runs and what the judge sees of them."""
    from agenteval.readers.injection import view_signs

    return flags_among(
        Examined(
            run.id, run.system, view.problem, view.trajectory,
            tuple(sign.name for sign in view_signs(view)),
        )
        for run, view in items
    )  # fmt: skip


def printed(flags: Flags) -> str:
    """The line for a terminal, with its markup; "" when there is none."""
    return f"[yellow]{clean(flags.line)}[/yellow]" if flags.found else ""


def say(flags: Flags) -> None:
    """Print the line, if there is one."""
    if flags.found:
        out().print(printed(flags))
