"""The embedded judge: grades conciseness by length if no chat model is available.

A small local model cannot grade: the labels that it picks carry no signal, and text likelihoods do
not transfer to tasks outside the calibration set (measured by `benchmarks/embedded`). Only
conciseness can be graded, by length. Every other criterion is a Failure with the measured reason,
never a number. No model is loaded.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, cell_key
from agenteval.records import CallRecord, Criterion, Result, Score, Source, content_hash
from agenteval.utility.answers import NoAnswer, result_of
from agenteval.utility.bank import load_bank
from agenteval.utility.sentences import split_sentences

MIN_SENTENCES = 2
NORMAL = 1.702  # a logistic function with this slope is within .01 of the normal CDF
NOT_MEASURED = "it only grades conciseness, by length; nothing else has been validated"
_WORD = re.compile(r"\w+(?:['’.,-]\w+)*")

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CriterionKind:
    """Whether one kind of criterion is supported, and why.

    `center` and `scale` are mean and standard deviation of its statistic on the development set.
    """

    name: str
    supported: bool
    reason: str
    statistic: str = ""
    center: float = 0.0
    scale: float = 1.0

    def value(self, statistic: float) -> float:
        """Return a value in [0, 1] that increases with the statistic: roughly the share of texts in
        the development set (half of them damaged) with a lower statistic."""
        return 1 / (1 + math.exp(-NORMAL * (statistic - self.center) / self.scale))


_CONSTANTS = files("agenteval.utility").joinpath("data/embedded_judge.json")


@cache
def load_kinds() -> Mapping[str, CriterionKind]:
    """Return the measured kinds by the id of their concept in the bank.

    `data/embedded_judge.json` is written by `benchmarks/embedded --write`; its constants come from
    a development set that does not overlap with `tasks/`.
    """
    record = json.loads(_CONSTANTS.read_bytes())
    return {name: CriterionKind(name, **entry) for name, entry in record["kinds"].items()}


@dataclass(frozen=True)
class Prose:
    """The system's own prose, without headings, tool results, calls and code.

    `words` has the number of words per sentence, `keys` a hash of each sentence without case and
    digits.
    """

    words: Counts
    keys: tuple[int, ...]

    def shortness(self, counts: Counts | None = None) -> float:
        """Return minus the log of the number of words, with each sentence weighted by `counts`
        (default 1) and scaled to the number of sentences. Raises ValueError if there are none."""
        counts = np.ones_like(self.words) if counts is None else counts
        return -math.log(float((self.words * counts).sum() * len(counts) / counts.sum()))

    def draw(self, seed: int, repeat: int) -> Counts:
        """Draw the weight of each sentence in one repeat: a Poisson bootstrap (Oza, Russell 2001).

        A weight is drawn from Poisson(1) by seed, repeat and the sentence's wording, so a text and
        its damaged copy weight shared sentences equally. If all weights are 0, all are set to 1.
        """
        counts = [int(np.random.default_rng([seed, repeat, key]).poisson()) for key in self.keys]
        return np.array(counts if any(counts) else [1] * len(self.keys), dtype=np.int64)


def read_prose(text: str) -> Prose:
    """Return the prose of a trajectory, without sentences that have no words."""
    shown = [text[s.start : s.end] for s in split_sentences(text) if s.prose]
    spoken = [(sentence, n) for sentence in shown if (n := len(_WORD.findall(sentence)))]
    keys = (re.sub(r"\d", "#", " ".join(s.casefold().split())) for s, _ in spoken)
    return Prose(
        np.array([n for _, n in spoken], dtype=np.int64),
        tuple(int(content_hash(key)[:16], 16) for key in keys),
    )


class EmbeddedJudge:
    """Grades conciseness by length; every other criterion is unsupported, with the reason.

    Each repeat, including the first, resamples the sentences, because their selection is the
    uncertain part of a run's length. The reference is never used.
    """

    def __init__(self, *, seed: int = 0) -> None:
        self.kinds = load_kinds()
        self.source = Source(
            evaluator="utility.embedded",
            version=1,
            model="embedded (length)",
            parameters={"constants": hashlib.sha256(_CONSTANTS.read_bytes()).hexdigest()},
            seed=seed,
        )

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return all criteria in one batch."""
        return [tuple(criteria)] if criteria else []

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one result per criterion."""
        prose = read_prose(unit.view.trajectory)
        results = tuple(self._result(unit, c, prose) for c in unit.criteria)
        return Outcome(results, CallRecord(shown=tuple(c.id for c in unit.criteria)))

    def _result(self, unit: JudgeUnit, criterion: Criterion, prose: Prose) -> Result:
        """Score a criterion. All parts get the same value, so every aggregation rule gives that
        value; if a part is unsupported, so is the criterion."""
        key = cell_key(unit, criterion, self.source.sha256)
        if why := self._unsupported(criterion, prose):
            message = f"unsupported by this judge: {why}"
            return result_of(criterion, key, NoAnswer("unscored:unsupported", message))
        if criterion.sub_criteria:
            parts = [self._result(unit, part, prose) for part in criterion.sub_criteria]
            scores = [part for part in parts if isinstance(part, Score)]
            by_part: dict[str, JsonValue] = {s.criterion_id: s.evidence for s in scores}
            value = scores[0].value
            return Score(key=key, criterion_id=criterion.id, value=value, evidence=by_part)
        raw = prose.shortness(prose.draw(self.source.seed, unit.repeat))
        grade = round(self._kind(criterion).value(raw), 6)
        level = level_of(grade, criterion.accepted_values)
        evidence: dict[str, JsonValue] = {
            "words": int(prose.words.sum()),
            "sentences": len(prose.words),
            "words_of_this_repeat": round(math.exp(-raw), 3),
        }
        return Score(
            key=key, criterion_id=criterion.id, label=level, value=grade, evidence=evidence
        )

    def _unsupported(self, criterion: Criterion, prose: Prose) -> str | None:
        """Return why the criterion cannot be scored, or None."""
        if criterion.sub_criteria:
            parts = ((part, self._unsupported(part, prose)) for part in criterion.sub_criteria)
            return next((f"{part.id}: {why}" for part, why in parts if why), None)
        if criterion.scale not in ("ordinal", "binary") or criterion.order != "worst_to_best":
            return "it can only use ordered levels"
        kind = self._kind(criterion)
        few = len(prose.words) < MIN_SENTENCES
        short = f"the run has {len(prose.words)} sentence(s) of prose" if few else None
        return short if kind.supported else kind.reason

    def _kind(self, criterion: Criterion) -> CriterionKind:
        concept = criterion.provenance.concept or named_concept(criterion) or ""
        return self.kinds.get(concept) or CriterionKind(concept, False, NOT_MEASURED)


def named_concept(criterion: Criterion) -> str | None:
    """Return the id of the bank concept with the same id or name as the criterion (ignoring case,
    hyphens and spacing), or None."""

    def folded(*names: str) -> set[str]:
        return {" ".join(name.casefold().replace("-", " ").split()) for name in names}

    labels = folded(criterion.id, criterion.name)
    for concept in load_bank():
        if labels & folded(concept.id, *(name for name, _ in concept.phrasings)):
            return concept.id
    return None


def level_of(value: float, accepted_values: Sequence[str]) -> str:
    """Return the accepted value (worst to best) with rank / (levels - 1) closest to `value`.

    Ties go to the better level. Raises ValueError outside [0, 1].
    """
    if not 0 <= value <= 1:
        raise ValueError(f"value {value} is not in [0, 1]")
    return accepted_values[math.floor(value * (len(accepted_values) - 1) + 0.5)]
