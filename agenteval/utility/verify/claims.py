"""Evidence on a judge: claims, each of them shown, refuted, not shown or not checked."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from agenteval.records.verification import (
    Check,
    Effect,
    JudgeEvidence,
    Standing,
    SystemFigure,
    Verification,
)
from agenteval.stats import Interval, mean_interval
from agenteval.stats.correlation import spearman
from agenteval.stats.discrimination import discrimination
from agenteval.stats.multiple import adjust
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.utility.verify.checks import ONE_REPEAT
from agenteval.utility.verify.effects import (
    Directed,
    changes_by_system,
    is_control,
    is_directed,
    moved_as_expected,
    system_figure,
    undecidable,
)
from agenteval.utility.verify.evidence import Evidence, RunMeans
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verify.verdict import MORE_CASES, MORE_REPEATS, OTHER_JUDGE

REPEATS_AGREE = "repeats agree"
DAMAGE_LOWERS = "damage lowers scores"
CONTROLS_STILL = "controls change nothing"
SUCCESS_ABOVE = "success is rated above failure"
PEOPLE_AGREE = "people agree"
SYSTEMS_ALIKE = "systems are judged alike"
LIKING = "liking of a system"
NO_LABELS = "nothing is known about success: label 20 runs with `agenteval agree sample`"
_SAME_LENGTH = frozenset({"shuffle_sentences", "swap_numbers", "drop_item"})
_MORE_COPIES = "rate more copies (docs/verify.md says how they are made)"


def claim(
    name: str,
    standing: Standing,
    reason: str,
    step: str = "",
    unit: str = "",
    figure: Interval | None = None,
) -> JudgeEvidence:
    """Return one kind of evidence, with its figure where a single figure summarizes it."""
    shown = figure or _without_interval(None)
    return JudgeEvidence(
        name=name,
        standing=standing,
        reason=reason,
        next_step=step,
        unit=unit if figure else "",
        estimate=shown.mean,
        low=shown.low,
        high=shown.high,
        n=shown.n if shown.n_clusters is None else shown.n_clusters,
    )


def failed(verification: Verification, name: str) -> bool:
    """Whether this check of a criterion failed."""
    check = verification.check(name)
    return check is not None and check.outcome == "fail"


def is_upside_down(verification: Verification) -> bool:
    """Whether failed runs are rated higher on this criterion."""
    check = verification.check("discrimination")
    return check is not None and check.outcome == "fail" and check.reason.startswith("failed runs")


def repeats_agree(graded: Sequence[Verification], options: VerifyOptions) -> JudgeEvidence:
    """AC2 over repeats, on the majority of the criteria and on average.

    The mean counts as well because noise of a quarter of the scale leaves AC2 high on coarse
    criteria whose ratings are mostly at one end.
    """
    checks = [(v, c) for v in graded if (c := v.check("agreement")) is not None]
    estimates = [
        c.estimate
        for v, c in checks
        if v.check("spread") is not None and not failed(v, "spread") and c.estimate is not None
    ]
    mean = float(np.mean(estimates)) if estimates else None
    low_mean = mean is not None and mean < options.mean_agreement
    agreeing = sum(c.outcome == "pass" for _, c in checks)
    disagreeing = sum(c.outcome == "fail" for _, c in checks)
    if 2 * disagreeing > len(graded):
        reason = f"repeats disagree on {disagreeing} of {len(graded)} criteria"
        return claim(REPEATS_AGREE, "refuted", reason, OTHER_JUDGE)
    if 2 * agreeing > len(graded) and not low_mean:
        how = "declared deterministic" if options.deterministic else "repeats agree"
        average = "" if mean is None else f" (mean AC2 {mean:.2f})"
        reason = f"{how} on {agreeing} of {len(graded)} criteria{average}"
        return claim(REPEATS_AGREE, "shown", reason, "", "AC2, mean", _without_interval(mean))
    if all(v.repeats < 2 for v in graded):
        step = f"{MORE_REPEATS}; --deterministic where the judge is a function"
        return claim(REPEATS_AGREE, "not shown", ONE_REPEAT, step)
    reason = f"repeats surely agree on {agreeing} of {len(graded)} criteria only"
    needed = [
        _more_cases(c, options.agreement_floor, c.n)
        for _, c in checks
        if c.outcome == "unknown" and (c.estimate or 0) >= options.agreement
    ]
    if low_mean:
        reason += f", and AC2 is {mean:.2f} on average, not {options.mean_agreement:g}"
        needed = []
    noisy = "the noise of this judge is too large; try another"
    step = _more_or(needed, len(graded) // 2 + 1 - agreeing, noisy)
    return claim(REPEATS_AGREE, "not shown", reason, step)


def damage_lowers(graded: Sequence[Verification], options: VerifyOptions) -> JudgeEvidence:
    """Most perturbations changed scores as expected, including one that keeps the length."""
    constant = sum(failed(v, "spread") and not moved_as_expected(v.effects) for v in graded)
    if 2 * constant > len(graded):
        reason = f"{constant} of {len(graded)} criteria get the same level everywhere"
        return claim(DAMAGE_LOWERS, "refuted", reason, OTHER_JUDGE)
    expected = [e for v in graded for e in v.effects if is_directed(e)]
    directed = [e for e in expected if e.n]
    moved = [e for e in directed if e.outcome == "pass"]
    unnoticed = sum(e.outcome == "fail" for e in directed)
    same_length = [e for e in directed if e.operator in _SAME_LENGTH]
    if 2 * unnoticed > len(directed):
        reason = f"{unnoticed} of {len(directed)} perturbations did not move a score as expected"
        return claim(DAMAGE_LOWERS, "refuted", reason, OTHER_JUDGE)
    if same_length and moved and all(e.outcome == "fail" for e in same_length):
        names = ", ".join(sorted({e.operator for e in same_length}))
        reason = f"scores fall with the length only: {names} went unnoticed"
        return claim(DAMAGE_LOWERS, "refuted", reason, OTHER_JUDGE)
    if not directed:
        reason = "no perturbation with an expected effect was judged"
        if equal := sum(e.unchanged for e in expected):
            reason += f": {equal} copies equal their original"
        return claim(DAMAGE_LOWERS, "not shown", reason, _MORE_COPIES)
    if 2 * len(moved) <= len(directed):
        reason = f"{len(moved)} of {len(directed)} perturbations surely moved a score as expected"
        needed = [
            _more_cases(e, 0.0, e.n)
            for e in directed
            if e.outcome == "unknown"
            and (e.estimate or 0.0) * (-1 if e.expected == "higher" else 1) > options.margin
        ]
        short = len(directed) // 2 + 1 - len(moved)
        step = _more_or(needed, short, "the judge hardly notices damage; try another")
        return claim(DAMAGE_LOWERS, "not shown", reason, step)
    if any(e.operator in _SAME_LENGTH for e in moved):
        reason = f"{len(moved)} of {len(directed)} perturbations moved a score as expected"
        share = _without_interval(len(moved) / len(directed))
        return claim(DAMAGE_LOWERS, "shown", reason, "", "perturbations noticed", share)
    # Only shorter copies were noticed: what stands in the way of copies of equal length?
    reason = "length alone may explain the scores: "
    if same_length:
        effect = max(same_length, key=lambda e: e.n)
        why = undecidable(effect, options) or f"undecided after {effect.n} cases"
        reason += f"no damage of equal length was noticed; {effect.operator}: {why}"
        return claim(DAMAGE_LOWERS, "not shown", reason, "rate more runs that it changes")
    operators = ", ".join(sorted(_SAME_LENGTH))
    reason += f"no criterion expects an effect of damage of equal length ({operators})"
    step = 'state one in the criteria file, such as "expect": {"swap_numbers": "lower"}'
    return claim(DAMAGE_LOWERS, "not shown", reason, step)


def controls_still(
    graded: Sequence[Verification], rated: Sequence[Evidence], options: VerifyOptions
) -> JudgeEvidence:
    """The interval of the mean change by controls, over all criteria, is within the margin."""
    controls = [(v.criterion_id, e) for v in graded for e in v.effects if is_control(e)]
    by_id = {item.criterion.id: item for item in rated}
    change, case = list[float](), list[int]()
    for criterion, effect in controls:
        if criterion in by_id and not undecidable(effect, options):
            pairs = by_id[criterion].pairs[effect.variant]
            change += (pairs.before - pairs.after)[pairs.both].tolist()
            case += pairs.case[pairs.both].tolist()
    pooled = mean_interval(change, case, level=1 - options.alpha, bounds=(-1.0, 1.0))
    moved = sorted({criterion for criterion, e in controls if e.outcome == "fail"})
    mean, low, high, margin = pooled.mean, pooled.low, pooled.high, options.margin
    standing: Standing = "not shown"
    if mean is None or low is None or high is None:
        reason, step = "no control was judged: copies by whitespace or formatting", _MORE_COPIES
        if controls:
            reason = f"controls: {undecidable(controls[0][1], options) or pooled.reason}"
    elif 2 * len(moved) > len(graded) or low > margin or high < -margin:
        standing, step = "refuted", OTHER_JUDGE
        reason = f"controls move scores by {mean:+.3f} [{low:+.3f}, {high:+.3f}]"
        reason += f" ({', '.join(moved)})" if moved else ""
    else:
        reason, step = f"controls change scores by {mean:+.3f} [{low:+.3f}, {high:+.3f}]", ""
        if -margin <= low and high <= margin:
            standing = "shown"
        else:
            reason += f", not within {margin:g}"
            nearest, cases = (margin if mean > 0 else -margin), pooled.n_clusters or 0
            needed = [_more_cases(pooled, nearest, cases)] if abs(mean) < margin else []
            step = _more_or(needed, 1, "see which criteria they move; layout may sway the judge")
    return claim(CONTROLS_STILL, standing, reason, step, "share of the scale", pooled)


def success_above(
    graded: Sequence[Verification], rated: Sequence[Evidence], options: VerifyOptions
) -> JudgeEvidence:
    """AUC of the mean over the criteria, success against failure.

    Where it is not shown and some criteria rate failed runs higher (these are excepted by name),
    the mean over the other criteria counts.
    """
    result = _auc_of_mean(rated, options)
    wrong = [v.criterion_id for v in graded if is_upside_down(v)]
    remaining = [e for e in rated if e.criterion.id not in wrong]
    if result.standing != "not shown" or not wrong or not remaining:
        return result
    without = _auc_of_mean(remaining, options)
    if without.standing != "shown":
        return result
    return without.model_copy(update={"reason": f"{without.reason} (without {', '.join(wrong)})"})


def _auc_of_mean(rated: Sequence[Evidence], options: VerifyOptions) -> JudgeEvidence:
    good, bad = RunMeans.of(rated).sides()
    if not len(good) and not len(bad):
        return claim(SUCCESS_ABOVE, "not checked", NO_LABELS, NO_LABELS)
    if min(len(good), len(bad)) < 5:
        side = "failed" if len(bad) < len(good) else "successful"
        counts = f"{len(good)} successful and {len(bad)} failed runs are labelled"
        reason = f"{counts}; five of each needed"
        return claim(SUCCESS_ABOVE, "not shown", reason, f"label {side} runs")
    auc = discrimination(good, bad, level=1 - options.alpha).auc
    standing: Standing = "not shown"
    reason, step = f"success and failure: {auc.reason}", MORE_CASES
    if auc.mean is not None and auc.low is not None and auc.high is not None:
        span = f"AUC {auc.mean:.3f} [{auc.low:.3f}, {auc.high:.3f}]"
        if auc.high < options.auc:
            standing, step = "refuted", OTHER_JUDGE
            reason = f"success is not told from failure: {span}"
            if auc.high < 0.5:
                reason = f"failed runs are rated higher: {span}"
        elif auc.low > options.auc:
            standing, step = "shown", ""
            reason = f"success is rated above failure: {span}"
        else:
            reason = f"success is not surely rated above failure: {span}"
            needed = [_more_cases(auc, options.auc, auc.n)] if auc.mean > options.auc else []
            step = _more_or(needed, 1, "the criteria say nothing of success; try others", "runs")
    return claim(SUCCESS_ABOVE, standing, reason, step, "AUC", auc)


def people_agree(
    rated: Sequence[Evidence], labels: Sequence[ScoreTable], options: VerifyOptions
) -> JudgeEvidence:
    """Spearman's rho between judge and people, over the runs' means of the criteria both rated.

    Each table of `labels` is one person, and all count alike. Shown where the whole interval is
    above `people` (.3, a medium correlation: Cohen, Statistical Power Analysis, 2nd ed. 1988,
    section 3.2), refuted where it is below. `agree` gives the details.
    """
    judge: defaultdict[str, list[float]] = defaultdict(list)
    people: defaultdict[str, list[float]] = defaultdict(list)
    for item in rated:
        by_judge = _run_means(item.table)
        for table in labels:
            by_person = _run_means(table.of(criterion=item.criterion.id, variant=ORIGINAL))
            for run in by_judge.keys() & by_person.keys():
                judge[run].append(by_judge[run])
                people[run].append(by_person[run])
    pairs = np.array([(np.mean(judge[run]), np.mean(people[run])) for run in sorted(judge)])
    if len(pairs) < options.min_cases:
        reason = f"people labelled {len(pairs)} of the runs; {options.min_cases} are needed"
        step = "label more runs: `agenteval agree sample` draws them"
        return claim(PEOPLE_AGREE, "not shown", reason, step)
    rho = spearman(pairs[:, 0], pairs[:, 1], level=1 - options.alpha)
    if rho.mean is not None and abs(rho.mean) >= 1:  # the same order: there is no interval
        rho = replace(rho, low=rho.mean, high=rho.mean)
    standing: Standing = "not shown"
    reason = f"people and the judge: {rho.reason}"
    step = "see `agenteval agree` for what they differ in"
    if rho.mean is not None and rho.low is not None and rho.high is not None:
        span = f"rho {rho.mean:.3f} [{rho.low:.3f}, {rho.high:.3f}]"
        reason = f"people agree: {span}"
        if rho.low > options.people:
            standing, step = "shown", ""
        elif rho.high < options.people:
            standing, reason = "refuted", f"people disagree: {span}"
    return claim(PEOPLE_AGREE, standing, reason, step, "Spearman's rho", rho)


def systems_alike(
    rated: Sequence[Evidence], directed: Sequence[Directed], options: VerifyOptions
) -> JudgeEvidence:
    """Return whether the judge notices damage, and rates success above failure, in every system.

    Refuted where damage to one system significantly costs more than nothing and damage to another
    less than `margin`, over copies that could fall; or where failed runs of a system are rated
    higher (one-sided Mann-Whitney, Holm over systems). Effects are not compared directly: that
    would condemn right judges, because failed runs have no room to fall. A permutation of systems
    within levels cannot find a fixed opinion either. Shown needs `min_copies` of each system.
    """
    codes = np.unique(np.concatenate([e.table.system.codes for e in rated]))
    codes = codes[codes >= 0]
    if len(codes) < 2:
        reason = "one system: there is nothing to compare it with"
        return claim(SYSTEMS_ALIKE, "not checked", reason)
    changes = changes_by_system(directed, options)
    enough = [f for f in changes if f.n >= options.min_copies and f.low is not None]
    noticed = [f for f in enough if (f.low or 0) > 0 and (f.estimate or 0) > options.margin]
    unnoticed = [f for f in enough if f.high is not None and f.high < options.margin]
    doubtful = [f.system for f in changes if f not in noticed]
    # the AUC of each system with five runs on each side
    runs, aucs, tests = RunMeans.of(rated), list[SystemFigure](), list[float | None]()
    for code in codes.tolist():
        good, bad = runs.sides(system=code)
        if min(len(good), len(bad)) < 5:
            continue
        result = discrimination(good, bad, level=1 - options.alpha, alternative="less")
        name = rated[0].ratings.system.names[code]
        aucs.append(system_figure(name, "AUC", result.auc, len(good) + len(bad)))
        tests.append(result.test.p)
    against = [
        f"failed runs of {figure.system} are rated higher"
        for figure, p in zip(aucs, adjust(tests), strict=True)
        if p is not None and p < options.alpha
    ]

    def listed(figures: Sequence[SystemFigure]) -> str:
        return ", ".join(
            f"{f.system} ({f.estimate:+.3f} [{f.low:+.3f}, {f.high:+.3f}])" for f in figures
        )

    if noticed and unnoticed:
        seen = f"damage to {listed(noticed)} is noticed"
        against.append(f"{seen}, damage to {listed(unnoticed)} is not")
    standing: Standing = "shown"
    reason, step = f"damage is noticed in {listed(noticed)}", ""
    if against:
        standing, reason = "refuted", "; ".join(against)
        step = "do not compare systems by its scores; try another judge"
    elif len(enough) < len(codes):
        few = ", ".join(f"{f.system} has {f.n}" for f in changes if f not in enough)
        standing, step = "not checked", "rate more copies of these systems"
        reason = f"not compared by system: {options.min_copies} copies that could fall are needed"
        reason += f" of each ({few or 'no direction was expected'})"
    elif doubtful:
        standing, reason = "not shown", f"damage to {', '.join(doubtful)} is not surely noticed"
    figures = (*changes, *aucs)
    return claim(SYSTEMS_ALIKE, standing, reason, step).model_copy(update={"systems": figures})


def liking() -> JudgeEvidence:
    """Return that `verify` cannot see whether the judge adds a constant to the scores of a system.

    Such a constant changes no effect of a perturbation. `agree` estimates it from labels.
    """
    step = "label runs of two systems; `agenteval agree` shows the bias by system"
    return claim(LIKING, "not checked", step)


def _run_means(table: ScoreTable) -> dict[str, float]:
    """Return the mean value of every run that has one."""
    matrix = table.matrix()
    return {
        table.run.names[run]: float(mean)
        for run, mean in zip(matrix.run, matrix.mean, strict=True)
        if not np.isnan(mean)
    }


def _without_interval(value: float | None) -> Interval:
    return Interval(value, None, None, None, 0, None, "none")


def _more_cases(figure: Check | Effect | Interval, limit: float, n: int) -> int:
    """Return how many more cases would move the nearer end of the interval beyond `limit`.

    The estimate is assumed to stay; the width of the interval shrinks with the root of n.
    """
    estimate = figure.mean if isinstance(figure, Interval) else figure.estimate
    low, high = figure.low, figure.high
    if estimate is None or low is None or high is None or estimate == limit:
        return 10 * n + 1
    half = estimate - low if estimate > limit else high - estimate
    return max(1, math.ceil(n * (half / (estimate - limit)) ** 2) - n)


def _more_or(needed: Sequence[int], short: int, otherwise: str, unit: str = "cases") -> str:
    """Return the next step where `short` more figures must pass: more cases, or something else.

    `needed` is the number of cases each promising figure lacks.
    """
    enough = sorted(needed)[short - 1 : short]
    return f"about {enough[0]:,} more {unit} would decide" if enough else otherwise
