"""Tables of agreement: judges and people, people among themselves, panels, label audits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from agenteval.analysis.agreement import Agreement
from agenteval.analysis.label_audit import AUC, Suspect, WithAndWithout
from agenteval.analysis.panel import Panel, RaterAgreement
from agenteval.analysis.table_parts import (
    CriterionColumns,
    JudgeColumn,
    JudgeCriterionColumns,
    PairColumns,
    criterion_cells,
    criterion_lines,
    pair_cells,
)
from agenteval.records.table import Cell, Column, Table, column, table_of
from agenteval.stats import Interval

_PANEL_NOTE = (
    "the panel is the mean of the judges on runs rated by all of them; change is the increase of "
    "its error without this judge, so a judge above 0 helps"
)


_RUNS = "number of runs"
_ALPHA = "Krippendorff's alpha at the level of measurement"


@dataclass(frozen=True)
class _AgreementColumns(PairColumns):
    n: int = column("runs", "count", _RUNS)
    exact: Interval = column("equal levels", "share")
    alpha: Interval = column("alpha", "number", _ALPHA)


@dataclass(frozen=True)
class _RaterColumns(CriterionColumns):
    n: int = column("runs", "count", _RUNS)
    exact: Interval = column("equal levels", "share")
    alpha: Interval = column("alpha", "number", _ALPHA)


@dataclass(frozen=True)
class _CoefficientColumns(PairColumns):
    kappa: Interval = column("kappa", "number", "Cohen's")
    weighted: Interval = column("weighted kappa", "number", "with quadratic weights")
    spearman: Interval = column("Spearman", "number", "rank correlation of means over repeats")
    judge_mean: Interval = column("judge", "number", "mean of the judge, 0 worst, 1 best")
    label_mean: Interval = column("labels", "number", "mean of the labels")
    bias: Interval = column("judge − labels", "signed", "paired by run")
    n: int = column("runs", "count", "runs rated by both")
    cases: int = column("cases", "count")
    tied: int = column("ties", "count", "runs whose most common level is tied")
    measure: str = column("level of measurement", hidden=True)


@dataclass(frozen=True)
class _LeftOutColumns(PairColumns):
    what: str = column("what")
    reason: str = column("reason")
    n: int = column("number", "count")


@dataclass(frozen=True)
class _CorrectedColumns(PairColumns):
    n: int = column("runs", "count", "runs without a label")
    apparent: Interval | None = column("by the\njudge", "share")
    rate: Interval = column("corrected", "share", "for the judge's errors on labelled runs")
    specificity: Interval = column("right on\nbad", "share")
    n_bad: int = column("bad", "count")
    sensitivity: Interval = column("right on\ngood", "share")
    n_good: int = column("good", "count")
    reason: str = column("why not")


@dataclass(frozen=True)
class _ConfusionColumns(JudgeColumn):
    rater: str = column("rater", hidden=True)
    criterion_id: str = column("criterion id", hidden=True)
    level: str = column("labels \\ judge")


@dataclass(frozen=True)
class _PanelColumns:
    group: str = column("criterion")
    rater: str = column("rater", hidden=True)
    criterion_id: str = column("criterion id", hidden=True)
    judge: str = column("judge")
    n: int = column("runs", "count", "runs rated by all judges and the labels")
    spearman: Interval = column("Spearman", "number")
    error: Interval = column("error", "number", "mean distance from the label")
    change: Interval = column("change", "signed", "of the panel's error without this judge")
    without: Interval = column("error without", "number")


@dataclass(frozen=True)
class _SuspectColumns(JudgeColumn):
    run: str = column("run")
    case: str = column("case", hidden=True)
    system: str = column("system", hidden=True)
    success: bool = column("label\nsuccess", hint="success according to the label")
    unanimous: int = column("against", "count", "criteria that unanimously contradict the label")
    witnesses: int = column("of", "count", "criteria that separate success from failure")
    outlying: float = column("beyond", "share")
    against: str = column("criteria that unanimously contradict it")


@dataclass(frozen=True)
class _AreaColumns(JudgeCriterionColumns):
    all_runs: Interval = column("all runs", "number")
    without: Interval = column("without", "number")


@dataclass(frozen=True)
class _WitnessColumns(JudgeColumn):
    run: str = column("run")
    criterion_id: str = column("criterion")
    auc: float = column("AUC", "number", "success against failure, without the run's case")
    low: float = column("lowest", "number")
    mean: float = column("mean", "number")
    high: float = column("highest", "number")
    rated: int = column("rated", "count", "repeats")
    asked: int = column("of", "count")
    unanimous: bool = column("unanimous")
    outlying: float = column("beyond", "share")


@dataclass(frozen=True)
class JudgeAndRater:
    """Agreement of one judge with one rater."""

    judge: str
    rater: str
    criteria: tuple[Agreement, ...]


@dataclass(frozen=True)
class PanelOf:
    """Agreement of all judges together with one rater."""

    rater: str
    criteria: tuple[Panel, ...]


@dataclass(frozen=True)
class AuditBy:
    """The labels contradicted by one judge."""

    judge: str
    suspects: tuple[Suspect, ...]
    auc: tuple[WithAndWithout, ...]


def pair_tables(
    pairs: Sequence[JudgeAndRater], names: Mapping[str, str], *, confusion: bool = False
) -> Iterator[Table]:
    """Yield the tables by judge and rater: agreement, further coefficients, excluded runs, the
    corrected rate if available, and confusion matrices (a detail unless `confusion` is set).
    `names` are by criterion id."""
    rows = [
        (a, pair_cells(pair.judge, pair.rater, a.criterion_id, names))
        for pair in pairs
        for a in pair.criteria
    ]
    yield table_of(
        _AgreementColumns,
        "agreement",
        "Judges compared with human labels",
        [(a, {**cells, "n": a.compared}) for a, cells in rows],
        notes=_remarks(pairs, names, lambda a: a.warnings),
        group="pair",
    )
    yield table_of(
        _CoefficientColumns,
        "coefficients",
        "Further coefficients and means",
        rows,
        notes=_remarks(pairs, names, _why_missing),
        group="pair",
        detail=True,
    )
    left_out = [
        {**cells, "what": what, "reason": reason, "n": n}
        for a, cells in rows
        for what, counts in (("runs", a.left_out), ("ratings without a level", a.failures))
        for reason, n in counts.items()
    ]
    yield table_of(_LeftOutColumns, "left_out", "Left out", left_out, group="pair", detail=True)
    corrected = [(c, cells) for a, cells in rows if (c := a.corrected) is not None]
    if corrected:
        none = "no runs without a label"
        yield table_of(
            _CorrectedColumns,
            "corrected",
            "Share of good runs among runs without a label",
            [
                (
                    c,
                    {
                        **cells,
                        "n": c.rate.n,
                        "reason": c.rate.reason or (none if c.apparent is None else ""),
                    },
                )
                for c, cells in corrected
            ],
            group="pair",
            detail=True,
        )
    for number, (a, cells) in enumerate(((a, cells) for a, cells in rows if a.levels), 1):
        levels = tuple(enumerate(a.levels, 1))
        yield table_of(
            _ConfusionColumns,
            f"confusion_{number}",
            f"{cells['criterion']}: runs by level, worst first "
            f"(judge {cells['judge']}, labels of {cells['rater']})",
            [
                {key: cells[key] for key in ("judge", "rater", "criterion_id")}
                | {"level": f"{i} {level}"}
                | {str(j): n for j, n in enumerate(a.confusion[i - 1], 1)}
                for i, level in levels
            ],
            detail=not confusion,
            more=[Column(str(i), str(i), "count", level) for i, level in levels],
        )


def _why_missing(agreement: Agreement) -> list[str]:
    """Return a line per reason, with the figures that have no value or interval."""
    reasons: dict[str, list[str]] = {}
    for name in ("exact", "kappa", "weighted", "alpha", "spearman", "bias"):
        figure = getattr(agreement, name)
        if figure.reason and (figure.mean is None or figure.low is None):
            reasons.setdefault(figure.reason, []).append(name)
    return [f"{', '.join(figures)}: {why}" for why, figures in reasons.items()]


def _remarks(
    pairs: Sequence[JudgeAndRater],
    names: Mapping[str, str],
    lines_of: Callable[[Agreement], Iterable[str]],
) -> tuple[str, ...]:
    """Return lines about criteria; equal remarks share a line."""
    notes: list[str] = []
    for pair in pairs:
        criteria = defaultdict[str, list[str]](list)
        for agreement in pair.criteria:
            for line in lines_of(agreement):
                criteria[line].append(names.get(agreement.criterion_id, agreement.criterion_id))
        start = f"{pair.judge} and {pair.rater}: " if len(pairs) > 1 else ""
        notes += [start + line for line in criterion_lines(criteria, len(pair.criteria))]
    return tuple(notes)


def rater_table(raters: Sequence[RaterAgreement], names: Mapping[str, str]) -> Table:
    """Return the agreement of raters among themselves."""
    who = ", ".join(dict.fromkeys(name for a in raters for name in a.raters))
    title = f"agreement among raters ({who}): an upper reference for the judge"
    rows = ((a, criterion_cells(a.criterion_id, names)) for a in raters)
    return table_of(_RaterColumns, "raters", title, rows, detail=True)


def panel_table(panels: Sequence[PanelOf], names: Mapping[str, str]) -> Table:
    """Return a table with a row per criterion for the panel, followed by a row per judge."""
    rows: list[tuple[object, dict[str, Cell]]] = []
    for rater, panel in [(panel_of.rater, p) for panel_of in panels for p in panel_of.criteria]:
        common: dict[str, Cell] = {
            "group": f"{names.get(panel.criterion_id, panel.criterion_id)}, labels of {rater}",
            "rater": rater,
            "criterion_id": panel.criterion_id,
            "n": panel.n,
        }
        rows.append((panel, {**common, "judge": "panel"}))
        rows += [(member, {**common, "judge": member.name}) for member in panel.members]
    title = f"panel against labels of {', '.join(of_rater.rater for of_rater in panels)}"
    notes = [_PANEL_NOTE]
    return table_of(_PanelColumns, "panel", title, rows, notes=notes, group="group", detail=True)


def audit_tables(audit: AuditBy, names: Mapping[str, str]) -> Iterator[Table]:
    """Yield the contradicted success labels, the AUC without them, and their ratings."""
    judge: dict[str, Cell] = {"judge": audit.judge}
    note = (
        f"the audit is not possible: no criterion separates success from failure (AUC above {AUC})"
    )
    if audit.suspects:
        note = (
            "unanimous: every repeat on the side of the other label; beyond: share of the runs of "
            "the same label that the ratings lie beyond"
        )
    elif any(a.all_runs.mean is not None and a.all_runs.mean > AUC for a in audit.auc):
        note = "none: no criterion that separates success from failure contradicts a label"
    yield table_of(
        _SuspectColumns,
        "audit",
        f"label audit by {audit.judge}: success labels that the judge contradicts, "
        "to be reviewed by a person",
        [
            (
                s,
                judge
                | {
                    "unanimous": len(s.against),
                    "witnesses": len(s.witnesses),
                    "against": ", ".join(s.against),
                },
            )
            for s in audit.suspects
        ],
        notes=[note],
    )
    yield table_of(
        _AreaColumns,
        "auc",
        f"AUC of {audit.judge} with all labels, and without the contradicted runs",
        ((a, judge | criterion_cells(a.criterion_id, names)) for a in audit.auc),
        notes=["the AUC always rises without them; this shows how much depends on these labels"],
        detail=True,
    )
    yield table_of(
        _WitnessColumns,
        "witnesses",
        f"Ratings of these runs by criterion, by {audit.judge}",
        ((w, judge | {"run": s.run}) for s in audit.suspects for w in s.witnesses),
        detail=True,
    )
