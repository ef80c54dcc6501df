"""agenteval trace plant: traces with known errors, made by changing the world of real agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.command import finish, grouped
from agenteval.cli.console import note, out, print_json
from agenteval.cli.options import OutputOptions
from agenteval.cli.outputs import refuse_input
from agenteval.cli.progress import live
from agenteval.cli.signals import put_off
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.traces.plant import Harvest, Planted
    from agenteval.report.report import Report

_FINISHING = "interrupted: finishing the run under way; once more ends it at once"
_Work = Callable[..., "Planted"]  # takes the `host`


@grouped
def plant(
    shown: OutputOptions,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for traces, gold and index.")
    ] = None,
    own: Annotated[
        str | None,
        typer.Option(
            help="MODULE:FUNCTION that returns an OwnSystem: plant around an agent of yours."
        ),
    ] = None,
    category: Annotated[
        list[str] | None, typer.Option(help="Kind of error to plant; repeatable. Default: all.")
    ] = None,
    count: Annotated[int, typer.Option(help="Runs with a planted error.", min=0)] = 20,
    negatives: Annotated[
        int, typer.Option(help="Runs without error, many of which look like one.", min=0)
    ] = 0,
    seed: options.Seed = 0,
    list_all: Annotated[
        bool, typer.Option("--list", help="List the system, kinds of errors and scenes; stop.")
    ] = False,
) -> None:
    """Run agents in worlds with a known fault. `trace score` measures a finder on the result."""
    if list_all:
        _list(as_json=shown.as_json)
        return
    if output is None:
        raise InputError("say where to write", "--output")
    refuse_input(output)
    if (output / "index.jsonl").exists() or (output / "traces").exists():
        raise InputError("there are traces here already; name another folder", str(output))
    if own is not None and negatives:
        raise InputError("an agent of your own has no --negatives", "--own")
    plant_one, kinds = _own(own, category) if own is not None else _sample(category)
    runs = [plant_one(kinds[n % len(kinds)], seed + n // len(kinds), output) for n in range(count)]
    clean = [_negative(n, seed, output) for n in range(negatives)]
    harvest, interrupted = _harvest(runs, clean, output)
    finish(_report(harvest, output, interrupted=interrupted), shown)


def _own(
    reference: str, wanted: list[str] | None
) -> tuple[Callable[[str, int, Path], _Work], list[str]]:
    """How to plant around a team's agent, and its kinds of errors."""
    from agenteval.agents.callable import load_function
    from agenteval.evaluators.traces.plant import OwnSystem, own_categories, plant_own

    own: object = load_function(reference, "--own")()
    if not isinstance(own, OwnSystem):
        raise InputError(f"{reference} returns no OwnSystem (see docs/traces.md)", "--own")
    known = own_categories(own)
    for name in wanted or ():
        if name not in known:
            raise InputError(f"{name!r} cannot be planted around an agent: {', '.join(known)}",
                             "--category")  # fmt: skip
    return partial(partial, plant_own, own), wanted or known


def _sample(wanted: list[str] | None) -> tuple[Callable[[str, int, Path], _Work], list[str]]:
    """How to plant in the sample system, and its kinds of errors."""
    from agenteval.evaluators.traces.plant import categories, plant
    from agenteval.evaluators.traces.taxonomy import built_in

    known, names = categories(), []
    for text in wanted or ():
        leaf = built_in().find(text)
        if leaf is None:
            raise InputError(f"no kind of error is called {text!r}; see --list", "--category")
        if leaf.name not in known:
            raise InputError(
                f"{leaf.name} cannot be planted; there are {', '.join(known)}", "--category"
            )
        names.append(leaf.name)
    return partial(partial, plant), [name for name in known if name in names] or known


def _negative(number: int, seed: int, output: Path) -> _Work:
    """A run of the sample system without error: its scenes in turn."""
    from agenteval.evaluators.traces.plant import SCENES, plant

    scene = SCENES[number % len(SCENES)]
    return partial(plant, None, seed + number // len(SCENES), output, scene=scene)


def _harvest(runs: Sequence[_Work], clean: Sequence[_Work], output: Path) -> tuple[Harvest, bool]:
    """What was made, written; and whether it was interrupted."""
    from agenteval.evaluators.traces.plant import Harvest, Host, PlantError, write
    from agenteval.records import Usage

    @dataclass
    class Counts:
        done: int = 0
        usage: Usage = field(default_factory=Usage)
        failures: Counter[str] = field(default_factory=Counter)

    harvest, counts, interrupted = Harvest(), Counts(), False
    try:
        with (
            Host() as host,
            live(len(runs) + len(clean), "planting", "runs") as update,
            put_off(lambda: note(_FINISHING)) as interrupts,
        ):
            for work in (*runs, *clean):
                made = harvest.planted if counts.done < len(runs) else harvest.negatives
                try:
                    made.append(work(host=host))
                except PlantError as error:
                    harvest.failed.append(str(error))
                    counts.failures["not made"] += 1
                counts.done += 1
                update(counts)
                if interrupts():
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        interrupted = True
    output.mkdir(parents=True, exist_ok=True)
    write(harvest, output)
    return harvest, interrupted


def _report(harvest: Harvest, output: Path, *, interrupted: bool) -> Report:
    from agenteval.records.table import Column, Table
    from agenteval.report.report import Report
    from agenteval.trust.gates import unscored_gate

    kinds = Counter(e.finding.category for harvested in harvest.planted for e in harvested.errors)
    ordered = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    total = len(harvest.planted) + len(harvest.negatives) + len(harvest.failed)
    note(
        f"{len(harvest.planted)} runs with {kinds.total()} errors and {len(harvest.negatives)} "
        f"without; written to {output} (traces, gold, index.jsonl)"
    )
    report = Report(
        title="",
        tables=(Table(
            "planted", "Planted errors",
            (Column("category", "category"), Column("errors", "errors", "count")),
            tuple({"category": name, "errors": n} for name, n in ordered),
        ),),
        notes=tuple(f"not made: {why}" for why in harvest.failed),
        unfinished=("interrupted: what was made is written",) if interrupted else (),
        data={"planted": len(harvest.planted), "negatives": len(harvest.negatives),
              "errors": dict(ordered), "failed": harvest.failed},
        exit_code=130 if interrupted else 0,
    )  # fmt: skip
    return report.gated(unscored_gate(total, len(harvest.failed), 0.1, "runs could not be made"))


def _list(*, as_json: bool) -> None:
    from agenteval.evaluators.traces.plant import ABOUT, NAME, SCENES, categories

    if as_json:
        print_json([{"system": NAME, "about": ABOUT, "categories": categories(),
                     "scenes": list(SCENES)}])  # fmt: skip
        return
    out().print(f"[bold]{NAME}[/bold]  {ABOUT}")
    out().print(f"  errors: {', '.join(categories())}")
    out().print(f"  scenes without errors: {', '.join(SCENES)}")
