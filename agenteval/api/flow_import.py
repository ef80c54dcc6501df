"""Recorded trajectories of an agent become sessions in the store, judged as any other."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

from agenteval.agents import System
from agenteval.api.running import Notify, Progress, Watch, opened, synchronous, why_stopped
from agenteval.api.workflow_report import WorkflowReport, trials_report
from agenteval.api.workflows import demanded, idle_note, judged_enough, read_roles, session_rates
from agenteval.engine import Experiment
from agenteval.errors import InputError
from agenteval.evaluators.workflows.cases import OpenRole, SessionCase
from agenteval.evaluators.workflows.scenario import RECORDED
from agenteval.evaluators.workflows.session import SessionFailure, SessionLog
from agenteval.evaluators.workflows.stored import EVALUATORS, load_sessions
from agenteval.evaluators.workflows.trajectories import (
    Trajectory,
    case_of,
    read_trajectories,
    replayed,
)
from agenteval.evaluators.workflows.trials import Candidate, Case, WorkflowEvaluator
from agenteval.evaluators.workflows.verdicts import Judges, Verdicts
from agenteval.store import Store, Trials

_MOST_TOLD = 10
_Numbered = dict[tuple[str, int], tuple[SessionCase, Trajectory]]


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
    """Recorded trajectories (see `trajectories`) as sessions of `agent`: their calls are replayed
    on the role's backend, and success is judged by the state that they leave. Nobody is asked.

    A record that cannot be taken, or whose wanted calls do not fit the tools, is noted, one that
    cannot be replayed is stored as a failure too; the rest goes on. What is stored is not replayed
    again. A recorded reward is kept beside the verdict, and where the two contradict each other is
    listed. `success`, `gate` and `max_unscored` are those of `flow_sessions`. Raises InputError
    where no trajectory can be taken.
    """
    watch = Watch(notify, progress)
    demand = demanded(success)
    (of,) = read_roles(role, backend=True)
    if of.backend is None:
        raise InputError("a role needs a backend.py to replay calls", str(of.folder))
    names = [files] if isinstance(files, str | Path) else files
    reading = read_trajectories([Path(name) for name in names])
    numbered = _numbered(of, reading.trajectories, reading.problems)
    verdicts = Verdicts(Judges(demand=demand))
    for key, (case, trajectory) in list(numbered.items()):
        try:
            verdicts.gold_of(case)
        except InputError as error:  # what was wanted cannot be known: no verdict on the agent
            reading.problems.append(f"{trajectory.place}: {error}")
            del numbered[key]
    watch.warn_list("left out", reading.problems, most=_MOST_TOLD)
    if not numbered:
        raise InputError("no trajectory can be taken", ", ".join(map(str, names)))
    cases = {case.key: case for case, _ in numbered.values()}
    if idle := verdicts.prepare(cases.values()):
        watch.note(idle_note(idle, len(cases)))
    golds = [gold for case in cases.values() if (gold := verdicts.gold_of(case)) is not None]
    refused = [line for gold in golds for line in gold.refused]
    watch.warn_list("the backend does not carry out what was wanted", refused, most=_MOST_TOLD)
    candidate = Candidate(System(agent, _nobody, {"adapter": "recorded"}), RECORDED, {})

    async def act(case: Case, _: Candidate, number: int) -> SessionLog | SessionFailure:
        log = replayed(*numbered[case.key, number])
        if isinstance(log, SessionFailure):
            watch.warn(f"no session: {log.message}")
        return log

    with opened(store) as kept:
        _refuse_others(kept, candidate, numbered)
        evaluator = WorkflowEvaluator.of(
            kept, "session", cases.values(), candidate, 1 + max(n for _, n in numbered),
            act, verdicts, only=numbered.keys(),
        )  # fmt: skip
        ended = await Experiment(evaluator, kept, concurrency=1).run(watch.progress)
        stored = load_sessions(kept, cases=cases, systems=[candidate.sha256])
    keys = {(case.info.id, number) for (_, number), (case, _) in numbered.items()}
    sessions = [r for r in stored if (r.case.id.partition(" [")[0], r.trial) in keys]
    report = trials_report(sessions, [], watch.notes)
    if ended.stopped:
        report = replace(report, unfinished=(why_stopped(ended, "not replayed"),), exit_code=3)
    rates = [*session_rates(report), *(None for _ in reading.problems)]
    return judged_enough(report, rates, "sessions", gate, max_unscored, "")


flow_import = synchronous(aflow_import)


def _numbered(of: OpenRole, trajectories: Sequence[Trajectory], problems: list[str]) -> _Numbered:
    """Each with its case, by case and number of the trial: its own, else the next of its case.
    Why one is left out becomes a problem."""
    numbered: _Numbered = {}
    given: list[tuple[SessionCase, Trajectory]] = []
    for one in trajectories:
        try:
            given.append((case_of(of, one), one))
        except InputError as error:
            problems.append(str(error))
    counted: Counter[str] = Counter()
    for case, one in sorted(given, key=lambda pair: pair[1].trial is None):
        number = one.trial
        if number is None:
            while (case.key, counted[case.key]) in numbered:
                counted[case.key] += 1
            number = counted[case.key]
        if (case.key, number) in numbered:
            before = numbered[case.key, number][1].place
            problems.append(f"{one.place}: trial {number} of task {one.task} is in {before} too")
        else:
            numbered[case.key, number] = (case, one)
    return numbered


def _refuse_others(store: Store, candidate: Candidate, numbered: _Numbered) -> None:
    """Raise InputError where the store has another session under the same name and number."""
    keys = [key for key, _ in numbered]
    for trial in Trials(store).trials(EVALUATORS["session"], keys, [candidate.sha256]):
        case, one = numbered.get((trial.case_key, trial.trial), (None, None))
        if case is None or one is None or trial.status != "done":
            continue
        log = SessionLog.model_validate(trial.log)
        if log.reward != one.reward:
            raise InputError(
                f"trial {trial.trial} of {case.info.id} is stored with the reward {log.reward}, "
                f"not {one.reward}; give these another name with --agent", one.place,
            )  # fmt: skip
        if log.messages != tuple(m for m in one.messages if m.role != "system"):
            raise InputError(
                f"another session of {candidate.assistant.name} is stored as trial {trial.trial} "
                f"of {case.info.id}; give these another name with --agent", one.place,
            )  # fmt: skip


def _nobody() -> NoReturn:
    raise AssertionError("recorded sessions are replayed")
