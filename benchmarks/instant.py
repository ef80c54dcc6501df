"""A judge that answers at once in this process: what is measured is everything but the network."""

from __future__ import annotations

import json
import resource
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.engine.judging import RunJudge
from agenteval.models.client import Client
from agenteval.models.limits import Limiter
from agenteval.models.wire import Reply, Request
from agenteval.readers.tasks import find_task
from agenteval.records import Criterion, Usage
from agenteval.store import Store
from agenteval.utility.quantifier import QuantifierOptions, chat_judge
from benchmarks.folders import ROOT

IN_FLIGHT = 64


@dataclass(slots=True)
class Instant:
    """A transport with one reply for all requests. `text` None: every request is an error."""

    text: str | None
    endpoint: str = "http://127.0.0.1/none"
    model: str = "test-model"
    sent: int = 0

    async def send(self, request: Request) -> Reply:
        """The reply. Raises AssertionError where nothing may be asked."""
        self.sent += 1
        if self.text is None:
            raise AssertionError(f"asked for {request.run_id}, whose reply is stored")
        usage = Usage(requests=1, prompt_tokens=900, completion_tokens=300)
        return Reply(text=self.text, usage=usage, mode="json_schema", model=self.model)

    async def close(self) -> None:
        """Nothing is open."""


def reply_text(criteria: Sequence[Criterion], explanation: str) -> str:
    """A reply in form: every criterion with this explanation and its second-best value."""
    return json.dumps(
        {c.id: {"explanation": explanation, "label": c.accepted_values[-2]} for c in criteria}
    )


def instant_judge(store: Store, transport: Instant) -> RunJudge:
    """The judge of the command line over this transport, with the store as its reply cache."""
    client = Client(transport, cache=store, limiter=Limiter(IN_FLIGHT), secret=store.secret)
    return chat_judge(client, find_task(str(ROOT / "tasks" / "math")).task, QuantifierOptions())


def peak_mb() -> float:
    """Most memory that this process has had so far, in MB (2^20 bytes)."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)


def scored(store: Store, evaluator: RunJudge) -> int:
    """Cells of the judge that hold a score."""
    states = store.states(evaluator.source.sha256)
    return sum(not state.failed for _, state in states)
