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
    """Ratings to compare with the labels, and the statistics to compute."""

    raters: Sequence[str] = option(
        (),
        "--rater",
        type=list[str] | None,
        convert=to_tuple,
        help="Use only labels by this rater. Repeatable. Default: every rater.",
        show_default=False,
    )
    task: str | None = with_default(CommonOptions, "task", None)
    criteria: Criteria | None = option(
        None, type=Path | None, help="Criteria file with the levels, worst to best."
    )
    store: StorePath = with_default(RunOptions, "store", None)
    scores: Ratings | Sequence[Ratings] = option(
        (),
        type=list[Path] | None,
        convert=to_tuple,
        help="Ratings to examine instead of the store's. Repeatable.",
        show_default=False,
    )
    judges: str | Sequence[str] = option(
        (),
        "--source",
        type=list[str] | None,
        convert=to_tuple,
        help="Judge: model or start of its hash in the store, or rater in --scores. Repeatable. "
        "Default: the latest, or every rater.",
        show_default=False,
    )
    runs: str | Path | Sequence[Run] | None = option(
        None,
        type=str | None,
        help="Runs, for their case and success. Default: runs.jsonl in the folder of the labels.",
    )
    cut: float | None = option(
        None, help="For the corrected rate: a run is good from this value (0 to 1)."
    )
    min_runs: int = option(30, help="Warn if fewer runs were rated by both.", min=2)
    confusion: bool = option(
        False, "--confusion", help="Print labels × judge levels per criterion."
    )
    audit: bool = option(
        False, "--audit", help="List runs where the judge contradicts the success label."
    )
    sample: str | Path | None = option(
        None,
        type=Path | None,
        help="Sample file written by `agree sample`. Default: the one that belongs to the labels.",
    )
    queue: str | None = option(
        None, help="Use labels of this labelling queue in the store. Default: the newest."
    )
    random_labels: bool = option(
        False,
        "--random-labels",
        help="The labelled runs are a random sample, drawn with another tool.",
    )
    alt_test: bool = option(
        False, "--alt-test", help="Test whether the judge can replace one of at least 3 raters."
    )
    epsilon: float = option(
        0.2, help="With --alt-test: how much more a person costs than the judge, from 0.1 to 0.3."
    )
    gate: bool = option(
        False, "--gate", help="Exit with 4 if a criterion has fewer runs than --min-runs."
    )
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
    """The sides to compare, the criteria for a difference, and the gates."""

    other: Ratings | StorePath = option(
        None,
        "--with",
        type=Path | None,
        help="Read B from this store (or score file, after --scores).",
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
        help="Read ratings from this table or log instead of a store.",
    )
    task: str | None = with_default(CommonOptions, "task", None)
    criteria: Criteria | None = option(
        None, type=Path | None, help="Criteria file, for --scores with labels only."
    )
    only: Sequence[str] | None = option(
        None,
        "--criterion",
        type=list[str] | None,
        help="Compare only this criterion (id, or `success`). Repeatable. Default: all.",
    )
    margin: float = option(
        0.05, help="Ignore differences up to this share of the scale.", min=0, max=1
    )
    min_cases: int = option(20, help="Minimum number of common cases for a verdict.", min=2)
    planned: int | None = option(
        None,
        "--sequential",
        metavar="PLANNED",
        help="Cases are still arriving in random order, at most PLANNED in total: intervals stay "
        "valid however often you look.",
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
