"""What the commands on agents and traces would ask with --dry-run: their own units, rehearsed.

Of a conversation the first request is known, what follows by the most that it can take.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agenteval.cli.bills import LOCAL
from agenteval.cli.dry import planned_store
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.rehearsal import REPAIR, Amount, Bill, Draft, Part, Rehearsal

if TYPE_CHECKING:
    from agenteval.agents import System
    from agenteval.cli.flow_job import Campaign, FlowJob
    from agenteval.cli.flow_stage import Stage
    from agenteval.cli.plan_job import PlanJob
    from agenteval.cli.trace_job import LocateJob
    from agenteval.evaluators.planning.case import Case
    from agenteval.evaluators.planning.dissect import DissectOptions
    from agenteval.evaluators.traces.trials import TraceCase
    from agenteval.evaluators.trials import TrialPlan
    from agenteval.evaluators.workflows.results import Level
    from agenteval.evaluators.workflows.trials import Candidate, Work
    from agenteval.evaluators.workflows.verdicts import Verdicts
    from agenteval.store import Store

_OUT_OF_FORM = "one more for a reply out of form"
# Tokens of 1,200 characters of a user's words, and as much of a reply as it is shown
_EXCHANGE = 1734


def plan_test(job: PlanJob, cases: Sequence[Case]) -> Bill:
    """What `plan test` would ask, from what is stored."""
    from agenteval.cli import plan_job
    from agenteval.evaluators.planning.trials import plan_trials

    system = plan_job.make_system(job)
    with planned_store(job.store) as store:
        plan = plan_trials(
            store, cases, system, job.trials, job.rules, retry_failed=job.retry_failed
        )
        about = _of_cases(system, cases, len(plan.units))
        return _planning("plan test", job, system, store, about, [plan])


def capability(job: PlanJob, suites: Mapping[int, Sequence[Case]], threshold: float) -> Bill:
    """What `plan capability` would ask. It goes on to more actions as long as enough pass: certain
    is the first number of actions that is not stored whole."""
    from agenteval.cli import plan_job
    from agenteval.evaluators.planning.capability import goes_on
    from agenteval.evaluators.planning.trials import load_attempts, plan_trials

    system = plan_job.make_system(job)
    reached: list[Case] = []
    plans: list[TrialPlan[Any]] = []
    with planned_store(job.store) as store:
        for suite in suites.values():
            plan = plan_trials(store, suite, system, job.trials, job.rules)
            reached += suite
            if plan.units:
                plans.append(plan)
            elif not plans:  # the stored trials decide whether the next number is reached
                keys = [case.sha256 for case in suite]
                stored = load_attempts(store, job.rules.check, cases=keys, systems=[system.sha256])
                judged = [a.verdict for a in stored if a.trial < job.trials and a.verdict]
                rate = sum(v.passed for v in judged) / len(judged) if judged else None
                if rate is None or not goes_on(rate, threshold):
                    break
        trials = [len(plan.units) for plan in plans]
        about = _of_cases(system, reached, sum(trials))
        about.append(f"trials that are certain: {sum(trials[:1])}")
        return _planning("plan capability", job, system, store, about, plans)


def dissect(job: PlanJob, store: Store, failed: Sequence[Case], how: DissectOptions) -> Bill:
    """What `plan dissect` would ask of these failed cases."""
    from agenteval.cli import plan_job
    from agenteval.evaluators.planning.dissections import plan_dissections

    system = plan_job.make_system(job)
    plan = plan_dissections(store, failed, system, how)
    least, every, most = how.runs
    about = [
        f"agent: {system.name}",
        f"failed cases: {len(failed)}, of them to dissect: {len(plan.units)}",
        f"runs of the agent for each: at least {least}, at most {most}",
    ]
    why = (
        f"{least} runs of each case at least; at most {every}, where no stage before the last "
        f"succeeds, each with up to {how.retries} more without a verdict; a run is up to one "
        "request more than --turns"
    )
    return _planning("plan dissect", job, system, store, about, [plan], (least, most), why)


def _of_cases(system: System, cases: Sequence[Case], trials: int) -> list[str]:
    sizes = Counter(case.n for case in cases)
    return [
        f"agent: {system.name}",
        f"cases: {len(cases)}; trials to run: {trials}",
        "cases by actions: " + ", ".join(f"{n}: {k}" for n, k in sorted(sizes.items())),
    ]


def _planning(
    command: str, job: PlanJob, system: System, store: Store, about: Sequence[str],
    plans: Sequence[TrialPlan[Any]], runs: tuple[int, int] = (1, 1), why: str = "",
) -> Bill:  # fmt: skip
    """The bill of an agent at planning cases; a unit takes `runs` of it, at least and at most. Of
    several plans the first alone is certain."""
    from agenteval.cli import plan_job

    budget = job.limits.budget(plan_job.spent(store, system.sha256))
    if notes := _uncounted(system.parameters):
        return Bill(command, about, (), budget, notes)
    why = why or (
        "a trial is one request at least, usually one for each call and one for the last words, at "
        "most one more than --turns"
    )
    part = Part("agent", why, likely=Amount())
    certain = {_case(unit).sha256 for plan in plans[:1] for unit in plan.units}

    def count(unit: Any, drafts: Sequence[Draft]) -> None:
        case = _case(unit)
        part.talk(
            drafts[0], usual=case.n + 1, most=job.rules.limits.turns + 1,
            certain=runs[0] * (case.sha256 in certain), times=runs[1],
        )  # fmt: skip

    return Bill(command, about, (part.rehearse(plans, count),), budget)


def _case(unit: Case | tuple[Case, int]) -> Case:
    return unit[0] if isinstance(unit, tuple) else unit


def _uncounted(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Why nothing can be said of an agent that is no model here; empty for one that is."""
    adapter = parameters.get("adapter")
    if adapter == "scripted":
        return ("the agent is a script: it asks nobody",)
    if adapter in ("python", "command", "mcp"):
        return ("the agent spends whatever it spends itself; none of it is counted here",)
    return ()


# -- traces ----------------------------------------------------------------------------------------


def locate(job: LocateJob, cases: Sequence[TraceCase]) -> Bill:
    """What `trace locate` would ask; nothing is asked, nothing is written."""
    from agenteval.cli.trace_job import make_finder
    from agenteval.evaluators.traces.finders import LocatorFinder, finder_key
    from agenteval.evaluators.traces.trials import EVALUATOR, plan_findings
    from agenteval.store import Trials

    with planned_store(job.store) as store:
        finder, _ = make_finder(job, store)
        plan = plan_findings(store, cases, finder, retry_failed=job.retry_failed)
        about = [
            f"finder: {finder.name}",
            f"traces: {len(cases)}, of them to examine: {len(plan.units)}",
        ]
        budget = job.limits.budget(Trials(store).usage(EVALUATOR, finder_key(finder)))
        if not isinstance(finder, LocatorFinder):
            return Bill("trace locate", (*about, f"rules; {LOCAL}"), (), budget)
        options = finder.locator.options
        part = Part(
            "judge",
            "one request for each part of a trace, question and repeat, and one for the grades; "
            "one more for a reply out of form; a part that the endpoint calls too long is halved, "
            "which is not counted",
            largest=(3 * (options.context - options.reply_tokens), options.reply_tokens),
        )
        before = after = 0
        with Rehearsal() as rehearsal:
            for unit in plan.units:
                condensed, parts = finder.planned(unit[0].load())
                before += condensed.source_tokens
                after += condensed.tokens
                first = rehearsal.first(plan.evaluate(unit))[:1]
                stored = len(rehearsal.answered)
                # once some is stored, what is left depends on what it says
                part.least += (
                    Amount(len(first), sum(draft.prompt for draft in first), None)
                    if stored
                    else Amount(parts.requests, parts.prompt_tokens - parts.grades_tokens, None)
                )
                part.most += Amount(
                    MOST_REQUESTS * parts.requests - stored,
                    MOST_REQUESTS * parts.prompt_tokens + REPAIR * parts.requests,
                    MOST_REQUESTS * parts.reply_tokens,
                )
        share = f" ({after / before:.1%})" if before else ""
        about.append(f"condensed: {before:,} tokens to {after:,}{share}")
    return Bill("trace locate", about, (part,), budget)


# -- workflows -------------------------------------------------------------------------------------


def flow(job: FlowJob, campaign: Campaign, stage: Stage | None = None) -> Bill:
    """What `flow session` would ask on this stage, and `flow turn` without one."""
    from agenteval.cli.flow_agents import candidate
    from agenteval.cli.flow_job import chat_client, plan_of
    from agenteval.evaluators.workflows.trials import open_work, spent
    from agenteval.evaluators.workflows.verdicts import Judges, Verdicts

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
            notes = _uncounted(one.assistant.parameters)
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
    from agenteval.agents import Toolbox
    from agenteval.agents.dialogue import Dialogue, take_turn
    from agenteval.evaluators.workflows.instructions import instructions, tools_given
    from agenteval.evaluators.workflows.predict import predict
    from agenteval.records import Message

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
    from agenteval.evaluators.workflows.simulators.nouns import Heard
    from agenteval.evaluators.workflows.simulators.tool_model import ToolModel
    from agenteval.evaluators.workflows.simulators.user_model import UserOnModel

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
    from agenteval.evaluators.workflows.session import Prediction, SessionLog
    from agenteval.evaluators.workflows.stored import EVALUATORS
    from agenteval.evaluators.workflows.verdicts import most_pairs
    from agenteval.store import Trials

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
