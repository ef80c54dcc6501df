"""A live line while an experiment runs: rate, time left, cost, failures by kind.

The counts have `done`, `total`, `usage`, and `failures` by status, as `experiment.Progress`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from agenteval.cli.console import Verbosity, err, note
from agenteval.text import plural

_INTERVAL = 30.0  # seconds


@contextmanager
def following(title: str, what: str = "calls") -> Iterator[Callable[[Any], None]]:
    """Yield the function that an experiment gives its counts to; a line for each experiment that
    runs, one after the other."""
    with ExitStack() as stack:
        current: list[tuple[Any, Callable[[Any], None]]] = []

        def update(counts: Any) -> None:
            if not current or current[-1][0] is not counts:
                stack.close()
                if not counts.total:
                    return
                current.append((counts, stack.enter_context(live(counts.total, title, what))))
            elif counts.done:
                current[-1][1](counts)

        yield update


@contextmanager
def live(total: int, title: str, what: str = "calls") -> Iterator[Callable[[Any], None]]:
    """Yield the function to call after each finished call.

    Without a terminal it writes a line at each 10%, and at least every `_INTERVAL` seconds.
    """
    if Verbosity.level < 0:
        yield lambda _: None
        return
    if not err().is_terminal:
        step = max(1, total // 10)
        reported, reported_at, noun = 0, time.monotonic(), what.removesuffix("s")

        def tell(counts: Any) -> None:
            nonlocal reported, reported_at
            due = (
                counts.done // step > reported // step or time.monotonic() - reported_at > _INTERVAL
            )
            if due or reported < counts.done == total:
                reported, reported_at = counts.done, time.monotonic()
                note(f"{title}: {counts.done:,} of {plural(total, noun)}{_extra(counts)}")

        yield tell
        return
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}"),
        progress.BarColumn(bar_width=30),
        progress.MofNCompleteColumn(),
        progress.TextColumn("{task.fields[rate]}"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        progress.TextColumn("{task.fields[extra]}"),
    )
    with progress.Progress(*columns, console=err(), transient=True) as bar:
        task = bar.add_task(title, total=total, rate="", extra="")

        def draw(counts: Any) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f"{counts.done / elapsed:.1f} {what}/s" if elapsed > 0 else ""
            bar.update(task, completed=counts.done, rate=rate, extra=_extra(counts))

        yield draw


def _extra(counts: Any) -> str:
    parts = [] if counts.usage.cost is None else [f"cost {counts.usage.cost:.4f}"]
    parts += [f"{n} {status}" for status, n in sorted(counts.failures.items())]
    return ("  " + ", ".join(parts)) if parts else ""
