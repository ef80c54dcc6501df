"""A second, smaller writing of the household's rules, and the data replayed with it.

``Replay`` starts from the objects of the layout, takes the goal from the words of the request, and
reads nothing but the commands: success, refusals and everything in ``measured`` are computed here
and compared with the file and with runs from other seeds.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tasks.household.layout import make_case
from tasks.household.make import make_runs

Run = dict[str, Any]
FILE = Path(__file__).resolve().parents[2] / "tasks" / "household" / "runs.jsonl"


class Replay:
    """A household as plain sets and dictionaries; ``give`` says whether a command is possible."""

    def __init__(self, kind: str, seed: int) -> None:
        case = make_case(kind, seed)
        self.home = {p.name: p.room for p in case.places}
        self.doors = {p.name for p in case.places if p.closes}
        self.power = {p.name: p.power for p in case.places}
        self.where = {t.name: t.spot for t in case.things}
        self.heat = {t.name: t.heat for t in case.things}
        self.clean: set[str] = set()
        self.lit_on: set[tuple[str, str]] = set()
        self.at, self.ajar, self.lamps = case.start, set[str](), set[str]()

    def state(self) -> str:
        parts = (self.at, self.ajar, self.lamps, self.clean, self.lit_on)
        rest = [sorted(p) if isinstance(p, set) else p for p in parts]
        return repr((rest, sorted(self.where.items()), sorted(self.heat.items())))

    def give(self, command: str) -> bool:
        verb, _, rest = command.partition(" ")
        if command == "hands":
            return True
        if verb in ("check", "open", "shut", "run"):
            return self._door(verb, rest)
        if verb == "walk" and rest.startswith("to "):
            room = rest[3:]
            possible = room in self.home.values() and room != self.at
            self.at = room if possible else self.at
            return possible
        if verb == "switch":
            return self._switch(*rest.split(" ", 1))
        joint = {"pick": " from ", "leave": " at ", "rinse": " at ", "study": " under "}.get(verb)
        if joint is None or joint not in rest:
            return False
        return self._move(verb, *rest.split(joint))

    def _near(self, place: str) -> bool:
        return self.home.get(place) == self.at

    def _free(self, place: str) -> bool:
        return self._near(place) and (place not in self.doors or place in self.ajar)

    def _door(self, verb: str, place: str) -> bool:
        inside = [t for t, spot in self.where.items() if spot == place]
        if verb == "check":
            return self._free(place)
        if place not in self.doors or not self._near(place):
            return False
        if verb == "run":
            if self.power[place] != "heat" or place in self.ajar or not inside:
                return False
            self.heat.update(dict.fromkeys(inside, "hot"))
            return True
        if (verb == "open") == (place in self.ajar):
            return False
        self.ajar ^= {place}
        if verb == "shut" and place == "fridge":
            self.heat.update(dict.fromkeys(inside, "cold"))
        return True

    def _switch(self, how: str, lamp: str = "") -> bool:
        known = how in ("on", "off") and self.power.get(lamp) == "light" and self._near(lamp)
        if not known or (how == "on") == (lamp in self.lamps):
            return False
        self.lamps ^= {lamp}
        return True

    def _move(self, verb: str, thing: str, place: str) -> bool:
        full = "hand" in self.where.values()
        mine = self.where.get(thing) == "hand"
        power = self.power.get(place)
        possible = {
            "pick": self._free(place) and not full and self.where.get(thing) == place,
            "leave": self._free(place) and mine and power != "light",
            "rinse": self._near(place) and mine and power == "wash",
            "study": self._near(place) and mine and power == "light" and place in self.lamps,
        }[verb]
        if possible and verb in ("pick", "leave"):
            self.where[thing] = "hand" if verb == "pick" else place
        elif possible and verb == "rinse":
            self.clean.add(thing)
        elif possible:
            self.lit_on.add((thing, place))
        return possible

    def reached(self, request: str) -> bool:
        """Whether the request, as worded, is met."""
        place = next(
            p for p in self.home if request.endswith(f"the {p}.") or f" {p} and" in request
        )
        words = re.split(r"\W+", request.lower())
        request = request.replace(place, "...")  # a towel shelf names no towel

        def named(thing: str) -> bool:
            noun = thing.split(" ", 1)[1]
            return any(form in request for form in (f" {noun} ", f" {noun}s ", f" {noun}es "))

        wanted = [t for t in self.where if named(t)]
        if words[0] in ("study", "look"):
            return any((t, place) in self.lit_on for t in wanted)
        state = {"rinse": "clean", "rinsed": "clean", "heat": "hot", "hot": "hot"}
        state |= {"chill": "cold", "chilled": "cold"}
        need = next((state[w] for w in words if w in state), None)
        good = [t for t in wanted if self.where[t] == place]
        good = [
            t for t in good if need in (None, self.heat[t]) or (need == "clean" and t in self.clean)
        ]
        return len(good) >= (2 if "two" in words else 1)


def commands(run: Run) -> list[str]:
    """The command of each assistant message that has one."""
    found = [
        re.findall(r"^Do: (.+)$", m["content"], flags=re.M)
        for m in run["messages"]
        if m["role"] == "assistant"
    ]
    assert all(len(f) <= 1 for f in found)
    return [f[0] for f in found if f]


def replayed(run: Run) -> tuple[bool, list[bool], dict[str, Any]]:
    """Success, which commands were possible, and ``measured``, from the commands alone."""
    house = Replay(run["metadata"]["goal"], run["metadata"]["layout_seed"])
    given, possible, repeated = commands(run), [], 0
    before: set[tuple[str, str]] = set()
    for command in given:
        key = (house.state(), command)
        repeated += key in before
        before.add(key)
        if not command.startswith("finish"):
            possible.append(house.give(command))
    measured = {
        "steps": len(given),
        "invalid_actions": possible.count(False),
        "repeated_actions": repeated,
        "terminated_by": "agent" if given[-1].startswith("finish") else "limit",
        "claimed_success": given[-1] == "finish done",
    }
    request = run["input"].split("\n")[0].removeprefix("Goal: ")
    return house.reached(request), possible, measured


def check_replay(runs: list[Run]) -> list[str]:
    """Success, refusals and measured values against the replay."""
    bad = []
    for run in runs:
        success, possible, measured = replayed(run)
        replies = [m["content"] for m in run["messages"] if m["role"] == "tool"]
        refused = [r.startswith(("Not possible: ", "Not understood: ")) for r in replies]
        if success != run["success"]:
            bad.append(f"{run['id']}: success is {success}")
        if refused != [not p for p in possible]:
            bad.append(f"{run['id']}: other commands are refused")
        if measured != run["metadata"]["measured"]:
            bad.append(f"{run['id']}: measured is {measured}")
    return bad


@pytest.fixture
def runs() -> list[Run]:
    return [json.loads(line) for line in FILE.read_text(encoding="utf-8").splitlines()]


def test_the_file_agrees_with_the_replay(runs: list[Run]) -> None:
    assert check_replay(runs) == []


def test_other_seeds_agree_with_the_replay() -> None:
    assert check_replay(make_runs(first_seed=20_001, per_kind=40)) == []


def test_the_file_is_what_the_maker_makes() -> None:
    made = "".join(json.dumps(run, ensure_ascii=False) + "\n" for run in make_runs())
    assert FILE.read_bytes() == made.encode("utf-8")
