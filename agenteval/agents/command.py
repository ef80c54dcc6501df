"""Any command as an agent, over JSON lines on its stdin and stdout.

We send one line first, and one for every call::

    {"type": "start", "request": "...", "tools": [{"type": "function", "function": {...}}]}
    {"type": "dialogue", "instructions": "...", "messages": [...], "tools": [...]}
    {"type": "result", "id": "...", "content": "..."}
    {"type": "error", "message": "..."}          a line of yours that could not be used

The command sends::

    {"type": "call", "id": "...", "name": "...", "arguments": {...}}
    {"type": "calls", "calls": [{"id": "...", "name": "...", "arguments": {...}}, ...]}
    {"type": "message", "content": "..."}        kept beside the calls
    {"type": "final", "content": "..."}          the last words; the case is over

The calls of one "calls" line are one turn: they count as simultaneous. "dialogue" comes instead of
"start" where the command answers in a conversation: its messages are those of chat completions.
"""

from __future__ import annotations

import json
from typing import Any, TypeGuard

from agenteval.agents.conversation import wire_messages
from agenteval.agents.process import MAX_LINE, Child, running, split
from agenteval.agents.protocol import Dialogue
from agenteval.agents.toolbox import Toolbox, clean
from agenteval.errors import ModelError
from agenteval.records import Message

_PATIENCE = 1.0  # seconds for a command to exit
_MAX_MESSAGES = 1000
_MAX_CONTENT = 100_000  # characters of one message
Line = dict[str, Any]


class CommandAgent:
    """An agent that is a command; started for every case without a shell.

    Raises InputError for a command that cannot be run.
    """

    def __init__(self, command: str) -> None:
        self._words = split(command)

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """The content of its "final" line.

        Raises ModelError when it ends without one, or floods us with messages; InputError when it
        cannot be started. Its whole process group is killed however this ends.
        """
        async with running(self._words) as child:
            specs = [tool.function() for tool in tools.tools]
            await _send(child, {**first_line(dialogue), "tools": specs})
            session = _Session(child, tools)
            async for line, cut in child.lines():
                if cut:
                    await session.refuse(line, f"a line is longer than {MAX_LINE} bytes")
                elif line.strip() and (last := await session.take(line)) is not None:
                    await child.write(b"", last=True)
                    await child.exit_code(_PATIENCE)
                    return last
                if tools.seen_enough:
                    return ""  # stdin is closed, so it can make no further calls
            code = await child.exit_code(_PATIENCE)
            how = "closed its stdout" if code is None else f"ended (exit code {code})"
            raise await child.failed(f"the command {how} before a final line")


def first_line(dialogue: Dialogue) -> Line:
    """Return the first message to a command, without the tools."""
    if dialogue.instructions is None:
        return {"type": "start", "request": dialogue.messages[-1].content}
    messages = wire_messages(dialogue)[1 if dialogue.instructions else 0 :]
    return {"type": "dialogue", "instructions": dialogue.instructions, "messages": messages}


class _Session:
    """Passes the messages of one child process to the toolbox."""

    def __init__(self, child: Child, tools: Toolbox) -> None:
        self._child = child
        self._tools = tools
        self._messages = 0

    async def take(self, line: bytes) -> str | None:
        """Act on one line; the last words, if it held them."""
        try:
            message = json.loads(line)
        except (ValueError, RecursionError):
            await self.refuse(line, "the line is not JSON; print other things to stderr")
            return None
        fields = message if isinstance(message, dict) else {}
        kind, content = fields.get("type"), fields.get("content")
        calls = {"call": [message], "calls": fields.get("calls")}.get(str(kind))
        if kind == "final" and isinstance(content, str | None):
            return content or ""
        if kind == "message" and isinstance(content, str):
            self._messages += 1
            if self._messages > _MAX_MESSAGES:
                raise ModelError(f"the command sent more than {_MAX_MESSAGES} messages")
            self._tools.say(Message(role="assistant", content=clean(content[:_MAX_CONTENT])))
        elif _are_calls(calls):
            await self._call(calls)
        else:
            shown = repr(kind)[:60]
            await self.refuse(line, f"{shown} is not a valid type of line, or its fields are wrong")
        return None

    async def refuse(self, line: bytes, why: str) -> None:
        """Log an unusable line and report it to the command."""
        self._tools.malformed(line.decode("utf-8", "replace"))
        if not self._tools.seen_enough:
            await _send(self._child, {"type": "error", "message": why})

    async def _call(self, calls: list[Line]) -> None:
        turn = self._tools.turn()
        for call in calls:
            name, arguments = call.get("name"), call.get("arguments")
            _, answer = await self._tools.attempt_async(name, arguments, turn=turn)
            if not self._tools.seen_enough:
                result = {"type": "result", "id": call.get("id"), "content": answer}
                await _send(self._child, result)


def _are_calls(calls: object) -> TypeGuard[list[Line]]:
    return (
        isinstance(calls, list)
        and bool(calls)
        and all(isinstance(call, dict) and isinstance(call.get("name"), str) for call in calls)
    )


async def _send(child: Child, line: Line) -> None:
    text = json.dumps(line, ensure_ascii=False)
    await child.write(clean(text).encode() + b"\n")
