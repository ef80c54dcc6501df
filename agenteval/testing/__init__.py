"""For tests and benchmarks: a scriptable server that speaks the OpenAI protocol.

`serve` runs it in a thread, `spawn` and `python -m agenteval.testing.server` as a process. No
other package of agenteval imports this one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agenteval.testing.faults import HEALING, KINDS, RETRY_AFTER_FORMS, Fault, Latency, Rule

if TYPE_CHECKING:
    from agenteval.testing.server import DEFAULT, Child, Server, serve, spawn

__all__ = [
    "DEFAULT",
    "HEALING",
    "KINDS",
    "RETRY_AFTER_FORMS",
    "Child",
    "Fault",
    "Latency",
    "Rule",
    "Server",
    "serve",
    "spawn",
]


def __getattr__(name: str) -> Any:
    # Late, because `python -m agenteval.testing.server` must not find its module imported already.
    if name in __all__:
        from agenteval.testing import server

        return getattr(server, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
