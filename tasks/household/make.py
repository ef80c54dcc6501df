"""Write `runs.jsonl`: `python -m tasks.household.make`; `--check` compares without writing."""

from __future__ import annotations

import argparse
import json
import random
import sys
from pathlib import Path
from typing import Any

from .agents import PROFILES, Agent
from .layout import KINDS, STEP_LIMIT, Case, make_case
from .world import Reply

FILE = Path(__file__).with_name("runs.jsonl")
PER_KIND = 5  # layouts of each goal kind
FIRST_SEED = 1  # of the layouts; the others follow

Record = dict[str, Any]


def make_runs(first_seed: int = FIRST_SEED, per_kind: int = PER_KIND) -> list[Record]:
    """All runs, goal by goal: layout seeds count on from `first_seed`, kinds take turns."""
    runs = []
    for number in range(per_kind * len(KINDS)):
        case = make_case(KINDS[number % len(KINDS)], first_seed + number)
        runs += [play(case, name, number + 1) for name in PROFILES]
    return runs


def play(case: Case, system: str, number: int) -> Record:
    """One run of one agent in a fresh house, as a record of `runs.jsonl`."""
    agent_seed = f"{system} {case.seed}"
    house = case.house()
    agent = Agent(PROFILES[system], case, random.Random(agent_seed))  # noqa: S311  reproducible
    messages = [{"role": "user", "content": case.opening()}]
    tally = Tally()
    reply: Reply | None = None
    while tally.goes_on():
        thought, command = agent.turn(reply)
        content = f"{thought}\nDo: {command}" if thought else f"Do: {command}"
        messages.append({"role": "assistant", "content": content})
        tally.count(house.state(), command)
        if not command.startswith("finish"):
            reply = house.do(command)
            tally.invalid += not reply.ok
            messages.append({"role": "tool", "name": "house", "content": reply.text})
    if reply is not None and not tally.last.startswith("finish"):
        messages[-1]["content"] += f"\nThat was command {STEP_LIMIT}. The session has ended."
        messages.append({"role": "assistant", "content": agent.farewell(reply)})
    return {
        "id": f"household-{number:02d}-{system}",
        "task": "household",
        "system": system,
        "input": messages[0]["content"],
        "output": messages[-1]["content"],
        "messages": messages,
        "success": house.holds(case.goal),
        "metadata": {
            "goal": case.goal.kind,
            "layout_seed": case.seed,
            "agent_seed": agent_seed,
            "measured": tally.record(),
        },
    }


class Tally:
    """What a program can measure of a run."""

    def __init__(self) -> None:
        self.steps = self.invalid = self.repeated = 0
        self.last = ""
        self._before: set[tuple[object, str]] = set()

    def goes_on(self) -> bool:
        """Whether another command may be given."""
        return self.steps < STEP_LIMIT and not self.last.startswith("finish")

    def count(self, state: object, command: str) -> None:
        """Count a command given in a state; one given before in the same state is a repetition."""
        self.steps += 1
        self.repeated += (state, command) in self._before
        self._before.add((state, command))
        self.last = command

    def record(self) -> dict[str, int | str | bool]:
        return {
            "steps": self.steps,
            "invalid_actions": self.invalid,
            "repeated_actions": self.repeated,
            "terminated_by": "agent" if self.last.startswith("finish") else "limit",
            "claimed_success": self.last == "finish done",
        }


def auc(scores: list[int], labels: list[bool]) -> float:
    """P(score of a successful run > score of a failed one), ties half (Mann-Whitney)."""
    good = [s for s, y in zip(scores, labels, strict=True) if y]
    bad = [s for s, y in zip(scores, labels, strict=True) if not y]
    if not good or not bad:
        raise ValueError("AUC needs successful and failed runs")
    return sum((g > b) + 0.5 * (g == b) for g in good for b in bad) / (len(good) * len(bad))


def table(runs: list[Record]) -> str:
    """One line per system and one for all runs."""
    lines = ["system  runs  success  steps  invalid  repeated  limit  AUC chars  AUC steps"]
    for name in (*PROFILES, "all"):
        part = [run for run in runs if name in (run["system"], "all")]
        measured = [run["metadata"]["measured"] for run in part]
        labels = [run["success"] for run in part]
        chars = [
            sum(len(m["content"]) for m in r["messages"] if m["role"] == "assistant") for r in part
        ]
        steps = [m["steps"] for m in measured]
        lines.append(
            f"{name:6s} {len(part):5d} {sum(labels) / len(part):8.2f} {sum(steps) / len(part):6.1f}"
            f" {sum(m['invalid_actions'] for m in measured) / len(part):8.2f}"
            f" {sum(m['repeated_actions'] for m in measured) / len(part):9.2f}"
            f" {sum(m['terminated_by'] == 'limit' for m in measured):6d}"
            f" {auc(chars, labels):10.3f} {auc(steps, labels):10.3f}"
        )
    return "\n".join(lines)


def main() -> int:
    """Write or compare; 0 when all is well, 1 when `--check` finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="compare, do not write")
    options = parser.parse_args()
    runs = make_runs()
    data = "".join(json.dumps(run, ensure_ascii=False) + "\n" for run in runs).encode()
    print(table(runs))
    if not options.check:
        FILE.write_bytes(data)
        return 0
    same = FILE.read_bytes() == data
    print("runs.jsonl is as made" if same else "runs.jsonl differs from what is made")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
