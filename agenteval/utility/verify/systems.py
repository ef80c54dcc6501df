"""Is the judge the same to every system? Judges are used to compare them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agenteval.records.criteria import Direction
from agenteval.records.verification import JudgeEvidence, SystemFigure
from agenteval.stats import Interval, mean_interval
from agenteval.stats.discrimination import discrimination
from agenteval.stats.multiple import adjust
from agenteval.utility.verify.evidence import Evidence, Floats, claim
from agenteval.utility.verify.options import VerifyOptions

SYSTEMS_ALIKE = "systems are judged alike"
Directed = tuple[Evidence, str, Direction]  # evidence, variant, expected direction
_FLOOR = 1e-9


def changes_by_system(
    directed: Sequence[Directed], options: VerifyOptions
) -> tuple[SystemFigure, ...]:
    """The change of each system in the expected direction, over copies (averaged over criteria);
    empty with fewer than two systems or where no direction is expected.

    Only pairs whose original is above the lowest level (below the highest where a rise is expected)
    count: at the floor a right judge finds nothing to lower.
    """
    directed = [d for d in directed if d[2] in ("lower", "higher")]
    codes = np.unique(directed[0][0].table.system.codes) if directed else np.array([])
    if len(codes[codes >= 0]) < 2:
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
    for code in codes[codes >= 0]:
        mine = rows[first, 1] == code
        interval = mean_interval(
            change[mine].tolist(),
            rows[first, 2][mine].tolist(),
            level=1 - options.alpha,
            bounds=(-1.0, 1.0),
        )
        name = directed[0][0].ratings.system.names[code]
        figures.append(_figure(name, "change", interval, int(mine.sum())))
    return tuple(figures)


def _figure(
    system: str, figure: Literal["change", "AUC"], interval: Interval, n: int
) -> SystemFigure:
    return SystemFigure(
        system=system,
        figure=figure,
        estimate=interval.mean,
        low=interval.low,
        high=interval.high,
        n=n,
    )


def systems_alike(
    graded: Sequence[Evidence],
    directed: Sequence[Directed],
    overall: Floats,
    options: VerifyOptions,
) -> JudgeEvidence:
    """Does the judge notice damage, and rate success above failure, in every system?

    Refuted where damage to one system surely costs more than nothing and damage to another surely
    less than `margin`, both over copies that could fall; or where failed runs of a system are rated
    higher (one-sided Mann-Whitney, Holm over systems). A plain comparison of effects would condemn
    right judges: failed runs have no room to fall. A permutation of systems within the level of the
    original cannot find a fixed opinion, because its levels are no other system's. Shown needs
    `min_copies` copies of every system. `overall` is the mean over the criteria by code of the run,
    NaN where there is none.
    """
    codes = np.unique(np.concatenate([e.table.system.codes for e in graded]))
    codes = codes[codes >= 0]
    if len(codes) < 2:
        return claim(
            SYSTEMS_ALIKE, "not checked", "one system: there is nothing to compare it with"
        )
    changes = changes_by_system(directed, options)
    areas, upside_down = _areas(graded, codes, overall, options)
    enough = [f for f in changes if f.n >= options.min_copies and f.low is not None]
    noticed = [f for f in enough if (f.low or 0) > 0 and (f.estimate or 0) > options.margin]
    unnoticed = [f for f in enough if f.high is not None and f.high < options.margin]
    step = "do not compare systems by its scores; try another judge"
    against = [f"failed runs of {name} are rated higher" for name in upside_down]
    if noticed and unnoticed:
        against.append(
            f"damage to {_named(noticed)} is noticed, damage to {_named(unnoticed)} is not"
        )
    doubtful = [f.system for f in changes if f not in noticed]
    if against:
        found = claim(SYSTEMS_ALIKE, "refuted", "; ".join(against), step)
    elif len(enough) < len(codes):
        few = ", ".join(f"{f.system} has {f.n}" for f in changes if f not in enough)
        reason = f"not compared by system: {options.min_copies} copies that could fall are needed"
        reason += f" of each ({few or 'no direction was expected'})"
        found = claim(SYSTEMS_ALIKE, "not checked", reason, "rate more copies of these systems")
    elif doubtful:
        reason = f"damage to {', '.join(doubtful)} is not surely noticed"
        found = claim(SYSTEMS_ALIKE, "not shown", reason)
    else:
        found = claim(SYSTEMS_ALIKE, "shown", f"damage is noticed in {_named(noticed)}")
    return found.model_copy(update={"systems": (*changes, *areas)})


def _named(figures: Sequence[SystemFigure]) -> str:
    return ", ".join(
        f"{f.system} ({f.estimate:+.3f} [{f.low:+.3f}, {f.high:+.3f}])" for f in figures
    )


def _areas(
    graded: Sequence[Evidence], codes: NDArray[np.int32], overall: Floats, options: VerifyOptions
) -> tuple[list[SystemFigure], list[str]]:
    """AUC of each system with five successes and failures, and systems that are upside down."""
    run, system, success = (
        np.concatenate([getattr(e.originals, name) for e in graded])
        for name in ("run", "system", "success")
    )
    runs, first = np.unique(run, return_index=True)
    system, success, value = system[first], success[first], overall[runs]
    figures, tests = [], list[float | None]()
    names = graded[0].ratings.system.names
    for code in codes:
        mine = (system == code) & ~np.isnan(value)
        good, bad = (value[mine & (success == s)] for s in (1, 0))
        if min(len(good), len(bad)) < 5:
            continue
        found = discrimination(good, bad, level=1 - options.alpha, alternative="less")
        figures.append(_figure(names[code], "AUC", found.auc, len(good) + len(bad)))
        tests.append(found.test.p)
    adjusted = adjust(tests).adjusted
    return figures, [
        f.system
        for f, p in zip(figures, adjusted, strict=True)
        if p is not None and p < options.alpha
    ]
