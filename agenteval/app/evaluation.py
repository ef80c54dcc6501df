"""Run an evaluation file: criteria, scores, verification, comparison, report, exit code."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from agenteval.app.comparison import compare
from agenteval.app.evaluation_file import STEPS, EvaluationFile, read_evaluation
from agenteval.app.stored import page
from agenteval.cli.arguments import LimitOptions
from agenteval.cli.running import Notify, Progress, Watch, opened
from agenteval.engine import CostEstimate
from agenteval.errors import InputError
from agenteval.models.factory import ChatModel
from agenteval.readers.tasks import mapping_of
from agenteval.records import Run, Source, Task
from agenteval.reporting.report import Report
from agenteval.utility.api import propose, quantify
from agenteval.utility.criteria_file import find_criteria, has_criteria
from agenteval.utility.judging import read_run_list, read_task
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verifying import verify


@dataclass(frozen=True, kw_only=True)
class EvaluationReport(Report):
    """The reports of the steps that ran, by step: criteria, quantify, verify, compare, report.

    `exit_code` is the first that is not 0: of quantify (3), of the gates of verify and compare.
    """

    steps: Mapping[str, Report] = field(default_factory=dict)

    def print(self, *, all: bool = False, console: Console | None = None) -> None:
        """Print the report of each step; after a dry run, requests and cost of all steps."""
        if self.estimate is not None or not self.steps:
            super().print(all=all, console=console)
            return
        console = console or Console(highlight=False, emoji=False)
        for step, report in self.steps.items():
            console.print(Text(f"== {step}", "bold"))
            report.print(all=all, console=console)

    def to_json(self) -> dict[str, Any]:
        """Return the steps as plain values; after a dry run the estimate."""
        if self.estimate is not None:
            return self.estimate.to_json()
        steps = {step: report.to_json() for step, report in self.steps.items()}
        return {"title": self.title, "steps": steps, "exit_code": self.exit_code}


def run(
    file: str | Path,
    *,
    dry_run: bool = False,
    only: Sequence[str] = (),
    overrides: Iterable[str] = (),
    store: str | Path | None = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> EvaluationReport:
    """Run the steps of an evaluation file; stored results are not asked for again.

    The steps are criteria (if the criteria file is missing), quantify, verify, compare and report,
    each if the file has its section; `only` selects some. `overrides` change values of the file,
    such as "judge.repeats=3". `store` replaces that of the file. A step that stops early ends the
    evaluation; the same call continues. With `dry_run` nothing is sent or stored, and `estimate`
    has the requests and cost of all steps.

    Raises InputError for a file that cannot be used, before anything is sent.
    """
    unknown = [step for step in only if step not in STEPS]
    if unknown:
        raise InputError(f"no step {unknown[0]!r}; steps: {', '.join(STEPS)}", "--only")
    evaluation = read_evaluation(file, overrides)
    if store is not None:
        evaluation = replace(evaluation, store=str(store))
    watch = Watch(notify, progress)
    return _Evaluation(evaluation, tuple(only) or STEPS, watch).run(dry_run=dry_run)


class _Evaluation:
    """The steps of one evaluation, on its runs."""

    def __init__(self, file: EvaluationFile, steps: Sequence[str], watch: Watch) -> None:
        self.file, self.steps, self.watch = file, steps, watch
        self.task = read_task(file.task)
        self.runs = self._read_runs()
        self.criteria = self._criteria_file()
        self.common: dict[str, Any] = {
            "store": file.store,
            "limits": LimitOptions(**file.limits).limits(),
            "notify": watch.note,
            "progress": watch.progress,
        }

    def _read_runs(self) -> list[Run]:
        """Return all runs; those of a named file belong to its system."""
        runs = []
        name = "" if isinstance(self.file.task, Task) else self.file.task
        for system, path in self.file.runs.items():
            mapping = {**mapping_of(name, Path(path)), **(self.file.mapping or {})} or None
            for read in read_run_list(path, name, self.watch, mapping):
                runs.append(read.model_copy(update={"system": system}) if system else read)
        if not runs:
            raise InputError("the evaluation has no runs", str(self.file.path))
        return runs

    def _criteria_file(self) -> Path:
        """Return the criteria file of the evaluation, which may still be missing."""
        name = self.task.task.name
        if "file" in self.file.criteria:
            return Path(self.file.criteria["file"])
        return find_criteria(name) if has_criteria(name) else Path("criteria") / f"{name}.json"

    def run(self, *, dry_run: bool) -> EvaluationReport:
        """Run the steps in order."""
        title = f"{self.task.task.name}: {len(self.runs)} runs, {self.file.path}"
        if dry_run:
            return EvaluationReport(title=title, tables=(), estimate=self._estimate())
        reports: dict[str, Report] = {}
        code = 0
        for step in (s for s in STEPS if s in self.steps):
            if step == "criteria" and self.criteria.exists():
                continue
            report = getattr(self, f"_{step}")()
            if report is None:
                continue
            reports[step] = report
            code = code or report.exit_code
            if report.unfinished and report.exit_code:
                break
        return EvaluationReport(
            title=title, tables=(), notes=tuple(self.watch.notes), steps=reports, exit_code=code
        )

    def _estimate(self) -> CostEstimate:
        """Return the requests of all steps.

        Runs that are judged in quantify and verify alike are counted in both, so the requests of
        verify are counted as possible, not as certain.
        """
        total = CostEstimate(command="run", about=(f"{len(self.runs)} runs",))
        if "criteria" in self.steps and not self.criteria.exists():
            estimate = self._criteria(dry_run=True).estimate or CostEstimate()
            notes = (*estimate.notes, "scores are not estimated before the criteria are proposed")
            return replace(total, notes=notes) + replace(estimate, notes=())
        if "quantify" in self.steps:
            total += self._quantify(dry_run=True).estimate or CostEstimate()
        if "verify" in self.steps and (report := self._verify(dry_run=True)) is not None:
            estimate = report.estimate or CostEstimate()
            total += estimate.uncertain() if "quantify" in self.steps else estimate
        return replace(total, budget=self.common["limits"].budget())

    # -- steps -------------------------------------------------------------------------------------

    def _criteria(self, *, dry_run: bool = False) -> Report:
        options = {k: v for k, v in self.file.criteria.items() if k != "file"}
        model = _with_parameters(options, "model")
        self.watch.note(f"proposing criteria: {self.criteria}")
        output = None if dry_run else self.criteria
        common = {k: v for k, v in self.common.items() if k != "progress"}
        return propose(self.file.task, **options, **model, **common, output=output, dry_run=dry_run)

    def _judge(self) -> dict[str, Any]:
        options = dict(self.file.judge)
        gates = {k: options.pop(k, None) for k in ("max_unscored", "score_failed_runs")}
        judge = {**options, **_with_parameters(options, "judge"), **self.common}
        return {"judge": judge, "gates": {k: v for k, v in gates.items() if v is not None}}

    def _quantify(self, *, dry_run: bool = False) -> Report:
        options = self._judge()
        judge, criteria = options["judge"], self.criteria
        if not dry_run:
            planned = quantify(
                self.runs, criteria, task=self.file.task, dry_run=True, **_quiet(judge)
            )
            self._say_changes(planned.source, planned.estimate)
        return quantify(
            self.runs,
            criteria,
            task=self.file.task,
            dry_run=dry_run,
            **judge,
            **options["gates"],
        )

    def _verify(self, *, dry_run: bool = False) -> Report | None:
        if self.file.verify is None:
            return None
        options, judge = dict(self.file.verify), self._judge()["judge"]
        gate, allow = options.pop("gate", False), options.pop("allow_criteria", ())
        seed, runs = options.pop("seed", judge.pop("seed", 0)), self.runs
        judge["repeats"] = options.pop("repeats", max(2, judge.get("repeats", 2)))
        sample = options.pop("sample", len(runs))
        if sample < len(runs):
            runs = random.Random(seed).sample(runs, sample)  # noqa: S311  a reproducible draw
        output = options.pop("output", f"criteria/{self.task.task.name}.verified.json")
        report = verify(
            runs,
            self.criteria,
            task=self.file.task,
            options=VerifyOptions(seed=seed),
            output=None if dry_run else output,
            seed=seed,
            dry_run=dry_run,
            **options,
            **judge,
        )
        return report.gate(allow) if gate and not dry_run else report

    def _compare(self) -> Report | None:
        if self.file.compare is None:
            return None
        options = dict(self.file.compare)
        baseline = options.pop("baseline")
        passes = options.pop("undecided", "fail") == "pass"
        systems = [s for s in dict.fromkeys(r.system for r in self.runs) if s != baseline]
        if not systems or all(r.system != baseline for r in self.runs):
            raise InputError(f"there is no system to compare with {baseline!r}", "compare.baseline")
        reports = [
            compare(
                baseline,
                system,
                store=self.file.store,
                task=self.task.task.name,
                undecided_passes=passes,
                **options,
            )
            for system in systems
        ]
        if len(reports) == 1:
            return reports[0]
        return Report(
            title=f"compared with {baseline}",
            tables=tuple(
                replace(table, key=f"{system}_{table.key}", title=f"{system}: {table.title}")
                for system, report in zip(systems, reports, strict=True)
                for table in report.tables
            ),
        ).gated(
            *(
                replace(gate, criterion=f"{system}, {gate.criterion}")
                for system, report in zip(systems, reports, strict=True)
                for gate in report.gates
            ),
            undecided_passes=passes,
        )

    def _report(self) -> Report | None:
        if self.file.report is None:
            return None
        return page(self.file.report, store=self.file.store, task=self.task.task.name)

    def _say_changes(self, source: Source, estimate: CostEstimate | None) -> None:
        """Note what changed since the latest judge of this store, and how many requests follow."""
        path = Path(self.file.store or "agenteval.db")
        requests = estimate.requests[0] if estimate else 0
        if not requests:
            self.watch.note("nothing changed: all scores are stored")
            return
        if not path.is_file():
            return
        with opened(self.file.store, create=False) as store:
            stored = [s for key, s in store.sources() if s.evaluator == source.evaluator]
        if not stored or source in stored:
            return
        before, after = stored[-1].model_dump(), source.model_dump()
        changed = [name for name in after if before[name] != after[name]]
        self.watch.note(f"the judge changed ({', '.join(changed)}): {requests} new requests")


def _with_parameters(options: dict[str, Any], name: str) -> dict[str, Any]:
    """Take the parameters of requests out of the options; return the model that has them."""
    parameters = dict(options.pop("parameters", {}))
    if (effort := options.pop("reasoning_effort", None)) is not None:
        parameters["reasoning_effort"] = effort
    if (tokens := options.pop("max_tokens", None)) is not None:
        parameters["max_tokens"] = None if tokens == "none" else tokens
    model = options.pop(name, None)
    return {name: ChatModel(model, parameters=parameters) if parameters else model}


def _quiet(options: Mapping[str, Any]) -> dict[str, Any]:
    return {**options, "notify": lambda line: None, "progress": None}
