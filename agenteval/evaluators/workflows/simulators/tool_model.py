"""A tool played by a model: its answers fit the tool's schema, or are none."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from agenteval.errors import ReplyError
from agenteval.evaluators.workflows.scenario import Role, WorkflowTool
from agenteval.evaluators.workflows.simulators.meter import Meter
from agenteval.evaluators.workflows.simulators.schema import complaint
from agenteval.models.asking import ask
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.reply import parse_reply
from agenteval.models.wire import NONCE, Request, one_line
from agenteval.records import Usage, content_hash

_PACKAGE = "agenteval.evaluators.workflows"
_MAX_TOKENS = 1000
_SHOWN = 20  # requests before
_PROBLEM = 300  # characters
_LONGEST = 2000  # characters kept of a request before, and of its answer


@dataclass(frozen=True, slots=True)
class Played:
    """An answer, None where even the repaired one did not fit; what was wrong with each text."""

    value: JsonValue
    wrong: tuple[str, ...]
    usage: Usage


class ToolModel:
    """Answers calls over a client, with one repair. One for each session: it keeps what it said,
    so that equal requests have equal answers until a tool changed something."""

    def __init__(self, client: Client, role: Role, seed: int, repeat: int) -> None:
        self._client = client
        self._role = role
        self._seed = seed
        self._repeat = repeat
        self._before: list[str] = []
        self._known: dict[str, JsonValue] = {}

    @staticmethod
    def prompts_sha256() -> str:
        """One hash over the prompts."""
        return content_hash([_prompt(n).sha256 for n in ("system", "turn", "repair")])

    async def answer(self, tool: WorkflowTool, arguments: Mapping[str, Any]) -> Played:
        """What the tool returns. Raises what the client raises, `spent` set."""
        asked = f"{tool.name}({json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True)})"
        if asked in self._known:
            return Played(self._known[asked], (), Usage())
        wrong: list[str] = []
        meter = Meter(self._client)

        def read(text: str) -> JsonValue:
            try:
                return _read(text, tool)
            except ReplyError:
                wrong.append(text)
                raise

        request = self._request(tool, asked)
        try:
            value = (await ask(meter.as_client(), request, read, _repair)).value
        except ReplyError:
            return Played(None, tuple(wrong), meter.usage)
        except Exception as error:
            error.spent = meter.usage  # type: ignore[attr-defined]
            raise
        if tool.effect == "write":
            self._known.clear()
        else:
            self._known[asked] = value
        answered = json.dumps(value, ensure_ascii=False)
        self._before.append(f"{_short(asked)} -> {_short(answered)}")
        return Played(value, tuple(wrong), meter.usage)

    def longest(self, tool: WorkflowTool) -> Request:
        """A request with as long a past as one can show, to know what it may take."""
        full = ToolModel(self._client, self._role, self._seed, self._repeat)
        full._before = [f"{'x' * _LONGEST} -> {'x' * _LONGEST}"] * _SHOWN
        return full._request(tool, "x" * _LONGEST)

    def _request(self, tool: WorkflowTool, asked: str) -> Request:
        parameters = json.dumps(tool.parameters, ensure_ascii=False)
        system = _prompt("system").render(
            tool=f"{tool.name}: {tool.description}\n{parameters}",
            returns=json.dumps(tool.returns, ensure_ascii=False),
            background=self._role.background,
            now=self._role.now,
            nonce=NONCE,
        )
        turn = _prompt("turn").render(before=self._before[-_SHOWN:], request=asked)
        seed = int(content_hash([self._seed, self._repeat, len(self._before)])[:7], 16)
        return Request(
            messages=({"role": "system", "content": system}, {"role": "user", "content": turn}),
            schema=tool.returns,
            parameters={"seed": seed, "max_tokens": _MAX_TOKENS, "temperature": 0},
            repeat=self._repeat,
            role="tool",
            run_id=tool.name,
        )


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …"


def _prompt(name: str) -> Any:
    return load_prompt(_PACKAGE, f"tool_{name}")


def _repair(problem: str) -> str:
    text: str = _prompt("repair").render(problem=problem)
    return text


def _read(text: str, tool: WorkflowTool) -> JsonValue:
    value: JsonValue = parse_reply(text, lambda v: isinstance(v, dict)).value
    problem = complaint(tool.returns, value)
    if problem:
        raise ReplyError(one_line(problem)[:_PROBLEM])
    return value
