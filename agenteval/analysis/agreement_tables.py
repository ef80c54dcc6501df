"""The tables of agreement: judges against people, people among themselves, panels, label audits."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.analysis.agreement import Agreement
from agenteval.analysis.label_audit import AUC, Suspect, WithAndWithout
from agenteval.analysis.panel import Panel, RaterAgreement
from agenteval.analysis.table_parts import (
    CRITERION,
    JUDGE,
    PAIR,
    RATER,
    criterion_cells,
    criterion_lines,
    pair_cells,
    table_of,
)
from agenteval.records.table import Cell, Column, Table, cells_of

_RUNS = Column("n", "runs", "count", "number of runs")
_EXACT = Column("exact", "equal levels", "share")
_ALPHA = Column("alpha", "alpha", "number", "Krippendorff's alpha at the level of measurement")
_SUSPECTS = (
    JUDGE,
    Column("run", "run"),
    Column("case", "case", hidden=True),
    Column("system", "system", hidden=True),
    Column("success", "label\nsuccess", hint="success according to the label"),
    Column("unanimous", "against", "count", "criteria that unanimously contradict the label"),
    Column("witnesses", "of", "count", "criteria that separate success from failure"),
    Column("outlying", "beyond", "share"),
    Column("against", "criteria that unanimously contradict it"),
)
_AREAS = (
    JUDGE,
    *CRITERION,
    Column("all_runs", "all runs", "number"),
    Column("without", "without", "number"),
)
_WITNESSES = (
    JUDGE,
    Column("run", "run"),
    Column("criterion_id", "criterion"),
    Column("auc", "AUC", "number", "success against failure, without the run's case"),
    Column("low", "lowest", "number"),
    Column("mean", "mean", "number"),
    Column("high", "highest", "number"),
    Column("rated", "rated", "count", "repeats"),
    Column("asked", "of", "count"),
    Column("unanimous", "unanimous"),
    Column("outlying", "beyond", "share"),
)
_PANEL_NOTE = (
    "the panel is the mean of the judges on runs rated by all of them; change is the increase of "
    "its error without this judge, so a judge above 0 helps"
)


@dataclass(frozen=True)
class JudgeAndRater:
    """One judge against one rater."""

    judge: str
    rater: str
    criteria: tuple[Agreement, ...]


@dataclass(frozen=True)
class PanelOf:
    """All judges together against one rater."""

    rater: str
    criteria: tuple[Panel, ...]


@dataclass(frozen=True)
class AuditBy:
    """The labels that one judge contradicts."""

    judge: str
    suspects: tuple[Suspect, ...]
    auc: tuple[WithAndWithout, ...]


def agreement_tables(
    pairs: Sequence[JudgeAndRater],
    raters: Sequence[RaterAgreement],
    panels: Sequence[PanelOf],
    audits: Sequence[AuditBy],
    names: Mapping[str, str],
    *,
    confusion: bool = False,
) -> tuple[Table, ...]:
    """All of them, `names` by criterion id; those of what was not examined are left out. Labels by
    judge's levels are a detail unless `confusion` is asked for."""
    tables: list[Table] = []
    if pairs:
        tables += _pair_tables(pairs, names)
        tables += [
            _confusion(pair, a, names, number, detail=not confusion)
            for number, (pair, a) in enumerate(
                ((pair, a) for pair in pairs for a in pair.criteria if a.levels), 1
            )
        ]
    if raters:
        tables.append(_raters(raters, names))
    if panels:
        tables.append(_panel(panels, names))
    for audit in audits:
        tables += _audit(audit, names)
    return tuple(tables)


def _pair_tables(pairs: Sequence[JudgeAndRater], names: Mapping[str, str]) -> Iterator[Table]:
    """Agreement, further coefficients, what is left out, and the corrected rate where there is
    one, all by judge and rater."""

    def table(
        key: str,
        title: str,
        columns: tuple[Column, ...],
        rows_of: Callable[[Agreement], Iterable[Mapping[str, Any]]],
        notes: tuple[str, ...] = (),
    ) -> Table:
        rows = tuple(
            pair_cells(pair.judge, pair.rater, a.criterion_id, names)
            | cells_of(a, columns, **cells)
            for pair in pairs
            for a in pair.criteria
            for cells in rows_of(a)
        )
        detail = key != "agreement"
        return Table(key, title, (*PAIR, *columns), rows, notes, group="pair", detail=detail)

    warnings = _remarks(pairs, names, lambda a: a.warnings)
    columns = (_RUNS, _EXACT, _ALPHA)
    yield table(
        "agreement",
        "Judges compared with human labels",
        columns,
        lambda a: [{"n": a.compared}],
        warnings,
    )
    yield table(
        "coefficients",
        "Further coefficients and means",
        (
            Column("kappa", "kappa", "number", "Cohen's"),
            Column("weighted", "weighted kappa", "number", "with quadratic weights"),
            Column("spearman", "Spearman", "number", "rank correlation of means over repeats"),
            Column("judge_mean", "judge", "number", "mean of the judge, 0 worst, 1 best"),
            Column("label_mean", "labels", "number", "mean of the labels"),
            Column("bias", "judge − labels", "signed", "paired by run"),
            Column("n", "runs", "count", "runs rated by both"),
            Column("cases", "cases", "count"),
            Column("tied", "ties", "count", "runs whose most common level is tied"),
            Column("measure", "level of measurement", hidden=True),
        ),
        lambda _: [{}],
        _remarks(pairs, names, _why_missing),
    )
    yield table(
        "left_out",
        "Left out",
        (Column("what", "what"), Column("reason", "reason"), Column("n", "number", "count")),
        lambda a: [
            {"what": what, "reason": reason, "n": n}
            for what, counts in (("runs", a.left_out), ("ratings without a level", a.failures))
            for reason, n in counts.items()
        ],
    )
    if any(a.corrected is not None for pair in pairs for a in pair.criteria):
        figures = (
            Column("n", "runs", "count", "runs without a label"),
            Column("apparent", "by the\njudge", "share"),
            Column("rate", "corrected", "share", "for the judge's errors on labelled runs"),
            Column("specificity", "right on\nbad", "share"),
            Column("n_bad", "bad", "count"),
            Column("sensitivity", "right on\ngood", "share"),
            Column("n_good", "good", "count"),
            Column("reason", "why not"),
        )
        yield table(
            "corrected",
            "Share of good runs among runs without a label",
            figures,
            lambda a: [
                cells_of(
                    c,
                    figures,
                    n=c.rate.n,
                    reason=c.rate.reason
                    or ("no runs without a label" if c.apparent is None else ""),
                )
                for c in [a.corrected]
                if c is not None
            ],
        )


def _why_missing(agreement: Agreement) -> list[str]:
    """The figures that have no value or no interval, by the reason."""
    reasons: dict[str, list[str]] = {}
    for name in ("exact", "kappa", "weighted", "alpha", "spearman", "bias"):
        figure = getattr(agreement, name)
        if figure.reason and (figure.mean is None or figure.low is None):
            reasons.setdefault(figure.reason, []).append(name)
    return [f"{', '.join(figures)}: {why}" for why, figures in reasons.items()]


def _confusion(
    pair: JudgeAndRater, a: Agreement, names: Mapping[str, str], number: int, *, detail: bool
) -> Table:
    levels = tuple(enumerate(a.levels, 1))
    return Table(
        f"confusion_{number}",
        f"{names.get(a.criterion_id, a.criterion_id)}: runs by level, worst first "
        f"(judge {pair.judge}, labels of {pair.rater})",
        (
            JUDGE,
            RATER,
            CRITERION[0],
            Column("level", "labels \\ judge"),
            *(Column(str(i), str(i), "count", level) for i, level in levels),
        ),
        tuple(
            {
                "judge": pair.judge,
                "rater": pair.rater,
                "criterion_id": a.criterion_id,
                "level": f"{i} {level}",
                **{str(j): n for j, n in enumerate(a.confusion[i - 1], 1)},
            }
            for i, level in levels
        ),
        detail=detail,
    )


def _raters(raters: Sequence[RaterAgreement], names: Mapping[str, str]) -> Table:
    who = ", ".join(dict.fromkeys(name for a in raters for name in a.raters))
    title = f"agreement among raters ({who}): an upper reference for the judge"
    rows = ((a, criterion_cells(a.criterion_id, names)) for a in raters)
    return table_of("raters", title, (*CRITERION, _RUNS, _EXACT, _ALPHA), rows)


def _panel(panels: Sequence[PanelOf], names: Mapping[str, str]) -> Table:
    """One line per criterion for the panel, then one per judge."""
    columns = (
        Column("group", "criterion"),
        RATER,
        CRITERION[0],
        Column("judge", "judge"),
        Column("n", "runs", "count", "runs rated by all judges and the labels"),
        Column("spearman", "Spearman", "number"),
        Column("error", "error", "number", "mean distance from the label"),
        Column("change", "change", "signed", "of the panel's error without this judge"),
        Column("without", "error without", "number"),
    )
    rows: list[tuple[object, dict[str, Cell]]] = []
    for of_rater, panel in [(panel_of, p) for panel_of in panels for p in panel_of.criteria]:
        common: dict[str, Cell] = {
            "group": f"{names.get(panel.criterion_id, panel.criterion_id)}, labels of "
            f"{of_rater.rater}",
            "rater": of_rater.rater,
            "criterion_id": panel.criterion_id,
            "n": panel.n,
        }
        rows.append((panel, {**common, "judge": "panel"}))
        rows += [(member, {**common, "judge": member.name}) for member in panel.members]
    title = f"panel against labels of {', '.join(of_rater.rater for of_rater in panels)}"
    return table_of("panel", title, columns, rows, (_PANEL_NOTE,), group="group")


def _audit(audit: AuditBy, names: Mapping[str, str]) -> list[Table]:
    judge: dict[str, Cell] = {"judge": audit.judge}
    return [
        table_of(
            "audit",
            f"label audit by {audit.judge}: success labels that the judge contradicts, "
            "to be reviewed by a person",
            _SUSPECTS,
            (
                (
                    s,
                    {
                        **judge,
                        "unanimous": len(s.against),
                        "witnesses": len(s.witnesses),
                        "against": ", ".join(s.against),
                    },
                )
                for s in audit.suspects
            ),
            (_audit_note(audit),),
            detail=False,
        ),
        table_of(
            "auc",
            f"AUC of {audit.judge} with all labels, and without the contradicted runs",
            _AREAS,
            ((a, {**judge, **criterion_cells(a.criterion_id, names)}) for a in audit.auc),
            ("the AUC always rises without them; this shows how much depends on these labels",),
        ),
        table_of(
            "witnesses",
            f"Ratings of these runs by criterion, by {audit.judge}",
            _WITNESSES,
            ((w, {**judge, "run": s.run}) for s in audit.suspects for w in s.witnesses),
        ),
    ]


def _audit_note(audit: AuditBy) -> str:
    if audit.suspects:
        return (
            "unanimous: every repeat on the side of the other label; beyond: share of the runs of "
            "the same label that the ratings lie beyond"
        )
    if any(a.all_runs.mean is not None and a.all_runs.mean > AUC for a in audit.auc):
        return "none: no criterion that separates success from failure contradicts a label"
    return (
        f"the audit is not possible: no criterion separates success from failure (AUC above {AUC})"
    )


def _remarks(
    pairs: Sequence[JudgeAndRater],
    names: Mapping[str, str],
    lines_of: Callable[[Agreement], Iterable[str]],
) -> tuple[str, ...]:
    """Lines about criteria: what is said of several is said once."""
    notes: list[str] = []
    for pair in pairs:
        criteria = defaultdict[str, list[str]](list)
        for agreement in pair.criteria:
            for line in lines_of(agreement):
                criteria[line].append(names.get(agreement.criterion_id, agreement.criterion_id))
        start = f"{pair.judge} and {pair.rater}: " if len(pairs) > 1 else ""
        notes += [start + line for line in criterion_lines(criteria, len(pair.criteria))]
    return tuple(notes)
