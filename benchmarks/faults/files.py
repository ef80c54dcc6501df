"""Files that are written whole or appended to, for `faults.py`: killed writers, cut recordings."""

from __future__ import annotations

import json
import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path

from agenteval.errors import InputError
from agenteval.files import replacing, write_atomically
from agenteval.models.replay import FileRecorder, ReplayTransport
from agenteval.models.wire import Reply, Request
from benchmarks.faults.tries import Tally, leftovers

LINES = 4_000


def _write_for_ever(path: Path, pipe: Connection) -> None:
    pipe.send("ready")
    n = 0
    while True:
        n += 1
        if n % 2:
            write_atomically(path, f"{n}\n" * LINES)
        else:
            with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as out:
                for _ in range(LINES):
                    out.write(f"{n}\n")


def killed(work: Path, times: int) -> Tally:
    """A writer is killed with SIGKILL while it writes, again and again: whole files, no litter."""
    tally = Tally()
    work.mkdir(parents=True, exist_ok=True)
    path = work / "figures.txt"
    fork = multiprocessing.get_context("forkserver")
    fork.set_forkserver_preload(["benchmarks.faults.files"])
    for n in range(times):
        ours, theirs = fork.Pipe(duplex=False)
        child = fork.Process(target=_write_for_ever, args=(path, theirs))
        child.start()
        theirs.close()  # a child that dies early is an EOFError, not a wait
        ours.recv()
        time.sleep(0.002 + 0.0007 * (n % 41))
        child.kill()
        child.join()
        tally.tried += 1
        left = leftovers(work)
        tally.clean += bool(left)  # it was killed within a write
        if path.exists():
            lines = path.read_text(encoding="utf-8").split("\n")
            if len(lines) != LINES + 1 or len(set(lines[:-1])) != 1:
                tally.wrong.append(f"half: kill {n}: {len(lines) - 1} lines")
        write_atomically(path, "0\n" * LINES)  # the next write of that file
        if left := leftovers(work):
            tally.wrong.append(f"leftover: kill {n}: {', '.join(left)}")
    return tally


def recording(path: Path, count: int) -> bytes:
    """A recording of `count` replies, with text of several bytes a character."""
    recorder = FileRecorder(path)
    for n in range(count):
        recorder.record(_request(n), Reply(f"réponse {n} \N{GRINNING FACE}"))
    recorder.close()
    return path.read_bytes()


def _request(n: int) -> Request:
    return Request(messages=({"role": "user", "content": f"question {n}"},))


def cut(work: Path, replies: int) -> Tally:
    """A recording cut at every byte: it loads without at most its last line, or names the line;
    recorded on, it is whole again."""
    tally = Tally()
    work.mkdir(parents=True, exist_ok=True)
    path = work / "recording.jsonl"
    ascii_ = recording(path, replies)
    # as other programs write them, with characters as they are
    rows = [json.loads(line) for line in ascii_.splitlines()]
    plain = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in rows).encode()
    for data in (ascii_, plain):
        for at in range(len(data)):
            path.write_bytes(data[:at])
            tally.tried += 1
            tally.wrong += [f"lost: cut at {at}: {w}" for w in _loaded(path, data[:at])]
    for at in range(len(ascii_)):
        path.write_bytes(ascii_[:at])
        if recording(path, replies) != ascii_:
            tally.wrong.append(f"differing: cut at {at}, then recorded on")
    for line in range(replies - 1):
        torn = plain.splitlines(keepends=True)
        torn[line] = torn[line][: len(torn[line]) // 2] + b"\n"
        path.write_bytes(b"".join(torn))
        tally.tried += 1
        try:
            ReplayTransport(path)
            tally.wrong.append(f"lost: line {line + 1} torn, and nothing said")
        except InputError as error:
            if f"{path.name}:{line + 1}:" not in str(error):
                tally.wrong.append(f"unclear: line {line + 1} torn: {error}")
    tally.clean = tally.tried - len(tally.wrong)
    return tally


def _loaded(path: Path, data: bytes) -> list[str]:
    whole = data.count(b"\n")
    try:
        found = len(ReplayTransport(path)._by_key)
    except InputError as error:
        return [] if whole == 0 else [str(error)]
    return [] if whole <= found <= whole + 1 else [f"{found} of {whole} lines"]
