"""Scripted assistants do what their names say, and conformance finds what was planted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.evaluators.workflows.align import conform
from agenteval.evaluators.workflows.conformance import Call, Conformance
from agenteval.evaluators.workflows.procedure import procedure
from agenteval.evaluators.workflows.run_session import SessionSettings, run_session
from agenteval.evaluators.workflows.scenario import Profile
from agenteval.evaluators.workflows.scripted.behaviours import (
    CAUSE,
    behaviours,
    scripted_assistants,
)
from agenteval.evaluators.workflows.session import SessionLog
from agenteval.evaluators.workflows.simulators.tools import ToolSimulator
from agenteval.evaluators.workflows.simulators.user_scripted import ScriptedUser
from tests.evaluators.workflows.simulators.desk import BACKEND, PROFILES, ROLE

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


async def test_two_steps_are_swapped() -> None:
    assert calls(await log_of("hana", "swaps_steps")) == [LEND, FIND]


@pytest.mark.parametrize("seed", range(6))
async def test_a_parameter_is_wrong(seed: int) -> None:
    log = await log_of("hana", "wrong_parameter", seed=seed)
    assert calls(log)[0] == FIND
    assert calls(log)[1][0] == "lend_book"
    assert calls(log)[1] != LEND
    assert [c.status for c in log.calls] == ["ok", "bad_arguments"]


async def test_the_wrong_branch_is_taken() -> None:
    log = await log_of("otto", "wrong_branch")
    assert calls(log) == [
        ("find_book", {"title": "Emma"}),
        ("lend_book", {"title": "Emma", "reader_id": "R-17"}),
    ]


async def test_it_stops_early() -> None:
    log = await log_of("otto", "stops_early")
    assert [c.tool for c in log.calls] == ["find_book", "find_book"]
    assert log.ended == "user"
    assert log.messages[-1].content.endswith("Goodbye.")


async def test_it_loops_until_it_is_stopped() -> None:
    log = await log_of("hana", "loops")
    assert (log.ended, calls(log)) == ("agent", [FIND] * 20)


def test_what_has_no_place_is_said() -> None:
    found = behaviours(ROLE, PROFILES["ida"])
    assert {kind: b.why_not for kind, b in found.items() if b.system is None} == {
        "swaps_steps": "no two steps that follow each other have a fixed order",
        "wrong_branch": "no wrong branch leads to another call",
        "loops": "no call only reads and may not be repeated",
    }
    assert set(found) == {*CAUSE, "random"}
    idle = PROFILES["ida"].model_copy(
        update={"goals": (PROFILES["ida"].goals[0].model_copy(update={"actions": ()}),)}
    )
    planted = behaviours(ROLE, idle)
    assert {b.why_not for b in planted.values() if b.system is None} == {"the user wants no call"}
    assert planted["random"].kind == "perfect"


def test_gold_calls_that_are_no_walk_have_no_place() -> None:
    hana = PROFILES["hana"]
    goal = hana.goals[0].model_copy(update={"actions": tuple(reversed(hana.actions))})
    found = behaviours(ROLE, hana.model_copy(update={"goals": (goal,)}))
    assert found["skips_step"].why_not == "the gold calls are no walk through the charts"


class Strict(BACKEND):  # type: ignore[misc,valid-type]
    """Lends only what was looked up before."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: set[str] = set()

    def find_book(self, title: str) -> Any:
        self.seen.add(title)
        return super().find_book(title)

    def lend_book(self, title: str, reader_id: str) -> Any:
        if title not in self.seen:
            raise ValueError("look it up first")
        return super().lend_book(title, reader_id)


def test_a_place_where_the_tools_refuse_counts_only_without_rehearsal() -> None:
    hana = PROFILES["hana"]
    assert behaviours(ROLE, hana)["swaps_steps"].system is not None
    assert behaviours(ROLE, hana, backend=BACKEND)["swaps_steps"].system is not None
    refused = behaviours(ROLE, hana, backend=Strict)["swaps_steps"]
    assert refused.why_not == "wherever it is planted, the tools make another mistake of it"


def test_the_seed_decides_and_is_all_that_decides() -> None:
    otto = PROFILES["otto"]

    def chosen(seed: int) -> list[Any]:
        return [
            (b.name, b.kind, b.at, b.planted) for b in behaviours(ROLE, otto, seed=seed).values()
        ]

    assert chosen(3) == chosen(3)
    assert len({tuple(chosen(seed)) for seed in range(8)}) > 1
    assert len({behaviours(ROLE, otto, seed=s)["random"].kind for s in range(20)}) > 3


def test_what_identifies_them() -> None:
    systems = scripted_assistants(ROLE, PROFILES["otto"])
    assert len({s.sha256 for s in systems.values()}) == len(systems)
    other = scripted_assistants(ROLE, PROFILES["hana"])
    assert other["perfect"].sha256 == systems["perfect"].sha256
    assert other["stops_early"].sha256 != systems["stops_early"].sha256


LOST = """flowchart TD
LB000(Start)--Ask for a book-->LB001>Get the title, call find_book, and go by the returned is_in]
LB001--In (is_in = true)-->LB002[Ask whether the reader takes it home]
LB001--Out (is_in = false)-->LB003[Ask what else the reader wants]
LB003--Another book-->LB001
LB003--Lend it all the same-->LB004>Call lend_book]
LB002--Read it here-->LB005[Say goodbye]
LB004-->LB005
"""


async def test_a_wrong_branch_is_followed_past_the_users_will() -> None:
    """The book is in; the wrong edge leads to a question, of whose answers one leads to a call."""
    lend, *others = ROLE.scenarios
    role = ROLE.model_copy(
        update={"scenarios": (lend.model_copy(update={"flowchart": LOST}), *others)}
    )
    hana = PROFILES["hana"]
    goal = hana.goals[0].model_copy(update={"actions": hana.actions[:1]})
    profile = hana.model_copy(
        update={"goals": (goal,), "choices": ("Ask for a book", "Read it here")}
    )
    for backend in (None, BACKEND):
        planted = behaviours(role, profile, backend=backend)["wrong_branch"]
        assert planted.planted == "wrong_transition"
        assert planted.system is not None
        log = await run_session(
            role, profile, planted.system, ScriptedUser(), ToolSimulator(backend=BACKEND),
            SessionSettings(),
        )  # fmt: skip
        assert isinstance(log, SessionLog)
        assert calls(log) == [FIND, LEND]
        made = conform(
            procedure(role, profile.scenarios),
            [
                Call(tool=c.tool, arguments=c.arguments, carried_out=c.status == "ok",
                     returned=json.loads(c.result))
                for c in log.calls
            ],
        )  # fmt: skip
        assert made.cause == "wrong_transition"
