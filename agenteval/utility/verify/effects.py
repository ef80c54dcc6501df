"""Effects of perturbations: whether scores change as expected beforehand."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Sequence
from typing import Literal

import numpy as np

from agenteval.records.criteria import Direction
from agenteval.records.verification import Effect, Outcome, SystemFigure
from agenteval.stats import Interval, mean_interval
from agenteval.stats.multiple import adjust
from agenteval.stats.paired import sign_flip_test
from agenteval.stats.scores import ORIGINAL, split_variant
from agenteval.stats.vectors import Alternative
from agenteval.utility.perturb import CONTROLS
from agenteval.utility.verify.evidence import Evidence
from agenteval.utility.verify.options import VerifyOptions

Directed = tuple[Evidence, str, Direction]  # evidence, variant, expected direction
_FLOOR = 1e-9
_ALTERNATIVE: dict[Direction, Alternative] = {
    "lower": "greater",
    "higher": "less",
    "none": "two-sided",
    "unknown": "two-sided",
}


def effects(evidence: Sequence[Evidence], options: VerifyOptions) -> list[tuple[Effect, ...]]:
    """Return the effect of every perturbation on every criterion, one tuple per criterion.

    The unit is the case: differences of its runs are averaged. The test is the sign-flip
    permutation of the mean difference (Fisher 1935), one-sided in the expected direction,
    two-sided where none is expected; a change must also exceed by `margin` the largest effect of a
    control. P-values are corrected by Holm over all criteria, separately for expected directions,
    for controls, and for other perturbations without an expected effect. Nothing is decided where
    the expectation is `unknown`.
    """
    rows = [[_measured(item, variant, options) for variant in item.variants] for item in evidence]
    families: defaultdict[tuple[bool, bool], list[tuple[int, int]]] = defaultdict(list)
    for i, row in enumerate(rows):
        for j, effect in enumerate(row):
            if effect.expected != "unknown":
                families[is_directed(effect), is_control(effect)].append((i, j))
    for places in families.values():
        adjusted = adjust([rows[i][j].p for i, j in places])
        for (i, j), p in zip(places, adjusted, strict=True):
            rows[i][j] = rows[i][j].model_copy(update={"p_adjusted": p})
    return [_decided(row, options) for row in rows]


def is_control(effect: Effect) -> bool:
    """Whether no criterion should notice this perturbation."""
    return effect.operator in CONTROLS and effect.expected == "none"


def is_directed(effect: Effect) -> bool:
    """Whether a direction was expected."""
    return effect.expected in ("lower", "higher")


def moved_as_expected(effects: Sequence[Effect]) -> list[Effect]:
    """Return the effects that are significant in the expected direction."""
    return [e for e in effects if is_directed(e) and e.outcome == "pass"]


def named(effect: Effect) -> str:
    """Return the operator with its share, as tables show it."""
    return effect.operator if effect.share is None else f"{effect.operator} {effect.share:.0%}"


def undecidable(effect: Effect, options: VerifyOptions) -> str:
    """Return why an effect is undecidable, or ""."""
    copies = effect.pairs + effect.missing
    if copies and effect.pairs < options.min_coverage * copies:
        return f"only {effect.pairs} of {copies} copies were rated"
    if effect.n < options.min_cases:
        return f"{effect.n} cases; {options.min_cases} are needed"
    return ""


def changes_by_system(
    directed: Sequence[Directed], options: VerifyOptions
) -> tuple[SystemFigure, ...]:
    """Return the change of each system in the expected direction, over copies (mean of criteria).

    Empty with fewer than two systems or without an expected direction. Pairs whose original is
    already at the end of the scale are left out: it has no room to move.
    """
    directed = [d for d in directed if d[2] in ("lower", "higher")]
    codes = np.unique(directed[0][0].table.system.codes) if directed else np.array([])
    codes = codes[codes >= 0]
    if len(codes) < 2:
        return ()
    variants = sorted({variant for _, variant, _ in directed})
    columns = []
    for evidence, variant, expected in directed:
        pairs, sign = evidence.pairs[variant], -1 if expected == "higher" else 1
        room = pairs.before < 1 - _FLOOR if sign < 0 else pairs.before > _FLOOR
        copy = pairs.run * len(variants) + variants.index(variant)
        change = sign * (pairs.before - pairs.after)
        rows = np.column_stack([copy, pairs.system, pairs.case, change])
        columns.append(rows[pairs.both & room])
    rows = np.concatenate(columns)
    _, first, inverse = np.unique(rows[:, 0], return_index=True, return_inverse=True)
    change = np.bincount(inverse, weights=rows[:, 3]) / np.bincount(inverse)
    figures = []
    for code in codes:
        of_system = rows[first, 1] == code
        interval = mean_interval(
            change[of_system].tolist(),
            rows[first, 2][of_system].tolist(),
            level=1 - options.alpha,
            bounds=(-1.0, 1.0),
        )
        name = directed[0][0].ratings.system.names[code]
        figures.append(system_figure(name, "change", interval, int(of_system.sum())))
    return tuple(figures)


def system_figure(
    system: str, figure: Literal["change", "AUC"], interval: Interval, n: int
) -> SystemFigure:
    """Return a figure of one system from an interval over `n` copies or runs."""
    return SystemFigure(
        system=system,
        figure=figure,
        estimate=interval.mean,
        low=interval.low,
        high=interval.high,
        n=n,
    )


def _measured(evidence: Evidence, variant: str, options: VerifyOptions) -> Effect:
    """Return size, interval and raw p: original minus copy, paired by run.

    A criterion without an entry in `expect` expects no change by controls and is `unknown`
    otherwise.
    """
    operator, written_share = split_variant(variant)
    try:
        share = float(written_share)
    except ValueError:  # an operator without one, or a variant of another tool
        share = None
    default: Direction = "none" if operator in CONTROLS else "unknown"
    expected = evidence.criterion.expect.get(operator, default)
    pairs, lengths = evidence.pairs[variant], evidence.copies.lengths
    names = evidence.ratings.run.names
    both = pairs.both
    _, case = np.unique(pairs.case[both], return_inverse=True)
    drop = np.bincount(case, weights=(pairs.before - pairs.after)[both]) / np.bincount(case)
    # Each test has its own generator, so the order of rows and criteria makes no difference.
    digest = hashlib.sha256(f"{options.seed}|{evidence.criterion.id}|{variant}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:16], "big"))
    test = sign_flip_test(drop, alternative=_ALTERNATIVE[expected], draws=options.draws, rng=rng)
    interval = mean_interval(drop.tolist(), level=1 - options.alpha, bounds=(-1.0, 1.0))
    shorter = [
        lengths[name, variant] < lengths[name, ORIGINAL]
        for name in (names[run] for run in pairs.run)
        if (name, variant) in lengths and (name, ORIGINAL) in lengths
    ]
    originals = {names[run] for run in evidence.originals.run}
    return Effect(
        variant=variant,
        operator=operator,
        share=share,
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
        unchanged=len(originals.intersection(evidence.copies.unchanged.get(variant, ()))),
        shorter=sum(shorter) / len(shorter) if shorter else None,
        systems=changes_by_system([(evidence, variant, expected)], options),
    )


def _decided(row: Sequence[Effect], options: VerifyOptions) -> tuple[Effect, ...]:
    """Return the effects on one criterion with outcome and reason.

    A directed effect counts only when it exceeds that of every decidable control by the margin.
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


def _outcome(effect: Effect, options: VerifyOptions) -> tuple[Outcome, str]:
    """Return the outcome and one line that says why."""
    if effect.expected == "unknown":
        return "unknown", "no direction was expected"
    if reason := undecidable(effect, options):
        return "unknown", reason
    estimate, low, high, margin = effect.estimate, effect.low, effect.high, options.margin
    if estimate is None or low is None or high is None:
        return "unknown", "there is no interval"
    significant = effect.p_adjusted is not None and effect.p_adjusted < options.alpha
    if effect.expected == "none":
        if -margin <= low and high <= margin:
            return "pass", f"unmoved: within {margin:g} of the scale"
        if significant and abs(estimate) > margin:
            moved = f"{'fell' if estimate > 0 else 'rose'} by {abs(estimate):.3f}"
            but = "nothing should change" if is_control(effect) else "none was expected"
            return "fail", f"{moved} although {but}"
        return "unknown", "neither unmoved nor moved beyond doubt"
    return _moved(effect, margin, significant=significant)


def _moved(effect: Effect, margin: float, *, significant: bool) -> tuple[Outcome, str]:
    """Return the outcome of an effect with an expected direction, and why."""
    sign, fell, fall, rose = 1, "fell", "fall", "rose"
    if effect.expected == "higher":
        sign, fell, fall, rose = -1, "rose", "rise", "fell"
    towards = sign * (effect.estimate or 0.0)
    most = max(sign * (effect.low or 0.0), sign * (effect.high or 0.0))
    if significant and towards > margin:
        return "pass", f"{fell} by {towards:.3f}"
    if significant:
        return "unknown", f"{fell} by {towards:.3f}: no more than a control may move it"
    if most >= margin:
        return "unknown", "cannot be told from no effect with this many cases"
    if effect.fell == effect.rose == 0:
        return "fail", f"was expected to {fall} and did not move in any case"
    if most < 0 or towards < -margin:
        return "fail", f"was expected to {fall} and {rose} by {-towards:.3f}"
    return "fail", f"did not {fall} as expected: by at most {most:.3f}"
