"""Options of planning tests, on the command line and in Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

from agenteval.cli.options import (
    CommonOptions,
    EndpointOptions,
    ExecutorKeywords,
    ExecutorOptions,
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

Agent = str | Callable[..., Any]
Range = str | int | tuple[int, int]
RANGE = "a number or FROM-TO"


@dataclass(frozen=True)
class SuiteOptions:
    """The shape of planning tests, and the model that invents professions for them."""

    n: Range = option("3-5", "--n", type=str, help=f"Number of actions of a case, {RANGE}.")
    seed: int = with_default(CommonOptions, "seed", 0)
    constraints: Range | None = option(
        None, type=str | None, help=f"Distinct constraints, {RANGE}. Default: n - 1 to 2n."
    )
    words: Range | None = option(
        None, type=str | None, help=f"Words of the text, {RANGE}. Default: any."
    )
    extended: bool = option(False, "--extended", help="Add time limits and hidden durations.")
    times: Range = option("1-2", type=str, help=f"Number of clauses with a time limit, {RANGE}.")
    topics: Sequence[str] = option(
        (),
        "--topic",
        type=list[str] | None,
        convert=to_tuple,
        help="Use only this profession. Repeatable.",
        show_default=False,
    )
    lexicon: str | Path | None = option(
        None,
        "--lexicon",
        type=Path | None,
        help="File of professions, as written by --invent.",
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


@dataclass(frozen=True, kw_only=True)
class AgentOptions:
    """The agent under test and how to run each case.

    `agent` can also be a function (request, tools), plain or async. `seconds` and `turns` limit one
    case. A dry run sends and stores nothing and needs no key; its report has an `estimate`.
    """

    agent: Agent = option(
        MISSING,
        type=str,
        help="openai, responses, react or autogen (with --model), python:MODULE:FUNCTION, "
        "command:CMD, mcp:CMD, scripted:NAME.",
    )
    model: Model = with_default(SuiteOptions, "model", None)
    base_url: str | None = with_default(EndpointOptions, "base_url", None)
    temperature: float | None = with_default(EndpointOptions, "temperature", 0.0)
    max_tokens: int | None = option(
        None,
        help="Maximum tokens of one reply of the agent's model.",
        min=1,
        rich_help_panel="Agent",
    )
    turns: int = option(
        50,
        help="Maximum number of agent turns per case.",
        min=1,
        rich_help_panel="Agent",
    )
    strict: bool = option(
        False,
        "--strict",
        help=(
            "Fail a case on any call that could not be executed, and also count attempts before "
            "a restart."
        ),
        rich_help_panel="Agent",
    )
    log_order: bool = option(
        False,
        "--log-order",
        help="Order parallel calls as in the log, like the paper; otherwise they have no order.",
        rich_help_panel="Agent",
    )
    store: StorePath = with_default(RunOptions, "store", None)
    dry_run: bool = with_default(RunOptions, "dry_run", False)
    seconds: float = python_only(180.0)
    limits: Limits | None = python_only()
    notify: Notify | None = python_only()
    progress: Progress | None = python_only()


class AgentKeywords(TypedDict, total=False):
    """Keywords for `AgentOptions` without `agent`."""

    model: Model
    base_url: str | None
    temperature: float | None
    max_tokens: int | None
    turns: int
    strict: bool
    log_order: bool
    store: StorePath
    dry_run: bool
    seconds: float
    limits: Limits | None
    notify: Notify | None
    progress: Progress | None


@dataclass(frozen=True, kw_only=True)
class PlanTestOptions(AgentOptions, ExecutorOptions):
    """Options for testing an agent on a suite."""

    trials: int = option(1, help="Number of attempts per case.", min=1)
    limit: int | None = option(None, help="Run only the first N cases.", min=1)
    minutes: float | None = option(
        None, help="Start no case after this many minutes; the paper's table 2 uses 60.", min=0.0
    )
    gate: float | None = option(
        None, help="Exit with 1 if a smaller share passes.", min=0.0, max=1.0
    )
    max_unscored: float = option(
        0.1, help="Exit with 3 if a larger share has no verdict.", min=0, max=1
    )
    retry_failed: bool = with_default(RunOptions, "retry_failed", False)


class PlanTestKeywords(AgentKeywords, ExecutorKeywords, total=False):
    """Keywords for `PlanTestOptions` without `agent`."""

    trials: int
    limit: int | None
    minutes: float | None
    gate: float | None
    max_unscored: float
    retry_failed: bool


@dataclass(frozen=True, kw_only=True)
class DissectionOptions(AgentOptions):
    """Options for dissecting the failures of an agent."""

    tries: int = option(3, "-k", "--tries", help="Number of tries per stage.", min=1)
    full: bool = option(False, "--full", help="Run all stages, even after a success.")
    literal: bool = option(
        False,
        "--paper-literal",
        help="Run the algorithm exactly as printed in the paper.",
        rich_help_panel="Agent",
    )
    limit: int | None = option(100, help="Dissect at most this many failed cases.", min=1)
    seed: int = with_default(CommonOptions, "seed", 0)
    lexicon: str | Path | None = with_default(SuiteOptions, "lexicon", None)


class DissectionKeywords(AgentKeywords, total=False):
    """Keywords for `DissectionOptions` without `agent`."""

    tries: int
    full: bool
    literal: bool
    limit: int | None
    seed: int
    lexicon: str | Path | None


@dataclass(frozen=True, kw_only=True)
class CapabilityOptions(AgentOptions, ExecutorOptions):
    """Options for finding the capability bound of an agent."""

    n: Range = option(
        "2-9", "--n", type=str, help="Numbers of actions, FROM-TO; stops when the agent fails."
    )
    seed: int = with_default(CommonOptions, "seed", 0)
    cases: int | None = option(
        None,
        help="Cases per number of actions. Default: min(300, 20·n(n-1)/2), as published.",
        min=1,
    )
    threshold: float = option(0.2, help="Stop below this success rate.", min=0.0, max=1.0)
    extended: bool = with_default(SuiteOptions, "extended", False)
    topics: Sequence[str] = with_default(SuiteOptions, "topics", ())
    trials: int = with_default(PlanTestOptions, "trials", 1)
    retry_failed: bool = with_default(RunOptions, "retry_failed", False)


class CapabilityKeywords(AgentKeywords, ExecutorKeywords, total=False):
    """Keywords for `CapabilityOptions` without `agent`."""

    n: Range
    seed: int
    cases: int | None
    threshold: float
    extended: bool
    topics: Sequence[str]
    trials: int
    retry_failed: bool
