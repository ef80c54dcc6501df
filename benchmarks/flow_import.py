"""How long `flow import` takes on a state of real size.

    python -m benchmarks.flow_import [--sessions 200] [--quick]

The role is a shop with 5 MB of users and orders as JSON. Each session has five calls: two reads,
two writes, and one that the backend refuses after it has changed the state. All are imported into a
new store, as is and, in the same process, with a deep copy of the whole state for each call and
each comparison, as version 0.2.0 did. The verdicts and logs of both must be equal.

Target: a third of the CPU time at most. Ends with 1 when it is missed or the results differ.
"""

from __future__ import annotations

import argparse
import copy
import json
import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import agenteval
from agenteval.workflows import final_state, trajectories
from benchmarks import outcome

TASKS = 50  # the sessions are trials of so many tasks
BACKEND = '''
import json
from pathlib import Path

TEXT = (Path(__file__).parent / "state.json").read_text()


class Backend:
    def __init__(self) -> None:
        self.state = json.loads(TEXT)

    def find_user(self, user: str) -> dict:
        """Look a user up."""
        return self.state["users"][user]

    def find_order(self, order: str) -> dict:
        """Look an order up."""
        return self.state["orders"][order]

    def cancel(self, order: str) -> dict:
        """Cancel an order."""
        found = self.state["orders"][order]
        if found["status"] == "cancelled":
            found["status"] = "confused"
            raise ValueError("cancelled already")
        found["status"] = "cancelled"
        return found

    def add_credit(self, user: str, amount: int) -> dict:
        """Credit an amount to a user."""
        self.state["users"][user]["credit"] += amount
        return {"credit": self.state["users"][user]["credit"]}
'''


def write_shop(folder: Path) -> None:
    """Write the role."""
    draw = random.Random(0)
    users = {
        f"u{i}": {
            "name": f"Name {i}",
            "address": {"street": f"{i} Long Street", "zip": f"{i:05}"},
            "orders": [f"W{j}" for j in range(i, i + i % 5)],
            "credit": draw.randrange(100),
        }
        for i in range(10_000)
    }
    orders = {
        f"W{i}": {
            "user": f"u{i}",
            "items": [{"id": f"{i * k}", "price": k * 1.5, "colour": "red"} for k in range(6)],
            "status": "pending",
        }
        for i in range(10_000)
    }
    folder.mkdir()
    (folder / "policy.md").write_text("Serve the customers of a shop.")
    (folder / "backend.py").write_text(BACKEND)
    (folder / "state.json").write_text(json.dumps({"users": users, "orders": orders}))


def session(number: int) -> dict[str, Any]:
    """One recorded session; every other one forgets the credit."""
    task = number % TASKS
    user, order = {"user": f"u{task}"}, {"order": f"W{task}"}
    credit = {**user, "amount": 5 if number % 2 else 6}
    steps: list[tuple[str, dict[str, Any]]] = [
        ("find_user", user),
        ("find_order", order),
        ("cancel", order),
        ("cancel", order),
        ("add_credit", credit),
    ]
    calls = [
        {"id": f"c{i}", "function": {"name": name, "arguments": json.dumps(arguments)}}
        for i, (name, arguments) in enumerate(steps)
    ]
    wanted = [("cancel", order), ("add_credit", {**user, "amount": 5})]
    actions = [{"name": name, "kwargs": arguments} for name, arguments in wanted]
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Cancel my order."}]
    messages += [{"role": "assistant", "tool_calls": [call]} for call in calls]
    return {
        "task_id": task,
        "trial": number // TASKS,
        "info": {"task": {"actions": actions, "outputs": [], "instruction": "Cancel."}},
        "traj": [*messages, {"role": "user", "content": "###STOP###"}],
    }


def imported(role: Path, sessions: Path, store: Path) -> tuple[float, str]:
    """Return the CPU seconds of an import, and the tables that it gave."""
    began = time.process_time()
    report = agenteval.flow_import(role, sessions, store=store)
    spent = time.process_time() - began
    tables = [repr(table.rows) for table in report.tables]
    return spent, json.dumps([report.exit_code, tables])


def copy_everything() -> None:
    """Replace what saves copies by deep copies."""
    shared = final_state.as_json

    def snapshot(state: dict[str, Any]) -> Callable[[], dict[str, Any]]:
        copied = copy.deepcopy(state)
        return lambda: copied

    def as_json(value: object, where: str, base: object = None) -> Any:
        return shared(value, where)

    trajectories._snapshot = snapshot
    for module in (trajectories, final_state):
        vars(module)["as_json"] = as_json


def main() -> int:
    """Print the figures; 1 when the target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="20 sessions")
    options = parser.parse_args()
    number = 20 if options.quick else options.sessions
    with TemporaryDirectory() as name:
        folder = Path(name)
        write_shop(folder / "shop")
        size = (folder / "shop" / "state.json").stat().st_size
        recorded = folder / "sessions.jsonl"
        recorded.write_text("".join(json.dumps(session(n)) + "\n" for n in range(number)))
        after, results = imported(folder / "shop", recorded, folder / "after.db")
        copy_everything()
        before, expected = imported(folder / "shop", recorded, folder / "before.db")
    same, ratio = results == expected, before / after
    rows = [
        outcome.Row(f"import of {number} sessions on {size / 1e6:.1f} MB", f"{after:.1f} s of CPU"),
        outcome.Row("the same with whole copies", f"{before:.1f} s of CPU"),
        outcome.Row("whole copies / as is", f"{ratio:.1f}", "3.0", ratio >= 3),
        outcome.Row("results of both", "equal" if same else "DIFFERENT", "equal", same),
    ]
    for row in rows:
        print(f"{row.what}: {row.measured}")
    return outcome.finish("flow_import", rows)


if __name__ == "__main__":
    sys.exit(main())
