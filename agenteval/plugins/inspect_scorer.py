"""Our criteria as a scorer of inspect, which knows it as `agenteval/quantify` (read: 0.3.285)."""

from __future__ import annotations

import asyncio
from math import nan
from statistics import fmean
from typing import Any

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from agenteval.models.limits import Limits
from agenteval.readers.inspect_log import message_parts
from agenteval.readers.messages import parse_messages
from agenteval.records import Run
from agenteval.utility.api import aquantify


@scorer(metrics={"*": [mean(), stderr()]})  # type: ignore[untyped-decorator]
def quantify(limits: dict[str, Any] | None = None, **settings: Any) -> Scorer:
    """A scorer with a value from 0 to 1 for each criterion; what could not be judged is NaN, which
    metrics leave out, and a sample without any value is `Score.unscored`.

    `settings` are those of `agenteval.quantify` and `limits` those of `agenteval.Limits`. The runs
    are called MODEL/ID:EPOCH; samples that wait for others are judged together.
    """
    lock, waiting, judged = asyncio.Lock(), dict[str, Run](), dict[str, Score]()

    async def judge() -> None:
        runs = list(waiting.values())
        report = await aquantify(runs, limits=Limits(**limits or {}), **settings)
        explanations = {
            (s.key.run, s.criterion_id, s.key.repeat): s.explanation for s in report.scores
        }
        for run in runs:
            ratings = [r for r in report.ratings if r.run_id == run.id]
            values: dict[str, list[float]] = {c.id: [] for c in report.criteria}
            complete = len(ratings) == len(values) * settings.get("repeats", 1)
            lines = [] if complete else list(report.unfinished)
            for r in ratings:
                values[r.criterion_id] += [] if r.value is None else [r.value]
                why = r.message or explanations.get((r.run_key, r.criterion_id, r.repeat)) or ""
                lines.append(f"{r.criterion_id}: {r.label or r.status}. {why}")
            failed = not complete or any(":" in r.status for r in ratings)
            more = {"explanation": "\n".join(lines), "reason": "grader_failed" if failed else None}
            means = {name: fmean(scores or [nan]) for name, scores in values.items()}
            scored = any(values.values())
            judged[run.id] = Score(value=means, **more) if scored else Score.unscored(**more)
            del waiting[run.id]

    async def score(state: TaskState, target: Target) -> Score:
        parts = [part for m in state.messages for part in message_parts(m.model_dump())]
        run = Run(
            id=f"{state.model}/{state.sample_id}:{state.epoch}",
            system=str(state.model),
            input=state.input_text,
            output=state.output.completion,
            reference=target.text or None,
            messages=tuple(parse_messages(parts, "messages", "the sample").messages),
        )
        waiting[run.id] = run
        async with lock:
            if run.id in waiting:
                await judge()
        return judged.pop(run.id)

    return score
