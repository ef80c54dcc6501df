"""Options of the commands and functions of AgentEval; see `agenteval.cli.options`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

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
    from agenteval.models.factory import Model
    from agenteval.records import Task
    from agenteval.utility.judging import AnyJudge

SEVERAL = "Several judges"
# Options of one section of the help.
several = partial(option, rich_help_panel=SEVERAL)
of_model = partial(option, rich_help_panel="Model")
of_critic = partial(option, rich_help_panel="Critic")
merging = partial(option, rich_help_panel="Merging")


def to_judges(judges: list[str] | None) -> str | tuple[str, ...] | None:
    """Return the judge, several as a tuple, None without."""
    return judges[0] if judges and len(judges) == 1 else tuple(judges) if judges else None


@dataclass(frozen=True)
class JudgeOptions(RunOptions, EndpointOptions, ExecutorOptions):
    """The runs to judge, and how to prompt the judge."""

    judge: AnyJudge | Sequence[AnyJudge] = option(
        None,
        "--model",
        "--judge",
        type=list[str] | None,
        convert=to_judges,
        help="PROVIDER:MODEL, decisions:NAME, embedded, recorded, replay:FILE, autogen:FILE, or "
        "python:MODULE:NAME of a function (run, criterion) or of another framework's scorer. "
        "Repeatable: several judges are a panel. Default: AGENTEVAL_MODEL, else embedded.",
    )
    panel: str | None = several(
        None,
        "--panel-rule",
        metavar="RULE",
        help="Rule of a panel: mean (default), majority, veto[:K], regression or auto; the last "
        "two need --labels.",
    )
    version: str | None = python_only()  # of a judge that is a function
    task: str | Task | None = with_default(CommonOptions, "task", None)
    with_reference: bool = of_model(
        False, "--with-reference", help="Show the judge the reference answer."
    )
    mapping: Mapping[str, str] | None = with_default(CommonOptions, "mapping", None)
    rubrics: str | Path | None = option(
        None,
        type=Path | None,
        metavar="FILE",
        help="Rubrics of runs or inputs: JSON lines, each with `run` or `input` and `rubric`.",
        rich_help_panel="Runs",
    )
    system: str | None = option(
        None,
        help="System name for runs without one, e.g. bot-v2; their ids become NAME/ID.",
        rich_help_panel="Runs",
    )
    repeats: int = option(1, help="Number of times each text is judged.", min=1)
    seed: int = with_default(CommonOptions, "seed", 0)
    one_per_call: bool = of_model(
        False,
        "--one-per-call",
        help="Judge one criterion per request: less halo effect, but n times the cost.",
    )
    probabilities: bool = of_model(
        False,
        "--probabilities",
        help="Compute a probability for each level from the chat model's log-probabilities.",
    )
    limit: int | None = with_default(CommonOptions, "limit", None)


class JudgeKeywords(RunKeywords, EndpointKeywords, ExecutorKeywords, total=False):
    """Keywords for `JudgeOptions`."""

    judge: AnyJudge | Sequence[AnyJudge]
    panel: str | None
    version: str | None
    task: str | Task | None
    with_reference: bool
    mapping: Mapping[str, str] | None
    rubrics: str | Path | None
    system: str | None
    repeats: int
    seed: int
    one_per_call: bool
    probabilities: bool
    limit: int | None


@dataclass(frozen=True)
class VerifiedJudge(JudgeOptions):
    """Like the options of `quantify`, but each text is judged twice, to measure self-agreement."""

    repeats: int = with_default(JudgeOptions, "repeats", 2)


@dataclass(frozen=True)
class Escalation:
    """To which judge undecided answers go, and when a judge may decide; see docs/panels.md.

    A judge may decide from the confidence from which labels prove that it agrees with people in the
    share `agreement`, at `confidence` for each criterion. Where nothing is proven it decides
    nothing (`escalate`) or everything (`keep`).
    """

    def check(self) -> None:
        """Raise InputError for values out of range."""
        if not 0 < self.agreement < 1:
            raise InputError(f"{self.agreement:g} is not between 0 and 1", "--agreement")
        if not 0.5 <= self.confidence <= 0.98:
            raise InputError(f"{self.confidence:g} is not between 0.5 and 0.98", "--confidence")
        if self.unproven not in ("escalate", "keep"):
            raise InputError(f"must be escalate or keep, not {self.unproven!r}", "--unproven")

    to: AnyJudge = option(
        None,
        "--escalate",
        type=str | None,
        metavar="MODEL",
        help="Stronger judge for what the judge cannot decide with proven agreement; what neither "
        "can decide is left to people. Needs --labels.",
        rich_help_panel=SEVERAL,
    )
    agreement: float = several(
        0.9, help="With --escalate: share of answers that must agree with people."
    )
    confidence: float = several(
        0.95, help="With --escalate: confidence in that agreement, for each criterion."
    )
    unproven: str = several(
        "escalate",
        metavar="escalate|keep",
        help="With --escalate: what happens with all answers where labels prove nothing.",
    )


@dataclass(frozen=True)
class ProposeOptions(RunOptions, EndpointOptions):
    """Options for proposing and merging criteria."""

    model: Model = option(
        None,
        type=str | None,
        help="PROVIDER:MODEL, embedded, recorded, replay:FILE or autogen:FILE. "
        "Default: AGENTEVAL_MODEL, else embedded.",
    )
    seeds: int = option(5, help="Number of critics, each with its own seed.", min=1)
    seed: int = with_default(CommonOptions, "seed", 0)
    tau: float | None = merging(
        None,
        help="Minimum cosine similarity to merge two criteria; 1: merge only equal names.",
        min=0,
        max=1,
    )
    embedder: str | None = merging(
        None, help="Embedding model: sentence-transformers name or path, or endpoint:NAME."
    )
    examples: bool = of_critic(
        True,
        "--examples/--no-examples",
        help=(
            "Show the critic examples (solution-based); otherwise only the description "
            "(task-based)."
        ),
    )
    sub_criteria: bool = of_critic(
        False, "--sub-criteria", help="Let a second agent divide the criteria into sub-criteria."
    )
    bank: bool = of_critic(False, "--bank", help="Show the critic the nearest entries of the bank.")
    kinds: Sequence[str] = of_critic(
        (),
        "--kind",
        type=list[str] | None,
        convert=to_tuple,
        help="Kind of task, to select criteria from the bank. Default: guessed and reported.",
    )
    consolidate: bool = merging(
        True,
        "--consolidate/--no-consolidate",
        help="Ask the critic which names are equivalent; otherwise merge by embedding alone.",
    )
    min_seeds: int = merging(1, help="Keep criteria proposed by at least this many seeds.", min=1)
    output: str | Path | None = option(
        None, "-o", "--output", type=Path | None, help="Default: criteria/TASK.json."
    )

    @property
    def all_seeds(self) -> range:
        """The seed of each critic."""
        return range(self.seed, self.seed + self.seeds)

    @property
    def asks_the_same(self) -> bool:
        """Whether a chat critic is asked which names are the same: not if only equal names are to
        be merged."""
        return self.consolidate and self.tau != 1


class ProposeKeywords(RunKeywords, EndpointKeywords, total=False):
    """Keywords for `ProposeOptions`."""

    model: Model
    seeds: int
    seed: int
    tau: float | None
    embedder: str | None
    examples: bool
    sub_criteria: bool
    bank: bool
    kinds: Sequence[str]
    consolidate: bool
    min_seeds: int
    output: str | Path | None
