"""Options of `flow_sessions`, `flow_turns` and `flow_score`, on the command line and in Python."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from agenteval.cli.options import (
    CommonOptions,
    EndpointKeywords,
    EndpointOptions,
    ExecutorKeywords,
    ExecutorOptions,
    RunKeywords,
    RunOptions,
    option,
    python_only,
    to_tuple,
    with_default,
)
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.cli.options import StorePath
    from agenteval.cli.running import Notify
    from agenteval.models.factory import Model
    from agenteval.models.limits import Limits
    from agenteval.workflows.variants import Agent


def one_of(name: str, names: Sequence[str], option: str) -> Any:
    """Return the name if it is one of `names`. Raises InputError otherwise."""
    if name not in names:
        raise InputError(f"{name!r} is not one of {', '.join(names)}", option)
    return name


@dataclass(frozen=True)
class TurnOptions(RunOptions, EndpointOptions, ExecutorOptions):
    """Options of the agent, the cases, and the judge."""

    agent: Agent = option(
        "template",
        type=str,
        help="template, openai, responses, react or autogen (with --model), "
        "python:MODULE:FUNCTION, command:CMD, mcp:CMD, recorded:NAME.",
    )
    model: str | None = option(
        None,
        help="PROVIDER:MODEL, replay:FILE or autogen:FILE. Default: AGENTEVAL_MODEL.",
        show_default=False,
    )
    temperature: float | None = with_default(EndpointOptions, "temperature", 0.0)
    max_tokens: int | None = option(
        None, help="Tokens of one reply of the agent's model.", min=1, rich_help_panel="Model"
    )
    formats: Sequence[str] = option(
        (),
        "--format",
        type=list[str] | None,
        convert=to_tuple,
        help="Format of the procedure: text, code, flowchart, all, none or no_tools. "
        "Repeatable. Default: the first available of flowchart, text and code.",
        show_default=False,
    )
    kind: str = option("all", help="all, single or cross.", rich_help_panel="Runs")
    scenarios: Sequence[str] | None = option(
        None,
        "--scenario",
        type=list[str] | None,
        help="Only these scenarios; `cross` for users of several.",
        rich_help_panel="Runs",
    )
    profiles: Sequence[str] | None = option(
        None, "--profile", type=list[str] | None, help="Only these users.", rich_help_panel="Runs"
    )
    limit: int | None = option(None, help="Only the first N cases.", min=1, rich_help_panel="Runs")
    judge: Model = option(
        None,
        type=str | None,
        help="PROVIDER:MODEL that decides what no rule can. Without it, these stay undecided.",
        show_default=False,
    )
    judge_url: str | None = option(None, help="The judge's endpoint.", rich_help_panel="Model")
    trials: int = option(1, help="Trials of each case.", min=1)
    gate: float | None = option(
        None,
        help="Exit with 1 below this share of successes (sessions) or right due calls (turns).",
        min=0,
        max=1,
    )
    max_unscored: float = option(
        0.1, help="Exit with 3 above this share without verdict.", min=0, max=1
    )
    judgements: str | Path | None = option(
        None,
        type=Path | None,
        help="Write every decision on a pair of values to this JSONL file.",
        rich_help_panel="Model",
    )
    seconds: float = python_only(180.0)  # for one turn of the agent


class TurnKeywords(RunKeywords, EndpointKeywords, ExecutorKeywords, total=False):
    """Keywords for `TurnOptions`."""

    agent: Agent
    model: str | None
    max_tokens: int | None
    formats: Sequence[str]
    kind: str
    scenarios: Sequence[str] | None
    profiles: Sequence[str] | None
    limit: int | None
    judge: Model
    judge_url: str | None
    trials: int
    gate: float | None
    max_unscored: float
    judgements: str | Path | None
    seconds: float


@dataclass(frozen=True)
class SessionOptions(TurnOptions):
    """Adds the simulated user and tools, and the limits of a session."""

    user: str = option(
        "model",
        help="Who plays the user: model (with --simulator) or scripted.",
        rich_help_panel="Simulation",
    )
    tools: str = option(
        "auto",
        help="Who answers calls: auto, backend, recorded or model.",
        rich_help_panel="Simulation",
    )
    simulator: Model = option(
        None,
        type=str | None,
        help="PROVIDER:MODEL of simulated users and tools.",
        show_default=False,
        rich_help_panel="Simulation",
    )
    simulator_url: str | None = option(None, help="Its endpoint.", rich_help_panel="Simulation")
    turns: int | None = option(
        None,
        help="Maximum number of replies of the agent.",
        min=1,
        show_default="15, cross 20",
        rich_help_panel="Simulation",
    )
    calls: int | None = option(
        None,
        help="Maximum number of calls in a session.",
        min=1,
        show_default="60",
        rich_help_panel="Simulation",
    )
    calls_per_turn: int | None = option(
        None,
        help="Maximum number of calls between two replies.",
        min=1,
        show_default="20",
        rich_help_panel="Simulation",
    )
    flowbench: bool = option(
        False,
        "--flowbench",
        help="Limits of the published code: 40 messages, 10 calls, 5 in a turn.",
        rich_help_panel="Simulation",
    )
    success: str | None = option(
        None,
        help="What success requires: state (the final state), or state+reads (with all results "
        "that gold obtained).",
        show_default="as the role says, else state",
        rich_help_panel="Simulation",
    )
    seed: int = with_default(CommonOptions, "seed", 0)


class SessionKeywords(TurnKeywords, total=False):
    """Keywords for `SessionOptions`."""

    user: str
    tools: str
    simulator: Model
    simulator_url: str | None
    turns: int | None
    calls: int | None
    calls_per_turn: int | None
    flowbench: bool
    success: str | None
    seed: int


@dataclass(frozen=True)
class FlowScoreOptions:
    """Options for scoring existing predictions, with an optional judge."""

    level: Literal["turn", "session"] | None = option(
        None, help="What the rows are.", show_default="as the first row says"
    )
    reference: bool = option(
        False, "--reference", help="Count as the published scripts do, including their mistakes."
    )
    judge: str | None = option(
        None,
        "--model",
        help="PROVIDER:MODEL that decides whether two values mean the same, and grades. "
        "Without it, what it would have to decide stays undecided.",
        show_default=False,
    )
    judge_url: str | None = with_default(EndpointOptions, "base_url", None)
    temperature: float | None = with_default(EndpointOptions, "temperature", 0.0)
    seed: int = with_default(CommonOptions, "seed", 0)
    resamples: int = option(2000, help="Resamples of each interval.", min=100)
    max_unscored: float = option(
        0.1, help="Exit with 3 above this share undecided or failed.", min=0, max=1
    )
    store: StorePath = with_default(RunOptions, "store", None)
    limits: Limits | None = python_only()
    notify: Notify | None = python_only()


class FlowScoreKeywords(TypedDict, total=False):
    """Keywords for `FlowScoreOptions`."""

    level: Literal["turn", "session"] | None
    reference: bool
    judge: str | None
    judge_url: str | None
    temperature: float | None
    seed: int
    resamples: int
    max_unscored: float
    store: StorePath
    limits: Limits | None
    notify: Notify | None
