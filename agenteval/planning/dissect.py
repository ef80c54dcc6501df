"""Why did a plan fail? Algorithm 2 of arXiv 2404.17833, with rates and intervals.

Four stages run the agent again: on the same request, in other words (Terminal), about another
profession (Topic), in other sentences with equivalent demands (Structure). The first stage in which
the agent succeeds names the cause; if it succeeds in none, the demands themselves do (Constraint).

The label alone says less than it seems to: an agent that succeeds with probability p at everything
is labelled Probability with 1 - (1 - p)^3 and Terminal, Topic or Structure with most of the rest.
So every stage keeps its rate; that of the first one estimates p of the request (`Stage.share`).

Stages that are begun are run in full, so that no rate is distorted by stopping at a success, and
the label is the same. `full` runs all stages, which lets several causes be told. `paper_literal`
is the algorithm as printed: one try after another, a stage ends at the first success, and the last
stage decides at its first try.

A try without a verdict (the endpoint failed) is neither success nor failure. It is repeated a few
times; if it stays so and the label depends on it, the label is "undecided".
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal, TypeVar, get_args

from agenteval.agents import AgentFailure, AgentLimits, System
from agenteval.agents.spec import uncounted
from agenteval.engine import Outcome, RequestBounds, Requests, Unit
from agenteval.engine.attempts import AttemptEvaluator
from agenteval.engine.measures import failed, score, words
from agenteval.errors import BudgetExceeded, InputError
from agenteval.planning.case import Case
from agenteval.planning.evaluator import (
    EVALUATOR,
    OUTCOME_RULES,
    check_key,
    run_case,
    stored_case,
    stored_system,
)
from agenteval.planning.oracle import CheckRules
from agenteval.planning.substitute import Choices, base_of, substitutes
from agenteval.records import Criterion, FailureStatus, Record, Usage, content_hash
from agenteval.records.trial import Trial, TrialCase, source_key
from agenteval.stats import Interval, proportion_interval
from agenteval.store import Store, Trials

StageName = Literal["original", "terminal", "topic", "structure"]
Label = Literal["Probability", "Terminal", "Topic", "Structure", "Constraint", "undecided"]
STAGES: tuple[StageName, ...] = get_args(StageName)
LABELS: tuple[Label, ...] = get_args(Label)
_NAMED: dict[StageName, Label] = {
    "original": "Probability",
    "terminal": "Terminal",
    "topic": "Topic",
    "structure": "Structure",
}
CAUSES = LABELS[:-1]
CAUSE = words("cause", "The single cause of a failed case (algorithm 2).", CAUSES)
T = TypeVar("T")
_PREFIX = f"{EVALUATOR}.dissect"
_BROKEN_OFF: FailureStatus = "error:budget"
_UNDECIDED: FailureStatus = "error:infrastructure"
_FIRST_TRIAL = 1000  # tries are numbered from here on: none is a trial of `plan test`


@dataclass(frozen=True)
class DissectOptions:
    """How to dissect.

    `tries`: K of the last three stages. `original`: runs of the request itself. `retries`: further
    runs of a try without a verdict. `choices`: what substitutes may change.
    """

    tries: int = 3
    original: int = 3
    full: bool = False
    paper_literal: bool = False
    retries: int = 2
    seed: int = 0
    choices: Choices = field(default_factory=Choices)
    limits: AgentLimits | None = None
    rules: CheckRules | None = None

    def __post_init__(self) -> None:
        if self.tries < 1 or self.original < 1 or self.retries < 0:
            raise InputError("dissecting needs at least 1 try per stage and 0 retries")
        if self.full and self.paper_literal:
            raise InputError("full and paper_literal exclude each other")

    @property
    def runs(self) -> tuple[int, int, int]:
        """Runs of the agent for one case: at least, where no stage before the last succeeds, and
        at most, when every try lacks a verdict as often as it may."""
        every = self.original + 2 * self.tries + (1 if self.paper_literal else self.tries)
        least = every if self.full else 1 if self.paper_literal else self.original
        return least, every, every * (1 + self.retries)


class Try(Record):
    """One run of a stage. `passed` is None without a verdict; `runs` counts the retries too.

    `case` is the id of the case that was run, `request` what it asked.
    """

    case: str
    request: str
    outcome: str  # a verdict's outcome, or a failure's status (with a colon)
    passed: bool | None
    runs: int = 1
    message: str = ""  # of the last failure


class Stage(Record):
    """The tries of one stage; `stopped`: it ended at a success before all tries were made."""

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

    def share(self, level: float = 0.95) -> Interval | None:
        """Share of successes among the verdicts, with Wilson's interval.

        None if the stage stopped at a success: the share would be too high by that.
        """
        if self.stopped:
            return None
        return proportion_interval(self.passes, len(self.tries) - self.unknown, level=level)


class Dissection(Record):
    """What became of one failed case.

    `label` is the paper's single cause. `labels` holds all that were seen: every stage with a
    success among those that were run, "Constraint" if there is none; where an original run
    succeeded, the others may be due to chance as well. `unknown` counts tries without a verdict,
    `runs` all runs of the agent, `usage` what they took.
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

    def stage(self, name: StageName) -> Stage | None:
        """The stage of this name, None if it was not begun."""
        return next((stage for stage in self.stages if stage.name == name), None)


def label(
    outcomes: Mapping[StageName, Sequence[bool | None]], *, paper_literal: bool = False
) -> Label:
    """The cause that algorithm 2 names, from the tries of each stage (None: no verdict).

    A stage that is missing was not run. "undecided" wherever tries that are missing or without a
    verdict could change the label.
    """
    for name in STAGES:
        tries = outcomes.get(name, ())
        if name == "structure" and paper_literal:
            tries = tries[:1]
        if True in tries:
            return _NAMED[name]
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
    """Dissect a case that the system failed. Tries run at once, as far as `slots` allows.

    Raises InputError for a case that cannot be dissected (see `base_of`) or substituted, before
    anything is run, and what `run_case` raises: Unauthorized, BudgetExceeded (`spent` set to what
    the case has taken), ModelUnavailable.
    """
    options = options or DissectOptions()
    begun = time.monotonic()
    if options.paper_literal:  # any structure, as in the paper
        options = replace(options, choices=replace(options.choices, draws=1))
    work = _Work(system, options, slots or nullcontext())
    # in a thread: other hours put questions to Z3, and the agents of other cases must not wait
    plan = await asyncio.to_thread(_planned, case, options)
    try:
        made = await work.stages(plan)
    except BudgetExceeded as error:
        error.spent = work.usage
        raise
    passed = {stage.name: [attempt.passed for attempt in stage.tries] for stage in made}
    seen: tuple[Label, ...] = tuple(_NAMED[stage.name] for stage in made if stage.passes)
    cause = label(passed, paper_literal=options.paper_literal)
    return Dissection(
        case=case.id,
        system=system.name,
        label=cause,
        labels=seen or (cause,),
        stages=tuple(made),
        unknown=sum(stage.unknown for stage in made),
        runs=sum(attempt.runs for stage in made for attempt in stage.tries),
        seconds=round(time.monotonic() - begun, 6),
        seed=options.seed,
        paper_literal=options.paper_literal,
        usage=work.usage,
    )


def _planned(case: Case, options: DissectOptions) -> dict[StageName, tuple[Case, ...]]:
    """The cases of every stage, all made before any is run."""
    base = base_of(case, options.choices.lexicon)
    last = 1 if options.paper_literal else options.tries
    seed, choices = options.seed, options.choices
    return {
        "original": (base.case,) * options.original,
        "terminal": substitutes(base, "terminal", options.tries, seed, choices),
        "topic": substitutes(base, "topic", options.tries, seed, choices),
        "structure": substitutes(base, "structure", last, seed, choices),
    }


class _Work:
    """Runs the tries of one dissection."""

    def __init__(
        self,
        system: System,
        options: DissectOptions,
        slots: AbstractAsyncContextManager[Any],
    ) -> None:
        self.system, self.options, self.slots = system, options, slots
        self.usage = Usage()

    async def stages(self, plan: Mapping[StageName, Sequence[Case]]) -> list[Stage]:
        """The stages that have to be run, in their order."""
        if self.options.full:
            return await _together([self.stage(name, cases) for name, cases in plan.items()])
        made: list[Stage] = []
        for name, cases in plan.items():
            made.append(await self.stage(name, cases))
            if made[-1].passes or made[-1].unknown:
                break  # the label stands, or can no longer be told
        return made

    async def stage(self, name: StageName, cases: Sequence[Case]) -> Stage:
        if not self.options.paper_literal:
            tries = await _together([self.one(case, n) for n, case in enumerate(cases)])
            return Stage(name=name, tries=tuple(tries))
        made: list[Try] = []
        for number, case in enumerate(cases):
            made.append(await self.one(case, number))
            if made[-1].passed:
                break
        return Stage(name=name, tries=tuple(made), stopped=len(made) < len(cases))

    async def one(self, case: Case, number: int) -> Try:
        """Try `number`, repeated as long as it has no verdict and retries are left."""
        runs, first = 0, _FIRST_TRIAL + number * (1 + self.options.retries)
        while True:
            try:
                async with self.slots:
                    log, verdict = await run_case(
                        case,
                        self.system.make(),
                        self.options.limits,
                        self.options.rules,
                        trial=first + runs,
                    )
            except BudgetExceeded as error:
                self.usage = self.usage + (error.spent or Usage())
                raise
            runs += 1
            self.usage = self.usage + log.usage
            more = {"case": case.id, "request": case.request, "runs": runs}
            if verdict is not None:
                return Try(outcome=verdict.outcome, passed=verdict.passed, **more)
            assert isinstance(log, AgentFailure)  # what else has no verdict
            if runs > self.options.retries:
                return Try(outcome=log.status, passed=None, message=log.message, **more)


async def _together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """All results in their order; the first error cancels the others and is raised.

    Not at the cap: the others run into it as well, and then it is known what they took.
    """
    tasks = [asyncio.ensure_future(coroutine) for coroutine in work]
    try:
        return await asyncio.gather(*tasks)
    except BudgetExceeded:
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise


# -- dissections in the store ----------------------------------------------------------------------


def evaluator_name(options: DissectOptions) -> str:
    """Under which name dissections by these options are stored: other options, another name."""
    kind = "literal" if options.paper_literal else "full" if options.full else "each"
    rules = check_key(options.rules or CheckRules(), OUTCOME_RULES)[:8]
    choices = content_hash(repr(options.choices))[:8]
    return (
        f"{_PREFIX}-{kind}-k{options.tries}-o{options.original}-s{options.seed}-{rules}-{choices}"
    )


@dataclass(frozen=True)
class DissectionEvaluator(AttemptEvaluator[Case]):
    """Dissections of an agent's failed cases by one set of options.

    A dissection runs several tries at once: `slots` bound the agents at work. One that stays
    undecided is made again by the next run.
    """

    agent: System = field(kw_only=True)
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
        """Return the evaluator of an agent at its failed cases."""
        return cls(
            evaluator_name(options),
            stored_system(agent),
            {case.sha256: case for case in cases},
            1,
            agent=agent,
            options=options,
            turns=turns,
            slots=asyncio.Semaphore(concurrency),
        )

    @property
    def lock(self) -> str:
        """That of the agent's trials."""
        return source_key(EVALUATOR, self.system.key)

    @property
    def sends_by_client(self) -> bool:
        """Whether the agent runs on a model of this package."""
        return not uncounted(self.agent.parameters)

    def stored_case(self, key: str, case: Case) -> TrialCase:
        """Return the case as the store keeps it."""
        return stored_case(case)

    def requests(self, unit: Unit[Case]) -> Requests:
        """Each run of the agent takes one request at least, one more than `turns` at most."""
        least, _, most = self.options.runs
        return {"agent": RequestBounds(least, most * (self.turns + 1))}

    async def evaluate(self, unit: Unit[Case]) -> Outcome:
        """Find the cause of one failure. Raises what `dissect` raises."""
        case, started, why, label = unit.content, time.time(), "", None
        status: Literal["done"] | FailureStatus = "done"
        log: Record
        try:
            log = dissection = await dissect(case, self.agent, self.options, slots=self.slots)
            usage = dissection.usage
            if dissection.label == "undecided":
                messages = [t.message for s in dissection.stages for t in s.tries if t.message]
                why = Counter(messages or ["no verdict"]).most_common(1)[0][0]
                status = _UNDECIDED
            else:
                label = dissection.label
        except BudgetExceeded as error:  # no dissection; the next run makes it
            status, why = _BROKEN_OFF, str(error)[:500]
            usage = error.spent if isinstance(error.spent, Usage) else Usage()
            log = AgentFailure(status=_BROKEN_OFF, message=why, usage=usage)
        trial = Trial(
            evaluator=self.evaluator,
            system_key=self.system.key,
            case_key=case.sha256,
            trial=0,
            case_id=case.id,
            status=status,
            log=log.model_dump(mode="json"),
            started=started,
            ended=time.time(),
            usage=usage,
        )
        if label is not None:
            key = check_key(self.options.rules or CheckRules())
            return Outcome((score(trial, CAUSE, label),), trial.judged(key, label.lower()))
        return Outcome(
            () if status == "done" else failed(trial, (CAUSE,), status, why),
            trial,
            failure=(_UNDECIDED, why) if status == _UNDECIDED else None,
        )


def load_dissections(
    store: Store, *, cases: Iterable[str] | None = None, systems: Iterable[str] | None = None
) -> dict[str, list[Dissection]]:
    """Stored dissections (of these case and system keys) by the name of their options."""
    tables = Trials(store)
    names = [n for n in tables.evaluators() if n.startswith(_PREFIX)]
    wanted = None if cases is None else list(cases)
    chosen = None if systems is None else list(systems)
    return {
        name: [
            Dissection.model_validate(t.log)
            for t in tables.trials(name, wanted, chosen)
            if t.status != _BROKEN_OFF
        ]
        for name in names
    }
