"""Shared parts of all experiments of the public interface: sync form, progress messages, limits and
store.

An experiment is one coroutine, `async def averb(...) -> Report`, and `verb = synchronous(averb)`.
It takes `limits`, `store`, `notify` and `progress` from the user. If cancellation leaves a partial
result, it raises `Stopped(report)`.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import signal
import threading
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from agenteval.store import Store, default_path, is_there

if TYPE_CHECKING:
    from agenteval.engine import ExperimentResult
    from agenteval.reporting.report import Report

_P = ParamSpec("_P")
_T = TypeVar("_T")

Notify = Callable[[str], None]
Progress = Callable[[Any], None]  # gets the engine's counts (total, done, failures, usage)


class Warned(str):
    """A line for `notify` that matters even if only results are wanted."""

    __slots__ = ()


class Stopped(asyncio.CancelledError):
    """Raised by a cancelled experiment with a partial `report`.

    Finished results are stored, and the same call continues.
    """

    def __init__(self, report: Report) -> None:
        super().__init__()
        self.report = report


class Interrupted(KeyboardInterrupt):
    """Raised by the sync form of an experiment on Ctrl-C. `report` has the finished part, or is
    None."""

    def __init__(self, report: Report | None = None) -> None:
        super().__init__("finished results are stored; make the same call to continue")
        self.report = report


def synchronous(
    function: Callable[_P, Coroutine[Any, Any, _T]],
) -> Callable[_P, _T]:
    """Return the sync version of an async function `averb`: same parameters, named `verb`.

    It also works inside a running event loop, as in a notebook. Ctrl-C starts no new work, waits
    for running work and raises `Interrupted`; a second one stops at once.
    """

    @functools.wraps(function)
    def sync(*args: _P.args, **kwargs: _P.kwargs) -> _T:
        return run_sync(function(*args, **kwargs))

    sync.__name__ = function.__name__.removeprefix("a")
    sync.__qualname__ = sync.__name__
    sync.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]
    return sync


def run_sync(work: Coroutine[Any, Any, _T]) -> _T:
    """Run `work` in a new event loop and return its result; see `synchronous`."""
    stopped: list[Stopped] = []

    async def kept() -> _T:
        try:
            return await work
        except Stopped as cancelled:
            stopped.append(cancelled)
            raise

    try:
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(kept())
        return _in_thread(kept)
    except KeyboardInterrupt:
        raise Interrupted(stopped[0].report if stopped else None) from None


def _in_thread(work: Callable[[], Coroutine[Any, Any, _T]]) -> _T:
    """Run it in a thread while the running event loop waits."""
    outcome: Future[_T] = Future()
    begun = threading.Event()
    tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Task[Any] | None]] = []

    async def cancellable() -> _T:
        tasks.append((asyncio.get_running_loop(), asyncio.current_task()))
        begun.set()
        return await work()

    def run() -> None:
        try:
            outcome.set_result(asyncio.run(cancellable()))
        except BaseException as error:  # noqa: BLE001 raised again by the waiting thread
            outcome.set_exception(error)

    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(run,), name="agenteval").start()
    begun.wait()
    loop, task = tasks[0]
    interrupted = False
    while True:
        try:
            return outcome.result()
        except KeyboardInterrupt:
            interrupted = True
            if task is not None:
                loop.call_soon_threadsafe(task.cancel)
        except asyncio.CancelledError:
            if interrupted:
                raise KeyboardInterrupt from None
            raise


class Watch:
    """Receives progress messages. Without a `notify` callback, warnings are collected in
    `notes`."""

    def __init__(self, notify: Notify | None = None, progress: Progress | None = None) -> None:
        self._notify = notify
        self.progress: Progress = progress or (lambda counts: None)
        self.notes: list[str] = []

    def note(self, line: str) -> None:
        """Report the current activity; not part of the result."""
        if self._notify is not None:
            self._notify(line)

    def warn(self, line: str) -> None:
        """Report something that readers of the figures must know."""
        if self._notify is None:
            self.notes.append(line)
        else:
            self._notify(Warned(line))

    def warn_list(self, title: str, lines: Iterable[str], *, most: int = 10) -> None:
        """Return a title and its first lines, with the number of omitted ones."""
        listed = list(lines)
        if not listed:
            return
        more = [f"... and {len(listed) - most} more"] if len(listed) > most else []
        if self._notify is None:
            self.notes.append(f"{title} {'; '.join((*listed[:most], *more))}")
            return
        self.warn(title)
        for line in (*listed[:most], *more):
            self.warn(f"  {line}")

    def waiting(self) -> None:
        """At the first Ctrl-C, while calls are under way."""
        self.note("interrupted: waiting for pending replies; press Ctrl-C again to stop at once")


def how_it_ended(ended: ExperimentResult | None, left: str) -> tuple[tuple[str, ...], int]:
    """Return the message and exit code of an experiment that was interrupted (None) or stopped
    early."""
    if ended is None:
        return ("interrupted: finished results are stored; run the same command to continue",), 130
    if ended.stopped:
        return (why_stopped(ended, left),), 3
    return (), 0


@contextmanager
def planned(store: str | Path | Store | None = None) -> Iterator[Store]:
    """Open the store for a dry run: no file is created, and a missing store counts as empty."""
    path = default_path() if store is None or isinstance(store, Store) else store
    with TemporaryDirectory() as folder:
        exists = isinstance(store, Store) or is_there(path)
        chosen = store if isinstance(store, Store) else path
        with opened(chosen if exists else Path(folder) / "none.db") as opened_store:
            yield opened_store


@contextmanager
def at_once() -> Iterator[None]:
    """In the block, which only computes in an event loop, Ctrl-C raises KeyboardInterrupt at once.
    Has no effect outside the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def why_stopped(ended: Any, left: str) -> str:
    """Return the reason for an early end; `left` describes the omitted part, e.g. "calls
    not made"."""
    if not ended.left_out:
        return f"{ended.stopped}"
    return f"stopped, {ended.left_out} {left}: {ended.stopped}"


@contextmanager
def opened(store: str | Path | Store | None = None, *, create: bool = True) -> Iterator[Store]:
    """Yield the store to work on. An open store stays open; a path, or AGENTEVAL_STORE, else
    agenteval.db, is opened (created if missing and `create`) and closed. Raises StoreError.
    """
    if isinstance(store, Store):
        yield store
        return
    with Store(store if store is not None else default_path(), create=create) as opened_store:
        yield opened_store
