"""Options of `plan_suite`, on the command line and in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from agenteval.cli.options import (
    CommonOptions,
    EndpointOptions,
    RunOptions,
    option,
    python_only,
    to_tuple,
    with_default,
)

if TYPE_CHECKING:
    from agenteval.cli.options import StorePath
    from agenteval.cli.running import Notify, Progress
    from agenteval.models.factory import Model
    from agenteval.models.limits import Limits
    from agenteval.planning.suite_api import Range

RANGE = "a number or FROM-TO"


@dataclass(frozen=True)
class SuiteOptions:
    """The shape of planning tests, and who invents words for them."""

    n: Range = option("3-5", "--n", type=str, help=f"Actions of a case, {RANGE}.")
    seed: int = with_default(CommonOptions, "seed", 0)
    constraints: Range | None = option(
        None, type=str | None, help=f"Distinct constraints, {RANGE}. Default: n - 1 to 2n."
    )
    words: Range | None = option(
        None, type=str | None, help=f"Words of the text, {RANGE}. Default: any."
    )
    extended: bool = option(False, "--extended", help="With points of time and hidden durations.")
    times: Range = option("1-2", type=str, help=f"Clauses with a point of time, {RANGE}.")
    topics: Sequence[str] = option(
        (),
        "--topic",
        type=list[str] | None,
        convert=to_tuple,
        help="A profession; may be given several times.",
        show_default=False,
    )
    lexicon: str | Path | None = option(
        None, "--lexicon", type=Path | None, help="Word lists and topics of `--invent`."
    )
    invent: int | None = option(
        None,
        help="Ask --model for this many new professions, write them to the file given with "
        "--lexicon, and use them.",
        min=1,
        max=50,
    )
    model: Model = option(
        None,
        type=str | None,
        help="PROVIDER:MODEL, replay:FILE or autogen:FILE. Default: AGENTEVAL_MODEL.",
        show_default=False,
    )
    base_url: str | None = with_default(EndpointOptions, "base_url", None)
    store: StorePath = with_default(RunOptions, "store", None)
    limits: Limits | None = python_only()
    notify: Notify | None = python_only()
    progress: Progress | None = python_only()


class SuiteKeywords(TypedDict, total=False):
    """Keywords for `SuiteOptions`."""

    n: Range
    seed: int
    constraints: Range | None
    words: Range | None
    extended: bool
    times: Range
    topics: Sequence[str]
    lexicon: str | Path | None
    invent: int | None
    model: Model
    base_url: str | None
    store: StorePath
    limits: Limits | None
    notify: Notify | None
    progress: Progress | None
