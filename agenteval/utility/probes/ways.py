"""The same runs judged again in another way: scale listed from best to worst, or another wording.

Both ways share runs, criteria, repeats and the drawn order of the criteria. a_k and b_k are the
scores of repeat k the plain way and the other, d_k = b_k - a_k.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agenteval.records import Criterion
from agenteval.records.verification import Outcome
from agenteval.stats.bootstrap import Bootstrap, bootstrap_sums
from agenteval.stats.interval import mean_interval
from agenteval.stats.paired import sign_flip_test
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.utility.probes.result import MeasuredProbe, ProbeFinding, ProbeOptions
from agenteval.utility.verify.evidence import Floats, row_means

_CELLS = 1 << 22  # random signs in memory


@dataclass(frozen=True)
class WayPairs:
    """Scores of the same runs judged both ways: `plain` and `other` are (runs, repeats, criteria).

    A rating missing on either side is NaN on both. `case` (runs,) holds codes 0..cases-1.
    """

    plain: Floats
    other: Floats
    case: NDArray[np.intp]

    @property
    def cases(self) -> int:
        """Cases with a pair."""
        return int(self.case.max()) + 1 if len(self.case) else 0


def pair(plain: ScoreTable, other: ScoreTable, criteria: Sequence[Criterion]) -> WayPairs:
    """Return the paired original ratings of both tables on the ordered `criteria`."""
    ordered = [c.id for c in criteria if c.ordered]
    by_cell: dict[tuple[str, int, int], list[float | None]] = {}
    cases: dict[str, str] = {}
    for side, table in enumerate((plain, other)):
        for j, name in enumerate(ordered):
            ratings = table.of(criterion=name, variant=ORIGINAL, status="scored")
            ratings = ratings.where(~np.isnan(ratings.value))
            for r, c, k, value in zip(
                ratings.run.codes, ratings.case.codes, ratings.repeat, ratings.value, strict=True
            ):
                run = ratings.run.names[r]
                cases[run] = ratings.case.names[c]
                by_cell.setdefault((run, int(k), j), [None, None])[side] = float(value)
    complete = {k: v for k, v in by_cell.items() if None not in v}
    runs = sorted({run for run, _, _ in complete})
    row = {run: i for i, run in enumerate(runs)}
    repeats = 1 + max((repeat for _, repeat, _ in complete), default=-1)
    sides = np.full((2, len(runs), repeats, len(ordered)), np.nan)
    for (run, repeat, j), values in complete.items():
        sides[:, row[run], repeat, j] = values
    _, code = np.unique([cases[run] for run in runs], return_inverse=True)
    return WayPairs(sides[0], sides[1], code)


def compare_ways(name: str, pairs: WayPairs, options: ProbeOptions) -> ProbeFinding:
    """Do both ways give the same scores? Their mean difference, and the agreement that is lost.

    difference: mean over cases of b - a, with a t interval; p by sign flips of the cases' means.
    lost agreement: alpha between repeats of one way less alpha between repeats of both ways
    (interval distance, one expected disagreement for both, see `lost_agreement`).
    """
    if not pairs.cases:
        return ProbeFinding(name, absent="no run was judged both ways")
    rng = np.random.default_rng(options.seed)
    per_run = row_means(
        row_means(pairs.other - pairs.plain)
    )  # over repeats, then criteria, then runs
    change = np.bincount(pairs.case, weights=per_run) / np.bincount(pairs.case)
    test = sign_flip_test(change, draws=options.draws, rng=rng)
    difference = MeasuredProbe(
        "difference",
        "share of the scale",
        "with the other prompt, scores change by",
        options.margin,
        mean_interval(change.tolist(), bounds=(-1.0, 1.0)),
        test.p,
        len(change),
    )
    lost, detail = lost_agreement(pairs, options, rng)
    return ProbeFinding(name, (difference, lost), detail=detail)


def lost_agreement(
    pairs: WayPairs, options: ProbeOptions, rng: np.random.Generator
) -> tuple[MeasuredProbe, dict[str, JsonValue]]:
    """Return how much lower alpha is across the two ways than within them, and both alphas.

    Over pairs of repeats i < j of one run and criterion, the mean squared disagreement across the
    ways, ((a_i - b_j)^2 + (b_i - a_j)^2) / 2, less that within them, ((a_i - a_j)^2 +
    (b_i - b_j)^2) / 2, is the mean of d_i d_j: the squared shift of the run's score, without the
    noise of single judgements. Divided by the expected disagreement of Krippendorff's alpha with
    interval distance, 2 s^2 of all scores of the criterion, it is the alpha that is lost. The
    interval resamples cases. p: were the ways alike, a_k and b_k could change places, so the signs
    of d_k are flipped, those of all criteria of a repeat together.

    Who hardly agrees with itself has nothing to lose: unless the alpha within one way is surely
    above `options.loss`, a loss that is not found says nothing, and is unknown instead of a pass.
    """
    says, unit = "alpha lost between both ways", "alpha"
    d = pairs.other - pairs.plain
    count, total, squares = _moments(d)
    count = count * (count - 1) / 2
    if not count.any():
        single = "one repeat: agreement needs two; use --repeats 2"
        return MeasuredProbe("agreement", unit, says, options.loss, missing=single), {}
    products = (total**2 - squares) / 2
    within = (_spread(pairs.plain) + _spread(pairs.other)) / 2
    pooled = np.concatenate([pairs.plain, pairs.other], axis=1)
    number, sums, _ = _moments(pooled)
    centre = sums.sum(axis=0) / np.maximum(number.sum(axis=0), 1)
    shared = np.concatenate([count, *_moments(pooled - centre)], axis=1)
    width = d.shape[2]
    how = Bootstrap(rng, resamples=options.resamples)
    parts = np.concatenate([products, shared], axis=1)
    lost = bootstrap_sums(parts, lambda t: _ratio(t, width), pairs.case, how=how)
    p = None if lost.mean is None else _swap_p(d, options.draws, rng)
    parts = np.concatenate([within, shared], axis=1)
    alpha = bootstrap_sums(parts, lambda t: 1 - _ratio(t, width), pairs.case, how=how)
    detail: dict[str, JsonValue] = {"pairs": int(count.sum())}
    if alpha.mean is not None and lost.mean is not None:
        across = alpha.mean - lost.mean
        detail |= {"alpha_within": alpha.mean, "alpha_across": across}
        says = f"alpha {alpha.mean:.2f} between repeats of one way, {across:.2f} across both: lost"
    if alpha.low is not None:
        detail["alpha_within_low"] = alpha.low
    otherwise: tuple[Outcome, str] | None = None
    if alpha.mean is not None and (alpha.low is None or alpha.low <= options.loss):
        low = "" if alpha.low is None else f", at least {alpha.low:.2f}"
        why = (
            f"the judge hardly agrees with itself (alpha {alpha.mean:.2f}{low}), so it has nothing "
            f"to lose; surely more than {options.loss:g} is needed"
        )
        otherwise = "unknown", why
    measured = MeasuredProbe(
        "agreement",
        unit,
        says,
        options.loss,
        lost,
        p,
        pairs.cases,
        one_sided=True,
        missing="no criterion varies" if lost.mean is None else None,
        unless_failed=otherwise,
    )
    return measured, detail


def _moments(values: Floats) -> Floats:
    """Return number, sum and sum of squares over repeats (3, runs, criteria), NaN left out."""
    present = ~np.isnan(values)
    flat = np.where(present, values, 0.0)
    return np.stack([present.sum(axis=1), flat.sum(axis=1), (flat**2).sum(axis=1)])


def _spread(values: Floats) -> Floats:
    """Return the sum over pairs of repeats of their squared difference, (runs, criteria)."""
    number, total, squares = _moments(values)
    return np.asarray(number * squares - total**2)


def _ratio(totals: Floats, width: int) -> Floats:
    """Return for each row of totals the first of five blocks by its expected disagreement: the sum
    over criteria of their pairs times 2 s^2 of all scores (number, sum, sum of squares)."""
    first, count, n, s, q = (totals[:, k * width : (k + 1) * width] for k in range(5))
    squares = np.maximum(q - s**2 / np.maximum(n, 1), 0.0)
    variance = np.divide(squares, n - 1, out=np.zeros_like(q), where=n > 1)
    expected = (count * 2 * variance).sum(axis=1)
    ratio: Floats = np.full(len(expected), np.nan)
    np.divide(first.sum(axis=1), expected, out=ratio, where=expected > 1e-12)
    return ratio


def _swap_p(d: Floats, draws: int, rng: np.random.Generator) -> float:
    """Return the one-sided p = (b + 1) / (draws + 1) of the sum of products under random swaps."""
    flat = np.where(np.isnan(d), 0.0, d)
    flat = flat[(flat != 0).any(axis=(1, 2))]
    runs, repeats, _ = flat.shape
    first, second = np.triu_indices(repeats, 1)
    products = (flat[:, first] * flat[:, second]).sum(axis=2).ravel()  # of d_i d_j, over criteria
    observed = float(products.sum())
    slack = 1e-9 * float(np.abs(products).sum())
    hits = 0
    block = max(1, _CELLS // max(len(products), 1))
    for start in range(0, draws, block):
        count = min(block, draws - start)
        signs = rng.integers(0, 2, size=(count, runs, repeats), dtype=np.int8) * 2 - 1
        swapped = (signs[:, :, first] * signs[:, :, second]).reshape(count, -1)
        hits += int((swapped.astype(np.float64) @ products >= observed - slack).sum())
    return (hits + 1) / (draws + 1)
