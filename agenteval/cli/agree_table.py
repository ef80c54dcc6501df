"""What `agree` prints: per judge and rater two tables, then what must be said about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from agenteval.cli.console import clean, out
from agenteval.cli.grid import Column, Grid, Group, Row, print_grids
from agenteval.stats.interval import Interval
from agenteval.trust.agreement import Agreement
from agenteval.trust.label_audit import AUC, Suspect, WithAndWithout
from agenteval.trust.panel import Panel as Jury
from agenteval.trust.panel import RaterAgreement as Ceiling

Names = Mapping[str, str]
MOST_SUSPECTS = 15  # printed


@dataclass(frozen=True)
class Comparison:
    """One judge against one rater."""

    judge: str
    rater: str
    criteria: tuple[Agreement, ...]


@dataclass(frozen=True)
class JuryOf:
    """All judges together against one rater."""

    rater: str
    criteria: tuple[Jury, ...]


@dataclass(frozen=True)
class Audited:
    """The labels that one judge contradicts."""

    judge: str
    suspects: tuple[Suspect, ...]
    auc: tuple[WithAndWithout, ...]


@dataclass(frozen=True)
class Found:
    """Everything that `agree` has to say."""

    comparisons: tuple[Comparison, ...]
    raters: tuple[Ceiling, ...]
    jury: tuple[JuryOf, ...]
    audit: tuple[Audited, ...]


def print_found(found: Found, names: Names, *, confusion: bool) -> None:
    """All tables. `names` by criterion id."""
    for one in found.comparisons:
        out().print(f"[bold]judge {clean(one.judge)} against labels of {clean(one.rater)}[/bold]")
        print_grids(_agreement(one.criteria, names), _differences(one.criteria, names))
        _remarks(one.criteria, names)
        if confusion:
            _confusions(one.criteria, names)
    if found.raters:
        _ceiling(found.raters, names)
    for jury in found.jury:
        _jury(jury, names)
    for audited in found.audit:
        _audit(audited, names)


def number(value: float | None) -> str:
    """Two digits without the zero before the point, so that intervals fit; "-" for undefined."""
    if value is None:
        return "-"
    text = f"{value:.2f}"
    whole = {"0.00": "0", "-0.00": "0", "1.00": "1", "-1.00": "-1"}
    return whole.get(text) or text.replace("0.", ".", 1)


def interval(one: Interval, *, percent: bool = False) -> str:
    """Estimate and interval; the estimate alone where there is no interval."""
    if one.mean is None:
        return "-"
    if percent:
        head, ends = (
            f"{one.mean:.0%}",
            [f"{e * 100:.0f}" for e in (one.low, one.high) if e is not None],
        )
    else:
        head, ends = number(one.mean), [number(e) for e in (one.low, one.high) if e is not None]
    return f"{head} [{', '.join(ends)}]" if len(ends) == 2 else head


def _grid(heads: Sequence[str], lines: Sequence[Row | Group], *, words: Sequence[int] = ()) -> Grid:
    """A table whose first column names the row; those of `words` are text too, the others numbers.

    The last of `words` is broken where room is short, if it is the last column.
    """
    columns = [
        Column(head, number=i not in (0, *words), whole=i + 1 < len(heads) or i not in words)
        for i, head in enumerate(heads)
    ]
    return Grid(tuple(columns), tuple(lines))


def _agreement(rows: Sequence[Agreement], names: Names) -> Grid:
    lines = [
        Row(
            (
                names.get(one.criterion_id, one.criterion_id),
                str(one.compared) if one.compared == one.n else f"{one.compared} of {one.n}",
                interval(one.exact, percent=True),
                *(interval(i) for i in (one.kappa, one.alpha)),
            )
        )
        for one in rows
    ]
    return _grid(("criterion", "runs", "equal levels", "kappa", "alpha"), lines)


def _differences(rows: Sequence[Agreement], names: Names) -> Grid:
    heads = ("criterion", "weighted kappa", "Spearman", "judge", "labels", "judge - labels")
    lines = [
        Row(
            (
                names.get(one.criterion_id, one.criterion_id),
                interval(one.weighted),
                interval(one.spearman),
                number(one.judge_mean),
                number(one.label_mean),
                interval(one.bias),
            )
        )
        for one in rows
    ]
    return _grid(heads, lines)


def _remarks(rows: Sequence[Agreement], names: Names) -> None:
    """Why something is missing, corrected rates, warnings; equal ones once."""
    _counted({a.criterion_id: a.left_out for a in rows}, "runs left out, ", names)
    _counted({a.criterion_id: a.failures for a in rows}, "ratings without a level, ", names)
    ties = {a.criterion_id: {"several levels equally common": a.tied} for a in rows if a.tied}
    _counted(ties, "runs with ", names)
    said: list[tuple[str, str]] = []
    for one in rows:
        reasons: dict[str, list[str]] = {}
        for what in ("exact", "kappa", "weighted", "alpha", "spearman", "bias"):
            figure: Interval = getattr(one, what)
            if figure.reason and (figure.mean is None or figure.low is None):
                reasons.setdefault(figure.reason, []).append(what)
        said += [(one.criterion_id, f"{', '.join(w)}: {why}") for why, w in reasons.items()]
        if one.corrected is not None:
            said.append((one.criterion_id, _corrected(one)))
    _grouped(said, names, len(rows), "dim")
    _grouped([(a.criterion_id, w) for a in rows for w in a.warnings], names, len(rows), "yellow")
    out().print()


def _counted(counts: Mapping[str, Mapping[str, int]], what: str, names: Names) -> None:
    """One line per reason: how many, for which criteria."""
    by_reason: dict[str, dict[str, int]] = {}
    for criterion, own in counts.items():
        for reason, n in own.items():
            by_reason.setdefault(reason, {})[names.get(criterion, criterion)] = n
    for reason, found in by_reason.items():
        if len(found) > 1 and len(found) == len(counts) and len(set(found.values())) == 1:
            text = f"{next(iter(found.values()))} for each criterion"
        else:
            text = ", ".join(f"{name} {n}" for name, n in found.items())
        out().print(f"[dim]{clean(what + reason)}: {clean(text)}[/dim]")


def _corrected(one: Agreement) -> str:
    found = one.corrected
    assert found is not None
    if found.apparent is None:
        return "no runs without a label: no rate to correct"
    text = f"good among {found.rate.n} unlabelled runs: {found.apparent:.0%} by the judge"
    if found.rate.mean is None:
        return f"{text}; not corrected: {found.rate.reason}"
    return (
        f"{text}, corrected {interval(found.rate, percent=True)} (right on "
        f"{found.specificity:.0%} of {found.n_bad} bad, {found.sensitivity:.0%} of "
        f"{found.n_good} good)"
    )


def _grouped(said: Iterable[tuple[str, str]], names: Names, every: int, style: str) -> None:
    groups: dict[str, list[str]] = {}
    for criterion, text in said:
        groups.setdefault(text, []).append(names.get(criterion, criterion))
    for text, those in groups.items():
        who = "all criteria" if len(those) == every > 1 else ", ".join(those)
        out().print(f"[{style}]{clean(who)}: {clean(text)}[/{style}]")


def _confusions(rows: Sequence[Agreement], names: Names) -> None:
    for one in rows:
        if not one.levels:
            continue
        heads = [str(i + 1) for i in range(len(one.levels))]
        name = clean(names.get(one.criterion_id, one.criterion_id))
        out().print(f"{name}: runs by level, worst first")
        lines = []
        for i, level in enumerate(one.levels):
            cells = [str(n or (0 if i == j else "·")) for j, n in enumerate(one.confusion[i])]
            lines.append(Row((f"{i + 1} {level}", *cells), styles={i + 1: "bold"}))
        print_grids(_grid(("labels \\ judge", *heads), lines))


def _ceiling(rows: Sequence[Ceiling], names: Names) -> None:
    who = ", ".join(dict.fromkeys(r for one in rows for r in one.raters))
    out().print(f"[bold]raters among themselves[/bold] ({clean(who)}): what a judge could reach")
    lines = [
        Row((names.get(one.criterion_id, one.criterion_id), str(one.n),
             interval(one.exact, percent=True), interval(one.alpha)))
        for one in rows
    ]  # fmt: skip
    print_grids(_grid(("criterion", "runs", "equal levels", "alpha"), lines))


def _jury(found: JuryOf, names: Names) -> None:
    """One line per criterion for the jury, then one per judge."""
    out().print(
        f"[bold]jury against labels of {clean(found.rater)}[/bold]: the mean of the judges, on "
        "runs that all of them rated; error: mean distance from the label; change: what the jury's "
        "error grows by without this judge, so above 0 it helps"
    )
    lines: list[Row | Group] = []
    for one in found.criteria:
        lines.append(Group(names.get(one.criterion_id, one.criterion_id)))
        whole = ("jury", str(one.n), number(one.spearman), interval(one.error), "", "")
        lines.append(Row(whole, "bold"))
        lines += [
            Row((juror.name, "", number(juror.spearman), interval(juror.error),
                 number(juror.without.mean), interval(juror.change)))
            for juror in one.members
        ]  # fmt: skip
    print_grids(
        _grid(("criterion\n  judge", "runs", "Spearman", "error", "without", "change"), lines)
    )


def _audit(found: Audited, names: Names) -> None:
    out().print(
        f"[bold]label audit by {clean(found.judge)}[/bold]: success labels that the judge "
        "contradicts, for a person to look at"
    )
    if not found.suspects:
        telling = any(a.all_runs.mean is not None and a.all_runs.mean > AUC for a in found.auc)
        out().print(
            "none: no criterion that tells success from failure contradicts a label"
            if telling
            else f"nothing to audit with: no criterion tells success from failure (AUC above {AUC})"
        )
        return
    lines = []
    for one in found.suspects[:MOST_SUSPECTS]:
        which = ", ".join(names.get(c, c) for c in one.against)
        label = "success" if one.success else "failed"
        against = f"{len(one.against)} of {len(one.witnesses)}"
        lines.append(Row((one.run, label, against, f"{one.outlying:.0%}", which)))
    heads = ("run", "label", "against", "beyond", "criteria unanimous against it")
    print_grids(_grid(heads, lines, words=(1, 4)))
    if len(found.suspects) > MOST_SUSPECTS:
        out().print(f"and {len(found.suspects) - MOST_SUSPECTS} more, all of them with --json")
    out().print(
        "[dim]unanimous: every repeat on the side of the other label; beyond: share of the runs of "
        "the same label that the ratings lie beyond[/dim]"
    )
    changed = [a for a in found.auc if a.without.mean is not None and a.without != a.all_runs]
    if changed:
        parts = [
            f"{names.get(a.criterion_id, a.criterion_id)} {number(a.all_runs.mean)} → "
            f"{number(a.without.mean)}"
            for a in changed
        ]
        out().print(
            "AUC with all labels → without the contradicted runs (it must rise; it shows how much "
            f"hangs on them): {clean(', '.join(parts))}"
        )
