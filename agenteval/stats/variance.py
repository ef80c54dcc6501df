"""Variance components of ratings: cases, systems, their interaction, repeats."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.stats.bootstrap import cluster_codes
from agenteval.stats.vectors import Floats, finite_vector

Codes = NDArray[np.intp]


@dataclass(frozen=True)
class VarianceComponents:
    """Variances in squared units of the values, never negative; None where not separable.

    `case`: difficulty shared by all systems (without systems: between cases). `system`: between
    systems. `case_system`: interaction of system and case. `repeat`: between repeats of the same
    case and system. With one rating per cell, `repeat` is None and `case_system` includes it.
    `reason` says why components are missing.
    """

    case: float | None
    system: float | None
    case_system: float | None
    repeat: float | None
    reason: str | None = None


def variance_components(
    values: Sequence[float] | Floats,
    cases: Sequence[Hashable],
    systems: Sequence[Hashable] | None = None,
) -> VarianceComponents:
    """Estimate variance components of ratings from their cases and, optionally, systems.

    Estimator: Henderson's method 1 (Biometrics 9, 1953; Searle, Casella & McCulloch, Variance
    Components, 1992, section 5.3). Each factor gives the sum over its groups of total^2 / size;
    the expectations of these sums are linear in the components, and the equations are solved.
    It is unbiased for unbalanced data with missing cells, and equals the usual ANOVA estimator for
    balanced data and for cases alone (n0 of section 3.6). All factors are random. Negative
    estimates are returned as 0.

    A factor with one level, cells with one rating each, or cases that are not shared between
    systems cannot be separated: the components are None or joined, with the reason. With fewer than
    two cases, all are None. Raises ValueError for values that are not finite, and for labels of a
    different length.
    """
    data = finite_vector(values, "values")
    case = cluster_codes(cases, len(data))
    system = None if systems is None else cluster_codes(systems, len(data))
    if len(np.unique(case)) < 2:
        reason = "fewer than two cases: no variance between cases"
        return VarianceComponents(None, None, None, None, reason)
    factors: dict[str, Codes] = {"case": case}
    finest, notes = "case", []
    if system is not None and len(np.unique(system)) == 1:
        notes.append("one system: nothing between systems")
    elif system is not None:
        factors["system"] = system
        cells = np.unique(_crossed(case, system), return_inverse=True)[1]
        finest, factors["case_system"] = "case_system", cells.astype(np.intp)
    if len(np.unique(factors[finest])) == len(data):
        notes.append(f"one rating per cell: {finest} includes the spread of repeats")
    else:
        factors["repeat"] = np.arange(len(data))
    variances = _henderson(data, factors)
    if variances is None:
        notes.append("cases are not shared between systems: components cannot be separated")
    part = {name: max(value, 0.0) for name, value in (variances or {}).items()}
    return VarianceComponents(
        part.get("case"),
        part.get("system"),
        part.get("case_system"),
        part.get("repeat"),
        "; ".join(notes) or None,
    )


def _henderson(data: Floats, factors: dict[str, Codes]) -> dict[str, float] | None:
    """Solve E[T_g - T_mean] = sum_k variance_k * coefficient_gk; None if singular.

    The coefficient of factor k in T_g is sum over groups of g of sum_l n_gl^2 / n_g, where n_gl
    counts the values of level l of k in the group.
    """
    centred = data - data.mean()  # T_mean becomes 0 and nothing cancels
    names = list(factors)
    everything = np.zeros(len(data), dtype=np.intp)
    overall = np.array([_coefficient(everything, factors[k]) for k in names])
    matrix = np.array([[_coefficient(factors[g], factors[k]) for k in names] for g in names])
    totals = [
        float((np.bincount(g, centred) ** 2 / np.bincount(g)).sum()) for g in factors.values()
    ]
    matrix = matrix - overall
    if np.linalg.matrix_rank(matrix / len(data)) < len(names):
        return None
    solved = np.linalg.solve(matrix, np.array(totals))
    return {name: float(value) for name, value in zip(names, solved, strict=True)}


def _coefficient(groups: Codes, levels: Codes) -> float:
    pairs, counts = np.unique(_crossed(groups, levels), return_counts=True)
    group = pairs // (levels.max() + 1)
    return float((counts.astype(np.float64) ** 2 / np.bincount(groups)[group]).sum())


def _crossed(groups: Codes, levels: Codes) -> Codes:
    """Return one number per pair of codes."""
    return np.asarray(groups * (int(levels.max()) + 1) + levels, dtype=np.intp)
