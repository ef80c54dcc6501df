"""agenteval agree, compare and design: analyse ratings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, cast

import typer

from agenteval.analysis.gates import FailIf
from agenteval.analysis.sampling import By
from agenteval.app.options import AgreementOptions, ComparisonOptions
from agenteval.cli import arguments as options
from agenteval.cli.arguments import JudgeInStore, OutputOptions
from agenteval.cli.command import CommandApp, finish, grouped
from agenteval.cli.console import note
from agenteval.cli.options import keywords
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError

agree_app = CommandApp(help="Compare the judge with human labels.")


@agree_app.callback(invoke_without_command=True)
@grouped
def agree(
    context: typer.Context,
    output: OutputOptions,
    labels: Annotated[
        Path | None, typer.Option(help="Human labels to compare with (a table or a log).")
    ] = None,
    *,
    settings: AgreementOptions,
    page: Annotated[
        Path | None,
        typer.Option(
            "-o", "--output", help="Also write the report to this file (.html, .json or .csv)."
        ),
    ] = None,
) -> None:
    """Compare the judge with human labels.

    \b agree sample --n 100 -o labels.csv     draw what people should label agree --labels
    labels.csv              agreement with the judge; its mean, corrected by these labels
    """
    from agenteval.app.agreement import agree as agree_with

    if context.invoked_subcommand is not None:
        return
    ratings = cast("tuple[Path, ...]", settings.scores)
    inputs = [labels, settings.criteria, settings.sample, *ratings]
    refuse_input(page, inputs, store=settings.store)
    report = agree_with(labels, **keywords(settings))
    if page is not None:
        note(f"written to {report.save(page)}")
    finish(report, output)


@agree_app.command("sample")
@grouped
def sample(
    shown: OutputOptions,
    n: Annotated[int, typer.Option("--n", help="Number of runs to draw.", min=1)] = 100,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="Sheet to fill in (.csv or .jsonl).")
    ] = Path("labels.csv"),
    by: Annotated[
        By,
        typer.Option(
            help="How to draw: random (each run equally likely), or the same number of runs from "
            "each quarter of the judge's scale or of the spread of its repeats."
        ),
    ] = "random",
    store: options.StorePath = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Read the judge's ratings from this file instead of the store."),
    ] = None,
    source: JudgeInStore = None,
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None, typer.Option(help="Criteria file with the allowed levels.")
    ] = None,
    runs: Annotated[
        str | None,
        typer.Option(
            help="Runs whose inputs and outputs the sheet shows. Default: those of the store."
        ),
    ] = None,
    seed: options.Seed = 0,
) -> None:
    """Draw runs for people to label, and write a sheet to fill in."""
    from agenteval.app.agreement import sample_to_label

    refuse_input(output, [scores, criteria, runs], store=store)
    report = sample_to_label(
        n,
        by=by,
        seed=seed,
        scores=scores,
        store=store,
        judge=source,
        task=task,
        criteria=criteria,
        runs=runs,
    )
    report.save(output)
    note(
        f"written to {output}: fill in label and rater, then run `agenteval agree --labels "
        f"{output}`"
    )
    finish(report, shown)


@grouped
def compare(
    output: OutputOptions,
    a: Annotated[
        str | None, typer.Argument(help="System A, the baseline.", show_default=False)
    ] = None,
    b: Annotated[str | None, typer.Argument(help="System B.", show_default=False)] = None,
    *,
    settings: ComparisonOptions,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="CRITERION=VALUE", help="Gate: fail if B's mean is below VALUE."),
    ] = None,
    fail_if: Annotated[
        FailIf | None,
        typer.Option(
            help="Gate on every row: surely-worse fails if B is worse by more than --margin; "
            "not-surely-as-good fails unless B is shown to be as good. Identical pairs pass.",
            show_default=False,
        ),
    ] = None,
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Same as --fail-if surely-worse.")
    ] = False,
    on_undecided: Annotated[
        Literal["pass", "fail"] | None,
        typer.Option(
            help="Exit code if the data cannot settle a gate: 4 (fail, the default) or 0 (pass).",
            show_default=False,
        ),
    ] = None,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the gates as JUnit XML.")
    ] = None,
) -> None:
    """Compare two systems, judges or stores, paired by case.

    \b
    compare stepwise coder                      two systems, by the latest judge
    compare --source gpt-4o --source 3f2a91     two judges or prompts, same runs
    compare --store old.db --with new.db        two experiments; add a system to
                                                compare it alone, two for A and B
    compare --scores old.csv --with new.csv     the same of score files

    Differences are B minus A, in shares of the scale (0 worst, 1 best); cases are the units. A gate
    passes (0) when the whole 95% interval is on the right side or no pair differs. --fail-under
    fails (1) when the whole interval is below VALUE, --fail-if surely-worse when a one-sided test
    against -margin rejects (0.05, Holm over the criteria that could differ). Otherwise a gate is
    undecided (4). --all lists the cases behind each difference.
    """
    from agenteval.app.comparison import compare as compare_ratings
    from agenteval.files import write_atomically

    inputs = [settings.other, settings.scores, settings.criteria]
    refuse_input(junit, inputs, store=settings.store)
    limits = [_limit(text) for text in fail_under or ()]
    condition = fail_if or ("surely-worse" if fail_on_regression else None)
    for option, value in (("--junit", junit), ("--on-undecided", on_undecided)):
        if value is not None and not limits and condition is None:
            raise InputError("needs a gate; add --fail-if or --fail-under", option)
    passes = on_undecided == "pass"
    gates = {"fail_under": limits, "fail_if": condition, "undecided_passes": passes}
    report = compare_ratings(a, b, **keywords(settings, **gates))
    if junit is not None:
        write_atomically(junit, report.junit())
        note(f"written to {junit}: {len(report.gates)} gates as JUnit XML")
    finish(report, output)


def _limit(text: str) -> tuple[str, float]:
    """Read CRITERION=VALUE; the last = counts, since names may hold one."""
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not name or not 0 <= number <= 1:
        raise InputError(
            f"{text!r} is not of the form CRITERION=VALUE with a value from 0 to 1", "--fail-under"
        )
    return name, number


@grouped
def design(
    output: OutputOptions,
    cases: Annotated[str, typer.Option(help="Numbers of cases, e.g. 50,100.")] = "25,50,100,200",
    repeats: Annotated[str, typer.Option(help="Numbers of repeats, e.g. 1,2,3.")] = "1,2,3",
    width: Annotated[
        float | None, typer.Option(help="Print how many cases an interval of this width needs.")
    ] = None,
    systems: Annotated[
        int, typer.Option(help="Number of systems that answer every case.", min=1)
    ] = 1,
    price: Annotated[
        float | None,
        typer.Option(help="Price of one call, which judges one run on all criteria.", min=0),
    ] = None,
    scores: Annotated[
        Path | None,
        typer.Option(help="Estimate the spread from these ratings instead of the store."),
    ] = None,
    store: options.StorePath = None,
    source: JudgeInStore = None,
    task: options.TaskName = None,
    criteria: Annotated[Path | None, typer.Option(help="Criteria file with the levels.")] = None,
) -> None:
    """Plan cases and repeats: calls, cost and precision.

    The spread is estimated from existing ratings, else the largest possible is used.
    """
    from agenteval.app.design import design as design_for

    report = design_for(
        _numbers(cases, "--cases"),
        _numbers(repeats, "--repeats"),
        width=width,
        systems=systems,
        price=price,
        scores=scores,
        store=store,
        judge=source,
        task=task,
        criteria=criteria,
    )
    finish(report, output)


def _numbers(text: str, option: str) -> list[int]:
    try:
        return [int(part) for part in text.split(",")]
    except ValueError:
        raise InputError(f"{text!r} is not a list of numbers such as 50,100", option) from None
