"""Have critics write a rubric for each case: `propose_rubrics`.

Items of two critics are the same if their folded statements are equal, or if their similarity is at
least `tau` and they contain the same numbers. Items of opposite sign, and two items of one critic,
are never merged.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Unpack

import numpy as np

from agenteval.cli.options import read_options
from agenteval.cli.running import Watch, opened, planned, synchronous
from agenteval.engine import CostEstimate, RequestBounds, RequestCounter, answered, first_requests
from agenteval.errors import InputError, ModelError, ReplyError
from agenteval.files import write_atomically
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.client import Client
from agenteval.models.embeddings import Embedder
from agenteval.models.factory import ModelChoice, choose_model, make_client, notes_on
from agenteval.models.limits import Limits
from agenteval.models.prompts import neutralise
from agenteval.models.reply import parse_reply
from agenteval.models.wire import Request
from agenteval.readers.rubrics import read_rubric
from agenteval.records import Criterion, Run, Task, content_hash
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.text import plural
from agenteval.utility.critic import ChatCritic, FailedProposal, proposed_or_failed, strict_object
from agenteval.utility.critic_reply import DESCRIPTION
from agenteval.utility.judging import Runs, read_run_list, read_task
from agenteval.utility.options import ProposeKeywords, ProposeOptions
from agenteval.utility.proposals import choose_embedder

TAU = 0.8  # for statements with the same numbers and sign


@dataclass(frozen=True, slots=True)
class ProposedItem:
    """One item of a rubric, the seeds of the critics that proposed it, and all wordings."""

    requirement: str
    weight: float
    seeds: tuple[int, ...]
    wordings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CaseRubric:
    """The rubric of one input. `failures` are the critics without a proposal."""

    input: str
    items: tuple[ProposedItem, ...]
    failures: tuple[FailedProposal, ...]

    @property
    def record(self) -> dict[str, Any]:
        """The record for a rubrics file."""
        items = [{"requirement": item.requirement, "weight": item.weight} for item in self.items]
        return {"input": self.input, "rubric": items}

    @property
    def title(self) -> str:
        """The beginning of the input, on one line."""
        return " ".join(self.input.split())[:60]


class RubricCritic(ChatCritic):
    """Asks a chat model for the rubric of one input; the reference is shown if the run has one."""

    role, max_tokens = "rubric critic", 4000
    prompts = "rubric_critic_system", "rubric_critic_user", "rubric_critic_repair"

    def request(self, case: Run, seed: int) -> Request:
        """Return the request for a rubric of the case."""
        item = strict_object({"requirement": {"type": "string"}, "weight": {"type": "number"}})
        rubric = {"type": "array", "items": item}
        return self._request(
            seed,
            strict_object({"facts": {"type": "string"}, "rubric": rubric}),
            {"problem": case.input, "reference": case.reference},
            run_id=case.id,
            about={"case": content_hash([case.input, case.reference])},
        )

    async def propose(self, case: Run, seed: int) -> Criterion:
        """Return the rubric of one critic. Raises what `Critic.propose` raises."""
        return (await self._ask(self.request(case, seed), read_rubric_reply)).value


def read_rubric_reply(text: str) -> Criterion:
    """Return the rubric in a critic's reply. Raises ReplyError."""
    value = parse_reply(text, lambda v: isinstance(v, dict | list)).value
    try:
        rubric = read_rubric(value, "the reply")
    except InputError as error:
        raise ReplyError(str(error)) from None
    parts = tuple(
        part.model_copy(update={"description": neutralise(part.description)[:DESCRIPTION]})
        for part in rubric.sub_criteria
    )
    return rubric.model_copy(update={"sub_criteria": parts})


def merged(
    rubrics: Sequence[tuple[int, Criterion]],
    embedder: Embedder | None,
    *,
    tau: float = TAU,
    min_seeds: int = 1,
) -> tuple[ProposedItem, ...]:
    """Merge the items of several critics' rubrics, given as (seed, rubric).

    An item gets the wording that is most similar to the others, and their median weight. Items
    proposed by most critics come first; items of fewer than `min_seeds` critics are dropped.
    """
    items = [(seed, part) for seed, rubric in rubrics for part in rubric.sub_criteria]
    seeds = [seed for seed, _ in items]
    weights = [part.weight or 0.0 for _, part in items]
    texts = [part.description for _, part in items]
    folded = [text.casefold().strip(" .") for text in texts]
    numbers = [sorted(re.findall(r"\d+(?:[.,]\d+)*", text)) for text in texts]
    near = np.array([[a == b for b in folded] for a in folded], dtype=float)
    if embedder is not None and tau < 1 and texts:
        vectors = embedder.embed(texts)
        near = np.maximum(near, vectors @ vectors.T)

    def same(n: int, m: int) -> bool:
        signs = weights[n] < 0, weights[m] < 0
        alike = near[n, m] >= tau - 1e-6 and signs[0] == signs[1]
        return bool(alike) and seeds[n] != seeds[m] and numbers[n] == numbers[m]

    groups: list[list[int]] = []
    for n in range(len(items)):
        fitting = [group for group in groups if all(same(n, m) for m in group)]
        if fitting:
            max(fitting, key=lambda group: near[n, group].mean()).append(n)
        else:
            groups.append([n])
    proposed = []
    for group in groups:
        best = max(group, key=lambda n: (near[n, group].mean(), -len(texts[n])))
        weight = median(weights[n] for n in group)
        wordings = tuple(texts[n] for n in group)
        proposers = tuple(sorted(seeds[n] for n in group))
        proposed.append(ProposedItem(texts[best], weight, proposers, wordings))
    frequent = [item for item in proposed if len(item.seeds) >= min_seeds]
    return tuple(sorted(frequent, key=lambda item: -len(item.seeds)))


# ---------------------------------------------------------------- the command


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
    """Proposed rubrics, one per case; `written` is the output file, if any."""

    rubrics: tuple[CaseRubric, ...] = ()
    written: Path | None = None


async def apropose_rubrics(
    task: str | Path | Task, runs: Runs, **options: Unpack[ProposeKeywords]
) -> RubricsReport:
    """Have critics write a rubric for each distinct input of the runs, and merge their proposals.

    For each input, `seeds` critics get the input, and the reference if a run has one. Similar items
    of different critics are merged; items of fewer than `min_seeds` critics are dropped. With
    `output`, the rubrics are written in the format that `rubrics=` of `quantify` reads. With
    `dry_run`, nothing is sent or stored, and the report's `estimate` has the planned requests.

    Returns a report. If some cases have no rubric, its notes list them and its `exit_code` is 3.
    Raises ModelError if no case has a rubric, InputError for invalid input or options that do not
    apply, and Unauthorized if a key is rejected.
    """
    how = read_options(ProposeOptions, options, apropose_rubrics)
    folder, watch = read_task(task), Watch(how.notify)
    unused = {"--sub-criteria": how.sub_criteria, "--bank": how.bank, "--kind": how.kinds}
    for name, value in unused.items():
        if value:
            raise InputError("does not apply to rubrics of cases", name)
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
            pending = _rubrics(_critic(client, folder.task, how), cases, choice, how)
            rubrics = await answered(pending, client, watch.waiting)
        finally:
            await client.close()
    return _report(rubrics, how, folder.task, watch)


propose_rubrics = synchronous(apropose_rubrics)


def _cases(runs: Sequence[Run]) -> list[Run]:
    """Return one run per input, preferably one with a reference."""
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
    critic: RubricCritic, cases: Sequence[Run], choice: ModelChoice, how: ProposeOptions
) -> list[CaseRubric]:
    embedder = choose_embedder(choice, how)
    tau = TAU if how.tau is None else how.tau
    seeds = how.all_seeds
    answers = await asyncio.gather(
        *(proposed_or_failed(critic.propose(case, s), s) for case in cases for s in seeds)
    )
    rubrics = []
    for n, case in enumerate(cases):
        of_case = answers[n * len(seeds) : (n + 1) * len(seeds)]
        pairs = zip(seeds, of_case, strict=True)
        good = [(seed, answer) for seed, answer in pairs if isinstance(answer, Criterion)]
        failures = tuple(a for a in of_case if isinstance(a, FailedProposal))
        items = merged(good, embedder, tau=tau, min_seeds=how.min_seeds)
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
                attempt = proposed_or_failed(critic.propose(case, seed), seed)
                if first := await first_requests(attempt):
                    counter.count({"critic": RequestBounds(1, MOST_REQUESTS)}, first)
    return CostEstimate(
        tuple(counter.lines.values()),
        command="criteria",
        about=(f"task: {task.name}; cases: {len(cases)}; seeds: {how.seeds}",),
        budget=limits.budget(),
        notes=notes_on(choice),
    )


def _report(
    rubrics: Sequence[CaseRubric], how: ProposeOptions, task: Task, watch: Watch
) -> RubricsReport:
    usable = [r for r in rubrics if any(item.weight > 0 for item in r.items)]
    for rubric in rubrics:
        for failure in rubric.failures:
            why = f"seed {failure.seed}: {failure.status}: {failure.message}"
            watch.warn(f"{rubric.title!r}: {why}")
        if rubric not in usable:
            watch.warn(f"{rubric.title!r}: no rubric")
    if not usable:
        raise ModelError("no critic returned a usable rubric; nothing was written")
    written = None if how.output is None else Path(how.output)
    if written is not None:
        lines = (json.dumps(r.record, ensure_ascii=False) + "\n" for r in usable)
        write_atomically(written, "".join(lines))
    rows = [
        _RubricRow(
            case=r.title,
            items=len(r.items),
            faults=sum(item.weight < 0 for item in r.items),
            critics=how.seeds - len(r.failures),
            proposed=sum(len(item.wordings) for item in r.items),
        )
        for r in rubrics
    ]
    items = [
        _ProposedItemRow(r.title, item.weight, len(item.seeds), item.requirement)
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
