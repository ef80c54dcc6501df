"""Criterion and CriteriaSet: the dimensions of utility and their levels."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping
from functools import cached_property, lru_cache
from math import fsum
from typing import Annotated, Literal

from pydantic import ConfigDict, Field, JsonValue, model_validator

from agenteval.records.base import FAIL_FAST, Record, content_hash

Scale = Literal["ordinal", "binary", "numeric", "nominal"]
Order = Literal["worst_to_best", "unclear"]
Direction = Literal["lower", "none", "higher", "unknown"]
Aggregation = Literal["mean", "min", "weighted"]

SCHEMA_VERSION = 1
RUBRIC = "rubric"  # id of the criterion made from a run's rubric


@lru_cache(maxsize=8192)
def slug(name: str) -> str:
    """Return a stable id for a name: ASCII letters, digits, single hyphens, 80 characters at
    most."""
    text = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    text = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:80].strip("-")
    return text or "criterion-" + content_hash(name)[:8]


_BARE = re.compile(
    r"(?:(?:level|grade|score|stage|tier|rank|rating)\s+)?(?:[<>]=?\s*)?(-?\d+(?:\.\d+)?)\s*%?"
    r"(?:\s*[-–]\s*\d+(?:\.\d+)?\s*%?|\+)?(?:\s*(?:points?|stars?))?|(?:grade\s+)?([a-f])[+-]?",
    re.I,
)


def runs_against_nature(values: tuple[str, ...]) -> bool:
    """Return whether all values are numbers in falling order, or letters from A towards F."""
    numbers = [_BARE.fullmatch(value.strip()) for value in values]
    if not values or any(match is None for match in numbers):
        return False
    first, last = (
        -float(ord(match[2].upper())) if match[2] else float(match[1])
        for match in (numbers[0], numbers[-1])
        if match is not None
    )
    return last < first


class Provenance(Record):
    """The origin of a criterion."""

    origin: str = "user"  # critic, bank, reviewed, user
    seeds: tuple[int, ...] = ()  # seeds that proposed it or a paraphrase
    model: str | None = None
    prompt_sha256: str | None = None
    concept: str | None = None  # id in the bank
    aliases: tuple[dict[str, JsonValue], ...] = ()  # criteria merged into it
    part_of: tuple[str, ...] = ()  # names of criteria that, by a consolidation, include it


class Criterion(Record):
    """One dimension on which runs are scored.

    `accepted_values` run from worst to best if `order` says so; the value of a score is its rank /
    (levels - 1). A nominal criterion has no order and is never averaged. A criterion with
    `sub_criteria` is scored through them, and `aggregation` combines them: their mean, their
    minimum, or as a rubric by `weight` (`agenteval.records.rubric`; for a part with a negative
    weight, the first level means that it holds). The rubric of a run has a `case`, so that rubrics
    of two cases are never confused. With a `judge`, the criterion is computed from the run's
    reference without a model; see `agenteval.utility.computed`.
    """

    id: str = ""
    name: str = Field(min_length=1)
    description: str = ""
    accepted_values: Annotated[tuple[str, ...], FAIL_FAST] = ()
    scale: Scale = "ordinal"
    order: Order = "worst_to_best"
    order_confirmed: bool = False  # by a person, or by the critic when asked
    order_reason: str | None = None  # how the order was decided, for display
    allow_na: bool = False
    hint: str | None = None
    numeric_range: tuple[float, float] | None = None  # worst, best; numeric scale only
    sub_criteria: Annotated[tuple[Criterion, ...], FAIL_FAST] = ()
    aggregation: Aggregation = "mean"
    weight: float | None = Field(default=None, exclude_if=lambda value: value is None)
    case: str | None = Field(default=None, exclude_if=lambda value: value is None)
    judge: str | None = Field(default=None, exclude_if=lambda value: value is None)
    judge_options: dict[str, JsonValue] = Field(
        default_factory=dict, exclude_if=lambda value: not value
    )
    expect: dict[str, Direction] = Field(default_factory=dict)
    provenance: Provenance = Provenance()
    verification: dict[str, JsonValue] | None = None

    @model_validator(mode="before")
    @classmethod
    def _fill_id(cls, data: object) -> object:
        if isinstance(data, dict) and not data.get("id") and data.get("name"):
            return {**data, "id": slug(str(data["name"]))}
        return data

    @model_validator(mode="after")
    def _levels(self) -> Criterion:
        if self.is_rubric and not (
            self.sub_criteria and all(part.weight is not None for part in self.sub_criteria)
        ):
            raise ValueError(f"criterion {self.name!r}: 'weighted' needs a weight on each part")
        if self.sub_criteria:
            return self
        if self.scale == "numeric":
            if self.numeric_range is None or self.numeric_range[0] == self.numeric_range[1]:
                raise ValueError(f"criterion {self.name!r}: a numeric scale needs two bounds")
            return self
        if len(self.accepted_values) < 2:
            raise ValueError(
                f"criterion {self.name!r} has {len(self.accepted_values)} accepted value(s); "
                "a scale needs at least two"
            )
        folded = [" ".join(v.casefold().split()) for v in self.accepted_values]
        if len(set(folded)) < len(folded) or not all(folded):
            raise ValueError(f"criterion {self.name!r} has empty or repeated accepted values")
        return self

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex) of everything that affects a judgement: texts, levels, numeric range,
        parts.

        Provenance, verification and expected directions are excluded because the judge does not see
        them. The order of the levels is excluded too, since the meaning of a label does not depend
        on it: a corrected order relabels stored results. It is included only if bare numbers or
        letters were shown against their natural order: "worst to best: 5, 4, 3, 2, 1".
        """
        return content_hash(self._judged())

    def _judged(self) -> dict[str, object]:
        computed = {"judge": self.judge, "options": self.judge_options, "version": 1}
        return {
            **({"computed": computed} if self.judge else {}),
            **({} if self.weight is None else {"weight": self.weight}),
            **({} if self.case is None else {"case": self.case}),
            "id": self.id,
            "name": self.name,
            "description": self.description,
            "levels": sorted(self.accepted_values),
            "against": self.ordered and runs_against_nature(self.accepted_values),
            "allow_na": self.allow_na,
            "hint": self.hint,
            "numeric_range": self.numeric_range,
            "sub_criteria": [c._judged() for c in self.sub_criteria],
            "aggregation": self.aggregation,
            "concept": self.provenance.concept,
        }

    @property
    def ordered(self) -> bool:
        """Whether the levels have a known order, so that values can be averaged."""
        return self.scale != "nominal" and self.order != "unclear"

    @property
    def is_rubric(self) -> bool:
        """Whether its parts are weighted statements about the work of a run."""
        return self.aggregation == "weighted"

    @property
    def na_label(self) -> str:
        """The answer outside the levels: "not applicable", or "cannot tell" for a rubric item."""
        return "not applicable" if self.weight is None else "cannot tell"

    def leaves(self, prefix: str = "") -> list[tuple[str, Criterion]]:
        """Return (path, leaf) for the criterion itself or its parts; paths are `parent/child`."""
        path = prefix + self.id
        if not self.sub_criteria:
            return [(path, self)]
        return [leaf for part in self.sub_criteria for leaf in part.leaves(f"{path}/")]

    def value_of(self, label: str) -> float | None:
        """Return the value of a level in [0, 1] (rank / (levels - 1)), or None without an order.

        On a numeric scale the label is a number, and its value is the position between the bounds.
        Raises ValueError when `label` is not an accepted value.
        """
        if self.numeric_range is not None:
            worst, best = self.numeric_range
            value = (float(label) - worst) / (best - worst)
            return value if self.ordered else None
        rank = self.accepted_values.index(label)
        if not self.ordered:
            return None
        return rank / (len(self.accepted_values) - 1)

    def expected_value(self, probabilities: Mapping[str, float]) -> float | None:
        """Return the probability-weighted mean value of the levels, or None without an order.

        This is G-Eval (arXiv 2303.16634, section 2) without its rescaling. Raises as `value_of`.
        """
        values = {label: self.value_of(label) for label in probabilities}
        total = fsum(probabilities.values())
        if not self.ordered or not total:
            return None
        mean = fsum(probabilities[k] * (v or 0.0) for k, v in values.items()) / total
        return min(1.0, max(0.0, mean))


class CriteriaSet(Record):
    """The criteria of one task, as stored in `criteria/<task>.json`."""

    schema_version: int = Field(default=SCHEMA_VERSION, alias="schema")
    task: str = ""
    criteria: tuple[Criterion, ...]

    model_config = ConfigDict(populate_by_name=True)

    @model_validator(mode="after")
    def _unique(self) -> CriteriaSet:
        seen: set[str] = set()
        for criterion in self.criteria:
            if criterion.id in seen:
                raise ValueError(f"two criteria have the id {criterion.id!r}")
            seen.add(criterion.id)
        return self

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex) of the criteria in order."""
        return content_hash([c.sha256 for c in self.criteria])
