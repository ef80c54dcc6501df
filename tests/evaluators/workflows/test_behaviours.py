"""Scripted assistants do what their names say, and conformance finds what was planted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.evaluators.workflows.align import Call
from agenteval.evaluators.workflows.behaviours import (
    CAUSE,
    behaviours,
    scripted_assistants,
)
from agenteval.evaluators.workflows.conformance import Conformance, conform
from agenteval.evaluators.workflows.procedure import procedure
from agenteval.evaluators.workflows.run_session import SessionSettings, run_session
from agenteval.evaluators.workflows.scenario import Profile
from agenteval.evaluators.workflows.session import SessionLog
from agenteval.evaluators.workflows.simulated_tools import ToolSimulator
from agenteval.evaluators.workflows.simulated_user import ScriptedUser
from tests.evaluators.workflows.desk import BACKEND, PROFILES, ROLE

FIND, LEND = ("find_book", {"title": "Dune"}), ("lend_book", {"title": "Dune", "reader_id": "R-20"})


async def log_of(name: str, kind: str, *, seed: int = 0) -> SessionLog:
    profile = PROFILES[name]
    found = await run_session(
        ROLE,
        profile,
        scripted_assistants(ROLE, profile, seed=seed, backend=BACKEND)[kind],
        ScriptedUser(),
        ToolSimulator(backend=BACKEND),
        SessionSettings(seed=seed),
    )
    assert isinstance(found, SessionLog), found
    return found


def calls(log: SessionLog) -> list[tuple[str, Any]]:
    return [(c.tool, c.arguments) for c in log.calls]


def conformance(profile: Profile, log: SessionLog) -> Conformance:
    made = [
        Call(
            tool=c.tool,
            arguments=c.arguments,
            carried_out=c.status == "ok",
            problem="" if c.status == "ok" else c.result,
            returned=json.loads(c.result) if c.status == "ok" else None,
        )
        for c in log.calls
    ]
    return conform(procedure(ROLE, profile.scenarios), made)


@pytest.mark.parametrize("name", list(PROFILES))
async def test_each_is_found_out(name: str) -> None:
    profile = PROFILES[name]
    for kind, behaviour in behaviours(ROLE, profile, backend=BACKEND).items():
        if behaviour.system is not None:
            found = conformance(profile, await log_of(name, kind))
            assert found.cause == behaviour.planted, kind


async def test_a_step_is_left_out() -> None:
    log = await log_of("hana", "skips_step")
    assert calls(log) == [FIND]
    assert "reader_id: R-20" in [m.content for m in log.messages]  # asked for all the same
    assert log.messages[-1].content.startswith("Tell the day in due")  # as if it were done


def test_what_has_no_place_is_said() -> None:
    assert set(behaviours(ROLE, PROFILES["ida"])) == set(CAUSE)
    idle = PROFILES["ida"].model_copy(
        update={"goals": (PROFILES["ida"].goals[0].model_copy(update={"actions": ()}),)}
    )
    planted = behaviours(ROLE, idle)
    assert planted["perfect"].system is not None
    assert planted["skips_step"].system is None
    assert planted["skips_step"].why_not == "the user wants no call"


def test_gold_calls_that_are_no_walk_have_no_place() -> None:
    hana = PROFILES["hana"]
    goal = hana.goals[0].model_copy(update={"actions": tuple(reversed(hana.actions))})
    found = behaviours(ROLE, hana.model_copy(update={"goals": (goal,)}))
    assert found["skips_step"].why_not == "the gold calls are no walk through the charts"


class Shut(BACKEND):  # type: ignore[misc,valid-type]
    """Lends nothing."""

    def lend_book(self, title: str, reader_id: str) -> Any:
        raise ValueError("come back tomorrow")


def test_a_place_counts_only_where_the_perfect_assistant_is_served() -> None:
    hana = PROFILES["hana"]
    assert behaviours(ROLE, hana)["skips_step"].system is not None
    assert behaviours(ROLE, hana, backend=BACKEND)["skips_step"].system is not None
    refused = behaviours(ROLE, hana, backend=Shut)["skips_step"]
    assert refused.why_not == "wherever it is planted, the tools make another mistake of it"


def test_a_step_that_nobody_misses_is_no_place() -> None:
    """Where lending is up to the user, and then where looking up is."""
    chart = """flowchart TD
A(Start)--Ask for a book-->B>Get the title, call find_book]
B--Take it home-->C>Call lend_book]
B--Read it here-->D[Say goodbye]
C-->D
"""
    lend, *others = ROLE.scenarios
    role = ROLE.model_copy(
        update={"scenarios": (lend.model_copy(update={"flowchart": chart}), *others)}
    )
    choices = {"choices": ("Ask for a book", "Take it home")}
    hana = PROFILES["hana"].model_copy(update=choices)
    assert behaviours(role, hana)["skips_step"].at == 0  # without lending it is a walk too
    goal = hana.goals[0].model_copy(update={"actions": hana.actions[:1]})
    chart = "flowchart TD\nA(Start)--Ask-->B>Call find_book]\nA--Leave-->C[Bye]\nB-->C\n"
    role = ROLE.model_copy(
        update={"scenarios": (lend.model_copy(update={"flowchart": chart}), *others)}
    )
    user = hana.model_copy(update={"goals": (goal,), "choices": ("Ask",)})
    found = behaviours(role, user)["skips_step"]
    assert found.why_not == "no step is missed when it is left out"


def test_what_identifies_them() -> None:
    systems = scripted_assistants(ROLE, PROFILES["otto"], backend=BACKEND)
    assert len({s.sha256 for s in systems.values()}) == len(systems)
    other = scripted_assistants(ROLE, PROFILES["hana"], backend=BACKEND)
    assert other["perfect"].sha256 == systems["perfect"].sha256
    assert other["skips_step"].sha256 != systems["skips_step"].sha256
