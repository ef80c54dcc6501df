"""The commands that are killed: what they work on, how they are run, what they must give."""

from __future__ import annotations

import json
import math
import os
import random
import re
import shutil
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from agenteval.testing import DEFAULT
from agenteval.testing.engine import Default
from benchmarks.crash import agents
from benchmarks.crash.child import Kill, read_state
from benchmarks.folders import ROOT, module

WAIT_SECONDS = 120.0
SETTINGS = {
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NO_COLOR": "1",
    "OPENAI_API_KEY": "none",
    "MPLBACKEND": "svg",
}
_numbers = count(1)
CRITERIA = [
    {
        "name": "Clarity",
        "description": "Is it easy to follow?",
        "accepted_values": ["unclear", "partly clear", "clear"],
    },
    {
        "name": "Accuracy",
        "description": "Is the result right?",
        "accepted_values": ["incorrect", "partially correct", "correct"],
    },
]
CONCURRENCY = 4
# Units begun and not yet durable: the pipeline has two workers for each request in flight.
UNDER_WAY = 2 * CONCURRENCY
OLD = b"the file as it was before\n"
# Times; and usage: of two equal questions one is paid for and the other has its reply, whichever
# comes first, and a question whose asker was killed has its reply when it is asked again.
_CHANGES = re.compile(
    rb'("(?:(?:total_)?seconds|started|ended|at|(?:requests|tokens)(?:_[a-z]+)?|prompt_tokens|'
    rb'completion_tokens|cost)": ?)'
    rb"(?:{[^}]*}|[^,}\s]+)"
)
# A resumed command sent fewer requests itself than one that was not interrupted.
_BY_THIS_COMMAND = re.compile(rb"[\d,]+ requests? by this command; in all ")
_TRIALS = """SELECT source_key, item_key, repeat, status, outcome, check_key, tries, record, verdict
    FROM calls WHERE status IS NOT NULL ORDER BY 1, 2, 3"""


def answer(body: Mapping[str, Any], n: int) -> str | Default:
    """A reply that depends on the request alone: a critic's on its seed; judges of criteria get
    the default."""
    form = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    if "criteria" not in json.dumps(form):
        return agents.reply(body, form.get("properties", {})) if "messages" in body else DEFAULT
    rng = random.Random(int(body.get("seed") or 0))
    names = rng.sample(["Clarity", "Accuracy", "Brevity", "Order", "Checking", "Units"], 3)
    entries = [
        {
            "name": name,
            "description": f"How good is the {name.lower()} of the answer?",
            "scale": "ordinal",
            "accepted_values": ["poor", "fair", "good"],
            "order": "worst_to_best",
            "numeric_range": None,
            "allow_na": False,
        }
        for name in names
    ]
    return json.dumps({"criteria": entries})


@dataclass(frozen=True)
class Sizes:
    """How much a command has to do before it is finished."""

    runs: int = 24
    repeats: int = 4
    verify_repeats: int = 2
    seeds: int = 16
    trials: int = 3
    users: int = 8  # of `flow session`
    turns: int = 24  # of `flow turn`
    traces: int = 6  # of `trace locate`
    agent_trials: int = 2  # of `flow session` with a scripted agent, of `flow turn`
    pages: bool = True  # compare the report of each store as well, which takes a second or two


@dataclass(frozen=True)
class Work:
    """One command. `files` are its whole-file outputs."""

    name: str
    argv: Callable[[str], tuple[str, ...]]  # by the base URL
    files: tuple[str, ...] = ()
    commits: bool = True
    filled: bool = False  # works on a store that is full
    judged: bool = False  # its store has results for `export`, `show` and `report`
    trials: bool = False  # its store has trials, which are compared


def works(sizes: Sizes) -> dict[str, Work]:
    """The commands by name."""

    def asks(words: str) -> Callable[[str], tuple[str, ...]]:
        model = ("--model", "openai:test-model", "--store", "s.db", "-j", str(CONCURRENCY))
        return lambda url: (*words.split(), *model, "--base-url", url)

    def plain(words: str) -> Callable[[str], tuple[str, ...]]:
        return lambda _: (*words.split(), "--store", "s.db")

    verify = f"verify runs.jsonl --repeats {sizes.verify_repeats} --perturb drop_sentences "
    verify += "--perturb shuffle_sentences --json -o verified.json"
    critics = f"criteria --task tasks/sums --seeds {sizes.seeds} --tau 1 -o proposed.json --json"
    trials = "plan test suite.jsonl --agent scripted:perfect --json -j 2 --runs attempts.jsonl "
    quantify = f"quantify runs.jsonl --repeats {sizes.repeats} --json"
    listed = [
        Work("quantify", asks(quantify), judged=True),
        Work("verify", asks(verify), ("verified.json",), judged=True),
        Work("criteria", asks(critics), ("proposed.json",)),
        Work("plan test", plain(f"{trials}--trials {sizes.trials}"), trials=True),
    ]
    for name, words, made in (
        ("export", "export", "results.csv"),
        ("export jsonl", "export", "results.jsonl"),
        ("export parquet", "export", "results.parquet"),
        ("report", "report -o", "report.html"),
    ):
        listed.append(Work(name, plain(f"{words} {made}"), (made,), commits=False, filled=True))
    flows = agents.commands(
        users=sizes.users, turns=sizes.turns, traces=sizes.traces, trials=sizes.agent_trials
    )
    listed += [Work(name, words, made, trials=True) for name, (words, made) in flows.items()]
    return {work.name: work for work in listed}


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, or minus the number of the signal; seconds it ran.

    `state` holds its counters (see `child.read_state`), `units` is the file of its units.
    """

    code: int
    seconds: float
    out: str
    err: str
    state: dict[str, int]
    units: Path

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL

    def check(self, about: str) -> Ended:
        """Raises RuntimeError when the command did not succeed."""
        if self.code != 0:
            raise RuntimeError(f"{about}: exit code {self.code}: {self.err[-2000:]}")
        return self


class Command:
    """A command in a folder, started; its output is kept beside that folder."""

    def __init__(self, argv: tuple[str, ...], folder: Path, kill: Kill | None = None) -> None:
        self._began = time.monotonic()
        timed = kill is not None and kill.moment == "time"
        self._end = self._began + kill.seconds if kill and timed else math.inf
        place = self._place = folder.parent / f"{folder.name}-command{next(_numbers)}"
        place.mkdir()
        job: dict[str, Any] = {"argv": argv, "kill": kill and asdict(kill)}
        job |= {"state": str(place / "state"), "units": str(place / "units")}
        plain = {k: v for k, v in os.environ.items() if not k.startswith("AGENTEVAL_")}
        with (place / "out").open("wb") as out, (place / "err").open("wb") as err:
            self._process = subprocess.Popen(
                module("crash.child", json.dumps(job)),
                cwd=folder,
                env=plain | SETTINGS,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def has_ended(self) -> bool:
        """Return whether it has ended; kills it when its time has come."""
        if time.monotonic() >= self._end:
            self._process.kill()
        return self._process.poll() is not None

    def wait(self) -> Ended:
        """Return how it ended. Raises TimeoutError after two minutes."""
        while not self.has_ended():
            if time.monotonic() - self._began > WAIT_SECONDS:
                raise TimeoutError(f"a command did not end: {self._place}")
            time.sleep(0.005)
        seconds = time.monotonic() - self._began
        out, err = ((self._place / n).read_text("utf-8", "replace") for n in ("out", "err"))
        state, units = read_state(self._place / "state"), self._place / "units"
        return Ended(self._process.returncode, seconds, out, err, state, units)


def run(argv: tuple[str, ...], folder: Path, kill: Kill | None = None) -> Ended:
    """Start a command and wait for its end."""
    return Command(argv, folder, kill).wait()


class Kitchen:
    """Makes the folders that commands work in, and runs them there."""

    def __init__(self, scratch: Path, url: str, sizes: Sizes) -> None:
        self.scratch, self.url, self.sizes = scratch, url, sizes
        self._made = 0
        self._full: Path | None = None
        self._template = self._make_template()

    def _make_template(self) -> Path:
        folder = self.scratch / "template"
        task = folder / "tasks" / "sums"
        task.mkdir(parents=True)
        (task / "task.yaml").write_text(
            "name: sums\ndescription: Add the numbers and explain the result.\n"
        )
        (folder / "criteria").mkdir()
        (folder / "criteria" / "sums.json").write_text(json.dumps(CRITERIA))
        lines = [json.dumps(_run(i)) + "\n" for i in range(self.sizes.runs)]
        (folder / "runs.jsonl").write_text("".join(lines))
        agents.make_traces(folder / "traces", self.sizes.traces)
        synth = ("plan", "synth", "--count", "12", "--seed", "1", "-o", "suite.jsonl")
        run(synth, folder).check("plan synth")
        return folder

    def folder(self, work: Work | None = None) -> Path:
        """A new folder for a command; with a full store where it needs one."""
        self._made += 1
        folder = self.scratch / f"work{self._made}"
        shutil.copytree(self._template, folder)
        if work is not None and work.filled:
            if self._full is None:
                quantify = works(self.sizes)["quantify"]
                self._full = self.folder(quantify)
                self.finish(quantify, self._full)
            shutil.copyfile(self._full / "s.db", folder / "s.db")
        for name in work.files if work is not None else ():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(OLD)
        return folder

    def finish(self, work: Work, folder: Path) -> Ended:
        """Run to the end. Raises RuntimeError when that does not succeed."""
        return run(work.argv(self.url), folder).check(work.name)

    def tables(self, work: Work, folder: Path, done: Ended) -> dict[str, bytes]:
        """Everything a person gets from the finished work, without places, and of trials without
        times and usage."""
        found = {"output": _BY_THIS_COMMAND.sub(b"", _plain(done.out.encode(), folder))}
        for name in work.files:
            found[name] = _plain((folder / name).read_bytes(), folder)
        if work.trials:
            with closing(sqlite3.connect(folder / "s.db")) as db:
                rows = db.execute(_TRIALS).fetchall()
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            found["trials"] = _CHANGES.sub(rb"\1", lines.replace('\\"', '"').encode())
            found["output"] = _CHANGES.sub(rb"\1", found["output"])
        if not work.judged:
            return found
        views = [
            (("export", "all.csv", "--with-copies"), "all.csv"),
            (("export", "all.jsonl", "--with-copies"), "all.jsonl"),
            (("show", "--json"), ""),
            (("report", "-o", "all.html"), "all.html"),
        ]
        for words, name in views if self.sizes.pages else views[:3]:
            shown = run((*words, "--store", "s.db"), folder).check(words[0])
            content = (folder / name).read_bytes() if name else shown.out.encode()
            found[name or "show"] = _plain(content, folder)
        return found


def _run(i: int) -> dict[str, Any]:
    """A run of one of two systems on a sum; every third one failed. No two read alike: a judge
    would be asked about them once or twice, as it happens."""
    a, b = i // 2, i // 2 + 3
    steps = f"First I add {a} and {b}. That gives {a + b}. Then I add 7 to it. "
    return {
        "id": f"run-{i}",
        "task": "sums",
        "system": "ab"[i % 2],
        "success": i % 3 != 0,
        "input": f"What is {a} and {b} and 7 together?",
        "output": f"{steps}The sum is {a + b + 7}. I, system {'ab'[i % 2]}, checked it twice.",
    }


def _plain(content: bytes, folder: Path) -> bytes:
    return content.replace(str(folder).encode(), b"FOLDER")
