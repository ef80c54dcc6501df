"""Socket calls of this process that fail: what a server cannot do from its side.

Sockets made within the block are of a class that counts `connect`, `send` and `recv` before the
system sees them; asyncio, and so every HTTP library over it, calls these methods. What a server of
this process accepts, and sockets of no internet family (the event loop's own), are left alone.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.faulty import NthCall, Verdict

KINDS = ("socket", "connect", "send", "recv")
_METHODS: Mapping[str, str] = {
    "connect": "connect",
    "connect_ex": "connect",
    "send": "send",
    "sendall": "send",
    "sendmsg": "send",
    "recv": "recv",
    "recv_into": "recv",
    "recvmsg": "recv",
}
_INTERNET = (socket.AF_INET, socket.AF_INET6)


@contextlib.contextmanager
def failing(faults: Mapping[str, NthCall], *, cut: bool = False) -> Iterator[None]:
    """Calls on internet sockets made within the block fail as told, by kind (see KINDS).

    `socket` is the making of one (EMFILE when no descriptor is left). A `send` that is to be half
    sends half of its bytes first. With `cut`, a `recv` that is to fail reports the end of the
    stream instead of an error. Raises ValueError for an unknown kind.
    """
    if unknown := set(faults) - set(KINDS):
        raise ValueError(f"no kinds of call: {', '.join(sorted(unknown))}; there are {KINDS}")
    real = socket.socket
    body = {
        name: _counted(getattr(real, name), faults[kind], kind, cut=cut)
        for name, kind in _METHODS.items()
        if kind in faults and hasattr(real, name)
    }
    body["__new__"] = _made(real, faults.get("socket"))
    ours: Any = type("socket", (real,), {"__slots__": (), **body})
    socket.socket = ours  # type: ignore[misc]
    try:
        yield
    finally:
        socket.socket = real  # type: ignore[misc]


def _counted(
    real: Callable[..., Any], fault: NthCall, kind: str, *, cut: bool
) -> Callable[..., Any]:
    def call(self: socket.socket, *arguments: Any) -> Any:
        if self.family not in _INTERNET:
            return real(self, *arguments)
        verdict = fault.next()
        if verdict is Verdict.CARRY_OUT:
            return real(self, *arguments)
        if verdict is Verdict.HALF and real.__name__ == "send" and len(arguments[0]) > 1:
            return real(self, bytes(arguments[0])[: len(arguments[0]) // 2])
        if kind == "recv" and cut:
            return 0 if real.__name__ == "recv_into" else b""
        raise fault.exception()

    return call


def _made(real: type[socket.socket], fault: NthCall | None) -> Callable[..., socket.socket]:
    def make(
        kind: type[socket.socket],
        family: int = -1,
        type: int = -1,
        proto: int = -1,
        fileno: int | None = None,
    ) -> socket.socket:
        if fileno is not None:  # accepted, one of a pair, or a copy: not of our class
            return real(family, type, proto, fileno)
        if fault is not None and family in _INTERNET:
            fault.check()
        return real.__new__(kind)

    return make
