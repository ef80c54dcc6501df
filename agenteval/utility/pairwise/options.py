"""Options of `prefer`; see `agenteval.cli.options`."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.cli.options import option, python_only
from agenteval.utility.options import JudgeKeywords, JudgeOptions


@dataclass(frozen=True)
class PreferOptions(JudgeOptions):
    """The systems to compare, and how to prompt the judge."""

    system: str | None = python_only()
    probabilities: bool = python_only(False)
    repeats: int = option(1, help="Number of times each pair is judged in either order.", min=1)
    limit: int | None = option(
        None, help="Compare only the first N cases.", min=1, rich_help_panel="Runs"
    )


class PreferKeywords(JudgeKeywords, total=False):
    """Keywords for `PreferOptions`."""
