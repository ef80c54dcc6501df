"""All that is said of one session, and of one predicted turn.

Precision, recall and F1 over sets of calls do not see their order. The F1 of the longest common
subsequence of the tool names does. WorFBench (Qiao et al., arXiv 2410.07869, section 3.3) scores
chains of a workflow by the longest increasing subsequence of the predicted nodes that were matched
to gold nodes by the similarity of their texts. Tools have names, so nodes match when the names are
equal; the best matching then makes the longest increasing subsequence the longest common one.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.models.client import Client
from agenteval.records import FailureStatus, Usage, canonical_json, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.workflows.asked_judge import JudgeSampling, prompts_sha256
from agenteval.workflows.cases import SessionCase, TurnCase
from agenteval.workflows.causes import calls_of, causes, primary
from agenteval.workflows.conformance import Conformance, conform
from agenteval.workflows.equality import Equality, EqualityJudge, Schema, TextJudge
from agenteval.workflows.final_state import Gold, StateVerdict, gold_state, judged
from agenteval.workflows.procedure import Procedure, procedure
from agenteval.workflows.response_judge import (
    ReplyToGrade,
    ResponseJudge,
    ResponseVerdict,
)
from agenteval.workflows.results import SessionVerdict, TurnJudged
from agenteval.workflows.scenario import Demand, Role
from agenteval.workflows.session import Prediction, SessionLog
from agenteval.workflows.session_judge import (
    GoalsFailure,
    GoalsVerdict,
    SessionJudge,
    SessionText,
    dialogue_text,
)
from agenteval.workflows.session_score import score_session
from agenteval.workflows.turn_score import score_turn

VERSION = 5  # of the rules of a verdict
Decider = Literal["limit", "state", "judge", "simulator"]


@dataclass(frozen=True, slots=True)
class Judges:
    """Who decides what no rule can; each may be missing. `name` is that of their model. `demand` is
    what success asks of the final state, None for what each role says."""

    name: str | None = None
    demand: Demand | None = None
    equality: TextJudge | None = None
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
        """All of them on one model."""
        return cls(
            f"{client.address} {client.model}",
            demand,
            EqualityJudge(client, JudgeSampling(temperature, 512, seed)),
            SessionJudge(client, JudgeSampling(temperature, 2048, seed)),
            ResponseJudge(client, JudgeSampling(temperature, 1024, seed)),
        )

    def demand_of(self, case: SessionCase | TurnCase) -> Demand:
        """What success asks for in a case."""
        return self.demand or case.of.role.success

    def key(self, case: SessionCase | TurnCase) -> str:
        """Content hash (hex) of the rules, the judges and their prompts: of a whole verdict."""
        asked = {
            "equal": self.equality is not None,
            "session_judge": self.session is not None,
            "response": self.response is not None,
        }
        prompts: dict[str, JsonValue] = {
            name: prompts_sha256(name) for name, used in asked.items() if used
        }
        return content_hash(
            {
                "version": VERSION,
                "judge": self.name,
                "prompts": prompts,
                "demand": self.demand_of(case),
            }
        )

    def key_with(self, case: SessionCase | TurnCase, failures: Sequence[FailureStatus]) -> str:
        """The same, but another one where a judge failed for the infrastructure: such a verdict
        is good for what it says, and made anew when there is time."""
        broken = any(status in INFRASTRUCTURE for status in failures)
        key = self.key(case)
        return content_hash([key, "a judge failed"]) if broken else key


@dataclass(slots=True)
class Verdicts:
    """Makes verdicts, and keeps what was decided about pairs of values (see `Equality.log`)."""

    judges: Judges = field(default_factory=Judges)
    _equal: dict[str, Equality] = field(default_factory=dict)
    _procedures: dict[tuple[str, tuple[str, ...]], Procedure | None] = field(default_factory=dict)
    _gold: dict[tuple[str, str], Gold] = field(default_factory=dict)

    def equality(self, case: SessionCase | TurnCase) -> Equality:
        """The one that serves this case: one for a role, or for each scenario where its scenarios
        define a tool in two ways."""
        role = case.of.role
        scope = case.given if role.conflicts else tuple(s.id for s in role.scenarios)
        key = canonical_json([role.sha256, *scope])
        if key not in self._equal:
            self._equal[key] = Equality(schemas_of(role, scope), self.judges.equality)
        return self._equal[key]

    @property
    def equalities(self) -> tuple[Equality, ...]:
        """Those used so far."""
        return tuple(self._equal.values())

    def prepare(self, cases: Iterable[SessionCase]) -> int:
        """Return the number of users with whom an agent that does nothing has success.

        Raises InputError, before any session, for a chart outside the subset and for a user whose
        gold calls the backend does not carry out.
        """
        idle = 0
        for case in cases:
            self._procedure(case)
            gold = self.gold_of(case)
            idle += gold is not None and gold.satisfied_by_inaction(self.judges.demand_of(case))
        return idle

    async def session(self, case: SessionCase, log: SessionLog) -> SessionVerdict:
        """The verdict on a session. Raises Unauthorized from a judge, InputError as `prepare`; a
        judge's other failures are told in the verdict."""
        profile, walk, calls = case.profile, self._procedure(case), calls_of(log)
        equality = self.equality(case)
        counts = await score_session(case.info.id, profile.actions, calls, equality)
        gold = self.gold_of(case)
        demand = self.judges.demand_of(case)
        state = None if gold is None else judged(gold, log, demand)
        goals = await self._goals(case, log)
        failures = _failed_on(equality, log) if counts.unjudged else []
        failures += [goals.status] if isinstance(goals, GoalsFailure) else []
        success, decided_by = _success(log, state, goals)
        found = causes(walk, profile, log)
        # As in `causes`: gold sees the rest.
        reading = Conformance() if walk is None else conform(walk, calls, complete=False)
        progress = goals.progress if isinstance(goals, GoalsVerdict) else None
        progress = progress if state is None else state.progress
        return SessionVerdict(
            success=success,
            decided_by=decided_by,
            demand=demand,
            progress=None if decided_by == "simulator" else progress,
            state_success=state.success if state else None,
            state_goals=state.goals if state else (),
            differences=_differences(state) if state else (),
            judge=goals,
            right=counts.right,
            gold=counts.gold,
            generated=counts.generated,
            unjudged=counts.unjudged,
            sequence=order_f1([c.tool for c in log.calls], [a.tool for a in profile.actions]),
            charted=walk is not None,
            conforms=reading.conforms if log.calls and walk is not None else None,
            fitness=reading.fitness,
            deviations=found,
            cause=primary(found) if success is False else None,
            nodes=reading.nodes,
            edges=reading.edges,
            unchecked=reading.unchecked,
            failures=tuple(failures),
            usage=_taken(equality) + (goals.usage if goals else Usage()),
        )

    async def turn(self, case: TurnCase, prediction: Prediction) -> TurnJudged:
        """The verdict on a predicted turn, with the grade of a reply where a judge grades it.
        Raises Unauthorized from a judge."""
        equality = self.equality(case)
        verdict = await score_turn(case.gold, prediction, equality)
        grade: ResponseVerdict | None = None
        response = self.judges.response
        if response is not None and case.turn.kind == "reply" and prediction.form == "reply":
            before = dialogue_text(case.before)
            reply = ReplyToGrade(prediction.response, case.turn.text, case.workflow, before)
            grade = await response.grade(reply)
        failures = [one.status for one in verdict.parameters if one.status is not None]
        failures += [grade.status] if grade and grade.status is not None else []
        return TurnJudged(
            turn=verdict.model_copy(update={"session": case.info.task}),
            grade=grade,
            failures=tuple(failures),
            usage=_taken(equality) + (grade.usage if grade else Usage()),
        )

    def _procedure(self, case: SessionCase) -> Procedure | None:
        """None where a scenario has no chart."""
        role = case.of.role
        key = role.sha256, case.given
        if key not in self._procedures:
            self._procedures[key] = procedure(role, key[1]) if role.charted(key[1]) else None
        return self._procedures[key]

    def gold_of(self, case: SessionCase) -> Gold | None:
        """What the user's gold calls lead to; None for a role without a backend."""
        if case.of.backend is None:
            return None
        key = case.info.id, case.info.version
        if key not in self._gold:
            self._gold[key] = gold_state(
                case.of.role, case.profile, case.of.backend, recorded=case.recorded
            )
        return self._gold[key]

    async def _goals(
        self, case: SessionCase, log: SessionLog
    ) -> GoalsVerdict | GoalsFailure | None:
        if self.judges.session is None:
            return None
        goals = tuple(goal.text for goal in case.profile.goals)
        return await self.judges.session.judge(
            SessionText(dialogue_text(log.messages), case.workflow, goals)
        )


def _taken(equality: Equality) -> Usage:
    """What the judge of values took since this was last asked. Of verdicts under way at once the
    first to end is given what they all took by then: the sum is right."""
    taken, equality.usage = equality.usage, Usage()
    return taken


def _failed_on(equality: Equality, log: SessionLog) -> list[FailureStatus]:
    """How the judge of values failed on what this session's calls gave."""
    given = {
        canonical_json([call.tool, name, value])
        for call in log.calls
        if isinstance(call.arguments, dict)
        for name, value in call.arguments.items()
    }
    return [
        one.status
        for one in equality.log
        if one.status and canonical_json([one.tool, one.parameter, one.given]) in given
    ]


def most_pairs(case: SessionCase | TurnCase) -> int:
    """Pairs of texts that the judge of values can be asked about for one call of the agent: those
    of the due calls of one tool."""
    if isinstance(case, TurnCase):
        return len(_texts(case.turn.arguments)) if case.turn.kind == "call" else 0
    by_tool: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    for action in case.profile.actions:
        by_tool[action.tool.strip()] |= _texts(action.arguments)
    return max(map(len, by_tool.values()), default=0)


def _texts(value: JsonValue, path: str = "") -> set[tuple[str, str]]:
    """(path, text) of every text in arguments."""
    if isinstance(value, str):
        return {(path, value)} if value.strip() else set()
    items: Iterable[tuple[Any, JsonValue]] = ()
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
    return {text for key, inner in items for text in _texts(inner, f"{path}.{key}")}


def schemas_of(role: Role, scenarios: tuple[str, ...]) -> Mapping[str, Schema]:
    """The schemas of parameters by tool."""
    schemas: dict[str, Any] = {t.name: t.parameters for t in role.tools_of(scenarios)}
    return schemas


def _success(
    log: SessionLog, state: StateVerdict | None, judge: GoalsVerdict | GoalsFailure | None
) -> tuple[bool | None, Decider | None]:
    # Whichever way it ended: to keep the successes alone would raise the rate.
    if log.invalidated_by:
        return None, "simulator"
    if log.ended != "user":  # over a limit is a failure, whatever was done (section 9)
        return False, "limit"
    if state is not None:
        return state.success, "state"
    if isinstance(judge, GoalsVerdict) and judge.success is not None:
        return judge.success, "judge"
    return None, None


def _differences(state: StateVerdict) -> tuple[str, ...]:
    """In words: where the states differ, how many more places, what was never obtained, and what
    the user was not told."""
    more = (f"and {state.omitted:,} places more",) if state.omitted else ()
    never = (
        f"never obtained: {a.tool}({json.dumps(a.arguments, ensure_ascii=False)})"
        for a in state.unobtained
    )
    silent = (f"never told: {words}" for words in state.untold)
    return (*map(str, state.differences), *more, *never, *silent)


def order_f1(predicted: Sequence[str], gold: Sequence[str]) -> float | None:
    """F1 of the longest common subsequence of the names of tools called and due, None without
    either: 2 common / (predicted + gold). Time is the product of the two lengths."""
    if not (predicted or gold):
        return None
    return 2 * longest_common(predicted, gold) / (len(predicted) + len(gold))


def longest_common(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of the longest common subsequence (Wagner and Fischer 1974, by rows)."""
    row = [0] * (len(right) + 1)
    for a in left:
        diagonal = 0
        for at, b in enumerate(right, 1):
            above = row[at]
            row[at] = diagonal + 1 if a == b else max(above, row[at - 1])
            diagonal = above
    return row[-1]
