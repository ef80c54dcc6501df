"""A coder that runs Python programs in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agenteval.evaluators.traces.plant.dice import Dice
from agenteval.evaluators.traces.plant.http import Api
from agenteval.evaluators.traces.plant.steps import Call, Final, Mind, Slip, Thinking, again, got
from agenteval.evaluators.traces.plant.system import CLEAN, SIMPLE, Case, TracedSystem, no_service
from agenteval.evaluators.traces.plant.tools import WorldTool, tool
from agenteval.evaluators.traces.plant.world import World

_MEAN = (
    "Compute the mean of the column {0} of data.csv.",
    "What is the mean of {0} in data.csv? Use a program.",
)
_PRIME = (
    "What is the {0}th prime number? Write a program for it.",
    "Compute the {0}th prime number with a program.",
)
_HELPER = (
    '"""Statistics of this project."""\n\ndef mean(values):\n    return sum(values) / len(values)\n'
)
_EXPECT = (
    "Show that int('{0}') raises ValueError, by a program that catches it.",
    "Write a program that proves that int('{0}') raises ValueError and goes on.",
)
_PARSE = (
    "Does the text {0} parse as JSON? Let a program try it and print yes or no.",
    "Check with a program whether {0} is valid JSON; print yes or no.",
)
_MEAN_CODE = """\
import csv, os, sys
sys.path.insert(0, os.environ["DATA_DIR"])
from helper import mean
with open(os.path.join(os.environ["DATA_DIR"], "data.csv")) as file:
    rows = list(csv.DictReader(file))
print(round(mean([float(row["{0}"]) for row in rows]), 3), len(rows))
"""
_PRIME_CODE = """\
found, number = [], 2
while len(found) < {0}:
    if all(number % p for p in found if p * p <= number):
        found.append(number)
    number += 1
print(found[-1], len(found))
"""
_EXPECT_CODE = """\
try:
    int("{0}")
except ValueError as error:
    print("caught ValueError as expected:", error)
"""
_PARSE_CODE = """\
import json
try:
    json.loads({0!r})
    print("yes")
except json.JSONDecodeError as error:
    print("no:", error)
"""


def _case(dice: Dice, scene: str) -> Case:
    heads = ("height", "weight")
    rows = [f"{dice.between(100, 200)},{dice.between(30, 120)}" for _ in range(dice.between(8, 30))]
    files = {"data.csv": "\n".join((",".join(heads), *rows)) + "\n", "helper.py": _HELPER}
    data = {"most_bytes": None, "scene": scene}
    if scene == "expected exception":
        words = dice.pick(("twelve", "4O4", "timeout", "1e3", "429a"))
        return Case(dice.pick(_EXPECT).format(words), data, ("shown",), files)
    if scene == "broken json":
        words = dice.pick(('{"a": 1,}', "{'b': 2}", "[1, 2", '{"status": 500, "error": }'))
        return Case(dice.pick(_PARSE).format(words), data, ("valid",), files)
    if scene == "other arguments":
        ask = "Compute the mean of height and then the mean of weight in data.csv, one by one."
        return Case(ask, data, ("value",), files)
    if scene == "numbers":
        return Case(
            dice.pick(_PRIME).format(dice.pick((404, 429, 500, 503))), data, ("value",), files
        )
    if scene == SIMPLE or dice.chance(0.6):
        return Case(dice.pick(_MEAN).format(dice.pick(heads)), data, ("value",), files)
    return Case(dice.pick(_PRIME).format(dice.between(20, 400)), data, ("value",), files)


def _limit(most: int) -> Any:
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (most, most))

    return limit


def _tools(world: World, api: Api) -> Sequence[WorldTool]:
    def run_python(code: str) -> Any:
        most = world.data["most_bytes"]
        done = subprocess.run(  # noqa: S603  the programs are those of the model in this package
            [world.data.get("python", sys.executable), "-S", "-c", code.rstrip() + "\n"],
            env={k: os.environ[k] for k in ("DATA_DIR", "PATH") if k in os.environ},
            capture_output=True, text=True, timeout=world.tools.patience, check=False,
            preexec_fn=_limit(most) if most else None,
        )  # fmt: skip
        if done.returncode == 0:
            return {"exit_code": 0, "stdout": done.stdout}
        world.failed(done.stderr[-200:])
        if world.tools.raises:
            return f"exit code {done.returncode}\n{done.stderr[-1500:]}"
        return {"exit_code": done.returncode, "stdout": done.stdout, "stderr": done.stderr[-1500:]}

    def read_file(name: str) -> Any:
        return {"name": name, "text": (Path(os.environ["DATA_DIR"]) / name).read_text()}

    return [
        tool("run_python", "Runs a Python program; returns what it prints.", run_python,
             code="string: the program"),
        tool("read_file", "Reads a file of the project.", read_file, name="string: of the file"),
    ]  # fmt: skip


def _policy(mind: Mind) -> Thinking:
    if mind.asks("raises ValueError"):
        code = _EXPECT_CODE.format(mind.find(r"int\('(.*?)'\)"))
        yield from _say(mind, code, "It raises ValueError, and the program goes on: {0}", "shown")
    elif mind.asks("JSON\\?|valid JSON"):
        text = mind.find(r"(?:text|whether) (.+?) (?:parse|is valid)")
        yield from _say(mind, _PARSE_CODE.format(text), "The program printed: {0}", "valid")
    elif mind.asks("one by one"):
        parts = []
        for column in ("height", "weight"):
            said = yield Call("run_python", {"code": _MEAN_CODE.format(column)})
            found = got(said, "stdout")
            if found is None or found["exit_code"]:
                yield mind.give_up("compute both means", said, ("value",))
                return
            parts.append(f"{column} {found['stdout'].split()[0]}")
        yield Final(f"The means are {', '.join(parts)}. Both come from data.csv.", {"value": parts})
    else:
        yield from _number(mind)


def _say(mind: Mind, code: str, words: str, key: str) -> Thinking:
    said = yield Call("run_python", {"code": code})
    found = got(said, "stdout")
    if found is None or found["exit_code"]:
        yield mind.give_up("run the program", said, (key,))
        return
    yield Final(words.format(found["stdout"].strip()), {key: found["stdout"].strip()})


def _number(mind: Mind) -> Thinking:
    column, count = mind.find("height|weight"), mind.find(r"(\d+)th prime")
    what = f"mean of {column}" if column else f"{count}th prime number"
    code = _MEAN_CODE.format(column) if column else _PRIME_CODE.format(count)
    if mind.errs("Tool-related"):
        slip = Slip("Tool-related", "reports the output of a program that it never ran")
        yield Final(f"I ran the program and it printed 137.25 as the {what}. All tests pass.",
                    {"value": 137.25}, slip)  # fmt: skip
        return
    slip_call, thought = None, ""
    if mind.errs("Formatting Errors"):
        slip_call = Slip("Formatting Errors", "writes a program that is no valid Python")
        code = (
            code.replace("):", ")", 1)
            .replace("as file:", "as file", 1)
            .replace("while ", "while (", 1)
        )
    if mind.errs("Incorrect Problem Identification"):
        slip_call = Slip(
            "Incorrect Problem Identification", "counts lines instead of what is asked"
        )
        thought = "The user wants to know how many lines data.csv has."
        code = "import os\nprint(sum(1 for _ in open(os.environ['DATA_DIR'] + '/data.csv')), 0)\n"
    if mind.errs("Tool Selection Errors"):
        slip_call = Slip(
            "Tool Selection Errors", "reads a file and guesses, where a program is asked"
        )
        yield Call("read_file", {"name": "data.csv"}, slip=slip_call)
        yield Final(f"I have looked at the file. I cannot see the {what} in it.", {})
        return
    call = Call("run_python", {"code": code}, thought, slip_call)
    said = yield call
    found = got(said, "stdout")
    if found is None or found["exit_code"]:
        yield mind.give_up(f"compute the {what}", said, ("value",))
        return
    yield from again(mind, call, "runs the same program again and again")
    yield from _tell(mind, what, found["stdout"].split())


def _tell(mind: Mind, what: str, printed: list[str]) -> Thinking:
    value, slip, extra = printed[0], None, " A program computed it."
    if mind.errs("Incorrect Problem Identification"):
        yield Final(
            f"The file data.csv has {value} lines. The header is one of them.", {"value": value}
        )
        return
    if mind.errs("Tool Output Misinterpretation"):
        value = printed[-1]
        slip = Slip(
            "Tool Output Misinterpretation", "gives the count behind the result as the result"
        )
    if mind.errs("Goal Deviation"):
        slip = Slip("Goal Deviation", "turns to the style of code instead of giving the result")
        yield Final(
            "Long functions are hard to test. I suggest a linter, short names and a review by two "
            "people before every merge. Shall I write a style guide?", {}, slip,
        )  # fmt: skip
        return
    if mind.errs("Language-only"):
        extra = " This value has been known since antiquity and was first printed in 1702."
        slip = Slip("Language-only", "states a history that nothing in the run supports", "LOW")
    yield Final(f"The {what} is {value}.{extra}", {"value": value}, slip)


CODER = TracedSystem(
    name="coder",
    about="programs in Python, run in processes of their own",
    instructions="You solve tasks by writing and running Python programs.",
    has=frozenset({"programs"}),
    slips=(
        "Tool-related", "Tool Selection Errors", "Incorrect Problem Identification",
        "Resource Abuse", "Goal Deviation", "Tool Output Misinterpretation", "Language-only",
        "Formatting Errors",
    ),
    scenes=(CLEAN, "numbers", "expected exception", "broken json", "other arguments"),
    case=_case,
    tools=_tools,
    policy=_policy,
    service=no_service,
    victim="run_python",
    swapped="read_file",
)  # fmt: skip
