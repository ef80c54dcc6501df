"""What `flow turn` and `flow session` would ask with --dry-run: agent, simulators and judges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from agenteval.agents import Toolbox
from agenteval.agents.dialogue import Dialogue, take_turn
from agenteval.cli.dry import planned_store, uncounted
from agenteval.cli.flow_agents import candidate
from agenteval.cli.flow_job import Campaign, FlowJob, chat_client, plan_of
from agenteval.cli.flow_stage import Stage
from agenteval.evaluators.workflows.instructions import instructions, tools_given
from agenteval.evaluators.workflows.predict import predict
from agenteval.evaluators.workflows.results import Level
from agenteval.evaluators.workflows.session import Prediction, SessionLog
from agenteval.evaluators.workflows.simulators.nouns import Heard
from agenteval.evaluators.workflows.simulators.tool_model import ToolModel
from agenteval.evaluators.workflows.simulators.user_model import UserOnModel
from agenteval.evaluators.workflows.stored import EVALUATORS
from agenteval.evaluators.workflows.trials import Candidate, Work, open_work, spent
from agenteval.evaluators.workflows.verdicts import Judges, Verdicts, most_pairs
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.rehearsal import Amount, Bill, Part, Rehearsal
from agenteval.records import Message
from agenteval.store import Store, Trials

_OUT_OF_FORM = "one more for a reply out of form"
# Tokens of 1,200 characters of a user's words, and as much of a reply as it is shown
_EXCHANGE = 1734


def flow(job: FlowJob, campaign: Campaign, stage: Stage | None = None) -> Bill:
    """What `flow session` would ask on this stage, and `flow turn` without one."""
    about: list[str] = []
    keys: list[str] = []
    agent = Part(
        "agent",
        "one request for each turn" if stage is None else
        "one for each reply to the user and each call: once a session at least, at most as many as "
        "--turns and --calls allow",
        likely=Amount(),
    )  # fmt: skip
    notes: tuple[str, ...] = ()
    works: list[Work] = []
    with planned_store(job.store) as store:
        choice = job.judging()
        client = None if choice is None else chat_client(choice, job.limits, store)
        judges = Judges() if client is None else Judges.on(client)
        for format in job.formats:
            one = candidate(job, format, campaign.conditions)
            keys.append(one.sha256)
            work = open_work(
                store, campaign.level, campaign.cases, one, job.trials,
                check_key=judges.key, retry_failed=job.retry_failed,
            )  # fmt: skip
            about.append(f"{one.name}: {plan_of(job, campaign, work)}")
            works += work
            notes = uncounted(one.assistant.parameters)
            if not notes:
                _agent(agent, one, [w.case for w in work if w.stored is None], stage)
        parts = [] if notes else [agent]
        if stage is not None:
            parts += _simulators(stage, [w for w in works if w.stored is None], store)
        if client is not None:
            parts += _judges(Verdicts(judges), campaign.level, works, stage, store)
        budget = job.limits.budget(spent(store, campaign.level, keys))
    parts = [part for part in parts if part is agent or part.most.requests]
    if budget.price is not None and len(parts) > 1:
        notes = (*notes, "one price is taken for all models that are asked")
    return Bill(f"flow {campaign.level}", tuple(about), parts, budget, notes)


def _agent(part: Part, one: Candidate, cases: Sequence[Any], stage: Stage | None) -> None:
    """Count the agent's part in each case: a single turn, or the first words of a session."""
    with Rehearsal() as rehearsal:
        for case in cases:
            role = case.of.role
            if stage is None:
                work: Any = predict(role, case.session, case.index, one.assistant, one.format)
                usual, most = 1, 1
            else:
                given = role.given(case.profile.scenarios)
                opening = Message(role="user", content=case.profile.opening)
                dialogue = Dialogue(
                    instructions=instructions(role, given, one.format), messages=(opening,)
                )
                tools = Toolbox(tools_given(role, given, one.format), lambda *_: "")
                work = take_turn(one.assistant.make(), dialogue, tools)
                usual, most = stage.replies(case)
            part.talk(rehearsal.first(work)[0], usual=usual, most=most)


def _simulators(stage: Stage, work: Sequence[Work], store: Store) -> Iterator[Part]:
    """The simulated user speaks before every reply and once after the last; tools on a model are
    asked for every call, each as long as the longest there can be."""
    sessions, client = stage.sessions(store, None)
    if client is None:
        return
    settings, user = sessions.settings, sessions.user
    if isinstance(user, UserOnModel):
        part = Part(
            "simulated user",
            "it speaks before each reply of the agent and once after the last, 2 times at least; "
            f"words that cannot stand are asked for up to {user.most_requests - 1} times more",
        )
        with Rehearsal() as rehearsal:
            for one in work:
                profile, turns = one.case.profile, settings.turn_limit(one.case.profile)
                heard = Heard(profile, one.case.of.role.now, seed=settings.seed, repeat=one.number)
                drafts = rehearsal.first(user.speak(heard))
                opening = client.draft(user.request(heard))
                # its first words in a session are the same for every agent and format
                certain = 2 if [d.key for d in drafts] == [opening.key] else len(drafts)
                part.ask(
                    [opening], certain=certain, times=turns + 1, most=user.most_requests,
                    longer=turns * _EXCHANGE,
                )  # fmt: skip
        yield part
    if stage.asks_tools:
        part = Part(
            "simulated tools",
            f"one request for each call that the agent makes ({stage.calls} in a session at most); "
            f"{_OUT_OF_FORM}",
        )
        for case in (one.case for one in work if one.case.of.backend is None):
            model = ToolModel(client, case.of.role, 0, 0)
            tools = case.of.role.tools_of(case.profile.scenarios)
            drafts = [client.draft(model.longest(tool)) for tool in tools]
            longest = sorted(drafts, key=lambda draft: draft.prompt)[-1:]
            part.ask(longest, certain=0, times=stage.calls)
        yield part


def _judges(
    verdicts: Verdicts, level: Level, work: Sequence[Work], stage: Stage | None, store: Store
) -> Iterator[Part]:
    """What judges are asked: for the verdict on what is stored, the very questions; of what is to
    come all but the words."""
    parts = {
        "flow:session_judge": Part(
            "judge of sessions",
            "one request for each session, none where the same conversation was judged before; "
            f"{_OUT_OF_FORM}",
        ),
        "flow:response": Part(
            "judge of replies",
            "one request for each reply that the agent gives where a reply was due; "
            f"{_OUT_OF_FORM}",
        ),
        "flow:equal": Part(
            "judge of values",
            "one request for each pair of values that differ in words: none where the agent says "
            f"what is due word for word; {_OUT_OF_FORM}",
        ),
    }
    new = {one.case.key for one in work if one.stored is None}
    # sessions of others are stored: their conversations may come again
    held = {t.case_key for t in Trials(store).trials(EVALUATORS[level], new) if t.status == "done"}
    with Rehearsal() as rehearsal:
        for one in work:
            case: Any = one.case
            log = None if one.stored is None else one.stored.log
            certain = True
            if stage is not None:
                if log is None:
                    certain = case.key not in held
                    calls, log = stage.calls, {"ended": "user", "turns": 0, "seconds": 0}
                asked: Any = verdicts.session(case, SessionLog.model_validate(log))
            else:
                if log is None:
                    certain, calls = False, 1
                    log = {"form": "reply", "response": case.turn.text, "seconds": 0}
                asked = verdicts.turn(case, Prediction.model_validate(log))
            longer = 0 if one.stored else None
            for draft in rehearsal.first(asked):
                who = draft.request.role.removesuffix(":repair")
                parts[who].ask([draft], certain=certain, longer=longer)
            if one.stored is None:
                pairs = MOST_REQUESTS * calls * most_pairs(case)
                parts["flow:equal"].most += Amount(pairs, None, None)
    yield from parts.values()
