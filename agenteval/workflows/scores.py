"""The calls of sessions and of single turns against gold, and the figures of many turns.

The rules: names are compared exactly; JSON may span several lines; empty values ("", [], {}, null)
count as missing on both sides; additional parameters are ignored; values that need a judge stay
undecided until one has decided.

Calls of a session are matched one to one in any order, as many as possible (`equality.assigned`):
no call counts twice, and precision is at most 1. Turns give the tool and parameter precision,
recall and F1, node accuracy and response score of arXiv 2406.14884: parameters are credited only if
the tool is right (and separately with any tool), and 0/0 is undefined.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
from pydantic import Field

from agenteval.records import FailureStatus, Record
from agenteval.stats import Bootstrap, Interval, bootstrap_mean, bootstrap_sums
from agenteval.stats.bootstrap import Floats
from agenteval.workflows.equality import Decision, Equality, Judgement, assigned, decided, filled
from agenteval.workflows.judges import ResponseVerdict
from agenteval.workflows.procedure import Call
from agenteval.workflows.scenario import Action, RecordedSession
from agenteval.workflows.session import Prediction


@dataclass(frozen=True)
class Resampling:
    """Settings of intervals: cases are resampled with replacement, from `seed`, for each figure."""

    resamples: int = 2000
    seed: int = 0
    level: float = 0.95

    def bootstrap(self) -> Bootstrap:
        """Return a resampler that starts from the seed, so that figures do not depend on each
        other."""
        return Bootstrap(np.random.default_rng(self.seed), self.resamples, self.level)


@dataclass(frozen=True)
class Rate:
    """A share. `known` is that of decided units, with its interval; `low` and `high` count
    everything undecided as wrong and as right. None if the denominator is zero."""

    known: Interval
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Rates:
    """Total counts, and precision = right / predicted, recall = right / gold, F1 = 2 right /
    (predicted + gold), which is 2PR / (P + R)."""

    right: int
    undecided: int
    predicted: int
    gold: int
    precision: Rate
    recall: Rate
    f1: Rate


class MatchCounts(NamedTuple):
    """Counts of one unit. `undecided` ones are counted as both predicted and gold."""

    right: int = 0
    undecided: int = 0
    predicted: int = 0
    gold: int = 0


def rates(
    counts: Sequence[MatchCounts], cases: Sequence[Hashable], how: Resampling | None = None
) -> Rates:
    """Return the rates of all units together; intervals resample `cases` (one label per unit).

    Counts are summed, then divided. Undecided units (those that need a judge and have no decision)
    are excluded; the bounds count all of them as wrong and as right. Raises ValueError if labels
    and units differ in number.
    """
    how = how or Resampling()
    parts = np.array(counts, dtype=np.float64).reshape(len(counts), 4)
    right, undecided, predicted, gold = (int(x) for x in parts.sum(axis=0))

    def rate(weights: tuple[int, int]) -> Rate:
        """right · (sum of weights) over weights · (predicted, gold)."""
        share = float(sum(weights))

        def statistic(totals: Floats) -> Floats:
            below = totals[:, 2:] @ np.array(weights, dtype=np.float64) - share * totals[:, 1]
            rate = np.full(len(totals), np.nan)
            np.divide(share * totals[:, 0], below, out=rate, where=below > 0)
            return rate

        decided = bootstrap_sums(parts, statistic, list(cases), how=how.bootstrap())
        total = weights[0] * predicted + weights[1] * gold
        if not total:
            return Rate(decided, None, None)
        return Rate(decided, share * right / total, share * (right + undecided) / total)

    return Rates(right, undecided, predicted, gold, rate((1, 0)), rate((0, 1)), rate((1, 1)))


# ---- whole sessions ------------------------------------------------------------------------------


class SessionCounts(Record):
    """Counts of correct calls in a session.

    If values need a judge, calls are matched twice, counting all of these as different and as
    equal. `right` is the lower count, and `unjudged` the difference to the higher one. `pairs` are
    indices (gold, call) matched with decided values. `arguments_unreadable` counts calls whose
    arguments were not a JSON object.
    """

    session: str
    right: int = Field(ge=0)
    unjudged: int = Field(default=0, ge=0)
    generated: int = Field(ge=0)
    gold: int = Field(ge=0)
    pairs: tuple[tuple[int, int], ...] = ()
    arguments_unreadable: int = Field(default=0, ge=0)

    @property
    def matches(self) -> MatchCounts:
        """The counts for rates."""
        return MatchCounts(self.right, self.unjudged, self.generated, self.gold)


async def score_session(
    session: str, gold: Sequence[Action], calls: Sequence[Call], equality: Equality
) -> SessionCounts:
    """Return the counts of one session.

    The judge is asked only about pairs that no rule separates and that could increase the count.
    Raises what `Equality.compare` raises.
    """
    decisions = [[_by_rule(action, call, equality) for call in calls] for action in gold]
    sure, possible = _matched(decisions, "right"), _matched(decisions, "right", "undecided")
    for action, row in zip(gold, decisions, strict=True):
        expected = filled(action.arguments)
        for j, call in enumerate(calls):  # certain matches are logged too
            if row[j] == "right" or (row[j] == "undecided" and len(possible) > len(sure)):
                stated = filled(call.arguments)
                judged = [
                    await equality.compare(action.tool, k, expected[k], stated[k]) for k in expected
                ]
                row[j] = decided([judgement.verdict for judgement in judged])
    sure, possible = _matched(decisions, "right"), _matched(decisions, "right", "undecided")
    return SessionCounts(
        session=session,
        right=len(sure),
        unjudged=len(possible) - len(sure),
        generated=len(calls),
        gold=len(gold),
        pairs=tuple(sure),
        arguments_unreadable=sum(call.unreadable for call in calls),
    )


def _matched(decisions: Sequence[Sequence[Decision]], *taken: Decision) -> list[tuple[int, int]]:
    return assigned([[int(decision in taken) for decision in row] for row in decisions])


def _by_rule(gold: Action, call: Call, equality: Equality) -> Decision:
    expected, stated = filled(gold.arguments), filled(call.arguments)
    if gold.tool.strip() != call.tool.strip() or call.unreadable or expected.keys() - stated.keys():
        return "wrong"
    return decided(
        [equality.by_rule(gold.tool, k, expected[k], stated[k]).verdict for k in expected]
    )


# ---- single turns --------------------------------------------------------------------------------


class GoldTurn(Record):
    """The recorded agent's turn: a tool call (`action`) or a reply (`response`).

    `turn` is the index of the turn in its session, which is also the number of turns before it.
    `node` and `intent` are None if the recording does not state them.
    """

    session: str
    turn: int = Field(ge=0)
    scenario: str = ""
    action: Action | None = None
    response: str = ""
    node: str | None = None
    intent: str | None = None


class TurnVerdict(Record):
    """The scores of one predicted turn.

    `call` is None if gold or prediction is not a call; a call instead of a due reply is `wrong`.
    `parameters` are the judgements of the stated gold parameters, whichever tool was called;
    `gold_parameters` and `given_parameters` count non-empty ones at turns with a due call.
    `arguments_unreadable` means that they were not a JSON object. `further` counts calls besides
    the first one. `node_right` is None if the agent or gold does not name a node.
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
    """A turn without a prediction, because an endpoint or adapter failed. Excluded from all
    figures."""

    session: str
    turn: int = Field(ge=0)
    scenario: str = ""
    status: FailureStatus
    message: str = ""


def gold_turns(session: RecordedSession) -> tuple[GoldTurn, ...]:
    """Return every call and reply of a recorded session, with the index of its turn."""
    return tuple(
        GoldTurn(
            session=session.id,
            turn=i,
            scenario=turn.scenario,
            action=Action(tool=turn.tool, arguments=turn.arguments)
            if turn.kind == "call"
            else None,
            response=turn.text if turn.kind == "reply" else "",
            node=turn.node,
            intent=turn.intent,
        )
        for i, turn in enumerate(session.turns)
        if turn.kind != "user"
    )


async def score_turn(gold: GoldTurn, prediction: Prediction, equality: Equality) -> TurnVerdict:
    """Return the verdict on one prediction. Raises what `Equality.compare` raises."""
    verdict: dict[str, Any] = {}
    if gold.node is not None and prediction.node is not None:
        same = gold.node.strip().casefold() == prediction.node.strip().casefold()
        verdict["node_right"] = same
    called = prediction.form == "call"
    if gold.action is not None:
        expected, tool = filled(gold.action.arguments), gold.action.tool
        verdict["gold_parameters"] = len(expected)
        if called:
            stated = filled(prediction.arguments)
            readable = prediction.arguments is None or isinstance(prediction.arguments, dict)
            keys = [key for key in expected if key in stated]
            judged = await asyncio.gather(
                *(equality.compare(tool, key, expected[key], stated[key]) for key in keys)
            )
            name_right = prediction.tool.strip() == tool.strip()
            complete = name_right and readable and len(judged) == len(expected)
            verdict |= {
                "call": decided([j.verdict for j in judged]) if complete else "wrong",
                "name_right": name_right,
                "given_parameters": len(stated),
                "parameters": tuple(judged),
                "arguments_unreadable": not readable,
            }
    elif called:
        verdict["call"] = "wrong"
    return TurnVerdict(
        session=gold.session,
        turn=gold.turn,
        scenario=gold.scenario,
        form=prediction.form,
        gold_call=gold.action is not None,
        further=len(prediction.further),
        gold_node=gold.node is not None,
        **verdict,
    )


@dataclass(frozen=True)
class NodeAccuracy:
    """Share of turns with the gold node, among those that name one; `turns` have a gold node."""

    accuracy: Interval
    turns: int


@dataclass(frozen=True)
class ResponseMean:
    """Mean grade from 0 to 10 over graded replies; `failures` by status.

    `due` counts turns with a gold reply; `no_reply` counts those where the agent did not reply,
    which have no grade and are not in the mean.
    """

    mean: Interval
    due: int
    no_reply: int
    failures: dict[str, int]


@dataclass(frozen=True)
class TurnTable:
    """The figures of many turns.

    `parameters` are credited only if the tool is right, `parameters_free` with any tool.
    `unreadable` predictions count as no call. `failures` are turns without a prediction, by status;
    they are excluded. `response` is None if nothing was graded.
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
    """Return the figures of all turns; intervals resample sessions.

    `grades` has one entry for each verdict, None if it was not graded. Raises ValueError if their
    numbers differ.
    """
    how = how or Resampling()
    scored = [v for v in verdicts if isinstance(v, TurnVerdict)]
    cases = [v.session for v in scored]
    lost: Counter[str] = Counter(v.status for v in verdicts if isinstance(v, TurnFailure))
    calls = [
        MatchCounts(v.call == "right", v.call == "undecided", v.form == "call", v.gold_call)
        for v in scored
    ]
    with_node = [v for v in scored if v.node_right is not None]
    accuracy = bootstrap_mean(
        [float(v.node_right is True) for v in with_node],
        [v.session for v in with_node],
        how=how.bootstrap(),
    )
    return TurnTable(
        turns=len(scored),
        sessions=len(set(cases)),
        tool=rates(calls, cases, how),
        parameters=rates([_parameters(v, v.name_right is True) for v in scored], cases, how),
        parameters_free=rates([_parameters(v, True) for v in scored], cases, how),
        node=NodeAccuracy(accuracy, sum(v.gold_node for v in scored)),
        response=None if grades is None else _responses(verdicts, grades, how),
        unreadable=sum(v.form == "unreadable" for v in scored),
        arguments_unreadable=sum(v.arguments_unreadable for v in scored),
        further=sum(v.further for v in scored),
        failures=dict(lost),
    )


def _parameters(verdict: TurnVerdict, credited: bool) -> MatchCounts:
    verdicts = Counter(parameter.verdict for parameter in verdict.parameters if credited)
    return MatchCounts(
        verdicts["equal"], verdicts["unjudged"], verdict.given_parameters, verdict.gold_parameters
    )


def _responses(
    verdicts: Sequence[TurnVerdict | TurnFailure],
    grades: Sequence[ResponseVerdict | None],
    how: Resampling,
) -> ResponseMean:
    rows = [(g, v.session) for v, g in zip(verdicts, grades, strict=True) if g is not None]
    scored = [(g.score, session) for g, session in rows if g.score is not None]
    mean = bootstrap_mean([s for s, _ in scored], [c for _, c in scored], how=how.bootstrap())
    due = [v for v in verdicts if isinstance(v, TurnVerdict) and not v.gold_call]
    failures: Counter[str] = Counter(g.status for g, _ in rows if g.status is not None)
    return ResponseMean(mean, len(due), sum(v.form != "reply" for v in due), dict(failures))
