"""The embedded judge: grades conciseness by length when no model that can judge is available.

A small local model cannot grade: labels that it picks carry no signal, and no likelihood of a text
under it grades a kind of criterion on tasks that it was not calibrated on (`benchmarks/embedded`
states the rule and measures it). What holds is length: conciseness. Everything else is a Failure
with the measured reason, never a number. No model is loaded.
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
NORMAL = 1.702  # the logistic with this slope is within .01 of the normal distribution function
NOT_MEASURED = "it only grades conciseness, by length; nothing else has been validated"
_WORD = re.compile(r"\w+(?:['’.,-]\w+)*")

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class CriterionKind:
    """Properties of one kind of criterion: whether it is offered, and the reason in words.

    `center` and `scale` are mean and standard deviation of its statistic on the development set.
    """

    name: str
    supported: bool
    reason: str
    statistic: str = ""
    center: float = 0.0
    scale: float = 1.0

    def value(self, statistic: float) -> float:
        """Value in [0, 1], strictly increasing in the statistic: about the share of the texts of
        the development set, half of them damaged, that have a lower one."""
        return 1 / (1 + math.exp(-NORMAL * (statistic - self.center) / self.scale))


_CONSTANTS = files("agenteval.utility").joinpath("data/embedded_judge.json")


@cache
def load_kinds() -> Mapping[str, CriterionKind]:
    """The kinds that were measured, by the id of their concept in the bank.

    `data/embedded_judge.json` is written by `benchmarks/embedded --write`; its constants come from
    a development set that shares nothing with `tasks/`.
    """
    record = json.loads(_CONSTANTS.read_bytes())
    return {name: CriterionKind(name, **entry) for name, entry in record["kinds"].items()}


@dataclass(frozen=True)
class Prose:
    """The system's own prose: headings, tool results, calls and code are left out.

    `words` are counted for each sentence; a key stands for its wording, without case and digits.
    """

    words: Counts
    keys: tuple[int, ...]

    def shortness(self, counts: Counts | None = None) -> float:
        """Minus the log of the number of words, every sentence counted once or as often as `counts`
        says, scaled to the number of sentences. Raises ValueError without a word."""
        counts = np.ones_like(self.words) if counts is None else counts
        return -math.log(float((self.words * counts).sum() * len(counts) / counts.sum()))

    def draw(self, seed: int, repeat: int) -> Counts:
        """How often each sentence counts in one repeat: a Poisson bootstrap (Oza and Russell 2001).

        A count is drawn from Poisson(1) by seed, repeat and the wording of the sentence, so a text
        and its damaged copy weigh what they share alike. If no sentence comes up, all count once.
        """
        counts = [int(np.random.default_rng([seed, repeat, key]).poisson()) for key in self.keys]
        return np.array(counts if any(counts) else [1] * len(self.keys), dtype=np.int64)


def read_prose(text: str) -> Prose:
    """The prose of a trajectory. Sentences without a word are not counted."""
    shown = [text[s.start : s.end] for s in split_sentences(text) if s.prose]
    spoken = [(sentence, n) for sentence in shown if (n := len(_WORD.findall(sentence)))]
    keys = (re.sub(r"\d", "#", " ".join(s.casefold().split())) for s, _ in spoken)
    return Prose(
        np.array([n for _, n in spoken], dtype=np.int64),
        tuple(int(content_hash(key)[:16], 16) for key in keys),
    )


class EmbeddedJudge:
    """Grades conciseness by length; every other criterion is unsupported, with the reason.

    What is uncertain is which sentences a run happened to have: every repeat, the first included,
    weighs them anew. The reference of a view is never used.
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
        """All criteria in one batch."""
        return [tuple(criteria)] if criteria else []

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one result per criterion."""
        prose = read_prose(unit.view.trajectory)
        results = tuple(self._result(unit, c, prose) for c in unit.criteria)
        return Outcome(results, CallRecord(shown=tuple(c.id for c in unit.criteria)))

    def _result(self, unit: JudgeUnit, criterion: Criterion, prose: Prose) -> Result:
        """The length grades every part alike, so any rule of aggregation gives that value; a part
        without a score leaves the whole unscored."""
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
        """Why it has no score; None if it has one."""
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
    """Return the id of the bank concept whose id or name is the criterion's id or name (case,
    hyphens and spacing aside); None without one."""

    def folded(*names: str) -> set[str]:
        return {" ".join(name.casefold().replace("-", " ").split()) for name in names}

    labels = folded(criterion.id, criterion.name)
    for concept in load_bank():
        if labels & folded(concept.id, *(name for name, _ in concept.phrasings)):
            return concept.id
    return None


def level_of(value: float, accepted_values: Sequence[str]) -> str:
    """Return the accepted value (worst to best) whose rank over levels - 1 is nearest to `value`.

    Half-way values go to the better level. Raises ValueError outside [0, 1].
    """
    if not 0 <= value <= 1:
        raise ValueError(f"value {value} is not in [0, 1]")
    return accepted_values[math.floor(value * (len(accepted_values) - 1) + 0.5)]
