"""Trials made by a fixed rule, and child processes that store them."""

from __future__ import annotations

import asyncio
import hashlib
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from agenteval.errors import StoreLocked
from agenteval.records import Usage
from agenteval.records.trial import Trial, TrialCase, TrialSystem, source_key
from agenteval.store import Store, Trials
from agenteval.store.experiments import Grid, StoredExperiment, begin, short


def key(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


SYSTEM = TrialSystem(key=key("system"), name="scripted", parameters={"skill": 0.5})
CHECK = key("checker")
OUTCOMES = ("pass", "order_error", "action_lost")


def case(i: int) -> TrialCase:
    return TrialCase(key=key("case", i), id=f"case-{i}", body={"request": f"do {i}", "n": i % 4})


def rank(i: int, number: int) -> int:
    return hashlib.sha256(f"{i}/{number}".encode()).digest()[0]


def trial(i: int, number: int = 0, *, system: str = SYSTEM.key, **fields: Any) -> Trial:
    """A trial as a scripted agent makes it: a function of case and number alone."""
    chosen = {
        "evaluator": "planning",
        "system_key": system,
        "case_key": case(i).key,
        "trial": number,
        "case_id": f"case-{i}",
        "status": "done",
        "outcome": OUTCOMES[rank(i, number) % 3],
        "check_key": CHECK,
        "verdict": {"violated": [number]},
        "log": {"events": [{"name": "a_tool", "turn": t} for t in range(rank(i, number) % 7)]},
        "started": 1000.5 + number,
        "ended": 1001.25 + number,
        "usage": Usage(requests=2, prompt_tokens=10 * i, completion_tokens=3, cost=0.25),
        **fields,
    }
    return Trial.model_validate(chosen)


def failed(i: int, number: int = 0, status: str = "error:infrastructure", **fields: Any) -> Trial:
    nothing = {"outcome": None, "check_key": None, "verdict": None}
    told = {"status": status, "log": {"message": f"no {i}"}}
    return trial(i, number, **{**nothing, **told, **fields})


def known(store: Store, cases: int, *systems: TrialSystem) -> Trials:
    trials = Trials(store)
    for system in systems or (SYSTEM,):
        trials.add_system("planning", system)
    trials.add_cases("planning", [case(i) for i in range(cases)])
    return trials


def begin_trials(
    store: Store, evaluator: str, keys: list[str], trials: int, lock: str | None = None
) -> str:
    """Note that trials are to be made; returns the key of the source."""
    source = source_key(evaluator, SYSTEM.key)
    grid = Grid(short(keys), trials)
    lock = source_key(lock or evaluator, SYSTEM.key)
    begin(store, StoredExperiment(source, evaluator, SYSTEM.name, lock, (grid,), SYSTEM.key))
    return source


def attempt(i: int, number: int, *, broken: bool) -> Trial:
    """One in eight is refused for good; while the endpoint is broken, one in eight fails."""
    kind = rank(i, number) % 8
    if kind == 0:
        return failed(i, number, "unscored:refusal")
    return failed(i, number) if broken and kind == 1 else trial(i, number)


def try_into(path: Path, pipe: Connection, cases: int, trials: int, broken: bool) -> None:
    """Write what is missing, 12 at a time.

    Tells "ready", then each durable trial, then "end" or why it was refused.
    """

    async def work(book: Trials, left: list[tuple[str, int]], of: dict[str, int]) -> None:
        while left:
            case_key, number = left.pop()
            await asyncio.sleep(0.002)
            await book.store.save((), attempt(of[case_key], number, broken=broken))
            pipe.send((case_key, number))

    async def run(book: Trials) -> None:
        of = {case(i).key: i for i in range(cases)}
        settled = {
            (key, number)
            for (key, _, _, number), state in book.store.states(
                source_key("planning", SYSTEM.key), attempts=True
            )
            if not state.open_on_resume
        }
        left = [(k, n) for n in range(trials) for k in of if (k, n) not in settled][::-1]
        async with asyncio.TaskGroup() as group:
            for _ in range(12):
                group.create_task(work(book, left, of))

    with Store(path) as store:
        pipe.send("ready")
        try:
            with store.lock(source_key("planning", SYSTEM.key)):
                asyncio.run(run(known(store, cases)))
        except StoreLocked as error:
            pipe.send(str(error))
        else:
            pipe.send("end")
