"""Rubrics that critics write for each case: `propose_rubrics`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from agenteval.cli.options import read_options
from agenteval.cli.running import Watch, opened, planned, synchronous
from agenteval.engine import CostEstimate, RequestBounds, RequestCounter, answered, first_requests
from agenteval.errors import InputError, ModelError
from agenteval.files import write_atomically
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.client import Client
from agenteval.models.factory import ModelChoice, choose_model, make_client, notes_on
from agenteval.models.limits import Limits
from agenteval.records import Criterion, Run, Task
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.text import plural
from agenteval.utility.critic import FailedProposal
from agenteval.utility.judging import Runs, read_run_list, read_task
from agenteval.utility.options import ProposeKeywords, ProposeOptions
from agenteval.utility.proposals import choose_embedder
from agenteval.utility.rubric_critic import TAU, CaseRubric, RubricCritic, merged


@dataclass(frozen=True)
class _RubricRow:
    case: str = column("case")
    items: int = column("items", "count")
    faults: int = column("faults", "count", "items with a negative weight")
    critics: int = column("critics", "count", "that proposed a rubric")
    proposed: int = column("proposed", "count", "items before merging")


@dataclass(frozen=True)
class _ProposedItemRow:
    case: str = column("case")
    weight: float = column("weight", "number")
    critics: int = column("critics", "count")
    statement: str = column("statement")


@dataclass(frozen=True, kw_only=True)
class RubricsReport(Report):
    """Proposed rubrics, one for each case; `written` is their file, if any."""

    rubrics: tuple[CaseRubric, ...] = ()
    written: Path | None = None


async def apropose_rubrics(
    task: str | Path | Task, runs: Runs, **options: Unpack[ProposeKeywords]
) -> RubricsReport:
    """Let critics write a rubric for each input of the runs, and merge what they propose.

    `seeds` critics see one input each time, with the reference if a run has one. Similar items of
    different critics are merged (`agenteval.utility.rubric_critic`); those of fewer than
    `min_seeds` critics are left out. The rubrics are written to `output` if given, in the form that
    `rubrics=` of `quantify` reads. With `dry_run` nothing is sent or stored, and the report's
    `estimate` has the planned requests.

    Returns a report; cases without a rubric are named in its notes, and its `exit_code` is 3 then.
    Raises ModelError when no case has one, InputError for invalid input and options that do not
    apply, Unauthorized when a key is refused.
    """
    how = read_options(ProposeOptions, options, apropose_rubrics)
    folder, watch = read_task(task), Watch(how.notify)
    for name, value in {
        "--sub-criteria": how.sub_criteria,
        "--bank": how.bank,
        "--kind": how.kinds,
    }.items():
        if value:
            raise InputError("rubrics of cases do without it", name)
    choice = choose_model(how.model, how.base_url, need_key=not how.dry_run)
    if choice.kind == "embedded" or choice.provider == "recorded":
        raise InputError(f"rubrics of cases need a chat model, not {choice.name}", "--model")
    cases = _cases(read_run_list(runs, folder.task.name, watch))
    if how.dry_run:
        estimate = await _estimate(choice, folder.task, cases, how)
        return RubricsReport(title="rubrics", tables=(), estimate=estimate)
    with opened(how.store) as store:
        client = make_client(choice, how.limits or Limits(), store)
        try:
            pending = _rubrics(client, folder.task, cases, choice, how)
            rubrics = await answered(pending, client, watch.waiting)
        finally:
            await client.close()
    return _report(rubrics, how, folder.task, watch)


propose_rubrics = synchronous(apropose_rubrics)


def _cases(runs: Sequence[Run]) -> list[Run]:
    """One run of each input, one with a reference if there is any."""
    cases: dict[str, Run] = {}
    for run in runs:
        if not run.input.strip():
            raise InputError(f"run {run.id!r} has no input to write a rubric for", "--per-case")
        if run.input not in cases or cases[run.input].reference is None:
            cases[run.input] = run
    return list(cases.values())


def _critic(client: Client, task: Task, how: ProposeOptions) -> RubricCritic:
    return RubricCritic(client, task, temperature=how.temperature, retry_failed=how.retry_failed)


async def _rubrics(
    client: Client, task: Task, cases: Sequence[Run], choice: ModelChoice, how: ProposeOptions
) -> list[CaseRubric]:
    critic = _critic(client, task, how)
    embedder = choose_embedder(choice, how)
    questions = [(case, seed) for case in cases for seed in how.all_seeds]
    done = await asyncio.gather(*(critic.propose(case, seed) for case, seed in questions))
    rubrics = []
    for case in cases:
        answers = [a for (other, _), a in zip(questions, done, strict=True) if other is case]
        good = [
            (seed, answer)
            for seed, answer in zip(how.all_seeds, answers, strict=True)
            if isinstance(answer, Criterion)
        ]
        items = merged(
            good, embedder, tau=TAU if how.tau is None else how.tau, min_seeds=how.min_seeds
        )
        failures = tuple(a for a in answers if isinstance(a, FailedProposal))
        rubrics.append(CaseRubric(case.input, items, failures))
    return rubrics


async def _estimate(
    choice: ModelChoice, task: Task, cases: Sequence[Run], how: ProposeOptions
) -> CostEstimate:
    limits, counter = how.limits or Limits(), RequestCounter()
    with planned(how.store) as store:
        critic = _critic(make_client(choice, limits, store), task, how)
        for case in cases:
            for seed in how.all_seeds:
                if first := await first_requests(critic.propose(case, seed)):
                    counter.count({"critic": RequestBounds(1, MOST_REQUESTS)}, first)
    about = (f"task: {task.name}; cases: {len(cases)}; seeds: {how.seeds}",)
    return CostEstimate(
        tuple(counter.lines.values()),
        command="criteria",
        about=about,
        budget=limits.budget(),
        notes=notes_on(choice),
    )


def _report(
    rubrics: Sequence[CaseRubric], how: ProposeOptions, task: Task, watch: Watch
) -> RubricsReport:
    names = {rubric.input: " ".join(rubric.input.split())[:60] for rubric in rubrics}
    usable = [r for r in rubrics if any(item.weight > 0 for item in r.items)]
    for rubric in rubrics:
        for failure in rubric.failures:
            why = f"seed {failure.seed}: {failure.status}: {failure.message}"
            watch.warn(f"{names[rubric.input]!r}: {why}")
        if rubric not in usable:
            watch.warn(f"{names[rubric.input]!r}: no rubric")
    if not usable:
        raise ModelError("no critic returned a usable rubric; nothing was written")
    written = None if how.output is None else Path(how.output)
    if written is not None:
        lines = (json.dumps(r.record, ensure_ascii=False) + "\n" for r in usable)
        write_atomically(written, "".join(lines))
    rows = [
        _RubricRow(
            case=names[r.input],
            items=len(r.items),
            faults=sum(item.weight < 0 for item in r.items),
            critics=how.seeds - len(r.failures),
            proposed=sum(len(item.wordings) for item in r.items),
        )
        for r in rubrics
    ]
    items = [
        _ProposedItemRow(names[r.input], item.weight, len(item.seeds), item.requirement)
        for r in rubrics
        for item in r.items
    ]
    return RubricsReport(
        title=f"rubrics of {plural(len(usable), 'case')} of task {task.name}",
        tables=(
            table_of(_RubricRow, "rubrics", "", rows),
            table_of(_ProposedItemRow, "items", "items", items, group="case", detail=True),
        ),
        notes=tuple(watch.notes),
        data={"rubrics": [r.record for r in usable]},
        rubrics=tuple(rubrics),
        written=written,
        exit_code=0 if len(usable) == len(rubrics) else 3,
    )
