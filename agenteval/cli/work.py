"""agenteval work: a process of a command that was begun elsewhere."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, note
from agenteval.cli.signals import INTERRUPTED

if TYPE_CHECKING:
    from agenteval.store import Store

_LOOK = 0.5  # seconds between two looks for something to do


def work(
    context: typer.Context,
    store: options.StorePath = None,
    job: Annotated[
        str | None, typer.Option(help="Only this one; default: whatever is begun.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of this worker.", hidden=True)] = None,
    concurrency: options.Concurrency = 8,
    wait: Annotated[
        float, typer.Option(help="Seconds to wait for something to do, before it ends.", min=0)
    ] = 60.0,
    quiet: options.Quiet = False,
) -> None:
    """Help with a command that was begun with --workers or --ray on this store.

    Runs, criteria and other files of the command must lie here under the same names, keys and
    headers stand in the environment. It ends when nothing was to be done for a while.
    """
    from agenteval.errors import JobOver, ModelError
    from agenteval.store import Store, default_path
    from agenteval.store.leases import Job
    from agenteval.text import redacted
    from agenteval.workers import INTERRUPTION, Worker, within

    Verbosity.level = -1 if quiet else Verbosity.level
    where = store or default_path()
    helped: set[str] = set()  # jobs that this process does not come back to
    with Store(where) as opened:
        while (found := _next(opened, job, helped, wait)) is not None:
            key, command = found
            worker = Worker(Job(opened.engine, key), name, concurrency)
            note(f"at work on: agenteval {' '.join(command)}")
            said, Verbosity.level = Verbosity.level, -2  # what it says, its leader says
            why = over = None
            try:
                with within(worker):
                    end = command.index("--")
                    words = [*command[:end], f"--store={where}", *command[end:]]
                    context.find_root().command.main(words, standalone_mode=False)
            except JobOver as ended:
                over = str(ended)
                why = over if ended.stops_all else None
            except ModelError as error:  # a refused key: any other worker would be refused as well
                why = redacted(" ".join(str(error).split()))
                raise
            finally:
                Verbosity.level = said
                worker.close()
                worker.stop(why)
            note(over or "done")
            if over == INTERRUPTION:
                raise typer.Exit(INTERRUPTED)
            helped.add(key)


def _next(
    store: Store, job: str | None, helped: Collection[str], wait: float
) -> tuple[str, list[str]] | None:
    """Key and command of what is to be done; None when nothing is for so long, or the one that is
    asked for is over. Raises InputError where all there is was begun by another version."""
    from agenteval.cli.processes import package_sha256
    from agenteval.errors import InputError
    from agenteval.store.leases import live_jobs

    until = time.monotonic() + wait
    while True:
        live = [one for one in live_jobs(store.engine) if job in (None, one[0])]
        fresh = [one for one in live if one[0] not in helped]
        for key, command, package in fresh:
            if package == package_sha256():
                return key, command
        if fresh:
            raise InputError(
                "the command was begun by another version of agenteval; install the same here",
                store.shown,
            )
        if time.monotonic() > until or (job is not None and (not live or job in helped)):
            return None
        time.sleep(_LOOK)
