"""Do scores move with a perturbation as was expected before scoring?"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from agenteval.evaluators.utility.perturb import CONTROLS
from agenteval.evaluators.utility.verify.evidence import Copies, Evidence, Floats
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records import Criterion
from agenteval.records.criteria import Direction
from agenteval.records.verification import Effect
from agenteval.stats import mean_interval
from agenteval.stats.multiple import adjust
from agenteval.stats.paired import sign_flip_test
from agenteval.stats.vectors import Alternative

_ALTERNATIVE: dict[Direction, Alternative] = {
    "lower": "greater", "higher": "less", "none": "two-sided", "unknown": "two-sided",
}  # fmt: skip


def effects(evidence: Sequence[Evidence], options: VerifyOptions) -> list[tuple[Effect, ...]]:
    """The effect of every perturbation on every criterion, one tuple per criterion.

    The unit is the case: differences of its runs are averaged. The test is the sign-flip
    permutation of the mean difference (Fisher 1935), one-sided in the expected direction,
    two-sided where none is expected; what moved must also have moved by more than `margin` beyond
    the largest effect of a control. P-values are corrected by Holm over all criteria, apart for
    expected directions, for controls, and for other perturbations of which no effect is expected.
    Nothing is judged where `unknown` was expected.
    """
    measured = _corrected(
        [[_measured(one.criterion, copies, options) for copies in one.copies] for one in evidence]
    )
    return [_beyond_controls([_judged(e, options) for e in row], options) for row in measured]


def is_control(effect: Effect) -> bool:
    """Whether nothing should notice this perturbation, whatever the criterion is about."""
    return effect.operator in CONTROLS and effect.expected == "none"


def is_directed(effect: Effect) -> bool:
    """Whether a direction was expected."""
    return effect.expected in ("lower", "higher")


def named(effect: Effect) -> str:
    """Operator with its share, as tables show it."""
    return effect.operator if effect.share is None else f"{effect.operator} {effect.share:.0%}"


def _expected(criterion: Criterion, operator: str) -> Direction:
    """What the criterion says; where it is silent, none of a control and unknown of all else."""
    return criterion.expect.get(operator, "none" if operator in CONTROLS else "unknown")


def _measured(criterion: Criterion, copies: Copies, options: VerifyOptions) -> Effect:
    """Size, interval and raw p, not judged yet."""
    expected = _expected(criterion, copies.operator)
    drop = _by_case(copies)
    rng = _rng(options.seed, criterion.id, copies.variant)
    test = sign_flip_test(drop, alternative=_ALTERNATIVE[expected], draws=options.draws, rng=rng)
    interval = mean_interval(drop.tolist(), bounds=(-1.0, 1.0))
    return Effect(
        variant=copies.variant,
        operator=copies.operator,
        share=copies.share,
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
        pairs=len(copies.drop),
        missing=copies.missing,
        unchanged=copies.unchanged,
        shorter=copies.shorter,
    )


def _rng(seed: int, criterion: str, variant: str) -> np.random.Generator:
    """A generator of its own for every test, so that no order of rows or criteria matters."""
    digest = hashlib.sha256(f"{seed}|{criterion}|{variant}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def _by_case(copies: Copies) -> Floats:
    """Mean difference of each case: the independent units."""
    cases, inverse = np.unique(copies.case, return_inverse=True)
    if not len(cases):
        return np.empty(0)
    return np.asarray(np.bincount(inverse, weights=copies.drop) / np.bincount(inverse))


def _corrected(measured: Sequence[Sequence[Effect]]) -> list[list[Effect]]:
    """The same with p-values adjusted within their family."""
    result = [list(row) for row in measured]
    families: dict[str, list[tuple[int, int]]] = {}
    for i, row in enumerate(measured):
        for j, effect in enumerate(row):
            if effect.expected != "unknown":
                family = ("directed" if is_directed(effect) else
                          "control" if is_control(effect) else "none")  # fmt: skip
                families.setdefault(family, []).append((i, j))
    for places in families.values():
        adjusted = adjust([measured[i][j].p for i, j in places]).adjusted
        for (i, j), p in zip(places, adjusted, strict=True):
            result[i][j] = measured[i][j].model_copy(update={"p_adjusted": p})
    return result


def _beyond_controls(effects: Sequence[Effect], options: VerifyOptions) -> tuple[Effect, ...]:
    """Directed effects count only where they exceed what the controls did by the margin.

    A control of too few cases says nothing.
    """
    controls = [e for e in effects if is_control(e) and not _undecidable(e, options)]
    largest = max(controls, key=lambda e: abs(e.estimate or 0.0), default=None)
    if largest is None:
        return tuple(effects)
    size = abs(largest.estimate or 0.0)
    result = []
    for effect in effects:
        moved = is_directed(effect) and effect.outcome == "pass"
        if moved and abs(effect.estimate or 0.0) - size <= options.margin:
            reason = f"{effect.reason}, but {largest.operator} moved it by {size:.3f} as well"
            effect = effect.model_copy(update={"outcome": "unknown", "reason": reason})
        result.append(effect)
    return tuple(result)


def _undecidable(effect: Effect, options: VerifyOptions) -> str:
    """Why nothing can be said of an effect; empty when something can."""
    copies = effect.pairs + effect.missing
    if copies and effect.pairs < options.min_coverage * copies:
        return f"only {effect.pairs} of {copies} copies were rated"
    if effect.n < options.min_cases:
        return f"{effect.n} cases; {options.min_cases} are needed"
    if effect.estimate is None or effect.low is None or effect.high is None:
        return "there is no interval"
    return ""


def _judged(effect: Effect, options: VerifyOptions) -> Effect:
    """The effect with its outcome and one line that says why."""
    if effect.expected == "unknown":
        outcome, reason = "unknown", "no direction was expected"
    elif reason := _undecidable(effect, options):
        outcome = "unknown"
    elif effect.expected == "none":
        outcome, reason = _unmoved(effect, options)
    else:
        outcome, reason = _moved(effect, options)
    return effect.model_copy(update={"outcome": outcome, "reason": reason})


def _moved(effect: Effect, options: VerifyOptions) -> tuple[str, str]:
    """Whether it moved in the expected direction, beyond doubt and by more than the margin."""
    assert effect.estimate is not None
    assert effect.low is not None
    assert effect.high is not None
    sign = 1 if effect.expected == "lower" else -1
    fell, fall, rose = ("fell", "fall", "rose") if sign > 0 else ("rose", "rise", "fell")
    towards, most = sign * effect.estimate, max(sign * effect.low, sign * effect.high)
    if effect.p_adjusted is not None and effect.p_adjusted < options.alpha:
        reason = f"{fell} by {towards:.3f}"
        if towards > options.margin:
            return "pass", reason
        return "unknown", f"{reason}: no more than a control may move it"
    if most >= options.margin:
        return "unknown", "cannot be told from no effect with this many cases"
    if effect.fell == effect.rose == 0:
        return "fail", f"was expected to {fall} and did not move in any case"
    if most < 0 or towards < -options.margin:
        return "fail", f"was expected to {fall} and {rose} by {-towards:.3f}"
    return "fail", f"did not {fall} as expected: by at most {most:.3f}"


def _unmoved(effect: Effect, options: VerifyOptions) -> tuple[str, str]:
    """Passes when the whole interval lies within the margin, fails when it surely moved."""
    assert effect.low is not None
    assert effect.high is not None
    assert effect.estimate is not None
    if -options.margin <= effect.low and effect.high <= options.margin:
        return "pass", f"unmoved: within {options.margin:g} of the scale"
    surely = effect.p_adjusted is not None and effect.p_adjusted < options.alpha
    if surely and abs(effect.estimate) > options.margin:
        moved = f"{'fell' if effect.estimate > 0 else 'rose'} by {abs(effect.estimate):.3f}"
        but = "nothing should change" if is_control(effect) else "none was expected"
        return "fail", f"{moved} although {but}"
    return "unknown", "neither unmoved nor moved beyond doubt"
