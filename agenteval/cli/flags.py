"""Runs whose text seems to talk to the judge: where the commands find them, and how they say it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agenteval.cli.console import clean, out
from agenteval.trust.flagged import Flag, Flags, flags_of, stored_flags

if TYPE_CHECKING:
    from agenteval.evaluators.traces.outline import Outline
    from agenteval.evaluators.traces.trials import TraceCase
    from agenteval.records import Run

__all__ = [
    "Flag", "Flags", "flags_of", "outline_flags", "printed", "run_flags", "say",
    "stored_flags", "trace_flags",
]  # fmt: skip


def trace_flags(cases: Iterable[TraceCase]) -> Flags:
    """The flags of traces, from what came out of their spans; each is read once more for it."""
    return run_flags(case.load() for case in cases)


def run_flags(runs: Iterable[Run]) -> Flags:
    """The flags of runs, from all that a judge would see of them."""
    from agenteval.readers import make_view

    return flags_of((run, make_view(run)) for run in runs)


def outline_flags(outlines: Iterable[Outline]) -> Flags:
    """The flags of stored traces, as far as their excerpts tell: of inputs those of tools."""
    from agenteval.readers.injection import texts_signs

    found, examined = [], 0
    for one in outlines:
        examined += 1
        texts = [one.task]
        for span in one.spans:
            texts += [span.input if span.kind == "tool" else "", span.output, span.note]
        if signs := texts_signs(dict.fromkeys(filter(None, texts))):
            found.append(Flag(one.trace, None, tuple(s.name for s in signs)))
    return Flags(tuple(found), examined)


def printed(flags: Flags) -> str:
    """The line for a terminal, with its markup; "" when there is none."""
    return f"[yellow]{clean(flags.line)}[/yellow]" if flags.found else ""


def say(flags: Flags) -> None:
    """Print the line, if there is one."""
    if flags.found:
        out().print(printed(flags))
