"""The checks of one criterion: coverage, spread, agreement of repeats, discrimination of success,
and, against the other criteria, redundancy.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from agenteval.records.verification import Check, Outcome, Verification
from agenteval.stats import Bootstrap, gwet_ac2, krippendorff_alpha
from agenteval.stats.correlation import correlation_matrix
from agenteval.stats.discrimination import discrimination
from agenteval.stats.multiple import adjust
from agenteval.utility.verify.evidence import Evidence, RunMeans
from agenteval.utility.verify.options import VerifyOptions

UNSUPPORTED = "this judge cannot grade it: unsupported"
ONE_REPEAT = "one repeat: nothing shows whether the judge agrees with itself"
_GRID = 21  # levels of a numeric scale for the agreement of repeats


def coverage(evidence: Evidence, options: VerifyOptions) -> Check:
    """Share of ratings that were made (a level or `not applicable`); fails below `min_coverage`.

    Ratings are reported as missing not at random when a case lacks every rating, or when the
    shares of failures among successful and failed runs differ by more than 10 points.
    """
    table, failed = evidence.table, evidence.table.failed
    share = 1 - float(failed.mean())
    check = partial(Check, name="coverage", estimate=share, n=len(table))
    statuses = {s: n for s, n in table.statuses().items() if ":" in s}
    if set(statuses) == {"unscored:unsupported"} and share == 0:
        return check(outcome="unknown", reason=UNSUPPORTED)
    reason = f"{share:.0%} of {len(table)} ratings were made"
    if statuses:
        reason += f" ({', '.join(f'{n} {s}' for s, n in statuses.items())})"
    not_random = []
    cases, inverse = np.unique(table.case.codes, return_inverse=True)
    total = np.bincount(inverse)
    if lost := int(((np.bincount(inverse, weights=failed) == total) & (total > 1)).sum()):
        not_random.append(f"every rating of {lost} of {len(cases)} cases failed")
    sides = [failed[table.success == s] for s in (1, 0)]
    if all(len(side) >= 10 for side in sides):
        good, bad = (float(side.mean()) for side in sides)
        if abs(good - bad) > 0.1:
            not_random.append(f"{good:.0%} of successful and {bad:.0%} of failed runs' ratings")
    if not_random:
        reason += f"; missing not at random: {'; '.join(not_random)}"
    outcome: Outcome = "fail" if share < options.min_coverage else "pass"
    return check(outcome=outcome, reason=reason, unit="share")


def spread(evidence: Evidence, options: VerifyOptions) -> Check:
    """Whether runs get different values; `estimate` is the share of the most common value.

    Fails when every run has the same mean. When more than `ceiling` of the ratings are at one end
    of the scale the check passes with a warning in the reason.
    """
    check = partial(Check, name="spread", unit="share")
    means = evidence.originals.mean[evidence.rated]
    if not len(means):
        return check(outcome="unknown", reason="no run has a value")
    outcome: Outcome = "pass"
    _, counts = np.unique(evidence.values.round(9), return_counts=True)
    share = float(counts.max() / counts.sum())
    reason = f"{len(counts)} different values over {len(means)} runs"
    if float(np.ptp(means)) < 1e-9:
        outcome = "fail"
        reason = f"every run has the same value, {float(means[0]):.3g}: it tells nothing apart"
    elif end := evidence.crowded(options.ceiling):
        reason += f"; warning: {share:.0%} of the ratings at the {end}, differences drown there"
    return check(outcome=outcome, reason=reason, estimate=share, n=len(means))


def agreement(evidence: Evidence, options: VerifyOptions) -> Check:
    """Gwet's AC2 with linear weights over repeats; the interval resamples cases.

    Numeric scales are put on 21 levels. Passes at `agreement` or above when the lower limit is at
    least `agreement_floor`; fails when the upper limit is below `agreement`. A judge declared
    deterministic passes unless it has repeats that differ.
    """
    check = partial(Check, name="agreement", unit="AC2")
    matrix = evidence.originals
    if options.deterministic and not evidence.differing:
        return check(outcome="pass", reason="deterministic, as declared: repeats would be equal")
    if matrix.values.shape[1] < 2:
        return check(outcome="unknown", reason=ONE_REPEAT)
    levels = len(evidence.criterion.accepted_values) or _GRID
    rng = np.random.default_rng(options.seed)
    result = gwet_ac2(
        np.round(matrix.values * (levels - 1)),
        categories=range(levels),
        clusters=matrix.case,
        bootstrap=Bootstrap(rng, resamples=options.resamples, level=1 - options.alpha),
    )
    ac2 = result.coefficient
    twice = (~np.isnan(matrix.values)).sum(axis=1) > 1
    n = len(np.unique(matrix.case[twice]))
    outcome: Outcome = "unknown"
    reason = ac2.reason or ""
    if ac2.mean is not None:
        limits = "" if ac2.low is None else f" [{ac2.low:.3f}, {ac2.high:.3f}]"
        reason = f"AC2 {ac2.mean:.3f}{limits}"
        if (equal := result.agreement.mean) is not None:
            reason += f", {equal:.0%} of the repeats are equal"
        if ac2.low is None or ac2.high is None:
            reason += f"; {ac2.reason}"
        elif n < options.min_cases:
            reason += f"; {n} cases are too few to decide"
        elif ac2.mean >= options.agreement and ac2.low >= options.agreement_floor:
            outcome = "pass"
        elif ac2.high < options.agreement:
            outcome, reason = "fail", f"repeats disagree: {reason}"
    return check(outcome=outcome, reason=reason, estimate=ac2.mean, low=ac2.low, high=ac2.high, n=n)


def alpha(evidence: Evidence, options: VerifyOptions) -> Check:
    """Krippendorff's alpha over repeats, for comparison with other reports.

    It decides nothing: it is low for good judges when most ratings are at one end of the scale.
    """
    values = evidence.originals.values
    numeric = evidence.criterion.scale == "numeric"
    result = krippendorff_alpha(values, "interval" if numeric else "ordinal")
    return Check(
        name="alpha",
        outcome="unknown",
        reason="no repeats" if values.shape[1] < 2 else (result.reason or ""),
        unit="alpha",
        estimate=result.mean,
        n=result.n_clusters or 0,
    )


def separation(evidence: Evidence, options: VerifyOptions) -> Check:
    """AUC of the runs' means, success against failure.

    Passes when the interval is above 1/2, fails when it is below `auc`; unknown with fewer than
    `min_cases` cases or five runs on a side. `p` is one-sided, for "failed runs are rated higher"
    (see `upside_down`). Runs count as independent; the reason says so when cases have several.
    """
    check = partial(Check, name="discrimination", unit="AUC")
    matrix = evidence.originals
    labelled = evidence.rated & (matrix.success >= 0)
    if not labelled.any():
        return check(outcome="unknown", reason="success is unknown: nothing to tell apart")
    good, bad = (matrix.mean[labelled & (matrix.success == s)] for s in (1, 0))
    result = discrimination(good, bad, level=1 - options.alpha, alternative="less")
    p, auc = result.test.p, result.auc
    outcome: Outcome = "unknown"
    reason = auc.reason or ""
    if auc.mean is not None and auc.low is not None and auc.high is not None:
        reason = (
            f"AUC {auc.mean:.3f} [{auc.low:.3f}, {auc.high:.3f}], {result.magnitude}; "
            f"{len(good)} successful, {len(bad)} failed runs"
        )
        if len(np.unique(matrix.case[labelled])) < int(labelled.sum()):
            reason += "; runs of one case counted as independent"
        if evidence.cases < options.min_cases or min(len(good), len(bad)) < 5:
            reason += "; too few to decide"
            p = None
        elif auc.low > 0.5:
            outcome = "pass"
        elif auc.high < options.auc:
            outcome = "fail"
    return check(
        outcome=outcome,
        reason=reason,
        estimate=auc.mean,
        low=auc.low,
        high=auc.high,
        p=p,
        n=len(good) + len(bad),
    )


def upside_down(checks: Sequence[Check], options: VerifyOptions) -> list[Check]:
    """Return the checks of discrimination, one per criterion, with p corrected by Holm.

    A check whose corrected p is below `alpha` fails: failed runs are rated higher.
    """
    result = []
    for check, p in zip(checks, adjust([c.p for c in checks]), strict=True):
        update: dict[str, object] = {"p_adjusted": p}
        if p is not None and p < options.alpha:
            reason = f"failed runs are rated higher: {check.reason}"
            update |= {"outcome": "fail", "reason": reason}
        result.append(check.model_copy(update=update))
    return result


def all_checks(evidence: Sequence[Evidence], options: VerifyOptions) -> list[tuple[Check, ...]]:
    """Return coverage, spread, agreement, discrimination and alpha of every criterion."""
    discriminations = upside_down([separation(item, options) for item in evidence], options)
    return [
        (
            coverage(item, options),
            spread(item, options),
            agreement(item, options),
            discrimination,
            alpha(item, options),
        )
        for item, discrimination in zip(evidence, discriminations, strict=True)
    ]


# ---- redundancy: by ratings, not by names --------------------------------------------------------


def redundancy(
    evidence: Sequence[Evidence], decided: Sequence[Verification], options: VerifyOptions
) -> list[Verification]:
    """Return the verdicts with a check of redundancy: Spearman's rho of the runs' means.

    Criteria that are kept or undecided are taken in order of their strength (keep first, then by
    agreement plus AUC). One whose rho with a retained criterion is at least `redundant`, over
    `min_cases` shared cases, is dropped, if the retained one covers as many ratings.
    """
    matrix = correlation_matrix(RunMeans.of(evidence).means) if len(evidence) > 1 else None
    rho, n = (matrix.rho, matrix.n) if matrix else (None, None)
    partners = _partners(evidence, decided, rho, options) if rho else {}
    result = []
    for i, verification in enumerate(decided):
        update: dict[str, object] = {}
        check = partial(Check, name="redundancy")
        nearest = [
            (value, other.criterion_id, n[i][k])
            for k, other in enumerate(decided)
            if k != i and rho and n and (value := rho[i][k]) is not None
        ]
        if not nearest:
            reason = "no correlation can be computed" if rho else "there is no other criterion"
            checked = check(outcome="unknown", reason=reason)
        else:
            value, other_id, runs = max(nearest)
            reason = f"nearest to {other_id} (rho {value:.2f} over {runs} runs)"
            outcome: Outcome = "pass"
            if partner := partners.get(i):
                outcome = "fail"
                reason = f"says what {partner} says (rho {value:.2f} over {runs} runs)"
                update = {"verdict": "drop", "partner": partner, "reasons": (reason,)}
                update["next_step"] = f"leave it out; {partner} stays"
            checked = check(outcome=outcome, reason=reason, unit="rho", estimate=value, n=runs)
        update["checks"] = (*verification.checks, checked)
        result.append(verification.model_copy(update=update))
    return result


def _partners(
    evidence: Sequence[Evidence],
    decided: Sequence[Verification],
    rho: Sequence[Sequence[float | None]],
    options: VerifyOptions,
) -> dict[int, str]:
    """Return the index of each redundant criterion with the id of the one that says the same."""

    def strength(i: int) -> float:
        estimates = {check.name: check.estimate for check in decided[i].checks}
        auc = estimates.get("discrimination")
        return (0.5 if auc is None else auc) + (estimates.get("agreement") or 0.0)

    def shared_cases(i: int, k: int) -> int:
        first, second = evidence[i], evidence[k]
        both = np.isin(first.originals.run, second.originals.run[second.rated])
        return len(np.unique(first.originals.case[first.rated & both]))

    candidates = [i for i, v in enumerate(decided) if v.verdict in ("keep", "undecided") and v.runs]
    candidates.sort(
        key=lambda i: (decided[i].verdict != "keep", -strength(i), decided[i].criterion_id)
    )
    retained: list[int] = []
    partners: dict[int, str] = {}
    for i in candidates:
        same = [
            (value, decided[k].criterion_id)
            for k in retained
            if (value := rho[i][k]) is not None
            and value >= options.redundant
            and shared_cases(i, k) >= options.min_cases
            and (decided[k].coverage or 0) >= (decided[i].coverage or 0) - 0.01
        ]
        if same:
            partners[i] = max(same)[1]
        else:
            retained.append(i)
    return partners


def smallest_subset(
    evidence: Sequence[Evidence], *, least: float, loss: float = 0.01
) -> tuple[str, ...]:
    """Return the fewest criteria whose mean discriminates success nearly as well as that of all.

    Greedy: the criterion that raises the AUC of the mean most is added until it is within `loss`
    of the AUC of all. Empty where success is unknown or one-sided, or where the AUC of all is below
    `least`. Chosen and measured on the same runs, so the AUC is slightly optimistic.
    """
    runs = RunMeans.of(evidence)

    def auc_of(columns: Sequence[int]) -> float | None:
        return discrimination(*runs.sides(columns)).auc.mean

    everything = range(len(evidence))
    goal = auc_of(everything)
    if goal is None or goal < least:
        return ()
    chosen: list[int] = []
    auc = -1.0
    while auc < goal - loss and len(chosen) < len(evidence):
        candidates = [j for j in everything if j not in chosen]
        auc, negative = max((auc_of([*chosen, j]) or 0.0, -j) for j in candidates)
        chosen.append(-negative)
    return tuple(evidence[j].criterion.id for j in sorted(chosen))
