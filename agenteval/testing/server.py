"""The loopback server as a program: `python -m agenteval.testing.server --latency 0.1 --seed 1`.

It prints one line of JSON, {"base_url": …, "pid": …}, and ends with the pipe it was started on. It
speaks the OpenAI protocol: POST /v1/chat/completions, /v1/decisions and /v1/embeddings, GET
/v1/models, and for the test GET /stats and POST /reset. Not supported: streaming, n > 1, images,
TLS. It listens on 127.0.0.1 only.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import re
import signal
import stat
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.testing.answers import text_of
from agenteval.testing.engine import DEFAULT, Answer, Default, Engine, Settings
from agenteval.testing.faults import (
    HEALING,
    KINDS,
    Rule,
    compiled,
    parse_fault,
    parse_latency,
    rule_from_json,
)
from agenteval.testing.serving import run
from agenteval.testing.wire import RETRY_AFTER_FORMS, Body


def _key_from(pattern: re.Pattern[str]) -> Callable[[Body], str]:
    def key(body: Body) -> str:
        match = pattern.search(text_of(body))
        if not match:
            raise ValueError(f"--key-regex {pattern.pattern!r} matches nothing in the request")
        return " ".join(g or "" for g in match.groups()) or match.group()

    return key


_ABOUT = """A loopback server speaking the OpenAI protocol, with faults on demand.

Prints one line, {"base_url": …, "pid": …}, and ends on SIGTERM, SIGINT, after --lifetime, or when
the pipe it was started on (standard input or output) is closed. GET /stats answers counters, POST
/reset clears them."""
_EXAMPLES = """examples:
  --latency lognormal:0.3:0.5 --ceiling 8     429 above 8 requests in flight
  --fault 503:0.1 --fault slow_drip=20:0.02   10% answered 503, 2% within 20 s
  --fault 429=date:0.05                       429 with a date in Retry-After
  --script script.json                        answers and rules from a file

faults (KIND of --fault and of a script):
"""


def _parser() -> argparse.ArgumentParser:
    kinds = "".join(f"  {name:15} {kind.about}\n" for name, kind in KINDS.items())
    forms = ", ".join(name.replace(" ", "-") for name in RETRY_AFTER_FORMS)
    parser = argparse.ArgumentParser(
        prog="python -m agenteval.testing.server",
        description=_ABOUT,
        epilog=f"{_EXAMPLES}{kinds}\nforms of Retry-After: {forms}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    shapes = "SECONDS, uniform:LOW:HIGH, exponential:MEAN, lognormal:MEDIAN:SIGMA"
    rate = "share of requests that get a transient fault"
    ignore = "taken out of the body before it is hashed (nonces); repeatable"
    fault = "KIND[=VALUE][:SHARE], repeatable, the first that strikes wins; VALUE is the status, "
    fault += "the seconds of hang and slow_drip, the text of content, refusal and html; KIND may "
    fault += "be a status, and 429=FORM has a Retry-After; SHARE of the requests (default 1)"
    add("--port", type=int, default=0, help="0 chooses a free port")
    add("--latency", help=shapes)
    add("--seed", type=int, help="seed of answers and faults")
    add("--script", type=Path, help="JSON file with rules and answers")
    add("--ceiling", type=int, help="429 above this many requests in flight")
    add("--fault", action="append", default=[], metavar="KIND[=VALUE][:SHARE]", help=fault)
    add("--fault-rate", type=float, default=0.0, help=rate)
    add("--key-regex", help="a request is identified by the groups of this match in its text")
    add("--ignore-regex", action="append", default=[], help=ignore)
    add("--lifetime", type=float, default=6 * 3600.0, help="seconds, at most a day")
    return parser


def load_script(path: Path) -> Settings:
    """Settings from a JSON file: {"rules": [rule …], "answers": [{"match": regex, "replies":
    [text | message object …]} …], "latency": …, "seed": …, "ceiling": …}.

    Of `answers` the first that matches the request's text serves it: its n-th reply goes to the
    n-th request, the last one to all later ones. Otherwise the default answer is sent. Raises
    InputError naming the file and the place.
    """
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror}", str(path)) from None
    except ValueError as error:
        raise InputError(f"not JSON: {error}", str(path)) from None
    keys = {"rules", "answers", "latency", "seed", "ceiling", "ceiling_retry_after"}
    if not isinstance(value, dict) or set(value) - keys:
        raise InputError(f"want an object with keys among {sorted(keys)}", str(path))
    rules, answers = value.pop("rules", []), value.pop("answers", [])
    if not (isinstance(rules, list) and isinstance(answers, list)):
        raise InputError("rules and answers must be lists", str(path))
    faults = [rule_from_json(r, f"{path}: rules[{i}]") for i, r in enumerate(rules)]
    try:
        latency = parse_latency(str(value.pop("latency", 0)))
        answer = _scripted(answers) if answers else None
        return Settings(answer=answer, faults=tuple(faults), latency=latency, **value)
    except InputError as error:
        raise InputError(str(error), str(path)) from None


def _scripted(answers: list[Any]) -> Answer:
    table: list[tuple[re.Pattern[str], list[str | Body]]] = []
    for i, row in enumerate(answers):
        replies = row.get("replies") if isinstance(row, dict) else None
        good = isinstance(replies, list) and all(isinstance(r, str | dict) for r in replies)
        if not (good and replies and set(row) <= {"match", "replies"}):
            raise InputError(f"answers[{i}]: want match and a non-empty list replies")
        table.append((compiled(row.get("match", "")), replies))

    def answer(body: Body, n: int) -> str | Body | Default:
        text = text_of(body)
        for pattern, replies in table:
            if pattern.search(text):
                return replies[min(n, len(replies) - 1)]
        return DEFAULT

    return answer


def _settings(given: argparse.Namespace) -> Settings:
    settings = load_script(given.script) if given.script else Settings()
    extra: dict[str, Any] = {k: getattr(given, k) for k in ("seed", "ceiling")}
    extra["latency"] = parse_latency(given.latency) if given.latency else None
    extra["key"] = _key_from(compiled(given.key_regex)) if given.key_regex else None
    extra = {k: v for k, v in extra.items() if v is not None}
    rules = settings.faults + tuple(map(parse_fault, given.fault))
    if given.fault_rate:
        rules += (Rule(HEALING, given.fault_rate),)
    return replace(settings, faults=rules, ignore=given.ignore_regex, record=0, **extra)


async def _run_child(settings: Settings, port: int, lifetime: float) -> None:
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    loop.call_later(lifetime, stop.set)

    def hung_up(descriptor: int) -> None:
        # A pipe with unread data still has a writer.
        if descriptor != 0 or not os.read(0, 65536):
            stop.set()

    for descriptor in (0, 1):  # the other end of a pipe closes whenever the parent ends
        with contextlib.suppress(OSError):
            mode = os.fstat(descriptor).st_mode
            if stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode):
                loop.add_reader(descriptor, hung_up, descriptor)

    def ready(actual: int) -> None:
        url = f"http://127.0.0.1:{actual}/v1"
        print(json.dumps({"base_url": url, "pid": os.getpid()}), flush=True)

    await run(Engine(settings), port, stop, ready)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run until stopped. Returns the exit code: 0, or 2 for a bad option or a port in use."""
    try:
        options = _parser().parse_args(arguments)
        lifetime = min(options.lifetime, 86_400.0)
        asyncio.run(_run_child(_settings(options), options.port, lifetime))
    except (InputError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
