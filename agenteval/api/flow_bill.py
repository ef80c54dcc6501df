"""What a campaign of workflows would ask, rehearsed: nobody is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from agenteval.agents import Dialogue, Toolbox, drive
from agenteval.agents.spec import uncounted
from agenteval.api.flow_campaign import Campaign
from agenteval.api.running import planned
from agenteval.evaluators.workflows.cast import Cast
from agenteval.evaluators.workflows.instructions import instructions, tools_given
from agenteval.evaluators.workflows.predict import predict_next
from agenteval.evaluators.workflows.session import Prediction, SessionLog
from agenteval.evaluators.workflows.simulated_tools import ToolModel
from agenteval.evaluators.workflows.simulated_user import Heard
from agenteval.evaluators.workflows.stored import EVALUATORS
from agenteval.evaluators.workflows.trials import Candidate, Case, Work, open_work, spent
from agenteval.evaluators.workflows.user_model import UserOnModel
from agenteval.evaluators.workflows.verdicts import Verdicts, most_pairs
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.client import Client
from agenteval.models.rehearsal import Amount, Bill, Part, Rehearsal
from agenteval.records import Message
from agenteval.store import Store, Trials

_RECORDED = "the replies come from a recording: no endpoint is asked, nothing is paid"
_OUT_OF_FORM = "one more for a reply out of form"
_EXCHANGE = 1734  # tokens: 1,200 characters of a user's words, and a reply as long as it is shown


def bill(campaign: Campaign, store: str | Path | Store | None) -> Bill:
    """Who would be asked how often, at least and at most; no file is left behind. To be called
    where no event loop runs."""
    about: list[str] = []
    works: list[Work] = []
    agent = Part(
        "agent",
        "one request for each turn" if campaign.cast is None else
        "one for each reply to the user and each call: once a session at least, at most as many as "
        "--turns and --calls allow",
        likely=Amount(),
    )  # fmt: skip
    candidates = campaign.candidates()
    notes = uncounted(candidates[0].assistant.parameters)
    with planned(store) as kept:
        client = campaign.judge_client(kept, campaign.limits.budget())
        judges = campaign.judges(client)
        for one in candidates:
            work = open_work(
                kept, campaign.level, campaign.cases, one, campaign.trials,
                judges=judges, retry_failed=campaign.retry_failed,
            )  # fmt: skip
            about.append(campaign.plan_line(one.name, work))
            works += work
            if not notes:
                _agent(agent, one, [w.case for w in work if w.stored is None], campaign.cast)
        parts = [] if notes else [agent]
        if campaign.cast is not None and campaign.cast.asks:
            playing = campaign.simulator_client(kept, campaign.limits.budget())
            assert playing is not None
            new = [w for w in works if w.stored is None]
            parts += _simulators(campaign.cast, playing, new)
        if client is not None:
            parts += _judges(Verdicts(judges), campaign, works, kept)
        budget = campaign.limits.budget(
            spent(kept, campaign.level, [one.sha256 for one in candidates])
        )
    parts = [part for part in parts if part is agent or part.most.requests]
    if budget.price is not None and len(parts) > 1:
        notes = (*notes, "one price is taken for all models that are asked")
    return Bill(f"flow {campaign.level}", tuple(about), parts, budget, notes)


def _agent(part: Part, one: Candidate, cases: Sequence[Case], cast: Cast | None) -> None:
    """Count the agent's part in each case: a single turn, or the first words of a session."""
    with Rehearsal() as rehearsal:
        for case in cases:
            whole: Any = case
            role = case.of.role
            if cast is None:
                work: Any = predict_next(one.assistant, *whole.asked(one.format))
                usual, most = 1, 1
            else:
                given = role.given(case.profile.scenarios)
                opening = Message(role="user", content=case.profile.opening)
                dialogue = Dialogue(
                    instructions=instructions(role, given, one.format), messages=(opening,)
                )
                tools = Toolbox(tools_given(role, given, one.format), lambda *_: "")
                work = drive(one.assistant.make(), dialogue, tools)
                most = cast.settings.turn_limit(case.profile) + cast.calls
                # one that does what the profile wants, each action with a word before
                usual = min(2 * len(case.profile.actions) + 3, most)
            part.talk(rehearsal.first(work)[0], usual=usual, most=most)


def _simulators(cast: Cast, client: Client, work: Sequence[Work]) -> Iterator[Part]:
    """The simulated user speaks before every reply and once after the last; tools on a model are
    asked for every call, each as long as the longest there can be."""
    if cast.user == "model":
        user = UserOnModel(client)
        part = Part(
            "simulated user",
            "it speaks before each reply of the agent and once after the last, 2 times at least; "
            f"words that cannot stand are asked for up to {user.most_requests - 1} times more",
        )
        with Rehearsal() as rehearsal:
            for one in work:
                profile, turns = one.case.profile, cast.settings.turn_limit(one.case.profile)
                heard = Heard(
                    profile, one.case.of.role.now, seed=cast.settings.seed, repeat=one.number
                )
                drafts = rehearsal.first(user.speak(heard))
                opening = client.draft(user.request(heard))
                # its first words in a session are the same for every agent and format
                certain = 2 if [d.key for d in drafts] == [opening.key] else len(drafts)
                part.ask(
                    [opening], certain=certain, times=turns + 1, most=user.most_requests,
                    longer=turns * _EXCHANGE,
                )  # fmt: skip
        yield part
    if cast.asks_tools:
        part = Part(
            "simulated tools",
            f"one request for each call that the agent makes ({cast.calls} in a session at most); "
            f"{_OUT_OF_FORM}",
        )
        for case in (one.case for one in work if one.case.of.backend is None):
            model = ToolModel(client, case.of.role, 0, 0)
            tools = case.of.role.tools_of(case.profile.scenarios)
            drafts = [client.draft(model.longest(tool)) for tool in tools]
            longest = sorted(drafts, key=lambda draft: draft.prompt)[-1:]
            part.ask(longest, certain=0, times=cast.calls)
        yield part


def _judges(
    verdicts: Verdicts, campaign: Campaign, work: Sequence[Work], store: Store
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
    evaluator = EVALUATORS[campaign.level]
    new = {one.case.key for one in work if one.stored is None}
    # sessions of others are stored: their conversations may come again
    held = {t.case_key for t in Trials(store).trials(evaluator, new) if t.status == "done"}
    with Rehearsal() as rehearsal:
        for one in work:
            case: Any = one.case
            log = None if one.stored is None else one.stored.log
            certain, calls = True, 1
            if campaign.cast is not None:
                if log is None:
                    certain, calls = case.key not in held, campaign.cast.calls
                    log = {"ended": "user", "turns": 0, "seconds": 0}
                asked: Any = verdicts.session(case, SessionLog.model_validate(log))
            else:
                if log is None:
                    certain = False
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
