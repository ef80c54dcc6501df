"""Recorded sessions of workflow agents, replayed for every user of the roles that have them.

    python -m benchmarks.flows [--sessions 200]

One row for each recorded agent: its sessions, and how many of them have the deviation that was
planted (none for `perfect`, a missing step for `skips_step`), no other deviation, and the success
that follows. Then `--sessions` sessions at once, twice: sessions per second, CPU time for each, and
whether both runs give the same logs apart from times.

Targets: `perfect` always succeeds and follows the chart; `skips_step` never succeeds, and its
missing step is found; the logs are the same. Ends with 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Sequence
from itertools import cycle, islice

from agenteval.agents import System
from agenteval.workflows.cases import OpenRole, SessionCase, open_role, session_cases
from agenteval.workflows.folder import find_role
from agenteval.workflows.recorded_agent import RecordedAgents
from agenteval.workflows.run_session import SessionSettings, run_session
from agenteval.workflows.session import SessionFailure, SessionLog
from agenteval.workflows.simulated_tools import ToolSimulator
from agenteval.workflows.simulated_user import ScriptedUser
from agenteval.workflows.verdicts import Verdicts
from benchmarks import outcome

ROLES = ("hotel_reception", "meeting_rooms")
PLANTED = {"perfect": [], "skips_step": ["missing_step"]}
Served = tuple[SessionCase, System]


def served(name: str, roles: Sequence[OpenRole]) -> list[Served]:
    """The users with a recorded session of this name, and the agent that replays it."""
    recorded = RecordedAgents.read(name, roles)
    pairs = ((case, recorded.at(case)) for case in session_cases(roles))
    return [(case, system) for case, system in pairs if system is not None]


async def log_of(case: SessionCase, system: System) -> SessionLog | SessionFailure:
    """One session with the scripted user and the role's backend."""
    tools = ToolSimulator(backend=case.of.backend)
    return await run_session(
        case.of.role, case.profile, system, ScriptedUser(), tools, SessionSettings()
    )


async def row(name: str, users: Sequence[Served]) -> outcome.Row:
    """Sessions of one recorded agent that went as its name says."""
    verdicts, right = Verdicts(), 0
    for case, system in users:
        log = await log_of(case, system)
        if isinstance(log, SessionLog):
            verdict = await verdicts.session(case, log)
            causes = [d.cause for d in verdict.deviations]
            right += causes == PLANTED[name] and verdict.success is (name == "perfect")
    what = f"recorded:{name}: success and deviations as planted"
    return outcome.Row(what, f"{right}", f"{len(users)}", right == len(users))


async def at_once(users: Sequence[Served], sessions: int) -> tuple[float, float, str]:
    """Seconds, seconds of CPU, and all logs as text."""
    chosen = islice(cycle(users), sessions)
    began, cpu = time.perf_counter(), time.process_time()
    logs = await asyncio.gather(*(log_of(case, system) for case, system in chosen))
    spent = time.perf_counter() - began, time.process_time() - cpu
    return *spent, json.dumps([log.model_dump(mode="json", exclude={"seconds"}) for log in logs])


def main() -> int:
    """Print the rows; 1 when a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sessions", type=int, default=200)
    options = parser.parse_args()
    roles = [open_role(find_role(name)) for name in ROLES]
    users = {name: served(name, roles) for name in PLANTED}
    rows = [asyncio.run(row(name, pairs)) for name, pairs in users.items()]
    first, second = (asyncio.run(at_once(users["perfect"], options.sessions)) for _ in range(2))
    same = first[2] == second[2]
    each = 1000 * first[1] / options.sessions
    rows += [
        outcome.Row("logs of two runs", "equal" if same else "DIFFERENT", "equal", same),
        outcome.Row(
            f"{options.sessions} sessions at once",
            f"{options.sessions / first[0]:.0f} per second, {each:.1f} ms of CPU each",
        ),
    ]
    for entry in rows:
        print(f"{entry.what}: {entry.measured}" + (f" of {entry.target}" if entry.target else ""))
    return outcome.finish("flows", rows)


if __name__ == "__main__":
    sys.exit(main())
