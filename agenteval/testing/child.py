"""The server as a child process of the test."""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field

from agenteval.testing.wire import Body


@dataclass
class ServerProcess:
    """A server in a process of its own; see `spawn`."""

    base_url: str
    pid: int
    process: subprocess.Popen[bytes] = field(repr=False)

    def stats(self, *, keys: bool = True) -> Body:
        """GET /stats. Raises OSError when the server is gone."""
        return self._call("GET", "/stats" if keys else "/stats?keys=no")

    def reset(self) -> None:
        """POST /reset. Raises OSError when the server is gone or has requests in flight."""
        self._call("POST", "/reset")

    def _call(self, method: str, path: str) -> Body:
        from http.client import HTTPConnection  # no proxy from the environment, unlike urllib

        port = int(self.base_url.rsplit(":", 1)[1].split("/")[0])
        connection = HTTPConnection("127.0.0.1", port, timeout=30)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            value = json.loads(response.read())
        finally:
            connection.close()
        if response.status != 200:
            raise OSError(f"{method} {path}: {response.status} {value['error']['message']}")
        assert isinstance(value, dict)
        return value


@contextlib.contextmanager
def spawn(*arguments: str) -> Iterator[ServerProcess]:
    """The server as a child process, given the arguments of the command line; stopped at the end.

    Raises RuntimeError when it does not come up within 20 s.
    """
    command = [sys.executable, "-m", "agenteval.testing.server", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:  # noqa: S603  (ourselves)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            readable, _, _ = select.select([process.stdout], [], [], 20)
            line = process.stdout.readline() if readable else b""
            if not line:
                raise RuntimeError(f"the test server did not start: {' '.join(command)}")
            ready = json.loads(line)
            yield ServerProcess(ready["base_url"], ready["pid"], process)
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
