"""Shared by `quantify` and `verify`: read runs, criteria and judge, and run the experiment."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.agents.callable import load, source_sha256
from agenteval.analysis.means import cases_answered_twice
from agenteval.cli.running import Watch, why_stopped
from agenteval.engine import CostEstimate, Experiment, ExperimentResult
from agenteval.engine.dry_run import LOCAL
from agenteval.engine.executor import Executor, make_executor
from agenteval.engine.judging import JudgeUnit, RunJudge
from agenteval.errors import BadRequest, InputError, NoStoreYet
from agenteval.models.factory import (
    ChatModel,
    Model,
    ModelChoice,
    choose_model,
    make_client,
    notes_on,
)
from agenteval.models.limits import Limits
from agenteval.models.replay import ReplayTransport
from agenteval.readers import degenerate, make_view, read_runs
from agenteval.readers.fields import check_name
from agenteval.readers.leaks import leak_lines
from agenteval.readers.strict_json import Notes
from agenteval.readers.tasks import TaskFolder, find_task, recording_of
from agenteval.records import CriteriaSet, Criterion, Run, Task, Usage, View, content_hash
from agenteval.records.run import no_answers
from agenteval.records.table import Table
from agenteval.store import Store, default_path, is_there
from agenteval.store.rows import case_key
from agenteval.text import plural
from agenteval.utility.computed import WithComputed, check_computed
from agenteval.utility.criteria_file import find_criteria, has_criteria, load_criteria
from agenteval.utility.distributions import DistributionJudge, Kind
from agenteval.utility.embedded import EmbeddedJudge
from agenteval.utility.evaluator import Item, JudgeEvaluator, rubrics_of
from agenteval.utility.function_judge import FunctionJudge, JudgeFunction
from agenteval.utility.options import JudgeOptions
from agenteval.utility.quantifier import Guarded, Quantifier, QuantifierOptions, chat_judge
from agenteval.utility.rubrics import JudgedRubrics, with_rubrics
from agenteval.utility.scorers import Scorer, scorer_of

if TYPE_CHECKING:
    from agenteval.models.client import Client

Runs = str | Path | Iterable[Run]
Criteria = str | Path | CriteriaSet | Iterable[Criterion]
AnyJudge = Model | JudgeFunction | object  # the object is a scorer of another framework


class JudgingStopped(Exception):
    """The judging stopped early, with its results stored; `ended` has the reason."""

    def __init__(self, ended: ExperimentResult, remaining: str = "calls not made") -> None:
        super().__init__(why_stopped(ended, remaining))
        self.ended = ended


@dataclass(frozen=True)
class Judging:
    """Runs as the judge sees them, the criteria, the judge, and the options of both.

    `judge` is a model's name or settings, or a judge in Python, whose `version` may be needed.
    """

    items: tuple[Item, ...]
    task: Task
    criteria: tuple[Criterion, ...]
    judge: Model | JudgeFunction | Scorer
    version: str | None
    how: JudgeOptions
    watch: Watch
    executor: Executor

    @property
    def all_criteria(self) -> tuple[Criterion, ...]:
        """The criteria of all runs, followed by the rubrics of single runs."""
        return (*self.criteria, *rubrics_of(self.items))

    @property
    def repeats(self) -> int:
        """Number of times each text is judged."""
        return self.how.repeats

    @property
    def seed(self) -> int:
        """The seed of the judge, of copies and of the order of cases."""
        return self.how.seed

    @property
    def limits(self) -> Limits:
        """Caps and concurrency."""
        return self.how.limits or Limits()

    @property
    def no_answer(self) -> dict[str, list[str]]:
        """Ids of the runs whose system failed, by kind."""
        failed: defaultdict[str, list[str]] = defaultdict(list)
        for run, _ in self.items:
            if run.failure is not None:
                failed[run.failure.kind].append(run.id)
        return dict(failed)

    @cached_property
    def choice(self) -> ModelChoice | None:
        """The model that judges; None for a judge in Python. Raises InputError."""
        if not isinstance(self.judge, Model):
            return None
        choice = choose_model(
            self.judge, self.how.base_url, need_key=not self.how.dry_run, decides=True
        )
        recorded = choice.provider == "recorded"
        if self.how.probabilities and (choice.kind == "embedded" or recorded):
            what = "needs a chat model that returns log-probabilities"
            raise InputError(f"{what}; {choice.name} has none", "--probabilities")
        if recorded:
            return replace(choice, path=recording_of(self.task.name, "judge"))
        return choice

    @cached_property
    def recording(self) -> ReplayTransport | None:
        """The recorded replies that judge; None for any other judge."""
        if self.choice is None or self.choice.provider != "recorded" or not self.choice.path:
            return None
        return ReplayTransport(self.choice.path, "recorded")

    @property
    def distributes(self) -> bool:
        """Whether a model is asked for the probabilities of levels."""
        return self.choice is not None and (
            self.how.probabilities or self.choice.kind == "decisions"
        )

    @property
    def sends_nothing(self) -> bool:
        """Whether it computes in this process: the embedded judge, or a function."""
        return self.choice is None or self.choice.kind == "embedded"

    def refuse_unrecorded(self, texts: Iterable[tuple[str, Sequence[Item]]]) -> None:
        """Raise InputError for the first of these texts, by variant, without a recorded judgement.

        Does nothing unless recorded replies judge.
        """
        if self.recording is None or self.choice is None:
            return
        client = make_client(self.choice, self.limits, None)
        quantifier = Quantifier(client, self.task, self._options())
        criteria = [c for c in self.criteria if not c.judge]
        for variant, items in texts:
            for (run, view), repeat in product(items, range(self.repeats)):
                rubric = [] if run.rubric is None else [run.rubric]
                to_judge = [*criteria, *rubric] if degenerate(run) is None else []
                for batch in quantifier.batches(to_judge):
                    request, _ = quantifier.request(JudgeUnit(run, view, batch, repeat, variant))
                    try:
                        self.recording.find(request)
                    except BadRequest as error:
                        raise InputError(str(error), "--model recorded") from error

    def _options(self, **changes: Any) -> QuantifierOptions:
        how = self.how
        rubrics = bool(rubrics_of(self.items))
        plain = QuantifierOptions(how.one_per_call, how.temperature, seed=how.seed, rubrics=rubrics)
        return replace(plain, **changes)

    def evaluator(
        self, store: Store | None, *, spent: Usage | None = None, **changes: Any
    ) -> tuple[RunJudge, Client | None]:
        """Return the judge, with quantifier options changed; its client is None in Python.

        A cap on requests or cost counts `spent`, by default what the store says this judge has
        used before.
        """
        client, choice, judge = None, self.choice, self.judge
        evaluator: RunJudge
        if not isinstance(judge, Model):
            evaluator = FunctionJudge(judge, version=self.version, seed=self.seed)
        elif choice is None or choice.kind == "embedded":
            evaluator = Guarded(EmbeddedJudge(seed=self.seed))
        else:
            client, options = make_client(choice, self.limits, store), self._options(**changes)
            if self.distributes:
                kind: Kind = "decisions" if choice.kind == "decisions" else "letters"
                evaluator = Guarded(DistributionJudge(client, self.task, kind, options))
            else:
                evaluator = chat_judge(client, self.task, options)
        capped = evaluator if isinstance(evaluator, FunctionJudge) else client
        if capped is not None and store is not None:
            capped.budget = self.limits.budget(spent or store.usage(evaluator.source.sha256))
        if any(criterion.judge for criterion in self.criteria):
            evaluator = WithComputed(evaluator)
        return evaluator, client

    def say_judge(self) -> None:
        """Report a default or limited judge. Raises InputError like `choice`."""
        if self.recording is not None:
            self.watch.note(
                "judge: replies of a capable large language model, written offline and recorded "
                f"in {self.recording.path}"
            )
        if self.choice is not None and self.choice.kind == "embedded":
            name = self.judge.model if isinstance(self.judge, ChatModel) else self.judge
            why = ", since no other is configured" if name is None else ""
            self.watch.note(f"judge: embedded{why}: it only grades conciseness, by length")

    @property
    def local_cost(self) -> str:
        """The cost of a judge that runs in this process, in words."""
        return LOCAL if self.choice else "requests made by the judge itself are not counted here"

    def experiment(
        self, rated: JudgeEvaluator, client: Client | None, store: Store, *, announce: bool = True
    ) -> Experiment[Item]:
        """Return the experiment of this judge on some texts."""
        if self.executor.distributed:
            concurrency = self.limits.concurrency
        elif client is not None:
            # Twice as many units as requests in flight: while some wait for their commit, others
            # keep every connection busy (an idle one is polled by the HTTP pool at each request).
            concurrency = 2 * self.limits.concurrency
        else:
            concurrency = 1 if self.choice else self.limits.concurrency
        return Experiment(
            rated,
            store,
            concurrency=concurrency,
            retry_failed=self.how.retry_failed,
            client=client,
            notify=self.watch.note,
            warn=self.watch.warn,
            announce=announce,
            executor=self.executor,
        )

    async def run(
        self, rated: JudgeEvaluator, client: Client | None, store: Store
    ) -> ExperimentResult:
        """Judge what the store lacks, and close the client. Raises CancelledError."""
        try:
            return await self.run_experiment(rated, client, store)
        finally:
            if client is not None:
                await client.close()

    async def run_experiment(
        self, rated: JudgeEvaluator, client: Client | None, store: Store, *, announce: bool = True
    ) -> ExperimentResult:
        """Judge what the store lacks; the client stays open. Raises CancelledError."""
        experiment = self.experiment(rated, client, store, announce=announce)
        return await experiment.run(self.watch.progress)

    async def prepared(self, store: Store) -> Judging:
        """Return the judging with everything that labels decide; only several judges need this.

        Raises JudgingStopped if judging the labelled runs stopped early.
        """
        return self

    def tables(self, store: Store, rated: JudgeEvaluator) -> tuple[Table, ...]:
        """Return further tables about the judge; only several judges have any."""
        return ()

    async def estimate(
        self, total: CostEstimate, rated: JudgeEvaluator, client: Client | None, store: Store
    ) -> CostEstimate:
        """Return `total` plus the requests for these texts; earlier use counts in the budget."""
        experiment = self.experiment(rated, client, store)
        work = experiment.pending()
        stored = f"stored already: {work.done} scored, {work.failed} failed"
        total = replace(
            total,
            about=(*total.about, f"{stored}; calls: {len(work.units)}"),
            notes=(*total.notes, *notes_on(self.choice)),
            budget=self.limits.budget(store.usage(rated.source_key)),
        )
        return total + await experiment.dry_run()


def read_judging(
    runs: Runs,
    criteria: Criteria | None,
    options: JudgeOptions,
    watch: Watch,
    *,
    score_failed_runs: str | None = None,
    use_rubrics: bool = True,
) -> Judging:
    """Read and check everything before anything is written.

    The store is read only for the keys that it has for the runs. Raises InputError and StoreError.
    """
    judge, version = judge_of(options)
    in_python = not isinstance(judge, Model)
    name = options.task.name if isinstance(options.task, Task) else options.task or ""
    all_runs = read_run_list(runs, name, watch, options.mapping)
    notes = Notes()
    used = with_rubrics(all_runs, options.rubrics, notes)[: options.limit]
    watch.warn_list("warnings about the rubrics:", notes.lines())
    if not use_rubrics and any(run.rubric is not None for run in used):
        watch.warn("rubrics are not used to compare pairs")
        used = [run.model_copy(update={"rubric": None}) for run in used]
    first = f", the first {len(used)} used" if options.limit else ""
    watch.note(f"{plural(len(all_runs), 'run')} read{first}")
    task = _task_of(used, options.task, runs, described=not in_python)
    views = [make_view(run, with_reference=options.with_reference) for run in used]
    items = [
        (run.model_copy(update={"task": task.name}), view)
        for run, view in zip(used, views, strict=True)
    ]
    if options.system is not None:
        items = _of_system(items, options.system, watch)
    if score_failed_runs not in (None, "worst"):
        raise InputError(f"must be 'worst', not {score_failed_runs!r}", "--score-failed-runs")
    if not options.with_reference and not in_python:
        leaks = [line for run, view in items for line in leak_lines(run, view)]
        watch.warn_list("the judge may see the reference answer or the verdict:", leaks, most=5)
    items, read = _with_criteria(items, judge, criteria, task.name, watch)
    check_computed(read, [run.reference for run in used])
    computed = [c.name for c in read if c.judge]
    if computed:
        watch.note(f"computed from the references, without a model: {', '.join(computed)}")

    def shown(run: Run, view: View) -> View:
        """Return the view with everything that is part of its key."""
        more: dict[str, Any] = {"owner": (run.task, run.system)}
        if score_failed_runs and run.failure:  # both ways of counting can be stored
            more["failed_as"] = score_failed_runs
        if computed:
            more["computed_from"] = content_hash(run.reference)
        return View.model_validate({**view.model_dump(), **more})

    items = [(run, shown(run, view)) for run, view in items]
    items = _with_stored_keys(items, options.store, writes=not options.dry_run)
    executor = make_executor(options.workers, options.ray)
    judging = Judging(tuple(items), task, read, judge, version, options, watch, executor)
    if failed := no_answers(judging.no_answer):
        worst = "they count as the worst level (--score-failed-runs worst)"
        watch.warn(f"{failed}; {worst if score_failed_runs else 'they are not judged'}")
    return judging


def judge_of(options: JudgeOptions) -> tuple[Model | JudgeFunction | Scorer, str | None]:
    """Return the judge and its version. Raises InputError if the object cannot judge.

    A scorer named as python:MODULE:NAME that cannot be described gets as its version the hash of
    its file.
    """
    judge, version, reference = options.judge, options.version, ""
    if isinstance(judge, ChatModel) and (judge.model or "").startswith("python:"):
        raise InputError(
            "a Python judge calls its model itself: parameters are not passed on",
            "--param, --max-tokens, --reasoning-effort",
        )
    if isinstance(judge, str) and judge.startswith("python:"):
        reference = judge.removeprefix("python:")
        judge = load(reference, "--model")
        if isinstance(judge, Model):
            raise InputError(f"{reference} is a {type(judge).__name__}, not a judge", "--model")
    judge = scorer_of(judge) or judge
    if isinstance(judge, Model):
        return judge, version
    if not (isinstance(judge, Scorer) or callable(judge)):
        accepted = "a model's name, a function of (run, criterion) or a scorer of another framework"
        raise InputError(f"{type(judge).__name__} is not a judge; a judge is {accepted}", "judge")
    if reference and version is None and isinstance(judge, Scorer):
        try:
            _ = judge.parameters
        except InputError:
            version = source_sha256(import_module(reference.partition(":")[0]))
    _refuse_model_options(options)
    return judge, version


def _refuse_model_options(options: JudgeOptions) -> None:
    """Raise InputError for options that only a model can follow."""
    if options.probabilities:
        raise InputError("a Python judge returns {level: probability} itself", "--probabilities")
    max_cost = options.limits.max_cost if options.limits else None
    for option, value in {"--base-url": options.base_url, "--max-cost": max_cost}.items():
        if value is not None:
            calls = "a Python judge calls its model itself, so its replies are not recorded here"
            raise InputError(calls, option)


def _with_criteria(
    items: list[Item],
    judge: Model | JudgeFunction | Scorer,
    criteria: Criteria | None,
    task: str,
    watch: Watch,
) -> tuple[list[Item], tuple[Criterion, ...]]:
    """Return the runs with the rubrics that are judged, and the criteria of all runs.

    Rubrics take the place of the task's criteria, which are judged beside them only if they are
    asked for. A line says what is judged. Raises InputError.
    """
    sizes = [len(run.rubric.sub_criteria) for run, _ in items if run.rubric is not None]
    if not sizes:
        return items, criteria_for(judge, criteria, task, watch)
    if isinstance(judge, Scorer):
        watch.warn(f"{judge.name} of {judge.framework} does not support rubrics: not judged")
        items = [(run.model_copy(update={"rubric": None}), view) for run, view in items]
        return items, criteria_for(judge, criteria, task, watch)
    read = () if criteria is None else read_criteria(criteria, task, watch)
    unjudged = 0
    if criteria is None and has_criteria(task):
        unjudged = len(load_criteria(find_criteria(task)).criteria.criteria)
    judged = JudgedRubrics(len(sizes), len(items) - len(sizes), tuple(sizes), len(read), unjudged)
    watch.warn(judged.line)

    def with_case(run: Run) -> Run:
        if run.rubric is None:
            return run
        rubric = run.rubric.model_copy(update={"case": case_key(run)})
        return run.model_copy(update={"rubric": rubric})

    return [(with_case(run), view) for run, view in items], read


def criteria_for(
    judge: Model | JudgeFunction | Scorer, criteria: Criteria | None, task: str, watch: Watch
) -> tuple[Criterion, ...]:
    """Return the criteria; a scorer without any is its own. Raises InputError."""
    if isinstance(judge, Scorer) and criteria is None and not has_criteria(task):
        watch.note(f"no criteria of {task}: {judge.name} is its own, from 0 to 1")
        criteria = [Criterion(name=judge.name, scale="numeric", numeric_range=(0.0, 1.0))]
    read = read_criteria(criteria, task, watch)
    if isinstance(judge, Scorer) and len(read) > 1:
        watch.warn(
            f"{judge.name} of {judge.framework} does not support criteria: it is called once per "
            "text, and its result is used for every criterion unless it names its results"
        )
    return read


def read_run_list(
    runs: Runs, task: str, watch: Watch, mapping: Mapping[str, str] | None = None
) -> list[Run]:
    """Return the runs of a path, or those given. Raises InputError."""
    if not isinstance(runs, str | Path):
        return list(runs)
    result = read_runs(runs, task=task, mapping=mapping)
    for skipped in result.skipped:
        watch.note(f"skipped {skipped.path}: {skipped.reason}")
    watch.warn_list("warnings while reading:", result.warnings)
    return list(result.runs)


def _task_of(
    runs: Sequence[Run], task: str | Task | None, source: Runs, *, described: bool
) -> Task:
    """Return the task named by the caller, by the runs, or by a task.yaml beside the runs.

    A judge that reads no description (`described` is False) needs no folder of the task.
    """
    if isinstance(task, Task):
        return task
    names = {r.task for r in runs if r.task}
    name = task or (names.pop() if len(names) == 1 else None)
    if name is None and isinstance(source, str | Path):
        folder = Path(source).parent
        if (folder / "task.yaml").is_file():
            name = str(folder)
    if name is None and described:
        raise InputError("the runs name no task or several tasks; choose one with --task", "--task")
    try:
        return find_task(name or "unnamed").task
    except InputError:
        if described:
            raise
        return Task(name=name or "unnamed", description="not described")


def read_criteria(criteria: Criteria | None, task: str, watch: Watch) -> tuple[Criterion, ...]:
    """Return the criteria of a file, a set or a list; None finds them by the name of the task.

    Raises InputError.
    """
    if isinstance(criteria, CriteriaSet):
        return criteria.criteria
    if criteria is not None and not isinstance(criteria, str | Path):
        return CriteriaSet(task=task, criteria=tuple(criteria)).criteria
    path = Path(criteria) if criteria is not None else find_criteria(task)
    loaded = load_criteria(path, task=task)
    watch.note(f"criteria: {path} ({len(loaded.criteria.criteria)})")
    watch.warn_list("about the criteria:", loaded.notes)
    return loaded.criteria.criteria


def read_task(task: str | Path | Task) -> TaskFolder:
    """Return the task with its folder. Raises InputError."""
    return TaskFolder(task, Path()) if isinstance(task, Task) else find_task(str(task))


def _of_system(items: list[Item], name: str, watch: Watch) -> list[Item]:
    """Give the runs without a system this one, also in their ids, so that versions of a system may
    use the same ids, or give the same answers."""
    check_name(name, "--system")
    nameless = sum(run.system == "unnamed" for run, _ in items)
    if not nameless:
        raise InputError("every run already names its system", "--system")
    watch.note(
        f"{nameless} of {len(items)} runs do not name a system and are assigned to {name} now"
    )
    return [
        (run, view)
        if run.system != "unnamed"
        else (
            run.model_copy(update={"system": name, "id": f"{name}/{run.id}"}),
            View.model_validate({**view.model_dump(), "run_id": f"{name}/{run.id}"}),
        )
        for run, view in items
    ]


def _with_stored_keys(
    items: list[Item], store: str | Path | Store | None, *, writes: bool
) -> list[Item]:
    """Return the runs with the keys they have in the store.

    With `writes`, a store that may not be written is refused before it is touched.
    """
    place = default_path() if store is None else store
    if isinstance(place, Store):
        return place.with_stored_keys(items)
    if not is_there(place):
        return items
    try:
        with Store(place, create=writes) as stored:
            return stored.with_stored_keys(items)
    except NoStoreYet:  # an empty file: an earlier command was killed before it wrote anything
        return items


def warn_of_versions(store: Store, items: Sequence[Item], watch: Watch) -> None:
    """Warn if these runs replace runs in the store, or are mixed with them."""
    keys = {view.sha256 for _, view in items}
    for _, view in items:
        if view.failed_as:  # stored as missing, or as the worst, it is the same run
            other = "worst" if view.failed_as == "missing" else "missing"
            keys.add(view.model_copy(update={"failed_as": other}).sha256)
    tasks, systems = {run.task for run, _ in items}, {run.system for run, _ in items}
    stored = [
        row
        for key, row in store.runs().items()
        if key not in keys and row["origin"] is None and row["task"] in tasks
    ]
    names = {(row["system"], row["run_id"]) for row in stored}
    replaced = [run.id for run, _ in items if (run.system, run.id) in names]
    if replaced:
        watch.warn(
            f"{plural(len(replaced), 'run')} in the store had a different text (first: "
            f"{replaced[0]}). Tables show the newest text only. Name each version of a system with "
            "--system."
        )
    answers = [
        (row["system"], row["case_key"], row["run_id"])
        for row in stored
        if row["system"] in systems
    ]
    answers += [(run.system, case_key(run), run.id) for run, _ in items]
    for line in cases_answered_twice(answers):
        watch.warn(line)
