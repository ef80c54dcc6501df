"""A command that several processes carry out: its words for the others, and where they run."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import Enum
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.errors import InputError
from agenteval.records import content_hash

if TYPE_CHECKING:
    from agenteval.cli.options import WorkerOptions
    from agenteval.workers import Places

_OWN = {"store", "header", "workers", "ray", "quiet", "as_json", "concurrency"}  # of each process
_ALONE = ("record", "judgements", "until")  # what goes with one process
_RESTARTS = 20  # of workers that were killed; more are no accident
_PATIENCE = 30.0  # seconds that a worker gets to end when the command has


@contextmanager
def leading(context: Any, groups: Sequence[object]) -> Iterator[None]:
    """Within the block the command only plans and watches, when its options say so; others do the
    work. Raises InputError for what goes with one process alone."""
    from agenteval.cli.options import WorkerOptions
    from agenteval.workers import TEAM, Leader, within

    chosen = next((one for one in groups if isinstance(one, WorkerOptions)), None)
    given: Mapping[str, Any] = context.params if context is not None else {}
    if chosen is None or not chosen.several or given.get("dry_run") or TEAM.get() is not None:
        yield
        return
    for name in _ALONE:
        if given.get(name) is not None:
            raise InputError("goes with one process alone", f"--{name}")
    if "-" in given.values():
        raise InputError("other processes cannot read standard input: give a file", "-")
    leader = Leader(
        words_of(context), package_sha256(), _places(chosen, given.get("concurrency") or 1)
    )
    with within(leader):
        try:
            yield
        finally:
            leader.end()


def _places(chosen: WorkerOptions, concurrency: int) -> Places:
    if chosen.ray is not None:
        from agenteval.plugins.ray import RayPlaces

        return RayPlaces(chosen.ray, max(chosen.workers, 1), concurrency)
    return Processes(chosen.workers, concurrency)


def words_of(context: Any) -> list[str]:
    """The command as words, with what was given to it, but for what each process has of its own:
    store, headers, number of requests. Raises InputError for an address with a key."""
    from agenteval.text import url_secrets

    names: list[str] = []
    above = context
    while above.parent is not None:
        names.insert(0, above.info_name)
        above = above.parent
    words: list[str] = []
    places: list[str] = []
    for parameter in context.command.params:
        value = context.params.get(parameter.name)
        if parameter.name in _OWN or value is None or value == () or value is parameter.default:
            continue
        values = value if isinstance(value, list | tuple) else [value]
        texts = [str(v.value if isinstance(v, Enum) else v) for v in values]
        if any("://" in text and url_secrets(text) for text in texts):
            raise InputError(
                "the command is kept in the store, where a key must not stand: give it in "
                "AGENTEVAL_API_KEY, or the whole address in AGENTEVAL_BASE_URL",
                parameter.opts[-1],
            )
        if parameter.param_type_name == "argument":
            places += texts
        elif parameter.is_flag:
            words += [parameter.opts[-1]] if value else parameter.secondary_opts[-1:]
        else:
            words += [f"{parameter.opts[-1]}={text}" for text in texts]
    return [*names, *words, "--", *places]


def worker_words(job: str, name: str, concurrency: int) -> list[str]:
    """What starts a worker of a job, in the store that AGENTEVAL_STORE names."""
    return [
        sys.executable, "-m", "agenteval", "work", f"--job={job}", f"--name={name}",
        f"--concurrency={concurrency}", "--quiet",
    ]  # fmt: skip


@cache
def package_sha256() -> str:
    """Hash of this package's code: a worker of another version would ask other questions."""
    folder = Path(__file__).parents[1]
    files = sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".json", ".j2", ".html"))
    return content_hash(
        [(str(p.relative_to(folder)), hashlib.sha256(p.read_bytes()).hexdigest()) for p in files]
    )


class Processes:
    """Workers as processes of this machine. With a count of 0 others start them."""

    def __init__(self, count: int, concurrency: int) -> None:
        self._count = count
        self._concurrency = max(1, concurrency // max(count, 1))
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._job = self._store = ""
        self._started = 0

    def start(self, job: str, store: str) -> None:
        """Start them all, each in a session of its own: Ctrl-C is the leader's to tell."""
        self._job, self._store = job, store
        for _ in range(self._count):
            self._start_one()

    def _start_one(self) -> None:
        self._started += 1
        name = f"{self._job[:8]}-{self._started}"
        self._running[name] = subprocess.Popen(  # noqa: S603  ourselves
            worker_words(self._job, name, self._concurrency), stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "AGENTEVAL_STORE": self._store},
        )  # fmt: skip

    def tend(self) -> tuple[int | None, list[str]]:
        """How many run, and who is gone; who was killed is followed by another."""
        if not self._count:
            return None, []
        ended = {name: p.returncode for name, p in self._running.items() if p.poll() is not None}
        for name, code in ended.items():
            del self._running[name]
            if code < 0 and self._started < self._count + _RESTARTS:
                self._start_one()
        return len(self._running), list(ended)

    def stop(self, *, kill: bool) -> None:
        """Wait until they have ended; who does not in time, or with `kill`, is killed."""
        for process in self._running.values():
            if kill:
                process.kill()
            try:
                process.wait(_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self._running.clear()
