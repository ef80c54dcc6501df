"""A live line while a plan runs: rate, time left, spending, failures by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from agenteval.cli.console import Verbosity, err, note

if TYPE_CHECKING:
    from agenteval.pipeline import Plan, Progress


@contextmanager
def live(plan: Plan, title: str) -> Iterator[Callable[[Progress], None]]:
    """Yields the function to call after each finished call. Without a terminal: a line per 10 %."""
    if Verbosity.level < 0:
        yield lambda _: None
    elif err().is_terminal:
        with _bar(plan, title) as update:
            yield update
    else:
        yield _lines(plan, title)


def _lines(plan: Plan, title: str) -> Callable[[Progress], None]:
    total = len(plan.units)
    step = max(1, total // 10)

    def update(progress: Progress) -> None:
        if progress.calls_done % step == 0 or progress.calls_done == total:
            note(f"{title}: {progress.calls_done} of {total} calls{_extra(progress)}")

    return update


@contextmanager
def _bar(plan: Plan, title: str) -> Iterator[Callable[[Progress], None]]:
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[extra]}"),
    )
    with Bar(*columns, console=err(), transient=True) as bar:
        task = bar.add_task(title, total=len(plan.units), rate="", extra="")

        def update(progress: Progress) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f"{progress.calls_done / elapsed:.1f} calls/s" if elapsed > 0 else ""
            bar.update(task, completed=progress.calls_done, rate=rate, extra=_extra(progress))

        yield update


def _extra(progress: Progress) -> str:
    parts = []
    if progress.usage.cost is not None:
        parts.append(f"cost {progress.usage.cost:.4f}")
    parts.extend(f"{n} {status}" for status, n in sorted(progress.failures.items()))
    return ("  " + ", ".join(parts)) if parts else ""
