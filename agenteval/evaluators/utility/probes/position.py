"""Does the score of a criterion follow its place in the prompt?

The quantifier draws the order of the criteria anew for every run and repeat, so places are
randomised like a treatment: no extra call is needed, and the test needs no model of the scores.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue
from sqlalchemy import select

from agenteval.evaluators.utility.probes.result import Finding, Measured, ProbeOptions
from agenteval.stats.interval import Interval
from agenteval.stats.paired import sign_flip_test
from agenteval.stats.scores import ORIGINAL
from agenteval.stats.vectors import Floats
from agenteval.store import Store, schema
from agenteval.store.connect import reading

NAME = "position"


@dataclass(frozen=True)
class Placed:
    """Ratings with their places, one entry per rating in each array.

    `place` counts from 0 among the `of` criteria of the call; `group` numbers pairs of run and
    criterion, `case` and `criterion` are codes.
    """

    value: NDArray[np.float64]
    place: NDArray[np.int64]
    of: NDArray[np.int64]
    group: NDArray[np.int64]
    case: NDArray[np.int64]
    criterion: NDArray[np.int64]


def placed_ratings(
    store: Store,
    source_key: str,
    *,
    criteria: Collection[str],
    runs: Collection[str],
    repeats: int,
) -> Placed:
    """Scored ratings of the originals `runs` (run keys) on `criteria` (content hashes).

    The place is the one in the call that gave the rating. A criterion that was shown through its
    parts has no place of its own and is left out. Raises StoreError for a damaged store.
    """
    result, call = schema.results.c, schema.calls.c
    items, shown_as = schema.items.alias(), schema.items.alias()
    query = (
        select(
            result.item_key, result.criterion_key, result.value, call.record,
            shown_as.c.id, items.c.case_key,
        )
        .join(schema.calls, call.call_id == result.call_id)
        .join(shown_as, shown_as.c.item_key == result.criterion_key)
        .join(items, items.c.item_key == result.item_key)
        .where(result.source_key == source_key, result.variant == ORIGINAL)
        .where(result.status == "scored", result.value.is_not(None), result.repeat < repeats)
        .order_by(result.item_key, result.criterion_key, result.repeat)
    )  # fmt: skip
    codes: dict[tuple[str, ...], int] = {}
    rows: list[tuple[float, ...]] = []
    with reading(store.engine) as connection:
        for run, criterion, value, record, name, case in connection.execute(query):
            shown = json.loads(record).get("shown", [])
            if run in runs and criterion in criteria and name in shown:
                keys = ("group", run, criterion), ("case", case), ("criterion", criterion)
                coded = (codes.setdefault(key, len(codes)) for key in keys)
                rows.append((value, shown.index(name), len(shown), *coded))
    value, *whole = np.array(rows, dtype=np.float64).reshape(-1, 6).T
    return Placed(value, *(column.astype(np.int64) for column in whole))


def position(placed: Placed, options: ProbeOptions) -> Finding:
    """Change of the score from the first place to the last, in shares of the scale.

    Two measures: the slope over places 0..1, and the last place against the first (three criteria
    or more a call). Both by least squares within run and criterion (within the criterion, when
    every run has one repeat), so that no run and no criterion counts as good because of its place.
    The interval is cluster-robust over cases (Liang & Zeger, Biometrika 73, 1986; factor
    C / (C - 1), t with C - 1 degrees of freedom). p is a randomisation test: the reverse of an
    order is as likely as the order, which turns the sign of a case's contribution
    sum of (place - mean place) * score, so signs are flipped (Fisher, The Design of Experiments,
    1935, section 21).
    """
    several = placed.of >= 2
    if not several.any():
        why = "every call shows one criterion, or none in a list: place cannot matter"
        return Finding(NAME, absent=why)
    x = (placed.place / np.maximum(placed.of - 1, 1))[several]
    y, of = placed.value[several], placed.of[several]
    case, criterion = placed.case[several], placed.criterion[several]
    repeated = np.bincount(placed.group[several]).max() > 1
    group = placed.group[several] if repeated else criterion
    rng = np.random.default_rng(options.seed)
    middle = x[:, None] - 0.5  # so that reversing an order turns the sign
    fitted = [("slope", "from the first place to the last scores change by", middle, [1.0])]
    if (of >= 3).any():
        ends = np.column_stack([x == 0, x == 1]).astype(np.float64)
        fitted.append(("last - first", "the last place against the first:", ends, [-1.0, 1.0]))
    measured = []
    for name, says, design, contrast in fitted:
        interval, scores = within_fit(y, design, group, case, np.array(contrast))
        test = sign_flip_test(scores, draws=options.draws, rng=rng)
        measured.append(
            Measured(
                name, "share of the scale", says, options.margin, interval,
                test.p if interval.mean is not None else None, len(scores),
                missing=interval.reason,
            )
        )  # fmt: skip
    level = _centred(y[:, None], criterion)[:, 0] + y.mean()  # criteria brought to one mean
    parts = {"first": x == 0, "middle": (x > 0) & (x < 1), "last": x == 1}
    means: dict[str, JsonValue] = {
        name: float(level[rows].mean()) for name, rows in parts.items() if rows.any()
    }
    detail: dict[str, JsonValue] = {
        "mean_by_place": means, "ratings": len(y), "criteria_a_call": int(of.max())
    }  # fmt: skip
    return Finding(NAME, tuple(measured), detail=detail)


def within_fit(
    y: Floats, design: Floats, group: np.ndarray, case: np.ndarray, contrast: Floats
) -> tuple[Interval, Floats]:
    """A contrast of least-squares coefficients within groups, and each case's contribution.

    `y` (n,), `design` (n, k), `group` and `case` (n,) codes. The contributions (cases,) are sums of
    the contrast of the design times the centred y: their signs are flipped in the test, so the
    contrast of a reversed order must be its negative. Without variation of the design inside the
    groups there is no estimate, with the reason.
    """
    x, z = _centred(design, group), _centred(y[:, None], group)[:, 0]
    _, code = np.unique(case, return_inverse=True)
    cases = int(code.max()) + 1
    scores: Floats = np.bincount(code, weights=(design @ contrast) * z, minlength=cases).astype(
        np.float64
    )
    from scipy.special import stdtrit

    # rounding leaves about 1e-17 where places do not vary, which the default tolerance calls rank
    if np.linalg.matrix_rank(x, tol=1e-9 * math.sqrt(len(x))) < x.shape[1]:
        reason = "no criterion was seen in different places"
        return Interval(None, None, None, None, len(y), cases, "none", reason), scores
    bread = np.linalg.inv(x.T @ x)
    beta = bread @ (x.T @ z)
    estimate = float(contrast @ beta)
    if cases < 2:
        reason = "one case: no interval"
        return Interval(estimate, None, None, None, len(y), cases, "none", reason), scores
    pull = x * (z - x @ beta)[:, None]
    by_case = np.column_stack([np.bincount(code, weights=column) for column in pull.T])
    meat = by_case.T @ by_case * cases / (cases - 1)
    se = math.sqrt(max(float(contrast @ bread @ meat @ bread @ contrast), 0.0))
    half = float(stdtrit(cases - 1, 0.975)) * se
    method = f"least squares within groups, cluster-robust t, {cases - 1} df"
    interval = Interval(estimate, estimate - half, estimate + half, se, len(y), cases, method)
    return interval, scores


def _centred(columns: Floats, group: np.ndarray) -> Floats:
    _, code = np.unique(group, return_inverse=True)
    size = np.bincount(code)
    means = np.column_stack([np.bincount(code, weights=c) / size for c in columns.T])
    return np.asarray(columns - means[code])
