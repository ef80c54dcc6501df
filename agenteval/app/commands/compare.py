"""agenteval compare: two systems, two judges or two experiments on the same cases."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from agenteval.app.options import ComparisonOptions
from agenteval.cli.arguments import OutputOptions
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note
from agenteval.cli.options import keywords
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError


class FailIf(StrEnum):
    """Condition under which a gate on a row of the comparison fails."""

    surely_worse = "surely-worse"
    not_surely_as_good = "not-surely-as-good"


class OnUndecided(StrEnum):
    """Effect of an undecided gate on the exit code and the JUnit report."""

    passes = "pass"
    fails = "fail"


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
            "--fail-if",
            help="Gate on every row: surely-worse fails if B is worse by more than --margin; "
            "not-surely-as-good fails unless B is shown to be as good. Identical pairs pass.",
            show_default=False,
        ),
    ] = None,
    fail_on_regression: Annotated[
        bool, typer.Option("--fail-on-regression", help="Same as --fail-if surely-worse.")
    ] = False,
    on_undecided: Annotated[
        OnUndecided | None,
        typer.Option(
            "--on-undecided",
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
    condition = fail_if or (FailIf.surely_worse if fail_on_regression else None)
    for option, value in (("--junit", junit), ("--on-undecided", on_undecided)):
        if value is not None and not limits and condition is None:
            raise InputError("needs a gate; add --fail-if or --fail-under", option)
    gates = {
        "fail_under": limits,
        "fail_if": condition.value if condition else None,
        "undecided_passes": on_undecided is OnUndecided.passes,
    }
    report = compare_ratings(a, b, **keywords(settings, **gates))
    if junit is not None:
        write_atomically(junit, report.junit())
        note(f"written to {junit}: {len(report.gates)} gates as JUnit XML")
    finish(report, output)


def _limit(text: str) -> tuple[str, float]:
    """`CRITERION=VALUE`; the last = counts, since names may hold one."""
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
