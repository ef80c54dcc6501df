"""Compare two sets of ratings of the same cases, with tests and verdicts."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from agenteval.analysis.pairing import (
    UNKNOWN,
    PairBy,
    PairKey,
    chosen_criteria,
    pair_keys,
    pair_means,
    success_rows,
)
from agenteval.errors import InputError
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.correlation import correlation_matrix
from agenteval.stats.interval import Interval
from agenteval.stats.multiple import adjust
from agenteval.stats.paired import binomial_half_tails, sign_flip_test
from agenteval.stats.sample_size import FEWEST, cases_to_exclude, smallest_difference
from agenteval.stats.scores import ORIGINAL, Floats, ScoreTable
from agenteval.stats.sequential import is_futile, look_level, normalized_sum
from agenteval.stats.vectors import normal_quantile

Verdict = Literal["better", "worse", "no difference", "identical", "cannot tell"]

_DIGITS = 12  # means that differ only by rounding are ties
_MANY = 2_000  # untied cases above which a normal approximation is used


@dataclass(frozen=True)
class CompareOptions:
    """Options of a comparison.

    Differences up to `margin` (share of the scale) are ignored. There is no verdict below
    `min_cases` pairs, or if failures leave fewer than `min_paired` of the cases that could be
    paired. `level` is the confidence level of intervals; tests use 1 - level. `planned` is the
    total number of planned cases if results are checked while cases arrive: intervals and tests are
    then valid at every look (`stats.sequential.look_level`).
    """

    margin: float = 0.05
    level: float = 0.95
    min_cases: int = 20
    min_paired: float = 0.8
    seed: int = 0
    draws: int = 20_000
    planned: int | None = None

    def at(self, n: int) -> CompareOptions:
        """Return the options for a look after `n` cases. Raises InputError if more than planned."""
        if self.planned is None or n < 1:
            return self
        if n > self.planned:
            raise InputError(
                f"{n} cases are present, but {self.planned} were planned", "--sequential"
            )
        return replace(self, level=look_level(n, self.planned, level=self.level))


@dataclass(frozen=True)
class Counts:
    """Ratings of one criterion by one side on the common cases.

    `rated` are neither failures nor not applicable; `labels` counts ratings without a value by
    level, for unordered criteria.
    """

    ratings: int
    rated: int
    failures: dict[str, int]
    not_applicable: int
    labels: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PairedCase:
    """The means of both sides on one case."""

    case: str
    a: float
    b: float

    @property
    def difference(self) -> float:
        """b - a."""
        return round(self.b - self.a, _DIGITS)


@dataclass(frozen=True)
class ComparisonRow:
    """One criterion, or the success rate; cases are the units, `difference` is second - first.

    Values are shares of the scale, 0 worst, 1 best. `wins` are cases in which the second is higher.
    `p` is two-sided. `p_regression` is one-sided (is the second lower by more than the margin?),
    except at looks before the last case, whose bounds are two-sided. `*_holm` are corrected over
    the testable rows (`Comparison.family`) and None for the others. `detectable` is the true
    difference detected with 80% power (uncorrected), None if fewer than 6 cases differ.
    `cases_to_decide` is the approximate number of similar cases for a verdict (80% power,
    uncorrected), None if there is a verdict or none is possible. `lost` common cases have no pair
    because of a failure, `inapplicable` ones because of a missing value. `undecidable` is the
    reason why no verdict is possible; `level` is that of intervals and tests. `hopeless` means, at
    a look before the last, that all planned cases would decide with a chance below 1%. `pairs` are
    the differing cases, largest difference first.
    """

    criterion: str
    n: int
    lost: int
    inapplicable: int
    first: Interval
    second: Interval
    difference: Interval
    wins: int
    ties: int
    losses: int
    p: float | None
    p_holm: float | None
    p_regression: float | None
    p_regression_holm: float | None
    test: str
    correlation: float | None
    detectable: float | None
    counts: tuple[Counts, Counts]
    undecidable: str | None
    level: float
    hopeless: bool = False
    verdict: Verdict = "cannot tell"
    reason: str = ""
    cases_to_decide: int | None = None
    pairs: tuple[PairedCase, ...] = ()

    @property
    def differing(self) -> int:
        """Number of pairs with different values."""
        return self.wins + self.losses

    @property
    def testable(self) -> bool:
        """Whether the row can be significant: a verdict is possible, and enough pairs differ for a
        p below .05."""
        return self.undecidable is None and self.differing >= FEWEST

    @property
    def alpha(self) -> float:
        """The level of the tests, with tolerance for rounding."""
        return 1 - self.level + 1e-12

    @property
    def differs(self) -> bool:
        """Whether the two sides differ: interval without 0, and p after correction."""
        low, high = self.difference.low, self.difference.high
        excludes_zero = low is not None and high is not None and (low > 0 or high < 0)
        return excludes_zero and self.p_holm is not None and self.p_holm <= self.alpha

    @property
    def surely_worse(self) -> bool:
        """Whether the second side differs, and is worse by more than the margin: the rule of the
        gate `--fail-if surely-worse`. The verdict is then "worse"."""
        beyond = self.p_regression_holm is not None and self.p_regression_holm <= self.alpha
        return self.differs and beyond

    @property
    def unordered(self) -> bool:
        """Whether the levels are unordered, so that they are counted but not averaged."""
        return not self.n and any(side.labels for side in self.counts)


@dataclass(frozen=True)
class Comparison:
    """`common`, `only_first` and `only_second` are names of cases, sorted.

    `unmatched` counts runs (or systems) of common cases that exist on one side only; these are
    left out.
    """

    pair_by: PairBy
    options: CompareOptions
    common: tuple[str, ...]
    only_first: tuple[str, ...]
    only_second: tuple[str, ...]
    unmatched: int
    rows: tuple[ComparisonRow, ...]

    @property
    def family(self) -> tuple[str, ...]:
        """The testable criteria, over which p-values are corrected."""
        return tuple(row.criterion for row in self.rows if row.testable)

    def about_tests(self, name: Callable[[str], str] = str) -> str:
        """Return a line about the tests: margin, level, correction, and the family; `name` gives
        the name of a criterion (id)."""
        left_out = [name(row.criterion) for row in self.rows if not row.testable]
        sides = "one-sided" if self.options.planned is None else "at each look"
        why = f"undecided or fewer than {FEWEST} differing pairs"
        return (
            f"surely worse: test against {-self.options.margin or 0:g}, {sides}, "
            f"α {1 - self.options.level:.2g}, Holm over {len(self.family)} of {len(self.rows)} rows"
            + (f" ({why}: {', '.join(left_out)})" if left_out else "")
        )


def compare(
    first: ScoreTable,
    second: ScoreTable,
    *,
    pair_by: PairBy = "case",
    criteria: Sequence[str] | None = None,
    options: CompareOptions | None = None,
) -> Comparison:
    """Compare two tables on their common cases (original runs only), paired.

    Within a case, the repeats of a run are averaged, then the runs of each `pair_by`: "case" for
    two systems, "system" for two experiments with the same systems, "run" for two judges of the
    same runs. These are averaged if they exist on both sides, which gives one number per case and
    side; cases are the units (Miller, arXiv 2411.00640, section 3.2). If known, the success rate is
    another row, unless the runs are the same. `criteria` (ids) restricts the rows.

    Raises InputError if a side is empty, there are no common cases, or a criterion is unknown.
    """
    chosen = options or CompareOptions()
    tables = (first.of(variant=ORIGINAL), second.of(variant=ORIGINAL))
    for side, table in zip(("first", "second"), tables, strict=True):
        if not len(table):
            raise InputError(f"the {side} side has no ratings", "compare")
    cells = tuple(set(pair_keys(t, pair_by)) for t in tables)
    both = cells[0] & cells[1]
    names = [{case for case, _ in c} for c in cells]
    common = tuple(sorted({case for case, _ in both}))
    if not common:
        sizes = " and ".join(f"{len(cases)} cases" for cases in names)
        why = f"no case in common ({sizes})"
        if names[0] & names[1]:
            why = f"cases in common, but no {pair_by} within them"
        raise InputError(f"the two sides have {why}", "compare")
    criterion_names = chosen_criteria(tables, criteria)
    rated = {n for t in tables for n in t.present("criterion")}
    outcomes = [success_rows(table) for table in tables]
    rows = [
        _criterion_row(name, tables if name in rated else outcomes, both, pair_by, chosen)
        for name in criterion_names
    ]
    inside = set(common)
    return Comparison(
        pair_by=pair_by,
        options=chosen,
        common=common,
        only_first=tuple(sorted(names[0] - inside)),
        only_second=tuple(sorted(names[1] - inside)),
        unmatched=sum(1 for c in cells[0] ^ cells[1] if c[0] in inside),
        rows=tuple(_judged(rows, chosen)),
    )


def _criterion_row(
    name: str,
    tables: Sequence[ScoreTable],
    both: set[PairKey],
    pair_by: PairBy,
    how: CompareOptions,
) -> ComparisonRow:
    common = {case for case, _ in both}
    sides, counts, failed = [], [], set()
    for table in tables:
        inside = np.array([n in common for n in table.case.names] + [False])
        ratings = table.of(criterion=name)
        ratings = ratings.where(inside[ratings.case.codes])
        sides.append(pair_means(ratings, pair_by))
        counts.append(_counts(ratings))
        failed |= {ratings.case.names[c] for c in np.unique(ratings.case.codes[ratings.failed])}
    cells: defaultdict[str, list[PairKey]] = defaultdict(list)
    for cell in sorted(c for c in both if c in sides[0] and c in sides[1]):
        cells[cell[0]].append(cell)
    a, b = (
        np.round(
            [math.fsum(side[c] for c in of_case) / len(of_case) for of_case in cells.values()],
            _DIGITS,
        )
        for side in sides
    )
    cases, absent = list(cells), common - set(cells)
    d = np.round(b - a, _DIGITS) + 0.0  # no -0
    n, lost = len(d), len(absent & failed)
    how = how.at(n)
    p, test = _flip_test(d, how)
    shifted = np.round(d + how.margin, _DIGITS)
    worse = n > 0 and math.fsum(shifted) < 0
    p_worse = _flip_test(shifted, how, sides=1)[0] if worse else 1.0
    variance = float(np.var(d, ddof=1)) if n >= 2 else 0.0
    spread = int((d != 0).sum()) >= FEWEST and variance > 0  # fewer pairs are not informative
    undecidable = None
    if not n:
        undecidable = "no case has a value on both sides"
        if any(side.labels for side in counts):
            undecidable = "levels without an order (nominal): counted, not averaged"
    elif n < how.min_cases:
        undecidable = f"{n} cases: at least {how.min_cases} are needed"
    elif n < how.min_paired * (n + lost):
        why = "the missing cases may differ from the rest"
        undecidable = f"failures leave {n} of {n + lost} cases: {why}"
    return ComparisonRow(
        criterion=name,
        n=n,
        lost=lost,
        inapplicable=len(absent) - lost,
        first=_interval(a, (0.0, 1.0), how),
        second=_interval(b, (0.0, 1.0), how),
        difference=_interval(d, (-1.0, 1.0), how),
        wins=int((d > 0).sum()),
        ties=int((d == 0).sum()),
        losses=int((d < 0).sum()),
        p=p,
        p_holm=None,
        p_regression=p_worse if n else None,
        p_regression_holm=None,
        test=test,
        correlation=correlation_matrix(np.column_stack([a, b]), kind="pearson").rho[0][1],
        detectable=smallest_difference(variance, 0, 1, n, level=how.level) if spread else None,
        counts=(counts[0], counts[1]),
        undecidable=undecidable,
        level=how.level,
        hopeless=how.planned is not None and is_futile(d, how.planned),
        pairs=tuple(
            PairedCase(cases[i], float(a[i]), float(b[i]))
            for i in np.argsort(-np.abs(d), kind="stable")
            if d[i]
        ),
    )


def _counts(table: ScoreTable) -> Counts:
    statuses = table.statuses()
    failures = {"unknown" if k == UNKNOWN else k: n for k, n in statuses.items() if ":" in k}
    not_applicable = statuses.get("not_applicable", 0)
    scored = table.of(status="scored")
    codes = scored.label.codes[np.isnan(scored.value)]
    labels = Counter(scored.label.names[code] for code in codes)
    rated = len(table) - sum(failures.values()) - not_applicable
    return Counts(len(table), rated, failures, not_applicable, dict(labels.most_common()))


def _interval(values: Floats, bounds: tuple[float, float], how: CompareOptions) -> Interval:
    """Return the interval of a mean over cases; at looks before the last case, a z interval,
    because the other methods are for a single look."""
    if how.planned is None or len(values) >= how.planned:
        return bounded_interval(values, bounds, how.level)
    n, spread = len(values), float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
    mean = math.fsum(values) / n if n else None
    if mean is None or not spread:
        return Interval(mean, None, None, None, n, None, "none", "no variation so far")
    se = spread / math.sqrt(n)
    half = normal_quantile((1 + how.level) / 2) * se
    low, high = max(mean - half, bounds[0]), min(mean + half, bounds[1])
    return Interval(mean, low, high, se, n, None, f"z, {n} of {how.planned} cases")


def _flip_test(d: Floats, how: CompareOptions, *, sides: int = 2) -> tuple[float | None, str]:
    """Return p of the mean by sign flips (the same for d and -d), and the name of the test. With
    one of two `sides`, it is for the direction of the mean."""
    data = -d if math.fsum(d) < 0 else d
    untied = np.sort(data[data != 0])
    if how.planned is not None and 0 < len(data) < how.planned:
        return math.erfc(abs(normalized_sum(data)) / math.sqrt(2)), "sign flips, bounded by normal"
    if len(np.unique(np.abs(untied))) == 1:  # then only the counts matter
        p = sides * binomial_half_tails(int((untied > 0).sum()), len(untied))[1]
        return min(1.0, p), "McNemar, exact" if untied[-1] == 1 else "sign flips, exact by counts"
    if len(untied) > _MANY:  # a sum of independent bounded terms (Lindeberg)
        from scipy.special import ndtr

        z = math.fsum(untied) / math.sqrt(math.fsum(untied**2))
        return float(sides * ndtr(-z)), "sign flips, normal approximation"
    rng = np.random.default_rng(how.seed)
    alternative: Literal["greater", "two-sided"] = "greater" if sides == 1 else "two-sided"
    test = sign_flip_test(data, alternative=alternative, draws=how.draws, rng=rng)
    return test.p, test.method


# ---- verdicts ------------------------------------------------------------------------------------


def _judged(rows: Sequence[ComparisonRow], how: CompareOptions) -> Iterator[ComparisonRow]:
    """Yield the rows with corrected p and verdict. The correction excludes rows that cannot be
    significant, which depends only on the number of differing pairs (Tarone, Biometrics 46,
    1990)."""
    plain = adjust([r.p if r.testable else None for r in rows])
    against = adjust([r.p_regression if r.testable else None for r in rows])
    for row, p, q in zip(rows, plain, against, strict=True):
        yield _decided(replace(row, p_holm=p, p_regression_holm=q), how)


def _decided(row: ComparisonRow, how: CompareOptions) -> ComparisonRow:
    """Return the row with its verdict and reason.

    identical: no pair differs. better or worse: the interval excludes 0 and Holm's p is
    significant. no difference: the interval is within the margin. Otherwise: cannot tell."""
    mean, low, high = row.difference.mean, row.difference.low, row.difference.high

    def decided(verdict: Verdict, why: str, cases: int | None = None) -> ComparisonRow:
        return replace(row, verdict=verdict, reason=why, cases_to_decide=cases)

    if row.undecidable or mean is None or low is None or high is None or row.p is None:
        why = row.undecidable or row.difference.reason or "nothing to test"
        return decided("cannot tell", why)
    excludes_zero = low > 0 or high < 0
    if how.planned is not None and row.hopeless and not excludes_zero:
        why = f"even all {how.planned} planned cases are unlikely to settle it (chance below 1%)"
        return decided("cannot tell", why)
    span, size = f"[{low:+.3f}, {high:+.3f}]", max(abs(low), abs(high))
    if not row.differing:
        why = f"all {row.n} pairs; a difference beyond {size:.3f} is excluded"
        return decided("identical", why)
    if row.differs:
        small = f", and by no more than {size:.3f}" if size <= how.margin else ""
        if row.surely_worse:
            small = f", surely by more than {how.margin:g}"
        return decided("better" if low > 0 else "worse", f"by {abs(mean):.3f} {span}{small}")
    if low >= -how.margin and high <= how.margin:
        why = f"any beyond {size:.3f} is excluded {span}, and up to {how.margin:g} does not matter"
        return decided("no difference", why)
    if excludes_zero and row.p_holm is not None and row.p <= row.alpha:
        why = f"p = {row.p:.3g} alone, {row.p_holm:.3g} after correction for several criteria"
        return decided("cannot tell", why)
    cases = _cases_to_decide(row, mean, how)
    why = f"the difference can be anywhere in {span}"
    if excludes_zero:
        why = f"the interval {span} excludes 0, but the test is not significant: p = {row.p:.3g}"
    return decided("cannot tell", why + would_decide(cases), cases)


def _cases_to_decide(row: ComparisonRow, mean: float, how: CompareOptions) -> int | None:
    """Return the cases until the interval excludes 0 or, within the margin, both its ends."""
    limits = [0.0]
    if abs(mean) < how.margin:
        limits.append(math.copysign(how.margin, mean))
    ways = (
        cases_to_exclude(
            limit, row.difference, (-1.0, 1.0), differing=row.differing, level=how.level
        )
        for limit in limits
    )
    return min((cases for cases in ways if cases is not None), default=None)


def would_decide(cases: int | None) -> str:
    """Return the end of a sentence about the number of cases needed, or ""."""
    return "" if cases is None else f"; about {cases:,} similar cases would settle it"
