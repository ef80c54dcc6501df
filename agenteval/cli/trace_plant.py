"""agenteval trace plant: traces with known errors, made by changing the world of real agents."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain, islice, zip_longest
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
    from agenteval.evaluators.traces.plant import Harvest, Host, Planted, TracedSystem
    from agenteval.records import Usage


def _nothing() -> Usage:
    from agenteval.records import Usage

    return Usage()


@dataclass
class _Progress:
    calls_done: int = 0
    usage: Usage = field(default_factory=_nothing)
    failures: Counter[str] = field(default_factory=Counter)


def plant(
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Folder for traces, gold and index.")
    ] = None,
    system: Annotated[
        list[str] | None, typer.Option(help="System to run; repeatable. Default: all.")
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
        bool, typer.Option("--list", help="List systems, kinds of errors and scenes; stop.")
    ] = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Run agents in worlds with a known fault. `trace score` measures a finder on the result."""
    from agenteval.evaluators.traces.plant import systems

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
        if system or negatives:
            raise InputError("an agent of your own has neither --system nor --negatives", "--own")
        works = _own_works(own, category, seed, output)
        raise typer.Exit(_finish(*_make(works, (count, 0), output), output, as_json=as_json))
    every = systems()
    unknown = [name for name in system or () if name not in every]
    if unknown:
        raise InputError(f"no system {unknown[0]!r}; there are {', '.join(every)}", "--system")
    chosen = [every[name] for name in dict.fromkeys(system or every)]
    pairs = _pairs(chosen, category)

    def works_of(host: Host) -> Works:
        return _plants(pairs, seed, output, host), _negatives(chosen, seed, output, host)

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


def _pairs(chosen: list[TracedSystem], wanted: list[str] | None) -> list[tuple[TracedSystem, str]]:
    """Systems and kinds of errors in turn, so that any number of runs covers many of both."""
    from agenteval.evaluators.traces.plant import categories
    from agenteval.evaluators.traces.taxonomy import built_in

    labels = built_in()
    names = []
    for text in wanted or ():
        leaf = labels.find(text)
        if leaf is None:
            raise InputError(f"no kind of error is called {text!r}; see --list", "--category")
        names.append(leaf.name)
    known = {one.name: categories(one) for one in chosen}
    lists = [[(one, c) for c in known[one.name] if not names or c in names] for one in chosen]
    for name in names:
        if not any(name in can for can in known.values()):
            raise InputError(f"{name} cannot be planted into {', '.join(known)}", "--category")
    # each system begins with another kind, so that few runs have many kinds
    turned = [own[k * len(own) // len(lists) :] + own[: k * len(own) // len(lists)]
              for k, own in enumerate(lists)]  # fmt: skip
    rounds = chain.from_iterable(zip_longest(*turned))
    return [pair for pair in rounds if pair is not None]


def _make(
    works_of: Callable[[Host], Works], amounts: tuple[int, int], output: Path
) -> tuple[Harvest, bool]:
    """What was made, written; and whether it was interrupted."""
    from agenteval.evaluators.traces.plant import Harvest, Host, PlantError
    from agenteval.evaluators.traces.plant.many import write

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
                progress.calls_done += 1
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


def _plants(
    pairs: list[tuple[TracedSystem, str]], seed: int, output: Path, host: Host
) -> Iterator[_Work]:
    from functools import partial

    from agenteval.evaluators.traces.plant import plant as one

    for more in numbers():
        for system, category in pairs:
            yield partial(one, system, category, seed + more, output, host=host)


def _negatives(chosen: list[TracedSystem], seed: int, output: Path, host: Host) -> Iterator[_Work]:
    from functools import partial

    from agenteval.evaluators.traces.plant import plant as one

    scenes = [(s, scene) for s in chosen for scene in s.scenes]
    for more in numbers():
        for system, scene in scenes:
            yield partial(one, system, None, seed + more, output, scene=scene, host=host)


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
    by_system = Counter(one.system for one in (*harvest.planted, *harvest.negatives))
    note(
        f"{len(harvest.planted)} runs with {kinds.total()} errors and {len(harvest.negatives)} "
        f"without, of {len(by_system)} systems; written to {output} (traces, gold, index.jsonl)"
    )


def _list(*, as_json: bool) -> None:
    from agenteval.evaluators.traces.plant import categories, systems

    rows = [
        {"system": one.name, "about": one.about, "categories": categories(one),
         "scenes": list(one.scenes)}
        for one in systems().values()
    ]  # fmt: skip
    if as_json:
        print_json(rows)
        return
    for row in rows:
        out().print(f"[bold]{clean(row['system'])}[/bold]  {clean(row['about'])}")
        out().print(f"  errors: {clean(', '.join(row['categories']))}")
        out().print(f"  scenes without errors: {clean(', '.join(row['scenes']))}")
