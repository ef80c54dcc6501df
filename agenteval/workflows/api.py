"""Agents that serve users by a procedure: sessions, single turns, and what is stored of them."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, get_args

from agenteval.agents import AgentLimits
from agenteval.agents.spec import AgentSettings
from agenteval.analysis.gates import least_gate, unscored_gate
from agenteval.cli.options import read_options
from agenteval.cli.running import (
    Stopped,
    Watch,
    opened,
    planned,
    synchronous,
    why_stopped,
)
from agenteval.engine.executor import make_executor
from agenteval.errors import InputError, NoStoreYet
from agenteval.models.limits import Limits
from agenteval.store import Store, default_path
from agenteval.store.experiments import unfinished_trials
from agenteval.text import plural
from agenteval.workflows.assistants import Assistants
from agenteval.workflows.cases import (
    Choice,
    Kind,
    OpenRole,
    SessionCase,
    TurnCase,
    open_role,
    session_cases,
    turn_cases,
)
from agenteval.workflows.cast import Cast, check_players
from agenteval.workflows.experiment import Campaign
from agenteval.workflows.flowbench_api import chat_choice
from agenteval.workflows.folder import find_role, role_folders
from agenteval.workflows.options import SessionKeywords, SessionOptions, TurnKeywords, TurnOptions
from agenteval.workflows.recorded_agent import RecordedAgents, recorded_name
from agenteval.workflows.reports import WorkflowReport, trials_report
from agenteval.workflows.results import SessionResult, TurnResult
from agenteval.workflows.row_cases import row_cases, rows_among
from agenteval.workflows.run_session import SessionSettings
from agenteval.workflows.scenario import FORMATS, RECORDED, Demand, Format
from agenteval.workflows.stored import EVALUATORS, load_sessions, load_turns
from agenteval.workflows.verdicts import Judges, Verdicts

Roles = str | Path | OpenRole | Sequence[str | Path | OpenRole] | None
_NO_TRIAL = "run `agenteval flow session` or `agenteval flow turn` first"
LIMITS = Limits(concurrency=4)
_JUDGELESS = "(without --judge, what only a judge can decide stays undecided)"


async def aflow_sessions(roles: Roles = None, **options: Unpack[SessionKeywords]) -> WorkflowReport:
    """Let an agent serve every user of the roles, from beginning to end.

    `roles` are names, folders or opened roles (None: all that are found), whose backend.py is run.
    `agent` is a specification as on the command line, or a function of (messages, tools);
    `recorded:NAME` replays the sessions of that name in the roles' folders. The user is played by
    the model `simulator`, or scripted; `judge` names the model that decides what no rule can. A
    session has at most `turns` replies of the agent (15, or 20 across scenarios) and
    `calls` (60), of which `calls_per_turn` (20) stand between two replies. `success` is "state"
    (the final state) or "state+reads" (with all results that gold obtained), None for what each
    role says. What is stored is not run again. `gate` is the least share of successes,
    `judgements` gets every decision on a pair of values. `agenteval.workflows.options` lists all
    keywords.

    Returns the rates of each format with all trials. Raises InputError for what cannot be, before
    anything is asked; Unauthorized for a refused key, StoreError.
    """
    how = read_options(SessionOptions, options, aflow_sessions)
    limits, watch = how.limits or LIMITS, Watch(how.notify, how.progress)
    demand = demanded(how.success)
    assistants = _assistants(how, limits)
    recorded = recorded_name(how.agent)
    if recorded is None:  # a wrong name is reported before any file is read
        replace(assistants, formats=["none"]).candidates({})
    judging = chat_choice(how.judge, how.judge_url, "--judge", need_key=not how.dry_run)
    limits.budget()
    on_model = how.simulator is not None or how.simulator_url is not None
    mode = check_players(how.user, how.tools, on_model=on_model)
    playing = chat_choice(how.simulator, how.simulator_url, "--simulator", need_key=not how.dry_run)
    if recorded is not None and how.user != "scripted":
        problem = "recorded sessions answer the scripted user; add --user scripted"
        raise InputError(problem, "--user")
    opened_roles = read_roles(roles, backend=mode in ("auto", "backend"))
    chosen = session_cases(opened_roles, _choice(how.kind, how.scenarios, how.profiles))[
        : how.limit
    ]
    if not chosen:
        raise InputError("no user is left by these choices", "ROLE")
    assistants = replace(assistants, formats=told_in(assistants.formats, chosen))
    for of in opened_roles:
        for words in of.role.conflicts:
            watch.note(f"{of.role.id}: {words}")
    idle = Verdicts(Judges(demand=demand)).prepare(chosen)
    if idle:
        watch.note(idle_note(idle, len(chosen)))
    cases = chosen
    if recorded is not None:
        replayed = RecordedAgents.read(recorded, opened_roles)
        cases = [case for case in chosen if replayed.at(case) is not None]
        counted = f"{len(chosen) - len(cases)} of {plural(len(chosen), 'user')}"
        missing = f"{replayed.name} has no session with {counted}"
        if not cases:
            raise InputError(missing, "--agent")
        if len(cases) < len(chosen):
            watch.note(missing)
        assistants = replace(assistants, agent=replayed)
    bounds = {"turns": how.turns, "calls": how.calls, "calls_per_turn": how.calls_per_turn}
    settings = _session_settings(bounds, how.seconds, how.seed, flowbench=how.flowbench)
    cast = Cast(how.user, mode, opened_roles, settings, on_model)
    campaign = Campaign(
        level="session",
        cases=cases,
        assistants=assistants,
        trials=how.trials,
        limits=limits,
        retry_failed=how.retry_failed,
        judge=judging,
        cast=cast,
        simulator=playing,
        demand=demand,
    )
    return await _run(campaign, how, watch)


async def aflow_turns(roles: Roles = None, **options: Unpack[TurnKeywords]) -> WorkflowReport:
    """Predict every turn of recorded sessions from the talk before it, and compare with what was
    done. `roles` may also be files of turn rows in FlowBench's format (.json, .jsonl): the agent is
    given the row's own prompt, talk and tools. `gate` is the least share of due calls that are
    right; the rest is as in `flow_sessions`.
    """
    how = read_options(TurnOptions, options, aflow_turns)
    limits = how.limits or LIMITS
    if recorded_name(how.agent) is not None:
        problem = "recorded sessions are replayed whole; use `agenteval flow session`"
        raise InputError(problem, "--agent")
    assistants = _assistants(how, limits)
    replace(assistants, formats=["none"]).candidates({})  # told before any file is read
    judging = chat_choice(how.judge, how.judge_url, "--judge", need_key=not how.dry_run)
    limits.budget()
    choice = _choice(how.kind, how.scenarios, how.profiles)
    listed = [roles] if isinstance(roles, str | Path | OpenRole) else list(roles or ())
    if files := rows_among(listed):
        if how.formats or choice != Choice():
            raise InputError(
                "rows have their own prompt and no users to choose from: no --format, "
                "--kind, --scenario or --profile",
                "ROLE",
            )
        cases = row_cases(files)[: how.limit]
        assistants = replace(assistants, formats=[RECORDED])
    else:
        cases = turn_cases(read_roles(roles, backend=False), choice)[: how.limit]
        if not cases:
            raise InputError("no recorded turn is left by these choices", "ROLE")
        assistants = replace(assistants, formats=told_in(assistants.formats, cases))
    campaign = Campaign(
        level="turn",
        cases=cases,
        assistants=assistants,
        trials=how.trials,
        limits=limits,
        retry_failed=how.retry_failed,
        judge=judging,
        turn_limits=AgentLimits(seconds=how.seconds),
    )
    return await _run(campaign, how, Watch(how.notify, how.progress))


flow_sessions = synchronous(aflow_sessions)
flow_turns = synchronous(aflow_turns)


def flow_results(
    store: str | Path | Store | None = None, *, roles: Sequence[str] | None = None
) -> WorkflowReport:
    """All sessions and turns that are stored, or those of these roles by name, with what was begun
    and is not finished. Raises InputError where there are none."""
    if not isinstance(store, Store):
        try:
            with Store(store or default_path(), create=False) as own:
                return flow_results(own, roles=roles)
        except NoStoreYet as error:  # it would name another command
            where = str(Path(store or default_path()).resolve())
            raise InputError(f"there is no store here yet; {_NO_TRIAL}", where) from error
    with store.snapshot():
        unfinished = unfinished_trials(store, EVALUATORS.values())
        sessions, turns = load_sessions(store), load_turns(store)
    if not (sessions or turns):
        begun = "".join(f"; {one.line}" for one in unfinished)
        raise InputError(f"no trial of a workflow is stored here yet; {_NO_TRIAL}{begun}")
    every: list[SessionResult | TurnResult] = [*sessions, *turns]
    known = {r.case.role for r in every}
    for name in roles or ():
        if name not in known:
            listed = ", ".join(sorted(known))
            raise InputError(f"no trial of a role {name!r}; there are some of: {listed}", "--role")
    chosen = set(roles or known)
    every = [r for r in every if r.case.role in chosen]
    sessions = [r for r in sessions if r.case.role in chosen]
    turns = [r for r in turns if r.case.role in chosen]
    versions = {(r.case.role, r.case.task.partition(" [")[0], r.case.version) for r in every}
    often = Counter((role, task) for role, task, _ in versions)
    changed = sorted({role for (role, _), n in often.items() if n > 1})
    notes = (
        [
            f"several versions of {', '.join(changed)} are stored; each counts as tasks of its own "
            "(`flow session` and `flow turn` show the present one)"
        ]
        if changed
        else []
    )
    report = trials_report(sessions, turns, notes)
    return replace(
        report,
        unfinished=tuple(one.line for one in unfinished),
        data={**report.data, "unfinished": [one.json() for one in unfinished]},
    )


def read_roles(roles: Roles, *, backend: bool) -> list[OpenRole]:
    """The roles meant, or all that are found; with `backend` their backend.py is run. Raises
    InputError."""
    if isinstance(roles, str | Path | OpenRole):
        roles = [roles]
    folders: list[str | Path | OpenRole] = list(roles or role_folders().values())
    if not folders:
        raise InputError("no role is found; a role is a folder with a role.yaml", "ROLE")
    opened_roles: dict[str, OpenRole] = {}
    for one in folders:
        if isinstance(one, OpenRole):
            opened_roles[str(one.folder)] = one
        else:  # a role is called as its folder, which "." does not say
            folder = Path(os.path.abspath(find_role(str(one), "ROLE")))
            opened_roles[str(folder)] = open_role(folder, backend=backend)
    return list(opened_roles.values())


def _assistants(how: TurnOptions, limits: Limits) -> Assistants:
    """Return the agent under test and the formats that it gets. Raises InputError."""
    settings = AgentSettings(
        model=how.model,
        base_url=how.base_url,
        temperature=how.temperature,
        max_tokens=how.max_tokens,
        concurrency=limits.concurrency,
        seconds=how.seconds,
        need_key=not how.dry_run,
    )
    return Assistants(how.agent, _formats(how.formats), settings)


async def _run(campaign: Campaign, how: TurnOptions, watch: Watch) -> WorkflowReport:
    if how.dry_run:
        with planned(how.store) as store:
            estimate = await campaign.dry_run(store, watch)
        return WorkflowReport(title=f"flow {campaign.level}", tables=(), estimate=estimate)
    executor = make_executor(how.workers, how.ray)
    if executor.distributed and how.judgements is not None:
        raise InputError("decisions are not collected from actors", "--judgements")
    campaign = replace(campaign, executor=executor)
    with opened(how.store) as store, executor:
        try:
            ended = await campaign.run(store, watch, how.judgements)
        except asyncio.CancelledError:
            report = _finished(campaign, store, watch)
            line = "interrupted: what is done is stored; the same command goes on from here"
            raise Stopped(replace(report, unfinished=(line,), exit_code=130)) from None
        report = _finished(campaign, store, watch)
    if ended.stopped:
        report = replace(report, unfinished=(why_stopped(ended, "not run"),), exit_code=3)
    what = "sessions" if campaign.level == "session" else "due calls"
    rates = session_rates(report) if campaign.level == "session" else _call_rates(report, campaign)
    return judged_enough(report, rates, what, how.gate, how.max_unscored)


def judged_enough(
    report: WorkflowReport,
    rates: Sequence[float | None],
    what: str,
    gate: float | None,
    max_unscored: float,
    hint: str = _JUDGELESS,
) -> WorkflowReport:
    """The report with its gates: the share of these without a rate, and the mean of the others;
    `hint` says what may help the first."""
    known = [rate for rate in rates if rate is not None]
    lost = len(rates) - len(known)
    gates = [
        unscored_gate(len(rates), lost, max_unscored, f"{what} have no verdict {hint}".strip())
    ]
    if gate is not None:
        mean = sum(known) / len(known) if known else None
        of = f"of {len(known)} {what}, {lost} without verdict"
        unknown = f"none of the {what} has a verdict"
        gates.append(
            least_gate(
                f"share of right {what}" if what == "due calls" else "success",
                mean,
                gate,
                of,
                unknown=unknown,
            )
        )
    return report.gated(*gates)


def session_rates(report: WorkflowReport) -> list[float | None]:
    """1 for each success, 0 for each failure, None without a verdict."""
    verdicts = [r.verdict for r in report.sessions]
    return [None if v is None or v.success is None else float(v.success) for v in verdicts]


def _call_rates(report: WorkflowReport, campaign: Campaign) -> list[float | None]:
    """A lost reply is no lost call."""
    due = {case.info.id for case in campaign.cases if case.turn.kind == "call"}  # type: ignore[union-attr]
    verdicts = [r.verdict for r in report.turns if r.case.id in due]
    return [
        None if v is None or v.call == "undecided" else float(v.call == "right") for v in verdicts
    ]


def _finished(campaign: Campaign, store: Store, watch: Watch) -> WorkflowReport:
    """The trials that the campaign is about, as far as they are stored."""
    only: dict[str, Any] = {
        "cases": [case.key for case in campaign.cases],
        "systems": [one.sha256 for one in campaign.candidates()],
    }
    sessions, turns = [], []
    with store.snapshot():
        if campaign.level == "session":
            sessions = [r for r in load_sessions(store, **only) if r.trial < campaign.trials]
        else:
            turns = [r for r in load_turns(store, **only) if r.trial < campaign.trials]
    failed: Counter[str] = Counter()
    for s in sessions:
        failed.update(set(s.verdict.failures if s.verdict else ()))
    for t in turns:
        failed.update(set(t.failures))
    if failed:
        listed = ", ".join(f"{status} in {n}" for status, n in sorted(failed.items()))
        watch.warn(
            f"a judge failed ({listed} of {len(sessions) + len(turns)} trials); where its "
            "endpoint failed, the same command asks again"
        )
    return trials_report(sessions, turns, watch.notes)


def told_in(formats: Sequence[Format], cases: Sequence[SessionCase | TurnCase]) -> Sequence[Format]:
    """These formats, or where none is named the first of flowchart, text and code in which all
    cases' procedures are written. Raises InputError for one in which some are not."""
    procedures = {
        (case.of.role.id, id): case.of.role.scenario(id) for case in cases for id in case.given
    }.items()
    order: tuple[Format, ...] = ("flowchart", "text", "code")
    if not formats:
        formats = [f for f in order if all(f in one.formats for _, one in procedures)][:1]
    if not formats:
        raise InputError("no format is common to all these procedures; name one", "--format")
    for format in formats:
        needed = order if format == "all" else {format} & {*order}
        for (role, id), one in procedures:
            if lacking := [f for f in needed if f not in one.formats]:
                there = ", ".join(one.formats)
                raise InputError(f"{role}/{id} has no {lacking[0]}; it has {there}", "--format")
    return formats


def _formats(names: Sequence[str]) -> tuple[Format, ...]:
    """Formats by name, each once. Raises InputError for an unknown one."""
    known: dict[str, Format] = {f: f for f in FORMATS}
    for name in names:
        if name not in known:
            raise InputError(f"{name!r} is not one of {', '.join(FORMATS)}", "--format")
    return tuple(dict.fromkeys(known[name] for name in names))


def demanded(name: str | None) -> Demand | None:
    """What success asks for. Raises InputError for an unknown name."""
    if name is None:
        return None
    known: dict[str, Demand] = {one: one for one in get_args(Demand)}
    if name not in known:
        raise InputError(f"{name!r} is not one of {', '.join(known)}", "--success")
    return known[name]


def idle_note(idle: int, users: int) -> str:
    """That success by the state says little of some users."""
    return (
        f"{idle} of {plural(users, 'user')} want nothing changed and are to be told nothing: an "
        "agent that does nothing has success (--success state+reads asks for what gold read)"
    )


def _choice(kind: str, scenarios: Sequence[str] | None, profiles: Sequence[str] | None) -> Choice:
    kinds: dict[str, Kind] = {"all": "all", "single": "single", "cross": "cross"}
    if kind not in kinds:
        raise InputError(f"{kind!r} is not one of {', '.join(kinds)}", "--kind")
    return Choice(
        kinds[kind],
        tuple(scenarios) if scenarios else None,
        tuple(profiles) if profiles else None,
    )


def _session_settings(
    bounds: Mapping[str, int | None], seconds: float, seed: int, *, flowbench: bool
) -> SessionSettings:
    given = {name: bound for name, bound in bounds.items() if bound is not None}
    if flowbench and given:
        named = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise InputError(f"it sets the limits; {named} cannot be given beside it", "--flowbench")
    settings = SessionSettings.flowbench() if flowbench else SessionSettings()
    changed: dict[str, Any] = {**given, "seconds": seconds, "seed": seed}
    return replace(settings, **changed)
