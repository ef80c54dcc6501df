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
from typing import Any, Literal

from agenteval.cli.options import WorkerOptions
from agenteval.errors import InputError
from agenteval.records import content_hash
from agenteval.text import url_secrets
from agenteval.workers import TEAM, Leader, Places, within

_OWN = {"store", "header", "workers", "ray", "quiet", "as_json", "concurrency"}  # of each process
_ALONE = ("record", "judgements", "until")  # what goes with one process


@contextmanager
def leading(context: Any, groups: Sequence[object]) -> Iterator[None]:
    """Within the block the command only plans and watches, and others do the work. Raises
    InputError for what goes with one process alone."""
    given: Mapping[str, Any] = context.params
    if given.get("dry_run") or TEAM.get() is not None:
        yield
        return
    for name in _ALONE:
        if given.get(name) not in (None, 1):
            raise InputError("goes with one process alone", f"--{name}")
    chosen = next(one for one in groups if isinstance(one, WorkerOptions))
    places = _places(chosen, given.get("concurrency") or 1)
    leader = Leader(words_of(context), package_sha256(), places)
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
    store, headers, number of requests. Raises InputError for an address with a key, and for
    standard input."""
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
            if "-" in texts:
                raise InputError("other processes cannot read standard input: give a file", "-")
            places += texts
        elif parameter.is_flag:
            words += [parameter.opts[-1]] if value else parameter.secondary_opts[-1:]
        else:
            words += [f"{parameter.opts[-1]}={text}" for text in texts]
    return [*names, *words, "--", *places]


@cache
def package_sha256() -> str:
    """Hash of this package's code: a worker of another version would ask other questions."""
    folder = Path(__file__).parents[1]
    files = sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".json", ".j2", ".html"))
    return content_hash(
        [(str(p.relative_to(folder)), hashlib.sha256(p.read_bytes()).hexdigest()) for p in files]
    )


class Processes(Places):
    """Workers as processes of this machine, each in a session of its own: Ctrl-C is the leader's to
    tell."""

    def spawn(self, words: Sequence[str], store: str) -> subprocess.Popen[bytes]:
        """Start one; what it cannot help saying goes where this process's errors go."""
        return subprocess.Popen(  # noqa: S603  ourselves
            [sys.executable, "-m", "agenteval", *words],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True,
            env={**os.environ, "AGENTEVAL_STORE": store},
        )  # fmt: skip

    def ended(self, one: subprocess.Popen[bytes]) -> Literal["", "ended", "killed"]:
        """Killed is who ended by a signal."""
        code = one.poll()
        return "" if code is None else "killed" if code < 0 else "ended"

    def kill(self, one: subprocess.Popen[bytes]) -> None:
        """End it, and wait until the system has."""
        one.kill()
        one.wait()
