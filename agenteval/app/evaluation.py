"""Run an evaluation file: criteria, scores, verification, comparison, tests and report."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from glob import glob
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.text import Text

from agenteval.analysis.rating_sources import chosen_raters
from agenteval.app.comparison import compare
from agenteval.app.evaluation_file import STEPS, EvaluationFile, read_evaluation
from agenteval.app.stored import page, trials_page
from agenteval.cli.arguments import LimitOptions
from agenteval.cli.running import Notify, Progress, Watch, opened
from agenteval.engine import CostEstimate
from agenteval.errors import InputError
from agenteval.files import same_file
from agenteval.models.factory import ChatModel
from agenteval.models.limits import Budget
from agenteval.planning.api import plan_test
from agenteval.records import Criterion, Run, Source, Task
from agenteval.reporting.report import Report
from agenteval.store import default_path, is_there
from agenteval.store.rows import case_key
from agenteval.text import plural
from agenteval.traces.api import locate
from agenteval.utility.api import propose, quantify
from agenteval.utility.criteria_file import find_criteria, has_criteria
from agenteval.utility.judging import read_run_list, read_task
from agenteval.utility.reports import ScoreReport
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verifying import verify
from agenteval.workflows.api import flow_sessions

_TESTS: dict[str, Callable[..., Report]] = {
    "plan": plan_test,
    "trace": locate,
    "flow": flow_sessions,
}
_QUANTIFY = ("max_unscored", "score_failed_runs")  # of the section `judge`, but not of verify
# Placeholder for criteria not yet proposed while judge and options are checked.
_ANY_CRITERION = Criterion(name="any", accepted_values=("no", "yes"), order="worst_to_best")


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
    """Run the steps of an evaluation file. Stored results are not requested again.

    The steps are criteria (if the criteria file is missing), quantify, verify, compare, plan,
    trace, flow and report, each if the file has its section; `only` selects some. `overrides`
    change values of the file, such as "judge.repeats=3", and `store` replaces its store. A step
    that stops early ends the evaluation; the same call continues it.

    Returns the reports of all steps. With `dry_run` nothing is sent or stored, and `estimate` has
    the requests and cost of all steps. Raises InputError for an invalid file before anything is
    sent.
    """
    unknown = [step for step in only if step not in STEPS]
    if unknown:
        raise InputError(f"no step {unknown[0]!r}; steps: {', '.join(STEPS)}", "--only")
    evaluation = read_evaluation(file, overrides)
    if store is not None:
        evaluation = replace(evaluation, store=str(store))
    watch = Watch(notify, progress)
    possible = {s for s in STEPS if getattr(evaluation, s, None) is not None}
    if evaluation.runs:
        possible |= {"quantify"}
    else:
        possible -= {"criteria"}
    for step in only:
        if step not in possible:
            raise InputError(f"the file does not have a section for the step {step!r}", "--only")
    steps = [s for s in STEPS if s in possible and s in (only or STEPS)]
    try:
        return _Evaluation(evaluation, steps, watch).run(dry_run=dry_run)
    except InputError as error:
        if not (error.where or "").startswith("--"):  # a command's option, without a place
            raise
        raise InputError(str(error), str(file)) from None


class _Evaluation:
    """The steps of one evaluation, on its runs."""

    def __init__(self, file: EvaluationFile, steps: Sequence[str], watch: Watch) -> None:
        self.file, self.steps, self.watch = file, steps, watch
        self.task = read_task(file.task).task if file.task else Task(name="tests", description="-")
        self.runs = self._read_runs() if file.runs else []
        name = self.task.name
        self.criteria = find_criteria(name) if has_criteria(name) else Path(f"criteria/{name}.json")
        if "file" in file.criteria:
            self.criteria = Path(file.criteria["file"])
        self.plan: ScoreReport | None = None
        self.pages = self._pages()
        self._refuse_overwriting()
        self.limits = LimitOptions(**file.limits).limits()
        self.common: dict[str, Any] = {
            "store": file.store,
            "limits": self.limits,
            "notify": watch.note,
            "progress": watch.progress,
        }

    def _read_runs(self) -> list[Run]:
        """Return all runs; those of a named file belong to its system."""
        runs = []
        name = self.file.task if isinstance(self.file.task, str) else ""
        for system, path in self.file.runs.items():
            read = read_run_list(path, name, self.watch, self.file.mapping)
            if not read:
                raise InputError("no runs found", path)
            systems_read = sorted({run.system for run in read} - {"unnamed", system})
            if system and len(systems_read) > 1:
                listed = ", ".join(systems_read[:5])
                raise InputError(f"under {system!r} in `runs`, but of systems {listed}", path)
            if system and systems_read:
                self.watch.warn(f"{path}: its runs of {systems_read[0]!r} count as {system!r}")
            runs += [r.model_copy(update={"system": system}) if system else r for r in read]
        return runs

    def _check_comparison(self) -> None:
        """Raise InputError for systems that cannot be compared with the baseline."""
        baseline, cases = (self.file.compare or {})["baseline"], dict[str, set[str]]()
        for run in self.runs:
            cases.setdefault(run.system, set()).add(case_key(run))
        place = f"{self.file.path}: compare.baseline"
        if baseline not in cases or len(cases) < 2:
            names = ", ".join(sorted(cases))
            problem = f"no system to compare with {baseline!r}; the runs are of {names}"
            raise InputError(problem, place)
        for system in cases:
            if not cases[system] & cases[baseline]:
                problem = f"{system!r} has no case in common with {baseline!r}"
                raise InputError(f"{problem} (the same case or the same input)", place)

    def _refuse_overwriting(self) -> None:
        """Raise InputError for an output that would replace an input or another output."""
        file = self.file
        used = {str(file.path), file.store or default_path(), str(self.criteria)}
        used |= {p for path in file.runs.values() for p in (path, *glob(path))}
        outputs = {f"report of {step}": page for step, page in self.pages.items()}
        if file.verify is not None:
            used |= {file.verify.get("labels", "")}
            outputs["verify.output"] = self._verified_file()
        for key, output in outputs.items():
            if Path(output).is_dir() or any(same_file(Path(output), Path(p)) for p in used if p):
                problem = f"{key}: {output} is a folder or another file of this evaluation"
                raise InputError(problem, str(file.path))
            used.add(output)

    def _pages(self) -> dict[str, str]:
        """Return the pages of the report, by the step that they are about."""
        if self.file.report is None:
            return {}
        tests = [step for step in _TESTS if getattr(self.file, step) is not None]
        if self.runs or len(tests) == 1:
            return {"quantify" if self.runs else tests[0]: self.file.report}
        path = Path(self.file.report)
        return {step: str(path.with_stem(f"{path.stem}-{step}")) for step in tests}

    def _verified_file(self) -> str:
        output = (self.file.verify or {}).get("output", "criteria/{task}.verified.json")
        return str(output).replace("{task}", self.task.name)

    @property
    def _to_be_proposed(self) -> bool:
        return "criteria" in self.steps and not self.criteria.exists()

    def run(self, *, dry_run: bool) -> EvaluationReport:
        """Run the steps in order."""
        about = f"{self.task.name}: {plural(len(self.runs), 'run')}, " if self.runs else ""
        title = f"{about}{self.file.path}"
        if dry_run:
            return EvaluationReport(title=title, tables=(), estimate=self._estimate())
        loud, self.common = self.common, _quiet(self.common)
        self._estimate()  # refuse invalid input before anything is sent
        self.common = loud
        reports: dict[str, Report] = {}
        for step in self.steps:
            if step == "criteria" and not self._to_be_proposed:
                continue
            reports[step] = report = self._step(step)
            if report.unfinished and report.exit_code:
                break
        return EvaluationReport(
            title=title,
            tables=(),
            notes=tuple(self.watch.notes),
            unfinished=tuple(line for r in reports.values() for line in r.unfinished),
            gates=tuple(gate for r in reports.values() for gate in r.gates),
            steps=reports,
            exit_code=next((r.exit_code for r in reports.values() if r.exit_code), 0),
        )

    def _estimate(self) -> CostEstimate:
        """Return the requests of all steps.

        Runs that are judged in quantify and verify alike are counted in both, so the requests of
        verify are counted as possible, not as certain. They share a budget; other steps have one
        each, so that caps do not limit the sum.
        """
        total = CostEstimate(command="run")
        missing = self._to_be_proposed
        if self.file.compare is not None:
            self._check_comparison()
        budgets: dict[str, Budget] = {}
        for step in self.steps:
            if step in ("compare", "report") or (step == "criteria" and not missing):
                continue
            estimate = self._step(step, dry_run=True).estimate or CostEstimate()
            if missing and step in ("quantify", "verify"):
                note = "scores can only be estimated after the criteria are proposed"
                total += CostEstimate(notes=(note,))
                continue
            budgets.setdefault("quantify" if step == "verify" else step, estimate.budget)
            judged = step == "verify" and "quantify" in self.steps
            total += estimate.uncertain() if judged else estimate
        if len(budgets) < 2:
            return replace(total, budget=next(iter(budgets.values()), total.budget))
        if self.limits.max_calls is not None or self.limits.max_cost is not None:
            note = "max_calls and max_cost limit each step, not their sum"
            total = replace(total.uncertain(), notes=(*total.notes, note))
        return replace(total, budget=replace(self.limits, max_calls=None, max_cost=None).budget())

    def _step(self, step: str, **dry: bool) -> Report:
        if step in _TESTS:
            return _TESTS[step](**getattr(self.file, step), **self.common, **dry)
        report: Report = getattr(self, f"_{step}")(**dry)
        return report

    # -- steps -------------------------------------------------------------------------------------

    def _criteria(self, *, dry_run: bool = False) -> Report:
        options = {k: v for k, v in self.file.criteria.items() if k != "file"}
        model = _with_parameters(options, "model")
        if not dry_run:
            self.watch.note(f"proposing criteria: {self.criteria}")
        return propose(
            self.file.task or self.task,
            **options,
            **model,
            **{k: v for k, v in self.common.items() if k != "progress"},
            output=None if dry_run else self.criteria,
            dry_run=dry_run,
        )

    def _judge(self) -> dict[str, Any]:
        """Return the options of the judge, without those of quantify alone."""
        options = {k: v for k, v in self.file.judge.items() if k not in _QUANTIFY}
        model = _with_parameters(options, "judge")
        return {**options, **model, **self.common}

    def _planned(self) -> ScoreReport:
        """Return the plan of quantify: its source, criteria and estimate. Nothing is sent."""
        if self.plan is None:
            missing = self._to_be_proposed
            plan = quantify(
                self.runs,
                [_ANY_CRITERION] if missing else self.criteria,
                task=self.file.task,
                dry_run=True,
                **_quiet(self._judge()),
            )
            self._check_criteria(None if missing else plan.criteria)
            if missing:
                return plan
            self.plan = plan
        return self.plan

    def _quantify(self, *, dry_run: bool = False) -> Report:
        plan = self._planned()
        if dry_run:
            return plan
        self._say_changes(plan.source, plan.estimate)
        gates = {k: v for k, v in self.file.judge.items() if k in _QUANTIFY and v is not None}
        how = {**self._judge(), **gates}
        return quantify(self.runs, self.criteria, task=self.file.task, **how)

    def _check_criteria(self, criteria: Iterable[Criterion] | None) -> None:
        """Raise InputError for gates that cannot be decided; None: criteria are not known yet."""
        leaves = [leaf for c in criteria or () for _, leaf in c.leaves()]
        ids = [leaf.id for leaf in leaves]
        names = [name for leaf in leaves for name in (leaf.id, leaf.name)]
        compare, verify = self.file.compare or {}, self.file.verify or {}
        labelled = {run.system for run in self.runs if run.success is not None}
        silent = {run.system for run in self.runs} - labelled
        comparable = ids if silent else [*ids, "success"]
        for key, values, allowed in (
            ("compare.fail_under", compare.get("fail_under", ()), comparable),
            ("compare.criteria", compare.get("only") or (), comparable),
            ("verify.allow_criteria", verify.get("allow_criteria", ()), names),
        ):
            for name in values:
                if criteria is None and name.casefold() != "success":
                    continue
                if name.casefold() not in map(str.casefold, allowed):
                    problem = f"{key}: no criterion {name!r}; there are {', '.join(allowed)}"
                    if name.casefold() == "success":
                        problem = f"{key}: no run of {min(silent)!r} says whether it succeeded"
                    raise InputError(problem, str(self.file.path))
        ordered = {leaf.id for leaf in leaves if leaf.ordered} | {"success"}
        compared = compare.get("only") or comparable
        if criteria is not None and compare.get("fail_if") and not ordered & set(compared):
            problem = "compare.fail_if: no criterion has an order, so no gate could fail"
            raise InputError(problem, str(self.file.path))

    def _verify(self, *, dry_run: bool = False) -> Report:
        options, judge = dict(self.file.verify or {}), self._judge()
        gate, allow = options.pop("gate", False), options.pop("allow_criteria", ())
        seed, runs = options.pop("seed", judge.get("seed", 0)), self.runs
        judge["repeats"] = options.pop("repeats", max(2, judge.get("repeats", 2)))
        sample = options.pop("sample", len(runs))
        if sample < len(runs):
            runs = random.Random(seed).sample(runs, sample)  # noqa: S311  a reproducible draw
        criteria: Any = self.criteria
        if dry_run and self._to_be_proposed:
            criteria, labels = [_ANY_CRITERION], options.pop("labels", None)
            if labels is not None:
                chosen_raters(Path(labels), (), "verify.labels")
        report = verify(
            runs,
            criteria,
            task=self.file.task,
            options=VerifyOptions(seed=seed),
            dry_run=dry_run,
            **{**options, "output": None if dry_run else self._verified_file()},
            **judge,
        )
        return report.gate(allow) if gate and not dry_run else report

    def _compare(self) -> Report:
        options = dict(self.file.compare or {})
        baseline = options.pop("baseline")
        passes = options.pop("undecided", "fail") == "pass"
        options |= {"store": self.file.store, "task": self.task.name, "undecided_passes": passes}
        options["judges"] = self._planned().source.sha256  # the store may hold others
        systems = [s for s in dict.fromkeys(r.system for r in self.runs) if s != baseline]
        reports = {system: compare(baseline, system, **options) for system in systems}
        if len(reports) == 1:
            return reports[systems[0]]
        return Report(
            title=f"compared with {baseline}",
            tables=tuple(
                replace(table, key=f"{system}_{table.key}", title=f"{system}: {table.title}")
                for system, report in reports.items()
                for table in report.tables
            ),
            notes=tuple(f"{system}: {line}" for system, r in reports.items() for line in r.notes),
            unfinished=tuple(
                dict.fromkeys(line for r in reports.values() for line in r.unfinished)
            ),
        ).gated(
            *(
                replace(gate, criterion=f"{system}, {gate.criterion}")
                for system, report in reports.items()
                for gate in report.gates
            ),
            undecided_passes=passes,
        )

    def _report(self) -> Report:
        store, reports = self.file.store, list[Report]()
        for step, output in self.pages.items():
            if step in _TESTS:
                reports.append(trials_page(output, step, store=store))
            else:
                source = self._planned().source.sha256
                reports.append(page(output, store=store, task=self.task.name, source=source))
        return Report(
            title="\n".join(report.title for report in reports),
            tables=(),
            notes=tuple(line for report in reports for line in report.notes),
            unfinished=tuple(line for report in reports for line in report.unfinished),
            data={"files": [report.data["file"] for report in reports]},
        )

    def _say_changes(self, source: Source, estimate: CostEstimate | None) -> None:
        """Note what changed since the latest judge of this store, and how many requests follow."""
        requests = estimate.requests[0] if estimate else 0
        if not requests:
            self.watch.note("nothing changed: all scores are stored")
            return
        if not is_there(self.file.store or default_path()):
            return
        with opened(self.file.store, create=False) as store:
            stored = [s for key, s in store.sources() if s.evaluator == source.evaluator]
        if not stored or source in stored:
            return
        before, after = stored[-1].model_dump(), source.model_dump()
        changed = [name for name in after if before[name] != after[name]]
        self.watch.note(
            f"the judge changed ({', '.join(changed)}): at least {plural(requests, 'new request')}"
        )


def _with_parameters(options: dict[str, Any], name: str) -> dict[str, Any]:
    """Take the parameters of requests out of the options; return the model that has them."""
    parameters = dict(options.pop("parameters", {}))
    if (effort := options.pop("reasoning_effort", None)) is not None:
        parameters["reasoning_effort"] = effort
    if (tokens := options.pop("max_tokens", None)) is not None:
        parameters["max_tokens"] = None if tokens == "none" else tokens
    model = options.pop(name, None)
    if not parameters:
        return {name: model}
    if isinstance(model, list):
        return {name: [ChatModel(member, parameters=parameters) for member in model]}
    return {name: ChatModel(model, parameters=parameters)}


def _quiet(options: Mapping[str, Any]) -> dict[str, Any]:
    return {**options, "notify": lambda line: None, "progress": None}
