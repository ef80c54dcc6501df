"""For tests and benchmarks: a scriptable loopback server that speaks the OpenAI protocol.

In a test, in a thread of its own::

    with serve(answer=lambda body, n: "yes", faults=[Rule(Fault("reset"), first=2)]) as s:
        client = openai.OpenAI(base_url=s.base_url, api_key="none")

As a process: `spawn`, or `python -m agenteval.testing.server`. No other package of agenteval
imports this one.
"""

from agenteval.testing.engine import DEFAULT
from agenteval.testing.faults import HEALING, KINDS, Fault, Latency, Rule
from agenteval.testing.serving import Server, ServerProcess, serve, spawn
from agenteval.testing.wire import RETRY_AFTER_FORMS

__all__ = [
    "DEFAULT",
    "HEALING",
    "KINDS",
    "RETRY_AFTER_FORMS",
    "Fault",
    "Latency",
    "Rule",
    "Server",
    "ServerProcess",
    "serve",
    "spawn",
]
