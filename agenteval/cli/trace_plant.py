"""agenteval trace plant: traces with known errors, made by changing the world of real agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice
from itertools import count as numbers
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, clean, note, out, print_json, warn, warn_list
from agenteval.cli.ending import say_finishing
from agenteval.cli.outputs import refuse_input
from agenteval.cli.progress import live
from agenteval.cli.signals import put_off
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.traces.plant import Harvest, Host, Planted
    from agenteval.records import Usage


def _nothing() -> Usage:
    from agenteval.records import Usage

    return Usage()


@dataclass
class _Progress:
    done: int = 0
    usage: Usage = field(default_factory=_nothing)
    failures: Counter[str] = field(default_factory=Counter)


def plant(
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
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Run agents in worlds with a known fault. `trace score` measures a finder on the result."""
    Verbosity.level = -1 if quiet else Verbosity.level
    if list_all:
        _list(as_json=as_json)
        return
    if output is None:
        raise InputError("say where to write", "--output")
    refuse_input(output)
    if (output / "index.jsonl").exists() or (output / "traces").exists():
        raise InputError("there are traces here already; name another folder", str(output))
    if own is not None:
        if negatives:
            raise InputError("an agent of your own has no --negatives", "--own")
        works = _own_works(own, category, seed, output)
        raise typer.Exit(_finish(*_make(works, (count, 0), output), output, as_json=as_json))
    kinds = _kinds(category)

    def works_of(host: Host) -> Works:
        return _sample_works(kinds, seed, output, host)

    made = _make(works_of, (count, negatives), output)
    raise typer.Exit(_finish(*made, output, as_json=as_json))


def _finish(harvest: Harvest, interrupted: bool, output: Path, *, as_json: bool) -> int:
    """Show what was made; the exit code."""
    _show(harvest, output, as_json=as_json)
    if interrupted:
        warn("interrupted: what was made is written")
        return 130
    asked = len(harvest.planted) + len(harvest.negatives) + len(harvest.failed)
    if len(harvest.failed) > 0.1 * asked:
        warn(f"{len(harvest.failed)} of {asked} runs could not be made")
        return 3
    return 0


def _own_works(
    reference: str, wanted: list[str] | None, seed: int, output: Path
) -> Callable[[Host], Works]:
    """Plants around a team's agent: its kinds of errors in turn."""
    from functools import partial

    from agenteval.agents.callable import load
    from agenteval.evaluators.traces.plant.own import OwnSystem, own_changes, plant_own

    try:
        own: object = load(reference)()
    except InputError as error:
        raise InputError(str(error).removeprefix("--agent: "), "--own") from error
    if not isinstance(own, OwnSystem):
        raise InputError(f"{reference} returns no OwnSystem (see docs/traces.md)", "--own")
    known = sorted({change.category for change in own_changes(own)})
    for name in wanted or ():
        if name not in known:
            raise InputError(f"{name!r} cannot be planted around an agent: {', '.join(known)}",
                             "--category")  # fmt: skip

    def works_of(host: Host) -> Works:
        plants = (
            partial(plant_own, own, category, seed + more, output, host=host)
            for more in numbers()
            for category in wanted or known
        )
        return plants, iter(())

    return works_of


def _kinds(wanted: list[str] | None) -> list[str]:
    """The kinds of errors to plant, in their order; all for None."""
    from agenteval.evaluators.traces.plant import categories
    from agenteval.evaluators.traces.taxonomy import built_in

    known, labels = categories(), built_in()
    names = []
    for text in wanted or ():
        leaf = labels.find(text)
        if leaf is None:
            raise InputError(f"no kind of error is called {text!r}; see --list", "--category")
        if leaf.name not in known:
            raise InputError(
                f"{leaf.name} cannot be planted; there are {', '.join(known)}", "--category"
            )
        names.append(leaf.name)
    return [name for name in known if name in names] if names else known


def _make(
    works_of: Callable[[Host], Works], amounts: tuple[int, int], output: Path
) -> tuple[Harvest, bool]:
    """What was made, written; and whether it was interrupted."""
    from agenteval.evaluators.traces.plant import Harvest, Host, PlantError, write

    count, negatives = amounts
    harvest, progress, interrupted = Harvest(), _Progress(), False
    try:
        with (
            Host() as host,
            live(count + negatives, "planting", "runs") as update,
            put_off(say_finishing) as interrupts,
        ):
            plants, clean_runs = works_of(host)
            works = chain(islice(plants, count), islice(clean_runs, negatives))
            for number, work in enumerate(works):
                try:
                    (harvest.planted if number < count else harvest.negatives).append(work())
                except PlantError as error:
                    harvest.failed.append(str(error))
                    progress.failures["not made"] += 1
                progress.done += 1
                update(progress)
                if interrupts():
                    raise KeyboardInterrupt
    except KeyboardInterrupt:
        interrupted = True
    output.mkdir(parents=True, exist_ok=True)
    write(harvest, output)
    return harvest, interrupted


_Work = Callable[[], "Planted"]
Works = tuple[Iterator[_Work], Iterator[_Work]]  # with an error, without


def _sample_works(kinds: list[str], seed: int, output: Path, host: Host) -> Works:
    """Runs of the sample system: its kinds of errors in turn, and its scenes in turn."""
    from functools import partial

    from agenteval.evaluators.traces.plant import ORDERS, plant

    return (
        (partial(plant, kind, seed + more, output, host=host) for more in numbers()
         for kind in kinds),
        (partial(plant, None, seed + more, output, scene=scene, host=host) for more in numbers()
         for scene in ORDERS.scenes),
    )  # fmt: skip


def _show(harvest: Harvest, output: Path, *, as_json: bool) -> None:
    kinds = Counter(e.finding.category for one in harvest.planted for e in one.errors)
    if as_json:
        print_json({
            "planted": len(harvest.planted), "negatives": len(harvest.negatives),
            "errors": dict(kinds.most_common()), "failed": harvest.failed,
        })  # fmt: skip
    else:
        for name, n in sorted(kinds.items(), key=lambda item: (-item[1], item[0])):
            out().print(f"{n:>5}  {clean(name)}")
    warn_list("not made:", harvest.failed)
    note(
        f"{len(harvest.planted)} runs with {kinds.total()} errors and {len(harvest.negatives)} "
        f"without; written to {output} (traces, gold, index.jsonl)"
    )


def _list(*, as_json: bool) -> None:
    from agenteval.evaluators.traces.plant import ORDERS, categories

    row = {"system": ORDERS.name, "about": ORDERS.about, "categories": categories(),
           "scenes": list(ORDERS.scenes)}  # fmt: skip
    if as_json:
        print_json([row])
        return
    out().print(f"[bold]{clean(ORDERS.name)}[/bold]  {clean(ORDERS.about)}")
    out().print(f"  errors: {clean(', '.join(categories()))}")
    out().print(f"  scenes without errors: {clean(', '.join(ORDERS.scenes))}")
