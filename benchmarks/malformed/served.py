"""The corpus through the whole path: loopback server, client, quantifier, repair, store."""

from __future__ import annotations

import asyncio
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.engine import Experiment
from agenteval.models.factory import ModelChoice, make_client
from agenteval.models.limits import Limits
from agenteval.readers import make_view
from agenteval.records import Criterion, Result, Run, Score, Task
from agenteval.store import Store
from agenteval.testing.thread import serve
from agenteval.utility.evaluator import JudgeEvaluator
from agenteval.utility.quantifier import Quantifier, QuantifierOptions
from benchmarks.malformed.corpus import Row

TASK = Task(name="sums", description="Add numbers.")
_NAMED = re.compile(r"This is answer number (\d+)\.")


class Stored(NamedTuple):
    """What stands in the store for one criterion of one row, and how many requests were made."""

    row: int
    criterion: str
    result: Result


def serve_rows(
    rows: Sequence[Sequence[tuple[str, str]]],
    asked: Sequence[tuple[Criterion, ...]],
    folder: Path,
    *,
    repair: bool,
) -> tuple[list[Stored], dict[int, int]]:
    """Everything stored, and requests by row.

    `rows` holds for each row the (reply, finish reason) of the first request, the second and so
    on; the last one is repeated. `asked` are the criteria of each row.
    """
    counted: dict[int, int] = defaultdict(int)

    def answer(body: dict[str, Any], _: int) -> dict[str, Any]:
        found = _NAMED.search(body["messages"][1]["content"])
        assert found is not None
        number = int(found[1])
        text, finish = rows[number][min(counted[number], len(rows[number]) - 1)]
        counted[number] += 1
        choice = {"index": 0, "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        return {
            "id": f"reply-{number}",
            "object": "chat.completion",
            "created": 0,
            "model": "m",
            "choices": [choice | {"finish_reason": finish}],
            "usage": usage,
        }

    with serve(answer, record=0) as server, Store(folder / "replies.db") as store:
        stored = asyncio.run(_judge(server.base_url, asked, store, repair))
    return stored, dict(counted)


async def _judge(
    url: str, asked: Sequence[tuple[Criterion, ...]], store: Store, repair: bool
) -> list[Stored]:
    """Judge every row, those with the same criteria in one plan; read the store again."""
    client = make_client(ModelChoice("chat", "m", "openai", url, "none"), Limits(), store)
    judge = Quantifier(client, TASK, QuantifierOptions(repair=repair))
    groups: dict[tuple[str, ...], list[int]] = defaultdict(list)
    for number, criteria in enumerate(asked):
        groups[tuple(c.id for c in criteria)].append(number)
    numbers: dict[str, int] = {}
    try:
        for members in groups.values():
            items = [(run := _run(number), make_view(run)) for number in members]
            numbers |= {view.sha256: n for (_, view), n in zip(items, members, strict=True)}
            rated = JudgeEvaluator.of(judge, items, asked[members[0]], 1)
            ended = await Experiment(rated, store, concurrency=8).run()
            assert ended.stopped is None, ended.stopped
    finally:
        await client.close()
    found = store.results(judge.source.sha256)
    return [Stored(numbers[one.key.run], one.criterion_id, one) for one in found]


def _run(number: int) -> Run:
    text = f"This is answer number {number}. It shows each step and comes to a result."
    return Run(id=f"run-{number}", task="sums", input="What is 2 + 2?", output=text)


def differences(rows: Sequence[Row], stored: Iterable[Stored]) -> list[str]:
    """What stands in the store otherwise than the corpus says, and what is not there."""
    wrong = []
    left = {(n, c.id) for n, row in enumerate(rows) for c in row.criteria}
    for number, criterion, result in stored:
        row = rows[number]
        left.discard((number, criterion))
        want = _wanted(next(c for c in row.criteria if c.id == criterion), row.expect)
        got = _told(result)
        if got != want or result.rung != row.rung:
            wrong.append(f"{row.id} {criterion}: {got} ({result.rung}), not {want} ({row.rung})")
    return wrong + [f"{rows[n].id} {criterion}: not in the store" for n, criterion in sorted(left)]


def _wanted(criterion: Criterion, expect: dict[str, str]) -> str:
    """Of a criterion with parts: scored, or the first status that keeps it from being scored."""
    said = [expect[path] for path, _ in criterion.leaves()]
    if not criterion.sub_criteria:
        return said[0]
    return next((one for one in said if one.startswith("unscored:")), "scored")


def _told(result: Result) -> str:
    if isinstance(result, Score):
        return result.label if result.label is not None else result.status
    return result.status
