"""What `--workers` costs and brings, and what survives kills.

    python -m benchmarks.scale [--runs 1200] [--calls 2000] [--sessions 12] [--rounds 2]

Sides are commands in fresh processes, against an endpoint on loopback that answers every request
after 50 ms: `quantify` in one process, with one actor and with two, with J requests in flight and
with 2 J. One call judges one run on six criteria. The same for a judge that computes (a Python
function, 10 ms a criterion), and with PostgreSQL as the store where a server can be had. The clock
starts after a quarter of the calls: starting Ray takes seconds, which are not measured. Ratios are
calls per second over one process in the same round.

Kills: 6 SIGKILLs of actors while `--calls` runs (12,000 cells with the default) are judged, then
one of the command, which is started again; the same for sessions of an agent, with 2 kills of
actors. Results must equal those of one process, none stored twice; a killed actor must repeat no
request, a killed command at most those that were in flight.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing, nullcontext
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

from agenteval.testing import Server, serve
from benchmarks.crash import agents
from benchmarks.endpoint import endpoint
from benchmarks.folders import OUT, ROOT, module
from benchmarks.outcome import Row, finish
from benchmarks.sides import CRITERIA, criteria, fixed_reply, items
from tests.support import postgres

IN_FLIGHT = 16


# -- a side, in a process of its own ---------------------------------------------------------------


def computing(run: Any, criterion: Any) -> float:
    """A judge that computes for about 10 ms."""
    end = time.thread_time() + 0.01
    value = len(run.output)
    while time.thread_time() < end:
        value = (value * 31 + 7) % 1009
    return value / 1009


def side(options: argparse.Namespace) -> None:
    """Judge the runs, and print what each kind of process took for a call."""
    import agenteval
    from agenteval.models.limits import Limits

    marks: list[tuple[float, int, dict[str, float]]] = []

    def watch(counts: Any) -> None:
        # A computing judge blocks the event loop, so its first calls count late.
        first = 0 if options.judge == "computing" else counts.total // 4
        if counts.done in (first, counts.total):
            marks.append((time.monotonic(), counts.done, cpu_seconds()))

    agenteval.quantify(
        [run for run, _ in items(options.runs)],
        criteria(),
        judge=computing if options.judge == "computing" else "openai:test-model",
        base_url=None if options.judge == "computing" else options.url,
        task=str(ROOT / "tasks" / "math"),
        store=options.store,
        workers=options.workers or None,
        limits=Limits(options.concurrency),
        progress=watch,
    )
    (began, first, before), (ended, last, after) = marks[0], marks[-1]
    calls = last - first
    cpu = {kind: 1000 * (spent - before.get(kind, 0.0)) / calls for kind, spent in after.items()}
    print(json.dumps({"rate": calls / (ended - began), "cpu": cpu}), flush=True)


def cpu_seconds() -> dict[str, float]:
    """CPU of this process, of the actors and of the other processes of Ray, in seconds."""
    own = psutil.Process()
    spent = {"leader": sum(own.cpu_times()[:2])}
    for process in own.children(recursive=True):
        try:
            kind = "actors" if process.name().startswith("ray::RayActor") else "Ray itself"
            spent[kind] = spent.get(kind, 0.0) + sum(process.cpu_times()[:2])
        except psutil.Error:  # it has just ended
            continue
    return spent


def command(store: str, url: str, **settings: Any) -> list[str]:
    """The command of a side."""
    settings = {"runs": 100, "workers": 0, "concurrency": IN_FLIGHT, "judge": "model"} | settings
    words = [word for name, value in settings.items() for word in (f"--{name}", str(value))]
    return module("scale", "--side", "--store", store, "--url", url, *words)


# -- speed -----------------------------------------------------------------------------------------


def speeds(runs: int, rounds: int) -> dict[str, list[dict[str, Any]]]:
    """What each side measured, by its name, round by round."""
    found: dict[str, list[dict[str, Any]]] = {}
    placed = postgres.postgres_server() if postgres.why_not() is None else nullcontext()
    sides = [
        (judge, count, workers, at_once, "")
        for judge, count in (("model", runs), ("computing", runs // 8))
        for workers in (0, 1, 2)
        for at_once in (IN_FLIGHT, 2 * IN_FLIGHT)
    ]
    with endpoint(fixed_reply(), 0.05) as server, placed as database:
        if database is not None:
            sides += [("model", runs, workers, IN_FLIGHT, ", PostgreSQL") for workers in (0, 2)]
        for judge, count, workers, at_once, where in sides * rounds:
            store = database.database() if database is not None and where else ""
            name = f"{judge}, {workers or 'no'} actors, -j {at_once}{where}"
            settings = {"runs": count, "workers": workers, "concurrency": at_once, "judge": judge}
            found.setdefault(name, []).append(measure(server.base_url, store, settings))
    return found


def measure(url: str, store: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Run one side in a new process and store."""
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        words = command(store or f"{folder}/s.db", url, **settings)
        done = subprocess.run(words, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return measured


def show(found: dict[str, list[dict[str, Any]]]) -> None:
    """Print a line for each side; medians over the rounds."""
    table = Table(title=f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}; CPU in ms a call")
    for head in ("side", "calls/s", "ratio", "leader", "actors", "Ray itself"):
        table.add_column(head, justify="left" if head == "side" else "right")
    for name, rounds in found.items():
        base = found[f"{name.split(', ')[0]}, no actors, -j {IN_FLIGHT}"]
        ratio = statistics.median(a["rate"] / b["rate"] for a, b in zip(rounds, base, strict=True))
        cells = [f"{statistics.median(one['rate'] for one in rounds):,.0f}", f"{ratio:.2f}"]
        for kind in ("leader", "actors", "Ray itself"):
            spent = [one["cpu"][kind] for one in rounds if kind in one["cpu"]]
            cells.append(f"{statistics.median(spent):.2f}" if spent else "")
        table.add_row(name, *cells)
    Console(width=110).print(table)


# -- kills -----------------------------------------------------------------------------------------


def killed(words: list[str], server: Server, calls: int, actors: int) -> tuple[int, int]:
    """Run a command to its end and kill so many actors, or for 0 the command itself once, after
    equal shares of its requests. Returns the requests it sent, and the kills."""
    before, kills = server.count, 0
    leader, number = not actors, actors or 1
    with subprocess.Popen(
        words, cwd=ROOT, stdout=subprocess.DEVNULL, start_new_session=True
    ) as run:
        while run.poll() is None:
            time.sleep(0.01)
            if kills == number or server.count - before < calls * (kills + 1) // (number + 1):
                continue
            children = psutil.Process(run.pid).children(recursive=True)
            alive = [p for p in children if p.name().startswith("ray::RayActor")]
            if leader:
                run.kill()
                kills += 1
            elif alive:
                alive[kills % len(alive)].send_signal(signal.SIGKILL)
                kills += 1
    if leader:
        subprocess.run(words, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
    elif run.returncode not in (0, 1):
        raise RuntimeError(f"exit code {run.returncode}: {' '.join(words)}")
    return server.count - before, kills


def kills(name: str, words: Any, server: Server, allowed: tuple[int, int], query: str) -> list[Row]:
    """Rows on kills of one command; `words` make it for a store and a number of workers. `allowed`
    are the kills of actors, and the extra requests of one kill of the command."""
    rows = []
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        before = server.count
        done = subprocess.run(words(f"{folder}/local.db", 0), cwd=ROOT, stdout=subprocess.DEVNULL)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{name}: exit code {done.returncode}")
        calls = server.count - before
        expected = results(f"{folder}/local.db", query)
        for actors in (allowed[0], 0):
            who = "actors" if actors else "the command"
            store = f"{folder}/{who}.db"
            sent, count = killed(words(store, 2), server, calls, actors)
            same, most = results(store, query) == expected, 0 if actors else allowed[1]
            measured = f"{sent - calls} extra of {calls:,} requests, {count} kills, " + (
                f"{len(expected):,} results equal" if same else "results DIFFER"
            )
            target = f"at most {most} extra, results equal"
            rows.append(
                Row(
                    f"{name}: SIGKILL of {who}",
                    measured,
                    target,
                    same and 0 <= sent - calls <= most and count > 0,
                )
            )
            print(f"{rows[-1].what}: {measured}; {'met' if rows[-1].met else 'MISSED'}: {target}")
    return rows


def results(store: str, query: str) -> list[tuple[Any, ...]]:
    """All results of a store; a result that is there twice is there twice."""
    with closing(sqlite3.connect(store)) as database:
        return database.execute(query).fetchall()


def reply(body: dict[str, Any], n: int) -> Any:
    """A function of the request, without its nonce."""
    form = (body.get("response_format") or {}).get("json_schema", {}).get("schema", {})
    return agents.reply(body, form.get("properties", {}))


def crashes(calls: int, sessions: int) -> list[Row]:
    """Rows on kills of judging and of sessions."""
    cells = """SELECT item_key, criterion_key, repeat, status, label, value, detail FROM results
        ORDER BY 1, 2, 3"""
    trials = "SELECT item_key, repeat, status, outcome FROM calls ORDER BY 1, 2"
    options = "--user scripted --agent template --model openai:test-model --turns 20"
    options += f" --max-unscored 1 --limit {sessions} -j {IN_FLIGHT // 2}"
    talk = ("-m", "agenteval", "flow", "session", agents.ROLE, *options.split())
    with serve(answer=reply, latency=0.05, ignore=("[0-9a-f]{24}",)) as server:
        url = server.base_url

        def judge(store: str, workers: int) -> list[str]:
            return command(store, url, runs=calls, workers=workers)

        def session(store: str, workers: int) -> list[str]:
            more = ("--workers", str(workers)) if workers else ()
            return [sys.executable, *talk, "--base-url", url, "--store", store, *more]

        rows = kills(f"{calls * CRITERIA:,} cells", judge, server, (6, IN_FLIGHT), cells)
        return rows + kills("sessions", session, server, (2, IN_FLIGHT // 2), trials)


def main() -> int:
    """Measure, print the tables and the line of JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=1200)
    parser.add_argument("--calls", type=int, default=2000)
    parser.add_argument("--sessions", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--side", action="store_true", help=argparse.SUPPRESS)
    for name in ("store", "url", "judge"):
        parser.add_argument(f"--{name}", help=argparse.SUPPRESS)
    for name in ("workers", "concurrency"):
        parser.add_argument(f"--{name}", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ.setdefault("OPENAI_API_KEY", "none")
    if options.side:
        side(options)
        return 0
    OUT.mkdir(exist_ok=True)
    found = speeds(options.runs, options.rounds)
    show(found)
    if reason := postgres.why_not():
        print(f"not measured with PostgreSQL: {reason}")
    rows = crashes(options.calls, options.sessions)
    return finish("scale", rows, sides=found)


if __name__ == "__main__":
    sys.exit(main())
