"""SIGTERM and SIGHUP end a command as Ctrl-C does: what is under way is finished and kept.

`timeout`, `docker stop`, batch systems and service managers send SIGTERM; a terminal that is closed
sends SIGHUP. A second one, of whichever kind, ends the command without waiting.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT


@dataclass
class Caught:
    """Which signal came first, None as long as there is none but Ctrl-C."""

    number: int | None = None

    @property
    def code(self) -> int:
        """What an interrupted command ends with: 128 + the signal's number, as in a shell."""
        return INTERRUPTED if self.number is None else 128 + self.number

    @property
    def told(self) -> str:
        """What it is called."""
        return "interrupted" + (f" by {signal.Signals(self.number).name}" if self.number else "")


@contextmanager
def as_interrupts() -> Iterator[Caught]:
    """Within the block the signals act as Ctrl-C; handlers are put back at its end.

    A signal that is ignored stays so (SIGHUP under nohup). Outside of the main thread, where no
    handler can be set, nothing is changed.
    """
    caught = Caught()
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def handler(number: int, frame: FrameType | None) -> None:
        caught.number = caught.number or number
        interrupt = signal.getsignal(signal.SIGINT)  # asyncio has its own while it runs
        if not callable(interrupt):
            raise KeyboardInterrupt
        interrupt(signal.SIGINT, frame)

    names = [n for n in ("SIGTERM", "SIGHUP") if hasattr(signal, n)]
    before = {n: signal.getsignal(n) for n in (getattr(signal, name) for name in names)}
    mine = [n for n, old in before.items() if old is signal.SIG_DFL]
    with _interruptible():
        try:
            for number in mine:
                signal.signal(number, handler)
            yield caught
        finally:
            for number in mine:
                signal.signal(number, before[number])


@contextmanager
def put_off(told: Callable[[], None]) -> Iterator[Callable[[], bool]]:
    """Within the block the first Ctrl-C calls `told` and is kept until it is asked for: yields the
    function that says whether there was one. The second is a KeyboardInterrupt.

    For work in pieces, each with an event loop of its own or none. Outside of the main thread, and
    where Ctrl-C has another handler, nothing is changed.
    """
    came: list[int] = []
    mine = threading.current_thread() is threading.main_thread()
    if not mine or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield lambda: False
        return

    def handler(number: int, frame: FrameType | None) -> None:
        if came:
            signal.default_int_handler(number, frame)
        came.append(number)
        # in a thread: this may have interrupted a write to the very stream that it is told on
        threading.Thread(target=told, daemon=True).start()

    signal.signal(signal.SIGINT, handler)
    try:
        yield lambda: bool(came)
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@contextmanager
def _interruptible() -> Iterator[None]:
    """Where Ctrl-C is ignored, as in the background of a script, it stays without effect, but
    asyncio finds the handler that makes it cancel its main task in order."""
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN or not hasattr(
        signal, "pthread_sigmask"
    ):
        yield
        return
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # one that is pending is forgotten
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
