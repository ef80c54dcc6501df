"""Scripted assistants whose behaviour is known, served by every scripted user of every role.

    python -m benchmarks.flows [--roles NAME ...] [--seed 0] [--sessions 200]

One row for each behaviour: users that offer it a place, how often the planted cause is among the
deviations, and how often it is the first; sessions that follow the chart, and success by the final
state. `agree` is the share of sessions in which conformance (no deviation
against chart and gold) and final state say the same; they may differ, since an order can be wrong
and harmless.

Then `--sessions` sessions at once, twice: sessions per second, seconds of CPU for each, and whether
the two logs are the same to the byte (times left out).

Targets: perfect succeeds and conforms always; every planted cause is found in every session; the
logs are the same. Ends with 1 when one is missed.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import cycle, islice

from agenteval.evaluators.workflows.behaviours import CAUSE, Behaviour, behaviours
from agenteval.evaluators.workflows.cases import SessionCase, open_role, session_cases
from agenteval.evaluators.workflows.folder import find_role, role_folders
from agenteval.evaluators.workflows.run_session import SessionSettings, run_session
from agenteval.evaluators.workflows.session import SessionLog
from agenteval.evaluators.workflows.simulated_tools import ToolSimulator
from agenteval.evaluators.workflows.simulated_user import ScriptedUser
from agenteval.evaluators.workflows.verdicts import Verdicts
from benchmarks import outcome


@dataclass
class Row:
    """Counts of one behaviour."""

    users: int = 0
    no_place: int = 0
    found: int = 0
    first: int = 0
    conforms: int = 0
    success: int = 0
    agree: int = 0
    lost: Counter[str] = field(default_factory=Counter)
    planted: Counter[str] = field(default_factory=Counter)


async def one(case: SessionCase, behaviour: Behaviour, seed: int) -> SessionLog | None:
    """A session; None where it failed."""
    assert behaviour.system is not None
    tools = ToolSimulator(backend=case.of.backend)
    settings = SessionSettings(seed=seed)
    log = await run_session(
        case.of.role, case.profile, behaviour.system, ScriptedUser(), tools, settings
    )
    return log if isinstance(log, SessionLog) else None


async def table(cases: Sequence[SessionCase], seed: int) -> dict[str, Row]:
    """All behaviours with all users."""
    verdicts = Verdicts()
    rows: dict[str, Row] = {name: Row() for name in CAUSE}
    for case in cases:
        own = behaviours(case.of.role, case.profile, seed=seed, backend=case.of.backend)
        for name, row in rows.items():
            behaviour = own[name]
            if behaviour.system is None:
                row.no_place += 1
                continue
            log = await one(case, behaviour, seed)
            if log is None:
                row.lost["session failed"] += 1
                continue
            said = await verdicts.session(case, log)
            causes = [d.cause for d in said.deviations]
            right = said.success is True
            row.users += 1
            row.planted[behaviour.planted or "-"] += 1
            row.found += behaviour.planted in causes if behaviour.planted else not causes
            row.first += (causes[0] if causes else None) == behaviour.planted
            row.conforms += said.conforms is not False
            row.success += right
            row.agree += right == (not causes)
    return rows


async def at_once(
    cases: Sequence[SessionCase], sessions: int, seed: int
) -> tuple[float, float, str]:
    """Seconds, seconds of CPU, and all logs as text."""
    chosen = list(islice(cycle(cases), sessions))
    known = {
        c.key: behaviours(c.of.role, c.profile, seed=seed, backend=c.of.backend)["perfect"]
        for c in cases
    }
    perfect = [known[c.key] for c in chosen]
    began, cpu = time.perf_counter(), time.process_time()
    logs = await asyncio.gather(*(one(c, b, seed) for c, b in zip(chosen, perfect, strict=True)))
    spent = time.perf_counter() - began, time.process_time() - cpu
    text = json.dumps([log and log.model_dump(mode="json", exclude={"seconds"}) for log in logs])
    return *spent, text


def show(rows: dict[str, Row]) -> None:
    """Print the table."""
    print(f"{'behaviour':<16}{'planted cause':<40}{'users':>6}{'no place':>9}{'found':>7}"
          f"{'first':>7}{'follows chart':>15}{'success':>9}{'agree':>7}")  # fmt: skip
    for name, row in rows.items():
        n = row.users or 1
        planted = ", ".join(f"{cause} {k}" for cause, k in row.planted.most_common())
        print(f"{name:<16}{planted:<40}{row.users:>6}{row.no_place:>9}"
              f"{row.found / n:>7.2f}{row.first / n:>7.2f}{row.conforms / n:>15.2f}"
              f"{row.success / n:>9.2f}{row.agree / n:>7.2f}")  # fmt: skip


def figures(rows: dict[str, Row]) -> list[outcome.Row]:
    """The targets of the table."""
    found, users = (sum(getattr(row, name) for row in rows.values()) for name in ("found", "users"))
    lost = sum(row.lost.total() for row in rows.values())
    perfect = rows["perfect"]
    sound = min(perfect.success, perfect.conforms)
    return [
        outcome.Row("planted causes found, or none where none is", f"{found}", f"{users}",
                    found == users),
        outcome.Row("sessions lost", f"{lost}", "0", lost == 0),
        outcome.Row("perfect assistant: succeeds and follows the chart", f"{sound}",
                    f"{perfect.users}", sound == perfect.users),
    ]  # fmt: skip


def main() -> int:
    """Print the tables; 1 when a target is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--roles", nargs="+", default=None)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sessions", type=int, default=200)
    options = parser.parse_args()
    names = options.roles or list(role_folders())
    cases = session_cases([open_role(find_role(name)) for name in names])
    print(f"{len(names)} roles, {len(cases)} users")
    rows = asyncio.run(table(cases, options.seed))
    show(rows)
    first = asyncio.run(at_once(cases, options.sessions, options.seed))
    second = asyncio.run(at_once(cases, options.sessions, options.seed))
    same = first[2] == second[2]
    print(f"{options.sessions} sessions at once: {options.sessions / first[0]:.0f} per second, "
          f"{1000 * first[1] / options.sessions:.1f} ms of CPU each; "
          f"twice the same logs: {'yes' if same else 'no'}")  # fmt: skip
    same_row = outcome.Row("logs of two runs with the same seed", "equal" if same else "DIFFERENT",
                           "equal", same)  # fmt: skip
    speed = outcome.Row(f"{options.sessions} sessions at once",
                        f"{options.sessions / first[0]:.0f} per second")  # fmt: skip
    return outcome.finish("flows", [*figures(rows), same_row, speed])


if __name__ == "__main__":
    sys.exit(main())
