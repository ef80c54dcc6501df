"""What a command that shows results says of experiments that are not all there."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from agenteval.cli.console import clean, out, warn

if TYPE_CHECKING:
    from agenteval.store.experiments import Unfinished


def say(found: Sequence[Unfinished], *, aside: bool) -> None:
    """A line for each above the results, or on standard error where these are `aside`, as in a
    file or in JSON. Of several judges each is named."""
    several = len({one.experiment.source for one in found}) > 1
    for one in found:
        about = one.experiment
        named = several and about.what == "cells"
        line = f"{about.name} ({about.source[:12]}): {one.line}" if named else one.line
        if aside:
            warn(line)
        else:
            out().print(f"[yellow]{clean(line)}[/yellow]", soft_wrap=True)


def as_json(found: Sequence[Unfinished]) -> list[dict[str, Any]]:
    """The value of the field `unfinished`: empty where everything is there."""
    return [one.json() for one in found]
