"""What the verifier, the probes and the critics found, as tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from agenteval.records import Criterion
from agenteval.records.table import Cell, Column, Estimate, Mark, Table
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

JUDGE = "the judge"
_MARKS: dict[Outcome, Mark] = {"pass": "passed", "fail": "failed", "unknown": "unknown"}
_LISTED = 5  # near misses that a note names
_CURVE = (1, 2, 3, 5, 10, 20, 50)  # numbers of seeds that a row is shown for


# -- verify ----------------------------------------------------------------------------------------


def verified_tables(result: VerifiedSet, criteria: Sequence[Criterion]) -> tuple[Table, ...]:
    """The verdicts with their reasons first, then the evidence on the judge, all of it and by
    system, then the figures they rest on."""
    names = {c.id: c.name for c in criteria}
    judge = result.judge
    return (
        _verdicts(result, names),
        evidence_table(judge),
        evidence_by_system(judge),
        _figures(result, names),
        effects_table(result.criteria, names),
    )


def evidence_table(judge: JudgeVerdict) -> Table:
    """A row for each kind of evidence on the judge: is it shown?"""
    columns = (
        Column("evidence", "claim"),
        Column("result", "result"),
        Column("unit", "figure"),
        Column("estimate", "estimate [95 %]", "number"),
        Column("n", "n", "count"),
    )
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "evidence": e.name,
            "result": e.standing,
            "unit": e.unit or None,
            "estimate": Estimate(e.estimate, e.low, e.high, e.n) if e.unit else None,
            "n": e.n or None,
        }
        for e in judge.evidence
    )
    return Table("evidence", "evidence on the judge", columns, rows)


def evidence_by_system(judge: JudgeVerdict) -> Table:
    """A row for each system: how far damage lowers its scores, and its AUC."""
    columns = (
        Column("system", "system"),
        Column("change", "damage lowers\nscores by", "signed", "copies that could fall; 95 %"),
        Column("copies", "copies", "count"),
        Column("auc", "success / failed\nAUC [95 %]", "number"),
        Column("runs", "runs", "count"),
    )
    rows: dict[str, dict[str, Cell]] = {}
    for figure in (f for e in judge.evidence for f in e.systems):
        row = rows.setdefault(figure.system, {"system": figure.system})
        estimate = Estimate(figure.estimate, figure.low, figure.high, figure.n)
        if figure.figure == "change":
            row |= {"change": estimate, "copies": figure.n}
        else:
            row |= {"auc": estimate, "runs": figure.n}
    return Table("by-system", "the judge by system", columns, tuple(rows.values()))


def _verdicts(result: VerifiedSet, names: Mapping[str, str]) -> Table:
    """A row for the judge, and one for all criteria of which the same is said."""
    judge = result.judge
    rows: list[dict[str, Cell]] = [
        {
            "criterion": JUDGE,
            "verdict": judge.verdict,
            "why": _why(judge.reasons, judge.next_step),
        }
    ]
    alike: dict[tuple[str, str], list[str]] = {}
    for verification in result.criteria:
        key = verification.verdict, _why(verification.reasons, verification.next_step)
        alike.setdefault(key, []).append(
            names.get(verification.criterion_id, verification.criterion_id)
        )
    rows += [
        {"criterion": ", ".join(those), "verdict": verdict, "why": why}
        for (verdict, why), those in alike.items()
    ]
    notes = [f"warning: {warning}" for warning in judge.warnings]
    if result.subset and len(result.subset) < len(result.criteria):
        chosen = ", ".join(names.get(i, i) for i in result.subset)
        notes.append(f"smallest set that tells success from failure as well as all: {chosen}")
    if (share := result.first_component) is not None:
        notes.append(f"one component holds {share:.0%} of the variance of all criteria")
    columns = (
        Column("criterion", "criterion"),
        Column("verdict", "verdict"),
        Column("why", "why, and what to do"),
    )
    return Table("verdicts", "", columns, tuple(rows), tuple(notes))


def _why(reasons: Sequence[str], step: str) -> str:
    return "; ".join(reasons) + (f" → {step}" if step else "")


def _figures(result: VerifiedSet, names: Mapping[str, str]) -> Table:
    columns = (
        Column("criterion", "criterion"),
        Column("rated", "rated", "share"),
        Column("runs", "runs", "count"),
        Column("mean", "mean [95 %]\nof runs", "number"),
        Column("agreement", "agreement\nAC2 [95 %]", "number"),
        Column("alpha", "alpha", "number", "Krippendorff's; decides nothing"),
        Column("discrimination", "success / failed\nAUC [95 %]", "number"),
        Column("redundancy", "nearest\nrho", "number", "rank correlation with the most similar"),
    )
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "criterion": names.get(verification.criterion_id, verification.criterion_id),
            "rated": verification.coverage,
            "runs": verification.runs,
            "mean": Estimate(
                verification.mean, verification.low, verification.high, verification.cases
            ),
            **{
                name: _checked(verification.check(name))
                for name in ("agreement", "alpha", "discrimination", "redundancy")
            },
        }
        for verification in result.criteria
    )
    legend = "nearest rho: rank correlation with the most similar criterion; ✓ passes, ✗ does not"
    title = "what the verdicts rest on"
    return Table("figures", title, columns, rows, (legend,), detail=True)


def _checked(check: Check | None) -> Estimate:
    if check is None:
        return Estimate(None, reason="not examined")
    judged = check.estimate is not None and check.name != "alpha"
    mark = _MARKS[check.outcome] if judged else ""
    return Estimate(check.estimate, check.low, check.high, check.n, check.reason, mark)


def effects_table(verified: Sequence[Verification], names: Mapping[str, str]) -> Table:
    """Original minus copy by criterion and perturbation, beside what length alone would say."""
    columns = (
        Column("criterion", "criterion"),
        Column("operator", "perturbation"),
        Column("share", "share", "share"),
        Column("expected", "expected"),
        Column("change", "original\n− copy", "signed", "share of the scale; 95 % over cases"),
        Column("cases", "cases", "count"),
        Column("shorter", "copies\nshorter", "share"),
    )
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "criterion": names.get(verification.criterion_id, verification.criterion_id),
            "operator": effect.operator,
            "share": effect.share,
            "expected": effect.expected,
            "change": _change(effect),
            "cases": effect.n,
            "shorter": effect.shorter,
        }
        for verification in verified
        for effect in verification.effects
        if any(e.n for e in verification.effects)
    )
    return Table(
        "effects",
        "what perturbed copies lose (expected: lower, none, higher; ✓ surely so, ✗ surely not)",
        columns,
        rows,
        group="criterion",
        detail=True,
    )


def _change(effect: Effect) -> Estimate:
    judged = effect.estimate is not None and effect.expected != "unknown"
    mark = _MARKS[effect.outcome] if judged else ""
    return Estimate(effect.estimate, effect.low, effect.high, effect.n, effect.reason, mark)


# -- probes ----------------------------------------------------------------------------------------


def probe_tables(probes: Sequence[Probe]) -> tuple[Table, ...]:
    """A line per probe, then its measures."""
    columns = Column("probe", "probe"), Column("outcome", "outcome"), Column("why", "why")
    rows: tuple[dict[str, Cell], ...] = tuple(
        {"probe": probe.name, "outcome": probe.outcome, "why": probe.reason} for probe in probes
    )
    title = "probes: what sways the judge"
    return Table("probes", title, columns, rows), _measures(probes)


def _measures(probes: Sequence[Probe]) -> Table:
    columns = (
        Column("probe", "probe"),
        Column("measure", "measure"),
        Column("unit", "unit"),
        Column("estimate", "estimate [95 %]", "signed"),
        Column("cases", "cases", "count"),
        Column("p", "p", "p", "by Holm over all probes"),
    )
    rows: tuple[dict[str, Cell], ...] = tuple(
        {
            "probe": probe.name,
            "measure": check.name,
            "unit": check.unit,
            "estimate": _checked(check),
            "cases": check.n or None,
            "p": check.p_adjusted,
        }
        for probe in probes
        for check in probe.checks
    )
    notes = tuple(f"{probe.name}: {line}" for probe in probes for line in _splits(probe))
    title = "measures of the probes (95 % over cases)"
    return Table("measures", title, columns, rows, notes, group="probe", detail=True)


def _splits(probe: Probe) -> Iterator[str]:
    """What a probe counted beside its measures: best levels reached, estimates by part."""
    up, down = (probe.detail.get(f"best level under {s} only") for s in ("attack", "control"))
    if isinstance(up, int) and isinstance(down, int):
        pairs = probe.detail["pairs"]
        yield f"best level with the attack only: {up} of {pairs}, with the control only: {down}"
    for head, groups in probe.detail.items():
        if not head.startswith("by ") or not isinstance(groups, dict):
            continue
        known = {
            name: (estimate, own["cases"])
            for name, own in groups.items()
            if isinstance(own, dict) and isinstance(estimate := own.get("estimate"), float)
        }
        parts = sorted(known.items(), key=lambda part: (-part[1][0], part[0]))
        if parts:
            listed = ", ".join(f"{name} {value:+.2f} ({n})" for name, (value, n) in parts)
            yield f"{head} (cases): {listed}"


# -- criteria --------------------------------------------------------------------------------------


def proposal_title(proposals: Proposals) -> str:
    """Who proposed how much, in one line."""
    return (
        f"{proposals.model}: {proposals.criteria.task}, {proposals.mode}, "
        f"{proposals.seeds_answered} of {proposals.seeds_asked} seeds answered; "
        f"{proposals.proposed} proposals merged to {len(proposals.criteria.criteria)} criteria "
        f"at τ = {proposals.tau:g} ({proposals.embedder})"
    )


def proposal_tables(proposals: Proposals) -> tuple[Table, ...]:
    """The criteria; then their words, what the rubric check found, and how many seeds it took."""
    return _criteria(proposals), _issues(proposals), _described(proposals), _curve(proposals)


def _criteria(proposals: Proposals) -> Table:
    columns = (
        Column("criterion", "criterion"),
        Column("levels", "accepted values, worst to best"),
        Column("seeds", "seeds", "count"),
    )
    rows: list[dict[str, Cell]] = []
    for c in proposals.criteria.criteria:
        levels = "by its parts" if c.sub_criteria else " < ".join(c.accepted_values)
        rows.append({"criterion": c.name, "levels": levels, "seeds": len(c.provenance.seeds)})
        rows += [
            {"criterion": f"  · {sub.name}", "levels": " < ".join(sub.accepted_values)}
            for sub in c.sub_criteria
        ]
    return Table("criteria", "", columns, tuple(rows), tuple(_sameness(proposals)))


def _sameness(proposals: Proposals) -> Iterator[str]:
    """What consolidation did and could not do, parts and wholes, and what is perhaps the same."""
    if (asked := proposals.consolidation) is not None:
        yield (
            f"consolidation: {asked.model} was asked in {plural(asked.requests, 'request')} "
            f"which of {plural(len(asked.labels), 'name')} are the same: "
            f"{plural(len(set(asked.labels)), 'idea')}, by embedding alone {len(set(asked.before))}"
        )
        for problem in asked.problems:
            yield f"consolidation: {problem}"
    parts = [c for c in proposals.criteria.criteria if c.provenance.part_of]
    if parts:
        listed = "; ".join(f"{c.name} → {', '.join(c.provenance.part_of)}" for c in parts)
        yield f"parts of others, kept by themselves: {listed}"
    if misses := proposals.near_misses:
        listed = "; ".join(f"{m.left} ~ {m.right} ({m.cosine:.2f})" for m in misses[:_LISTED])
        more = f"; and {len(misses) - _LISTED} more, see --json" if len(misses) > _LISTED else ""
        yield f"perhaps the same, and kept apart (cosine): {listed}{more}"
    yield from _changed(proposals)


def _changed(proposals: Proposals) -> Iterator[str]:
    """What was changed or left out in reading, each kind of change once with its criteria."""
    kinds: dict[str, dict[str, list[str]]] = {}
    for line in proposals.notes:  # seed N: criterion: what was done
        seed, _, rest = line.removeprefix("seed ").partition(": ")
        criterion, _, done = rest.partition(": ")
        where = kinds.setdefault(done or criterion, {})
        where.setdefault(criterion if done else "", []).append(seed)
    for done, where in kinds.items():
        names = (f"{name} ({', '.join(seeds)})".strip() for name, seeds in where.items())
        yield f"changed in reading (criterion, seeds): {done}: {', '.join(names)}"


def _issues(proposals: Proposals) -> Table:
    columns = Column("criterion", "criterion"), Column("issue", "issue")
    rows = tuple({"criterion": i.criterion_id, "issue": i.message} for i in proposals.issues)
    return Table("issues", "check these before spending on scores", columns, rows)


def _described(proposals: Proposals) -> Table:
    columns = (
        Column("criterion", "criterion"),
        Column("description", "description"),
        Column("aliases", "also called"),
    )
    rows = tuple(
        {
            "criterion": c.name,
            "description": c.description,
            "aliases": ", ".join(
                sorted({str(a.get("name")) for a in c.provenance.aliases} - {c.name})
            ),
        }
        for c in proposals.criteria.criteria
    )
    return Table("described", "what they mean", columns, rows, detail=True)


def _curve(proposals: Proposals) -> Table:
    """Does another seed still bring something new?"""
    answered = proposals.seeds_answered
    curves = {f"tau_{tau:g}": (f"τ = {tau:g}", curve) for tau, curve in proposals.curves.items()}
    if proposals.merged_curve is not None:
        curves["merged"] = ("as merged", proposals.merged_curve)
    columns = (
        Column("seeds", "seeds", "count"),
        *(Column(key, head, "number") for key, (head, _) in curves.items()),
    )
    picks = sorted({m for m in (*_CURVE, answered) if m <= answered}) if answered > 1 else []
    rows = tuple(
        {"seeds": m, **{key: float(curve.mean[m - 1]) for key, (_, curve) in curves.items()}}
        for m in picks
    )
    title = "unique criteria by number of seeds (mean over all choices of so many)"
    return Table("unique", title, columns, rows, detail=True)
