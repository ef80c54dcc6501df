"""A live line while a plan runs: rate, time left, spending, failures by kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Any, Protocol

from agenteval.cli.console import Verbosity, err, note

if TYPE_CHECKING:
    from agenteval.records import Usage


class Counts(Protocol):
    """What is counted while work goes on; `failures` by status."""

    @property
    def done(self) -> int: ...
    @property
    def usage(self) -> Usage: ...
    @property
    def failures(self) -> Counter[str]: ...


@contextmanager
def following(title: str, what: str = "calls") -> Iterator[Callable[[Any], None]]:
    """Yields the function that an experiment gives its counts to; a line for each plan that it
    runs, one after the other."""
    with ExitStack() as stack:
        current: list[tuple[Counts, Callable[[Counts], None]]] = []

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
def live(total: int, title: str, what: str = "calls") -> Iterator[Callable[[Counts], None]]:
    """Yields the function to call after each finished call. Without a terminal: a line per 10 %."""
    if Verbosity.level < 0:
        yield lambda _: None
    elif err().is_terminal:
        with _bar(total, title, what) as update:
            yield update
    else:
        yield _lines(total, title, what)


def _lines(total: int, title: str, what: str) -> Callable[[Counts], None]:
    step = max(1, total // 10)

    def update(progress: Counts) -> None:
        if progress.done % step == 0 or progress.done == total:
            note(f"{title}: {progress.done} of {total} {what}{_extra(progress)}")

    return update


@contextmanager
def _bar(total: int, title: str, what: str) -> Iterator[Callable[[Counts], None]]:
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
        task = bar.add_task(title, total=total, rate="", extra="")

        def update(progress: Counts) -> None:
            elapsed = bar.tasks[0].elapsed or 0.0
            rate = f"{progress.done / elapsed:.1f} {what}/s" if elapsed > 0 else ""
            bar.update(task, completed=progress.done, rate=rate, extra=_extra(progress))

        yield update


def _extra(progress: Counts) -> str:
    parts = []
    if progress.usage.cost is not None:
        parts.append(f"cost {progress.usage.cost:.4f}")
    parts.extend(f"{n} {status}" for status, n in sorted(progress.failures.items()))
    return ("  " + ", ".join(parts)) if parts else ""
