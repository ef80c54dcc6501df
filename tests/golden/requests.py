"""Run commands against a loopback server; return the requests they send and the keys they store."""

from __future__ import annotations

import contextlib
import json
import re
import shlex
import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.records import content_hash
from agenteval.testing import serve
from tests.golden import answers, freeze
from tests.golden.cases import PLACES, failed_sums

MARKER = re.compile(r"<<(?:BEGIN|END) [^\n<>]*?([0-9a-f]{24})>>")


@dataclass(frozen=True)
class Command:
    """One command line, with the answers of the server and what is written beforehand."""

    name: str
    line: str
    answer: answers.Answer
    make: Callable[[Path], None] | None = None


def run(command: Command, folder: Path) -> dict[str, Any]:
    """Run the command in this empty folder; return its requests and the keys of its store.

    Raises AssertionError with the messages of the command when it makes no store.
    """
    bodies: list[dict[str, Any]] = []

    def answer(body: dict[str, Any], n: int) -> Any:
        bodies.append(body)
        return command.answer(body, n)

    with contextlib.chdir(folder), freeze._no_variables(), serve(answer) as server:
        if command.make is not None:
            command.make(folder)
        words = [w.format(url=server.base_url, **PLACES) for w in shlex.split(command.line)]
        done = freeze.call([*words, "--store", "s.db", "-j", "1", "-q"], folder)
        assert (folder / "s.db").exists(), f"exit code {done.code}\n{done.err}"
        keys = _keys(folder / "s.db", server.base_url)
    if bodies:
        del keys["checkers"]  # those with a judge hold the server's port
    return {"requests": sorted({_sent(body) for body in bodies}), **keys}


def _sent(body: dict[str, Any]) -> str:
    """Hash of a request without the nonce, which differs from store to store."""
    text = json.dumps(body, sort_keys=True, ensure_ascii=False)
    for nonce in set(MARKER.findall(text)):
        text = text.replace(nonce, "NONCE")
    return content_hash(json.loads(text))


def _keys(store: Path, url: str) -> dict[str, Any]:
    """Sources and experiments without the server's port, and the keys of items, cells and trials.

    A plan is kept without the key of its system, which the port changes.
    """
    with contextlib.closing(sqlite3.connect(store)) as connection:

        def column(query: str) -> list[str]:
            return sorted({"/".join(map(str, row)) for row in connection.execute(query)})

        records = column("SELECT record FROM sources")
        plans = [json.loads(plan) for plan in column("SELECT plan FROM experiments")]
        return {
            "sources": [json.loads(r) for r in sorted(r.replace(url, "URL") for r in records)],
            "experiments": sorted(content_hash(plan["grids"]) for plan in plans),
            "checkers": column("SELECT DISTINCT check_key FROM calls WHERE check_key IS NOT NULL"),
            "items": column("SELECT kind, id, item_key FROM items"),
            "units": column(
                "SELECT i.id, c.variant, c.repeat, c.status FROM calls c JOIN items i"
                " USING (item_key)"
            ),
            "cells": column("SELECT DISTINCT variant, criterion_key, repeat FROM results"),
        }


def finds_booking(body: dict[str, Any], n: int) -> Any:
    """Look up a booking once, then talk."""
    if body.get("tools") and body["messages"][-1]["role"] == "user":
        booking = {"booking_number": "AH-1234", "last_name": "Lund"}
        return answers._call("find_booking", booking)
    return answers.assistant({**body, "tools": ()}, n)


def nothing_new(body: dict[str, Any], n: int) -> Any:
    return "{}"


MATH = "{data}/runs_math_20.jsonl --task math --limit 2 --model m --base-url {url}"
ROOMS = "meeting_rooms --agent openai --model m --base-url {url} --limit 2"
TRACES = "{tasks}/traces/traces --model m --base-url {url} --limit 2"
PLAN = "{data}/suite.jsonl --model m --base-url {url} --limit 1"
COMMANDS = (
    Command(
        "critic",
        "criteria --task math --model m --base-url {url} --tau 1 -o made.json",
        answers.critic,
    ),
    Command("quantify", f"quantify {MATH}", answers.recorded_judge),
    Command("quantify with reference", f"quantify {MATH} --with-reference", answers.recorded_judge),
    Command(
        "quantify with probabilities", f"quantify {MATH} --probabilities", answers.recorded_judge
    ),
    Command("quantify one per call", f"quantify {MATH} --one-per-call", answers.recorded_judge),
    Command(
        "quantify repeats",
        f"quantify {MATH} --repeats 2 --seed 1 --temperature 0.5",
        answers.recorded_judge,
    ),
    Command("quantify failing", f"quantify {MATH}", answers.troubled_judge),
    Command("verify", f"verify {MATH}", answers.recorded_judge),
    Command(
        "prefer",
        "prefer --runs {tasks}/math/runs.jsonl --task math --limit 2 --model m --base-url {url}",
        answers.worst,
    ),
    Command(
        "verify probes",
        "verify runs.jsonl --model m --base-url {url} --repeats 1 --limit 2 "
        "--perturb whitespace --probes",
        answers.worst,
        failed_sums,
    ),
    Command("plan openai", f"plan test {PLAN} --agent openai", answers.in_turn),
    Command("plan react", f"plan test {PLAN} --agent react", answers.in_turn),
    Command("locator by area", f"trace locate {TRACES} --mode areas", answers.locator),
    Command("locator", f"trace locate {TRACES}", answers.locator),
    Command("whole trace", f"trace locate {TRACES} --mode whole --context 60000", answers.locator),
    Command(
        "locator windows", f"trace locate {TRACES} --context 6600 --budget 2000", answers.locator
    ),
    Command(
        "session judge",
        f"flow session {ROOMS} --user scripted --judge m --judge-url {{url}}",
        answers.assistant,
    ),
    Command(
        "simulated user",
        f"flow session {ROOMS} --user model --simulator m "
        "--simulator-url {url} --judge m --judge-url {url}",
        answers.assistant,
    ),
    Command(
        "simulated tools",
        "flow session hotel_reception --agent openai --model m "
        "--base-url {url} --limit 2 --user scripted --tools model --simulator m "
        "--simulator-url {url} --judge m --judge-url {url}",
        finds_booking,
    ),
    Command(
        "turns, judge of responses and equality",
        "flow turn meeting_rooms --agent openai "
        "--model m --base-url {url} --limit 12 --judge m --judge-url {url}",
        answers.assistant,
    ),
    Command(
        "turns by the template",
        "flow turn meeting_rooms --agent template --model m --base-url {url} --limit 4",
        answers.assistant,
    ),
    Command(
        "session by ReAct",
        "flow session meeting_rooms --agent react --model m "
        "--base-url {url} --limit 1 --user scripted --judge m --judge-url {url}",
        answers.assistant,
    ),
    Command(
        "sub-criteria",
        "criteria --task math --model m --base-url {url} --tau 1 --seeds 1 "
        "--sub-criteria -o made.json",
        answers.critic,
    ),
    Command(
        "consolidation",
        "criteria --task math --model m --base-url {url} --tau .95 --embedder lexical -o made.json",
        answers.critic,
    ),
    Command(
        "professions",
        "plan synth --n 3 --count 1 --invent 1 --lexicon words.json --model m "
        "--base-url {url} -o s.jsonl",
        nothing_new,
    ),
    Command(
        "plan scripted",
        "plan test {data}/suite.jsonl --agent scripted:random --limit 2 --trials 2",
        nothing_new,
    ),
    Command(
        "detectors", "trace locate {tasks}/traces/traces --detectors-only --limit 2", nothing_new
    ),
    Command(
        "session recorded",
        "flow session meeting_rooms --agent recorded:perfect --user scripted --limit 2",
        nothing_new,
    ),
)
