"""What `flow turn --dry-run` and `flow session --dry-run` say of agent and judges."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from agenteval.cli.dry_bill import Amount, Asked, Bill, of_requests, repaired
from agenteval.cli.dry_rehearsal import rehearsal

if TYPE_CHECKING:
    from agenteval.cli.flow_job import Campaign, FlowJob
    from agenteval.evaluators.workflows.scenario import Format
    from agenteval.evaluators.workflows.trials import Candidate, Case, Work
    from agenteval.models.client import Client
    from agenteval.store import Store

_REPLY = 200  # tokens of one reply of an agent, a call or some sentences
_LONGEST = 4096  # tokens that are reserved for a reply without --max-tokens
_ONE_PRICE = "one price is taken for all models that are asked"


@dataclass(frozen=True)
class Course:
    """How a case goes: `first` and `usual` estimate the agent's prompts (of its first request, and
    of all of them), `replies` its requests as it goes usually and at most, `calls` its calls."""

    first: Callable[[Case, Format], int]
    usual: Callable[[Case, Format], int]
    replies: Callable[[Case], tuple[int, int]] = lambda _: (1, 1)
    calls: int = 1


def bill(
    job: FlowJob,
    campaign: Campaign,
    course: Course,
    others: Callable[[Sequence[Work], Store], Iterable[Asked]] = lambda *_: (),
) -> Bill:
    """What would be asked; `others` are those beside agent and judge, for sessions to be held."""
    from agenteval.cli.flow_agents import candidate
    from agenteval.cli.flow_job import opened_store, plan_of
    from agenteval.evaluators.workflows.trials import open_work, spent
    from agenteval.evaluators.workflows.verdicts import Judges

    about: list[str] = []
    planned: list[tuple[Candidate, list[Work]]] = []
    with opened_store(job, dry=True) as store:
        client = _judge(job)
        key = (Judges() if client is None else Judges.on(client)).key
        for format in job.formats:
            one = candidate(job, format, campaign.conditions)
            work = open_work(
                store, campaign.level, campaign.cases, one, job.trials,
                check_key=key, retry_failed=job.retry_failed,
            )  # fmt: skip
            planned.append((one, work))
            about.append(f"{one.name}: {plan_of(job, campaign, work)}")
        new = [w for _, work in planned for w in work if w.stored is None]
        asked, notes = _agent(job, planned, course)
        asked += [one for one in others(new, store) if one.most.requests]
        if client is not None:
            every = [w for _, work in planned for w in work]
            judges = _Judged(client, store, campaign, every)
            asked += judges.sessions() if campaign.level == "session" else judges.replies()
            asked += judges.values(course.calls)
        before = spent(store, campaign.level, [one.sha256 for one, _ in planned])
    if job.limits.price is not None and len(asked) > 1:
        notes = (*notes, _ONE_PRICE)
    return Bill(f"flow {campaign.level}", tuple(about), tuple(asked), job.limits, before, notes)


def _judge(job: FlowJob) -> Client | None:
    """A client of the judge's names that asks nobody."""
    from agenteval.models.factory import make_client
    from agenteval.models.limits import Limits

    choice = job.judging()
    if choice is None:
        return None
    return rehearsal(make_client(choice, Limits(), None), None)[0]


def _agent(
    job: FlowJob, planned: Sequence[tuple[Candidate, Sequence[Work]]], course: Course
) -> tuple[list[Asked], tuple[str, ...]]:
    """The agent's requests; of one that is no model here nothing is known."""
    adapter: Any = planned[0][0].assistant.parameters.get("adapter")
    if adapter == "scripted":
        return [], ("the agent is a script: it asks nobody",)
    if adapter in ("python", "command", "mcp"):
        return [], ("the agent spends whatever it spends itself; none of it is counted here",)
    least, likely, most, largest = Amount(), Amount(), Amount(), 0
    for one, work in planned:
        for case in (w.case for w in work if w.stored is None):
            usual, longest = course.replies(case)
            least += Amount(1, course.first(case, one.format), None)
            likely += Amount(usual, course.usual(case, one.format), usual * _REPLY)
            largest = max(largest, 3 * course.first(case, one.format) + 400 * (usual - 1))
            known = course.first(case, one.format) if longest == 1 else None
            reply = None if job.max_tokens is None else longest * job.max_tokens
            most += Amount(longest, known, reply)
    why = "one request for each turn" if most.requests == least.requests else (
        "one for each reply to the user and each call: once a session at least, at most as many as "
        "--turns and --calls allow"
    )  # fmt: skip
    reserved = largest, job.max_tokens or _LONGEST
    return [Asked("agent", least, most, why, likely=likely, largest=reserved)], ()


@dataclass(frozen=True)
class _Judged:
    """What judges are asked of work: verdicts on what is to be done, and on what is stored."""

    client: Client
    store: Store
    campaign: Campaign
    work: Sequence[Work]

    def sessions(self) -> Iterator[Asked]:
        """One verdict on every session. Equal conversations are judged once."""
        from agenteval.evaluators.workflows.session_judge import SessionJudge

        least, keys, held = Amount(), set(), self._held()
        reply = 0
        for one in self.work:
            own, nobody = rehearsal(self.client, None if one.stored is None else self.store)
            asyncio.run(SessionJudge(own).judge(_session_text(one)))
            for request in nobody.asked:
                first, _ = of_requests([request])
                reply = max(reply, first.reply or 0)
                key = request.key(own.transport.endpoint, own.model)
                if key not in keys and not (one.stored is None and one.case.key in held):
                    least += replace(first, reply=None)
                keys.add(key)
        most = Amount(2 * len(self.work), None, 2 * len(self.work) * reply)
        if self.work:
            yield Asked(
                "judge of sessions", least, most,
                "one request for each session, none where the same conversation was judged "
                "before; one more for a reply out of form",
            )  # fmt: skip

    def _held(self) -> set[str]:
        """Keys of cases of which sessions are stored: their conversations may come again."""
        from agenteval.evaluators.workflows.stored import EVALUATORS
        from agenteval.store import Trials

        keys = {one.case.key for one in self.work if one.stored is None}
        found = Trials(self.store).trials(EVALUATORS[self.campaign.level], keys)
        return {trial.case_key for trial in found if trial.status == "done"}

    def replies(self) -> Iterator[Asked]:
        """A grade for every reply where a reply was due."""
        due: list[Any] = [w for w in self.work if _turn_of(w.case).kind == "reply"]
        if not due:
            return
        from agenteval.evaluators.workflows.predict import history
        from agenteval.evaluators.workflows.response_judge import Reply, ResponseJudge
        from agenteval.evaluators.workflows.session_judge import dialogue_text

        least, likely, each, keys = Amount(), Amount(), 0, set()
        asked = 0
        for one in due:
            case = one.case
            said = None if one.stored is None else one.stored.log
            if said is not None and said.get("form") != "reply":
                continue
            asked += 1
            own, nobody = rehearsal(self.client, None if said is None else self.store)
            given = Reply(
                reply=case.turn.text if said is None else str(said.get("response", "")),
                gold=case.turn.text,
                workflow=_workflow(case),
                history=dialogue_text(history(case.session.turns[: case.index])),
            )
            asyncio.run(ResponseJudge(own).grade(given))
            for request in nobody.asked:
                first, _ = of_requests([request])
                each = max(each, first.reply or 0)
                likely += replace(first, reply=None)
                key = request.key(own.transport.endpoint, own.model)
                if said is not None and key not in keys:
                    least += replace(first, reply=None)
                keys.add(key)
        yield Asked(
            "judge of replies", least, Amount(2 * asked, None, 2 * asked * each),
            "one request for each reply that the agent gives where a reply was due; one more for a "
            "reply out of form",
            likely=likely,
        )  # fmt: skip

    def values(self, calls: int) -> Iterator[Asked]:
        """Pairs of values in other words: of every call with every due call of its tool."""
        most = 0
        for one in self.work:
            made = calls
            if one.stored is not None:
                made = 1 if calls == 1 else _calls_made(one.stored.log)
            most += made * _pairs(one.case)
        if most:
            yield Asked(
                "judge of values", Amount(), repaired(Amount(most, None, None)),
                "one request for each pair of values that differ in words: none where the agent "
                "says what is due word for word; one more for a reply out of form",
            )  # fmt: skip


def _calls_made(log: dict[str, Any]) -> int:
    """How many calls a stored session has."""
    return len(log.get("calls") or ())


def _session_text(one: Work) -> Any:
    """What a judge of sessions reads; of a session to come all but the conversation."""
    from agenteval.evaluators.workflows.session import SessionLog
    from agenteval.evaluators.workflows.session_judge import SessionText, dialogue_text

    said = ""
    if one.stored is not None:
        said = dialogue_text(SessionLog.model_validate(one.stored.log).messages)
    goals = tuple(goal.text for goal in one.case.profile.goals)
    return SessionText(dialogue=said, workflow=_workflow(one.case), goals=goals)


def _workflow(case: Any) -> str:
    """The procedures as text, as judges are given them."""
    given = case.of.role.given(case.profile.scenarios)
    return "\n\n".join(case.of.role.scenario(one).text for one in given)


def _turn_of(case: Any) -> Any:
    """The turn that is predicted; None of a whole session."""
    return getattr(case, "turn", None)


def _pairs(case: Any) -> int:
    """Texts of the due calls that one call can be compared with: those of one tool."""
    turn = _turn_of(case)
    if turn is not None:
        return len(_texts(turn.arguments)) if turn.kind == "call" else 0
    by_tool: dict[str, set[tuple[str, str]]] = {}
    for action in case.profile.actions:
        by_tool.setdefault(action.tool.strip(), set()).update(_texts(action.arguments))
    return max(map(len, by_tool.values()), default=0)


def _texts(value: Any, path: str = "") -> set[tuple[str, str]]:
    """(path, text) of every text in arguments."""
    if isinstance(value, str):
        return {(path, value)} if value.strip() else set()
    items = value.items() if isinstance(value, dict) else (
        enumerate(value) if isinstance(value, list) else ()
    )  # fmt: skip
    return {one for key, inner in items for one in _texts(inner, f"{path}.{key}")}
