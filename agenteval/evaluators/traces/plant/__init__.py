"""Planted errors: agents run in a changed world, so that what went wrong, and where, is known.

The sample system (`ORDERS`) answers questions about the orders of a shop by an HTTP service. A
change (`changes`) alters the world of one run: a key is revoked, a record deleted, the model
forgets. The agent then runs as it always does, through its adapter, under tracing, against a
loopback server; nothing is ever written into a trace. The gold is what the world noted while it
happened, located at the spans of the requests and calls in which it showed.

Rulings
- An error of a tool stands at the span of its call, an error of the model or of its endpoint at
  the span of the request. The other span of the pair counts as the place as well (`places`).
- A refusal (429, 503) that the agent gets to see is an error, even when a retry heals it (LOW).
  One that a tool's own protocol deals with inside the call is none.
- What the user asks about is data: a 404 that was to be checked is no error.
- What the request is about is missing: Resource Not Found. What the system itself needs is missing
  (a variable of the environment): Environment Setup Errors.
- Repeated calls are no error while the service says to ask again or the user wants them repeated.
- Resource Abuse stands at the last of the repeated calls, everything else at the first.

A team's own agent: see `own`.
"""

from __future__ import annotations

from agenteval.evaluators.traces.plant.changes import Change, categories, changes
from agenteval.evaluators.traces.plant.endpoint import Host
from agenteval.evaluators.traces.plant.make import (
    Harvest,
    Located,
    Planted,
    PlantError,
    plant,
    write,
)
from agenteval.evaluators.traces.plant.orders import ORDERS
from agenteval.evaluators.traces.plant.system import Case, TracedSystem

__all__ = [
    "ORDERS",
    "Case",
    "Change",
    "Harvest",
    "Host",
    "Located",
    "PlantError",
    "Planted",
    "TracedSystem",
    "categories",
    "changes",
    "plant",
    "write",
]
