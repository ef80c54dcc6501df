"""Evidence that the judge treats all systems alike, since judges are used to compare systems."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from agenteval.records.criteria import Direction
from agenteval.records.verification import JudgeEvidence, Standing, SystemFigure
from agenteval.stats import Interval, mean_interval
from agenteval.stats.discrimination import discrimination
from agenteval.stats.multiple import adjust
from agenteval.utility.verify.evidence import Evidence, means_of, row_means
from agenteval.utility.verify.options import VerifyOptions

SYSTEMS_ALIKE = "systems are judged alike"
Directed = tuple[Evidence, str, Direction]  # evidence, variant, expected direction
_FLOOR = 1e-9


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
        figures.append(_figure(name, "change", interval, int(of_system.sum())))
    return tuple(figures)


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
        return JudgeEvidence(name=SYSTEMS_ALIKE, standing="not checked", reason=reason)
    changes = changes_by_system(directed, options)
    enough = [f for f in changes if f.n >= options.min_copies and f.low is not None]
    noticed = [f for f in enough if (f.low or 0) > 0 and (f.estimate or 0) > options.margin]
    unnoticed = [f for f in enough if f.high is not None and f.high < options.margin]
    doubtful = [f.system for f in changes if f not in noticed]
    aucs, upside_down = _aucs(rated, codes.tolist(), options)
    against = [f"failed runs of {name} are rated higher" for name in upside_down]
    if noticed and unnoticed:
        against.append(
            f"damage to {_listed(noticed)} is noticed, damage to {_listed(unnoticed)} is not"
        )
    standing: Standing = "shown"
    reason, step = f"damage is noticed in {_listed(noticed)}", ""
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
    return JudgeEvidence(
        name=SYSTEMS_ALIKE,
        standing=standing,
        reason=reason,
        next_step=step,
        systems=(*changes, *aucs),
    )


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


def _listed(figures: Sequence[SystemFigure]) -> str:
    return ", ".join(
        f"{f.system} ({f.estimate:+.3f} [{f.low:+.3f}, {f.high:+.3f}])" for f in figures
    )


def _aucs(
    rated: Sequence[Evidence], codes: Sequence[int], options: VerifyOptions
) -> tuple[list[SystemFigure], list[str]]:
    """Return the AUC of each system with five runs on each side, and the systems upside down."""
    run, system, success = (
        np.concatenate([getattr(e.originals, name) for e in rated])
        for name in ("run", "system", "success")
    )
    _, first = np.unique(run, return_index=True)
    system, success, value = system[first], success[first], row_means(means_of(rated)[1])
    figures, tests = [], list[float | None]()
    for code in codes:
        of_system = (system == code) & ~np.isnan(value)
        good, bad = (value[of_system & (success == s)] for s in (1, 0))
        if min(len(good), len(bad)) < 5:
            continue
        result = discrimination(good, bad, level=1 - options.alpha, alternative="less")
        name = rated[0].ratings.system.names[code]
        figures.append(_figure(name, "AUC", result.auc, len(good) + len(bad)))
        tests.append(result.test.p)
    adjusted = adjust(tests)
    return figures, [
        f.system
        for f, p in zip(figures, adjusted, strict=True)
        if p is not None and p < options.alpha
    ]
