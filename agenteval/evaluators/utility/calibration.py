"""Frozen constants of the embedded judge: from a raw statistic to a value and an accepted value.

`data/embedded_judge.json` is written by `benchmarks/embedded --write` from a development set
that shares nothing with `tasks/`. So a stored value depends on the run, its problem, the seed and
these constants only, never on the other runs of a file.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.evaluators.utility.bank import load_bank
from agenteval.records import Criterion

NORMAL = 1.702  # the logistic with this slope is within .01 of the normal distribution function

Resolver = Callable[[Criterion], str | None]
"""Names the bank concept of a criterion that has no exact match, or None."""


@dataclass(frozen=True, slots=True)
class Kind:
    """What the judge can say about one kind of criterion, and by which statistic.

    center, scale: mean and standard deviation of the statistic on the development set.
    offsets: its mean change under each paraphrase of the prompt. slope: conciseness only.
    A kind that is not supported has a reason and no statistic. A `relative` kind has no value.
    """

    name: str
    supported: bool
    reason: str
    statistic: str = ""
    relative: bool = False
    center: float = 0.0
    scale: float = 1.0
    offsets: tuple[float, ...] = ()
    slope: float = 0.0

    def value(self, raw: float, paraphrase: int) -> float:
        """Value in [0, 1] of a raw statistic, strictly increasing in it: about the share of such
        texts, half of them damaged, that have a lower statistic.
        """
        offset = self.offsets[paraphrase % len(self.offsets)] if self.offsets else 0.0
        return logistic(NORMAL * (raw - self.center - offset) / self.scale)


@dataclass(frozen=True)
class Calibration:
    """All constants, and what they belong to."""

    sha256: str
    model: str
    model_sha256: str
    prompt_sha256: str
    kinds: Mapping[str, Kind]
    concepts: Mapping[str, str]  # id in the bank -> kind

    def kind_of(self, criterion: Criterion, resolver: Resolver | None = None) -> Kind | None:
        """The kind of a criterion, or None when the judge has no answer for it.

        By the concept that it comes from; else by an exact match (case and spacing aside) of its id
        or name with a concept's id or one of its names; else by what `resolver` says.
        """
        concept = criterion.provenance.concept or named_concept(criterion)
        if concept is None and resolver is not None:
            concept = resolver(criterion)
        return self.kinds.get(self.concepts.get(concept or "", ""))


def named_concept(criterion: Criterion) -> str | None:
    """Id of the bank concept whose id or name is exactly the criterion's id or name."""
    wanted = {_fold(criterion.id), _fold(criterion.name)}
    for concept in load_bank():
        if wanted & {_fold(concept.id), *(_fold(name) for name, _ in concept.phrasings)}:
            return concept.id
    return None


def _fold(text: str) -> str:
    return " ".join(text.casefold().replace("-", " ").split())


def level_of(value: float, accepted_values: Sequence[str]) -> str:
    """The accepted value (worst to best) whose rank over levels - 1 is nearest to `value`.

    Half-way values go to the better level. Raises ValueError outside [0, 1].
    """
    if not 0 <= value <= 1:
        raise ValueError(f"value {value} is not in [0, 1]")
    return accepted_values[math.floor(value * (len(accepted_values) - 1) + 0.5)]


def logistic(x: float) -> float:
    """1 / (1 + exp(-x)), without overflow."""
    if x < 0:
        return math.exp(x) / (1 + math.exp(x))
    return 1 / (1 + math.exp(-x))


def load_calibration(path: Path | None = None) -> Calibration:
    """The constants from `path`, by default those that travel with the package.

    Raises InputError when the file is missing or not in form.
    """
    source = path or files("agenteval.data").joinpath("embedded_judge.json")
    try:
        content = source.read_bytes()
        return _read(json.loads(content), hashlib.sha256(content).hexdigest())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"the judge's constants cannot be read: {error!r}", str(source)) from error


def _read(record: Mapping[str, Any], sha256: str) -> Calibration:
    kinds = {name: _kind(name, entry) for name, entry in record["kinds"].items()}
    if stray := set(record["concepts"].values()) - set(kinds):
        raise ValueError(f"concepts of unknown kinds: {sorted(stray)}")
    return Calibration(
        sha256=sha256,
        model=record["model"]["name"],
        model_sha256=record["model"]["sha256"],
        prompt_sha256=record["prompt_sha256"],
        kinds=kinds,
        concepts=dict(record["concepts"]),
    )


def _kind(name: str, entry: Mapping[str, Any]) -> Kind:
    if not entry["supported"]:
        return Kind(name, False, entry["reason"])
    if entry["relative"]:
        return Kind(name, True, entry["reason"], entry["statistic"], relative=True)
    scale = float(entry["scale"])
    if not (scale > 0 and math.isfinite(scale) and math.isfinite(entry["center"])):
        raise ValueError(f"{name}: center and scale must be finite, scale above zero")
    return Kind(
        name=name,
        supported=True,
        reason=entry["reason"],
        statistic=entry["statistic"],
        center=float(entry["center"]),
        scale=scale,
        offsets=tuple(float(o) for o in entry["offsets"]),
        slope=float(entry.get("slope", 0.0)),
    )
