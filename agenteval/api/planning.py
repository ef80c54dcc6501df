"""Planning tests: make suites, test agents on them, raise what they have to plan, find out why
plans failed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.api.running import Notify, Progress, Stopped, Watch, opened, twins
from agenteval.errors import InputError, ModelError, ModelUnavailable
from agenteval.evaluators.planning.capability import THRESHOLD
from agenteval.models.limits import Limits
from agenteval.report.report import Report

if TYPE_CHECKING:
    from pydantic import JsonValue

    from agenteval.agents import System
    from agenteval.agents.spec import AgentSettings
    from agenteval.campaign import Rules
    from agenteval.evaluators.planning.case import Case
    from agenteval.evaluators.planning.dissect import Dissection, DissectOptions
    from agenteval.evaluators.planning.dsl.lexicon import Lexicon
    from agenteval.evaluators.planning.invent import Invention
    from agenteval.evaluators.planning.run import Attempt
    from agenteval.evaluators.planning.synthesis.generate import Generator, Shape
    from agenteval.evaluators.planning.synthesis.topics import Topic
    from agenteval.models.embeddings import Embedder
    from agenteval.models.factory import ModelChoice
    from agenteval.records import Run, Usage
    from agenteval.records.table import Table
    from agenteval.store import Store
    from agenteval.trialling import Ended

Suite = str | Path | Sequence["Case"]
StoreOrPath = Any  # a Store, a path, or None: AGENTEVAL_STORE, else agenteval.db
Range = str | int | tuple[int, int]


@dataclass(frozen=True)
class AgentSetup:
    """The agent under test, and how each case is run.

    `agent` is what `--agent` takes (openai, responses, react, autogen, python:MODULE:FUNCTION,
    command:CMD, mcp:CMD, scripted:NAME) or a function (request, tools), plain or async. The first
    four run on `model`. `timeout` is in seconds for one case. `strict`: any call that could not be
    carried out fails the case, and attempts before a restart count as well. `record` is a file to
    which every reply of the agent's model is appended. A `rehearsal` needs no key.
    """

    agent: str | Callable[..., Any]
    model: str | None = None
    base_url: str | None = None
    temperature: float | None = 0.0
    max_tokens: int | None = None
    timeout: float = 180.0
    turns: int = 50
    strict: bool = False
    limits: Limits = Limits(concurrency=4)  # noqa: RUF009  frozen
    record: Path | None = None
    rehearsal: bool = False

    @classmethod
    def of(cls, agent: str | Callable[..., Any] | AgentSetup) -> AgentSetup:
        """As it is, or with everything but the agent as usual."""
        return agent if isinstance(agent, AgentSetup) else cls(agent)

    @property
    def rules(self) -> Rules:
        """Limits of a case and rules of the oracle."""
        from agenteval.agents import AgentLimits
        from agenteval.campaign import Rules
        from agenteval.evaluators.planning.checker import CheckRules

        return Rules(AgentLimits(self.timeout, self.turns), CheckRules(strict=self.strict))

    def settings(self, spent: Usage | None = None) -> AgentSettings:
        """What adapters that run a model are given; `spent` counts towards the caps."""
        from agenteval.agents.spec import AgentSettings

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

    def system(self) -> System:
        """The system alone, to know its name and key; nothing is opened or sent."""
        from agenteval.agents.spec import system
        from agenteval.evaluators.planning.scripted import SCRIPTED

        return self._limited(system(self.agent, self.settings(), SCRIPTED))

    @asynccontextmanager
    async def opened(self, store: Store) -> AsyncIterator[System]:
        """The system; its endpoint's connections end with the block.

        What its earlier trials and dissections have spent counts towards the caps.
        """
        from agenteval.agents import spec
        from agenteval.evaluators.planning.scripted import SCRIPTED

        settings = self.settings(self.spent(store))
        async with spec.opened(self.agent, settings, SCRIPTED) as system:
            yield self._limited(system)

    def spent(self, store: Store) -> Usage:
        """What trials and dissections of the system have taken so far."""
        from agenteval.campaign import EVALUATOR
        from agenteval.records import Usage
        from agenteval.store import Trials

        tables, key = Trials(store), self.system().sha256
        names = [n for n in tables.evaluators() if n == EVALUATOR or n.startswith(f"{EVALUATOR}.")]
        return sum((tables.usage(name, key) for name in names), Usage())

    def _limited(self, system: System) -> System:
        """Limits other than the usual ones make it another system: what was stopped after 3 turns
        must not stand for what 50 would have allowed."""
        from agenteval.agents import AgentLimits

        limits = self.rules.limits
        if limits == AgentLimits():
            return system
        named: dict[str, JsonValue] = {"seconds": limits.seconds, "turns": limits.turns}
        return replace(system, parameters={**system.parameters, "limits": named})


# -- what comes back -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class SuiteReport(Report):
    """Cases that were made, and what a model invented for them."""

    cases: tuple[Case, ...] = ()

    def write(self, path: str | Path) -> Path:
        """Write the suite as JSON lines, whole or not at all; returns the path."""
        from agenteval.evaluators.planning.suite import write_suite

        write_suite(Path(path), self.cases)
        return Path(path)

    def records(self) -> list[dict[str, Any]]:
        """A row per case."""
        return [
            {"case": c.id, "topic": c.topic, "request": c.request, **_sizes_of(c)}
            for c in self.cases
        ]


@dataclass(frozen=True, kw_only=True)
class PlanReport(Report):
    """Trials of systems at planning cases, with the causes that dissections found."""

    attempts: tuple[Attempt, ...] = ()
    causes: tuple[tuple[str, str, str], ...] = ()
    lexicon: Lexicon | None = None

    @property
    def failures(self) -> tuple[Attempt, ...]:
        """Trials without a verdict: their endpoint or adapter failed."""
        return tuple(a for a in self.attempts if a.verdict is None)

    def runs(self) -> list[Run]:
        """The trials with a verdict as runs, which `quantify` grades."""
        from agenteval.evaluators.planning.run import as_run

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
    from agenteval.agents import AgentFailure

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


def _ended(ended: Ended | None, left: str) -> tuple[tuple[str, ...], int]:
    """What is to be said of an experiment that was interrupted (None) or stopped early, and the
    exit code."""
    if ended is None:
        return ("interrupted: what is done is stored; the same command goes on from here",), 130
    if ended.stopped:
        not_run = f"stopped, {ended.left_out} {left}: " if ended.left_out else ""
        return (not_run + ended.stopped,), 3
    return (), 0


# -- suites ----------------------------------------------------------------------------------------


@dataclass
class _Synthesis:
    shape: Shape
    count: int
    seed: int
    topics: Sequence[str]
    lexicon: Path | None
    inventor: _Inventor | None
    watch: Watch

    async def run(self) -> SuiteReport:
        """The cases. Raises Stopped where a model is asked first: its replies are stored."""
        try:
            invention = await self.inventor.asked() if self.inventor else None
        except asyncio.CancelledError:
            kept = "interrupted: the replies that came are stored; the same command goes on"
            raise Stopped(
                SuiteReport(title="", tables=(), unfinished=(kept,), exit_code=130)
            ) from None
        cases = tuple(
            _generator(self.shape, self.seed, self.topics, self.lexicon).cases(self.count)
        )
        return SuiteReport(
            title=f"{len(cases)} planning tests",
            tables=_suite_tables(cases),
            notes=(*self.watch.notes, *(() if invention is None else self._told(invention))),
            data={} if invention is None else {"refused": list(invention.refused)},
            cases=cases,
        )

    def _told(self, invention: Invention) -> Iterator[str]:
        assert self.inventor is not None
        yield invention.meaning
        named = ", ".join(f"{topic.role} ({len(topic.activities)})" for topic in invention.topics)
        yield f"kept professions, with activities: {named}"
        if len(invention.topics) < self.inventor.professions:
            yield (
                f"{len(invention.topics)} of the {self.inventor.professions} professions asked "
                "for were kept"
            )
        yield from _refused(invention)
        yield (f"written to {self.lexicon}; nobody has reviewed order and overlap in it: read it")


def prepare_suite(
    count: int = 100,
    *,
    n: Range = "3-5",
    seed: int = 0,
    constraints: Range | None = None,
    words: Range | None = None,
    extended: bool = False,
    times: Range = "1-2",
    topics: Sequence[str] = (),
    lexicon: str | Path | None = None,
    invent: int | None = None,
    model: str | None = None,
    base_url: str | None = None,
    limits: Limits | None = None,
    record: Path | None = None,
    store: StoreOrPath = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> _Synthesis:
    """Planning tests from a seed: the same seed and shape give the same suite, byte by byte.

    `n` actions, distinct `constraints` (by default n - 1 to 2n), `words` and clauses with a point
    of time (`times`, with `extended`) are numbers or ranges: 4, "3-5" or (3, 5). `topics` are
    professions. `lexicon` is a file of words and topics; `invent` asks `model` for so many new
    professions first and writes them there, with its replies kept in `store`.

    Raises InputError for a shape that no case can have, and ModelError when nothing of what a
    model invented could be kept.
    """
    from agenteval.evaluators.planning.synthesis.generate import Shape

    shape = Shape(
        actions=_span(n, "--n"),
        constraints=None if constraints is None else _span(constraints, "--constraints"),
        words=None if words is None else _span(words, "--words"),
        times=_span(times, "--times"),
        extended=extended,
    )
    path = None if lexicon is None else Path(lexicon)
    asked, watch = None, Watch(notify, progress)
    if invent is not None:
        choice = _inventor(path, model, base_url)
        assert path is not None
        more = limits or Limits(timeout=600.0)
        asked = _Inventor(invent, path, choice, more, record, store, watch)
    return _Synthesis(shape, count, seed, topics, path, asked, watch)


def _inventor(path: Path | None, model: str | None, base_url: str | None) -> ModelChoice:
    """The model to be asked. Raises InputError without a file to be written and for a model that
    does not chat."""
    from agenteval.models.factory import choose_model

    if path is None:
        raise InputError("--invent needs a file to write to", "--lexicon")
    if path.exists():
        raise InputError(
            f"{path} exists; leave out --invent to use it, or name another file", "--lexicon"
        )
    choice = choose_model(model, base_url)
    if choice.kind == "embedded":
        raise InputError(
            "inventing needs a chat model: PROVIDER:MODEL, or --base-url (`agenteval models serve` "
            "serves the embedded one, which is small for this)", "--model",
        )  # fmt: skip
    return choice


@dataclass(frozen=True)
class _Inventor:
    """Professions from a chat model, into a file."""

    professions: int
    path: Path
    choice: ModelChoice
    limits: Limits
    record: Path | None
    store: StoreOrPath
    watch: Watch

    async def asked(self) -> Invention:
        """Ask, and write the file at the end, in one step; replies are kept in the store, so that
        nothing is asked twice. Raises ModelError when nothing could be kept."""
        from agenteval.draining import answered
        from agenteval.evaluators.planning.invent import invent, requests_for
        from agenteval.models.factory import make_client

        requests = requests_for(self.professions)
        self.watch.note(
            f"{self.choice.name}: {requests} requests, at most {2 * requests} with repairs"
        )
        embedder = self._embedder()
        with opened(self.store) as store:
            client = make_client(self.choice, self.limits, store, record=self.record)
            try:
                asking = invent(
                    client, embedder, self.professions,
                    lambda what: self.watch.note(f"asking for {what}"),
                )  # fmt: skip
                invention = await answered(asking, client, self.watch.waiting)
            finally:
                await client.close()
        if not invention.topics:
            for line in (invention.meaning, *_refused(invention)):
                self.watch.warn(line)
            raise ModelError("nothing the model proposed could be kept; nothing was written")
        invention.save(self.path)
        return invention

    def _embedder(self) -> Embedder | None:
        from agenteval.models.embeddings import make_embedder

        try:
            return make_embedder(None)
        except ModelUnavailable as error:
            self.watch.warn(f"closeness in meaning is not checked: {error}")
            return None


def _refused(invention: Invention, most: int = 20) -> Iterator[str]:
    """What was not kept and why; the file has all of it."""
    if invention.refused:
        yield f"refused: {len(invention.refused)}"
        yield from (f"  {line}" for line in invention.refused[:most])
        if len(invention.refused) > most:
            yield f"  ... and {len(invention.refused) - most} more"


def _span(value: Range, option: str) -> tuple[int, int]:
    """The two ends of a range. InputError for what is none."""
    if isinstance(value, tuple):
        return value
    low, dash, high = str(value).partition("-")
    try:
        return int(low), int(high if dash else low)
    except ValueError:
        raise InputError(f"must be a number or FROM-TO, not {value!r}", option) from None


def _generator(shape: Shape, seed: int, topics: Sequence[str], lexicon: Path | None) -> Generator:
    """A lexicon's file replaces the built-in words, and the topics if it has any."""
    from agenteval.evaluators.planning.synthesis.generate import Generator
    from agenteval.evaluators.planning.synthesis.topics import choose_topics

    words, known = _words(lexicon)
    return Generator(shape, seed=seed, topics=choose_topics(topics, known), lexicon=words)


def _words(path: Path | None) -> tuple[Lexicon | None, tuple[Topic, ...] | None]:
    """Words and topics of a file; None where the built-in ones are to be used."""
    if path is None:
        return None, None
    from agenteval.evaluators.planning.synthesis.topics import read_words

    return read_words(path)


def _sizes_of(case: Case) -> dict[str, int | None]:
    names = ("sub_sentences", "constraints", "words")
    sizes = {name: getattr(case.size, name) if case.size else None for name in names}
    return {"actions": case.n, **sizes}


def _suite_tables(cases: Sequence[Case]) -> tuple[Table, ...]:
    from statistics import median_high

    from agenteval.records.table import Cell, Column, Table

    columns = (
        Column("size", "size"),
        Column("least", "least", "count"),
        Column("median", "median", "count"),
        Column("most", "most", "count"),
    )
    rows: list[dict[str, Cell]] = []
    for name in ("actions", "sub_sentences", "constraints", "words"):
        values = [v for case in cases if (v := _sizes_of(case)[name]) is not None]
        if values:
            rows.append({
                "size": name.replace("_", "-"), "least": min(values),
                "median": median_high(values), "most": max(values),
            })  # fmt: skip
    return (Table("sizes", "Sizes of the cases", columns, tuple(rows)),)


# -- tests -----------------------------------------------------------------------------------------


@dataclass
class Test:
    """Trials of one system at suites, each of which is begun when the one before it is done and
    `goes_on` says so of its trials."""

    setup: AgentSetup
    suites: Mapping[int, Sequence[Case]]
    trials: int
    retry_failed: bool
    store: StoreOrPath
    watch: Watch
    lexicon: Lexicon | None = None
    threshold: float | None = None  # success rate below which no further suite is begun
    gate: float | None = None
    max_unscored: float | None = None
    notes: tuple[str, ...] = ()

    async def run(self) -> PlanReport:
        """Run what is missing. Raises Stopped with what is there when it is cancelled."""
        from agenteval.campaign import EVALUATOR
        from agenteval.store import Trials

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
        from agenteval.campaign import open_trials, run_trials
        from agenteval.draining import Drain

        work = open_trials(store, cases, system, self.trials, retry_failed=self.retry_failed)
        done = len(cases) * self.trials - len(work)
        before = f", {done} done before" if done else ""
        self.watch.note(f"{system.name}: {len(work)} trials to run{before}")
        return await run_trials(
            store, system, work, self.setup.rules,
            concurrency=self.setup.limits.concurrency, on_progress=self.watch.progress,
            drain=Drain(told=self.watch.note),
        )  # fmt: skip

    def goes_on(self, store: Store, size: int) -> bool:
        """Whether enough of the stored trials of this size pass for the next suite."""
        from agenteval.evaluators.planning.capability import goes_on

        if self.threshold is None:
            return True
        attempts = self.attempts(store, [size])
        judged = [a.verdict.passed for a in attempts if a.verdict is not None]
        if not judged:
            return False
        rate, failed = sum(judged) / len(judged), len(attempts) - len(judged)
        self.watch.note(
            f"{size} actions: {rate:.3f} of {len(judged)} pass, {failed} without verdict"
        )
        return goes_on(rate, self.threshold)

    def attempts(self, store: Store, sizes: Sequence[int]) -> list[Attempt]:
        """The stored trials of the suites of these sizes."""
        from agenteval.campaign import load_attempts

        keys = [case.sha256 for size in sizes for case in self.suites[size]]
        with store.snapshot():
            stored = load_attempts(
                store, self.setup.rules.check, cases=keys, systems=[self.setup.system().sha256]
            )
        return [a for a in stored if a.trial < self.trials]

    def _report(self, store: Store, sizes: Sequence[int], ended: Ended | None) -> PlanReport:
        from agenteval.evaluators.planning.tables import planning_tables

        attempts = self.attempts(store, sizes)
        unfinished, code = _ended(ended, "trials not run")
        report = PlanReport(
            title=f"Planning tests of {self.setup.system().name}",
            tables=planning_tables(attempts, (), self.lexicon, threshold=self.threshold)
            if attempts
            else (),
            notes=self.notes if attempts else (*self.notes, "no trial has been run"),
            unfinished=unfinished,
            data={"trials": trial_rows(attempts)},
            exit_code=code,
            attempts=tuple(attempts),
            lexicon=self.lexicon,
        )
        return self._gated(report)

    def _gated(self, report: PlanReport) -> PlanReport:
        from agenteval.trust.gates import Gate, least_gate, unscored_gate

        judged = [a.verdict.passed for a in report.attempts if a.verdict is not None]
        failed = len(report.attempts) - len(judged)
        gates: list[Gate] = []
        if self.max_unscored is not None:
            total = len(report.attempts)
            gates.append(unscored_gate(total, failed, self.max_unscored, "trials have no verdict"))
        if self.gate is not None:
            rate = sum(judged) / len(judged) if judged else None
            of = f"of {len(judged)} trials, {failed} without verdict"
            gates.append(
                least_gate("success", rate, self.gate, of, unknown="no trial has a verdict")
            )
        return report.gated(*gates)


def prepare_test(
    suite: Suite,
    agent: str | Callable[..., Any] | AgentSetup,
    *,
    trials: int = 1,
    limit: int | None = None,
    lexicon: str | Path | None = None,
    gate: float | None = None,
    max_unscored: float = 0.1,
    store: StoreOrPath = None,
    retry_failed: bool = False,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> Test:
    """Run an agent on every case of a suite (file or cases), `trials` times, and check its plans.

    Only what `store` lacks is run; `retry_failed` runs again what failed for good. `limit`: only
    the first cases. `lexicon`: word lists the suite was made with. `gate` is the share of passes
    that is demanded, `max_unscored` the share without verdict that is allowed.

    Raises InputError for a suite or agent that cannot be used, Unauthorized, StoreError.
    """
    words = _words(None if lexicon is None else Path(lexicon))[0]
    cases = _cases(suite, words)[:limit]
    different: dict[str, Case] = {}
    for case in cases:
        different.setdefault(case.sha256, case)
    same = len(cases) - len(different)
    told = f"{same} of {len(cases)} cases are another one again but for the id: left out"
    return Test(
        AgentSetup.of(agent), {0: list(different.values())}, trials, retry_failed, store,
        Watch(notify, progress), words, gate=gate, max_unscored=max_unscored,
        notes=(told,) if same else (),
    )  # fmt: skip


def prepare_capability(
    agent: str | Callable[..., Any] | AgentSetup,
    *,
    n: Range = "2-9",
    cases: int | None = None,
    threshold: float = THRESHOLD,
    seed: int = 0,
    extended: bool = False,
    topics: Sequence[str] = (),
    trials: int = 1,
    store: StoreOrPath = None,
    retry_failed: bool = False,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> Test:
    """Raise the number of actions until an agent's success falls below the threshold.

    `cases` at each number of actions, by default min(300, 20·n(n-1)/2), as published (arXiv
    2404.17833, section 6.2). Raises as `plan_test`.
    """
    from agenteval.evaluators.planning.capability import cases_for
    from agenteval.evaluators.planning.synthesis.generate import Shape

    first, last = _span(n, "--n")
    if first > last or first < 2:
        raise InputError(f"must be a range of 2 actions or more, not {n!r}", "--n")
    suites = {
        size: list(
            _generator(Shape(actions=(size, size), extended=extended), seed, topics, None).cases(
                cases or cases_for(size)
            )
        )
        for size in range(first, last + 1)
    }
    return Test(
        AgentSetup.of(agent), suites, trials, retry_failed, store,
        Watch(notify, progress), threshold=threshold,
    )  # fmt: skip


def _cases(suite: Suite, lexicon: Lexicon | None) -> list[Case]:
    from agenteval.evaluators.planning.suite import read_suite

    return list(read_suite(Path(suite), lexicon) if isinstance(suite, str | Path) else suite)


def plan_report(
    store: StoreOrPath = None,
    suite: Suite | None = None,
    *,
    strict: bool = False,
    lexicon: str | Path | None = None,
) -> PlanReport:
    """What the stored trials of all systems tell (at the cases of a suite), with the causes of the
    dissections by the options under which most cases were dissected.

    Raises InputError when there is no trial.
    """
    from agenteval.campaign import EVALUATOR, load_attempts
    from agenteval.dissections import load_dissections
    from agenteval.evaluators.planning.checker import CheckRules
    from agenteval.evaluators.planning.tables import planning_tables
    from agenteval.store.unfinished import unfinished_trials

    words = _words(None if lexicon is None else Path(lexicon))[0]
    keys = None if suite is None else [case.sha256 for case in _cases(suite, words)]
    with opened(store, create=False) as stored, stored.snapshot():
        unfinished = unfinished_trials(stored, [EVALUATOR], keys)
        attempts = load_attempts(stored, CheckRules(strict=strict), cases=keys)
        dissections = load_dissections(stored, cases=keys)
    if not attempts:
        told = "".join(f"; {one.line}" for one in unfinished)
        raise InputError(
            f"no planning trial is stored here yet; run `agenteval plan test` first{told}"
        )
    chosen = max(sorted(dissections), key=lambda name: len(dissections[name]), default=None)
    causes = tuple((d.case, d.system, d.label) for d in dissections.get(chosen or "", ()))
    return PlanReport(
        title="Planning tests",
        tables=planning_tables(attempts, causes, words),
        notes=tuple(
            f"{len(dissections[name])} dissections by other options are left out: {name}"
            for name in sorted(dissections)
            if name != chosen
        ),
        unfinished=tuple(one.line for one in unfinished),
        data={
            "trials": trial_rows(attempts),
            "unfinished": [one.json() for one in unfinished],
        },
        attempts=tuple(attempts),
        causes=causes,
        lexicon=words,
    )


# -- dissections -----------------------------------------------------------------------------------


@dataclass
class Dissect:
    setup: AgentSetup
    cases: Sequence[Case]
    options: DissectOptions
    limit: int | None
    store: StoreOrPath
    watch: Watch

    def failed(self, store: Store) -> list[Case]:
        """Cases with a stored trial that did not pass, in the suite's order, as far as they can be
        dissected. Raises InputError when no trial is stored, or none of them can be."""
        from agenteval.campaign import load_attempts
        from agenteval.evaluators.planning.substitute import base_of

        keys = [case.sha256 for case in self.cases]
        with store.snapshot():
            attempts = load_attempts(
                store, self.setup.rules.check, cases=keys, systems=[self.setup.system().sha256]
            )
        if not attempts:
            raise InputError(
                "no trial of this agent and suite is stored (--timeout, --turns and what the agent "
                "is given must be the same); run `agenteval plan test` first"
            )
        wrong = {a.case.sha256 for a in attempts if a.verdict is not None and not a.verdict.passed}
        cases: list[Case] = []
        refused: list[InputError] = []
        for case in self.cases:
            if case.sha256 not in wrong:
                continue
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
            try:
                ended = await self._run(store, failed) if failed else None
            except asyncio.CancelledError:
                raise Stopped(self._report(store, failed, None)) from None
            return self._report(store, failed, ended)

    async def _run(self, store: Store, failed: Sequence[Case]) -> Ended:
        from agenteval.campaign import EVALUATOR
        from agenteval.dissections import open_dissections, run_dissections
        from agenteval.draining import Drain
        from agenteval.store import Trials

        with Trials(store).lock(EVALUATOR, self.setup.system().sha256):
            async with self.setup.opened(store) as system:
                work = open_dissections(store, failed, system, self.options)
                done = len(failed) - len(work)
                before = f", {done} done before" if done else ""
                self.watch.note(f"{len(work)} failed cases to dissect{before}")
                return await run_dissections(
                    store, system, work, self.options,
                    concurrency=self.setup.limits.concurrency, on_progress=self.watch.progress,
                    drain=Drain(told=self.watch.note),
                )  # fmt: skip

    def _report(self, store: Store, failed: Sequence[Case], ended: Ended | None) -> DissectReport:
        from agenteval.dissections import evaluator_name, load_dissections
        from agenteval.evaluators.planning.tables import dissection_tables

        keys, key = [case.sha256 for case in failed], self.setup.system().sha256
        with store.snapshot():
            everything = load_dissections(store, cases=keys, systems=[key])
        stored = everything.get(evaluator_name(self.options), [])
        unfinished, code = _ended(ended, "dissections not made") if failed else ((), 0)
        none = "no failed case of this agent and suite is stored; nothing to dissect"
        return DissectReport(
            title=f"Causes of failed plans of {self.setup.system().name}",
            tables=dissection_tables(stored),
            notes=(*self.watch.notes, *(() if failed else (none,))),
            unfinished=unfinished,
            data={"dissections": [d.model_dump(mode="json") for d in stored]},
            exit_code=code,
            dissections=tuple(stored),
        )


def prepare_dissect(
    suite: Suite,
    agent: str | Callable[..., Any] | AgentSetup,
    *,
    tries: int = 3,
    full: bool = False,
    literal: bool = False,
    limit: int | None = 100,
    seed: int = 0,
    lexicon: str | Path | None = None,
    store: StoreOrPath = None,
    notify: Notify | None = None,
    progress: Progress | None = None,
) -> Dissect:
    """Find the causes of the failures that `plan_test` has stored for this agent and suite
    (algorithm 2 of arXiv 2404.17833).

    `tries` of a stage; `full` runs all stages, also after a success; `literal` is the algorithm as
    printed. Raises InputError without such trials.
    """
    from agenteval.evaluators.planning.dissect import DissectOptions
    from agenteval.evaluators.planning.substitute import Choices

    setup = AgentSetup.of(agent)
    words, topics = _words(None if lexicon is None else Path(lexicon))
    options = DissectOptions(
        tries=tries, full=full, paper_literal=literal, seed=seed,
        choices=Choices(topics=topics, lexicon=words),
        limits=setup.rules.limits, rules=setup.rules.check,
    )  # fmt: skip
    return Dissect(setup, _cases(suite, words), options, limit, store, Watch(notify, progress))


plan_suite, aplan_suite = twins("plan_suite", prepare_suite)
plan_test, aplan_test = twins("plan_test", prepare_test)
plan_capability, aplan_capability = twins("plan_capability", prepare_capability)
dissect, adissect = twins("dissect", prepare_dissect)
