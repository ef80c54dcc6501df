"""Tables of the verifier, the probes and the critics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agenteval.records import Criterion
from agenteval.records.table import (
    Cell,
    Column,
    Estimate,
    Mark,
    Table,
    column,
    columns_headed,
    table_of,
)
from agenteval.records.verification import (
    Check,
    Effect,
    JudgeVerdict,
    Outcome,
    Verification,
    VerifiedSet,
)
from agenteval.text import plural
from agenteval.utility.probes.result import Probe
from agenteval.utility.proposals import Proposals
from agenteval.utility.verify.claims import LIKING

JUDGE = "the judge"
_MARKS: dict[Outcome, Mark] = {"pass": "passed", "fail": "failed", "unknown": "unknown"}


def marked(check: Check | Effect, *, mark: bool = True) -> Estimate:
    """Return the estimate of a check, with a mark for its outcome."""
    outcome = _MARKS[check.outcome] if mark else ""
    return Estimate(check.estimate, check.low, check.high, check.n, check.reason, outcome)


# -- verify ----------------------------------------------------------------------------------------


def verified_tables(result: VerifiedSet, criteria: Sequence[Criterion]) -> tuple[Table, ...]:
    """Return verdicts with reasons, evidence on the judge, in total and by system, and figures."""
    names = {c.id: c.name for c in criteria}
    return (
        _verdicts(result, names),
        evidence_table(result.judge),
        evidence_by_system(result.judge),
        _reasons(result, names),
        _figures(result, names),
        effects_table(result.criteria, names),
    )


@dataclass(frozen=True)
class _EvidenceRow:
    evidence: str = column("claim")
    result: str = column("result")
    unit: str | None = column("figure")
    estimate: Estimate | None = column("estimate [95 %]", "number")
    n: int | None = column("n", "count")


def evidence_table(judge: JudgeVerdict) -> Table:
    """Return a row for each claim about the judge: is it shown?"""
    rows = [
        _EvidenceRow(
            e.name,
            e.standing,
            e.unit or None,
            Estimate(e.estimate, e.low, e.high, e.n) if e.unit else None,
            e.n or None,
        )
        for e in judge.evidence
        if e.name != LIKING
    ]
    unchecked = [f"{e.name}: {e.standing} ({e.reason})" for e in judge.evidence if e.name == LIKING]
    return table_of(_EvidenceRow, "evidence", "evidence on the judge", rows, notes=unchecked)


@dataclass
class _SystemRow:
    system: str = column("system")
    change: Estimate | None = column(
        "damage lowers\nscores by", "signed", "copies that could fall; 95 %", default=None
    )
    copies: int | None = column("copies", "count", default=None)
    auc: Estimate | None = column("success / failed\nAUC [95 %]", "number", default=None)
    runs: int | None = column("runs", "count", default=None)


def evidence_by_system(judge: JudgeVerdict) -> Table:
    """Return a row for each system: how far damage lowers its scores, and its AUC."""
    rows: dict[str, _SystemRow] = {}
    for figure in (f for e in judge.evidence for f in e.systems):
        row = rows.setdefault(figure.system, _SystemRow(figure.system))
        estimate = Estimate(figure.estimate, figure.low, figure.high, figure.n)
        if figure.figure == "change":
            row.change, row.copies = estimate, figure.n
        else:
            row.auc, row.runs = estimate, figure.n
    return table_of(_SystemRow, "by-system", "judge by system", rows.values())


@dataclass(frozen=True)
class _CriterionRow:
    criterion: str = column("criterion")
    verdict: str = column("verdict")
    agreement: Estimate | None = column(
        "repeats\nagree", "number", "Gwet's AC2 over repeats", default=None
    )
    discrimination: Estimate | None = column(
        "success /\nfailed", "number", "AUC: success rated above failure", default=None
    )
    moved: str | None = column("moved as\nexpected", hint="perturbations", default=None)
    why: str = column("reasons and next steps", hidden=True, default="")


def figure_of(check: Check | None, *, limits: bool = True) -> Estimate | None:
    """Return the estimate of a check, without its interval unless `limits`; None without one."""
    if check is None:
        return None
    estimate = marked(check)
    return estimate if limits else replace(estimate, low=None, high=None, n=None)


def moved(verification: Verification) -> str | None:
    """Return how many perturbations with an expected direction changed the scores that way."""
    directed = [e for e in verification.effects if e.expected in ("lower", "higher")]
    passed = sum(e.outcome == "pass" for e in directed)
    return f"{passed} of {len(directed)}" if directed else None


def _verdicts(result: VerifiedSet, names: Mapping[str, str]) -> Table:
    """Return a row for the judge and one for each criterion; the first reason is a note."""
    judge = result.judge
    rows = [_CriterionRow(JUDGE, judge.verdict, why=_why(judge))]
    alike: dict[str, list[str]] = {_why(judge, first=True): [JUDGE]}
    for v in result.criteria:
        name = names.get(v.criterion_id, v.criterion_id)
        agreement, auc = (
            figure_of(v.check(figure), limits=False) for figure in ("agreement", "discrimination")
        )
        rows.append(_CriterionRow(name, v.verdict, agreement, auc, moved(v), _why(v)))
        if v.verdict != "keep":
            alike.setdefault(_why(v, first=True), []).append(name)
    notes = [
        *(f"{', '.join(criteria)}: {why}" for why, criteria in alike.items()),
        *(f"warning: {warning}" for warning in judge.warnings),
        "repeats: AC2; success: AUC; ✓ passes, ✗ does not, ? undecided; reasons: --all",
        *set_lines(result, names),
    ]
    empty = ("agreement", "discrimination", "moved")
    return table_of(_CriterionRow, "verdicts", "", rows, notes=notes, drop_empty=empty)


def _why(verdict: JudgeVerdict | Verification, *, first: bool = False) -> str:
    step = f" → {verdict.next_step}" if verdict.next_step else ""
    return "; ".join(verdict.reasons[:1] if first else verdict.reasons) + step


def _reasons(result: VerifiedSet, names: Mapping[str, str]) -> Table:
    """Return all reasons, a line for each verdict."""
    lines = [f"{JUDGE}: {result.judge.verdict}: {_why(result.judge)}"]
    for v in result.criteria:
        lines.append(f"{names.get(v.criterion_id, v.criterion_id)}: {v.verdict}: {_why(v)}")
    return Table("reasons", "reasons", (), (), tuple(lines), detail=True)


def set_lines(result: VerifiedSet, names: Mapping[str, str]) -> Iterator[str]:
    """Yield facts about the set of criteria: the smallest subset, the first component."""
    if result.subset and len(result.subset) < len(result.criteria):
        chosen = ", ".join(names.get(i, i) for i in result.subset)
        yield f"smallest set that separates success from failure as well as all criteria: {chosen}"
    if (share := result.first_component) is not None:
        yield f"one component explains {share:.0%} of the variance of all criteria"


_NEAREST = "rank correlation with the most similar criterion"
_FIGURES = ("agreement", "alpha", "discrimination", "redundancy")


@dataclass(frozen=True)
class _FigureRow:
    criterion: str = column("criterion")
    rated: float | None = column("rated", "share")
    runs: int = column("runs", "count")
    mean: Estimate = column("mean [95 %]\nof runs", "number")
    agreement: Estimate = column("agreement\nAC2 [95 %]", "number")
    alpha: Estimate = column("alpha", "number", "Krippendorff's alpha; for information only")
    discrimination: Estimate = column("success / failed\nAUC [95 %]", "number")
    redundancy: Estimate = column("nearest\nrho", "number", _NEAREST)


def _figures(result: VerifiedSet, names: Mapping[str, str]) -> Table:
    rows = [
        _FigureRow(
            names.get(v.criterion_id, v.criterion_id),
            v.coverage,
            v.runs,
            Estimate(v.mean, v.low, v.high, v.cases),
            *(_checked(v.check(name)) for name in _FIGURES),
        )
        for v in result.criteria
    ]
    notes = [f"nearest rho: {_NEAREST}; ✓ passes, ✗ fails"]
    title = "evidence for the verdicts"
    return table_of(_FigureRow, "figures", title, rows, notes=notes, detail=True)


def _checked(check: Check | None) -> Estimate:
    if check is None:
        return Estimate(None, reason="not examined")
    return marked(check, mark=check.estimate is not None and check.name != "alpha")


@dataclass(frozen=True)
class _EffectRow:
    criterion: str = column("criterion")
    operator: str = column("perturbation")
    share: float | None = column("share", "share")
    expected: str = column("expected")
    change: Estimate = column("original\n− copy", "signed", "share of the scale; 95 % over cases")
    cases: int = column("cases", "count")
    shorter: float | None = column("copies\nshorter", "share")


def effects_table(verified: Sequence[Verification], names: Mapping[str, str]) -> Table:
    """Return original minus copy by criterion and perturbation, beside the share of shorter
    copies, a length-only baseline."""
    rows = [
        _EffectRow(
            names.get(v.criterion_id, v.criterion_id),
            e.operator,
            e.share,
            e.expected,
            marked(e, mark=e.estimate is not None and e.expected != "unknown"),
            e.n,
            e.shorter,
        )
        for v in verified
        if any(e.n for e in v.effects)
        for e in v.effects
    ]
    title = "score changes of perturbed copies"
    title += " (expected: lower, none, higher; ✓ confirmed, ✗ refuted)"
    return table_of(_EffectRow, "effects", title, rows, group="criterion", detail=True)


# -- probes ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ProbeRow:
    probe: str = column("probe")
    outcome: str = column("outcome")
    why: str = column("why")


@dataclass(frozen=True)
class _MeasureRow:
    probe: str = column("probe")
    measure: str = column("measure")
    unit: str = column("unit")
    estimate: Estimate = column("estimate [95 %]", "signed")
    cases: int | None = column("cases", "count")
    p: float | None = column("p", "p", "by Holm over all probes")


def probe_tables(probes: Sequence[Probe]) -> tuple[Table, Table]:
    """Return a table of the probes, and one of their measures."""
    outcomes = [_ProbeRow(probe.name, probe.outcome, probe.reason) for probe in probes]
    measures = [
        _MeasureRow(probe.name, c.name, c.unit, _checked(c), c.n or None, c.p_adjusted)
        for probe in probes
        for c in probe.checks
    ]
    notes = [f"{probe.name}: {line}" for probe in probes for line in _splits(probe)]
    title = "probe measures (95 % over cases)"
    return (
        table_of(_ProbeRow, "probes", "probes: what influences the judge", outcomes),
        table_of(_MeasureRow, "measures", title, measures, notes=notes, group="probe", detail=True),
    )


def _splits(probe: Probe) -> Iterator[str]:
    """Yield the counts of a probe beside its measures: best levels reached, estimates by part."""
    up, down = (probe.detail.get(f"best level under {s} only") for s in ("attack", "control"))
    if isinstance(up, int) and isinstance(down, int):
        pairs = probe.detail["pairs"]
        yield f"best level with the attack only: {up} of {pairs}, with the control only: {down}"
    for head, groups in probe.detail.items():
        if not head.startswith("by ") or not isinstance(groups, dict):
            continue
        parts = [
            (-estimate, name, group["cases"])
            for name, group in groups.items()
            if isinstance(group, dict) and isinstance(estimate := group.get("estimate"), float)
        ]
        listed = ", ".join(
            f"{name} {-value:+.2f} ({n})"
            for value, name, n in sorted(parts, key=lambda part: part[:2])
        )
        if listed:
            yield f"{head} (cases): {listed}"


# -- criteria --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ProposalRow:
    criterion: str = column("criterion")
    levels: str = column("accepted values, worst to best")
    seeds: int | None = column("seeds", "count", default=None)


@dataclass(frozen=True)
class _IssueRow:
    criterion: str = column("criterion")
    issue: str = column("issue")


@dataclass(frozen=True)
class _DescriptionRow:
    criterion: str = column("criterion")
    description: str = column("description")
    aliases: str = column("also called")


def proposal_title(proposals: Proposals) -> str:
    """Return in one line who proposed how much."""
    return (
        f"{proposals.model}: {proposals.criteria.task}, {proposals.mode}, "
        f"{proposals.seeds_answered} of {proposals.seeds_asked} seeds answered; "
        f"{plural(proposals.proposed, 'proposal')} merged to "
        f"{plural(len(proposals.criteria.criteria), 'criterion')} "
        f"at τ = {proposals.tau:g} ({proposals.embedder})"
    )


def proposal_tables(proposals: Proposals) -> tuple[Table, ...]:
    """Return the criteria, the issues of the rubric check, the descriptions, and the curve."""
    criteria = proposals.criteria.criteria
    rows = []
    for c in criteria:
        levels = "by its parts" if c.sub_criteria else " < ".join(c.accepted_values)
        rows.append(_ProposalRow(c.name, levels, len(c.provenance.seeds)))
        rows += [
            _ProposalRow(f"  · {sub.name}", " < ".join(sub.accepted_values))
            for sub in c.sub_criteria
        ]
    issues = [_IssueRow(i.criterion_id, i.message) for i in proposals.issues]
    descriptions = [
        _DescriptionRow(
            c.name,
            c.description,
            ", ".join(sorted({str(a.get("name")) for a in c.provenance.aliases} - {c.name})),
        )
        for c in criteria
    ]
    return (
        table_of(_ProposalRow, "criteria", "", rows, notes=_merge_notes(proposals)),
        table_of(_IssueRow, "issues", "check these before paying for scores", issues),
        table_of(_DescriptionRow, "described", "descriptions", descriptions, detail=True),
        _curve(proposals),
    )


def _merge_notes(proposals: Proposals) -> Iterator[str]:
    """Yield what consolidation did, parts of other criteria, near misses, and changed replies."""
    if (merging := proposals.consolidation) is not None:
        ideas = plural(len(set(merging.labels)), "idea")
        by_embedding = len(set(merging.before))
        yield (
            f"consolidation: {merging.model} grouped {plural(len(merging.labels), 'name')} into "
            f"{ideas} ({by_embedding} by embedding alone) in {plural(merging.requests, 'request')}"
        )
        for problem in merging.problems:
            yield f"consolidation: {problem}"
    parts = [c for c in proposals.criteria.criteria if c.provenance.part_of]
    if parts:
        listed = "; ".join(f"{c.name} → {', '.join(c.provenance.part_of)}" for c in parts)
        yield f"parts of other criteria, kept as separate criteria: {listed}"
    if misses := proposals.near_misses:
        listed = "; ".join(f"{m.left} ~ {m.right} ({m.cosine:.2f})" for m in misses[:5])
        more = f"; and {len(misses) - 5} more, see --json" if len(misses) > 5 else ""
        yield f"possibly the same, but not merged (cosine): {listed}{more}"
    changes: dict[str, dict[str, list[str]]] = {}
    for line in proposals.notes:  # seed N: criterion: change
        seed, _, text = line.removeprefix("seed ").partition(": ")
        criterion, _, change = text.partition(": ")
        seeds = changes.setdefault(change or criterion, {})
        seeds.setdefault(criterion if change else "", []).append(seed)
    for change, where in changes.items():
        names = (f"{name} ({', '.join(seeds)})".strip() for name, seeds in where.items())
        yield f"changed when read (criterion, seeds): {change}: {', '.join(names)}"


def _curve(proposals: Proposals) -> Table:
    """Return the number of unique criteria by number of seeds."""
    answered = proposals.seeds_answered
    curves = {f"tau_{tau:g}": (f"τ = {tau:g}", curve) for tau, curve in proposals.curves.items()}
    if proposals.merged_curve is not None:
        curves["merged"] = ("as merged", proposals.merged_curve)
    heads = columns_headed({key: head for key, (head, _) in curves.items()}, "number")
    columns = (Column("seeds", "seeds", "count"), *heads)
    picks = sorted({m for m in (1, 2, 3, 5, 10, 20, 50, answered) if 1 < answered >= m})
    rows: list[dict[str, Cell]] = [
        {"seeds": m} | {key: float(curve.mean[m - 1]) for key, (_, curve) in curves.items()}
        for m in picks
    ]
    title = "unique criteria by number of seeds (mean over all subsets of that size)"
    return Table("unique", title, columns, tuple(rows), detail=True)
