"""SIGTERM and SIGHUP act as Ctrl-C: the first lets requests finish, the second ends at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

INTERRUPTED = 128 + signal.SIGINT


@dataclass
class Caught:
    """The first signal that came other than Ctrl-C, or None."""

    number: int | None = None

    @property
    def code(self) -> int:
        """Exit code of an interrupted command: 128 + the number of the signal, as in a shell."""
        return INTERRUPTED if self.number is None else 128 + self.number

    @property
    def told(self) -> str:
        """Return "interrupted", with the name of the signal."""
        return "interrupted" + (f" by {signal.Signals(self.number).name}" if self.number else "")


@contextmanager
def as_interrupts() -> Iterator[Caught]:
    """Within the block the signals act as Ctrl-C; the old handlers are restored at its end.

    An ignored signal stays ignored: SIGHUP under nohup, Ctrl-C in the background of a script.
    Outside the main thread, where no handler can be set, nothing changes.
    """
    caught = Caught()
    if threading.current_thread() is not threading.main_thread():
        yield caught
        return

    def handler(number: int, frame: FrameType | None) -> None:
        caught.number = caught.number or number
        interrupt = signal.getsignal(signal.SIGINT)  # asyncio sets its own while it runs
        if not callable(interrupt):
            raise KeyboardInterrupt
        interrupt(signal.SIGINT, frame)

    signals = [getattr(signal, n) for n in ("SIGTERM", "SIGHUP") if hasattr(signal, n)]
    signals = [number for number in signals if signal.getsignal(number) is signal.SIG_DFL]
    mask = None
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN and hasattr(signal, "pthread_sigmask"):
        # asyncio drains only if it finds the default handler; blocking keeps Ctrl-C ignored
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for number in signals:
            signal.signal(number, handler)
        yield caught
    finally:
        for number in signals:
            signal.signal(number, signal.SIG_DFL)
        if mask is not None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # forgets one that is pending
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
