"""Planning tests: agents on suites, how much they can plan, and why their plans failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from agenteval.agents import AgentFailure, AgentLimits, System, spec
from agenteval.agents.spec import AgentSettings
from agenteval.api.running import Notify, Progress, Stopped, Watch, opened, twins
from agenteval.api.suites import Range, generator, span, words_of
from agenteval.errors import InputError
from agenteval.evaluators.planning.capability import THRESHOLD, cases_for, goes_on
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.checker import CheckRules
from agenteval.evaluators.planning.dissect import Dissection, DissectOptions
from agenteval.evaluators.planning.dissections import (
    evaluator_name,
    load_dissections,
    plan_dissections,
)
from agenteval.evaluators.planning.dsl.lexicon import Lexicon
from agenteval.evaluators.planning.run import Attempt, as_run
from agenteval.evaluators.planning.scripted import SCRIPTED
from agenteval.evaluators.planning.substitute import Choices, base_of
from agenteval.evaluators.planning.suite import read_suite
from agenteval.evaluators.planning.synthesis.generate import Shape
from agenteval.evaluators.planning.tables import dissection_tables, planning_tables
from agenteval.evaluators.planning.trials import EVALUATOR, Rules, load_attempts, plan_trials
from agenteval.experiment import Ended, Experiment
from agenteval.models.limits import Limits
from agenteval.records import Run, Usage
from agenteval.report.report import Report
from agenteval.store import Store, Trials
from agenteval.store.unfinished import unfinished_trials
from agenteval.trust.gates import Gate, least_gate, unscored_gate

if TYPE_CHECKING:
    from pydantic import JsonValue

Agent = str | Callable[..., Any]
Suite = str | Path | Sequence[Case]
StorePath = str | Path | Store | None


class How(TypedDict, total=False):
    """How an agent is run; see `AgentSetup`."""

    model: str | None
    base_url: str | None
    temperature: float | None
    max_tokens: int | None
    seconds: float
    turns: int
    strict: bool
    limits: Limits
    record: Path | None
    rehearsal: bool


@dataclass(frozen=True)
class AgentSetup:
    """The agent under test, and how each case is run.

    `agent` is what `--agent` takes (openai, responses, react, autogen, python:MODULE:FUNCTION,
    command:CMD, mcp:CMD, scripted:NAME) or a function (request, tools), plain or async. The first
    four run on `model`. `seconds` and `turns` bound one case. `strict`: any call that could not be
    carried out fails the case, and attempts before a restart count as well. `record` is a file to
    which every reply of the agent's model is appended. A `rehearsal` needs no key.
    """

    agent: Agent
    model: str | None = None
    base_url: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    seconds: float = 180.0
    turns: int = 50
    strict: bool = False
    limits: Limits = Limits(concurrency=4)  # noqa: RUF009  frozen
    record: Path | None = None
    rehearsal: bool = False

    @property
    def rules(self) -> Rules:
        """Limits of a case and rules of the oracle."""
        return Rules(AgentLimits(self.seconds, self.turns), CheckRules(strict=self.strict))

    def system(self) -> System:
        """The system alone, to know its name and key; nothing is opened or sent."""
        return self._limited(spec.system(self.agent, self._settings(None), SCRIPTED))

    @asynccontextmanager
    async def opened(self, store: Store) -> AsyncIterator[System]:
        """The system; its endpoint's connections end with the block.

        What its earlier trials and dissections have spent counts towards the caps.
        """
        settings = self._settings(self.spent(store))
        async with spec.opened(self.agent, settings, SCRIPTED) as system:
            yield self._limited(system)

    def spent(self, store: Store) -> Usage:
        """What trials and dissections of the system have taken so far."""
        tables, key = Trials(store), self.system().sha256
        names = [n for n in tables.evaluators() if n == EVALUATOR or n.startswith(f"{EVALUATOR}.")]
        return sum((tables.usage(name, key) for name in names), Usage())

    def _settings(self, spent: Usage | None) -> AgentSettings:
        return AgentSettings(
            model=self.model,
            base_url=self.base_url,
            temperature=self.temperature,
            max_tokens=self.max_tokens,
            concurrency=self.limits.concurrency,
            budget=None if spent is None else self.limits.budget(spent),
            need_key=not self.rehearsal,
            record=self.record,
        )

    def _limited(self, system: System) -> System:
        """Limits other than the usual ones make it another system: what was stopped after 3 turns
        must not stand for what 50 would have allowed."""
        limits = self.rules.limits
        if limits == AgentLimits():
            return system
        named: dict[str, JsonValue] = {"seconds": limits.seconds, "turns": limits.turns}
        return replace(system, parameters={**system.parameters, "limits": named})


@dataclass(frozen=True, kw_only=True)
class PlanReport(Report):
    """Trials of systems at planning cases; `causes` are (case id, system, label) of dissections."""

    attempts: tuple[Attempt, ...] = ()
    causes: tuple[tuple[str, str, str], ...] = ()
    lexicon: Lexicon | None = None

    @property
    def failures(self) -> tuple[Attempt, ...]:
        """Trials without a verdict: their endpoint or adapter failed."""
        return tuple(a for a in self.attempts if a.verdict is None)

    def runs(self) -> list[Run]:
        """The trials with a verdict as runs, which `quantify` grades."""
        return [as_run(a) for a in self.attempts if a.verdict is not None]

    def records(self) -> list[dict[str, Any]]:
        """A row per trial."""
        return [
            {"case": a.case.id, "topic": a.case.topic, "actions": a.case.n, "system": a.system,
             "trial": a.trial, "outcome": a.outcome,
             "success": None if a.verdict is None else a.verdict.passed}
            for a in self.attempts
        ]  # fmt: skip

    def page(self) -> str:
        """A self-contained HTML page with figures and failures."""
        from agenteval.report.planning import planning_page

        return planning_page(
            self.attempts, self.causes, lexicon=self.lexicon, unfinished=self.unfinished
        )


@dataclass(frozen=True, kw_only=True)
class DissectReport(Report):
    """Why an agent's plans failed, case by case."""

    dissections: tuple[Dissection, ...] = ()

    @property
    def failures(self) -> tuple[Dissection, ...]:
        """Those whose cause is undecided: too many tries had no verdict."""
        return tuple(d for d in self.dissections if d.label == "undecided")


def trial_rows(attempts: Sequence[Attempt]) -> list[dict[str, Any]]:
    """Every trial as JSON: case, system, outcome, and the verdict or what failed."""
    rows = []
    for a in attempts:
        row: dict[str, Any] = {
            "case": a.case.id, "topic": a.case.topic, "actions": a.case.n, "system": a.system,
            "trial": a.trial, "outcome": a.outcome,
        }  # fmt: skip
        if a.verdict is not None:
            row["verdict"] = a.verdict.model_dump(mode="json")
        if isinstance(a.log, AgentFailure):
            row["failure"] = a.log.message
        rows.append(row)
    return rows


@dataclass
class Test:
    """Trials of one system at suites, by their number of actions or 0. Each is begun when the one
    before it is done and enough of its trials pass."""

    setup: AgentSetup
    suites: Mapping[int, Sequence[Case]]
    trials: int
    retry_failed: bool
    store: StorePath
    watch: Watch
    lexicon: Lexicon | None = None
    threshold: float | None = None  # success rate below which no further suite is begun
    gates: Callable[[PlanReport], Sequence[Gate]] = lambda _: ()
    notes: tuple[str, ...] = ()

    async def run(self) -> PlanReport:
        """Run what is missing. Raises Stopped with what is there when it is cancelled."""
        ended = None
        reached: list[int] = []
        key = (
            self.setup.system().sha256
        )  # before a store is made, so that a wrong agent leaves none
        with opened(self.store) as store:
            try:
                with Trials(store).lock(EVALUATOR, key):
                    async with self.setup.opened(store) as system:
                        for size, cases in self.suites.items():
                            reached.append(size)
                            ended = await self._run(store, system, cases)
                            if ended.stopped or not self.goes_on(store, size):
                                break
            except asyncio.CancelledError:
                raise Stopped(self._report(store, reached, None)) from None
            return self._report(store, reached, ended)

    async def _run(self, store: Store, system: System, cases: Sequence[Case]) -> Ended:
        plan = plan_trials(
            store, cases, system, self.trials, self.setup.rules, retry_failed=self.retry_failed
        )
        left = len(plan.units)
        done = len(cases) * self.trials - left
        before = f", {done} done before" if done else ""
        self.watch.note(f"{system.name}: {left} trials to run{before}")
        workers = self.setup.limits.concurrency
        experiment = Experiment(plan, store, workers=workers, on_interrupt=self.watch.note)
        return await experiment.run(self.watch.progress)

    def goes_on(self, store: Store, size: int) -> bool:
        """Whether enough of the stored trials of this size pass for the next suite."""
        if self.threshold is None:
            return True
        attempts = self._attempts(store, [size])
        judged = [a.verdict.passed for a in attempts if a.verdict is not None]
        if not judged:
            return False
        rate, failed = sum(judged) / len(judged), len(attempts) - len(judged)
        self.watch.note(
            f"{size} actions: {rate:.3f} of {len(judged)} pass, {failed} without verdict"
        )
        return goes_on(rate, self.threshold)

    def _attempts(self, store: Store, sizes: Sequence[int]) -> list[Attempt]:
        keys = [case.sha256 for size in sizes for case in self.suites[size]]
        key = self.setup.system().sha256
        with store.snapshot():
            stored = load_attempts(store, self.setup.rules.check, cases=keys, systems=[key])
        return [a for a in stored if a.trial < self.trials]

    def _report(self, store: Store, sizes: Sequence[int], ended: Ended | None) -> PlanReport:
        attempts = tuple(self._attempts(store, sizes))
        tables = planning_tables(attempts, (), self.lexicon, threshold=self.threshold)
        unfinished, code = _ended(ended, "trials not run")
        report = PlanReport(
            title=f"Planning tests of {self.setup.system().name}",
            tables=tables if attempts else (),
            notes=self.notes if attempts else (*self.notes, "no trial has been run"),
            unfinished=unfinished,
            data={"trials": trial_rows(attempts)},
            exit_code=code,
            attempts=attempts,
            lexicon=self.lexicon,
        )
        return report.gated(*self.gates(report))


def prepare_test(
    suite: Suite,
    agent: Agent,
    *,
    trials: int = 1,
    limit: int | None = None,
    lexicon: str | Path | None = None,
    gate: float | None = None,
    max_unscored: float = 0.1,
    store: StorePath = None,
    retry_failed: bool = False,
    notify: Notify | None = None,
    progress: Progress | None = None,
    **how: Unpack[How],
) -> Test:
    """Run an agent on every case of a suite (file or cases), `trials` times, and check its plans.

    Only what `store` lacks is run; `retry_failed` runs again what failed for good. `limit`: only
    the first cases. `lexicon`: word lists the suite was made with. `gate` is the share of passes
    that is demanded, `max_unscored` the share without verdict that is allowed. `how`: see
    `AgentSetup`.

    Raises InputError for a suite or agent that cannot be used, Unauthorized, StoreError.
    """
    words = words_of(lexicon)[0]
    cases = _cases(suite, words)[:limit]
    different: dict[str, Case] = {}
    for case in cases:
        different.setdefault(case.sha256, case)
    same = len(cases) - len(different)
    told = f"{same} of {len(cases)} cases are another one again but for the id: left out"

    def gates(report: PlanReport) -> list[Gate]:
        total, failed = len(report.attempts), len(report.failures)
        asked = [unscored_gate(total, failed, max_unscored, "trials have no verdict")]
        if gate is not None:
            judged = [a.verdict.passed for a in report.attempts if a.verdict is not None]
            rate = sum(judged) / len(judged) if judged else None
            of = f"of {len(judged)} trials, {failed} without verdict"
            unknown = "no trial has a verdict"
            asked.append(least_gate("success", rate, gate, of, unknown=unknown))
        return asked

    return Test(
        AgentSetup(agent, **how), {0: list(different.values())}, trials, retry_failed, store,
        Watch(notify, progress), words, gates=gates, notes=(told,) if same else (),
    )  # fmt: skip


def prepare_capability(
    agent: Agent,
    *,
    n: Range = "2-9",
    cases: int | None = None,
    threshold: float = THRESHOLD,
    seed: int = 0,
    extended: bool = False,
    topics: Sequence[str] = (),
    trials: int = 1,
    store: StorePath = None,
    retry_failed: bool = False,
    notify: Notify | None = None,
    progress: Progress | None = None,
    **how: Unpack[How],
) -> Test:
    """Raise the number of actions until an agent's success falls below the threshold.

    `cases` at each number of actions, by default min(300, 20·n(n-1)/2), as published (arXiv
    2404.17833, section 6.2). Raises as `plan_test`.
    """
    first, last = span(n, "--n")
    if first > last or first < 2:
        raise InputError(f"must be a range of 2 actions or more, not {n!r}", "--n")
    suites = {}
    for size in range(first, last + 1):
        shape = Shape(actions=(size, size), extended=extended)
        suites[size] = list(generator(shape, seed, topics).cases(cases or cases_for(size)))
    return Test(
        AgentSetup(agent, **how), suites, trials, retry_failed, store, Watch(notify, progress),
        threshold=threshold,
    )  # fmt: skip


def plan_report(
    store: StorePath = None,
    suite: Suite | None = None,
    *,
    strict: bool = False,
    lexicon: str | Path | None = None,
) -> PlanReport:
    """What the stored trials of all systems tell (at the cases of a suite), with the causes of the
    dissections by the options under which most cases were dissected.

    Raises InputError when there is no trial.
    """
    words = words_of(lexicon)[0]
    keys = None if suite is None else [case.sha256 for case in _cases(suite, words)]
    with opened(store, create=False) as stored, stored.snapshot():
        unfinished = unfinished_trials(stored, [EVALUATOR], keys)
        attempts = tuple(load_attempts(stored, CheckRules(strict=strict), cases=keys))
        dissections = load_dissections(stored, cases=keys)
    if not attempts:
        told = "".join(f"; {one.line}" for one in unfinished)
        raise InputError(
            f"no planning trial is stored here yet; run `agenteval plan test` first{told}"
        )
    chosen = max(sorted(dissections), key=lambda name: len(dissections[name]), default="")
    causes = tuple((d.case, d.system, d.label) for d in dissections.get(chosen, ()))
    left_out = [(len(dissections[name]), name) for name in sorted(dissections) if name != chosen]
    return PlanReport(
        title="Planning tests",
        tables=planning_tables(attempts, causes, words),
        notes=tuple(
            f"{n} dissections by other options are left out: {name}" for n, name in left_out
        ),
        unfinished=tuple(one.line for one in unfinished),
        data={
            "trials": trial_rows(attempts),
            "unfinished": [one.json() for one in unfinished],
        },
        attempts=attempts,
        causes=causes,
        lexicon=words,
    )


@dataclass
class Dissect:
    """Dissections of the cases that a system failed."""

    setup: AgentSetup
    cases: Sequence[Case]
    options: DissectOptions
    limit: int | None
    store: StorePath
    watch: Watch

    def failed(self, store: Store) -> list[Case]:
        """Cases with a stored trial that did not pass, in the suite's order, as far as they can be
        dissected. Raises InputError when no trial is stored, or none of them can be."""
        keys, key = [case.sha256 for case in self.cases], self.setup.system().sha256
        with store.snapshot():
            attempts = load_attempts(store, self.setup.rules.check, cases=keys, systems=[key])
        if not attempts:
            raise InputError(
                "no trial of this agent and suite is stored (--timeout, --turns and what the agent "
                "is given must be the same); run `agenteval plan test` first"
            )
        wrong = {a.case.sha256 for a in attempts if a.verdict is not None and not a.verdict.passed}
        cases: list[Case] = []
        refused: list[InputError] = []
        for case in self.cases:
            if case.sha256 in wrong:
                try:
                    cases.append(base_of(case, self.options.choices.lexicon).case)
                except InputError as error:  # written by hand: it must not hold up the others
                    refused.append(error)
        if refused and not cases:
            raise refused[0]
        self.watch.warn_list(f"{len(refused)} failed cases are left out", map(str, refused))
        return cases[: self.limit]

    async def run(self) -> DissectReport:
        """Make those that are missing. Raises Stopped with what is there when it is cancelled."""
        self.setup.system()  # an agent that is none is told before anything else
        with opened(self.store, create=False) as store:
            failed = self.failed(store)
            if not failed:
                return self._report(store, failed, (), 0)
            try:
                ended = await self._run(store, failed)
            except asyncio.CancelledError:
                raise Stopped(self._report(store, failed, *_ended(None, ""))) from None
            return self._report(store, failed, *_ended(ended, "dissections not made"))

    async def _run(self, store: Store, failed: Sequence[Case]) -> Ended:
        workers = self.setup.limits.concurrency
        with Trials(store).lock(EVALUATOR, self.setup.system().sha256):
            async with self.setup.opened(store) as system:
                plan = plan_dissections(store, failed, system, self.options, concurrency=workers)
                left = len(plan.units)
                before = f", {len(failed) - left} done before" if left < len(failed) else ""
                self.watch.note(f"{left} failed cases to dissect{before}")
                experiment = Experiment(plan, store, workers=workers, on_interrupt=self.watch.note)
                return await experiment.run(self.watch.progress)

    def _report(
        self, store: Store, failed: Sequence[Case], unfinished: tuple[str, ...], code: int
    ) -> DissectReport:
        keys, system = [case.sha256 for case in failed], self.setup.system()
        with store.snapshot():
            everything = load_dissections(store, cases=keys, systems=[system.sha256])
        stored = tuple(everything.get(evaluator_name(self.options), ()))
        none = "no failed case of this agent and suite is stored; nothing to dissect"
        return DissectReport(
            title=f"Causes of failed plans of {system.name}",
            tables=dissection_tables(stored),
            notes=(*self.watch.notes, *(() if failed else (none,))),
            unfinished=unfinished,
            data={"dissections": [d.model_dump(mode="json") for d in stored]},
            exit_code=code,
            dissections=stored,
        )


def prepare_dissect(
    suite: Suite,
    agent: Agent,
    *,
    tries: int = 3,
    full: bool = False,
    literal: bool = False,
    limit: int | None = 100,
    seed: int = 0,
    lexicon: str | Path | None = None,
    store: StorePath = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
    **how: Unpack[How],
) -> Dissect:
    """Find the causes of the failures that `plan_test` has stored for this agent and suite
    (algorithm 2 of arXiv 2404.17833).

    `tries` of a stage; `full` runs all stages, also after a success; `literal` is the algorithm as
    printed. `how` as for `plan_test`. Raises InputError without such trials.
    """
    setup = AgentSetup(agent, **how)
    words, topics = words_of(lexicon)
    options = DissectOptions(
        tries=tries, full=full, paper_literal=literal, seed=seed,
        choices=Choices(topics=topics, lexicon=words),
        limits=setup.rules.limits, rules=setup.rules.check,
    )  # fmt: skip
    return Dissect(setup, _cases(suite, words), options, limit, store, Watch(notify, progress))


def _cases(suite: Suite, lexicon: Lexicon | None) -> list[Case]:
    return list(read_suite(Path(suite), lexicon) if isinstance(suite, str | Path) else suite)


def _ended(ended: Ended | None, left: str) -> tuple[tuple[str, ...], int]:
    """What is to be said of an experiment that was interrupted (None) or stopped early, and the
    exit code."""
    if ended is None:
        return ("interrupted: what is done is stored; the same command goes on from here",), 130
    if ended.stopped:
        not_run = f"stopped, {ended.left_out} {left}: " if ended.left_out else ""
        return (not_run + ended.stopped,), 3
    return (), 0


plan_test, aplan_test = twins("plan_test", prepare_test)
plan_capability, aplan_capability = twins("plan_capability", prepare_capability)
dissect, adissect = twins("dissect", prepare_dissect)
