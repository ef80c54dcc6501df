"""Do scores move with a perturbation as was expected before scoring?"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from agenteval.records.criteria import Direction
from agenteval.records.verification import Effect, Outcome
from agenteval.stats import mean_interval
from agenteval.stats.multiple import adjust
from agenteval.stats.paired import sign_flip_test
from agenteval.stats.scores import ORIGINAL, split_variant
from agenteval.stats.vectors import Alternative
from agenteval.utility.perturb import CONTROLS
from agenteval.utility.verify.evidence import Evidence
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verify.systems import changes_by_system

_ALTERNATIVE: dict[Direction, Alternative] = {
    "lower": "greater",
    "higher": "less",
    "none": "two-sided",
    "unknown": "two-sided",
}


def effects(evidence: Sequence[Evidence], options: VerifyOptions) -> list[tuple[Effect, ...]]:
    """The effect of every perturbation on every criterion, one tuple per criterion.

    The unit is the case: differences of its runs are averaged. The test is the sign-flip
    permutation of the mean difference (Fisher 1935), one-sided in the expected direction,
    two-sided where none is expected; what moved must also have moved by more than `margin` beyond
    the largest effect of a control. P-values are corrected by Holm over all criteria, apart for
    expected directions, for controls, and for other perturbations of which no effect is expected.
    Nothing is judged where `unknown` was expected.
    """
    measured = [
        [_measured(item, variant, options) for variant in item.variants] for item in evidence
    ]
    families: dict[str, list[tuple[int, int]]] = {}
    for i, row in enumerate(measured):
        for j, effect in enumerate(row):
            if effect.expected != "unknown":
                family = (
                    "directed"
                    if is_directed(effect)
                    else "control"
                    if is_control(effect)
                    else "none"
                )
                families.setdefault(family, []).append((i, j))
    for places in families.values():
        adjusted = adjust([measured[i][j].p for i, j in places]).adjusted
        for (i, j), p in zip(places, adjusted, strict=True):
            measured[i][j] = measured[i][j].model_copy(update={"p_adjusted": p})
    return [_judged(row, options) for row in measured]


def is_control(effect: Effect) -> bool:
    """Whether nothing should notice this perturbation, whatever the criterion is about."""
    return effect.operator in CONTROLS and effect.expected == "none"


def is_directed(effect: Effect) -> bool:
    """Whether a direction was expected."""
    return effect.expected in ("lower", "higher")


def named(effect: Effect) -> str:
    """Operator with its share, as tables show it."""
    return effect.operator if effect.share is None else f"{effect.operator} {effect.share:.0%}"


def _measured(evidence: Evidence, variant: str, options: VerifyOptions) -> Effect:
    """Size, interval and raw p, not judged yet: original minus copy, paired by run.

    A criterion that is silent expects nothing of a control and says unknown of all else.
    """
    operator, written = split_variant(variant)
    default: Direction = "none" if operator in CONTROLS else "unknown"
    expected = evidence.criterion.expect.get(operator, default)
    pairs = evidence.pairs[variant]
    both, names = pairs.both, evidence.ratings.run.names
    _, case = np.unique(pairs.case[both], return_inverse=True)
    drop = np.bincount(case, weights=(pairs.before - pairs.after)[both]) / np.bincount(case)
    # A generator of its own for every test, so that no order of rows or criteria matters.
    digest = hashlib.sha256(f"{options.seed}|{evidence.criterion.id}|{variant}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:16], "big"))
    test = sign_flip_test(drop, alternative=_ALTERNATIVE[expected], draws=options.draws, rng=rng)
    interval = mean_interval(drop.tolist(), level=1 - options.alpha, bounds=(-1.0, 1.0))
    runs = [names[run] for run in pairs.run]
    shorter = [
        evidence.lengths[run, variant] < evidence.lengths[run, ORIGINAL]
        for run in runs
        if (run, variant) in evidence.lengths and (run, ORIGINAL) in evidence.lengths
    ]
    return Effect(
        variant=variant,
        operator=operator,
        share=_number(written),
        expected=expected,
        outcome="unknown",
        reason="",
        estimate=interval.mean,
        low=interval.low,
        high=interval.high,
        p=test.p,
        n=len(drop),
        fell=test.positive,
        rose=test.negative,
        tied=test.ties,
        pairs=int(both.sum()),
        missing=int((np.isnan(pairs.after) & ~np.isnan(pairs.before)).sum()),
        unchanged=len(
            {names[run] for run in evidence.originals.run}.intersection(
                evidence.unchanged.get(variant, ())
            )
        ),
        shorter=sum(shorter) / len(shorter) if shorter else None,
        systems=changes_by_system([(evidence, variant, expected)], options),
    )


def _number(written: str) -> float | None:
    """The share of a variant; None where there is none, or other tools wrote something else."""
    try:
        return float(written)
    except ValueError:
        return None


def _judged(row: Sequence[Effect], options: VerifyOptions) -> tuple[Effect, ...]:
    """The effects on one criterion with outcome and reason.

    Directed ones count only where they exceed by the margin what the controls did; a control of
    too few cases or copies says nothing.
    """
    controls = [e for e in row if is_control(e) and not undecidable(e, options)]
    largest = max(controls, key=lambda e: abs(e.estimate or 0.0), default=None)
    result = []
    for effect in row:
        outcome, reason = _outcome(effect, options)
        if largest is not None and is_directed(effect) and outcome == "pass":
            size = abs(largest.estimate or 0.0)
            if abs(effect.estimate or 0.0) - size <= options.margin:
                outcome = "unknown"
                reason += f", but {largest.operator} moved it by {size:.3f} as well"
        result.append(effect.model_copy(update={"outcome": outcome, "reason": reason}))
    return tuple(result)


def undecidable(effect: Effect, options: VerifyOptions) -> str:
    """Why nothing can be said of an effect; empty when something can."""
    copies = effect.pairs + effect.missing
    if copies and effect.pairs < options.min_coverage * copies:
        return f"only {effect.pairs} of {copies} copies were rated"
    if effect.n < options.min_cases:
        return f"{effect.n} cases; {options.min_cases} are needed"
    return ""


def _outcome(effect: Effect, options: VerifyOptions) -> tuple[Outcome, str]:
    """The outcome and one line that says why."""
    if effect.expected == "unknown":
        return "unknown", "no direction was expected"
    if lacking := undecidable(effect, options):
        return "unknown", lacking
    estimate, low, high = effect.estimate, effect.low, effect.high
    if estimate is None or low is None or high is None:
        return "unknown", "there is no interval"
    sure = effect.p_adjusted is not None and effect.p_adjusted < options.alpha
    if effect.expected != "none":
        sign = 1 if effect.expected == "lower" else -1
        most = max(sign * low, sign * high)
        return _moved(effect, sign * estimate, most, options.margin, sure=sure)
    if -options.margin <= low and high <= options.margin:
        return "pass", f"unmoved: within {options.margin:g} of the scale"
    if sure and abs(estimate) > options.margin:
        moved = f"{'fell' if estimate > 0 else 'rose'} by {abs(estimate):.3f}"
        but = "nothing should change" if is_control(effect) else "none was expected"
        return "fail", f"{moved} although {but}"
    return "unknown", "neither unmoved nor moved beyond doubt"


def _moved(
    effect: Effect, towards: float, most: float, margin: float, *, sure: bool
) -> tuple[Outcome, str]:
    """Outcome of a directed effect: by how much it moved in its direction, and at most could."""
    fell, fall, rose = (
        ("fell", "fall", "rose") if effect.expected == "lower" else ("rose", "rise", "fell")
    )
    if sure and towards > margin:
        return "pass", f"{fell} by {towards:.3f}"
    if sure:
        return "unknown", f"{fell} by {towards:.3f}: no more than a control may move it"
    if most >= margin:
        return "unknown", "cannot be told from no effect with this many cases"
    if effect.fell == effect.rose == 0:
        return "fail", f"was expected to {fall} and did not move in any case"
    if most < 0 or towards < -margin:
        return "fail", f"was expected to {fall} and {rose} by {-towards:.3f}"
    return "fail", f"did not {fall} as expected: by at most {most:.3f}"
