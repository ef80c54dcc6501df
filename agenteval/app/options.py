"""Options of `agree` and `compare`, as functions and as commands; see `agenteval.cli.options`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from agenteval.analysis.gates import FailIf
from agenteval.cli.options import (
    CommonOptions,
    RunOptions,
    option,
    python_only,
    to_tuple,
    with_default,
)
from agenteval.stats.scores import ScoreTable

if TYPE_CHECKING:
    from agenteval.cli.options import StorePath
    from agenteval.records import Run
    from agenteval.utility.judging import Criteria

Ratings = str | Path | ScoreTable


@dataclass(frozen=True)
class AgreementOptions:
    """Whose ratings are compared with the labels, and what is computed from them."""

    raters: Sequence[str] = option(
        (),
        "--rater",
        type=list[str] | None,
        convert=to_tuple,
        help="Only this rater of the labels; may be given often. Default: each.",
        show_default=False,
    )
    task: str | None = with_default(CommonOptions, "task", None)
    criteria: Criteria | None = option(
        None, type=Path | None, help="Criteria file: the levels, worst to best."
    )
    store: StorePath = with_default(RunOptions, "store", None)
    scores: Ratings | Sequence[Ratings] = option(
        (),
        type=list[Path] | None,
        convert=to_tuple,
        help="Ratings to examine instead of the store's; may be given often.",
        show_default=False,
        rich_help_panel="Runs",
    )
    judges: str | Sequence[str] = option(
        (),
        "--source",
        type=list[str] | None,
        convert=to_tuple,
        help="Judge: model or start of its hash in the store, or rater in --scores; may be "
        "given often. Default: the latest, or every rater.",
        show_default=False,
    )
    runs: str | Path | Sequence[Run] | None = option(
        None,
        type=str | None,
        help="Runs that give case and success. Default: runs.jsonl by the labels.",
    )
    cut: float | None = option(
        None,
        help="A run is good from this value on (0 to 1), for the corrected rate.",
        rich_help_panel="Checks",
    )
    min_runs: int = option(
        30,
        help="Warn below this many runs rated by both.",
        min=2,
        rich_help_panel="Checks",
    )
    confusion: bool = option(
        False,
        "--confusion",
        help="Print labels × judge levels per criterion.",
        rich_help_panel="Checks",
    )
    audit: bool = option(
        False,
        "--audit",
        help="List runs whose success label the judge contradicts.",
        rich_help_panel="Checks",
    )
    sample: str | Path | None = option(
        None,
        type=Path | None,
        help="File of `agree sample` that says what was drawn. Default: the labels' own.",
        rich_help_panel="Checks",
    )
    queue: str | None = option(
        None,
        help="Labels of the store: those of this queue of the viewer. Default: the newest.",
        rich_help_panel="Checks",
    )
    random_labels: bool = option(
        False,
        "--random-labels",
        help="The labels were drawn at random, by other means.",
        rich_help_panel="Checks",
    )
    alt_test: bool = option(
        False,
        "--alt-test",
        help="May the judge stand in for one of at least 3 raters?",
        rich_help_panel="Checks",
    )
    epsilon: float = option(
        0.2,
        help="With --alt-test: what a person costs more, .1 to .3.",
        rich_help_panel="Checks",
    )
    gate: bool = option(False, "--gate", help="Exit 4 when a criterion has fewer than --min-runs.")
    seed: int = with_default(CommonOptions, "seed", 0)


class AgreementKeywords(TypedDict, total=False):
    """Keywords for `AgreementOptions`."""

    raters: Sequence[str]
    task: str | None
    criteria: Criteria | None
    store: StorePath
    scores: Ratings | Sequence[Ratings]
    judges: str | Sequence[str]
    runs: str | Path | Sequence[Run] | None
    cut: float | None
    min_runs: int
    confusion: bool
    audit: bool
    sample: str | Path | None
    queue: str | None
    random_labels: bool
    alt_test: bool
    epsilon: float
    gate: bool
    seed: int


@dataclass(frozen=True)
class ComparisonOptions:
    """What is compared, when a difference counts, and the gates."""

    other: Ratings | StorePath = option(
        None,
        "--with",
        type=Path | None,
        help="B is in this store (or score file, after --scores).",
    )
    judges: str | Sequence[str] = option(
        (),
        "--source",
        type=list[str] | None,
        convert=to_tuple,
        help="Judge: its model or the start of its hash; with --scores the rater. "
        "Default: the latest. Given twice: A and B are two judges of the same runs.",
        show_default=False,
    )
    store: StorePath = with_default(RunOptions, "store", None)
    scores: Ratings | None = option(
        None,
        type=Path | None,
        help="Ratings made elsewhere (a table or a log) instead of a store.",
    )
    task: str | None = with_default(CommonOptions, "task", None)
    criteria: Criteria | None = option(
        None, type=Path | None, help="Criteria file, for --scores with labels only."
    )
    only: Sequence[str] | None = option(
        None,
        "--criterion",
        type=list[str] | None,
        help="Only this one (id, or `success`); may be given often. Default: all.",
    )
    margin: float = option(
        0.05, help="A difference up to this share of the scale is none.", min=0, max=1
    )
    min_cases: int = option(20, help="Below this many common cases nothing is decided.", min=2)
    planned: int | None = option(
        None,
        "--sequential",
        metavar="PLANNED",
        help="Cases come in still, in random order, PLANNED of them at most: look as often as "
        "you like.",
        min=2,
        show_default=False,
    )
    fail_under: Mapping[str, float] | Iterable[tuple[str, float]] = python_only(())
    fail_if: FailIf | None = python_only()
    undecided_passes: bool = python_only(False)
    seed: int = with_default(CommonOptions, "seed", 0)


class ComparisonKeywords(TypedDict, total=False):
    """Keywords for `ComparisonOptions`."""

    other: Ratings | StorePath
    judges: str | Sequence[str]
    store: StorePath
    scores: Ratings | None
    task: str | None
    criteria: Criteria | None
    only: Sequence[str] | None
    margin: float
    min_cases: int
    planned: int | None
    fail_under: Mapping[str, float] | Iterable[tuple[str, float]]
    fail_if: FailIf | None
    undecided_passes: bool
    seed: int
