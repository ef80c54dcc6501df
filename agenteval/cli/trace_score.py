"""agenteval trace score: findings against gold, with what predictors that read nothing reach."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, out, print_json, warn
from agenteval.cli.trace_files import TaxonomyFile, each_trace, read_annotations, read_taxonomy
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.traces.score_tables import PlainTable
    from agenteval.evaluators.traces.scorer import Scoring
    from agenteval.evaluators.traces.scoring import Result
    from agenteval.evaluators.traces.taxonomy import Taxonomy
    from agenteval.evaluators.traces.tolerance import Relation
    from agenteval.records import Span


class Tolerance(StrEnum):
    """Spans that count as a hit beside the one marked."""

    ancestor = "ancestor"
    neighbour = "neighbour"


class WithoutErrors(StrEnum):
    """What a trace without errors in gold is worth."""

    correct = "correct"
    zero = "zero"
    leave_out = "leave-out"


_RELATIONS: dict[Tolerance, Relation] = {
    Tolerance.ancestor: "ancestor",
    Tolerance.neighbour: "neighbour",
}
_WORTH: dict[WithoutErrors, Literal["correct", "zero", "leave_out"]] = {
    WithoutErrors.correct: "correct",
    WithoutErrors.zero: "zero",
    WithoutErrors.leave_out: "leave_out",
}
Gold = Annotated[Path, typer.Option(help="Folder of annotations, one JSON file per trace.")]
Traces = Annotated[
    list[str] | None,
    typer.Option(help="The traces themselves: files, folders, globs; repeatable."),
]


def score(
    gold: Gold,
    pred: Annotated[Path, typer.Option(help="Folder of findings to score.")],
    traces: Traces = None,
    official: Annotated[
        bool, typer.Option("--official", help="The scores of TRAIL exactly, with their quirks.")
    ] = False,
    tolerance: Annotated[
        list[Tolerance] | None,
        typer.Option(help="A span around, or beside, the one marked is a hit; needs --traces."),
    ] = None,
    without_errors: Annotated[
        WithoutErrors,
        typer.Option(
            help="A trace without gold errors is worth 1 if nothing is "
            "said of it, always 0 (as officially), or nothing."
        ),
    ] = WithoutErrors.correct,
    leave_out_missing: Annotated[
        bool,
        typer.Option(
            "--leave-out-missing",
            help="Traces without a readable prediction are "
            "left out (as officially) instead of counting as empty.",
        ),
    ] = False,
    taxonomy: TaxonomyFile = None,
    seed: options.Seed = 0,
    gate: Annotated[
        float | None,
        typer.Option(help="Exit with 1 when joint F1 (officially: joint) is less.", min=0, max=1),
    ] = None,
    max_unscored: Annotated[
        float, typer.Option(help="Exit with 3 above this share without prediction.", min=0, max=1)
    ] = 0.1,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Score a folder of findings against a folder of annotations."""
    from agenteval.evaluators.traces.scorer import Scoring
    from agenteval.evaluators.traces.scoring import as_json as plain

    Verbosity.level = -1 if quiet else Verbosity.level
    if tolerance and not traces:
        raise InputError("which spans are close is known from the traces alone; give --traces",
                         "--tolerance")  # fmt: skip
    labels = read_taxonomy(taxonomy)
    how = Scoring(
        taxonomy=labels,
        without_errors=_WORTH[without_errors],
        missing="leave_out" if leave_out_missing else "empty",
        tolerance=tuple(_RELATIONS[one] for one in dict.fromkeys(tolerance or [])),
        seed=seed,
    )
    result = evaluated(gold, pred, traces or [], labels, how)
    if official and result.official is None:
        raise InputError("official scores are for the categories of TRAIL alone", "--taxonomy")
    if as_json:
        print_json(plain(result))
    else:
        print_scores(result, official=official)
    raise typer.Exit(_unscored(result, max_unscored) or _gate(result, gate, official=official))


def evaluated(gold: Path, pred: Path, traces: list[str], labels: Taxonomy, how: Scoring) -> Result:
    """The figures of two folders, and of the traces where they are given."""
    from agenteval.evaluators.traces.scoring import evaluate

    truth = read_annotations(gold, labels, "gold")
    said = read_annotations(pred, labels, "findings")
    spans, tokens = known_traces(traces) if traces else ({}, {})
    try:
        result = evaluate(truth, said, how, spans, tokens)
    except ValueError as error:
        raise InputError(str(error), str(gold)) from error
    if traces and not any(one.trace in spans for one in truth):
        warn("none of the traces given is annotated in gold: their ids differ")
    return result


def known_traces(paths: list[str]) -> tuple[dict[str, tuple[Span, ...]], dict[str, int]]:
    """Of every trace the spans without their text, and its length in estimated tokens."""
    from agenteval.evaluators.traces.condense import source_tokens
    from agenteval.evaluators.traces.tolerance import skeleton

    spans: dict[str, tuple[Span, ...]] = {}
    tokens: dict[str, int] = {}
    for run, _ in each_trace(paths):
        spans[run.id] = skeleton(run.spans)
        tokens[run.id] = source_tokens(run)
    return spans, tokens


def print_scores(result: Result, *, official: bool = False) -> None:
    """The tables with their notes."""
    from agenteval.evaluators.traces.score_tables import score_tables

    said: set[str] = set()
    for table in score_tables(result, official=official):
        _print(table, said)


def _print(table: PlainTable, said: set[str]) -> None:
    """A table; a note that stood under an earlier one is not repeated."""
    from agenteval.report.terminal import print_table
    from agenteval.report.traces_tables import table_of

    fresh = tuple(one for one in table.notes if one not in said)
    said.update(fresh)
    print_table(table_of(table, notes=fresh), out())


def _unscored(result: Result, most: float) -> int:
    coverage = result.scores.coverage
    lost = coverage.traces - coverage.answered
    if coverage.traces and lost / coverage.traces > most:
        warn(
            f"{lost} of {coverage.traces} traces have no readable prediction, more than "
            "--max-unscored allows"
        )
        return 3
    return 0


def _gate(result: Result, least: float | None, *, official: bool) -> int:
    if least is None:
        return 0
    if official:
        name, found = "joint", result.official.joint.mean if result.official else None
    else:
        level = next(one for one in result.scores.levels if one.level == "joint")
        name, found = "joint F1", level.micro.f1.mean
    if found is None:
        warn("there is no score: the gate cannot be decided")
        return 4
    out().print(f"gate {name} at least {least:g}: {found:.3f}")
    return 0 if found >= least else 1
