"""The judge of an escalation: the first member that is confident enough decides."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, cell_key
from agenteval.records import CallRecord, Criterion, Failure, Result, Score, Source
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store
from agenteval.utility.panel_rules import level_of

UNDECIDED = "unscored:undecided"
NEVER = math.inf  # the threshold of a judge that decides nothing


@dataclass(frozen=True)
class ConfidentAnswer:
    """The level that a judge gives a cell, and its confidence from 0 to 1."""

    label: str
    confidence: float
    score: Score


def confident_answer(
    results: Sequence[Result], criterion: Criterion, repeats: int
) -> ConfidentAnswer | Failure | None:
    """Return a judge's answer over its repeats; None if it gives no level.

    The confidence is the mean probability of the level if the judge returns probabilities, else the
    share of repeats with this level; failed repeats count against it. Ties go to the worse
    level. An infrastructure failure is returned, because it says nothing about the run.
    """
    broken = next((r for r in results if isinstance(r, Failure) and r.retry_on_resume), None)
    if broken is not None:
        return broken
    masses: defaultdict[str, float] = defaultdict(float)
    by_label: dict[str, Score] = {}
    for score in results:
        label = level_of(criterion, score.label, score.value) if isinstance(score, Score) else None
        if isinstance(score, Score) and label is not None:
            by_label.setdefault(label, score)
            for level, mass in (score.probabilities or {label: 1.0}).items():
                masses[level] += mass / repeats
    if not by_label:
        return None
    rank = criterion.accepted_values.index
    label = min(by_label, key=lambda level: (-round(masses[level], 9), rank(level)))
    return ConfidentAnswer(label, min(1.0, round(masses[label], 9)), by_label[label])


class EscalatingJudge:
    """Gives the answer of the first member that is confident enough, from stored results.

    `thresholds` has the confidence from which each member decides, by criterion id.
    """

    def __init__(
        self,
        members: Mapping[str, Source],
        thresholds: Mapping[str, tuple[float, ...]],
        repeats: int,
        store: Store | None,
    ) -> None:
        self.members, self.thresholds = members, thresholds
        self.repeats, self.store = repeats, store
        shown: dict[str, Any] = {
            name: [None if t == NEVER else t for t in values] for name, values in thresholds.items()
        }
        self.source = Source(
            evaluator="utility.escalation",
            version=1,
            model=" then ".join(members),
            parameters={
                "members": [source.sha256 for source in members.values()],
                "thresholds": shown,
                "repeats": repeats,
            },
            seed=next(iter(members.values())).seed,
        )

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return all criteria together."""
        return [tuple(criteria)] if criteria else []

    def answers(
        self, number: int, item: str, criteria: Sequence[Criterion]
    ) -> dict[str, ConfidentAnswer | Failure | None]:
        """Return the available answers of a member (by number) for an original (key), by criterion
        id."""
        assert self.store is not None, "only a source is made without a store"
        source = [*self.members.values()][number].sha256
        by_criterion: dict[str, list[Result]] = {}
        for result in self.store.results(source, variant=ORIGINAL, item=item):
            if result.key.repeat < self.repeats:
                by_criterion.setdefault(result.key.criterion, []).append(result)
        return {
            c.id: confident_answer(by_criterion[c.sha256], c, self.repeats)
            for c in criteria
            if c.sha256 in by_criterion
        }

    def may_decide(self, number: int, criterion: Criterion) -> bool:
        """Return whether a member could decide; True before labels say so."""
        thresholds = self.thresholds[criterion.id]
        return number >= len(thresholds) or thresholds[number] != NEVER

    def decides(self, number: int, criterion: Criterion, answer: object) -> bool:
        """Return whether this answer of a member counts."""
        if not isinstance(answer, ConfidentAnswer):
            return False
        return bool(criterion.judge) or answer.confidence >= self.thresholds[criterion.id][number]

    def undecided(self, item: str, criteria: Sequence[Criterion]) -> set[str]:
        """Return the criteria (ids) that the first member leaves to the second."""
        answers = self.answers(0, item, criteria)
        return {
            c.id
            for c in criteria
            if not isinstance(answer := answers.get(c.id), Failure)
            and not self.decides(0, c, answer)
        }

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one result per criterion, with the judge that decided and its confidence; a
        Failure (`unscored:undecided`) where a person should decide. Raises StoreError."""
        answers = [
            self.answers(number, unit.view.sha256, unit.criteria)
            for number in range(len(self.members))
        ]
        results = tuple(
            self._result(unit, criterion, [of_member.get(criterion.id) for of_member in answers])
            for criterion in unit.criteria
        )
        return Outcome(results, CallRecord(shown=tuple(c.id for c in unit.criteria)))

    def _result(
        self,
        unit: JudgeUnit,
        criterion: Criterion,
        answers: Sequence[ConfidentAnswer | Failure | None],
    ) -> Result:
        key, reasons = cell_key(unit, criterion, self.source.sha256), []
        for number, (name, answer) in enumerate(zip(self.members, answers, strict=True)):
            if isinstance(answer, Failure):
                message = f"{name}: {answer.message}"[:500]
                return answer.model_copy(update={"key": key, "message": message})
            if answer is not None and self.decides(number, criterion, answer):
                score, about = answer.score, f"{name} ({answer.confidence:.2f})"
                by = {"decided_by": name, "confidence": answer.confidence}
                return score.model_copy(
                    update={
                        "key": key,
                        "label": answer.label,
                        "value": criterion.value_of(answer.label),
                        "explanation": ": ".join(filter(None, (about, score.explanation))),
                        "evidence": {**score.evidence, **by},
                    }
                )
            if answer is not None:
                reasons.append(f"{name} says {answer.label}, confidence {answer.confidence:.2f}")
            elif self.may_decide(number, criterion):
                reasons.append(f"{name} gave no answer")
        why = f" ({'; '.join(reasons)})" if reasons else ""
        return Failure(
            key=key,
            criterion_id=criterion.id,
            status=UNDECIDED,
            message=f"undecided, a person should decide{why}",
        )
