"""agenteval flow score: predictions made elsewhere, in the row format of FlowBench."""

from __future__ import annotations

from collections.abc import Coroutine
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note, print_json, warn
from agenteval.cli.ending import REPLIES, say_interrupted, say_waiting
from agenteval.cli.job import make_limits
from agenteval.cli.outputs import check_record
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.flowbench_rows import Rows
    from agenteval.evaluators.workflows.flowbench_score import (
        Judges,
        Published,
        SessionScores,
        TurnScores,
    )
    from agenteval.models.client import Client
    from agenteval.models.limits import Limits


_T = TypeVar("_T")


class Level(StrEnum):
    """What a row is."""

    turn = "turn"
    session = "session"


Files = Annotated[
    list[Path], typer.Argument(help="Rows as a JSON list or JSON Lines; one file per scenario.")
]
Judge = Annotated[
    str | None,
    typer.Option(
        help="PROVIDER:MODEL that decides whether two values mean the same, and grades. "
        "Without it, what it would have to decide stays undecided.",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True)
class _Asked:
    model: str | None
    base_url: str | None
    temperature: float | None
    seed: int
    limits: Limits
    store: Path | None
    record: Path | None


def score(
    files: Files,
    level: Annotated[
        Level | None, typer.Option(help="What the rows are.", show_default="as the first row says")
    ] = None,
    reference: Annotated[
        bool,
        typer.Option("--reference", help="Count as the published scripts do, quirks included."),
    ] = False,
    published: Annotated[
        bool,
        typer.Option(
            "--published", help="With --reference, sessions: as released, its imports missing."
        ),
    ] = False,
    workflow: Annotated[
        Path | None,
        typer.Option(
            help="The workflow as text, for the judge of replies and goals; rows may "
            "hold it as workflow_text."
        ),
    ] = None,
    model: Judge = None,
    base_url: options.BaseUrl = None,
    temperature: options.Temperature = 0.0,
    seed: options.Seed = 0,
    resamples: Annotated[int, typer.Option(help="Resamples of each interval.", min=100)] = 2000,
    max_unscored: Annotated[
        float,
        typer.Option(help="Exit with 3 above this share undecided or failed.", min=0, max=1),
    ] = 0.1,
    store: options.StorePath = None,
    concurrency: options.Concurrency = 8,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    price_in: options.PriceIn = None,
    price_out: options.PriceOut = None,
    timeout: options.Timeout = 120.0,
    record: options.Record = None,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Score predictions against gold: tools, parameters, nodes, replies; or whole sessions."""
    Verbosity.level = -1 if quiet else Verbosity.level
    if published and not reference:
        raise InputError("this is a way of counting as published; give --reference too",
                         "--published")  # fmt: skip
    check_record(record, [*files, workflow], [], model, store=store)
    asked = _Asked(
        model, base_url, None if temperature is None or temperature < 0 else temperature, seed,
        make_limits(concurrency, max_calls, max_cost, price_in, price_out, timeout), store, record,
    )  # fmt: skip
    if asked.model is not None or asked.base_url is not None:
        _choice(asked)  # told before anything is read
    rows = _read(files, level)
    if published and rows.level == "turn":
        raise InputError("only the session script was released without its imports", "--published")
    text = _workflow_text(workflow)
    if reference:
        found = _run(_published(rows, asked, released=published))
        raise typer.Exit(_show_published(rows, found, max_unscored, as_json=as_json))
    scores = _run(_strict(rows, asked, text, resamples))
    raise typer.Exit(_show(rows, scores, max_unscored, as_json=as_json))


def _run(work: Coroutine[Any, Any, _T]) -> _T:
    import asyncio

    try:
        return asyncio.run(work)
    except KeyboardInterrupt:
        raise typer.Exit(say_interrupted(REPLIES)) from None


def _read(files: list[Path], level: Level | None) -> Rows:
    from agenteval.evaluators.workflows.flowbench_rows import pooled, read_rows

    found = [(path, read_rows(path, None if level is None else level.value)) for path in files]
    if len({rows.level for _, rows in found}) > 1:
        raise InputError("some files hold turns, others sessions; score them apart", "FILES")
    rows = pooled(found)
    note(f"{len(rows.turns) or len(rows.sessions)} {rows.level} rows read")
    return rows


def _workflow_text(path: Path | None) -> str:
    if path is None:
        return ""
    from agenteval.files import read_text

    return read_text(path)


def _choice(asked: _Asked) -> Any:
    from agenteval.models.factory import choose_model

    choice = choose_model(asked.model, asked.base_url)
    if choice.kind == "embedded":
        raise InputError("judging needs a chat model: PROVIDER:MODEL, or --base-url", "--model")
    return choice


class _Judging:
    """The judges as a context: the connections of their endpoint, and the store, end with it."""

    def __init__(self, asked: _Asked) -> None:
        self._asked = asked
        self._client: Client | None = None
        self._store: Any = None

    async def __aenter__(self) -> Judges:
        from agenteval.evaluators.workflows.flowbench_score import Judges

        if self._asked.model is None and self._asked.base_url is None:
            return Judges()
        from agenteval.evaluators.workflows.asked_judge import JudgeOptions
        from agenteval.evaluators.workflows.equality import EqualityJudge
        from agenteval.evaluators.workflows.response_judge import ResponseJudge
        from agenteval.evaluators.workflows.session_judge import SessionJudge
        from agenteval.models.factory import make_client
        from agenteval.store import Store, default_path

        choice = _choice(self._asked)
        self._store = Store(self._asked.store or default_path())
        limits = self._asked.limits
        client = make_client(choice, limits, self._store, record=self._asked.record)
        self._client = client

        def how(tokens: int) -> JudgeOptions:
            return JudgeOptions(self._asked.temperature, tokens, self._asked.seed)

        return Judges(
            EqualityJudge(client, how(512)),
            ResponseJudge(client, how(1024)),
            SessionJudge(client, how(2048)),
        )

    async def answered(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What `work` returns; at the first Ctrl-C the replies under way are waited for."""
        from agenteval.experiment import answered

        return await (work if self._client is None else answered(work, self._client, say_waiting))

    async def __aexit__(self, *error: object) -> None:
        if self._client is not None:
            await self._client.close()
        if self._store is not None:
            self._store.close()


async def _strict(
    rows: Rows, asked: _Asked, text: str, resamples: int
) -> TurnScores | SessionScores:
    from agenteval.evaluators.workflows.flowbench_score import score_session_rows, score_turn_rows
    from agenteval.evaluators.workflows.rates import Resampling

    how = Resampling(resamples, asked.seed)
    judging = _Judging(asked)
    async with judging as judges:
        if judges.response is not None and not text:
            told = sum(bool(row.workflow) for row in rows.turns)
            told += sum(bool(row.workflow) for row in rows.sessions)
            if told < len(rows.turns) + len(rows.sessions):
                note("replies and goals are judged only where the workflow is told: --workflow")
        if rows.level == "turn":
            return await judging.answered(score_turn_rows(rows.turns, judges, how, text))
        return await judging.answered(score_session_rows(rows.sessions, judges, how, text))


async def _published(rows: Rows, asked: _Asked, *, released: bool) -> Published:
    from agenteval.evaluators.workflows.flowbench_score import (
        published_session_rows,
        published_turn_rows,
    )

    judging = _Judging(asked)
    async with judging as judges:
        if rows.level == "turn":
            return await judging.answered(published_turn_rows(rows.turns, judges.equality))
        return await judging.answered(
            published_session_rows(rows.sessions, judges.equality, as_released=released)
        )


def _show(rows: Rows, scores: TurnScores | SessionScores, most: float, *, as_json: bool) -> int:
    from agenteval.cli import flow_score_table as tables
    from agenteval.cli.flags import row_flags, say

    flags = row_flags(rows)
    if as_json:
        print_json({**tables.scores_json(scores), "flagged": flags.json()})
    else:
        for table in tables.score_tables(scores):
            tables.show(table)
        say(flags)
    lost, of, what = tables.unscored(scores)
    if of and lost / of > most:
        warn(f"{lost} of {of} {what} are undecided or failed, more than --max-unscored allows")
        return 3
    return 0


def _show_published(rows: Rows, found: Published, most: float, *, as_json: bool) -> int:
    from agenteval.cli import flow_score_table as tables
    from agenteval.cli.flags import row_flags, say

    flags = row_flags(rows)
    if as_json:
        print_json({**tables.published_json(rows, found), "flagged": flags.json()})
    else:
        for table in tables.published_tables(rows, found):
            tables.show(table)
        say(flags)
    asked = len(rows.turns) or len(rows.sessions)
    if found.open / asked > most:
        warn(
            f"{found.open} questions to the judge are open, for {asked} rows: --model answers them"
        )
        return 3
    return 0
