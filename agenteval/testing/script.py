"""Settings of the server from a JSON file."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.testing.answers import text_of
from agenteval.testing.engine import DEFAULT, Answer, Default, Settings
from agenteval.testing.plan import compiled, parse_latency, rule_from_json
from agenteval.testing.wire import Body


def load_script(path: Path) -> Settings:
    """Settings from a JSON file: {"rules": [rule …], "answers": [{"match": regex, "replies":
    [text | message object …]} …], "latency": …, "seed": …, "ceiling": …}.

    Of `answers` the first that matches the request's text serves it: its n-th reply to the n-th
    asking, the last one from then on. Where none matches the default answer stands. Raises
    InputError naming the file and the place.
    """
    try:
        value = json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"cannot read it: {error.strerror}", str(path)) from None
    except ValueError as error:
        raise InputError(f"not JSON: {error}", str(path)) from None
    known = {"rules", "answers", "latency", "seed", "ceiling", "ceiling_retry_after"}
    if not isinstance(value, dict) or set(value) - known:
        raise InputError(f"want an object with keys among {sorted(known)}", str(path))
    rules, answers = value.pop("rules", []), value.pop("answers", [])
    if not (isinstance(rules, list) and isinstance(answers, list)):
        raise InputError("rules and answers must be lists", str(path))
    made = [rule_from_json(r, f"{path}: rules[{i}]") for i, r in enumerate(rules)]
    try:
        latency = parse_latency(str(value.pop("latency", 0)))
        answer = _scripted(answers) if answers else None
        return Settings(answer=answer, faults=tuple(made), latency=latency, **value)
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
