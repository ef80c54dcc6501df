"""What `quantify` and `verify` share: from what the user gave to runs, criteria and a judge, and
how a plan of it is run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from importlib import import_module
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.agents.callable import load, source_sha256
from agenteval.analysis.means import cases_answered_twice
from agenteval.cli.running import Watch
from agenteval.engine import Estimate, Experiment, ExperimentResult
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
from agenteval.models.limits import Budget, Limits
from agenteval.models.replay import ReplayTransport
from agenteval.readers import degenerate, make_view, read_runs
from agenteval.readers.leaks import leak_lines
from agenteval.readers.tasks import TaskFolder, find_task, recording_of
from agenteval.records import CriteriaSet, Criterion, Run, Task, View, content_hash
from agenteval.records.run import no_answers
from agenteval.store import Store, default_path, is_there
from agenteval.store.rows import case_key
from agenteval.text import plural
from agenteval.utility.computed import WithComputed, check_computed
from agenteval.utility.criteria_file import find_criteria, has_criteria, load_criteria
from agenteval.utility.distributions import DistributionJudge, Kind
from agenteval.utility.embedded import EmbeddedJudge
from agenteval.utility.evaluator import Item, JudgeEvaluator
from agenteval.utility.function_judge import FunctionJudge, JudgeFunction
from agenteval.utility.options import JudgeOptions
from agenteval.utility.perturbed_runs import PerturbedRuns
from agenteval.utility.quantifier import (
    Guarded,
    Quantifier,
    QuantifierOptions,
    chat_judge,
)
from agenteval.utility.scorers import Scorer, scorer_of

if TYPE_CHECKING:
    from agenteval.models.client import Client

Runs = str | Path | Iterable[Run]
Criteria = str | Path | CriteriaSet | Iterable[Criterion]
AnyJudge = Model | JudgeFunction | object  # the object is a scorer of another framework


class Unfinished(Exception):
    """The judging had to stop before its end; what was judged is stored."""


@dataclass(frozen=True)
class Judging:
    """Runs as the judge sees them, the criteria, and who judges how."""

    items: tuple[Item, ...]
    task: Task
    criteria: tuple[Criterion, ...]
    judge: Model | JudgeFunction | Scorer  # a model's name, or what is asked in Python
    base_url: str | None
    options: QuantifierOptions
    repeats: int
    retry_failed: bool
    limits: Limits
    version: str | None  # of a judge that is a function
    watch: Watch
    executor: Executor
    need_key: bool = True  # where nobody is asked, a missing key is no error
    probabilities: bool = False  # of the levels, from a chat model's log-probabilities

    @property
    def no_answer(self) -> dict[str, list[str]]:
        """Ids of the runs whose system failed, by kind."""
        failed: dict[str, list[str]] = {}
        for run, _ in self.items:
            if run.failure is not None:
                failed.setdefault(run.failure.kind, []).append(run.id)
        return failed

    @cached_property
    def choice(self) -> ModelChoice | None:
        """The model that judges; None for Python. Raises InputError as `choose_model`."""
        if not isinstance(self.judge, Model):
            return None
        choice = choose_model(self.judge, self.base_url, need_key=self.need_key, decides=True)
        if self.probabilities and (choice.kind == "embedded" or choice.provider == "recorded"):
            what = "a chat model's log-probabilities are asked for"
            raise InputError(f"{what}; {choice.name} has none", "--probabilities")
        if choice.provider == "recorded":
            return replace(choice, path=recording_of(self.task.name, "judge"))
        return choice

    @cached_property
    def recording(self) -> ReplayTransport | None:
        """The recorded replies that judge; None for any other judge."""
        if self.choice is None or self.choice.provider != "recorded" or not self.choice.path:
            return None
        return ReplayTransport(self.choice.path, "recorded")

    def refuse_unrecorded(self, texts: Iterable[tuple[str, Sequence[Item]]]) -> None:
        """Raise InputError for the first of these texts, by variant, whose judgement is not
        recorded, where recorded replies judge: nothing is written then."""
        if self.recording is None or self.choice is None:
            return
        quantifier = Quantifier(
            make_client(self.choice, self.limits, None), self.task, self.options
        )
        for variant, items in texts:
            for (run, view), repeat in product(items, range(self.repeats)):
                if degenerate(run) is not None:
                    continue
                for some in quantifier.batches([c for c in self.criteria if not c.judge]):
                    request, _ = quantifier.request(JudgeUnit(run, view, some, repeat, variant))
                    try:
                        self.recording.find(request)
                    except BadRequest as error:
                        raise InputError(str(error), "--model recorded") from error

    @property
    def distributes(self) -> bool:
        """Whether a model is asked for the probabilities of levels."""
        return self.choice is not None and (self.probabilities or self.choice.kind == "decisions")

    @property
    def asks_nobody(self) -> bool:
        """Whether it computes in this process: the embedded judge, or a function."""
        return self.choice is None or self.choice.kind == "embedded"

    def evaluator(self, store: Store | None, **changes: Any) -> tuple[RunJudge, Client | None]:
        """The judge, with options changed; its client is None when it computes in this process.

        A cap on requests or money counts what the store says that this judge took before.
        """
        evaluator, client = self._judge(store, **changes)
        if any(criterion.judge for criterion in self.criteria):
            evaluator = WithComputed(evaluator)
        return evaluator, client

    def _judge(self, store: Store | None, **changes: Any) -> tuple[RunJudge, Client | None]:
        if not isinstance(self.judge, Model):
            judge = FunctionJudge(self.judge, version=self.version, seed=self.options.seed)
            if store is not None:
                judge.budget = self._budget(store, judge)
            return judge, None
        if self.choice is None or self.choice.kind == "embedded":
            return Guarded(EmbeddedJudge(seed=self.options.seed)), None
        client = make_client(self.choice, self.limits, store)
        options = replace(self.options, **changes)
        if self.distributes:
            kind: Kind = "decisions" if self.choice.kind == "decisions" else "letters"
            evaluator = Guarded(DistributionJudge(client, self.task, kind, options))
        else:
            evaluator = chat_judge(client, self.task, options)
        if store is not None:
            client.budget = self._budget(store, evaluator)
        return evaluator, client

    def _budget(self, store: Store, evaluator: RunJudge) -> Budget:
        """The caps, with what the judge took before."""
        return self.limits.budget(store.usage(evaluator.source.sha256))

    def say_judge(self) -> None:
        """What is to be known of a judge that nobody chose, or that sees little. Raises InputError
        for a model that cannot be chosen: nothing is made on the disk before."""
        if self.recording is not None:
            self.watch.note(
                "judge: replies of a capable large language model, written offline and recorded "
                f"in {self.recording.path}"
            )
        if self.choice is not None and self.choice.kind == "embedded":
            named = self.judge.model if isinstance(self.judge, ChatModel) else self.judge
            why = ", since no other is configured" if named is None else ""
            self.watch.note(
                f"judge: embedded{why}: it grades conciseness, by length, and nothing else"
            )

    @property
    def local_cost(self) -> str:
        """What a judge that runs in this process costs."""
        return LOCAL if self.choice else "what the judge spends itself is not counted here"

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
            retry_failed=self.retry_failed,
            client=client,
            notify=self.watch.note,
            warn=self.watch.warn,
            announce=announce,
            executor=self.executor,
        )

    async def run(
        self, rated: JudgeEvaluator, client: Client | None, store: Store
    ) -> ExperimentResult:
        """Judge what the store lacks, and close the client. Raises CancelledError when
        interrupted."""
        try:
            return await self.experiment(rated, client, store).run(self.watch.progress)
        finally:
            await self.close(client)

    async def estimate(
        self, total: Estimate, rated: JudgeEvaluator, client: Client | None, store: Store
    ) -> Estimate:
        """Return `total` and what the judging of these texts would ask; the budget counts what the
        judge spent before."""
        experiment = self.experiment(rated, client, store)
        work = experiment.pending()
        stored = (
            f"stored already: {work.done} scored, {work.failed} failed; calls: {len(work.units)}"
        )
        total = replace(
            total,
            about=(*total.about, stored),
            notes=(*total.notes, *notes_on(self.choice)),
            budget=self.limits.budget(store.usage(rated.source_key)),
        )
        return total + await experiment.dry_run()

    async def close(self, client: Client | None) -> None:
        """Close the judge's connections."""
        if client is not None:
            await client.close()


def read_judging(
    runs: Runs,
    criteria: Criteria | None,
    options: JudgeOptions,
    watch: Watch,
    *,
    score_failed_runs: str | None = None,
) -> Judging:
    """Read and check everything before anything is written.

    The store of the options is asked only for the keys that it has for the runs. Raises InputError
    and StoreError.
    """
    limits, with_reference = options.limits or Limits(), options.with_reference
    judge, version = _chosen(options.judge, options.version)
    in_python = not isinstance(judge, Model)
    if in_python:
        _refuse_of_models(options.base_url, limits, probabilities=options.probabilities)
    task = options.task
    name = task.name if isinstance(task, Task) else task or ""
    every = read_run_list(runs, name, watch, options.mapping)
    read = every[: options.limit]
    watch.note(
        f"{len(every)} runs read" + (f", the first {len(read)} used" if options.limit else "")
    )
    found_task = _task_of(read, task, runs, described=not in_python)
    items = [
        (
            run.model_copy(update={"task": found_task.name}),
            make_view(run, with_reference=with_reference),
        )
        for run in read
    ]
    if options.system is not None:
        items = _of_system(items, options.system, watch)
    if score_failed_runs is not None:
        items = _failed_as(items, score_failed_runs)
    if not with_reference and not in_python:
        leaks = [line for run, view in items for line in leak_lines(run, view)]
        watch.warn_list("the judge may see the answer or the verdict:", leaks, most=5)
    if isinstance(judge, Scorer) and criteria is None and not has_criteria(found_task.name):
        watch.note(f"no criteria of {found_task.name}: {judge.name} is its own, from 0 to 1")
        criteria = [Criterion(name=judge.name, scale="numeric", numeric_range=(0.0, 1.0))]
    wanted = read_criteria(criteria, found_task.name, watch)
    if isinstance(judge, Scorer) and len(wanted) > 1:
        watch.warn(
            f"{judge.name} of {judge.framework} knows no criteria: it is asked once for each text, "
            "and its answer stands for each of them, but where it names its results"
        )
    check_computed(wanted, [run.reference for run in read])
    if computed := [c.name for c in wanted if c.judge]:
        items = [
            (
                run,
                View.model_validate(
                    {**view.model_dump(), "computed_from": content_hash(run.reference)}
                ),
            )
            for run, view in items
        ]
        watch.note(f"computed from the references, without a model: {', '.join(computed)}")
    items = [
        (run, view.model_copy(update={"owner": (run.task, run.system)})) for run, view in items
    ]
    judging = Judging(
        items=tuple(_with_stored_keys(items, options.store, writes=not options.dry_run)),
        task=found_task,
        judge=judge,
        base_url=options.base_url,
        repeats=options.repeats,
        criteria=wanted,
        retry_failed=options.retry_failed,
        probabilities=options.probabilities,
        options=QuantifierOptions(options.one_per_call, options.temperature, seed=options.seed),
        limits=limits,
        version=version,
        watch=watch,
        executor=make_executor(options.workers, options.ray),
        need_key=not options.dry_run,
    )
    if failed := no_answers(judging.no_answer):
        worst = "they count as the worst level (--score-failed-runs worst)"
        watch.warn(f"{failed}; {worst if score_failed_runs else 'they are not judged'}")
    return judging


def _chosen(
    judge: AnyJudge, version: str | None
) -> tuple[Model | JudgeFunction | Scorer, str | None]:
    """The judge that is meant, and its version. Raises InputError for what is none.

    What is named as python:MODULE:NAME and is a scorer that cannot be described has the hash of
    the file that it stands in as its version.
    """
    reference = ""
    if isinstance(judge, ChatModel) and (judge.model or "").startswith("python:"):
        raise InputError(
            "a judge in Python asks its model itself: no parameter is passed on",
            "--param, --max-tokens, --reasoning-effort",
        )
    if isinstance(judge, str) and judge.startswith("python:"):
        reference = judge.removeprefix("python:")
        judge = load(reference, "--model")
        if isinstance(judge, Model):
            raise InputError(f"{reference} is a {type(judge).__name__}, no judge", "--model")
    judge = scorer_of(judge) or judge
    if not (judge is None or isinstance(judge, str | ChatModel | Scorer) or callable(judge)):
        known = "a model's name, a function of (run, criterion) or a scorer of another framework"
        raise InputError(f"{type(judge).__name__} is none; a judge is {known}", "judge")
    if reference and version is None and isinstance(judge, Scorer):
        try:
            _ = judge.parameters
        except InputError:
            version = source_sha256(import_module(reference.partition(":")[0]))
    return judge, version


def _refuse_of_models(base_url: str | None, limits: Limits | None, *, probabilities: bool) -> None:
    """Raise InputError for what only a model can obey, of a judge in Python."""
    if probabilities:
        what = "a judge in Python returns {level: probability} itself"
        raise InputError(what, "--probabilities")
    given = {
        "--base-url": base_url,
        "--max-cost": None if limits is None else limits.max_cost,
    }
    for option, value in given.items():
        if value is not None:
            raise InputError("a judge in Python asks its model itself: none passes here", option)


def read_run_list(
    runs: Runs, task: str, watch: Watch, mapping: Mapping[str, str] | None = None
) -> list[Run]:
    """The runs of a path, or those given. Raises InputError."""
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
    """The task that was named, by the caller or by the runs, or that stands beside the runs.

    A judge that reads no description (`described` is False) needs no folder of the task.
    """
    if isinstance(task, Task):
        return task
    names = {r.task for r in runs if r.task}
    name = task or (names.pop() if len(names) == 1 else None)
    if name is None and isinstance(source, str | Path):
        beside = Path(source).parent
        if (beside / "task.yaml").is_file():
            name = str(beside)
    if name is None and described:
        raise InputError("the runs name no task, or several; say which one", "--task")
    try:
        return find_task(name or "unnamed").task
    except InputError:
        if described:
            raise
        return Task(name=name or "unnamed", description="not described")


def read_criteria(criteria: Criteria | None, task: str, watch: Watch) -> tuple[Criterion, ...]:
    """The criteria of a file, a set or a list; those that are found by the task's name for None.
    Raises InputError."""
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
    """The task that is meant, with its folder. Raises InputError."""
    if isinstance(task, Task):
        return TaskFolder(task, Path())
    return find_task(str(task))


def _failed_as(items: list[Item], level: str) -> list[Item]:
    """Views of failed runs under another key, so that both ways of counting can be stored."""
    if level != "worst":
        raise InputError(f"{level!r} is not `worst`", "--score-failed-runs")
    return [
        (run, view.model_copy(update={"failed_as": level}) if run.failure else view)
        for run, view in items
    ]


def _of_system(items: list[Item], name: str, watch: Watch) -> list[Item]:
    """The runs that name no system become those of this one. Its name stands in their ids as well,
    so that versions of a system may use the same ids, or give the same answers."""
    from agenteval.readers.fields import check_name

    check_name(name, "--system")
    nameless = sum(run.system == "unnamed" for run, _ in items)
    if not nameless:
        raise InputError("every run names its system already", "--system")
    watch.note(f"{nameless} of {len(items)} runs name no system: they are those of {name} now")
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
    """Return the runs with the keys they have in the store. With `writes` a store that may not be
    written is refused before it is touched."""
    if store is None:
        store = default_path()
    if not isinstance(store, str | Path):
        return store.with_stored_keys(items)
    if not is_there(store):
        return items
    try:
        with Store(store, create=writes) as stored:
            return stored.with_stored_keys(items)
    except NoStoreYet:  # an empty file: an earlier command was killed before it wrote anything
        return items


def warn_of_versions(store: Store, items: Sequence[Item], watch: Watch) -> None:
    """A line where these runs would be taken for others of the store, or together with them."""
    keys = {view.sha256 for _, view in items}
    for _, view in items:
        if view.failed_as:  # stored as missing, or as the worst, it is the same run
            other = "worst" if view.failed_as == "missing" else "missing"
            keys.add(view.model_copy(update={"failed_as": other}).sha256)
    tasks = {run.task for run, _ in items}
    stored = [
        row
        for key, row in store.runs().items()
        if key not in keys and row["origin"] is None and row["task"] in tasks
    ]
    known = {(row["system"], row["run_id"]) for row in stored}
    replaced = [run.id for run, _ in items if (run.system, run.id) in known]
    if replaced:
        watch.warn(
            f"{plural(len(replaced), 'run')} of the store had another text (first: {replaced[0]}). "
            "Tables show the newest text only. Name each version of a system with --system."
        )
    systems = {run.system for run, _ in items}
    answers = [
        (row["system"], row["case_key"], row["run_id"])
        for row in stored
        if row["system"] in systems
    ]
    answers += [(run.system, case_key(run), run.id) for run, _ in items]
    for line in cases_answered_twice(answers):
        watch.warn(line)


def warn_unchanged(copies: Sequence[PerturbedRuns], runs: int, watch: Watch) -> None:
    """Name the operators that left some of the runs as they were."""
    for one in copies:
        if one.unchanged:
            reason = next(iter(one.unchanged.values()))
            watch.warn(
                f"{one.variant}: {len(one.unchanged)} of {runs} copies equal their original "
                f"and are left out (e.g. {reason})"
            )
