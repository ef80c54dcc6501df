"""Run a command as a child process with bounded lines and stderr, and clean up after it."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import os
import re
import shlex
import shutil
import signal
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from agenteval.errors import InputError, ModelError
from agenteval.text import SECRET_NAMES, redacted

MAX_LINE = 1_000_000  # bytes
_TAIL = 4000  # bytes of stderr that are kept
_SHOWN = 350  # characters of it in a message
_TERM = 0.5  # seconds between SIGTERM and SIGKILL
_CHUNK = 65_536


def split(command: str) -> list[str]:
    """The command as a shell would split it; no shell is ever run.

    Raises InputError for an empty command, an unbalanced quote or a program that is not there.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise InputError(f"{command!r} cannot be split into words: {error}", "--agent") from error
    if not words or "\0" in command:
        raise InputError("a command is needed, e.g. command:'python agent.py'", "--agent")
    if shutil.which(words[0]) is None:
        raise InputError(f"the program {words[0]!r} does not exist or is not executable", "--agent")
    return words


class _Pipes(asyncio.subprocess.SubprocessStreamProtocol):
    """Reports the exit of the child; asyncio's wait() also waits for other processes that hold the
    pipes."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__(limit=_CHUNK, loop=loop)
        self.exited = asyncio.Event()

    def process_exited(self) -> None:
        super().process_exited()
        self.exited.set()


class Child:
    """A running command with its pipes; see `running`."""

    def __init__(self, transport: asyncio.SubprocessTransport, pipes: _Pipes) -> None:
        loop = asyncio.get_running_loop()
        self._transport = transport
        self._pid = transport.get_pid()
        self._process = asyncio.subprocess.Process(transport, pipes, loop)
        self._tail = bytearray()
        self._drain = asyncio.ensure_future(self._keep_stderr())
        self._exit = asyncio.ensure_future(pipes.exited.wait())

    async def write(self, data: bytes, *, last: bool = False) -> None:
        """Send to its stdin, and close it after the last piece.

        If the child has closed it, this is not an error.
        """
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(data)
            await self._process.stdin.drain()
        if last:
            self._process.stdin.close()

    async def lines(self) -> AsyncIterator[tuple[bytes, bool]]:
        """Its stdout by lines, without the newline, and whether the line was cut at MAX_LINE."""
        buffer, cut = bytearray(), False
        async for chunk in self._chunks():
            pieces = chunk.split(b"\n")
            for number, piece in enumerate(pieces):
                if number:
                    yield bytes(buffer), cut
                    buffer, cut = bytearray(), False
                room = MAX_LINE - len(buffer)
                cut = cut or len(piece) > room
                buffer += piece[:room]
        if buffer:
            yield bytes(buffer), cut

    async def text(self, limit: int) -> str:
        """Its whole stdout, of which the last `limit` bytes are kept."""
        buffer = bytearray()
        async for chunk in self._chunks():
            buffer += chunk
            del buffer[:-limit]
        return buffer.decode("utf-8", "replace")

    async def exit_code(self, within: float | None = None) -> int | None:
        """Return its exit code once it has ended (-9 is SIGKILL), or None after the timeout."""
        await asyncio.wait({self._exit}, timeout=within)
        return self._transport.get_returncode()

    async def failed(self, what: str) -> ModelError:
        """The error that says `what` happened, and the end of its stderr."""
        await asyncio.wait({self._drain}, timeout=_TERM)
        written = self._tail.decode("utf-8", "replace")
        tail = " ".join(redacted(written).split())
        shown = tail if len(tail) <= _SHOWN else f"… {tail[-_SHOWN:]}"
        return ModelError(f"{what}; stderr: {shown}" if tail else f"{what}; stderr is empty")

    async def stop(self) -> None:
        """End the whole process group: SIGTERM, then SIGKILL; the child is waited for."""
        try:
            if not self._exit.done():
                self._signal(signal.SIGTERM)
                await self.exit_code(_TERM)
        finally:  # also when cancelled, and for processes that the child left behind
            self._signal(signal.SIGKILL)
        await self.exit_code(_TERM)
        for task in (self._drain, self._exit):
            task.cancel()
        self._transport.close()  # a process that left the group may still hold the pipes
        await asyncio.sleep(0)

    def _signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError, PermissionError):  # the group is gone
            os.killpg(self._pid, number)

    async def _chunks(self) -> AsyncIterator[bytes]:
        """Yield chunks of stdout until it is closed or the child has ended."""
        assert self._process.stdout is not None
        while True:
            read = asyncio.ensure_future(self._process.stdout.read(_CHUNK))
            try:
                await asyncio.wait({read, self._exit}, return_when=asyncio.FIRST_COMPLETED)
                await asyncio.wait({read}, timeout=_TERM)  # what it wrote before it ended
            finally:
                read.cancel()
            if read.cancelled() or not read.done() or not (chunk := read.result()):
                return
            yield chunk

    async def _keep_stderr(self) -> None:
        assert self._process.stderr is not None
        while chunk := await self._process.stderr.read(_CHUNK):
            self._tail += chunk
            del self._tail[:-_TAIL]


@contextlib.asynccontextmanager
async def running(
    words: Sequence[str], environment: Mapping[str, str] | None = None
) -> AsyncIterator[Child]:
    """The command as the leader of a process group of its own, which is killed at the end.

    `environment` is added to ours. Processes that leave the group (setsid) are not killed.
    Raises InputError when it cannot be started.
    """
    loop, pipe = asyncio.get_running_loop(), asyncio.subprocess.PIPE
    try:
        transport, pipes = await loop.subprocess_exec(
            lambda: _Pipes(loop),
            *words,
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            start_new_session=True,
            env={**os.environ, **(environment or {})},
        )
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise InputError(f"{words[0]!r} cannot be started: {reason}", "--agent") from error
    child = Child(transport, pipes)
    try:
        yield child
    finally:
        ending = asyncio.ensure_future(child.stop())
        try:
            await asyncio.shield(ending)
        except asyncio.CancelledError:  # already abandoned: still wait for its end
            await ending
            raise


def without_secrets(words: Sequence[str]) -> list[str]:
    """The words of a command, with what looks like a key or password replaced by "***"."""
    shown: list[str] = []
    next_is = False
    for word in words:
        word = _BEARER.sub(r"\1 ***", _CREDENTIALS.sub("://***@", word))
        name, equals, _ = word.partition("=")
        secret = name.lower().endswith(SECRET_NAMES)
        if next_is or word.startswith(_KEYS):
            shown.append("***")
        elif secret and equals:
            shown.append(f"{name}=***")
        else:
            shown.append(word)
        next_is = secret and not equals and name.startswith("-")
    return shown


_TOKENS = ("ghp_", "gho_", "github_pat_", "glpat-", "hf_", "xoxb-", "xoxp-", "eyJ")
_KEYS = ("sk-", "sk_", "AKIA", "AIza", *_TOKENS)
_CREDENTIALS = re.compile(r"://[^/?#@\s]*@")
_BEARER = re.compile(r"\b(bearer|basic|x-api-key:|api-key:|token:)\s+\S+", re.I)


def files_sha256(words: Sequence[str]) -> dict[str, str]:
    """sha256 (hex) of every file that the command names by a path, as of its own script."""
    hashes = {}
    for index, word in enumerate(words):
        path = Path(word)
        with contextlib.suppress(OSError):  # too long for a name
            small = path.is_file() and path.stat().st_size <= 10_000_000
            if small and (index > 0 or "/" in word):
                hashes[word] = hashlib.sha256(path.read_bytes()).hexdigest()
    return hashes
