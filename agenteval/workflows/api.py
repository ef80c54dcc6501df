"""Evaluate agents that follow a procedure: sessions, single turns, and stored results."""

from __future__ import annotations

import asyncio
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack, get_args

from agenteval.agents.spec import AgentSettings
from agenteval.analysis.gates import least_gate, unscored_gate
from agenteval.cli.options import read_options
from agenteval.cli.running import Stopped, Watch, opened, planned, synchronous, why_stopped
from agenteval.engine.executor import make_executor
from agenteval.errors import InputError, NoStoreYet
from agenteval.models.limits import Limits
from agenteval.store import Store, default_path
from agenteval.store.experiments import unfinished_trials
from agenteval.text import plural
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
from agenteval.workflows.experiment import Simulators, WorkflowExperiment, check_simulators
from agenteval.workflows.flowbench_rows import row_cases, rows_among
from agenteval.workflows.flowbench_score import chat_choice
from agenteval.workflows.folder import find_role, role_folders
from agenteval.workflows.options import (
    SessionKeywords,
    SessionOptions,
    TurnKeywords,
    TurnOptions,
    one_of,
)
from agenteval.workflows.reports import WorkflowReport, trials_report
from agenteval.workflows.results import (
    EVALUATORS,
    SessionResult,
    TurnResult,
    load_sessions,
    load_turns,
)
from agenteval.workflows.run_session import SessionSettings
from agenteval.workflows.scenario import FORMATS, RECORDED, Demand, Format
from agenteval.workflows.variants import AgentUnderTest, RecordedAgents, recorded_name
from agenteval.workflows.verdicts import Judges, Verdicts

Roles = str | Path | OpenRole | Sequence[str | Path | OpenRole] | None
LIMITS = Limits(concurrency=4)
_NO_TRIAL = "run `agenteval flow session` or `agenteval flow turn` first"
_NO_JUDGE = "(use --judge to decide what rules cannot)"


async def aflow_sessions(roles: Roles = None, **options: Unpack[SessionKeywords]) -> WorkflowReport:
    """Run complete sessions of an agent with every user of the roles.

    `roles` are names, folders or opened roles (None: all that are found); their backend.py is
    executed. `agent` is a specification as on the command line, or a function of (messages, tools);
    `recorded:NAME` replays the sessions with that name in the roles' folders. The user is simulated
    by the model `simulator`, or scripted. `judge` is a model that decides what rules cannot.

    A session has at most `turns` replies of the agent (15, or 20 across scenarios) and `calls`
    (60), with at most `calls_per_turn` (20) between two replies. `success` is "state" (the final
    state), "state+reads" (also all results that gold obtained), or None to use the setting of each
    role. Stored sessions are not run again. `gate` is the minimum share of successes, and
    `judgements` a file that lists every decision on a pair of values. `agenteval.workflows.options`
    lists all keywords.

    Returns the rates of each format, with all trials. Raises InputError for invalid options or
    files before any request is sent, Unauthorized when a key is refused, and StoreError.
    """
    how = read_options(SessionOptions, options, aflow_sessions)
    limits, watch = how.limits or LIMITS, Watch(how.notify, how.progress)
    demand = read_demand(how.success)
    agent = _agent(how, limits)
    recorded = recorded_name(how.agent)
    if recorded is None:
        _ = agent.system  # an unknown agent is reported before any file is read
    judge = chat_choice(how.judge, how.judge_url, "--judge", need_key=not how.dry_run)
    limits.budget()
    simulator = chat_choice(
        how.simulator, how.simulator_url, "--simulator", need_key=not how.dry_run
    )
    mode = check_simulators(how.user, how.tools, simulator)
    if recorded is not None and how.user != "scripted":
        problem = "recorded sessions answer the scripted user; add --user scripted"
        raise InputError(problem, "--user")
    opened_roles = read_roles(roles, backend=mode in ("auto", "backend"))
    cases = session_cases(opened_roles, _choice(how))[: how.limit]
    if not cases:
        raise InputError("no user matches these options", "ROLE")
    agent = replace(agent, formats=common_formats(agent.formats, cases))
    for of in opened_roles:
        for words in of.role.conflicts:
            watch.note(f"{of.role.id}: {words}")
    note_idle_users(watch, Verdicts(Judges(demand=demand)).prepare(cases), len(cases))
    if recorded is not None:
        replayed = RecordedAgents.read(recorded, opened_roles)
        served = [case for case in cases if replayed.has(case)]
        if len(served) < len(cases):
            counted = f"{len(cases) - len(served)} of {plural(len(cases), 'user')}"
            missing = f"{replayed.name} has no session with {counted}"
            if not served:
                raise InputError(missing, "--agent")
            watch.note(missing)
        agent, cases = replace(agent, agent=replayed), served
    experiment = WorkflowExperiment(
        cases=cases,
        agent=agent,
        how=how,
        limits=limits,
        judge=judge,
        simulators=Simulators(
            how.user, mode, simulator is not None, opened_roles, _session_settings(how)
        ),
        simulator=simulator,
        demand=demand,
    )
    return await _run(experiment, watch)


async def aflow_turns(roles: Roles = None, **options: Unpack[TurnKeywords]) -> WorkflowReport:
    """Predict every turn of recorded sessions from the conversation before it, and compare the
    prediction with the recorded turn.

    `roles` can also be files of turn rows in FlowBench's format (.json, .jsonl); the agent then
    gets the prompt, messages and tools of each row. `gate` is the minimum share of correct due
    calls. The other keywords are those of `flow_sessions`.

    Returns the rates of each format, with all trials. Raises as `flow_sessions`.
    """
    how = read_options(TurnOptions, options, aflow_turns)
    limits = how.limits or LIMITS
    if recorded_name(how.agent) is not None:
        problem = "recorded sessions can only be replayed as a whole; use `agenteval flow session`"
        raise InputError(problem, "--agent")
    agent = _agent(how, limits)
    _ = agent.system  # an unknown agent is reported before any file is read
    judge = chat_choice(how.judge, how.judge_url, "--judge", need_key=not how.dry_run)
    limits.budget()
    choice = _choice(how)
    listed = [roles] if isinstance(roles, str | Path | OpenRole) else list(roles or ())
    if files := rows_among(listed):
        if how.formats or choice != Choice():
            raise InputError(
                "rows have their own prompts and no users, so --format, --kind, --scenario and "
                "--profile do not apply",
                "ROLE",
            )
        cases = row_cases(files)[: how.limit]
        agent = replace(agent, formats=[RECORDED])
    else:
        cases = turn_cases(read_roles(roles, backend=False), choice)[: how.limit]
        if not cases:
            raise InputError("no recorded turn matches these options", "ROLE")
        agent = replace(agent, formats=common_formats(agent.formats, cases))
    experiment = WorkflowExperiment(cases=cases, agent=agent, how=how, limits=limits, judge=judge)
    return await _run(experiment, Watch(how.notify, how.progress))


flow_sessions = synchronous(aflow_sessions)
flow_turns = synchronous(aflow_turns)


def flow_results(
    store: str | Path | Store | None = None, *, roles: Sequence[str] | None = None
) -> WorkflowReport:
    """Return all stored sessions and turns, or those of these roles, and unfinished experiments.
    Raises InputError when there are none."""
    if not isinstance(store, Store):
        try:
            with Store(store or default_path(), create=False) as opened_store:
                return flow_results(opened_store, roles=roles)
        except NoStoreYet as error:  # the store's own message names a different command
            where = str(Path(store or default_path()).resolve())
            raise InputError(f"there is no store here yet; {_NO_TRIAL}", where) from error
    with store.snapshot():
        unfinished = unfinished_trials(store, EVALUATORS.values())
        sessions, turns = load_sessions(store), load_turns(store)
    every: list[SessionResult | TurnResult] = [*sessions, *turns]
    if not every:
        begun = "".join(f"; {experiment.line}" for experiment in unfinished)
        raise InputError(f"no trial of a workflow is stored here yet; {_NO_TRIAL}{begun}")
    stored_roles = {r.case.role for r in every}
    for name in roles or ():
        if name not in stored_roles:
            listed = ", ".join(sorted(stored_roles))
            raise InputError(f"no trial of a role {name!r}; there are some of: {listed}", "--role")
    chosen = set(roles or stored_roles)
    sessions = [r for r in sessions if r.case.role in chosen]
    turns = [r for r in turns if r.case.role in chosen]
    versions: dict[tuple[str, str], set[str]] = {}
    for case in (r.case for r in every if r.case.role in chosen):
        task = case.task.partition(" [")[0]
        versions.setdefault((case.role, task), set()).add(case.version)
    notes = []
    if changed := sorted({role for (role, _), several in versions.items() if len(several) > 1}):
        notes = [
            f"several versions of {', '.join(changed)} are stored; each counts as tasks of its own "
            "(`flow session` and `flow turn` show the present one)"
        ]
    report = trials_report(sessions, turns, notes)
    return replace(
        report,
        unfinished=tuple(experiment.line for experiment in unfinished),
        data={**report.data, "unfinished": [experiment.json() for experiment in unfinished]},
    )


def read_roles(roles: Roles, *, backend: bool) -> list[OpenRole]:
    """Return these roles, or all roles; `backend` also runs their backend.py.

    Raises InputError.
    """
    if isinstance(roles, str | Path | OpenRole):
        roles = [roles]
    folders: list[str | Path | OpenRole] = list(roles or role_folders().values())
    if not folders:
        raise InputError("no role was found; a role is a folder with a role.yaml", "ROLE")
    opened_roles: dict[str, OpenRole] = {}
    for role in folders:
        if isinstance(role, OpenRole):
            opened_roles[str(role.folder)] = role
        else:  # a role is named after its folder, and "." is not a name
            folder = Path(os.path.abspath(find_role(str(role), "ROLE")))
            opened_roles[str(folder)] = open_role(folder, backend=backend)
    return list(opened_roles.values())


async def _run(experiment: WorkflowExperiment, watch: Watch) -> WorkflowReport:
    how = experiment.how
    if how.dry_run:
        with planned(how.store) as store:
            estimate = await experiment.dry_run(store, watch)
        return WorkflowReport(title=f"flow {experiment.level}", tables=(), estimate=estimate)
    executor = make_executor(how.workers, how.ray)
    if executor.distributed and how.judgements is not None:
        raise InputError("decisions cannot be collected from Ray actors", "--judgements")
    experiment = replace(experiment, executor=executor)
    with opened(how.store) as store, executor:
        try:
            result = await experiment.run(store, watch)
        except asyncio.CancelledError:
            report = _stored_report(experiment, store, watch)
            line = "interrupted: finished results are stored; run the same command to continue"
            raise Stopped(replace(report, unfinished=(line,), exit_code=130)) from None
        report = _stored_report(experiment, store, watch)
    if result.stopped:
        report = replace(report, unfinished=(why_stopped(result, "not run"),), exit_code=3)
    if experiment.level == "session":
        return gated_report(report, session_rates(report), "sessions", how.gate, how.max_unscored)
    calls = {
        case.info.id
        for case in experiment.cases
        if isinstance(case, TurnCase) and case.gold.action is not None
    }
    verdicts = [r.verdict for r in report.turns if r.case.id in calls]
    rates = [
        None if v is None or v.call == "undecided" else float(v.call == "right") for v in verdicts
    ]
    return gated_report(report, rates, "due calls", how.gate, how.max_unscored)


def _stored_report(experiment: WorkflowExperiment, store: Store, watch: Watch) -> WorkflowReport:
    """Return the stored trials of the experiment."""
    keys: dict[str, Any] = {
        "cases": [case.key for case in experiment.cases],
        "systems": [variant.sha256 for variant in experiment.variants()],
    }
    with store.snapshot():
        sessions = [r for r in load_sessions(store, **keys) if r.trial < experiment.how.trials]
        turns = [r for r in load_turns(store, **keys) if r.trial < experiment.how.trials]
    failures = [*(r.verdict.failures for r in sessions if r.verdict), *(r.failures for r in turns)]
    failed = Counter[str](status for of_trial in failures for status in set(of_trial))
    if failed:
        listed = ", ".join(f"{status} in {n}" for status, n in sorted(failed.items()))
        watch.warn(
            f"a judge failed ({listed} of {len(sessions) + len(turns)} trials); run the same "
            "command to retry endpoint failures"
        )
    return trials_report(sessions, turns, watch.notes)


def session_rates(report: WorkflowReport) -> list[float | None]:
    """Return 1 for each success, 0 for each failure, None for a session without a verdict."""
    verdicts = [r.verdict for r in report.sessions]
    return [None if v is None or v.success is None else float(v.success) for v in verdicts]


def gated_report(
    report: WorkflowReport,
    rates: Sequence[float | None],
    what: str,
    gate: float | None,
    max_unscored: float,
    hint: str = _NO_JUDGE,
) -> WorkflowReport:
    """Return the report with two gates: the share of trials without a rate, and the mean of the
    others. `hint` suggests how to reduce the share without a rate."""
    decided = [rate for rate in rates if rate is not None]
    lost = len(rates) - len(decided)
    words = f"{what} have no verdict {hint}".strip()
    gates = [unscored_gate(len(rates), lost, max_unscored, words)]
    if gate is not None:
        name = "success" if what == "sessions" else f"share of correct {what}"
        mean = sum(decided) / len(decided) if decided else None
        of = f"of {len(decided)} {what}, {lost} without verdict"
        unknown = f"none of the {what} has a verdict"
        gates.append(least_gate(name, mean, gate, of, unknown=unknown))
    return report.gated(*gates)


def note_idle_users(watch: Watch, idle: int, users: int) -> None:
    """Warn if an agent that does nothing would succeed with some users."""
    if idle:
        watch.note(
            f"{idle} of {plural(users, 'user')} need neither a change nor an answer, so an agent "
            "that does nothing succeeds (--success state+reads also checks what gold read)"
        )


def common_formats(
    formats: Sequence[Format], cases: Iterable[SessionCase | TurnCase]
) -> Sequence[Format]:
    """Return these formats. Without any, return the first of flowchart, text and code that all
    procedures of the cases have.

    Raises InputError for a format that a procedure lacks.
    """
    procedures = {
        (case.of.role.id, id): case.of.role.scenario(id) for case in cases for id in case.given
    }.items()
    order: tuple[Format, ...] = ("flowchart", "text", "code")
    if not formats:
        formats = [f for f in order if all(f in scenario.formats for _, scenario in procedures)][:1]
    if not formats:
        raise InputError("these procedures have no format in common; choose one", "--format")
    for format in formats:
        needed = order if format == "all" else {format} & {*order}
        for (role, id), scenario in procedures:
            if lacking := [f for f in needed if f not in scenario.formats]:
                available = ", ".join(scenario.formats)
                raise InputError(f"{role}/{id} has no {lacking[0]}; it has {available}", "--format")
    return formats


def read_demand(name: str | None) -> Demand | None:
    """Return what success requires. Raises InputError for an unknown name."""
    demand: Demand | None = None if name is None else one_of(name, get_args(Demand), "--success")
    return demand


def _agent(how: TurnOptions, limits: Limits) -> AgentUnderTest:
    """Return the agent under test in each format. Raises InputError."""
    settings = AgentSettings(
        model=how.model,
        base_url=how.base_url,
        temperature=how.temperature,
        max_tokens=how.max_tokens,
        concurrency=limits.concurrency,
        seconds=how.seconds,
        need_key=not how.dry_run,
    )
    formats = [one_of(name, FORMATS, "--format") for name in how.formats]
    return AgentUnderTest(how.agent, tuple(dict.fromkeys(formats)), settings)


def _choice(how: TurnOptions) -> Choice:
    kind: Kind = one_of(how.kind, get_args(Kind), "--kind")
    return Choice(kind, tuple(how.scenarios or ()) or None, tuple(how.profiles or ()) or None)


def _session_settings(how: SessionOptions) -> SessionSettings:
    bounds = {"turns": how.turns, "calls": how.calls, "calls_per_turn": how.calls_per_turn}
    changed: dict[str, Any] = {k: bound for k, bound in bounds.items() if bound is not None}
    if how.flowbench and changed:
        options = ", ".join(f"--{name.replace('_', '-')}" for name in changed)
        raise InputError(f"it sets the limits and cannot be combined with {options}", "--flowbench")
    settings = SessionSettings.flowbench() if how.flowbench else SessionSettings()
    return replace(settings, **changed, seconds=how.seconds, seed=how.seed)
