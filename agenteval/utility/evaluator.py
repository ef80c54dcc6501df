"""A judge as an evaluator of the engine: texts × criteria × repeats, split into calls.

`Renamed` is a judge with extra parameters in its source.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from agenteval.engine import Outcome, RequestBounds, Requests, Unit
from agenteval.engine import judging as base
from agenteval.engine.judging import RunJudge
from agenteval.models.asking import MOST_REQUESTS
from agenteval.records import CallRecord, Criterion, Run, Source, Usage, View, content_hash
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store
from agenteval.utility.rubrics import MOST_ITEMS, parts_of

Item = tuple[Run, View]


def rubrics_of(items: Sequence[Item]) -> tuple[Criterion, ...]:
    """Return the distinct rubrics of the runs."""
    rubrics = (run.rubric for run, _ in items if run.rubric is not None)
    return tuple({rubric.sha256: rubric for rubric in rubrics}.values())


@dataclass(frozen=True)
class JudgeEvaluator:
    """A judge on some texts: `variants` are (variant, runs as the judge sees them), in order.

    Every run is rated on `shared_criteria`, and on its rubric if it has one. Duplicate texts and
    criteria are rated once. Experiments with the same judge and task may run at the same time if
    they have different `extra_lock`.
    """

    judge: RunJudge
    variants: Sequence[tuple[str, Sequence[Item]]]
    shared_criteria: Sequence[Criterion]
    repeats: int
    extra_lock: str = ""

    noun: ClassVar[str] = "call"
    grace: ClassVar[float | None] = None  # let running calls finish, because they are paid for
    system_key: ClassVar[str] = ""
    sends_by_client: ClassVar[bool] = True

    @classmethod
    def of(
        cls,
        judge: RunJudge,
        items: Sequence[Item],
        criteria: Sequence[Criterion],
        repeats: int = 1,
        extra_lock: str = "",
    ) -> JudgeEvaluator:
        """Return the judge on unchanged runs."""
        return cls(judge, ((ORIGINAL, items),), criteria, repeats, extra_lock)

    @cached_property
    def source(self) -> Source:
        """Everything about the judge that can change an answer."""
        return self.judge.source

    @cached_property
    def source_key(self) -> str:
        """Content hash of the source."""
        return self.source.sha256

    @property
    def items(self) -> list[Item]:
        """All texts, in order."""
        return [item for _, items in self.variants for item in items]

    @cached_property
    def lock(self) -> str:
        """Hash of judge and task, so that no second process does the same work."""
        task = next((run.task for run, _ in self.items), "")
        lock = content_hash([self.source_key, task])
        return content_hash([lock, self.extra_lock]) if self.extra_lock else lock

    @cached_property
    def _shared(self) -> tuple[Criterion, ...]:
        return tuple({c.sha256: c for c in self.shared_criteria}.values())

    @cached_property
    def criteria(self) -> tuple[Criterion, ...]:
        """The distinct criteria of all runs; rubrics are last."""
        return (*self._shared, *rubrics_of(self.items))

    @cached_property
    def _texts(self) -> list[tuple[str, dict[str, Item]]]:
        """Each variant with its texts by key."""
        return [
            (name, {view.sha256: (run, view) for run, view in items})
            for name, items in self.variants
        ]

    @property
    def cells(self) -> int:
        """Number of texts × their criteria × repeats."""
        return sum(len(unit.criteria) for unit in self.units())

    def units(self) -> Iterator[Unit[Item]]:
        """Yield a unit for each variant, repeat and text, in this order."""
        for variant, texts in self._texts:
            for repeat in range(self.repeats):
                for key, item in texts.items():
                    rubric = item[0].rubric
                    criteria = self._shared if rubric is None else (*self._shared, rubric)
                    if criteria:
                        yield Unit(key, item, criteria, repeat, variant)

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return the criteria of each call of the judge."""
        return self.judge.batches(criteria)

    def is_current(self, unit: Unit[Item], check_key: str | None) -> bool:
        """Return True: ratings have no separate verdicts that could be outdated."""
        return True

    def register(self, store: Store) -> list[str]:
        """Store texts, criteria and source, and update stored ratings to the current order of the
        criteria. Returns a line for each criterion with a changed order."""
        changed = store.relabel(self.criteria)
        store.register(self.items, self.criteria, self.source)
        return [relabelled.line for relabelled in changed]

    def requests(self, unit: Unit[Item]) -> Requests:
        """Return one request and one repair for each part of a rubric."""
        most = 1 if self.source.parameters.get("one_per_call") else MOST_ITEMS
        count = len(parts_of(unit.criteria, most))
        return {"judge": RequestBounds(count, MOST_REQUESTS * count)}

    def failure(self, unit: Unit[Item], message: str, usage: Usage) -> Outcome:
        """Return a failure for each criterion; the message names the run."""
        run, view = unit.content
        call = base.JudgeUnit(run, view, unit.criteria, unit.repeat, unit.variant, unit.attempt)
        record = CallRecord(
            shown=tuple(c.id for c in unit.criteria), usage=usage, attempts=usage.requests
        )
        message = f"run {run.id}: {message}"
        outcome = base.fail_all(call, self.source_key, "error:infrastructure", message, record)
        return replace(outcome, attempt=unit.attempt)

    def __getstate__(self) -> dict[str, Any]:
        """Drop the texts: other processes evaluate units but do not list them."""
        state = {name: value for name, value in self.__dict__.items() if name != "_texts"}
        return {**state, "variants": ()}

    async def evaluate(self, unit: Unit[Item]) -> Outcome:
        """Return the judge's results for one call; errors become Failures. Raises only Unauthorized
        and StoreError."""
        run, view = unit.content
        call = base.JudgeUnit(run, view, unit.criteria, unit.repeat, unit.variant, unit.attempt)
        outcome = await base.judge(self.judge, call)
        return replace(outcome, attempt=unit.attempt) if unit.attempt else outcome


class Renamed:
    """Wraps a judge and adds parameters to its source; its requests are the inner judge's."""

    def __init__(self, inner: RunJudge, **parameters: str) -> None:
        self.inner = inner
        combined = {**inner.source.parameters, **parameters}
        self.source = inner.source.model_copy(update={"parameters": combined})

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return the batches of the inner judge."""
        return self.inner.batches(criteria)

    async def evaluate(self, unit: base.JudgeUnit) -> Outcome:
        """Return the inner judge's results with this judge's keys; raises what it raises."""
        outcome = await self.inner.evaluate(unit)
        results = tuple(
            type(r)(**{**vars(r), "key": base.cell_key(unit, c, self.source.sha256)})
            for c, r in zip(unit.criteria, outcome.results, strict=True)
        )
        return Outcome(results, outcome.call)
