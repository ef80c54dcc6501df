"""Planted errors: agents run in a faulty world, so that what went wrong, and where, is known.

A fault alters the world of one run: a key is revoked, a record deleted, the model forgets. The
agent then runs as it always does, under tracing, against a loopback server; nothing is ever written
into a trace. The gold is what the world noted while it happened, at the spans of the requests and
calls in which it showed. The agent is the sample system, support for the orders of a shop
(`plant`), or a team's own (`plant_own`):

    own = OwnSystem(
        name="ours",
        make=lambda url: CallableAgent(load("ours.agent:run")),   # or any factory of an Agent
        tools=TOOLS, backend=make_backend, requests=["..."],
        model_url="https://models.example/v1",                    # None: no model is proxied
    )
    planted = plant_own(own, "Rate Limiting", seed=0, out_dir="planted")

Rulings
- An error of a tool stands at the span of its call, an error of the model or of its endpoint at
  the span of the request. The other span of the pair counts as the place as well (`places`).
- A refusal (429, 503) that the agent gets to see is an error, even when a retry heals it (LOW).
- What the user asks about is data: a 404 that was to be checked is no error.
- What the request is about is missing: Resource Not Found. What the system itself needs is missing
  (a variable of the environment): Environment Setup Errors.
- Resource Abuse stands at the last of the repeated calls, everything else at the first.
"""

from __future__ import annotations

from agenteval.evaluators.traces.plant.make import (
    Harvest,
    Located,
    OwnSystem,
    Planted,
    PlantError,
    own_categories,
    plant,
    plant_own,
    write,
)
from agenteval.evaluators.traces.plant.sample import ABOUT, NAME, SCENES, categories
from agenteval.evaluators.traces.plant.world import Host

__all__ = [
    "ABOUT",
    "NAME",
    "SCENES",
    "Harvest",
    "Host",
    "Located",
    "OwnSystem",
    "PlantError",
    "Planted",
    "categories",
    "own_categories",
    "plant",
    "plant_own",
    "write",
]
