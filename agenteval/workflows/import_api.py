"""Store and judge recorded trajectories of an agent as sessions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from agenteval.agents import System
from agenteval.cli.running import Notify, Progress, Watch, opened, synchronous, why_stopped
from agenteval.engine import Experiment
from agenteval.errors import InputError
from agenteval.store import Store, Trials
from agenteval.workflows.api import (
    gated_report,
    note_idle_users,
    read_demand,
    read_roles,
    session_rates,
)
from agenteval.workflows.cases import OpenRole, SessionCase
from agenteval.workflows.evaluator import WorkflowEvaluator
from agenteval.workflows.reports import WorkflowReport, trials_report
from agenteval.workflows.results import EVALUATORS, load_sessions
from agenteval.workflows.scenario import RECORDED
from agenteval.workflows.session import SessionFailure, SessionLog
from agenteval.workflows.trajectories import Trajectory, case_of, read_trajectories, replayed
from agenteval.workflows.variants import AgentVariant
from agenteval.workflows.verdicts import Judges, Verdicts

_Numbered = dict[tuple[str, int], tuple[SessionCase, Trajectory]]  # by case key and trial


async def aflow_import(
    role: str | Path | OpenRole,
    files: Sequence[str | Path] | str | Path,
    *,
    agent: str = "recorded",
    success: str | None = None,
    gate: float | None = None,
    max_unscored: float = 0.1,
    store: str | Path | Store | None = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> WorkflowReport:
    """Store recorded trajectories (see `trajectories`) as sessions of `agent`.

    Their calls are replayed on the role's backend, and the resulting state decides success, without
    a model. A malformed record, or one whose goal does not fit the tools, is skipped with a note. A
    record that cannot be replayed is stored as a failure. Stored sessions are not replayed again.
    Recorded rewards are shown next to the verdicts, and contradictions are listed. `success`,
    `gate` and `max_unscored` are those of `flow_sessions`.

    Returns the rates with all trials. Raises InputError when no trajectory can be imported, and
    StoreError.
    """
    watch = Watch(notify, progress)
    verdicts = Verdicts(Judges(demand=read_demand(success)))
    (of,) = read_roles(role, backend=True)
    if of.backend is None:
        raise InputError("a role needs a backend.py to replay calls", str(of.folder))
    paths = [files] if isinstance(files, str | Path) else files
    trajectories, problems = read_trajectories([Path(path) for path in paths])
    numbered = _numbered(of, trajectories, problems)
    for key, (case, trajectory) in list(numbered.items()):
        try:
            verdicts.gold_of(case)
        except InputError as error:  # the goal cannot be known, so there is no verdict
            problems.append(f"{trajectory.place}: {error}")
            del numbered[key]
    watch.warn_list("left out", problems)
    if not numbered:
        raise InputError("no trajectory can be imported", ", ".join(map(str, paths)))
    cases = {case.key: case for case, _ in numbered.values()}
    note_idle_users(watch, verdicts.prepare(cases.values()), len(cases))
    golds = [gold for case in cases.values() if (gold := verdicts.gold_of(case)) is not None]
    refused = [line for gold in golds for line in gold.refused]
    watch.warn_list("the backend cannot execute the expected actions", refused)
    variant = AgentVariant(System(agent, _no_agent, {"adapter": "recorded"}), RECORDED, {})

    async def replay(case: Any, _: AgentVariant, number: int) -> SessionLog | SessionFailure:
        log = replayed(*numbered[case.key, number], begin=golds[0].begin if golds else None)
        if isinstance(log, SessionFailure):
            watch.warn(f"no session: {log.message}")
        return log

    with opened(store) as db:
        _refuse_others(db, variant, numbered)
        evaluator = WorkflowEvaluator.of(
            "session",
            variant,
            cases.values(),
            1 + max(number for _, number in numbered),
            tables=Trials(db),
            attempt=replay,
            verdicts=verdicts,
            only=numbered.keys(),
        )
        result = await Experiment(evaluator, db, concurrency=1).run(watch.progress)
        stored = load_sessions(db, cases=cases, systems=[variant.sha256])
    keys = {(case.info.id, number) for (_, number), (case, _) in numbered.items()}
    sessions = [r for r in stored if (r.case.id.partition(" [")[0], r.trial) in keys]
    report = trials_report(sessions, [], watch.notes)
    if result.stopped:
        report = replace(report, unfinished=(why_stopped(result, "not replayed"),), exit_code=3)
    rates = [*session_rates(report), *(None for _ in problems)]
    return gated_report(report, rates, "sessions", gate, max_unscored, "")


flow_import = synchronous(aflow_import)


def _numbered(of: OpenRole, trajectories: Sequence[Trajectory], problems: list[str]) -> _Numbered:
    """Return each trajectory with its case and trial: the named one, else the next free one.

    Adds a line to `problems` for each one left out.
    """
    numbered: _Numbered = {}
    next_number: Counter[str] = Counter()
    for trajectory in sorted(trajectories, key=lambda t: t.trial is None):
        try:
            case = case_of(of, trajectory)
        except InputError as error:
            problems.append(str(error))
            continue
        number = trajectory.trial
        if number is None:
            while (case.key, next_number[case.key]) in numbered:
                next_number[case.key] += 1
            number = next_number[case.key]
        if (case.key, number) in numbered:
            first = numbered[case.key, number][1].place
            task = f"trial {number} of task {trajectory.task}"
            problems.append(f"{trajectory.place}: {task} is in {first} too")
        else:
            numbered[case.key, number] = (case, trajectory)
    return numbered


def _refuse_others(store: Store, variant: AgentVariant, numbered: _Numbered) -> None:
    """Raise InputError if the store has a different session with the same name and number."""
    keys = [key for key, _ in numbered]
    for trial in Trials(store).trials(EVALUATORS["session"], keys, [variant.sha256]):
        if (trial.case_key, trial.trial) not in numbered or trial.status != "done":
            continue
        case, trajectory = numbered[trial.case_key, trial.trial]
        log = SessionLog.model_validate(trial.log)
        problem = ""
        if log.reward != trajectory.reward:
            problem = f"with the reward {log.reward}, not {trajectory.reward}"
        elif log.messages != tuple(m for m in trajectory.messages if m.role != "system"):
            problem = "with other messages"
        if problem:
            name = f"{variant.system.name}: trial {trial.trial} of {case.info.id}"
            advice = "give these sessions another name with --agent"
            raise InputError(f"{name} is stored {problem}; {advice}", trajectory.place)


def _no_agent() -> NoReturn:
    raise AssertionError("recorded sessions are replayed")
