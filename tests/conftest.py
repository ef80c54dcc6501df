"""What holds for all tests: how many examples are tried, and what is loaded on one worker only."""

from __future__ import annotations

import logging
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, settings

from tests.support.browser import chromium, open_page  # noqa: F401  fixtures
from tests.thorough import PROFILE

settings.register_profile(
    "usual",
    settings(),  # the one of continuous integration, where that is active
    max_examples=60,
    derandomize=True,  # `make test` gives today what it gave yesterday; `thorough` looks for more
    deadline=None,  # how long an example takes is a matter of the machine
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    PROFILE, settings.get_profile("usual"), max_examples=200, derandomize=False
)
settings.load_profile("usual")

# Workers inherit the width of the terminal that `make test` was typed in; tables follow it.
os.environ.pop("COLUMNS", None)

# A shell that starts `make test` with & has it ignore SIGINT, and so would all that it starts.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# nohup has it ignore SIGHUP.
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture(autouse=True)
def _nothing_learned() -> Iterator[None]:
    """What was learned of an endpoint is forgotten: another test may get its port."""
    yield
    if adapted := sys.modules.get("agenteval.models.adaptation"):
        adapted.adaptation.cache_clear()


@pytest.hookimpl(tryfirst=True)  # before xdist reads the groups
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        heavy = item.get_closest_marker("local")  # loads torch, ten seconds: on one worker
        if heavy and not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group("local"))
        if getattr(config.option, "loadgroup", False):
            _name_group(item)


def _name_group(item: pytest.Item) -> None:
    """Write the group behind the id of the test, where the scheduler looks for it.

    xdist 3.8 writes it into `_nodeid`, which pytest 9.2 does not read any more: without this every
    group is spread over all workers, silently. Older versions of pytest have no `_id`.
    """
    mark = item.get_closest_marker("xdist_group")
    if mark is not None and hasattr(item, "_id"):
        from _pytest.nodes import coerce_node_id

        item._id = coerce_node_id(f"{item.nodeid}@{mark.args[0]}")


_databases: set[str] = set()  # real paths of what SQLite was asked to open
_names: set[str] = set()  # their last parts, which tell quickly what is none of them


def _opened_by_sqlite_alone(event: str, values: tuple[object, ...]) -> None:
    """While SQLite has a file open nothing else opens it: to close it gives up SQLite's locks."""
    if event == "sqlite3.connect":
        name, _, query = str(values[0]).removeprefix("file://").partition("?")
        if "immutable=1" in query or "nolock=1" in query:
            raise AssertionError(f"{name} is opened without locks")
        real = os.path.realpath(unquote(name) if query else name)
        _databases.add(real)
        _names.add(os.path.basename(real))
    elif event == "open" and isinstance(path := values[0], str | os.PathLike):
        if os.path.basename(path) not in _names and not os.path.islink(path):
            return
        if (real := os.path.realpath(path)) in _databases and _is_open(real):
            raise AssertionError(f"{path} is opened while SQLite has it open")


def _is_open(path: str) -> bool:
    """Whether a descriptor of this process is on the file."""
    if not os.path.exists(path):
        return False
    about = os.stat(path)
    for descriptor in os.listdir("/dev/fd") if os.name == "posix" else ():
        with suppress(OSError):  # closed
            if os.path.samestat(os.fstat(int(descriptor)), about):
                return True
    return False


sys.addaudithook(_opened_by_sqlite_alone)  # for good: there is no way to take one back


# Of the environment, what the package, its commands and its terminal read. Others, such as torch's
# own, are set by packages when they are imported.
_READ = (
    "AGENTEVAL_",
    "OPENAI_",
    "HF_",
    "XDG_",
    "HOME",
    "PATH",
    "PYTHON",
    "NO_COLOR",
    "COLUMNS",
    "TERM",
    "http",
    "HTTP",
    "NO_PROXY",
    "no_proxy",
    "SSL_",
    "MPL",
)


def _process() -> dict[str, object]:
    """What tests share because it belongs to the process."""
    loggers = logging.root.manager.loggerDict.items()
    levels = {f"level of the logger {n}": v.level for n, v in loggers if hasattr(v, "level")}
    set_levels = {name: level for name, level in levels.items() if level}
    signals = {f"handler of {s.name}": signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    environ = {f"${k}": v for k, v in os.environ.items() if k.startswith(_READ)}
    others = {"root level": logging.root.level, "disabled up to": logging.root.manager.disable}
    return {**set_levels, **signals, **environ, **others, "folder": os.getcwd()}


@pytest.fixture(autouse=True, scope="module")
def _leaves_the_process_as_it_was(request: pytest.FixtureRequest) -> Iterator[None]:
    """What a module leaves behind decides whether another one passes, by the order of workers."""
    before = _process()
    yield
    after = _process()
    changed = [name for name in before.keys() | after.keys() if before.get(name) != after.get(name)]
    # Packages set levels of their own loggers when they are imported for the first time, and
    # uvicorn whenever a server is made.
    ours = [
        n
        for n in changed
        if "logger" not in n or "agenteval" in n or (n in before and "logger uvicorn" not in n)
    ]
    assert not ours, f"{request.node.nodeid} leaves changed: {', '.join(sorted(ours))}"
