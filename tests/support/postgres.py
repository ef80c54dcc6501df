"""A PostgreSQL server of one's own for tests, on loopback, in a temporary folder."""

from __future__ import annotations

import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

USER, PASSWORD = "agent", "not a secret: loopback only"


@dataclass
class Server:
    """A running server; `database()` gives the URL of a new, empty database."""

    port: int
    folder: Path
    programs: Path
    numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def url(self, database: str, *, password: str = PASSWORD) -> str:
        quoted = password.replace(" ", "%20").replace(":", "%3A")
        return f"postgresql://{USER}:{quoted}@127.0.0.1:{self.port}/{database}"

    def database(self) -> str:
        name = f"d{next(self.numbers)}"
        _run(self, "createdb", "-h", "127.0.0.1", "-p", str(self.port), "-U", USER, name)
        return self.url(name)

    def restart(self) -> None:
        """Stop it at once, whoever is connected, and start it again."""
        _run(
            self,
            "pg_ctl",
            "-D",
            str(self.folder / "data"),
            "-m",
            "immediate",
            "-w",
            "restart",
            "-l",
            str(self.folder / "log"),
        )


def why_not() -> str | None:
    """Why no server can be had here; None where it can."""
    if _programs() is None:
        return "no PostgreSQL here (Debian: apt-get install postgresql)"
    if os.getuid() == 0 and not _user():
        return "PostgreSQL refuses root, and there is no user postgres"
    return None


@contextmanager
def postgres_server() -> Iterator[Server]:
    """A server in a temporary folder, with a password; stopped and removed at the end."""
    programs = _programs()
    assert programs is not None
    folder = Path(tempfile.mkdtemp(prefix="pg"))
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    server = Server(port, folder, programs)
    if os.getuid() == 0:
        shutil.chown(folder, "postgres")
    secret = folder / "password"
    secret.write_text(PASSWORD + "\n")
    secret.chmod(0o644)
    data = str(folder / "data")
    _run(
        server,
        "initdb",
        "-D",
        data,
        "-A",
        "scram-sha-256",
        f"--pwfile={secret}",
        "-U",
        USER,
        "--no-sync",
        "-E",
        "UTF8",
        "--locale=C.UTF-8",
    )
    options = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories={folder}"
    _run(server, "pg_ctl", "-D", data, "-o", options, "-l", str(folder / "log"), "-w", "start")
    try:
        yield server
    finally:
        _run(server, "pg_ctl", "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def _run(server: Server, program: str, *arguments: str) -> None:
    command = [str(server.programs / program), *arguments]
    environment = {**os.environ, "PGPASSWORD": PASSWORD}
    user = _user() if os.getuid() == 0 else None
    subprocess.run(
        command,
        check=True,
        cwd=server.folder,
        env=environment,
        user=user,
        timeout=60,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def _user() -> str | None:
    try:
        return pwd.getpwnam("postgres").pw_name
    except KeyError:
        return None


def _programs() -> Path | None:
    """The folder of initdb and pg_ctl, of the newest version."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=_version)
    if found:
        return found[-1].parent
    here = shutil.which("initdb")
    return None if here is None else Path(here).resolve().parent


def _version(path: Path) -> int:
    name = path.parents[1].name
    return int(name) if name.isdigit() else 0
