"""One predicted turn against the recorded one, and the figures of many (strict mode).

Tool precision, recall and F1, parameter precision, recall and F1, node accuracy and response score
of arXiv 2406.14884, with these rules: names are compared as they are, JSON may stand over several
lines, an empty value ("", [], {}, null) states nothing on either side, parameters are credited
only when the tool is right (and beside it whatever the tool), 0/0 is undefined, and what only a
judge could decide counts as undecided until one has.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import Field

from agenteval.records import FailureStatus, Record
from agenteval.stats import Interval, bootstrap_mean
from agenteval.workflows.equality import Decision, Equality, Judgement, decided
from agenteval.workflows.rates import MatchCounts, Rates, Resampling, rates
from agenteval.workflows.response_judge import ResponseVerdict
from agenteval.workflows.scenario import Action, RecordedSession
from agenteval.workflows.session import Prediction
from agenteval.workflows.values import filled


class GoldTurn(Record):
    """What a recorded agent did at one turn: it called a tool (`action`) or replied (`response`).

    `turn` is the index of the turn in its session, which is also the number of turns before it:
    the history. `node` and `intent` are None where the recording does not say.
    """

    session: str
    turn: int = Field(ge=0)
    scenario: str = ""
    action: Action | None = None
    response: str = ""
    node: str | None = None
    intent: str | None = None


class TurnVerdict(Record):
    """What is right in one predicted turn.

    `call` is None where gold or prediction is no call; a call where a reply was due is `wrong`.
    `parameters` are the judgements of the gold parameters that were given, whatever tool was
    called; `gold_parameters` and `given_parameters` count those that state something, at turns
    where a call was due. `arguments_unreadable`: they were no JSON object. `further` counts calls
    asked for beside the first one. `node_right` is None where the agent, or gold, names none.
    """

    session: str
    turn: int = Field(ge=0)
    scenario: str = ""
    form: Literal["call", "reply", "unreadable"]
    gold_call: bool
    call: Decision | None = None
    name_right: bool | None = None
    gold_parameters: int = Field(default=0, ge=0)
    given_parameters: int = Field(default=0, ge=0)
    parameters: tuple[Judgement, ...] = ()
    arguments_unreadable: bool = False
    further: int = Field(default=0, ge=0)
    gold_node: bool = False
    node_right: bool | None = None


class TurnFailure(Record):
    """A turn without a prediction, because an endpoint or adapter failed. It is in no figure."""

    session: str
    turn: int = Field(ge=0)
    scenario: str = ""
    status: FailureStatus
    message: str = ""


def gold_turns(session: RecordedSession) -> tuple[GoldTurn, ...]:
    """Every call and reply of a recorded session, with the index of its turn."""
    turns = []
    for i, turn in enumerate(session.turns):
        if turn.kind == "user":
            continue
        action = Action(tool=turn.tool, arguments=turn.arguments) if turn.kind == "call" else None
        turns.append(
            GoldTurn(
                session=session.id,
                turn=i,
                scenario=turn.scenario,
                action=action,
                response=turn.text if turn.kind == "reply" else "",
                node=turn.node,
                intent=turn.intent,
            )
        )
    return tuple(turns)


async def score_turn(gold: GoldTurn, prediction: Prediction, equality: Equality) -> TurnVerdict:
    """The verdict on one prediction. Raises what `Equality.compare` raises."""
    node_right = None
    if gold.node is not None and prediction.node is not None:
        node_right = gold.node.strip().casefold() == prediction.node.strip().casefold()
    verdict = TurnVerdict(
        session=gold.session,
        turn=gold.turn,
        scenario=gold.scenario,
        form=prediction.form,
        gold_call=gold.action is not None,
        further=len(prediction.further),
        gold_node=gold.node is not None,
        node_right=node_right,
    )
    if gold.action is None:
        wrong = {"call": "wrong"} if prediction.form == "call" else {}
        return verdict.model_copy(update=wrong)
    wanted = filled(gold.action.arguments)
    if prediction.form != "call":
        return verdict.model_copy(update={"gold_parameters": len(wanted)})
    given = filled(prediction.arguments)
    readable = prediction.arguments is None or isinstance(prediction.arguments, dict)
    tool = gold.action.tool
    judged = await asyncio.gather(
        *(equality.compare(tool, key, wanted[key], given[key]) for key in wanted if key in given)
    )
    name_right = prediction.tool.strip() == tool.strip()
    whole = name_right and readable and len(judged) == len(wanted)
    return verdict.model_copy(
        update={
            "call": decided(judged) if whole else "wrong",
            "name_right": name_right,
            "gold_parameters": len(wanted),
            "given_parameters": len(given),
            "parameters": tuple(judged),
            "arguments_unreadable": not readable,
        }
    )


@dataclass(frozen=True)
class NodeAccuracy:
    """Share of turns with the gold node, among those that name one; `turns` have a gold node."""

    accuracy: Interval
    turns: int


@dataclass(frozen=True)
class ResponseMean:
    """Mean grade from 0 to 10 over graded replies; `failures` by status.

    `due` counts turns where gold replies, `no_reply` those where the agent did not: they have no
    grade, and are not in the mean.
    """

    mean: Interval
    due: int
    no_reply: int
    failures: dict[str, int]


@dataclass(frozen=True)
class TurnTable:
    """The figures of many turns.

    `parameters` are credited only when the tool is the right one, `parameters_free` whatever the
    tool. `unreadable` predictions count as no call. `failures` are turns without a prediction, by
    status: in no figure. `response` is None where nothing was graded.
    """

    turns: int
    sessions: int
    tool: Rates
    parameters: Rates
    parameters_free: Rates
    node: NodeAccuracy
    response: ResponseMean | None
    unreadable: int
    arguments_unreadable: int
    further: int
    failures: dict[str, int]


def turn_table(
    verdicts: Sequence[TurnVerdict | TurnFailure],
    grades: Sequence[ResponseVerdict | None] | None = None,
    how: Resampling | None = None,
) -> TurnTable:
    """The figures of all turns; intervals resample sessions.

    `grades` has one entry for each verdict, None where nothing was graded. Raises ValueError for
    another number of them.
    """
    how = how or Resampling()
    known = [v for v in verdicts if isinstance(v, TurnVerdict)]
    cases = [v.session for v in known]
    lost: Counter[str] = Counter(v.status for v in verdicts if isinstance(v, TurnFailure))
    return TurnTable(
        turns=len(known),
        sessions=len(set(cases)),
        tool=rates([_tool(v) for v in known], cases, how),
        parameters=rates([_parameters(v, free=False) for v in known], cases, how),
        parameters_free=rates([_parameters(v, free=True) for v in known], cases, how),
        node=_nodes(known, how),
        response=None if grades is None else _responses(verdicts, grades, how),
        unreadable=sum(v.form == "unreadable" for v in known),
        arguments_unreadable=sum(v.arguments_unreadable for v in known),
        further=sum(v.further for v in known),
        failures=dict(lost),
    )


def _tool(verdict: TurnVerdict) -> MatchCounts:
    return MatchCounts(
        right=int(verdict.call == "right"),
        undecided=int(verdict.call == "undecided"),
        predicted=int(verdict.form == "call"),
        gold=int(verdict.gold_call),
    )


def _parameters(verdict: TurnVerdict, *, free: bool) -> MatchCounts:
    verdicts = Counter(one.verdict for one in verdict.parameters if free or verdict.name_right)
    return MatchCounts(
        right=verdicts["equal"],
        undecided=verdicts["unjudged"],
        predicted=verdict.given_parameters,
        gold=verdict.gold_parameters,
    )


def _nodes(known: Sequence[TurnVerdict], how: Resampling) -> NodeAccuracy:
    named = [v for v in known if v.node_right is not None]
    values = [float(bool(v.node_right)) for v in named]
    share = bootstrap_mean(values, [v.session for v in named], how=how.bootstrap())
    return NodeAccuracy(share, sum(v.gold_node for v in known))


def _responses(
    verdicts: Sequence[TurnVerdict | TurnFailure],
    grades: Sequence[ResponseVerdict | None],
    how: Resampling,
) -> ResponseMean:
    rows = list(zip(verdicts, grades, strict=True))
    scored = [(g.score, v.session) for v, g in rows if g is not None and g.score is not None]
    mean = bootstrap_mean([s for s, _ in scored], [c for _, c in scored], how=how.bootstrap())
    due = [v for v in verdicts if isinstance(v, TurnVerdict) and not v.gold_call]
    failures: Counter[str] = Counter(
        g.status for g in grades if g is not None and g.status is not None
    )
    return ResponseMean(mean, len(due), sum(v.form != "reply" for v in due), dict(failures))
