"""What can go wrong in a world, by category: state that is changed before the agent is run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agenteval.evaluators.traces.plant.endpoint import BROKEN_FINALS
from agenteval.evaluators.traces.plant.orders import ORDERS
from agenteval.evaluators.traces.plant.world import Dice, World
from agenteval.records.finding import Impact

ADAPTERS = ("openai_chat", "autogen", "react")
FUNCTION_CALLING = ("openai_chat", "autogen")
_HANGS = 1.2  # seconds; every client here gives up long before


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a world.

    `apply` makes it and `described` is the gold's description. `adapters` are the ways of running
    an agent in which it can show, `form` the demand on the form of the answer: "none", "json",
    "plain" (nothing that would hide words), "end" (at the end of the request), "told" (in the
    instructions), None for any.
    """

    category: str
    name: str
    apply: Callable[[World, Dice], None]
    described: str
    impact: Impact = "HIGH"
    adapters: Sequence[str] = ADAPTERS
    form: str | None = None


def _service(**state: object) -> Callable[[World, Dice], None]:
    def apply(world: World, dice: Dice) -> None:
        for name, value in state.items():
            setattr(world.service, name, value)
        world.service.spared = dice.between(0, 1)

    return apply


def _model(**state: object) -> Callable[[World, Dice], None]:
    def apply(world: World, dice: Dice) -> None:
        for name, value in state.items():
            setattr(world.model, name, value)
        world.model.spared = dice.between(0, 1)

    return apply


def _mouth(**state: object) -> Callable[[World, Dice], None]:
    def apply(world: World, dice: Dice) -> None:
        for name, value in state.items():
            setattr(world.mouth, name, value)

    return apply


def _hang_service(world: World, dice: Dice) -> None:
    world.service.slow, world.tools.patience = _HANGS, 0.25
    world.service.spared = 0


def _hang_model(world: World, dice: Dice) -> None:
    world.model.slow, world.model.healthy_after = _HANGS, dice.pick((1, 9))


def _no_record(world: World, dice: Dice) -> None:
    """The records that the request is about are deleted."""
    world.data["orders"], world.data["customers"] = {}, {}


def _no_variable(world: World, dice: Dice) -> None:
    world.environment.clear()


def _renamed(world: World, dice: Dice) -> None:
    """The schema calls a parameter by a name that the code does not know."""
    world.tools.rename["get_order"] = {"order_id": "id"}


def _left_out(world: World, dice: Dice) -> None:
    """The schema lacks a parameter of the code."""
    world.tools.rename["get_order"] = {"order_id": ""}


def _swapped(world: World, dice: Dice) -> None:
    world.tools.swap["get_order"] = "search_help"


def _cut(world: World, dice: Dice) -> None:
    """The model reads the request only up to the demand on form."""
    world.mouth.cut_request = world.data["demand_at"]


def _final(world: World, dice: Dice) -> None:
    world.mouth.break_final = dice.pick(BROKEN_FINALS)


def _breaks(world: World, dice: Dice) -> None:
    world.mouth.break_call = dice.between(0, 1)


RATE, AUTH, SERVICE = "Rate Limiting", "Authentication Errors", "Service Errors"
FOUND, TIME, SETUP = "Resource Not Found", "Timeout Issues", "Environment Setup Errors"
DEFINED, FORM = "Tool Definition Issues", "Formatting Errors"
TOLD, CONTEXT = "Instruction Non-compliance", "Context Handling Failures"
_CHANGES = (
    Change(RATE, "service quota", _service(quota=0), "the service refuses: too many requests"),
    Change(RATE, "model quota, then free", _model(quota=0, healthy_after=2),
           "the model endpoint refuses twice: too many requests", "LOW"),
    Change(RATE, "model quota", _model(quota=0), "the model endpoint refuses: too many requests"),
    Change(AUTH, "revoked key", _service(key_good=False), "the service does not accept the key"),
    Change(AUTH, "forbidden", _service(forbidden=True), "the service denies access"),
    Change(AUTH, "model key", _model(key_good=False), "the model endpoint does not accept the key"),
    Change(SERVICE, "defect", _service(defect=True), "the service fails with an internal error"),
    Change(SERVICE, "down", _service(down=True), "the service is down"),
    Change(SERVICE, "model down, then up", _model(down=True, healthy_after=1),
           "the model endpoint is unavailable once", "LOW"),
    Change(SERVICE, "model defect", _model(defect=True), "the model endpoint fails"),
    Change(FOUND, "deleted record", _no_record, "what is asked for has been deleted"),
    Change(FOUND, "model gone", _model(gone=True), "the model is not found at the endpoint"),
    Change(TIME, "service hangs", _hang_service, "the service hangs beyond the client's timeout"),
    Change(TIME, "model hangs", _hang_model, "the model endpoint hangs beyond the timeout",
           "MEDIUM"),
    Change(SETUP, "variable", _no_variable, "a variable of the environment is not set"),
    Change(DEFINED, "renamed parameter", _renamed, "schema and code name a parameter differently"),
    Change(DEFINED, "parameter left out", _left_out, "the schema lacks a parameter of the code"),
    Change(DEFINED, "other code", _swapped, "the code behind the tool is that of another tool"),
    Change(FORM, "broken arguments", _breaks, "the arguments of the call are no JSON", "LOW"),
    Change(FORM, "no step", _mouth(no_step=0), "the reply is no step of the required form", "LOW",
           adapters=("react",)),
    Change(FORM, "broken answer", _final, "the answer is not the JSON that was asked for",
           "MEDIUM", form="json"),
    Change(TOLD, "no instructions", _mouth(drop_system=True),
           "the demand on form in the instructions is not followed", "MEDIUM",
           adapters=FUNCTION_CALLING, form="told"),
    Change(TOLD, "cut request", _cut, "the demand at the end of the request is not followed",
           "MEDIUM", form="end"),
    Change(CONTEXT, "too long", _mouth(spare_tokens=20),
           "the conversation no longer fits into the model's context"),
    Change(CONTEXT, "oldest dropped", _mouth(window="oldest"),
           "the task has fallen out of the model's context", form="none"),
    Change(CONTEXT, "middle dropped", _mouth(window="middle"),
           "results of earlier steps have fallen out of the model's context"),
)  # fmt: skip


def changes(category: str | None = None) -> list[Change]:
    """All changes that can show in the sample system, of one category or of all."""
    slips = [
        Change(slip, "the model errs", _mouth(errs=slip), "the model makes a mistake", form="plain")
        for slip in ORDERS.slips
    ]
    return [change for change in (*_CHANGES, *slips) if category in (None, change.category)]


def categories() -> list[str]:
    """The categories of errors that can be planted into the sample system."""
    return list(dict.fromkeys(change.category for change in changes()))
