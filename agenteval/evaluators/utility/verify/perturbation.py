"""Do scores move with a perturbation as was expected before scoring?"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from agenteval.evaluators.utility.verify.evidence import Copies, Evidence, Floats
from agenteval.evaluators.utility.verify.options import VerifyOptions
from agenteval.records.criteria import Direction
from agenteval.records.verification import Effect
from agenteval.stats import Interval, mean_interval
from agenteval.stats.multiple import adjust
from agenteval.stats.paired import PairedTest, sign_flip_test
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
    directional perturbations and for controls. No direction is judged where `unknown` was
    expected.
    """
    raw: list[list[tuple[Copies, Direction, Floats, PairedTest, Interval]]] = []
    for one in evidence:
        row = []
        for copies in one.copies:
            expected: Direction = one.criterion.expect.get(copies.operator, "unknown")
            drop = _by_case(copies)
            rng = _rng(options.seed, one.criterion.id, copies.variant)
            test = sign_flip_test(
                drop, alternative=_ALTERNATIVE[expected], draws=options.draws, rng=rng
            )
            row.append(
                (copies, expected, drop, test, mean_interval(drop.tolist(), bounds=(-1.0, 1.0)))
            )
        raw.append(row)
    adjusted = _corrected(raw)
    return [
        _beyond_controls(
            [
                _effect(copies, expected, drop, test, interval, adjusted[i][j], options)
                for j, (copies, expected, drop, test, interval) in enumerate(row)
            ],
            options,
        )
        for i, row in enumerate(raw)
    ]


def _rng(seed: int, criterion: str, variant: str) -> np.random.Generator:
    """A generator of its own for every test, so that no order of rows or criteria matters."""
    digest = hashlib.sha256(f"{seed}|{criterion}|{variant}".encode()).digest()
    return np.random.default_rng(int.from_bytes(digest[:16], "big"))


def _beyond_controls(effects: Sequence[Effect], options: VerifyOptions) -> tuple[Effect, ...]:
    """Directed effects count only where they exceed what the controls did by the margin."""
    controls = [e for e in effects if e.expected == "none" and e.estimate is not None and e.n]
    largest = max(controls, key=lambda e: abs(e.estimate or 0.0), default=None)
    size = abs(largest.estimate or 0.0) if largest is not None else 0.0
    result = []
    for effect in effects:
        directed = effect.expected in ("lower", "higher") and effect.outcome == "pass"
        if directed and abs(effect.estimate or 0.0) - size <= options.margin:
            assert largest is not None
            said = f"{effect.reason}, but {largest.operator} moved it by {size:.3f} as well"
            effect = effect.model_copy(update={"outcome": "unknown", "reason": said})
        result.append(effect)
    return tuple(result)


def _by_case(copies: Copies) -> Floats:
    """Mean difference of each case: the independent units."""
    cases, inverse = np.unique(copies.case, return_inverse=True)
    if not len(cases):
        return np.empty(0)
    return np.asarray(np.bincount(inverse, weights=copies.drop) / np.bincount(inverse))


def _corrected(
    raw: Sequence[Sequence[tuple[Copies, Direction, Floats, PairedTest, Interval]]],
) -> list[list[float | None]]:
    """Adjusted p-values in the shape of `raw`, one family for directions and one for controls."""
    result: list[list[float | None]] = [[None] * len(row) for row in raw]
    for family in (("lower", "higher"), ("none",)):
        places = [(i, j) for i, row in enumerate(raw) for j, t in enumerate(row) if t[1] in family]
        tested = adjust([raw[i][j][3].p for i, j in places]).adjusted
        for (i, j), p in zip(places, tested, strict=True):
            result[i][j] = p
    return result


def _effect(  # noqa: PLR0913  the parts of one line of the table
    copies: Copies,
    expected: Direction,
    drop: Floats,
    test: PairedTest,
    interval: Interval,
    p_adjusted: float | None,
    options: VerifyOptions,
) -> Effect:
    effect = Effect(
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
        p_adjusted=p_adjusted,
        n=len(drop),
        fell=test.positive,
        rose=test.negative,
        tied=test.ties,
        pairs=len(copies.drop),
        missing=copies.missing,
        unchanged=copies.unchanged,
        shorter=copies.shorter,
    )
    outcome, reason = _judge(effect, options)
    return effect.model_copy(update={"outcome": outcome, "reason": reason})


def _judge(effect: Effect, options: VerifyOptions) -> tuple[str, str]:
    """pass, fail or unknown, with one line that says why."""
    if effect.expected == "unknown":
        return "unknown", "no direction was expected"
    judged = effect.pairs + effect.missing
    if judged and effect.pairs < options.min_coverage * judged:
        return "unknown", f"only {effect.pairs} of {judged} copies were rated"
    if effect.n < options.min_cases:
        return "unknown", f"{effect.n} cases; {options.min_cases} are needed"
    if effect.estimate is None or effect.low is None or effect.high is None:
        return "unknown", "there is no interval"
    if effect.expected == "none":
        return _judge_control(effect, options)
    sign = 1 if effect.expected == "lower" else -1
    word = "fell" if effect.expected == "lower" else "rose"
    most = max(sign * effect.low, sign * effect.high)
    if effect.p_adjusted is not None and effect.p_adjusted < options.alpha:
        said = f"{word} by {abs(effect.estimate):.3f}"
        if sign * effect.estimate > options.margin:
            return "pass", said
        return "unknown", f"{said}: no more than a control may move it"
    if most < options.margin:
        return "fail", f"did not move as expected: at most {max(most, 0):.3f} in that direction"
    return "unknown", "cannot be told from no effect with this many cases"


def _judge_control(effect: Effect, options: VerifyOptions) -> tuple[str, str]:
    """A control passes when the whole interval lies within the margin, fails when it moved."""
    assert effect.low is not None
    assert effect.high is not None
    assert effect.estimate is not None
    if -options.margin <= effect.low and effect.high <= options.margin:
        return "pass", f"unmoved: within {options.margin:g} of the scale"
    moved = effect.p_adjusted is not None and effect.p_adjusted < options.alpha
    if moved and abs(effect.estimate) > options.margin:
        word = "fell" if effect.estimate > 0 else "rose"
        return "fail", f"{word} by {abs(effect.estimate):.3f} although nothing should change"
    return "unknown", "neither unmoved nor moved beyond doubt"
