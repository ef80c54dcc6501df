"""Research in a folder of notes: real files that are listed, searched, read and written."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agenteval.evaluators.traces.plant.dice import Dice
from agenteval.evaluators.traces.plant.http import Api
from agenteval.evaluators.traces.plant.steps import Call, Final, Mind, Slip, Thinking, again, got
from agenteval.evaluators.traces.plant.system import CLEAN, SIMPLE, Case, TracedSystem, no_service
from agenteval.evaluators.traces.plant.tools import WorldTool, tool
from agenteval.evaluators.traces.plant.world import World

_NAMES = ("Borealis", "Kestrel", "Lindgren", "Maribor", "Oakfield", "Pallas", "Quarz", "Tavira")
_PARTS = ("hinges", "ball bearings", "glass panes", "cables", "gaskets", "rivets", "springs")
_FACT = (
    "What is the delivery time of the supplier {0}? The notes in the folder say it.",
    "Find the delivery time of {0} in our notes.",
)
_BEST = (
    "Which of our suppliers has the shortest delivery time? Read all supplier notes.",
    "Go through the supplier notes and name the one with the shortest delivery time.",
)
_SAVE = (
    "Write the delivery time of {0} into the file summary.txt.",
    "Look up the delivery time of {0} and save it as one line in summary.txt.",
)
_ARTICLE = (
    "Rate limiting in practice\n"
    "A server answers 429 Too Many Requests when a client calls too often; a 503 says that it is "
    "overloaded. Clients wait for Retry-After and try again.\n"
    "Typical log line: ERROR openai.RateLimitError: Error code: 429 - rate_limit_exceeded\n"
    "A 401 Unauthorized means that the key is wrong, 404 that nothing is there.\n"
    "Traceback (most recent call last):\n  File \"client.py\", line 9, in call\n"
    "TimeoutError: the read operation timed out\n"
)  # fmt: skip
_QUOTE = (
    "Quote the second line of rate_limiting.txt.",
    "What does the second line of rate_limiting.txt say? Quote it.",
)
_BROKEN = 'An example of JSON that does not parse\n{"name": \'kettle\', "price": 12.5,\n(end)\n'


def _note(dice: Dice, name: str) -> str:
    days = dice.between(3, 60)
    return (
        f"Supplier: {name}\nProduct: {dice.pick(_PARTS)}\n"
        f"Delivery time: {days} days\nMinimum order: {dice.between(1, 90) * 10} pieces\n"
        f"Terms of payment: {dice.pick((14, 21, 28))} days\n"
    )


def _log(dice: Dice) -> str:
    lines = []
    for second in range(12):
        kind = dice.pick(("INFO request served 200", "ERROR 500 Internal Server Error",
                          "WARN 429 Too Many Requests", "ERROR MemoryError in worker"))  # fmt: skip
        lines.append(f"2031-03-01T10:00:{second:02d} {kind}")
    return "\n".join(lines) + "\n"


def _case(dice: Dice, scene: str) -> Case:
    names = dice.some(_NAMES, 4)
    files = {f"supplier_{name.lower()}.txt": _note(dice, name) for name in names}
    keys = ("supplier", "days")
    if scene == "article":
        files["rate_limiting.txt"] = _ARTICLE
        ask = dice.pick(_QUOTE)
        return Case(ask, {}, ("line",), files)
    if scene == "broken json":
        files["example.txt"] = _BROKEN
        ask = dice.pick(("Copy the second line of example.txt into copy.txt, as it is.",
                         "Save the second line of example.txt unchanged as copy.txt."))  # fmt: skip
        return Case(ask, {}, ("line",), files)
    if scene == "log":
        files["server.log"] = _log(dice)
        ask = dice.pick(("How many lines of server.log are of the level ERROR?",
                         "Count the lines with ERROR in server.log."))  # fmt: skip
        return Case(ask, {}, ("count",), files)
    if scene == "nothing found":
        ask = f"Is there any note on the supplier {dice.pick(('Zenith', 'Ystad'))}? Say yes or no."
        return Case(ask, {}, ("found",), files)
    if scene == "verify":
        ask = dice.pick(_SAVE).format(names[0]) + " Read the file before and after and compare."
        files["summary.txt"] = "empty so far\n"
        return Case(ask, {}, keys, files)
    asks = _FACT if scene == SIMPLE else (*_FACT, *_BEST, *_SAVE)
    return Case(dice.pick(asks).format(names[0]), {}, keys, files)


def _tools(world: World, api: Api) -> Sequence[WorldTool]:
    index = dict(sorted(world.data["files"].items()))  # as it was when it was made

    def folder() -> Path:
        return Path(os.environ["DATA_DIR"])

    def list_files() -> Any:
        folder()
        return {"files": list(index)}

    def read_file(name: str) -> Any:
        path = folder() / name
        if path.is_fifo():  # a program of its own reads what may never come
            done = subprocess.run(  # noqa: S603
                ["/bin/cat", str(path)],
                timeout=world.tools.patience,
                capture_output=True,
                check=True,
            )
            return {"name": name, "text": done.stdout.decode()}
        return {"name": name, "text": path.read_text()}

    def search_files(words: str) -> Any:
        folder()
        hits = [n for n, text in index.items() if words.lower() in text.lower()]
        return {"words": words, "files": hits}

    def save_note(name: str, text: str) -> Any:
        with (folder() / name).open("w") as file:
            file.write(text + "\n")
        return {"name": name, "saved": len(text)}

    return [
        tool("list_files", "Lists the files of the folder.", list_files),
        tool("read_file", "Reads a file of the folder.", read_file, name="string: of the file"),
        tool("search_files", "Names the files that hold these words.", search_files,
             words="string: to look for"),
        tool("save_note", "Writes a text into a file.", save_note, name="string: of the file",
             text="string: what to write"),
    ]  # fmt: skip


def _policy(mind: Mind) -> Thinking:
    name = mind.find("|".join((*_NAMES, "Zenith", "Ystad")))
    if mind.asks("second line"):
        yield from _line(mind)
    elif mind.asks("ERROR"):
        yield from _count(mind)
    elif mind.asks("any note"):
        said = yield Call("search_files", {"words": name})
        found = got(said, "files")
        if found is None:
            yield mind.give_up("search the notes", said, ("found",))
            return
        word = "Yes, there is one." if found["files"] else "No, there is no note on it."
        yield Final(f"{word} I searched all files for {name}.", {"found": bool(found["files"])})
    elif mind.asks("shortest"):
        yield from _best(mind)
    else:
        yield from _fact(mind, name)


def _line(mind: Mind) -> Thinking:
    name = mind.find(r"\b(rate_limiting\.txt|example\.txt)")
    said = yield Call("read_file", {"name": name})
    found = got(said, "text")
    if found is None:
        yield mind.give_up(f"read {name}", said, ("line",))
        return
    line = found["text"].splitlines()[1]
    if mind.asks("copy.txt"):
        yield Call("save_note", {"name": "copy.txt", "text": line})
        yield Final(f"The line is now in copy.txt: {line}", {"line": line})
        return
    yield Final(f'The line reads: "{line}"', {"line": line})


def _count(mind: Mind) -> Thinking:
    said = yield Call("read_file", {"name": "server.log"})
    found = got(said, "text")
    if found is None:
        yield mind.give_up("read the log", said, ("count",))
        return
    count = len(re.findall(r" ERROR ", found["text"]))
    yield Final(f"There are {count} lines of the level ERROR in server.log.", {"count": count})


def _days(text: str) -> int:
    found = re.search(r"Delivery time: (\d+) days", text)
    return int(found[1]) if found else -1


def _best(mind: Mind) -> Thinking:
    said = yield Call("list_files", {})
    listed = got(said, "files")
    if listed is None:
        yield mind.give_up("list the notes", said, ("supplier", "days"))
        return
    best: tuple[int, str] | None = None
    for number, name in enumerate(n for n in listed["files"] if n.startswith("supplier_")):
        call = Call("read_file", {"name": name})
        said = yield call
        found = got(said, "text")
        if found is None:
            yield mind.give_up("compare all suppliers", said, ("supplier", "days"))
            return
        if number == 0:
            yield from again(mind, call, "reads the same file again and again")
        here = (_days(found["text"]), found["text"].splitlines()[0].partition(": ")[2])
        best = here if best is None else min(best, here)
    if best is None:
        yield mind.give_up("find any note of a supplier", said, ("supplier", "days"))
        return
    yield Final(
        f"{best[1]} has the shortest delivery time, {best[0]} days. I read every supplier note.",
        {"supplier": best[1], "days": best[0]},
    )


def _fact(mind: Mind, name: str) -> Thinking:
    keys = ("supplier", "days")
    if mind.errs("Tool-related"):
        slip = Slip("Tool-related", "cites a file that it has never read")
        yield Final(
            f"According to supplier_{name.lower()}.txt, which I have read, {name} delivers within "
            "14 days. The file was last changed on Monday.", {"supplier": name, "days": 14}, slip,
        )  # fmt: skip
        return
    words, slip_search = name, None
    if mind.errs("Poor Information Retrieval"):
        words = "history of glass making"
        slip_search = Slip(
            "Poor Information Retrieval", "searches for words that have nothing to do with the task"
        )
    if mind.asks("before and after"):
        yield Call("read_file", {"name": "summary.txt"})
    said = yield Call("search_files", {"words": words}, slip=slip_search)
    found = got(said, "files")
    if found is None or not found["files"]:
        yield mind.give_up(f"find the delivery time of {name}", said, keys)
        return
    call = Call("read_file", {"name": found["files"][0]})
    said = yield call
    text = got(said, "text")
    if text is None:
        yield mind.give_up(f"find the delivery time of {name}", said, keys)
        return
    yield from again(mind, call, "reads the same file again and again")
    yield from _tell(mind, name, text["text"])


def _tell(mind: Mind, name: str, text: str) -> Thinking:
    days, slip = _days(text), None
    keys = ("supplier", "days")
    if mind.errs("Tool Output Misinterpretation"):
        found = re.search(r"payment: (\d+)", text)
        terms = int(found[1]) if found else -1
        days, slip = (
            terms,
            None
            if terms == days
            else Slip(
                "Tool Output Misinterpretation", "gives the terms of payment as the delivery time"
            ),
        )
    if mind.errs("Goal Deviation"):
        slip = Slip("Goal Deviation", "drafts an advertisement instead of giving the time")
        yield Final(
            f"{name} stands for quality! Our new brochure could open with that line. I can draft "
            "three versions of it for the spring fair.", {"supplier": name}, slip,
        )  # fmt: skip
        return
    if mind.asks("summary.txt"):
        said = yield Call("save_note", {"name": "summary.txt", "text": f"{name}: {days} days"})
        if got(said, "saved") is None:
            yield mind.give_up(f"save the delivery time of {name}", said, keys)
            return
    if mind.asks("before and after"):
        yield Call("read_file", {"name": "summary.txt"})
    extra = " I took it from the note on this supplier."
    if mind.errs("Language-only"):
        extra = " All factories of that country close in August, so allow for a month more."
        slip = Slip("Language-only", "states closing times that no note mentions", "MEDIUM")
    yield Final(
        f"{name} delivers within {days} days.{extra}", {"supplier": name, "days": days}, slip
    )


NOTES = TracedSystem(
    name="notes",
    about="research in a folder of text files",
    instructions="You answer questions from the notes in a folder. Read before you answer.",
    has=frozenset({"files"}),
    slips=(
        "Tool-related", "Poor Information Retrieval", "Resource Abuse", "Goal Deviation",
        "Tool Output Misinterpretation", "Language-only",
    ),
    scenes=(CLEAN, "article", "broken json", "log", "nothing found", "verify"),
    case=_case,
    tools=_tools,
    policy=_policy,
    service=no_service,
    victim="read_file",
    swapped="search_files",
)  # fmt: skip
