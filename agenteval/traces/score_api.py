"""Score findings against gold annotations."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agenteval.analysis.gates import least_gate, unscored_gate
from agenteval.cli.running import Notify, Watch
from agenteval.errors import InputError
from agenteval.records import Span
from agenteval.reporting.report import Report
from agenteval.traces.condense import source_tokens
from agenteval.traces.evaluation import Evaluation, as_json, evaluate
from agenteval.traces.input import TaxonomyLike, Traces, read_each, read_findings, read_taxonomy
from agenteval.traces.score import Scoring
from agenteval.traces.score_tables import score_tables


@dataclass(frozen=True, kw_only=True)
class FindingsScoreReport(Report):
    """Scores of findings against gold; `result` has every figure."""

    result: Evaluation


def score_findings(
    gold: str | Path,
    findings: str | Path,
    *,
    traces: Traces | None = None,
    official: bool = False,
    without_errors: Literal["correct", "zero", "leave_out"] = "correct",
    leave_out_missing: bool = False,
    taxonomy: TaxonomyLike = None,
    seed: int = 0,
    gate: float | None = None,
    max_unscored: float = 0.1,
    notify: Notify | None = None,
) -> FindingsScoreReport:
    """Score a folder of findings against a folder of annotations.

    `official` reproduces TRAIL's scores exactly, with their quirks. A trace without gold errors
    scores 1 if its prediction is empty ("correct"), always 0 ("zero"), or is excluded
    ("leave_out"). Traces without a readable prediction count as empty, or are excluded with
    `leave_out_missing`. With `traces`, trivial predictors are scored for comparison. `gate` is the
    minimum joint F1 (official: joint), and `max_unscored` the share of traces that may lack a
    prediction.

    Returns a report with the scores as tables. Raises InputError for files that cannot be read or
    scored.
    """
    watch, labels = Watch(notify), read_taxonomy(taxonomy)
    how = Scoring(
        taxonomy=labels,
        without_errors=without_errors,
        missing="leave_out" if leave_out_missing else "empty",
        seed=seed,
    )
    truth = read_findings(gold, labels, watch, "gold")
    predicted = read_findings(findings, labels, watch, "findings")
    spans: dict[str, tuple[Span, ...]] = {}
    tokens: dict[str, int] = {}
    for run, _ in read_each(traces, watch) if traces else ():
        spans[run.id] = tuple(Span(id=s.id, parent_id=s.parent_id, kind=s.kind) for s in run.spans)
        tokens[run.id] = source_tokens(run)
    try:
        result = evaluate(truth, predicted, how, spans, tokens)
    except ValueError as error:
        raise InputError(str(error), str(gold)) from error
    if traces and not any(annotation.trace in spans for annotation in truth):
        watch.warn("none of these traces has gold annotations: the ids differ")
    if official and result.official is None:
        raise InputError("official scores are defined for TRAIL's categories only", "--taxonomy")
    coverage = result.scores.coverage
    lost, what = coverage.traces - coverage.answered, "traces have no readable prediction"
    gates = [unscored_gate(coverage.traces, lost, max_unscored, what)]
    if gate is not None and result.official is not None and official:
        gates.append(least_gate("joint", result.official.joint.mean, gate))
    elif gate is not None:
        joint = next(level for level in result.scores.levels if level.level == "joint")
        gates.append(least_gate("joint F1", joint.micro.f1.mean, gate))
    report = FindingsScoreReport(
        title="",
        tables=score_tables(result, official=official),
        notes=tuple(watch.notes),
        data=as_json(result),
        result=result,
    )
    return report.gated(*gates)
