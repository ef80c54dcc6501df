"""What can go wrong in a world, by category: state that is changed before the agent is run."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from agenteval.evaluators.traces.plant.dice import Dice
from agenteval.evaluators.traces.plant.endpoint import BROKEN_FINALS
from agenteval.evaluators.traces.plant.system import TracedSystem
from agenteval.evaluators.traces.plant.systems.figures import DATABASE
from agenteval.evaluators.traces.plant.world import World
from agenteval.records.finding import Impact

ADAPTERS = ("openai_chat", "autogen", "react")
FUNCTION_CALLING = ("openai_chat", "autogen")
_HANGS = 1.2  # seconds; every client here gives up long before


@dataclass(frozen=True, slots=True)
class Change:
    """One change of a world.

    `apply` makes it and `described` is the gold's description. `needs` is what a system must have
    ("" for nothing), `adapters` the ways of running an agent in which it can show, `form` the
    demand on the form of the answer: "none", "json", "plain" (nothing that would hide words),
    "end" (at the end of the request), "told" (in the instructions), None for any.
    """

    category: str
    name: str
    apply: Callable[[World, Dice, TracedSystem], None]
    described: str
    impact: Impact = "HIGH"
    needs: str = ""
    adapters: Sequence[str] = ADAPTERS
    form: str | None = None


def _service(**state: object) -> Callable[[World, Dice, TracedSystem], None]:
    def apply(world: World, dice: Dice, system: TracedSystem) -> None:
        for name, value in state.items():
            setattr(world.service, name, value)
        world.service.spared = dice.between(0, 1)

    return apply


def _model(**state: object) -> Callable[[World, Dice, TracedSystem], None]:
    def apply(world: World, dice: Dice, system: TracedSystem) -> None:
        for name, value in state.items():
            setattr(world.model, name, value)
        world.model.spared = dice.between(0, 1)

    return apply


def _mouth(**state: object) -> Callable[[World, Dice, TracedSystem], None]:
    def apply(world: World, dice: Dice, system: TracedSystem) -> None:
        for name, value in state.items():
            setattr(world.mouth, name, value)

    return apply


def _hang_service(world: World, dice: Dice, system: TracedSystem) -> None:
    world.service.slow, world.tools.patience = _HANGS, 0.25
    world.service.spared = 0


def _hang_model(world: World, dice: Dice, system: TracedSystem) -> None:
    world.model.slow, world.model.healthy_after = _HANGS, dice.pick((1, 9))


def _no_record(world: World, dice: Dice, system: TracedSystem) -> None:
    """The records that the request is about are deleted."""
    for name in ("orders", "customers", "events"):
        if name in world.data:
            world.data[name] = {}
    if "trips" in world.data:
        world.service.gone = True


def _no_file(world: World, dice: Dice, system: TracedSystem) -> None:
    """The files are removed after the index of the folder was made."""
    for path in world.folder.glob("supplier_*"):
        path.unlink()
    for path in world.folder.glob("data.csv"):
        path.unlink()


def _no_table(world: World, dice: Dice, system: TracedSystem) -> None:
    import sqlite3

    with sqlite3.connect(world.folder / DATABASE) as base:
        base.execute("DROP TABLE sales")
    base.close()


def _no_variable(world: World, dice: Dice, system: TracedSystem) -> None:
    world.environment.clear()


def _no_module(world: World, dice: Dice, system: TracedSystem) -> None:
    (world.folder / "helper.py").unlink()


def _no_interpreter(world: World, dice: Dice, system: TracedSystem) -> None:
    world.data["python"] = "/opt/python3.10/bin/python3"


def _no_database(world: World, dice: Dice, system: TracedSystem) -> None:
    (world.folder / DATABASE).unlink()


def _full_disk(world: World, dice: Dice, system: TracedSystem) -> None:
    """The file to write is a device without room."""
    (world.folder / "summary.txt").symlink_to("/dev/full")


def _full_database(world: World, dice: Dice, system: TracedSystem) -> None:
    import sqlite3

    base = sqlite3.connect(world.folder / DATABASE)
    world.data["pages"] = base.execute("PRAGMA page_count").fetchone()[0]
    base.close()


def _little_memory(world: World, dice: Dice, system: TracedSystem) -> None:
    """The data need more than the 100 MB that programs may have."""
    world.data["most_bytes"] = 100 * 2**20
    row = (world.folder / "data.csv").read_text().splitlines()[1]
    head = (world.folder / "data.csv").read_text().splitlines()[0]
    (world.folder / "data.csv").write_text("\n".join([head, *[row] * 300_000]) + "\n")


def _silent_pipe(world: World, dice: Dice, system: TracedSystem) -> None:
    """Files are pipes into which nobody writes."""
    world.tools.patience = 0.3
    paths = [*world.folder.glob("supplier_*"), *world.folder.glob("data.csv")]
    for path in paths:
        path.unlink()
        os.mkfifo(path)


def _locked_database(world: World, dice: Dice, system: TracedSystem) -> None:
    """Another program holds the database."""
    import sqlite3

    world.tools.patience = 0.25
    holder = sqlite3.connect(world.folder / DATABASE, check_same_thread=False)
    holder.isolation_level = None
    holder.execute("BEGIN EXCLUSIVE")
    world.at_end.append(holder.close)


def _renamed(world: World, dice: Dice, system: TracedSystem) -> None:
    """The schema calls a parameter by a name that the code does not know."""
    name = {
        "get_order": ("order_id", "id"), "read_file": ("name", "path"),
        "list_day": ("day", "date"), "run_sql": ("query", "statement"),
        "search_trips": ("destination", "to"), "run_python": ("code", "source"),
    }[system.victim]  # fmt: skip
    world.tools.rename[system.victim] = {name[0]: name[1]}


def _left_out(world: World, dice: Dice, system: TracedSystem) -> None:
    """The schema lacks a parameter that the code needs."""
    name = {
        "get_order": "order_id", "read_file": "name", "list_day": "day",
        "run_sql": "query", "search_trips": "destination", "run_python": "code",
    }[system.victim]  # fmt: skip
    world.tools.rename[system.victim] = {name: ""}


def _swapped(world: World, dice: Dice, system: TracedSystem) -> None:
    world.tools.swap[system.victim] = system.swapped


def _cut(world: World, dice: Dice, system: TracedSystem) -> None:
    """The model reads the request only up to the demand on form."""
    world.mouth.cut_request = world.data["demand_at"]


def _final(world: World, dice: Dice, system: TracedSystem) -> None:
    world.mouth.break_final = dice.pick(BROKEN_FINALS)


def _breaks(world: World, dice: Dice, system: TracedSystem) -> None:
    world.mouth.break_call = dice.between(0, 1)


RATE, AUTH, SERVICE = "Rate Limiting", "Authentication Errors", "Service Errors"
FOUND, TIME, SETUP = "Resource Not Found", "Timeout Issues", "Environment Setup Errors"
FULL, DEFINED, FORM = "Resource Exhaustion", "Tool Definition Issues", "Formatting Errors"
TOLD, CONTEXT = "Instruction Non-compliance", "Context Handling Failures"
_CHANGES = (
    Change(RATE, "service quota", _service(quota=0), "the service refuses: too many requests",
           needs="service"),
    Change(RATE, "model quota, then free", _model(quota=0, healthy_after=2),
           "the model endpoint refuses twice: too many requests", "LOW"),
    Change(RATE, "model quota", _model(quota=0), "the model endpoint refuses: too many requests"),
    Change(AUTH, "revoked key", _service(key_good=False), "the service does not accept the key",
           needs="service"),
    Change(AUTH, "forbidden", _service(forbidden=True), "the service denies access",
           needs="service"),
    Change(AUTH, "model key", _model(key_good=False), "the model endpoint does not accept the key"),
    Change(SERVICE, "defect", _service(defect=True), "the service fails with an internal error",
           needs="service"),
    Change(SERVICE, "down", _service(down=True), "the service is down", needs="service"),
    Change(SERVICE, "model down, then up", _model(down=True, healthy_after=1),
           "the model endpoint is unavailable once", "LOW"),
    Change(SERVICE, "model defect", _model(defect=True), "the model endpoint fails"),
    Change(FOUND, "deleted record", _no_record, "what is asked for has been deleted",
           needs="service"),
    Change(FOUND, "removed file", _no_file, "the file has been removed", needs="files"),
    Change(FOUND, "removed data", _no_file, "the file of data has been removed", needs="programs"),
    Change(FOUND, "dropped table", _no_table, "the table has been dropped", needs="database"),
    Change(FOUND, "model gone", _model(gone=True), "the model is not found at the endpoint"),
    Change(TIME, "service hangs", _hang_service, "the service hangs beyond the client's timeout",
           needs="service"),
    Change(TIME, "pipe", _silent_pipe, "the file never comes to an end", needs="files"),
    Change(TIME, "program waits", _silent_pipe, "the program waits for data that never come",
           needs="programs"),
    Change(TIME, "locked", _locked_database, "the database is held by another program",
           needs="database"),
    Change(TIME, "model hangs", _hang_model, "the model endpoint hangs beyond the timeout",
           "MEDIUM"),
    Change(SETUP, "variable", _no_variable, "a variable of the environment is not set"),
    Change(SETUP, "module", _no_module, "a module of the project is missing", needs="programs"),
    Change(SETUP, "interpreter", _no_interpreter, "the interpreter of the programs is missing",
           needs="programs"),
    Change(SETUP, "database file", _no_database, "the database is not there", needs="database"),
    Change(FULL, "device", _full_disk, "there is no space left to write", needs="files"),
    Change(FULL, "database full", _full_database, "the database has no room left",
           needs="database"),
    Change(FULL, "memory", _little_memory, "the program runs out of memory", needs="programs"),
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


def changes(system: TracedSystem, category: str | None = None) -> list[Change]:
    """All changes that can show in a system, of one category or of all."""
    found = [c for c in _CHANGES if not c.needs or c.needs in system.has]
    found += [
        Change(slip, "the model errs", _mouth(errs=slip), "the model makes a mistake", form="plain")
        for slip in system.slips
    ]
    return [c for c in found if category in (None, c.category)]


def categories(system: TracedSystem) -> list[str]:
    """The categories of errors that can be planted into a system."""
    return list(dict.fromkeys(c.category for c in changes(system)))
