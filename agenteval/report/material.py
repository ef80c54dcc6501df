"""What a report is made of, whether it comes from a store or from a file of ratings."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agenteval.records import Criterion, Usage
from agenteval.records.verification import JudgeVerdict, Verification, VerifiedSet
from agenteval.stats.scores import ORIGINAL, Column, ScoreTable

CellName = tuple[str, str, int]  # variant, criterion id, repeat


@dataclass(frozen=True)
class Said:
    """What the judge said with a rating, as far as it was kept; `raw` only for failures."""

    explanation: str = ""
    evidence: Mapping[str, object] = field(default_factory=dict)
    raw: str = ""


@dataclass(frozen=True)
class RunTexts:
    """The long texts of a run: problem, trajectory, copies by variant, words of the judge."""

    problem: str
    trajectory: str
    reference_shown: bool
    copies: Mapping[str, str]
    said: Mapping[CellName, Said]


class Texts(Protocol):
    """Where long texts are read, some runs at a time."""

    def of(self, runs: Sequence[str]) -> dict[str, RunTexts]:
        """Texts by run id; a run without texts is left out."""
        ...

    def judged(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Run id, problem and trajectory of every original that has texts."""
        ...


class NoTexts:
    """Ratings made elsewhere come without texts."""

    def of(self, runs: Sequence[str]) -> dict[str, RunTexts]:
        """Nothing."""
        return {}

    def judged(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Nothing."""
        return iter(())


@dataclass(frozen=True)
class Findings:
    """Verdicts, and how they are known. `judge` is None where only criteria were recorded."""

    judge: JudgeVerdict | None
    criteria: tuple[Verification, ...]
    origin: str
    subset: tuple[str, ...] = ()
    first_component: float | None = None
    options: Mapping[str, float | int] = field(default_factory=dict)

    def of(self, criterion: str) -> Verification | None:
        """The verdict on a criterion, None when there is none."""
        return next((v for v in self.criteria if v.criterion_id == criterion), None)


@dataclass(frozen=True)
class Material:
    """Ratings with everything around them.

    `facts` are pairs of a name and a text for the head. `findings` is None while nothing was
    verified, and `unverified` says why. `show` is the command that prints a run that is not on
    the page, `{run}` in it standing for its id. `notes` must be said in the summary, `unfinished`
    (a sentence for each experiment that is not all there) before it.
    """

    title: str
    facts: tuple[tuple[str, str], ...]
    criteria: tuple[Criterion, ...]
    table: ScoreTable
    findings: Findings | None
    unverified: str
    usage: Usage | None
    texts: Texts
    show: str
    notes: tuple[str, ...] = ()
    unfinished: tuple[str, ...] = ()

    @property
    def names(self) -> dict[str, str]:
        """Names of the criteria by id."""
        return {c.id: c.name for c in self.criteria}


def recorded(criteria: Sequence[Criterion], origin: str) -> Findings | None:
    """The verdicts that a criteria file carries, None when it has none.

    Raises pydantic's ValidationError (a ValueError) for a verification that is not in form.
    """
    found = tuple(
        Verification.model_validate(c.verification) for c in criteria if c.verification is not None
    )
    return Findings(None, found, origin) if found else None


def findings_of(result: VerifiedSet, origin: str) -> Findings:
    """What the page shows of a verification."""
    return Findings(
        result.judge, result.criteria, origin, result.subset, result.first_component,
        result.options,
    )  # fmt: skip


def arranged(table: ScoreTable, criteria: Sequence[str]) -> ScoreTable:
    """The same ratings in an order that does not depend on how they were stored.

    Criteria stand in the order given, the original before the perturbations, all else by name.
    """
    columns: dict[str, Column] = {}
    for name in ("run", "case", "system", "criterion", "variant", "status", "label"):
        part: Column = getattr(table, name)
        columns[name] = _renamed(part, {"criterion": criteria, "variant": (ORIGINAL,)}.get(name))
    order = np.lexsort(
        (table.repeat, columns["run"].codes, columns["variant"].codes, columns["criterion"].codes)
    )
    return ScoreTable(
        **{name: Column(c.codes[order], c.names) for name, c in columns.items()},
        repeat=table.repeat[order],
        success=table.success[order],
        value=table.value[order],
    )


def _renamed(column: Column, first: Sequence[str] | None) -> Column:
    place = {name: i for i, name in enumerate(first or ())}
    order = sorted(column.names, key=lambda n: (place.get(n, len(place)), n))
    new = {name: i for i, name in enumerate(order)}
    codes: NDArray[np.int32] = np.array([*(new[n] for n in column.names), -1], dtype=np.int32)
    return Column(codes[column.codes], tuple(order))
