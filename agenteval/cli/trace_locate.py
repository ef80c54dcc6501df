"""agenteval trace locate: find errors in traces, by rules or by a judge, resumable."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from agenteval.cli import options, trace_job
from agenteval.cli.console import Verbosity, note, out, print_json, warn
from agenteval.cli.ending import say_interrupted
from agenteval.cli.flags import Flags, printed, trace_flags
from agenteval.cli.outputs import check_record, refuse_input
from agenteval.cli.trace_files import Paths, TaxonomyFile, read_cases, read_taxonomy
from agenteval.cli.trace_job import LocateJob
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.traces.trials import Stored, TraceCase
    from agenteval.experiment import Ended


class Mode(StrEnum):
    """How the kinds of errors are asked for."""

    areas = "areas"
    broad = "broad"


def locate(
    paths: Paths,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    detectors_only: Annotated[
        bool, typer.Option("--detectors-only", help="Rules alone, without a model.")
    ] = False,
    taxonomy: TaxonomyFile = None,
    mode: Annotated[
        Mode, typer.Option(help="One question for each area of errors, or one for all.")
    ] = Mode.broad,
    context: Annotated[
        int, typer.Option(help="Tokens that the model takes, prompt and reply together.", min=512)
    ] = 8192,
    reply_tokens: Annotated[int, typer.Option(help="Tokens kept for a reply.", min=64)] = 1536,
    repeats: Annotated[int, typer.Option(help="How often each part is judged.", min=1)] = 1,
    budget: Annotated[
        int, typer.Option(help="Tokens of a condensed trace; longer texts are cut.", min=256)
    ] = 100_000,
    no_hints: Annotated[
        bool, typer.Option("--no-hints", help="Do not tell the judge what rules have found.")
    ] = False,
    temperature: options.Temperature = 1.0,
    seed: options.Seed = 0,
    limit: Annotated[int | None, typer.Option(help="Only the first N traces.", min=1)] = None,
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", help="Folder for findings in the official layout."),
    ] = None,
    store: options.StorePath = None,
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Also examine again what failed for good.")
    ] = False,
    max_unscored: Annotated[
        float, typer.Option(help="Exit with 3 above this share not examined.", min=0, max=1)
    ] = 0.1,
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
    """Find errors in traces. Stop it at any time; the same command goes on."""
    Verbosity.level = -1 if quiet else Verbosity.level
    check_record(record, [taxonomy], [*paths, output], model, store=store)
    refuse_input(output, store=store)
    job = LocateJob(
        model, base_url, detectors_only, read_taxonomy(taxonomy), _literal(mode), context,
        reply_tokens, repeats, budget, not no_hints,
        None if temperature is None or temperature < 0 else temperature, seed,
        options.LimitOptions(
            concurrency, max_calls, max_cost, price_in, price_out, timeout
        ).limits(),
        store,
        retry_failed, None if dry_run else record, dry_run,
    )  # fmt: skip
    trace_job.make_finder(job, None)  # options that cannot work are told before anything is read
    cases = read_cases(paths, limit)
    if output is not None:
        _check_names(cases, output)
    if dry_run:
        from agenteval.cli import bills_trace, dry

        dry.show(bills_trace.locate(job, cases), as_json=as_json)
        return
    found, ended = _locate(job, cases)
    _show(job, found, trace_flags(cases), as_json=as_json)
    if output is not None:
        _write(output, found)
    raise typer.Exit(_code(ended) or _gate(cases, found, max_unscored))


def _literal(mode: Mode) -> Literal["areas", "broad"]:
    return "areas" if mode is Mode.areas else "broad"


def _check_names(cases: Sequence[TraceCase], folder: Path) -> None:
    """Before anything is paid for: every trace can be a file of the folder."""
    for case in cases:
        if Path(case.trace).name != case.trace or "\\" in case.trace or case.trace[0] == ".":
            raise InputError(f"the trace id {case.trace!r} cannot name a file", str(folder))


def _locate(job: LocateJob, cases: Sequence[TraceCase]) -> tuple[list[Stored], Ended | None]:
    from agenteval.evaluators.traces.trials import load_findings
    from agenteval.store import Store, default_path

    with Store(job.store or default_path()) as store:
        key, ended = trace_job.run_job(job, store, cases)
        with store.snapshot():
            found = load_findings(store, traces=[c.key for c in cases], finders=[key])
    order = {case.key: i for i, case in enumerate(cases)}
    return sorted(found, key=lambda one: order[one.trace_key]), ended


def _show(job: LocateJob, found: Sequence[Stored], flags: Flags, *, as_json: bool) -> None:
    if as_json:
        signs = {flag.run: list(flag.signs) for flag in flags.found}
        print_json([
            {"finder": one.finder, "signs": signs.get(one.findings.trace, []),
             **one.findings.model_dump(mode="json")} for one in found
        ])  # fmt: skip
        return
    if not found:
        warn("no trace has been examined")
        return
    from agenteval.cli.plan_table import print_table
    from agenteval.report.traces_material import Finder, Material
    from agenteval.report.traces_tables import plain_tables

    finder = Finder(found[0].finder, {one.findings.trace: one.findings for one in found})
    for table in plain_tables(Material({}, [finder], job.taxonomy)):
        print_table(table)
    if line := printed(flags):
        out().print(line)
    for one in found:
        if one.findings.status is not None:
            warn(f"{one.findings.trace}: {one.findings.status}: {one.findings.message}")
        elif one.findings.message:
            warn(f"{one.findings.trace}: {one.findings.message}")


def _write(folder: Path, found: Sequence[Stored]) -> None:
    from agenteval.evaluators.traces.annotation_files import write_folder

    written = write_folder(folder, [one.findings for one in found], extra=True)
    note(f"{len(written)} files written to {folder}")


def _code(ended: Ended | None) -> int:
    if ended is None:
        return say_interrupted()
    if ended.stopped:
        left = f"stopped, traces not examined: {ended.left_out}: " if ended.left_out else ""
        warn(f"{left}{ended.stopped}")
        return 3
    return 0


def _gate(cases: Sequence[TraceCase], found: Sequence[Stored], most: float) -> int:
    known = sum(one.findings.status is None for one in found)
    lost = len(cases) - known
    if cases and lost / len(cases) > most:
        warn(f"{lost} of {len(cases)} traces were not examined, more than --max-unscored allows")
        return 3
    return 0
