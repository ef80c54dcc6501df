"""Verdicts on sessions and on predicted turns: calls, final state, goals and procedure.

Precision, recall and F1 over sets of calls ignore order. `order_f1` is the F1 of the longest common
subsequence of tool names. WorFBench (Qiao et al., arXiv 2410.07869, section 3.3) scores chains of a
workflow by the longest increasing subsequence of the predicted nodes that were matched to gold
nodes by the similarity of their texts. Tools have names, so nodes match when the names are equal;
then the longest increasing subsequence of the best matching is the longest common subsequence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.models.client import Client
from agenteval.records import FailureStatus, Usage, canonical_json, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.workflows.cases import SessionCase, TurnCase
from agenteval.workflows.conformance import SessionReading, primary
from agenteval.workflows.equality import SPENT, Equality, Judgement
from agenteval.workflows.final_state import Gold, StateVerdict, gold_state, judged
from agenteval.workflows.judges import (
    EqualityJudge,
    GoalsVerdict,
    JudgeFailure,
    ModelJudge,
    ReplyToGrade,
    ResponseJudge,
    ResponseVerdict,
    SessionJudge,
    SessionText,
    dialogue_text,
)
from agenteval.workflows.procedure import Procedure, procedure
from agenteval.workflows.results import SessionVerdict, TurnJudged
from agenteval.workflows.scenario import Demand
from agenteval.workflows.scores import score_session, score_turn
from agenteval.workflows.session import ENDS, DecidedBy, Prediction, SessionLog

VERSION = 6  # of the rules of a verdict


@dataclass(frozen=True, slots=True)
class Judges:
    """Judges for cases that rules cannot decide; each is optional. `name` is that of their model.
    `demand` is the requirement of success on the final state, or None to use that of each role."""

    name: str | None = None
    demand: Demand | None = None
    equality: EqualityJudge | None = None
    session: SessionJudge | None = None
    response: ResponseJudge | None = None

    @classmethod
    def on(
        cls,
        client: Client,
        temperature: float | None = 0.0,
        seed: int = 0,
        demand: Demand | None = None,
    ) -> Judges:
        """Return all of them on one model."""
        return cls(
            f"{client.address} {client.model}",
            demand,
            EqualityJudge(client, temperature, seed),
            SessionJudge(client, temperature, seed),
            ResponseJudge(client, temperature, seed),
        )

    def demand_of(self, case: SessionCase | TurnCase) -> Demand:
        """Return what success requires in a case."""
        return self.demand or case.of.role.success

    def key(self, case: SessionCase | TurnCase, failures: Sequence[FailureStatus] = ()) -> str:
        """Return the content hash (hex) of the rules, the judges and their prompts.

        If a judge failed because of the infrastructure, the verdict has a different key, so that
        the next run repeats it.
        """
        judges: tuple[ModelJudge | None, ...] = (self.equality, self.session, self.response)
        key = content_hash(
            {
                "version": VERSION,
                "judge": self.name,
                "prompts": {j.name: j.prompts_sha256() for j in judges if j is not None},
                "demand": self.demand_of(case),
            }
        )
        broken = any(status in INFRASTRUCTURE for status in failures)
        return content_hash([key, "a judge failed"]) if broken else key


@dataclass(slots=True)
class Verdicts:
    """Makes verdicts. Cases of one role share gold states, charts and value judgements."""

    judges: Judges = field(default_factory=Judges)
    _equal: dict[str, Equality] = field(default_factory=dict)
    _procedures: dict[tuple[str, tuple[str, ...]], Procedure | None] = field(default_factory=dict)
    _gold: dict[tuple[str, str], Gold] = field(default_factory=dict)

    @property
    def log(self) -> list[Judgement]:
        """Return every distinct decision on a pair of values."""
        return [judgement for equality in self._equal.values() for judgement in equality.log]

    def prepare(self, cases: Iterable[SessionCase]) -> int:
        """Return the number of users with whom an agent that does nothing succeeds.

        Raises InputError, before any session, for an unreadable chart or if the backend cannot
        execute the gold calls of a user.
        """
        idle = 0
        for case in cases:
            self._procedure(case)
            gold = self.gold_of(case)
            idle += gold is not None and gold.satisfied_by_inaction(self.judges.demand_of(case))
        return idle

    async def session(self, case: SessionCase, log: SessionLog) -> SessionVerdict:
        """Return the verdict on a session.

        Raises Unauthorized from a judge, InputError as `prepare`; other failures of a judge are
        reported in the verdict.
        """
        profile, walk = case.profile, self._procedure(case)
        reading = SessionReading(walk, profile.actions, log)
        equality, usage = self._equality(case), list[Usage]()
        SPENT.set(usage)
        counts = await score_session(case.info.id, profile.actions, reading.calls, equality)
        gold, demand = self.gold_of(case), self.judges.demand_of(case)
        state = None if gold is None else judged(gold, log, demand)
        goals: GoalsVerdict | JudgeFailure | None = None
        if self.judges.session is not None:
            texts = tuple(goal.text for goal in profile.goals)
            session = SessionText(dialogue_text(log.messages), case.workflow, texts)
            goals = await self.judges.session.judge(session)
        failures = _failed_on(equality, log) if counts.unjudged else []
        failures += [goals.status] if isinstance(goals, JudgeFailure) else []
        success, decided_by = _success(log, state, goals)
        deviations, followed = reading.deviations(), reading.followed
        progress = state.progress if state else getattr(goals, "progress", None)
        return SessionVerdict(
            success=success,
            decided_by=decided_by,
            demand=demand,
            progress=None if decided_by == "simulator" else progress,
            state_success=state.success if state else None,
            state_goals=state.goals if state else (),
            differences=state.reasons if state else (),
            judge=goals,
            right=counts.right,
            gold=counts.gold,
            generated=counts.generated,
            unjudged=counts.unjudged,
            sequence=order_f1([c.tool for c in log.calls], [a.tool for a in profile.actions]),
            charted=walk is not None,
            conforms=followed.conforms if log.calls and walk is not None else None,
            fitness=followed.fitness,
            deviations=deviations,
            cause=primary(deviations) if success is False else None,
            nodes=followed.nodes,
            edges=followed.edges,
            unchecked=followed.unchecked,
            failures=tuple(failures),
            usage=sum(usage, goals.usage if goals else Usage()),
        )

    async def turn(self, case: TurnCase, prediction: Prediction) -> TurnJudged:
        """Return the verdict on a predicted turn, with the grade of a reply if a judge grades it.

        Raises Unauthorized from a judge.
        """
        usage: list[Usage] = []
        SPENT.set(usage)
        verdict = await score_turn(case.gold, prediction, self._equality(case))
        grade: ResponseVerdict | None = None
        response = self.judges.response
        if response is not None and case.gold.action is None and prediction.form == "reply":
            before = dialogue_text(case.before)
            reply = ReplyToGrade(prediction.response, case.gold.response, case.workflow, before)
            grade = await response.grade(reply)
        failures = [
            parameter.status for parameter in verdict.parameters if parameter.status is not None
        ]
        failures += [grade.status] if grade and grade.status is not None else []
        return TurnJudged(
            turn=verdict.model_copy(update={"session": case.info.task}),
            grade=grade,
            failures=tuple(failures),
            usage=sum(usage, grade.usage if grade else Usage()),
        )

    def gold_of(self, case: SessionCase) -> Gold | None:
        """Return the result of the user's gold calls; None for a role without a backend."""
        if case.of.backend is None:
            return None
        key = case.info.id, case.info.version
        if key not in self._gold:
            begin = next((gold.begin for gold in self._gold.values()), None)
            self._gold[key] = gold_state(
                case.of.role, case.profile, case.of.backend, recorded=case.recorded, base=begin
            )
        return self._gold[key]

    def _equality(self, case: SessionCase | TurnCase) -> Equality:
        """Return the Equality of the role, or of the case's scenarios if scenarios of the role
        define a tool differently."""
        role, judge = case.of.role, self.judges.equality
        scope = case.given if role.conflicts else tuple(s.id for s in role.scenarios)
        key = canonical_json([role.sha256, *scope])
        if key not in self._equal:
            schemas: dict[str, Any] = {tool.name: tool.parameters for tool in role.tools_of(scope)}
            self._equal[key] = Equality(schemas, judge)
        return self._equal[key]

    def _procedure(self, case: SessionCase) -> Procedure | None:
        """Return the chart of the case's scenarios, None if one has none."""
        role, scenarios = case.of.role, case.given
        if (role.sha256, scenarios) not in self._procedures:
            charted = all(role.scenario(id).flowchart.strip() for id in scenarios)
            walk = procedure(role, scenarios) if charted else None
            self._procedures[role.sha256, scenarios] = walk
        return self._procedures[role.sha256, scenarios]


def _failed_on(equality: Equality, log: SessionLog) -> list[FailureStatus]:
    """Return the failures of the judge of values on arguments of this session's calls."""
    arguments = {
        canonical_json([call.tool, name, value])
        for call in log.calls
        if isinstance(call.arguments, dict)
        for name, value in call.arguments.items()
    }
    return [
        judgement.status
        for judgement in equality.log
        if judgement.status
        and canonical_json([judgement.tool, judgement.parameter, judgement.given]) in arguments
    ]


def _success(
    log: SessionLog, state: StateVerdict | None, judge: GoalsVerdict | JudgeFailure | None
) -> tuple[bool | None, DecidedBy | None]:
    # Regardless of the end: keeping only successes would raise the rate.
    if log.invalidated_by:
        return None, "simulator"
    if decided_by := ENDS[log.ended].decided_by:  # over a limit: a failure (arXiv 2406.14884)
        return False, decided_by
    if state is not None:
        return state.success, "state"
    if isinstance(judge, GoalsVerdict) and judge.success is not None:
        return judge.success, "judge"
    return None, None


def order_f1(predicted: Sequence[str], gold: Sequence[str]) -> float | None:
    """Return the F1 of the longest common subsequence of the names of tools called and due.

    2 common / (predicted + gold), None without either. Takes the product of the two lengths.
    """
    if not (predicted or gold):
        return None
    return 2 * longest_common(predicted, gold) / (len(predicted) + len(gold))


def longest_common(left: Sequence[str], right: Sequence[str]) -> int:
    """Return the length of the longest common subsequence (Wagner and Fischer 1974, by rows)."""
    row = [0] * (len(right) + 1)
    for a in left:
        diagonal = 0
        for at, b in enumerate(right, 1):
            above = row[at]
            row[at] = diagonal + 1 if a == b else max(above, row[at - 1])
            diagonal = above
    return row[-1]
