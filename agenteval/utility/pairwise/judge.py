"""Judges of pairs: a chat model, or a Python function."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from agenteval.analysis.rating_sources import PAIRWISE
from agenteval.engine import Outcome
from agenteval.engine.judging import JudgeUnit, cell_key
from agenteval.errors import InputError
from agenteval.models.client import Client
from agenteval.models.factory import Model, make_client
from agenteval.models.prompts import load_prompt
from agenteval.models.wire import Request
from agenteval.records import CallRecord, Message, Run, Score, Source, Task, content_hash
from agenteval.store import Store
from agenteval.utility.answers import LevelAnswer, NoAnswer
from agenteval.utility.function_judge import FunctionJudge, read_judgement
from agenteval.utility.judging import Judging
from agenteval.utility.pairwise.pairs import OVERALL
from agenteval.utility.quantifier import (
    RULE,
    Quantifier,
    QuantifierOptions,
    prompt_values,
    reply_schema,
    request_about,
    sampling,
)
from agenteval.utility.scorers import Scorer


class PairQuantifier(Quantifier):
    """Asks a chat model which of two responses is better. Replies are read as the quantifier's.

    The names of the systems are not shown. A degenerate response loses without a request, as in
    `quantify` it gets the worst level; two of them tie.
    """

    def __init__(
        self, client: Client, task: Task, options: QuantifierOptions | None = None
    ) -> None:
        super().__init__(client, task, options)
        names = "pairwise_system", "pairwise_user", "pairwise_criterion", "quantifier_repair"
        prompts = [load_prompt("agenteval.utility", name) for name in names]
        self._system, self._user, self._entry, self._repair = prompts
        self.source = self.source.model_copy(
            update={
                "evaluator": PAIRWISE,
                "prompt_sha256": content_hash([p.sha256 for p in prompts]),
                "parameters": {**self.source.parameters, "guard": RULE},
            }
        )

    def request(self, unit: JudgeUnit) -> tuple[Request, tuple[str, ...]]:
        """Return the request about a pair, and the criteria in the order shown."""
        shown = self._order(unit)
        first, second = (message.content for message in unit.run.messages)
        values: dict[str, Any] = {
            **prompt_values(self.task, unit),
            "overall": unit.criteria == (OVERALL,),
            "criteria": "\n".join(self._described(unit, shown)),
            "first": first,
            "second": second,
            "ids": [path for path, _ in shown],
        }
        request = request_about(
            unit,
            shown,
            messages=(
                {"role": "system", "content": self._system.render(**values)},
                {"role": "user", "content": self._user.render(**values)},
            ),
            schema=reply_schema(shown),
            parameters=sampling(self.options, unit),
            role="pairwise",
        )
        return request, tuple(path for path, _ in shown)

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one Score or Failure per criterion; raises the ModelError of a failed request."""
        return _outcome_by_rule(unit, self.source) or await super().evaluate(unit)


def _outcome_by_rule(unit: JudgeUnit, source: Source) -> Outcome | None:
    """Return the outcome of a pair with a degenerate response, None for any other pair."""
    reasons = unit.run.metadata["degenerate"]
    if not isinstance(reasons, list) or not any(reasons):
        return None
    label = "tie" if all(reasons) else "second" if reasons[0] else "first"
    evidence: dict[str, JsonValue] = {"rule": RULE, "reason": reasons}
    scores = tuple(
        Score(
            key=cell_key(unit, criterion, source.sha256),
            criterion_id=criterion.id,
            status="degenerate",
            label=label,
            value=criterion.value_of(label),
            evidence=evidence,
        )
        for criterion in unit.criteria
    )
    return Outcome(scores, CallRecord(shown=tuple(c.id for c in unit.criteria)))


class PairFunction(FunctionJudge):
    """Calls `function(first, second, criterion)` for each pair, order, criterion and repeat.

    `first` and `second` are runs with `input` and `output` as any judge sees them, and nothing
    else. The function returns "first", "second" or "tie", or a number from 0 (second) to 1
    (first), alone or with an explanation. As with `PairQuantifier`, a degenerate response loses
    without a call. See `FunctionJudge` for identity, failures and limits.
    """

    def __init__(self, function: Any, **options: Any) -> None:
        super().__init__(function, **options)
        parameters = {**self.source.parameters, "guard": RULE}
        self.source = self.source.model_copy(
            update={"evaluator": PAIRWISE, "parameters": parameters}
        )

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one result per criterion. Raises only errors of this package."""
        return _outcome_by_rule(unit, self.source) or await super().evaluate(unit)

    async def _answers(self, unit: JudgeUnit) -> list[LevelAnswer | NoAnswer]:
        def response(place: str, message: Message) -> Run:
            return Run(
                id=place,
                input=unit.view.problem,
                output=message.content,
                reference=unit.view.reference,
            )

        first, second = map(response, ("first", "second"), unit.run.messages)
        function: Any = self.function
        returned = [await self._called(function, first, second, c) for c in unit.criteria]
        return [
            r if isinstance(r, NoAnswer) else read_judgement(r, c)
            for r, c in zip(returned, unit.criteria, strict=True)
        ]


class PairJudging(Judging):
    """Runs, criteria and judge of `prefer`."""

    @classmethod
    def of(cls, judging: Judging, **changes: Any) -> PairJudging:
        """Return the same with a judge of pairs. Raises InputError for one that cannot compare."""
        changed = replace(judging, **changes)
        judge = cls(**{name: getattr(changed, name) for name in cls.__dataclass_fields__})
        if isinstance(judge.judge, Scorer) or judge.distributes:
            raise InputError("this judge rates single runs; it cannot compare two", "--model")
        if judge.choice is not None and judge.choice.kind == "embedded":
            raise InputError(
                "the embedded judge cannot compare two responses; choose a chat model", "--model"
            )
        if judge.recording is not None:
            what = "no comparisons are recorded for the task; use replay:FILE, or --verdicts FILE"
            raise InputError(what, "--model recorded")
        return judge

    def evaluator(
        self, store: Store | None, **changes: Any
    ) -> tuple[PairQuantifier | PairFunction, Client | None]:
        """Return the judge of pairs, and the client of a chat model."""
        judge: PairQuantifier | PairFunction
        if not isinstance(self.judge, Model):
            judge, client = PairFunction(self.judge, version=self.version, seed=self.seed), None
        else:
            assert self.choice is not None  # of a model
            client = make_client(self.choice, self.limits, store)
            judge = PairQuantifier(client, self.task, self._options(**changes))
        if store is not None:
            budget = self.limits.budget(store.usage(judge.source.sha256))
            (client or judge).budget = budget  # type: ignore[union-attr]
        return judge, client
