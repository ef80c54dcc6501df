"""Findings against gold annotations, and two annotators against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from agenteval.api.running import Notify, Watch
from agenteval.api.trace_input import TaxonomyLike, Traces, read_each, read_findings, read_taxonomy
from agenteval.errors import InputError
from agenteval.evaluators.traces.condense import source_tokens
from agenteval.evaluators.traces.score import Result, Scoring, as_json, evaluate
from agenteval.evaluators.traces.score_tables import annotator_table, score_tables
from agenteval.evaluators.traces.tolerance import Relation, skeleton
from agenteval.evaluators.traces.two_annotators import TwoAnnotators, two_annotators
from agenteval.records import Span
from agenteval.report.report import Report
from agenteval.trust.gates import Gate, least_gate, unscored_gate


@dataclass(frozen=True, kw_only=True)
class ScoreReport(Report):
    """How well findings meet gold; `result` has every figure."""

    result: Result


@dataclass(frozen=True, kw_only=True)
class AgreementReport(Report):
    """How far two annotators agree."""

    agreement: TwoAnnotators


def score_findings(
    gold: str | Path,
    findings: str | Path,
    *,
    traces: Traces | None = None,
    official: bool = False,
    tolerance: Sequence[Relation] = (),
    without_errors: Literal["correct", "zero", "leave_out"] = "correct",
    leave_out_missing: bool = False,
    taxonomy: TaxonomyLike = None,
    seed: int = 0,
    gate: float | None = None,
    max_unscored: float = 0.1,
    notify: Notify | None = None,
) -> ScoreReport:
    """Score a folder of findings against a folder of annotations.

    `official`: the scores of TRAIL exactly, with their quirks. `tolerance` counts a span around
    ("ancestor") or beside ("neighbour") the one marked as a hit, and needs the `traces`. A trace
    without gold errors is worth 1 if nothing is said of it ("correct"), always 0, or nothing.
    Traces without a readable prediction count as empty, or are left out. `gate` is the least joint
    F1 (officially: joint), `max_unscored` the share of traces that may lack a prediction.

    Raises InputError for what cannot be read or scored.
    """
    if tolerance and not traces:
        raise InputError(
            "which spans are close is known from the traces alone; give --traces", "--tolerance"
        )
    watch, labels = Watch(notify), read_taxonomy(taxonomy)
    how = Scoring(
        taxonomy=labels,
        without_errors=without_errors,
        missing="leave_out" if leave_out_missing else "empty",
        tolerance=tuple(dict.fromkeys(tolerance)),
        seed=seed,
    )
    truth = read_findings(gold, labels, watch, "gold")
    said = read_findings(findings, labels, watch, "findings")
    spans: dict[str, tuple[Span, ...]] = {}
    tokens: dict[str, int] = {}
    for run, _ in read_each(traces, watch) if traces else ():
        spans[run.id] = skeleton(run.spans)
        tokens[run.id] = source_tokens(run)
    try:
        result = evaluate(truth, said, how, spans, tokens)
    except ValueError as error:
        raise InputError(str(error), str(gold)) from error
    if traces and not any(one.trace in spans for one in truth):
        watch.warn("none of the traces given is annotated in gold: their ids differ")
    if official and result.official is None:
        raise InputError("official scores are for the categories of TRAIL alone", "--taxonomy")
    report = ScoreReport(
        title="",
        tables=score_tables(result, official=official),
        notes=tuple(watch.notes),
        data=as_json(result),
        result=result,
    )
    return report.gated(*_gates(result, gate, max_unscored, official=official))


def _gates(
    result: Result, least: float | None, max_unscored: float, *, official: bool
) -> list[Gate]:
    coverage = result.scores.coverage
    lost = coverage.traces - coverage.answered
    what = "traces have no readable prediction"
    gates = [unscored_gate(coverage.traces, lost, max_unscored, what)]
    if least is None:
        return gates
    if official:
        name, value = "joint", result.official.joint.mean if result.official else None
    else:
        level = next(one for one in result.scores.levels if one.level == "joint")
        name, value = "joint F1", level.micro.f1.mean
    return [*gates, least_gate(name, value, least)]


def annotators(
    first: str | Path,
    second: str | Path,
    *,
    traces: Traces | None = None,
    taxonomy: TaxonomyLike = None,
    seed: int = 0,
    notify: Notify | None = None,
) -> AgreementReport:
    """Agreement of two annotators (folders) on spans, on kinds of errors, and on both together;
    with the `traces` kappa of spans is known."""
    watch, labels = Watch(notify), read_taxonomy(taxonomy)
    sides = [
        [one.findings for one in read_findings(folder, labels, watch)] for folder in (first, second)
    ]
    # errors stand at what models and tools do; wrappers around them would only raise kappa
    spans = {
        run.id: [span.id for span in run.spans if span.kind in ("llm", "tool")]
        for run, _ in read_each(traces, watch)
    } if traces else None  # fmt: skip
    agreement = two_annotators(*sides, taxonomy=labels, spans=spans, seed=seed)
    table = annotator_table(agreement, (Path(first).name, Path(second).name))
    data: dict[str, Any] = asdict(agreement)
    watch.warn_list("places that are no LLM or tool span of their trace:", agreement.unknown_spans)
    return AgreementReport(
        title="", tables=(table,), notes=tuple(watch.notes), data=data, agreement=agreement
    )
