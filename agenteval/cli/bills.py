"""What each command would ask with --dry-run: its own units, rehearsed. Nobody is asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.cli.dry import planned_store
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.rehearsal import REPAIR, Amount, Bill, Part, Rehearsal
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.agents import System
    from agenteval.assemble import Limits
    from agenteval.cli.flow_job import Campaign, FlowJob
    from agenteval.cli.flow_stage import Stage
    from agenteval.cli.job import Job
    from agenteval.cli.plan_job import PlanJob
    from agenteval.cli.trace_job import LocateJob
    from agenteval.evaluators.base import Evaluator
    from agenteval.evaluators.planning.case import Case
    from agenteval.evaluators.planning.dissect import DissectOptions
    from agenteval.evaluators.utility.probes.result import ProbeOptions
    from agenteval.evaluators.workflows.results import Level
    from agenteval.evaluators.workflows.verdicts import Verdicts
    from agenteval.flows import Candidate, Work
    from agenteval.locating import TraceCase
    from agenteval.models.factory import ModelChoice
    from agenteval.pipeline import Item, Plan
    from agenteval.plan import Units
    from agenteval.proposals import CriticOptions
    from agenteval.records import Criterion, Task
    from agenteval.store import Store
    from agenteval.verification import Material

_RECORDED = "the replies come from a recording: no endpoint is asked, nothing is paid"
_LOCAL = "all of it is computed on this machine: no requests, no cost"
_UNREADABLE = "one more for a reply that cannot be read"
_OUT_OF_FORM = "one more for a reply out of form"
_FROM_BANK = 12  # entries that a critic is shown
_REPLY_TO_CRITERION = 60  # tokens: an explanation of one or two sentences and a label


def _notes(choice: ModelChoice) -> tuple[str, ...]:
    return (_RECORDED,) if choice.provider == "replay" else ()


# -- judges ----------------------------------------------------------------------------------------


def quantify(job: Job, items: Sequence[Item], task: Task, criteria: Sequence[Criterion]) -> Bill:
    """What `quantify` would ask. Raises InputError for a model that cannot be chosen, and for a
    cap without a price."""
    from agenteval.models.factory import choose_model
    from agenteval.pipeline import make_plan

    choice = choose_model(job.model, job.base_url, need_key=False)
    budget = job.limits.budget()
    cells = len(items) * len(criteria) * job.repeats
    about = [
        f"runs: {len(items)} of task {task.name}",
        f"reference answers: {'shown to the judge' if job.with_reference else 'withheld'}",
        f"criteria: {len(criteria)} ({', '.join(c.name for c in criteria)})",
        f"cells: {plural(len(items), 'run')} × {plural(len(criteria), 'criterion')} × "
        f"{plural(job.repeats, 'repeat')} = {cells:,}",
    ]
    if choice.kind == "embedded":
        about.append(f"calls: {len(items) * job.repeats} at most; {_LOCAL}")
        return Bill("quantify", tuple(about), (), budget)
    with planned_store(job.store) as store:
        judge = _judge(job, choice, task, store)
        plan = make_plan(
            judge, items, criteria, store, repeats=job.repeats, retry_failed=job.retry_failed
        )
        about.append(_stored(plan))
        part = _judged(judge, plan.units)
        budget = job.limits.budget(store.usage(judge.source.sha256))
    return Bill("quantify", tuple(about), (part,), budget, _notes(choice))


def _judge(
    job: Job, choice: ModelChoice, task: Task, store: Store | None, **change: Any
) -> Evaluator:
    """The judge of a command, asked in another way by `change`."""
    from agenteval.assemble import JudgeOptions, chat_judge, make_client

    options = JudgeOptions(
        job.one_per_call, job.temperature, seed=job.seed, datamark=job.datamark, **change
    )
    return chat_judge(make_client(choice, job.limits, store), task, options)


def _judged(judge: Evaluator, units: Units, part: Part | None = None) -> Part:
    """The calls of a judge, counted in `part`."""
    from agenteval.evaluators import base

    part = part or Part(
        "judge",
        "one request for each call that is not stored; a reply that cannot be read is asked for "
        "once more",
    )
    part.rehearse(
        units, lambda unit: base.judge(judge, unit), count=len(units),
        reply=lambda unit: _REPLY_TO_CRITERION * len(unit.criteria),
    )  # fmt: skip
    return part


def _stored(plan: Plan) -> str:
    return f"stored already: {plan.done} scored, {plan.failed} failed; calls: {len(plan.units)}"


def verify(
    job: Job, task: Task, material: Material, options: ProbeOptions | None, rounds: int = 1
) -> Bill:
    """What `verify` would ask; without `options` nothing is probed. Raises InputError for a model
    that cannot be chosen."""
    from agenteval.evaluators.utility.probes.targets import most_targets
    from agenteval.models.factory import choose_model
    from agenteval.verification import plan_verification

    choice = choose_model(job.model, job.base_url, need_key=False)
    budget = job.limits.budget()
    texts, originals = material.texts, len(material.items)
    about = [
        f"texts: {originals} originals and {texts - originals} perturbed copies",
        f"cells: {plural(texts, 'text')} × {plural(len(material.criteria), 'criterion')} × "
        f"{plural(job.repeats, 'repeat')} = {texts * len(material.criteria) * job.repeats:,}",
    ]
    attacked = most_targets([run for run, _ in material.items], options) if options else 0
    if choice.kind == "embedded":
        about.append(f"calls: {texts * job.repeats} at most; {_LOCAL}")
        if options is not None:
            added = 2 * attacked * material.repeats
            about += [
                f"probes: {added} calls more at most, on this machine",
                "  scale order and wording do not apply to this judge",
                f"  {added} with text added: {_added(attacked, material.repeats)}",
            ]
        if rounds > 1:
            about.append(f"rounds: {rounds}, each on all texts; the critic retrieves from the bank")
        return Bill("verify", tuple(about), (), budget)
    notes = _notes(choice)
    with planned_store(job.store) as store:
        judge = _judge(job, choice, task, store)
        plan = plan_verification(judge, material, store, retry_failed=job.retry_failed)
        about.append(_stored(plan))
        parts = [_judged(judge, plan.units)]
        if options is not None:
            asking = (job, choice, task, store, material)
            parts.append(_other_ways(*asking))
            parts.append(_attacks(*asking, options, None if len(plan.units) else judge))
        if rounds > 1:
            parts += _further_rounds(job, choice, task, store, material, rounds, attacked)
            notes += (
                "each further round asks with caps as given: that on calls and that on cost hold "
                "for the judge in all rounds together, and for the critics of each round anew",
                "the embedder that compares their proposals is computed on this machine",
            )
        budget = job.limits.budget(store.usage(judge.source.sha256))
    return Bill("verify", tuple(about), parts, budget, notes)


def _added(runs: int, repeats: int) -> str:
    return f"an attack and a control in {plural(runs, 'run')} × {plural(repeats, 'repeat')}"


def _other_ways(
    job: Job, choice: ModelChoice, task: Task, store: Store, material: Material
) -> Part:
    """What is missing of the originals asked in every other way."""
    from agenteval.cli.probe_asking import OTHER_WAYS, Asking

    part = Part(
        "probes, other ways",
        f"{plural(len(material.items), 'original')} × {plural(material.repeats, 'repeat')} × "
        f"{len(OTHER_WAYS)} ways, less what is stored; {_UNREADABLE}",
    )
    for change in OTHER_WAYS.values():
        judge = _judge(job, choice, task, store, **change)
        _judged(judge, Asking(job, task, store, judge, material).way_plan(judge).units, part)
    return part


def _attacks(
    job: Job, choice: ModelChoice, task: Task, store: Store, material: Material,
    options: ProbeOptions, rated: Evaluator | None,
) -> Part:  # fmt: skip
    """Calls with an attack or a control. The plain ratings of the judge `rated` choose the runs:
    while some are missing (None), the longest that could be chosen count, and nothing is certain.
    """
    from agenteval.cli.probe_asking import Asking, attack_plan
    from agenteval.evaluators import base
    from agenteval.evaluators.utility.probes.targets import (
        Probing,
        choose_targets,
        longest_copies,
        most_targets,
    )

    who = "probes, text added"
    if rated is not None:
        asking = Asking(job, task, store, rated, material)
        table = asking.table(rated.source.sha256, copies=True)
        targets = choose_targets(material.items, material.criteria, table, options)
        why = f"{_added(len(targets), material.repeats)}, less what is stored; {_UNREADABLE}"
        if not targets:
            return Part(who, why)
        plan, _ = attack_plan(asking, Probing(rated), targets, options)
        return _judged(rated, plan.units, Part(who, why))
    runs = most_targets([run for run, _ in material.items], options)
    part = Part(
        who,
        f"{_added(runs, material.repeats)} at most: the ratings of the originals choose the runs; "
        f"{_UNREADABLE}",
    )
    judge = _judge(job, choice, task, None)  # a run that is rated already may be chosen as well
    with Rehearsal() as rehearsal:
        for run, view in longest_copies(material.items, material.criteria, options):
            for batch in judge.batches(material.criteria):
                drafts = rehearsal.first(base.judge(judge, base.Unit(run, view, batch)))
                part.ask(drafts, certain=0, times=2 * material.repeats)
    return part


def _further_rounds(
    job: Job, choice: ModelChoice, task: Task, store: Store, material: Material, rounds: int,
    attacked: int,
) -> Iterator[Part]:  # fmt: skip
    """What further rounds ask: critics, and the judge on what they propose; `attacked` runs are
    probed at most, 0 where nothing is.

    Only the critics of the second round are certain: where they say nothing new, that is the
    end. No round has more new criteria than critics can propose.
    """
    from agenteval.cli.probe_asking import OTHER_WAYS
    from agenteval.cli.verify_rounds import SEEDS
    from agenteval.evaluators.utility.proposed import MOST
    from agenteval.proposals import CriticOptions
    from agenteval.readers import degenerate

    items = [*material.items, *(item for one in material.copies for item in one.items)]
    texts = sum(degenerate(run) is None for run, _ in items)
    calls = 0
    for number in range(1, rounds):
        seeds = tuple(range(number * SEEDS, (number + 1) * SEEDS))
        wanted = CriticOptions(seeds, use_examples=bool(task.examples), consolidate=False)
        parts, _ = _critics(choice, wanted, task, store)
        for part in parts:
            part.who += f" for round {number + 1}"
            part.why += "; they end the rounds where they propose nothing new"
            part.budget = f"round {number}"
            if number > 1:
                part.least = Amount()
            yield part
        new, known = SEEDS * MOST, len(material.criteria) + SEEDS * MOST * (number - 1)
        # what failed before is asked again, in calls of their own for each number of attempts
        again = (known if job.one_per_call else number) if job.retry_failed else 0
        each = (new if job.one_per_call else 1) + again
        ways = len(OTHER_WAYS) * len(material.items) if attacked else 0
        added = 2 * attacked * (known + new if job.one_per_call else 1)
        calls += ((texts + ways) * each + added) * material.repeats
    why = (
        "all texts on the criteria that are new, and probes where asked for; none where nothing "
        f"new is proposed; {_UNREADABLE}"
    )
    yield Part("judge, further rounds", why, most=Amount(2 * calls, None, None))


# -- critics ---------------------------------------------------------------------------------------


def criteria(
    choice: ModelChoice, wanted: CriticOptions, task: Task, limits: Limits, path: Path
) -> Bill:
    """What `criteria` would ask. Raises InputError for a cap without a price."""
    mode = "solution-based" if wanted.use_examples else "task-based"
    about = f"task: {task.name}, {mode}; seeds: {len(wanted.seeds)}"
    if choice.kind == "embedded":
        how = f"the embedded critic retrieves from the bank; {_LOCAL}"
        return Bill("criteria", (about, how), (), limits.budget())
    with planned_store(path) as store:
        # what is shown of the bank is chosen by an embedder, so those requests are not known here
        unseen = wanted.bank and store.path == path
        parts, stored = _critics(choice, wanted, task, None if wanted.bank else store)
    if unseen:
        parts = [replace(part, least=Amount()) for part in parts]
        parts[0].why += "; none where all are stored: what is shown of the bank is known only " \
            "when it is ranked"  # fmt: skip
    if stored:
        about += f"; replies of {stored} critics are stored already"
    notes = _notes(choice)
    if wanted.asks_the_same:
        parts.append(_consolidation(choice, wanted, task, limits))
    if (wanted.embedder or "").startswith("endpoint:"):
        parts += _embeddings(wanted, task)
        notes += (
            "embeddings are asked beside the budget: no cap holds for them, and no price is known",
        )
    return Bill("criteria", (about,), parts, limits.budget(), notes)


def _critics(
    choice: ModelChoice, wanted: CriticOptions, task: Task, store: Store | None
) -> tuple[list[Part], int]:
    """What critics and sub-critics are asked, and how many critics' replies are stored.

    A reply counts as long as it may be, and so does the list of criteria that a sub-critic is
    shown; of the bank its longest entries count.
    """
    from agenteval.assemble import Limits, make_client
    from agenteval.evaluators.utility.bank import load_bank
    from agenteval.evaluators.utility.critic import Critic

    client = make_client(choice, Limits(), store)
    entries = (concept.criterion(0) for concept in load_bank())
    longest = sorted(entries, key=lambda c: -len(c.model_dump_json()))[:_FROM_BANK]
    critic = Critic(
        client, task, use_examples=wanted.use_examples, temperature=wanted.temperature,
        bank=longest if wanted.bank else (), sub_criteria=wanted.sub_criteria,
    )  # fmt: skip
    first = Part(
        "critics", "one request for each seed; a reply that cannot be read is asked for once more"
    )
    parts = Part(
        "sub-critics",
        "one for each seed whose criteria could be read, and one more if it cannot be read",
    )
    orders = Part(
        "orders of levels", "one for each seed whose criteria leave open which level is the best"
    )
    stored = 0
    with Rehearsal() as rehearsal:
        for seed in wanted.seeds:
            drafts = rehearsal.first(critic.propose(seed))
            role = drafts[0].request.role.removesuffix(":repair") if drafts else ""
            stored += not drafts or drafts[0].request.role != "critic"
            listed = client.draft(critic.request(seed)).reply
            order = client.draft(critic.order_request((), seed))
            if role == "critic:order":
                orders.ask(drafts, most=1)
            elif role == "subcritic":
                parts.ask(drafts)
                orders.ask([order], certain=0, most=1, longer=listed)
            elif role:
                first.ask(drafts)
                if critic.subcritic is not None:
                    # the shortest list is one criterion: the prompt without any counts
                    divide = client.draft(critic.subcritic.request((), seed))
                    parts.ask([divide], longer=listed)
                orders.ask([order], certain=0, most=1, longer=listed)
    return [first, *([parts] if wanted.sub_criteria else []), orders], stored


def _consolidation(choice: ModelChoice, wanted: CriticOptions, task: Task, limits: Limits) -> Part:
    """The requests that ask which names are the same, of which none is certain: there may be one
    name only, or a stored reply. All that is shown is no longer than the critics' replies."""
    from agenteval.assemble import make_client
    from agenteval.evaluators.utility.consolidate import ENTRIES, Consolidator, most_questions
    from agenteval.evaluators.utility.critic import sampling
    from agenteval.evaluators.utility.proposed import MOST

    client = make_client(choice, limits, None)
    draft = client.draft(Consolidator(client, task, temperature=wanted.temperature).request(()))
    part = Part(
        "consolidation",
        f"one request for up to {ENTRIES} names, which says which are the same; none for a single "
        "name or a stored reply; one more if it cannot be read",
    )
    shown = len(wanted.seeds) * int(sampling(0, None)["max_tokens"])
    questions = most_questions(len(wanted.seeds) * MOST)
    part.ask([draft], certain=0, times=questions, longer=shown)
    return part


def _embeddings(wanted: CriticOptions, task: Task) -> list[Part]:
    """Requests for embeddings: of the names and descriptions, and to rank the bank."""
    from agenteval.evaluators.utility.bank import load_bank
    from agenteval.evaluators.utility.proposed import DESCRIPTION, MOST, NAME
    from agenteval.models.embeddings import BATCH

    if wanted.tau == 1 and not wanted.bank:
        return []
    proposed = 0 if wanted.tau == 1 else len(wanted.seeds) * MOST
    bank = {f"{name}: {text}" for c in load_bank() for name, text in c.phrasings}
    ranked = {f"{task.name}: {task.description}", *bank} if wanted.bank else set()
    requests, tokens = -(-len(ranked) // BATCH), sum(len(text.encode()) for text in ranked) // 3
    return [Part(
        "embeddings",
        f"names and descriptions of the criteria, up to {BATCH} in a request"
        + ("; and the bank, to be ranked" if ranked else ""),
        Amount(requests + bool(proposed), tokens),
        Amount(requests + -(-2 * proposed // BATCH), tokens + proposed * (NAME + DESCRIPTION)),
        budget=None, priced=False,
    )]  # fmt: skip


# -- agents ----------------------------------------------------------------------------------------


def plan_test(job: PlanJob, cases: Sequence[Case]) -> Bill:
    """What `plan test` would ask, from what is stored."""
    from agenteval.campaign import open_trials
    from agenteval.cli import plan_job

    system = plan_job.make_system(job)
    with planned_store(job.store) as store:
        work = open_trials(store, cases, system, job.trials, retry_failed=job.retry_failed)
        trials = Counter(case.sha256 for case, _ in work)
        part = _trials(job, system, cases, trials, trials)
        return _planning("plan test", job, system, store, _of_cases(system, cases, len(work)), part)


def capability(job: PlanJob, suites: Mapping[int, Sequence[Case]], threshold: float) -> Bill:
    """What `plan capability` would ask. It goes on to more actions as long as enough pass: certain
    is the first number of actions that is not stored whole."""
    from agenteval.campaign import load_attempts, open_trials
    from agenteval.cli import plan_job
    from agenteval.evaluators.planning.capability import goes_on

    system = plan_job.make_system(job)
    reached: list[Case] = []
    certain: Counter[str] = Counter()
    possible: Counter[str] = Counter()
    with planned_store(job.store) as store:
        for suite in suites.values():
            work = open_trials(store, suite, system, job.trials)
            reached += suite
            possible.update(case.sha256 for case, _ in work)
            if work:
                certain = certain or possible.copy()
            elif not certain:  # the stored trials decide whether the next number is reached
                keys = [case.sha256 for case in suite]
                stored = load_attempts(store, job.rules.check, cases=keys, systems=[system.sha256])
                judged = [a.verdict for a in stored if a.trial < job.trials and a.verdict]
                if not judged or not goes_on(
                    sum(v.passed for v in judged) / len(judged), threshold
                ):
                    break
        about = _of_cases(system, reached, possible.total())
        about.append(f"trials that are certain: {certain.total()}")
        part = _trials(job, system, reached, certain, possible)
        return _planning("plan capability", job, system, store, about, part)


def dissect(job: PlanJob, store: Store, failed: Sequence[Case], how: DissectOptions) -> Bill:
    """What `plan dissect` would ask of these failed cases."""
    from agenteval.cli import plan_job
    from agenteval.dissections import open_dissections

    system = plan_job.make_system(job)
    work = open_dissections(store, failed, system, how)
    least, every, most = how.runs
    about = [
        f"agent: {system.name}",
        f"failed cases: {len(failed)}, of them to dissect: {len(work)}",
        f"runs of the agent for each: at least {least}, at most {most}",
    ]
    part = _trials(
        job, system, work, dict.fromkeys((case.sha256 for case in work), least),
        dict.fromkeys((case.sha256 for case in work), most),
    )  # fmt: skip
    part.why = (
        f"{least} runs of each case at least; at most {every}, where no stage before the last "
        f"succeeds, each with up to {how.retries} more without a verdict; a run is up to one "
        "request more than --turns"
    )
    return _planning("plan dissect", job, system, store, about, part)


def _of_cases(system: System, cases: Sequence[Case], trials: int) -> list[str]:
    sizes = Counter(case.n for case in cases)
    return [
        f"agent: {system.name}",
        f"cases: {len(cases)}; trials to run: {trials}",
        "cases by actions: " + ", ".join(f"{n}: {k}" for n, k in sorted(sizes.items())),
    ]


def _trials(
    job: PlanJob, system: System, cases: Sequence[Case], certain: Mapping[str, int],
    possible: Mapping[str, int],
) -> Part:  # fmt: skip
    """Trials by the key of their case: those that are certain, and all that there may be."""
    from agenteval.evaluators.planning.run import run_case

    part = Part(
        "agent",
        "a trial is one request at least, usually one for each call and one for the last words, at "
        "most one more than --turns",
        likely=Amount(),
    )
    if _uncounted(system.parameters):
        return part
    with Rehearsal() as rehearsal:
        for case in cases:
            if number := possible.get(case.sha256, 0):
                work = run_case(case, system.make(), job.rules.limits, job.rules.check)
                part.talk(
                    rehearsal.first(work)[0], usual=case.n + 1, most=job.rules.limits.turns + 1,
                    certain=certain.get(case.sha256, 0), times=number,
                )  # fmt: skip
    return part


def _uncounted(parameters: Mapping[str, Any]) -> tuple[str, ...]:
    """Why nothing can be said of an agent that is no model here; empty for one that is."""
    adapter = parameters.get("adapter")
    if adapter == "scripted":
        return ("the agent is a script: it asks nobody",)
    if adapter in ("python", "command", "mcp"):
        return ("the agent spends whatever it spends itself; none of it is counted here",)
    return ()


def _planning(
    command: str, job: PlanJob, system: System, store: Store, about: Sequence[str], part: Part
) -> Bill:
    from agenteval.cli import plan_job

    notes = _uncounted(system.parameters)
    budget = job.limits.budget(plan_job.spent(store, system.sha256))
    return Bill(command, tuple(about), () if notes else (part,), budget, notes)


# -- traces ----------------------------------------------------------------------------------------


def locate(job: LocateJob, cases: Sequence[TraceCase]) -> Bill:
    """What `trace locate` would ask; nothing is asked, nothing is written."""
    from agenteval.cli.trace_job import make_finder
    from agenteval.finders import LocatorFinder
    from agenteval.locating import EVALUATOR, attempts_of, finder_key, open_traces
    from agenteval.store import Trials

    with planned_store(job.store) as store:
        finder, _ = make_finder(job, store)
        key, tables = finder_key(finder), Trials(store)
        work = open_traces(store, cases, finder, retry_failed=job.retry_failed)
        about = [
            f"finder: {finder.name}",
            f"traces: {len(cases)}, of them to examine: {len(work)}",
        ]
        if not isinstance(finder, LocatorFinder):
            about.append(f"rules; {_LOCAL}")
            return Bill("trace locate", tuple(about), (), job.limits.budget())
        part = Part(
            "judge",
            "one request for each part of a trace, question and repeat, and one for the grades; "
            "one more for a reply out of form; a part that the endpoint calls too long is halved, "
            "which is not counted",
        )
        attempts = attempts_of(tables, key, [case.key for case in work])
        before = after = 0
        with Rehearsal() as rehearsal:
            for case in work:
                run = case.load()
                condensed, plan = finder.planned(run)
                before += condensed.source_tokens
                after += condensed.tokens
                drafts = rehearsal.first(finder.find(run, attempts.get(case.key, 0)))
                stored = rehearsal.answered
                part.least += (
                    Amount(len(drafts[:1]), sum(d.prompt for d in drafts[:1]), None)
                    if stored
                    else Amount(plan.requests, plan.prompt_tokens - plan.grades_tokens, None)
                )
                repair = plan.requests * REPAIR
                part.most += Amount(
                    MOST_REQUESTS * plan.requests - stored,
                    MOST_REQUESTS * plan.prompt_tokens + repair, MOST_REQUESTS * plan.reply_tokens,
                )  # fmt: skip
        options = finder.locator.options
        part.largest = 3 * (options.context - options.reply_tokens), options.reply_tokens
        share = f" ({after / before:.1%})" if before else ""
        about.append(f"condensed: {before:,} tokens to {after:,}{share}")
        budget = job.limits.budget(tables.usage(EVALUATOR, key))
    return Bill("trace locate", tuple(about), (part,), budget)


# -- workflows -------------------------------------------------------------------------------------

_EXCHANGE = (
    1734  # tokens: 1,200 characters of a user's words, and as much of a reply as it is shown
)


def flow(job: FlowJob, campaign: Campaign, stage: Stage | None = None) -> Bill:
    """What `flow session` would ask on this stage, and `flow turn` without one."""
    from agenteval.cli.flow_agents import candidate
    from agenteval.cli.flow_job import chat_client, plan_of
    from agenteval.evaluators.workflows.verdicts import Judges, Verdicts
    from agenteval.flows import open_work, spent

    about: list[str] = []
    keys: list[str] = []
    agent = Part(
        "agent",
        "one request for each turn" if stage is None else
        "one for each reply to the user and each call: once a session at least, at most as many as "
        "--turns and --calls allow",
        likely=Amount(),
    )  # fmt: skip
    notes: tuple[str, ...] = ()
    works: list[Work] = []
    with planned_store(job.store) as store:
        choice = job.judging()
        client = None if choice is None else chat_client(choice, job.limits, store)
        judges = Judges() if client is None else Judges.on(client)
        for format in job.formats:
            one = candidate(job, format, campaign.conditions)
            keys.append(one.sha256)
            work = open_work(
                store, campaign.level, campaign.cases, one, job.trials,
                check_key=judges.key, retry_failed=job.retry_failed,
            )  # fmt: skip
            about.append(f"{one.name}: {plan_of(job, campaign, work)}")
            works += work
            notes = _uncounted(one.assistant.parameters)
            if not notes:
                _agent(agent, one, [w.case for w in work if w.stored is None], stage)
        parts = [] if notes else [agent]
        if stage is not None:
            parts += _simulators(stage, [w for w in works if w.stored is None], store)
        if client is not None:
            parts += _judges(Verdicts(judges), campaign.level, works, stage, store)
        budget = job.limits.budget(spent(store, campaign.level, keys))
    parts = [part for part in parts if part is agent or part.most.requests]
    if budget.price is not None and len(parts) > 1:
        notes = (*notes, "one price is taken for all models that are asked")
    return Bill(f"flow {campaign.level}", tuple(about), parts, budget, notes)


def _agent(part: Part, one: Candidate, cases: Sequence[Any], stage: Stage | None) -> None:
    """Count the agent's part in each case: a single turn, or the first words of a session."""
    from agenteval.agents import Toolbox
    from agenteval.agents.dialogue import Dialogue, take_turn
    from agenteval.evaluators.workflows.instructions import instructions, tools_given
    from agenteval.evaluators.workflows.predict import predict
    from agenteval.records import Message

    with Rehearsal() as rehearsal:
        for case in cases:
            role = case.of.role
            if stage is None:
                work: Any = predict(role, case.session, case.index, one.assistant, one.format)
                usual, most = 1, 1
            else:
                given = role.given(case.profile.scenarios)
                opening = Message(role="user", content=case.profile.opening)
                dialogue = Dialogue(
                    instructions=instructions(role, given, one.format), messages=(opening,)
                )
                tools = Toolbox(tools_given(role, given, one.format), lambda *_: "")
                work = take_turn(one.assistant.make(), dialogue, tools)
                usual, most = stage.replies(case)
            part.talk(rehearsal.first(work)[0], usual=usual, most=most)


def _simulators(stage: Stage, work: Sequence[Work], store: Store) -> Iterator[Part]:
    """The simulated user speaks before every reply and once after the last; tools on a model are
    asked for every call, each as long as the longest there can be."""
    from agenteval.evaluators.workflows.simulators.nouns import Heard
    from agenteval.evaluators.workflows.simulators.tool_model import ToolModel
    from agenteval.evaluators.workflows.simulators.user_model import UserOnModel

    sessions, client = stage.sessions(store, None)
    if client is None:
        return
    settings, user = sessions.settings, sessions.user
    if isinstance(user, UserOnModel):
        part = Part(
            "simulated user",
            "it speaks before each reply of the agent and once after the last, 2 times at least; "
            f"words that cannot stand are asked for up to {user.most_requests - 1} times more",
        )
        with Rehearsal() as rehearsal:
            for one in work:
                profile, turns = one.case.profile, settings.turn_limit(one.case.profile)
                heard = Heard(profile, one.case.of.role.now, seed=settings.seed, repeat=one.number)
                drafts = rehearsal.first(user.speak(heard))
                opening = client.draft(user.request(heard))
                # its first words in a session are the same for every agent and format
                certain = 2 if [d.key for d in drafts] == [opening.key] else len(drafts)
                part.ask(
                    [opening], certain=certain, times=turns + 1, most=user.most_requests,
                    longer=turns * _EXCHANGE,
                )  # fmt: skip
        yield part
    if stage.asks_tools:
        part = Part(
            "simulated tools",
            f"one request for each call that the agent makes ({stage.calls} in a session at most); "
            f"{_OUT_OF_FORM}",
        )
        for case in (one.case for one in work if one.case.of.backend is None):
            model = ToolModel(client, case.of.role, 0, 0)
            tools = case.of.role.tools_of(case.profile.scenarios)
            drafts = [client.draft(model.longest(tool)) for tool in tools]
            longest = sorted(drafts, key=lambda draft: draft.prompt)[-1:]
            part.ask(longest, certain=0, times=stage.calls)
        yield part


def _judges(
    verdicts: Verdicts, level: Level, work: Sequence[Work], stage: Stage | None, store: Store
) -> Iterator[Part]:
    """What judges are asked: for the verdict on what is stored, the very questions; of what is to
    come all but the words."""
    from agenteval.evaluators.workflows.session import Prediction, SessionLog
    from agenteval.evaluators.workflows.verdicts import most_pairs
    from agenteval.flows import EVALUATORS
    from agenteval.store import Trials

    parts = {
        "flow:session_judge": Part(
            "judge of sessions",
            "one request for each session, none where the same conversation was judged before; "
            f"{_OUT_OF_FORM}",
        ),
        "flow:response": Part(
            "judge of replies",
            "one request for each reply that the agent gives where a reply was due; "
            f"{_OUT_OF_FORM}",
        ),
        "flow:equal": Part(
            "judge of values",
            "one request for each pair of values that differ in words: none where the agent says "
            f"what is due word for word; {_OUT_OF_FORM}",
        ),
    }
    new = {one.case.key for one in work if one.stored is None}
    # sessions of others are stored: their conversations may come again
    held = {t.case_key for t in Trials(store).trials(EVALUATORS[level], new) if t.status == "done"}
    with Rehearsal() as rehearsal:
        for one in work:
            case: Any = one.case
            log = None if one.stored is None else one.stored.log
            certain = True
            if stage is not None:
                if log is None:
                    certain = case.key not in held
                    calls, log = stage.calls, {"ended": "user", "turns": 0, "seconds": 0}
                asked: Any = verdicts.session(case, SessionLog.model_validate(log))
            else:
                if log is None:
                    certain, calls = False, 1
                    log = {"form": "reply", "response": case.turn.text, "seconds": 0}
                asked = verdicts.turn(case, Prediction.model_validate(log))
            longer = 0 if one.stored else None
            for draft in rehearsal.first(asked):
                who = draft.request.role.removesuffix(":repair")
                parts[who].ask([draft], certain=certain, longer=longer)
            if one.stored is None:
                pairs = MOST_REQUESTS * calls * most_pairs(case)
                parts["flow:equal"].most += Amount(pairs, None, None)
    yield from parts.values()
