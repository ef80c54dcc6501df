"""Judges of pairs: a chat model, or a Python function."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.engine.judging import JudgeUnit
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.wire import NONCE, Request
from agenteval.records import Criterion, Task, content_hash
from agenteval.utility.pairwise.pairs import OVERALL
from agenteval.utility.quantifier import (
    Quantifier,
    QuantifierOptions,
    reply_schema,
    request_about,
    sampling,
    shown_texts,
)

EVALUATOR = "utility.pairwise"


class PairQuantifier(Quantifier):
    """Asks a chat model which of two responses is better. Replies are read as the quantifier's.

    The order of the two is the caller's; the names of the systems are not shown.
    """

    def __init__(
        self, client: Client, task: Task, options: QuantifierOptions | None = None
    ) -> None:
        super().__init__(client, task, options)
        names = "pairwise_system", "pairwise_user", "pairwise_criterion", "quantifier_repair"
        prompts = [load_prompt("agenteval.utility", name) for name in names]
        self._system, self._user, self._entry, self._repair = prompts
        changed = {"evaluator": EVALUATOR, "prompt_sha256": content_hash([p.sha256 for p in prompts])}
        self.source = self.source.model_copy(update=changed)

    def request(self, unit: JudgeUnit) -> tuple[Request, tuple[str, ...]]:
        """Return the request about a pair, and the criteria in the order shown."""
        shown = self._order(unit)
        first, second = (message.content for message in unit.run.messages)
        values = {
            "nonce": NONCE,
            "overall": unit.criteria == (OVERALL,),
            "task_name": self.task.name,
            "task_description": self.task.description,
            "criteria": "\n".join(self._described(unit, shown)),
            "problem": unit.view.problem,
            "first": first,
            "second": second,
            "reference": unit.view.reference,
            "ids": [path for path, _ in shown],
        }
        request = request_about(
            unit,
            shown,
            shown_texts(unit),
            messages=(
                {"role": "system", "content": self._system.render(**values)},
                {"role": "user", "content": self._user.render(**values)},
            ),
            schema=reply_schema(shown),
            parameters=sampling(self.options, unit),
            role="pairwise",
        )
        return request, tuple(path for path, _ in shown)
