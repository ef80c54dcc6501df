"""agenteval verify: which criteria and which judge can be trusted, and why."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, clean, note, out, print_json, warn, warn_list
from agenteval.cli.ending import say_interrupted, why_stopped
from agenteval.cli.job import (
    Job,
    make_judge,
    make_limits,
    read_items,
    relabel,
    run_plan,
    say_plan,
    warn_of_versions,
)
from agenteval.cli.outputs import check_record, refuse_input
from agenteval.cli.verify_rounds import propose_next
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.cli.flags import Flags
    from agenteval.evaluators.utility.plan import Item
    from agenteval.evaluators.utility.probes.result import Probe, ProbeOptions
    from agenteval.evaluators.utility.verify.options import VerifyOptions
    from agenteval.records import CriteriaSet, Criterion, Task
    from agenteval.records.verification import VerifiedSet
    from agenteval.verification import Copies, Material

# Not read from the operators: to list them would load more than the help needs.
PERTURB_HELP = (
    "Perturbation, may be given often: drop_sentences, drop_words, drop_answer, drop_middle, "
    "truncate, shuffle_sentences, swap_numbers, pad, whitespace, formatting, paraphrase. "
    "Default: five of them, see docs/verify.md."
)


@dataclass(frozen=True)
class _How:
    """What is done with the runs, and what is done with the result."""

    operators: tuple[str, ...]
    share: float
    options: VerifyOptions
    output: Path | None
    gate: bool
    as_json: bool
    probes: bool = False
    rounds: int = 1
    attacked: int | None = None  # the most runs that get an attack

    @property
    def probing(self) -> ProbeOptions:
        from agenteval.evaluators.utility.probes.result import ProbeOptions

        return ProbeOptions.like(self.options, attacked=self.attacked)


def verify(
    runs: Annotated[
        str | None, typer.Argument(help="File, folder, glob in quotes, or - for stdin.")
    ] = None,
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None,
        typer.Option(help="Criteria file. Default: criteria/TASK.json, else the reviewed set."),
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Examine ratings made elsewhere (CSV or JSONL) instead.")
    ] = None,
    system: options.SystemName = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    store: options.StorePath = None,
    repeats: Annotated[int, typer.Option(help="How often each text is judged.", min=1)] = 2,
    perturb: Annotated[
        list[str] | None,
        typer.Option("--perturb", help=PERTURB_HELP),
    ] = None,
    drop: Annotated[
        float, typer.Option(help="Share of a text that a perturbation touches.", min=0.01, max=0.9)
    ] = 0.25,
    seed: options.Seed = 0,
    one_per_call: Annotated[
        bool, typer.Option("--one-per-call", help="One criterion per request: less halo, n × cost.")
    ] = False,
    temperature: options.Temperature = 1.0,
    limit: Annotated[int | None, typer.Option(help="Only the first N runs.", min=1)] = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Ask again where a reply was not in form.")
    ] = False,
    min_cases: Annotated[
        int, typer.Option(help="Below this many cases nothing is decided.", min=2)
    ] = 20,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic",
            help="The judge of --scores is a function: it needs no repeats to agree with itself.",
        ),
    ] = False,
    rounds: Annotated[
        int,
        typer.Option(help="Then drop, ask the critic for more criteria, and verify again.", min=1),
    ] = 1,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Where the criteria go, with what was found."),
    ] = None,
    probes: Annotated[
        bool,
        typer.Option(
            "--probes",
            help="Also ask in other ways and with attacks in the text: what sways the judge?",
        ),
    ] = False,
    attacked: Annotated[
        int | None,
        typer.Option(
            "--attacked", help="Most runs that --probes put an attack in. Default: 80.", min=1
        ),
    ] = None,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit 4 (not enough data) or 5 (not trustworthy).")
    ] = False,
    concurrency: options.Concurrency = 8,
    max_calls: options.MaxCalls = None,
    max_cost: options.MaxCost = None,
    price_in: options.PriceIn = None,
    price_out: options.PriceOut = None,
    timeout: options.Timeout = 120.0,
    record: options.Record = None,
    dry_run: options.DryRun = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Judge every run and perturbed copies of it; say which criteria and whether to trust."""
    from agenteval.evaluators.utility.verify.options import VerifyOptions

    Verbosity.level = -1 if quiet else Verbosity.level
    check_record(record, [criteria, scores, output], [runs], model, store=store)
    refuse_input(output, [runs, criteria, scores], store=store)
    thresholds = VerifyOptions(min_cases=min_cases, seed=seed, deterministic=deterministic)
    how = _How(
        tuple(perturb or ()), drop, thresholds, output, gate, as_json, probes, rounds, attacked,
    )  # fmt: skip
    if scores is not None:
        if probes:
            raise InputError("the probes ask a judge; ratings made elsewhere have none", "--probes")
        if runs is not None:
            raise InputError(
                "give runs to judge or ratings made elsewhere; texts may stand in a column `text`",
                "--scores",
            )
        raise typer.Exit(_elsewhere(scores, task, criteria, how))
    if runs is None:
        raise InputError("say which runs, or give ratings with --scores", "RUNS")
    if deterministic:
        raise InputError("is said of ratings made elsewhere (--scores)", "--deterministic")
    job = Job(
        runs, task, criteria, model, base_url, store, repeats, seed, one_per_call,
        None if temperature is None or temperature < 0 else temperature, False, limit,
        retry_failed, 1.0,
        make_limits(concurrency, max_calls, max_cost, price_in, price_out, timeout), record,
        system=system,
    )  # fmt: skip
    raise typer.Exit(_judge_and_verify(job, how, dry_run=dry_run))


def _elsewhere(scores: Path, task: str | None, criteria: Path | None, how: _How) -> int:
    """Verdicts on a file of ratings."""
    from agenteval.evaluators.utility.criteria_file import find_criteria, load_criteria
    from agenteval.evaluators.utility.verify.outside import verify_ratings
    from agenteval.readers.scores import read_scores
    from agenteval.records import Criterion

    path = criteria or (find_criteria(task) if task else None)
    known: tuple[Criterion, ...] = ()
    if path is not None:
        loaded = load_criteria(path, task=Path(task or "").name)
        warn_list("about the criteria:", loaded.notes)
        known = loaded.criteria.criteria
    table = read_scores(scores, known)
    if not known:
        # Values say how good; a scale of numbers is all that is known of such criteria.
        known = tuple(
            Criterion(id=name, name=name, scale="numeric", numeric_range=(0.0, 1.0))
            for name in table.present("criterion")
        )
    result = verify_ratings(scores, table, known, how.options)
    about = [f"{scores}: {len(table)} ratings of {len(table.present('run'))} runs"]
    if how.output is not None:
        _write(how.output, _marked(Path(task or "").name, known, result), None)
    return _show(result, known, about, how)


def _judge_and_verify(job: Job, how: _How, *, dry_run: bool) -> int:
    """All rounds; the criteria that are left, with their evidence, are written at the end."""
    from agenteval.evaluators.utility.criteria_file import find_criteria, load_criteria

    items, task = read_items(job)
    path = job.criteria or find_criteria(task.name)
    loaded = load_criteria(path, task=task.name)
    criteria = loaded.criteria.criteria
    note(f"criteria: {path} ({len(criteria)})")
    warn_list("about the criteria:", loaded.notes)
    if dry_run:
        from agenteval.cli import bills, dry

        material = _material(job, how, items, criteria)
        probing = how.probing if how.probes else None
        dry.show(bills.verify(job, task, material, probing, how.rounds), as_json=how.as_json)
        return 0
    seen: list[Criterion] = []
    for number in range(1, how.rounds + 1):
        code, result, probed = _round(job, how, task, _material(job, how, items, criteria))
        if result is None:
            return code
        output = how.output or Path("criteria") / f"{task.name}.verified.json"
        marked = _marked(loaded.criteria.task or task.name, criteria, result)
        _write(output, marked, probed if how.probes else None)
        if number == how.rounds:
            break
        try:
            found = propose_next(job, task, (criteria, result), seen, number)
        except KeyboardInterrupt:
            return say_interrupted()
        if not found.new:
            note("nothing new was proposed: the rounds end here")
            break
        seen += criteria
        criteria = found.criteria
    return code


def _material(job: Job, how: _How, items: list[Item], criteria: tuple[Criterion, ...]) -> Material:
    from agenteval.verification import DEFAULT_OPERATORS, Material

    copies = _copies(items, how.operators or DEFAULT_OPERATORS, criteria, how, job.seed)
    return Material(tuple(items), tuple(copies), criteria, job.repeats)


def _round(
    job: Job, how: _How, task: Task, material: Material
) -> tuple[int, VerifiedSet | None, tuple[Probe, ...]]:
    """Judge and verify once: the exit code, the result unless it had to stop, and the probes."""
    from agenteval.cli.flags import flags_of
    from agenteval.cli.probes import run_probes
    from agenteval.evaluators.utility.plan import experiment_of
    from agenteval.store import Store, default_path
    from agenteval.verification import plan_verification, verify_stored

    with Store(job.store or default_path()) as store:
        warn_of_versions(store, list(material.items))
        evaluator, client = make_judge(job, task, store)
        with store.lock(experiment_of(evaluator, task.name)):
            relabel(store, material.criteria)
            plan = plan_verification(evaluator, material, store, retry_failed=job.retry_failed)
            say_plan(plan)
            ended = run_plan(plan, client, store, job)
        if ended is None:
            return say_interrupted(), None, ()
        if ended.stopped:
            warn(why_stopped(ended, "calls not made"))
            return 3, None, ()
        with store.snapshot():
            result = verify_stored(store, evaluator.source.sha256, material, how.options)
        probed = (
            run_probes(job, task, store, evaluator, material, how.probing) if how.probes else ()
        )
    source = evaluator.source
    about = [
        f"{source.model} ({source.evaluator}, seed {job.seed}): {len(material.items)} runs and "
        f"{material.texts - len(material.items)} perturbed copies × {job.repeats} repeats"
    ]
    flags = flags_of(material.items)
    return _show(result, material.criteria, about, how, probed, flags), result, probed


def _copies(
    items: list[Item], operators: tuple[str, ...], criteria: tuple[Criterion, ...], how: _How,
    seed: int,
) -> list[Copies]:  # fmt: skip
    """Copies, and a word on those that equal their original and on what nobody expects."""
    from agenteval.verification import make_copies

    copies = make_copies(items, operators, share=how.share, seed=seed)
    warn_unchanged(copies, len(items))
    if not any(c.expect for c in criteria):
        warn("no criterion says what a perturbation should do (`expect`): only controls are judged")
    return copies


def warn_unchanged(copies: list[Copies], runs: int) -> None:
    """Name the operators that left some of the runs as they were."""
    for one in copies:
        if one.unchanged:
            reason = next(iter(one.unchanged.values()))
            warn(
                f"{one.variant}: {len(one.unchanged)} of {runs} copies equal their original "
                f"and are left out (e.g. {reason})"
            )


def _show(
    result: VerifiedSet, criteria: tuple[Criterion, ...], about: list[str], how: _How,
    probes: tuple[Probe, ...] = (), flags: Flags | None = None,
) -> int:  # fmt: skip
    from agenteval.cli.flags import printed
    from agenteval.cli.probes import print_probes, probes_json
    from agenteval.cli.verify_table import print_verified, verified_json

    if how.as_json:
        more = {"probes": probes_json(probes)} if how.probes else {}
        if flags is not None:
            more["flagged"] = flags.json()
        print_json(verified_json(result, {"about": about, **more}))
    else:
        print_verified(result, {c.id: c.name for c in criteria}, about)
        if how.probes:
            print_probes(probes)
        if flags is not None and flags.found:
            out().print(printed(flags))
    codes = {"trustworthy": 0, "not enough data": 4, "not trustworthy": 5}
    return codes[result.judge.verdict] if how.gate else 0


def _marked(task: str, criteria: tuple[Criterion, ...], result: VerifiedSet) -> CriteriaSet:
    """The criteria with what was found; those to be dropped stay in, for a person to cut."""
    from agenteval.records import CriteriaSet

    found = {v.criterion_id: v.model_dump(mode="json", exclude_none=True) for v in result.criteria}
    marked = tuple(
        c.model_copy(update={"verification": found[c.id]}) if c.id in found else c for c in criteria
    )
    return CriteriaSet(task=task, criteria=marked)


def _write(path: Path, marked: CriteriaSet, probes: tuple[Probe, ...] | None) -> None:
    """The file of criteria; what probes found of the judge stands behind them."""
    from agenteval.cli.probes import probes_json
    from agenteval.evaluators.utility.criteria_file import save_criteria

    save_criteria(path, marked, more={} if probes is None else {"probes": [*probes_json(probes)]})
    note(f"written to {clean(str(path))}: every criterion with its verdict and evidence")
