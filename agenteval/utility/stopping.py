"""Judge case by case, in random order, until a stopping rule is met."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from agenteval.analysis.rubrics import pooled
from agenteval.analysis.scores import scores_from_store
from agenteval.analysis.stopping import InterimAnalysis, Until
from agenteval.engine import ExperimentResult
from agenteval.engine.judging import RunJudge
from agenteval.store import Store
from agenteval.store.experiments import remark
from agenteval.store.rows import case_key
from agenteval.text import plural
from agenteval.utility.evaluator import Item, JudgeEvaluator
from agenteval.utility.judging import Judging

if TYPE_CHECKING:
    from agenteval.models.client import Client

FIRST, STEP = 10, 4  # cases before the first look; least between two where a case is one call


@dataclass(frozen=True)
class JudgedCases:
    """The judged cases, how the last experiment ended, and the last look with where it stopped."""

    rated: JudgeEvaluator
    result: ExperimentResult
    look: InterimAnalysis | None


def in_random_order(items: tuple[Item, ...], seed: int) -> dict[str, list[Item]]:
    """Return the runs of each case, cases in an order that depends on seed and runs alone."""
    cases: defaultdict[str, list[Item]] = defaultdict(list)
    for item in items:
        cases[case_key(item[0])].append(item)
    names = sorted(cases)
    random.Random(seed).shuffle(names)  # noqa: S311  not a secret
    return {name: cases[name] for name in names}


async def judge_until(
    judging: Judging, evaluator: RunJudge, client: Client | None, store: Store, until: Until
) -> JudgedCases:
    """Judge rounds of cases until the rule is met, all are judged, or the experiment has to stop.

    The same call continues it. Raises CancelledError when interrupted.
    """
    cases = in_random_order(judging.items, judging.seed)
    runs_a_case = len(judging.items) / max(len(cases), 1)
    step = max(STEP, round(2 * judging.limits.concurrency / (runs_a_case * judging.repeats)))
    look, line = None, ""
    try:
        for count in _counts(len(cases), step):
            items = tuple(item for name in list(cases)[:count] for item in cases[name])
            rated = JudgeEvaluator.of(evaluator, items, judging.criteria, judging.repeats)
            result = await judging.run_experiment(rated, client, store, announce=False)
            if result.stopped:
                return JudgedCases(rated, result, look)
            table = scores_from_store(
                store,
                evaluator.source.sha256,
                repeats=judging.repeats,
                criteria={c.sha256 for c in rated.criteria},
                runs={view.sha256 for _, view in items},
            )
            look = until.look(table, pooled(rated.criteria, items=False), list(cases))
            how_far = f"{count} of {plural(len(cases), 'case')} (order of seed {judging.seed})"
            if look.stop and count < len(cases):
                line = f"stopped after {how_far}: {look.reason}"
                break
            line = f"judged all of {plural(len(cases), 'case')}: {look.reason}"
            judging.watch.note(f"after {how_far}: {look.reason}")
    finally:
        if client is not None:
            await client.close()
    remark(store, evaluator.source.sha256, line)
    return JudgedCases(rated, result, replace(look, reason=line) if look else None)


def _counts(cases: int, step: int) -> Iterator[int]:
    """Yield the numbers of cases at which to look: 10, then 10% more each time, and all."""
    count = min(FIRST, cases)
    while count < cases:
        yield count
        count += max(step, count // 10)
    yield cases
