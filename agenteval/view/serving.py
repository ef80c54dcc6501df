"""Serve the viewer on this machine until it is interrupted."""

from __future__ import annotations

import socket
import webbrowser
from dataclasses import dataclass
from pathlib import Path

from agenteval.cli.console import note
from agenteval.cli.running import Watch
from agenteval.errors import InputError, StoreError
from agenteval.store import Store
from agenteval.store.labels import Labels
from agenteval.store.store import default_path
from agenteval.traces.input import read_each
from agenteval.traces.outline import trace_key
from agenteval.utility.criteria_file import load_criteria

_LOOPBACK = ("127.0.0.1", "localhost")


@dataclass(frozen=True)
class ViewerSettings:
    """How the viewer is served.

    Without `labelling` it changes nothing; with it, runs can be labelled (by `rater`, unless
    another name is entered) and the file of `criteria` edited. `traces` (a file or folder) are
    shown in full; the store has excerpts. It listens on 127.0.0.1, or with `remote` on all
    addresses, at `port` (0: a free one).
    """

    labelling: bool = False
    rater: str | None = None
    criteria: Path | None = None
    traces: Path | None = None
    port: int = 0
    open_browser: bool = True
    remote: bool = False


def serve(store: str | Path | None, settings: ViewerSettings) -> None:
    """Show a store (default: `AGENTEVAL_STORE` or agenteval.db) in the browser until Ctrl-C.

    Raises InputError when the packages of the extra `view` are missing, the port is taken, the
    criteria cannot be read, a rater is named without labelling, or labels cannot be saved;
    StoreError as `Store`.
    """
    labelling, rater, remote = settings.labelling, settings.rater, settings.remote
    if rater is not None and not labelling:
        raise InputError("names the rater; add --label", "--rater")
    if settings.criteria is not None:
        load_criteria(settings.criteria)  # refuse a bad file before serving anything
    traces = {}
    if settings.traces is not None:
        traces = {trace_key(run): load for run, load in read_each(settings.traces, Watch())}
    try:
        import uvicorn

        from agenteval.view.application import make_app
        from agenteval.view.security import Access
        from agenteval.view.server import Viewer
    except ImportError as error:
        raise InputError(
            f"the viewer needs {error.name}: pip install 'agenteval[view]'", "agenteval view"
        ) from error
    host = "0.0.0.0" if remote else _LOOPBACK[0]  # noqa: S104  asked for by --allow-remote
    with (
        Store(store or default_path(), create=False) as opened,
        _listening(host, settings.port) as sock,
    ):
        if labelling:
            try:
                Labels(opened).check_writable()
            except StoreError as error:
                raise InputError(f"labels cannot be saved: {error}", "--label") from error
        number = sock.getsockname()[1]
        access = Access(number, None if remote else _LOOPBACK, reusable=remote)
        app = make_app(Viewer(opened, access, labelling, rater, settings.criteria, traces))
        shown = socket.gethostname() if remote else host
        start = "/label" if labelling else "/"
        url = f"http://{shown}:{number}{start}?token={access.token}"
        note(f"{opened.shown}: {url}")
        if remote:
            note(
                "other machines can reach it, and nothing is encrypted: use it in a trusted network"
            )
        if settings.open_browser:
            webbrowser.open(url)
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False)
        uvicorn.Server(config).run(sockets=[sock])


def _listening(host: str, port: int) -> socket.socket:
    sock = socket.socket()
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise InputError(f"port {port} cannot be used ({error.strerror})", "--port") from error
    return sock
