"""Options of `prefer`; see `agenteval.cli.options`. The keywords are those of `JudgeOptions`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agenteval.cli.options import option, python_only
from agenteval.errors import InputError
from agenteval.utility.options import JudgeOptions, to_judges

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agenteval.utility.judging import AnyJudge


@dataclass(frozen=True)
class PreferOptions(JudgeOptions):
    """The pairs to judge, and how to prompt the judge."""

    def check(self) -> None:
        """Raise InputError for options that only judges of single runs have."""
        for name in ("panel", "rubrics", "system", "probabilities"):
            if getattr(self, name) not in (None, False):
                raise InputError("not available for pairs", name)
        if isinstance(self.judge, list | tuple):
            raise InputError("one judge compares pairs; a panel rates single runs", "--model")

    judge: AnyJudge | Sequence[AnyJudge] = option(
        None,
        "--model",
        "--judge",
        type=list[str] | None,
        convert=to_judges,
        help="PROVIDER:MODEL, replay:FILE, autogen:FILE, or python:MODULE:NAME of a function "
        "(first, second, criterion). Default: AGENTEVAL_MODEL.",
        show_default=False,
    )
    panel: str | None = python_only()  # this one and the next three are refused
    rubrics: str | Path | None = python_only()
    system: str | None = python_only()
    probabilities: bool = python_only(False)
    repeats: int = option(1, help="Number of times each pair is judged in each order.", min=1)
    limit: int | None = option(
        None, help="Compare only the first N cases.", min=1, rich_help_panel="Runs"
    )
