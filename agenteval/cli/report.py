"""agenteval report: one self-contained HTML page of what is stored, or of ratings in a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, clean, note, out, warn, warn_list
from agenteval.cli.job import relabel
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.utility.verify.options import VerifyOptions
    from agenteval.records import Criterion
    from agenteval.report.material import Material
    from agenteval.report.stored import Wanted
    from agenteval.store import Store


def report(
    runs: Annotated[
        str | None, typer.Argument(help="Only these runs of the store: file, folder or glob.")
    ] = None,
    output: Annotated[Path, typer.Option("-o", "--output", help="Where the page goes.")] = Path(
        "report.html"
    ),
    store: options.StorePath = None,
    source: Annotated[
        str | None, typer.Option(help="Start of a source's hash; default: the latest.")
    ] = None,
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None,
        typer.Option(help="Criteria file, for instance TASK.verified.json. Default: all rated."),
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Report on ratings made elsewhere (CSV or JSONL) instead.")
    ] = None,
    rater: Annotated[
        str | None, typer.Option(help="With --scores: only rows of this rater.")
    ] = None,
    most_runs: Annotated[
        int, typer.Option("--most-runs", help="Runs that can be opened on the page.", min=0)
    ] = 500,
    min_cases: Annotated[
        int, typer.Option(help="Below this many cases nothing is decided.", min=2)
    ] = 20,
    deterministic: Annotated[
        bool,
        typer.Option(
            "--deterministic", help="The judge of --scores is a function: it needs no repeats."
        ),
    ] = False,
    quiet: options.Quiet = False,
) -> None:
    """Write one HTML page: what can be trusted, what was measured, what is missing, every run."""
    from agenteval.evaluators.utility.verify.options import VerifyOptions
    from agenteval.files import write_atomically
    from agenteval.report.utility import utility_page

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(output, [runs, criteria, scores], store=store)
    chosen = _criteria(criteria)
    thresholds = VerifyOptions(min_cases=min_cases, deterministic=deterministic)
    if scores is not None:
        if runs is not None or source is not None:
            raise InputError("ratings of a file have no store: leave out RUNS and --source",
                             "--scores")  # fmt: skip
        page = utility_page(_elsewhere(scores, rater, chosen, thresholds), most_runs=most_runs)
    elif deterministic:
        raise InputError("is said of ratings made elsewhere (--scores)", "--deterministic")
    elif rater is not None:
        raise InputError("raters are known in a file of ratings only (--scores)", "--rater")
    else:
        from agenteval import store as stores
        from agenteval.report.stored import Wanted

        wanted = Wanted(task, chosen, criteria.name if criteria else "", _views(runs))
        path = store or stores.default_path()
        with stores.Store(path, create=False) as opened:
            relabel(opened, chosen or ())
            with opened.snapshot():
                page = utility_page(
                    _stored(opened, source, wanted, thresholds), most_runs=most_runs
                )
    write_atomically(output, page)
    size = len(page.encode()) / 1e6
    out().print(f"{clean(str(output))}: {size:.1f} MB, opens in any browser without a network")


def _criteria(path: Path | None) -> tuple[Criterion, ...] | None:
    """The criteria of a file, None without one."""
    if path is None:
        return None
    from agenteval.evaluators.utility.criteria_file import load_criteria

    loaded = load_criteria(path)
    warn_list("about the criteria:", loaded.notes)
    return loaded.criteria.criteria


def _views(runs: str | None) -> frozenset[str] | None:
    """Hashes of the views of runs, with and without their reference; None for all runs."""
    if runs is None:
        return None
    from agenteval.readers import make_view, read_runs

    read = read_runs(runs, task="")
    for skipped in read.skipped:
        note(f"skipped {skipped.path}: {skipped.reason}")
    warn_list("warnings while reading:", read.warnings)
    return frozenset(
        make_view(run, with_reference=shown).sha256 for run in read.runs for shown in (False, True)
    )


def _elsewhere(
    scores: Path, rater: str | None, criteria: tuple[Criterion, ...] | None, how: VerifyOptions
) -> Material:
    from agenteval.readers.scores import read_scores
    from agenteval.report.elsewhere import from_ratings

    table = read_scores(scores, criteria or (), rater=rater)
    name = scores.name if rater is None else f"{scores.name}, rater {rater}"
    return from_ratings(scores, table, criteria or (), name, how)


def _stored(opened: Store, source: str | None, wanted: Wanted, how: VerifyOptions) -> Material:
    from agenteval.cli.show import pick_source
    from agenteval.report.stored import from_store

    key, record = pick_source(opened.sources(), source)
    material = from_store(opened, key, record, wanted, how)
    for line in material.unfinished:
        warn(line)
    return material
