"""Scores rows of FlowBench's format: strictly, or as the published scripts count."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from agenteval.errors import Filtered, InputError, ReplyError, TooLong, Transient
from agenteval.evaluators.workflows import published as reference
from agenteval.evaluators.workflows.equality import Equality, Judgement, Question, TextJudge
from agenteval.evaluators.workflows.flowbench_rows import SessionRow, TurnRow
from agenteval.evaluators.workflows.published import (
    ERROR,
    Asked,
    ReferenceCounts,
    ReferenceTurn,
    TurnCounts,
)
from agenteval.evaluators.workflows.rates import Resampling
from agenteval.evaluators.workflows.reply_text import read_reply
from agenteval.evaluators.workflows.response_judge import Reply, ResponseVerdict
from agenteval.evaluators.workflows.session_judge import (
    GoalsFailure,
    GoalsTable,
    GoalsVerdict,
    SessionText,
    goals_table,
)
from agenteval.evaluators.workflows.session_score import (
    SessionCounts,
    SessionTable,
    score_session,
    session_table,
)
from agenteval.evaluators.workflows.turn_score import (
    TurnFailure,
    TurnTable,
    TurnVerdict,
    score_turn,
    turn_table,
)
from agenteval.evaluators.workflows.verdicts import Judges
from agenteval.records import Usage, canonical_json

_AT_ONCE = 256  # rows in work; the client bounds the requests
# Results have no repr of their contents: asyncio.run writes out what its task returns.


@dataclass(frozen=True, repr=False)
class TurnScores:
    """Figures of turns, and everything they were made from; grades stand beside the verdicts."""

    table: TurnTable
    verdicts: tuple[TurnVerdict | TurnFailure, ...]
    grades: tuple[ResponseVerdict | None, ...] | None
    judgements: tuple[Judgement, ...]
    usage: Usage


@dataclass(frozen=True, repr=False)
class SessionScores:
    """Figures of sessions, and everything they were made from."""

    table: SessionTable
    counts: tuple[SessionCounts, ...]
    goals_table: GoalsTable | None
    goals: tuple[GoalsVerdict | GoalsFailure, ...] | None
    judgements: tuple[Judgement, ...]
    usage: Usage


async def score_turn_rows(
    rows: Sequence[TurnRow], judges: Judges, how: Resampling, workflow: str = ""
) -> TurnScores:
    """The strict figures of turns. `workflow` is the text for rows that have none of their own;
    replies without it are not graded. Raises Unauthorized for a refused key."""
    equalities = _Equalities(judges.equality)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(
        row: TurnRow,
    ) -> tuple[TurnVerdict | TurnFailure, ResponseVerdict | None]:
        async with slots:
            gold = row.gold
            if ERROR in row.predict:
                return TurnFailure(
                    session=gold.session, turn=gold.turn, scenario=gold.scenario,
                    status="error:infrastructure", message=row.predict[:500],
                ), None  # fmt: skip
            prediction = read_reply(row.predict)
            verdict = await score_turn(gold, prediction, equalities.of(row.schemas))
            text = row.workflow or workflow
            grading = judges.response is not None and text and gold.response.strip()
            if not grading or gold.action is not None or prediction.form != "reply":
                return verdict, None
            assert judges.response is not None
            asked = Reply(prediction.response, gold.response, text, row.history)
            return verdict, await judges.response.grade(asked)

    scored = await asyncio.gather(*(one(row) for row in rows))
    verdicts = tuple(verdict for verdict, _ in scored)
    grades = tuple(grade for _, grade in scored)
    graded = grades if any(grade is not None for grade in grades) else None
    usage = sum((g.usage for g in grades if g is not None), equalities.usage)
    return TurnScores(turn_table(verdicts, graded, how), verdicts, graded, equalities.log, usage)


async def score_session_rows(
    rows: Sequence[SessionRow], judges: Judges, how: Resampling, workflow: str = ""
) -> SessionScores:
    """The strict figures of sessions; goals are judged where a judge, the text of the workflow
    and what the user wanted are there. Raises Unauthorized for a refused key."""
    equalities = _Equalities(judges.equality)
    slots = asyncio.Semaphore(_AT_ONCE)

    async def one(row: SessionRow) -> tuple[SessionCounts, GoalsVerdict | GoalsFailure | None]:
        async with slots:
            equality = equalities.of(row.schemas)
            counts = await score_session(row.id, row.gold, row.calls, equality)
            text = row.workflow or workflow
            if judges.session is None or not row.wanted.strip() or not text:
                return counts, None
            session = SessionText(row.dialogue, text, wanted=row.wanted)
            return counts, await judges.session.judge(session)

    scored = await asyncio.gather(*(one(row) for row in rows))
    counts = tuple(one for one, _ in scored)
    judged = tuple(goals for _, goals in scored if goals is not None)
    cases = [c.session for (c, goals) in scored if goals is not None]
    return SessionScores(
        session_table(counts, [c.session for c in counts], how),
        counts,
        goals_table(judged, cases, how) if judged else None,
        judged or None,
        equalities.log,
        sum((g.usage for g in judged), equalities.usage),
    )


@dataclass(frozen=True, repr=False)
class Published:
    """Sums as the published scripts make them: with every open answer of the judge taken as no,
    and as yes. They are the same where the judge answered all, or was not needed. `open` counts
    the answers that are missing."""

    turns: tuple[TurnCounts, TurnCounts] | None = None
    sessions: tuple[tuple[ReferenceCounts, ...], tuple[ReferenceCounts, ...]] | None = None
    open: int = 0


async def published_turn_rows(rows: Sequence[TurnRow], judge: TextJudge | None) -> Published:
    """Turn level as published. Raises InputError at the row where the script would stop."""
    answers = _Answers(judge)
    sums = []
    for otherwise in ("no", "yes"):
        total = TurnCounts()
        for row in rows:
            turn = ReferenceTurn(row.action, row.action_input, row.predict, row.prompt)
            try:
                total = total + await reference.score_turns([turn], answers.or_else(otherwise))
            except ValueError as error:
                raise InputError(f"the published script stops here: {error}", row.where) from error
        sums.append(total)
    return Published(turns=(sums[0], sums[1]), open=answers.open)


async def published_session_rows(
    rows: Sequence[SessionRow], judge: TextJudge | None, *, as_released: bool
) -> Published:
    """Session level as published, with repaired imports or as it was released."""
    answers = _Answers(judge)
    sums = []
    for otherwise in ("no", "yes"):
        asking = answers.or_else(otherwise)
        scored = [
            await reference.score_session(
                row.gold_text, row.dialogue, asking, published=as_released
            )
            for row in rows
        ]
        sums.append(tuple(scored))
    return Published(sessions=(sums[0], sums[1]), open=answers.open)


class _Equalities:
    """One Equality for each toolbox: tools of one name differ between scenarios."""

    def __init__(self, judge: TextJudge | None) -> None:
        self._judge = judge
        self._made: dict[str, Equality] = {}

    def of(self, schemas: dict[str, dict[str, JsonValue]]) -> Equality:
        """The one of these schemas."""
        return self._made.setdefault(canonical_json(schemas), Equality(schemas, self._judge))

    @property
    def log(self) -> tuple[Judgement, ...]:
        """All judgements."""
        return tuple(one for equality in self._made.values() for one in equality.log)

    @property
    def usage(self) -> Usage:
        """What the judge took."""
        return sum((one.usage for one in self._made.values()), Usage())


class _Answers:
    """The judge's word on each question, asked once; None where there is none."""

    def __init__(self, judge: TextJudge | None) -> None:
        self._judge = judge
        self._known: dict[Asked, str | None] = {}

    @property
    def open(self) -> int:
        """Questions without an answer."""
        return sum(answer is None for answer in self._known.values())

    def or_else(self, otherwise: str) -> Callable[[Asked], Awaitable[str]]:
        """A judge as the published scripts ask it, with this word for what is open."""

        async def asking(asked: Asked) -> str:
            if asked not in self._known:
                self._known[asked] = await self._ask(asked)
            return self._known[asked] or otherwise

        return asking

    async def _ask(self, asked: Asked) -> str | None:
        if self._judge is None:
            return None
        tool = asked.api.partition("\n")[0].removeprefix("API:").strip()
        question = Question(tool, asked.parameter, asked.api, asked.gold, asked.given)
        try:
            equal, _ = (await self._judge.same(question)).value
        except (ReplyError, Filtered, Transient, TooLong):
            return None  # counted as open: both words are tried
        return "yes" if equal else "no"
