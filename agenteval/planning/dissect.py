"""Find out why a plan failed: algorithm 2 of arXiv 2404.17833, with rates and intervals.

Four stages run the agent again: on the same request (Probability), in other words (Terminal), about
another profession (Topic), and in other sentences with equivalent demands (Structure). The first
stage in which the agent succeeds is the cause; without a success, it is Constraint.

The label alone is weak evidence: an agent that succeeds with probability p at everything is
labelled Probability with 1 - (1 - p)^3, and otherwise mostly Terminal, Topic or Structure.
Therefore the successes of all stages are reported; those of the first stage estimate p.

A stage runs all its tries, so that stopping at a success does not bias its rate; the label is the
same. `full` runs all stages, which can reveal several causes. `paper_literal` is the algorithm as
printed: tries run in sequence, a stage ends at its first success, and the first try of the last
stage decides.

A try without a verdict (the endpoint failed) is neither a success nor a failure. It is retried a
few times; if the label depends on a try without a verdict, the label is "undecided".
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, TypeVar, get_args

from agenteval.agents import AgentFailure, AgentLimits, System
from agenteval.engine import Outcome, RequestBounds, Requests, Unit
from agenteval.engine.measures import failed, score, words
from agenteval.errors import BudgetExceeded, InputError
from agenteval.planning.case import Case
from agenteval.planning.evaluator import (
    EVALUATOR,
    OUTCOME_RULES,
    AgentEvaluator,
    check_key,
    over_budget,
    run_case,
)
from agenteval.planning.oracle import CheckRules
from agenteval.planning.substitute import base_of, substitutes
from agenteval.planning.words import Topic
from agenteval.records import Criterion, FailureStatus, Record, Usage, content_hash
from agenteval.records.trial import source_key
from agenteval.store import Store, Trials

StageName = Literal["original", "terminal", "topic", "structure"]
Label = Literal["Probability", "Terminal", "Topic", "Structure", "Constraint", "undecided"]
STAGES: tuple[StageName, ...] = get_args(StageName)
LABELS: tuple[Label, ...] = get_args(Label)
CAUSES = LABELS[:-1]
CAUSE = words("cause", "The single cause of a failed case (algorithm 2).", CAUSES)
T = TypeVar("T")
ORIGINAL = 3  # tries of the original request
RETRIES = 2  # retries of a try without a verdict
_DRAWS = 8  # drawn structures, of which the least ambiguous is used
_PREFIX = f"{EVALUATOR}.dissect"
_UNDECIDED: FailureStatus = "error:infrastructure"
_FIRST_TRIAL = 1000  # number of the first try, to avoid the numbers of `plan test`
_CAUSE_OF: dict[StageName, Label] = dict(zip(STAGES, LABELS, strict=False))


@dataclass(frozen=True)
class DissectOptions:
    """How to dissect.

    `tries` is K of the last three stages; the original request is run three times. `topics` are
    used in the topic stage; None means the built-in ones.
    """

    tries: int = 3
    full: bool = False
    paper_literal: bool = False
    seed: int = 0
    topics: Sequence[Topic] | None = None
    limits: AgentLimits | None = None
    rules: CheckRules | None = None

    def __post_init__(self) -> None:
        if self.tries < 1:
            raise InputError("dissecting needs at least 1 try per stage")
        if self.full and self.paper_literal:
            raise InputError("full and paper_literal cannot be combined")

    @property
    def runs(self) -> tuple[int, int]:
        """The minimum and maximum number of agent runs for one case.

        The maximum applies if every try lacks a verdict.
        """
        every = ORIGINAL + 2 * self.tries + (1 if self.paper_literal else self.tries)
        least = every if self.full else 1 if self.paper_literal else ORIGINAL
        return least, every * (1 + RETRIES)


class Try(Record):
    """One run of a stage. `passed` is None without a verdict; `runs` includes the retries.

    `case` is the id of the case run, `request` its request.
    """

    case: str
    request: str
    outcome: str  # a verdict's outcome, or a failure's status (with a colon)
    passed: bool | None
    runs: int = 1
    message: str = ""  # of the last failure


class Stage(Record):
    """The tries of one stage; `stopped` if it ended at a success before all tries were made."""

    name: StageName
    tries: tuple[Try, ...] = ()
    stopped: bool = False

    @property
    def passes(self) -> int:
        """Tries in which the agent succeeded."""
        return sum(1 for attempt in self.tries if attempt.passed)

    @property
    def unknown(self) -> int:
        """Tries without a verdict."""
        return sum(1 for attempt in self.tries if attempt.passed is None)


class Dissection(Record):
    """The dissection of one failed case.

    `label` is the paper's single cause. `labels` are all stages with a success, or `label` if there
    are none; if an original run succeeded, other successes may be chance as well. `unknown` counts
    tries without a verdict, `runs` all runs of the agent.
    """

    case: str
    system: str
    label: Label
    labels: tuple[Label, ...]
    stages: tuple[Stage, ...]
    unknown: int
    runs: int
    seconds: float
    seed: int
    paper_literal: bool = False
    usage: Usage = Usage()


def label(
    outcomes: Mapping[StageName, Sequence[bool | None]], *, paper_literal: bool = False
) -> Label:
    """Return the cause by algorithm 2, from the tries of each stage (None: no verdict).

    A missing stage was not run. The label is "undecided" if tries that are missing or have no
    verdict could change it.
    """
    for name in STAGES:
        tries = outcomes.get(name, ())
        if name == "structure" and paper_literal:
            tries = tries[:1]
        if True in tries:
            return _CAUSE_OF[name]
        if not tries or None in tries:
            return "undecided"
    return "Constraint"


async def dissect(
    case: Case,
    system: System,
    options: DissectOptions | None = None,
    *,
    slots: asyncio.Semaphore | None = None,
) -> Dissection:
    """Dissect a case that the system failed. Tries run concurrently, as far as `slots` allows.

    Raises InputError, before anything is run, for a case that cannot be dissected (see `base_of`)
    or substituted. Also raises Unauthorized, BudgetExceeded (with `spent`, the usage of the case)
    and ModelUnavailable.
    """
    options = options or DissectOptions()
    begun = time.monotonic()
    runner = _Runner(system, options, slots or nullcontext())
    # In a thread, because finding other hours calls Z3, which must not block other agents.
    plan = await asyncio.to_thread(_stage_cases, case, options)
    try:
        stages = await runner.stages(plan)
    except BudgetExceeded as error:
        error.spent = runner.usage
        raise
    passed = {stage.name: [attempt.passed for attempt in stage.tries] for stage in stages}
    cause = label(passed, paper_literal=options.paper_literal)
    return Dissection(
        case=case.id,
        system=system.name,
        label=cause,
        labels=tuple(_CAUSE_OF[stage.name] for stage in stages if stage.passes) or (cause,),
        stages=tuple(stages),
        unknown=sum(stage.unknown for stage in stages),
        runs=sum(attempt.runs for stage in stages for attempt in stage.tries),
        seconds=round(time.monotonic() - begun, 6),
        seed=options.seed,
        paper_literal=options.paper_literal,
        usage=runner.usage,
    )


def _stage_cases(case: Case, options: DissectOptions) -> dict[StageName, tuple[Case, ...]]:
    """Build the cases of all stages before any is run."""
    base, seed, tries = base_of(case), options.seed, options.tries
    # As in the paper: the first try decides, and any structure is accepted.
    structures, draws = (1, 1) if options.paper_literal else (tries, _DRAWS)
    return {
        "original": (base.case,) * ORIGINAL,
        "terminal": substitutes(base, "terminal", tries, seed),
        "topic": substitutes(base, "topic", tries, seed, topics=options.topics),
        "structure": substitutes(base, "structure", structures, seed, draws=draws),
    }


@dataclass
class _Runner:
    """Runs the tries of one dissection and adds up their usage."""

    system: System
    options: DissectOptions
    slots: AbstractAsyncContextManager[Any]
    usage: Usage = Usage()  # noqa: RUF009  frozen

    async def stages(self, plan: Mapping[StageName, Sequence[Case]]) -> list[Stage]:
        """Run the necessary stages in order."""
        if self.options.full:
            return await _together([self.stage(name, cases) for name, cases in plan.items()])
        stages: list[Stage] = []
        for name, cases in plan.items():
            stages.append(await self.stage(name, cases))
            if stages[-1].passes or stages[-1].unknown:
                break  # further stages cannot change the label
        return stages

    async def stage(self, name: StageName, cases: Sequence[Case]) -> Stage:
        if not self.options.paper_literal:
            tries = await _together([self.attempt(case, n) for n, case in enumerate(cases)])
            return Stage(name=name, tries=tuple(tries))
        tries = []
        for number, case in enumerate(cases):
            tries.append(await self.attempt(case, number))
            if tries[-1].passed:
                break
        return Stage(name=name, tries=tuple(tries), stopped=len(tries) < len(cases))

    async def attempt(self, case: Case, number: int) -> Try:
        """Run try `number`, and retry it while it has no verdict and retries are left."""
        options, runs = self.options, 0
        first = _FIRST_TRIAL + number * (1 + RETRIES)
        while True:
            try:
                async with self.slots:
                    agent, trial = self.system.make(), first + runs
                    log, verdict = await run_case(
                        case, agent, options.limits, options.rules, trial=trial
                    )
            except BudgetExceeded as error:
                self.usage += error.spent or Usage()
                raise
            runs += 1
            self.usage += log.usage
            fields = {"case": case.id, "request": case.request, "runs": runs}
            if verdict is not None:
                return Try(outcome=verdict.outcome, passed=verdict.passed, **fields)
            assert isinstance(log, AgentFailure)  # all other logs have a verdict
            if runs > RETRIES:
                return Try(outcome=log.status, passed=None, message=log.message, **fields)


async def _together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """Return all results in order. The first error cancels the others and is raised.

    BudgetExceeded does not cancel: the other tries reach it too, and then their usage is known.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return await asyncio.gather(*tasks)
    except BaseException as error:
        for task in tasks:
            if not isinstance(error, BudgetExceeded):
                task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


# -- dissections in the store ----------------------------------------------------------------------


def evaluator_name(options: DissectOptions) -> str:
    """Return the name under which dissections with these options are stored."""
    kind = "literal" if options.paper_literal else "full" if options.full else "each"
    rules = check_key(options.rules or CheckRules(), OUTCOME_RULES)[:8]
    # The wording of an older version, because dissections are stored under this name.
    choices = f"Choices(draws={_DRAWS}, topics={options.topics!r}, lexicon=None)"
    choices = content_hash(choices)[:8]
    return f"{_PREFIX}-{kind}-k{options.tries}-o{ORIGINAL}-s{options.seed}-{rules}-{choices}"


@dataclass(frozen=True)
class DissectionEvaluator(AgentEvaluator):
    """Dissections of an agent's failed cases with one set of options.

    A dissection runs several tries concurrently; `slots` limits the running agents. The next run
    repeats undecided dissections.
    """

    options: DissectOptions = field(kw_only=True)
    turns: int = field(kw_only=True, default=50)
    slots: asyncio.Semaphore = field(kw_only=True, default_factory=lambda: asyncio.Semaphore(8))

    noun: ClassVar[str] = "dissection"
    measures: ClassVar[tuple[Criterion, ...]] = (CAUSE,)

    @classmethod
    def of(
        cls,
        agent: System,
        cases: Iterable[Case],
        options: DissectOptions,
        *,
        concurrency: int = 8,
        turns: int = 50,
    ) -> DissectionEvaluator:
        """Return the evaluator of an agent on its failed cases."""
        slots = asyncio.Semaphore(concurrency)
        name = evaluator_name(options)
        return cls.of_agent(name, agent, cases, 1, options=options, turns=turns, slots=slots)

    @property
    def lock(self) -> str:
        """The lock shared with the agent's trials."""
        return source_key(EVALUATOR, self.system.key)

    def requests(self, unit: Unit[Case]) -> Requests:
        """Count at least one request and at most `turns` + 1 per run of the agent."""
        least, most = self.options.runs
        return {"agent": RequestBounds(least, most * (self.turns + 1))}

    async def evaluate(self, unit: Unit[Case]) -> Outcome:
        """Find the cause of one failure. Raises what `dissect` raises, except BudgetExceeded."""
        started = time.time()
        try:
            log = await dissect(unit.content, self.agent, self.options, slots=self.slots)
        except BudgetExceeded as error:  # not dissected; the next run will retry
            failure = over_budget(error)
            trial = self.trial(unit, started, failure, status=failure.status, ended=time.time())
            return Outcome(failed(trial, (CAUSE,), failure.status, failure.message), trial)
        trial = self.trial(unit, started, log, status="done", ended=time.time())
        if log.label != "undecided":
            key = check_key(self.options.rules or CheckRules())
            return Outcome((score(trial, CAUSE, log.label),), trial.judged(key, log.label.lower()))
        messages = [t.message for stage in log.stages for t in stage.tries if t.message]
        why = Counter(messages or ["no verdict"]).most_common(1)[0][0]
        trial = trial.model_copy(update={"status": _UNDECIDED})
        results = failed(trial, (CAUSE,), _UNDECIDED, why)
        return Outcome(results, trial, failure=(_UNDECIDED, why))


def load_dissections(
    store: Store, *, cases: Iterable[str] | None = None, systems: Iterable[str] | None = None
) -> dict[str, list[Dissection]]:
    """Return stored dissections (for these case and system keys) by the name of their options."""
    trials = Trials(store)
    case_keys = None if cases is None else list(cases)
    system_keys = None if systems is None else list(systems)
    return {
        name: [
            Dissection.model_validate(trial.log)
            for trial in trials.trials(name, case_keys, system_keys)
            if trial.status != "error:budget"
        ]
        for name in trials.evaluators()
        if name.startswith(_PREFIX)
    }
