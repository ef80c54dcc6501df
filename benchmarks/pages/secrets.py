"""Keys that are told to the program in every way, on every way of failing, at the loudest level:
what is found of them afterwards in any output and any file."""

from __future__ import annotations

import base64
import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from benchmarks.folders import ROOT
from benchmarks.pages.echo import MODES, Echo, echo

KEY, USER, QUERY, HEADER = (
    "sk-canary-7f3e9a1b2c4d", "canaryuser55d1:canary/pass+81f2", "canaryquery6621ab",
    "canaryheader9917cd",
)  # fmt: skip
PROXY = "proxyuser31aa:proxypass77bb"
# Every root logger at DEBUG, so that all libraries log all they can.
_LOUD = (
    "import json, logging, sys; logging.basicConfig(level=logging.DEBUG, force=True)\n"
    "from agenteval.cli.main import main\n"
    "for command in json.loads(sys.argv[1]):\n"
    "    try: main(command)\n"
    "    except SystemExit: pass\n"
)
_LIMITS = ("--timeout", "1", "--repeats", "1", "--limit", "1", "-j", "1")


@dataclass
class Secrets:
    """What was tried, and where something was found."""

    paths: int = 0
    files: int = 0
    found: list[str] = field(default_factory=list)
    elsewhere: list[str] = field(default_factory=list)  # keys that another host heard


def spellings(secret: str) -> set[bytes]:
    """In what forms a value could stand somewhere; and its parts, as cut texts show them."""
    whole = {secret, quote(secret, safe=""), quote(secret), json.dumps(secret)[1:-1]}
    parts = {p for p in secret.replace("/", ":").replace("+", ":").split(":") if len(p) > 6}
    coded = base64.b64encode(secret.encode()).decode()
    return {w.encode() for w in (*whole, *parts, coded, coded.rstrip("=")[:-1])}


_ALL = {s for secret in (KEY, USER, QUERY, HEADER, PROXY) for s in spellings(secret)} | {
    KEY[:16].encode(), HEADER[:13].encode(), QUERY[:13].encode()
}  # fmt: skip


def secrets(
    folder: Path, modes: Sequence[str] = MODES, *, only: Sequence[str] = (), workers: int = 2
) -> Secrets:
    """Run every path (with `only`, those of these names) in a folder of its own and look through
    what it left."""
    total = Secrets()
    with echo() as (own, other), ThreadPoolExecutor(workers) as pool:
        plans = [p for p in _plans(own, modes) if not only or p[0] in only]
        done = list(pool.map(lambda p: _one(folder / str(p[0]), *p[1:]), enumerate_plans(plans)))
        if not any(_tells(told) for told in own.heard):
            total.found.append("the endpoint never got a key: nothing was tested")
        total.elsewhere = [told for told in other.heard if _tells(told)]
    for files, found in done:
        total.paths += 1
        total.files += files
        total.found += found
    return total


def _tells(text: str) -> bool:
    return any(s.decode() in text for s in _ALL)


Plan = tuple[str, dict[str, str], list[str], dict[str, str]]


def enumerate_plans(
    plans: Sequence[Plan],
) -> list[tuple[int, str, dict[str, str], list[str], dict[str, str]]]:
    """The plans with their numbers, which name their folders."""
    return [(i, *plan) for i, plan in enumerate(plans)]


def _plans(own: Echo, modes: Sequence[str]) -> Iterator[Plan]:
    """(name, environment, arguments after `quantify`, files to write) of every path."""
    host = own.url.partition("://")[2]
    user = ":".join(quote(p, safe="") for p in USER.split(":"))
    env = {"OPENAI_API_KEY": KEY}
    for mode in modes:
        yield f"environment {mode}", env, ["--base-url", f"{own.url}/{mode}/v1"], {}
    for mode in [m for m in modes if m in ("200", "401", "500", "redirect", "cut")]:
        url = f"http://{user}@{host}/{mode}/v1"
        yield f"url {mode}", {"AGENTEVAL_API_KEY": KEY}, ["--base-url", url], {}
        yield f"url in environment {mode}", {"AGENTEVAL_BASE_URL": url}, [], {}
        yield f"component {mode}", {}, ["--component", _component(own.url, mode)], {}
    yield from _unreachable(user, env)


def _unreachable(user: str, env: dict[str, str]) -> Iterator[Plan]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    for name, url in {
        "refused": f"http://{user}@127.0.0.1:{port}/v1",
        "refused query": f"http://{user}@127.0.0.1:{port}/v1?key={QUERY}",
        "unknown host": f"http://{user}@no-such-host.invalid/v1",
        "tls": f"https://{user}@127.0.0.1:{port}/v1",
        "no scheme": f"{USER}@127.0.0.1/v1?key={QUERY}",
        "other scheme": f"ftp://{USER}@127.0.0.1/v1?key={QUERY}",
        "slash in the password": f"http://{USER}@127.0.0.1:1/v1?key={QUERY}",
        "bad port": f"http://{user}@127.0.0.1:x1/v1?key={QUERY}",
        "brackets": f"http://{user}@[::1/v1?key={QUERY}",
    }.items():
        yield name, env, ["--base-url", url], {}
    proxy = {
        **env,
        "HTTP_PROXY": f"http://{PROXY}@127.0.0.1:{port}",
        "NO_PROXY": "",
        "no_proxy": "",
    }
    yield "proxy", proxy, ["--base-url", "http://example.invalid/v1"], {}
    yield (
        "key with a line end in it",
        {"OPENAI_API_KEY": f"{KEY}\nx"},
        ["--base-url", "http://127.0.0.1:1/v1"],
        {},
    )


def _component(url: str, mode: str) -> str:
    return json.dumps({
        "provider": "autogen_ext.models.openai.OpenAIChatCompletionClient",
        "component_type": "model",
        "config": {
            "model": "test-model", "base_url": f"{url}/{mode}/v1", "api_key": KEY,
            "default_headers": {"api-key": HEADER},
            "model_info": {"vision": False, "function_calling": True, "json_output": True,
                           "family": "unknown", "structured_output": True},
        },
    })  # fmt: skip


def _one(
    folder: Path, name: str, env: dict[str, str], words: list[str], files: dict[str, str]
) -> tuple[int, list[str]]:
    """The commands of one path, and what was found of the keys."""
    _prepare(folder)
    model = ["--model", "test-model"]
    given = list(words)
    if given[:1] == ["--component"]:
        (folder / "given.json").write_text(given[1])
        given, model = [], ["--model", f"autogen:{folder / 'given.json'}"]
    asked = ["runs.jsonl", "--task", "sums", "--criteria", "criteria.json", *model, *given]
    commands = [
        ["quantify", *asked, *_LIMITS, "--max-calls", "2"],
        ["export", "--replies", "recorded.jsonl"],
        ["quantify", *asked, *_LIMITS, "--dry-run"],
        ["doctor", *model, *given],
        ["report", "-o", "report.html"],
        ["export", "all.jsonl"],
        ["show", "--json"],
    ]
    if "environment" not in name and "component" not in name:
        commands = commands[:3]
    done = subprocess.run(
        [sys.executable, "-c", _LOUD, json.dumps(commands)], cwd=folder, capture_output=True,
        check=False, env=_environment(env), timeout=300,
    )  # fmt: skip
    (folder / "out").write_bytes(done.stdout)
    (folder / "err").write_bytes(done.stderr)
    (folder / "given.json").unlink(missing_ok=True)
    left = [p for p in folder.rglob("*") if p.is_file()]
    found = [
        f"{name}: {path.name} holds {secret.decode()!r}"
        for path in left for secret in _ALL if secret in path.read_bytes()
    ]  # fmt: skip
    return len(left), found


def _prepare(folder: Path) -> None:
    task = folder / "tasks" / "sums"
    task.mkdir(parents=True)
    (task / "task.yaml").write_text("name: sums\ndescription: Add the numbers.\n")
    (folder / "criteria.json").write_text(json.dumps([
        {"name": "Clarity", "description": "Easy to follow?", "accepted_values": ["no", "yes"]}
    ]))  # fmt: skip
    run = {
        "id": "a",
        "task": "sums",
        "system": "s",
        "input": "1 + 1?",
        "output": "It is 2, since 1 and 1 are 2.",
    }
    (folder / "runs.jsonl").write_text(json.dumps(run) + "\n")


def _environment(more: dict[str, str]) -> dict[str, str]:
    kept = {k: v for k, v in os.environ.items()
            if k in ("PATH", "HOME", "LANG", "VIRTUAL_ENV", "TMPDIR")}  # fmt: skip
    return {**kept, "PYTHONPATH": str(ROOT), "NO_PROXY": "127.0.0.1,localhost",
            "OPENAI_LOG": "debug",
            "NO_COLOR": "1", **more}  # fmt: skip
