"""agenteval compare: two systems, two judges or two experiments on the same cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note, print_json
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.cli.compare_sides import Sides
    from agenteval.comparison import Comparison
    from agenteval.gates import Gate


def compare(
    a: Annotated[
        str | None, typer.Argument(help="System A, the one to beat.", show_default=False)
    ] = None,
    b: Annotated[str | None, typer.Argument(help="System B.", show_default=False)] = None,
    with_: Annotated[
        Path | None,
        typer.Option("--with", help="B is in this store (or score file, after --scores)."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="Judge: its model or the start of its hash; with --scores the rater. "
            "Default: the latest. Given twice: A and B are two judges of the same runs."
        ),
    ] = None,
    store: options.StorePath = None,
    scores: Annotated[
        Path | None, typer.Option(help="Ratings made elsewhere (CSV or JSONL) instead of a store.")
    ] = None,
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None, typer.Option(help="Criteria file, for --scores with labels only.")
    ] = None,
    criterion: Annotated[
        list[str] | None,
        typer.Option(help="Only this one (id, or `success`); may be given often. Default: all."),
    ] = None,
    margin: Annotated[
        float,
        typer.Option(help="A difference up to this share of the scale is none.", min=0, max=1),
    ] = 0.05,
    min_cases: Annotated[
        int, typer.Option(help="Below this many common cases nothing is decided.", min=2)
    ] = 20,
    fail_under: Annotated[
        list[str] | None,
        typer.Option(metavar="CRITERION=VALUE", help="Gate: B's mean is not below VALUE."),
    ] = None,
    fail_on_regression: Annotated[
        bool,
        typer.Option("--fail-on-regression", help="Gate: B is not worse by more than --margin."),
    ] = False,
    junit: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the gates as JUnit XML.")
    ] = None,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare A with B on the cases that both have: difference, interval, verdict.

    \b
    compare stepwise coder                      two systems, by the latest judge
    compare --source gpt-4o --source 3f2a91     two judges or prompts, same runs
    compare --store old.db --with new.db        two experiments; add a system to
                                                compare it alone, two for A and B
    compare --scores old.csv --with new.csv     the same of score files

    Differences are B minus A, in shares of the scale (0 worst, 1 best); cases are the units. A gate
    passes (0) when the whole 95 % interval is on the right side, fails (1) when it is on the wrong
    one, for regressions after Holm's correction, and ends in 4 when the data cannot tell.
    """
    from agenteval.cli.compare_sides import Wanted, load_sides
    from agenteval.comparison import CompareOptions
    from agenteval.comparison import compare as compare_tables
    from agenteval.gates import exit_code, regression_gates, under_gate

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(junit, [with_, scores, criteria], store=store)
    limits = [_limit(text) for text in fail_under or ()]
    if junit is not None and not limits and not fail_on_regression:
        raise InputError("reports gates; add --fail-under or --fail-on-regression", "--junit")
    names = tuple(n for n in (a, b) if n is not None)
    wanted = Wanted(names, tuple(source or ()), store, scores, with_, task, criteria)
    sides = load_sides(wanted)
    comparison = compare_tables(
        sides.first,
        sides.second,
        pair_by=sides.pair_by,
        criteria=criterion,
        options=CompareOptions(margin=margin, min_cases=min_cases, seed=seed),
    )
    gates = [under_gate(comparison, name, value) for name, value in limits]
    if fail_on_regression:
        gates += regression_gates(comparison)
    _show(sides, comparison, gates, as_json=as_json)
    if junit is not None:
        _write_junit(junit, sides, comparison, gates)
    raise typer.Exit(exit_code(gates))


def _limit(text: str) -> tuple[str, float]:
    """`CRITERION=VALUE`; the last = counts, since names may hold one."""
    name, _, value = text.rpartition("=")
    try:
        number = float(value)
    except ValueError:
        number = -1.0
    if not name or not 0 <= number <= 1:
        raise InputError(
            f"{text!r} is not CRITERION=VALUE with a value from 0 to 1", "--fail-under"
        )
    return name, number


def _show(sides: Sides, comparison: Comparison, gates: Sequence[Gate], *, as_json: bool) -> None:
    from agenteval.cli.compare_table import comparison_json, print_comparison

    if as_json:
        print_json(comparison_json(sides, comparison, gates))
    else:
        print_comparison(sides, comparison, gates)


def _write_junit(path: Path, sides: Sides, comparison: Comparison, gates: Sequence[Gate]) -> None:
    from agenteval.cli.compare_table import figures, properties
    from agenteval.cli.junit import junit_xml
    from agenteval.files import write_atomically

    name = f"agenteval compare: B = {sides.names[1]}, A = {sides.names[0]}"
    lines = {row.criterion: figures(row) for row in comparison.rows}
    write_atomically(path, junit_xml(gates, name, properties(sides, comparison), lines))
    note(f"written to {path}: {len(gates)} gates as JUnit XML")
