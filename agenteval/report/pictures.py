"""The figures of the page, and in words those that could not be drawn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from agenteval.errors import InputError
from agenteval.records.verification import Check, Verification
from agenteval.report.material import Material
from agenteval.report.svg import inline
from agenteval.stats.scores import ORIGINAL, Column, ScoreTable

_MOST_PANELS = 24
_MOST_CORRELATED = 40


@dataclass(frozen=True)
class Picture:
    """A figure: what it is called, how to read it, and its SVG element."""

    title: str
    caption: str
    svg: str


def pictures(material: Material) -> tuple[list[Picture], list[str]]:
    """Figures that the data allow, and a line for every one that they do not."""
    table = _named(material)
    drawn: list[Picture] = []
    left_out: list[str] = []
    for i, (title, caption, draw) in enumerate(_plan(material, table)):
        from agenteval.figures import svg

        try:
            drawn.append(Picture(title, caption, inline(svg(draw()), f"f{i}-")))
        except InputError as error:
            left_out.append(f"{title}: {error}")
    return drawn, left_out


def _plan(
    material: Material, table: ScoreTable
) -> list[tuple[str, str, Callable[[], Any]]]:  # fmt: skip
    from agenteval import figures

    several = int(table.repeat.max(initial=0)) > 0
    copies = set(table.present("variant")) - {ORIGINAL}
    plan: list[tuple[str, str, Callable[[], Any]]] = [
        (
            "Which criteria hold",
            "Agreement of repeats against discrimination of success; the verdict is the mark.",
            lambda: figures.criteria_map(_points(material)),
        ),
        (
            "Success and failed",
            "Mean per criterion and system. A criterion that means something sets them apart.",
            lambda: figures.success_bars(table),
        ),
        ("Systems", "Mean of every system on every criterion.", lambda: figures.radar(table)),
    ]
    if several:
        plan.append((
            "Repeats",
            "Means at every repeat of the judge: lines that wander are noise of the judge.",
            lambda: figures.repeat_grid(_panels(table)),
        ))  # fmt: skip
    if copies:
        plan.append((
            "Originals and perturbed copies",
            "A copy that lost something should score lower, a control the same.",
            lambda: figures.perturbation_bars(table),
        ))  # fmt: skip
    if len({v.partition(":")[2].partition(":")[0] for v in copies} - {"-", ""}) > 1:
        plan.append((
            "Dose and response",
            "The more is taken away, the lower the rating should be.",
            lambda: figures.dose_grid(_panels(table)),
        ))  # fmt: skip
    plan += [
        (
            "Criteria that say the same",
            "Spearman correlation of the runs' means.",
            lambda: figures.correlation_map(_few(table)),
        ),
        (
            "Coverage and cost",
            "What became of every judgement, and what all of them took.",
            lambda: figures.coverage_and_cost(table, material.usage),
        ),
    ]
    return plan


def _named(material: Material) -> ScoreTable:
    """The table with criteria under their names, as far as these differ."""
    table = material.table
    names = tuple(material.names.get(i, i) for i in table.criterion.names)
    if len(set(names)) < len(names):
        return table
    return replace(table, criterion=Column(table.criterion.codes, names))


def _panels(table: ScoreTable) -> ScoreTable:
    if len(table.present("criterion")) > _MOST_PANELS:
        raise InputError(f"more than {_MOST_PANELS} criteria, a panel each")
    return table


def _few(table: ScoreTable) -> ScoreTable:
    if len(table.present("criterion")) > _MOST_CORRELATED:
        raise InputError(f"more than {_MOST_CORRELATED} criteria")
    return table


def _points(material: Material) -> list[Any]:
    from agenteval.figures import CriterionPoint

    if material.findings is None:
        raise InputError("nothing was verified yet")
    return [
        CriterionPoint(
            material.names.get(v.criterion_id, v.criterion_id),
            _estimate(v, "agreement"),
            _estimate(v, "discrimination"),
            v.verdict,
            v.cases,
        )
        for v in material.findings.criteria
    ]


def _estimate(found: Verification, name: str) -> Any:
    from agenteval.figures import Estimate

    check: Check | None = found.check(name)
    if check is None or check.estimate is None:
        return None
    return Estimate(check.estimate, check.low, check.high)
