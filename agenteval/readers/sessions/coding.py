"""Sessions of coding agents: Claude Code, Codex, Gemini CLI, and Harbor's ATIF.

Names: the lines that Claude Code keeps under `projects/` and writes with `stream-json`; Codex's
rollouts (`RolloutItem` in codex-rs/protocol) and the events of `codex exec --json`; Gemini CLI's
chats (chatRecordingTypes.ts) and checkpoints; ATIF 1.0 to 1.7 (Harbor's RFC 0001). Thinking is left
out: it is no answer, and newer versions keep it encrypted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.chat_forms import first_of
from agenteval.readers.loose_json import json_or_none
from agenteval.readers.sessions.session import Session, SessionStep, tool_call, total_of, usage_of
from agenteval.readers.spans import seconds
from agenteval.records import RunFailure

Values = list[dict[str, Any]]
_THINKING = ("thinking", "redacted_thinking")

# ---- Claude Code ---------------------------------------------------------------------------------


def claude_code(values: Values) -> Iterator[Session]:
    """Yield one session for each id; one that was resumed under another id goes on.

    Lines of one reply share its id and its usage.
    """
    sessions: dict[str, Session] = {}
    replies: dict[tuple[str, str], SessionStep] = {}
    owners: dict[str, Session] = {}  # by the id of a line
    for line in values:
        id, uuid = first_of(line, "sessionId", "session_id"), line.get("uuid")
        if id is None or uuid in owners:
            continue
        before = owners.get(str(line.get("parentUuid")))
        if before is not None and str(id) not in sessions:
            sessions[str(id)] = sessions.pop(str(before.id))
            before.id = str(id)
        session = sessions.setdefault(str(id), Session(str(id), "Claude Code"))
        if isinstance(uuid, str):
            owners[uuid] = session
        kind = line.get("type")
        if kind == "result":
            _claude_result(session, line)
        elif kind in ("user", "assistant"):
            _claude_message(session, line, replies)
        elif line.get("subtype") == "init":
            session.model = str(line.get("model") or "")
    yield from map(_main_thread, filter(lambda session: session.steps, sessions.values()))


def _main_thread(session: Session) -> Session:
    """Return the session; the file of an agent below the main one holds nothing but its thread."""
    threads = {step.thread for step in session.steps}
    if len(threads) == 1 and "" not in threads:
        session.id = f"{session.id}-{threads.pop()}"
        for step in session.steps:
            step.thread = ""
    return session


def _claude_message(
    session: Session, line: dict[str, Any], replies: dict[tuple[str, str], SessionStep]
) -> None:
    message, at = line["message"], seconds(line.get("timestamp"))
    thread = ""
    if line.get("isSidechain") or line.get("parent_tool_use_id"):
        thread = f"agent-{first_of(line, 'agentId', 'parent_tool_use_id') or 'sidechain'}"
    content = message.get("content")
    blocks = [b for b in content if isinstance(b, dict)] if isinstance(content, list) else content
    if line["type"] == "user":
        hidden = line.get("isMeta") or line.get("isCompactSummary")
        for step in session.add({"role": "user", "content": blocks}, at=at, thread=thread):
            step.role = "system" if hidden and step.role == "user" else step.role
        return
    words = (
        [b for b in blocks if b.get("type") not in _THINKING]
        if isinstance(blocks, list)
        else blocks
    )
    key = (thread, str(message.get("id") or line.get("uuid")))
    if not words and isinstance(blocks, list) and blocks:
        words = ""
    (step,) = Session().add({"role": "assistant", "content": words}, at=at, thread=thread) or [
        SessionStep("assistant")
    ]
    used = message.get("usage")
    sent = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
    step.usage = usage_of(
        total_of(used, sent), first_of(used, "output_tokens"), line.get("costUSD")
    )
    step.model, step.finish = message.get("model"), message.get("stop_reason")
    if line.get("isApiErrorMessage") or step.model == "<synthetic>":
        step.model = step.usage = None
        session.failure = RunFailure(kind="error", message=step.text[:300])
    else:
        session.failure = None
    first = replies.setdefault(key, step)
    if first is step:
        session.steps.append(step)
        return
    first.text = "\n".join(filter(None, (first.text, step.text)))
    first.calls += step.calls
    first.usage, first.finish = step.usage or first.usage, step.finish or first.finish


def _claude_result(session: Session, line: dict[str, Any]) -> None:
    session.ended = str(line.get("subtype") or "")
    if line.get("is_error"):
        why = str(line.get("result") or session.ended)
        session.failure = RunFailure(kind="error", message=why[:300])
    elif isinstance(line.get("result"), str):
        session.output = line["result"]
    session.usage = usage_of(None, None, line.get("total_cost_usd"))


# ---- Codex ---------------------------------------------------------------------------------------

_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<INSTRUCTIONS>")
_FAILED = re.compile(r"(?:Exit code: |[\s\S]{0,200}?\bProcess exited with code )[1-9]")
_CODEX_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_CODEX_ITEMS = {"command_execution": "shell", "file_change": "apply_patch", "web_search": "search"}


class _Codex:
    """Reads the lines of a rollout, or of `codex exec --json`, into one session."""

    def __init__(self) -> None:
        self.session = Session(agent="Codex")
        self.open: SessionStep | None = None  # the reply whose items are still coming
        self.total: Any = None  # of the last count of tokens; counts are repeated

    def line(self, line: dict[str, Any]) -> None:
        kind, at = line.get("type"), seconds(line.get("timestamp"))
        payload = line.get("payload", line)
        if kind == "session_meta" or (kind is None and "instructions" in line):
            self.session.id = self.session.id or first_of(payload, "id")
        elif kind == "thread.started":
            self.session.id = first_of(line, "thread_id")
        elif kind == "turn_context":
            self.session.model = first_of(payload, "model") or self.session.model
        elif kind == "event_msg":
            self.event(payload, at)
        elif kind == "item.completed":
            self.completed(line.get("item") or {})
        elif kind == "turn.completed":
            self.count(line.get("usage"))
            self.session.ended = kind
        elif kind in ("turn.failed", "error"):
            self.fail(first_of(line.get("error"), "message") or line.get("message"))
        elif isinstance(payload, dict):
            self.item(payload, at)

    def item(self, item: dict[str, Any], at: float | None) -> None:
        """Read an item of the conversation as it goes to and comes from the model."""
        kind = item.get("type")
        if kind == "message" and item.get("role") != "assistant":
            self.open = None
            for step in self.session.add(item, at=at):
                hidden = item.get("role") == "user" and step.text.lstrip().startswith(_CONTEXT)
                step.role = "system" if hidden else step.role
        elif kind == "message":
            (step,) = Session().add(item, at=at)
            self.reply(step.text, at)
        elif kind in _CODEX_CALLS:
            action = item.get("action")
            arguments = (
                first_of(item, "arguments", "input") or first_of(action, "command") or action
            )
            name = item.get("name") or str(kind).removesuffix("_call")
            self.reply("", at).calls.append(tool_call(name, arguments, item.get("call_id")))
        elif kind in ("function_call_output", "custom_tool_call_output"):
            self.open = None
            output = item.get("output")
            decoded = json_or_none(output) if isinstance(output, str) else output
            text = first_of(decoded, "output", "content") if isinstance(decoded, dict) else output
            code = first_of(first_of(decoded, "metadata"), "exit_code")
            failed = code not in (None, 0) or first_of(decoded, "success") is False
            failed = failed or bool(_FAILED.match(str(output)))
            self.session.result(item.get("call_id"), text, failed=failed, at=at)

    def completed(self, item: dict[str, Any]) -> None:
        """Read an item of `codex exec --json`, which holds call and result together."""
        kind = item.get("type")
        if kind == "agent_message":
            self.reply(str(item.get("text") or ""), None)
        elif kind in _CODEX_ITEMS or kind == "mcp_tool_call":
            name = item.get("tool") or _CODEX_ITEMS.get(str(kind), "tool")
            arguments = first_of(item, "arguments", "command", "changes", "query")
            self.reply("", None).calls.append(tool_call(name, arguments, item.get("id")))
            self.open = None
            failed = item.get("status") == "failed" or item.get("exit_code") not in (None, 0)
            result = first_of(item, "aggregated_output", "result", "error") or item.get("status")
            self.session.result(item.get("id"), result, failed=failed)
        elif kind == "error":
            self.fail(item.get("message"))

    def event(self, event: dict[str, Any], at: float | None) -> None:
        kind = event.get("type")
        if kind == "token_count" and isinstance(event.get("info"), dict):
            total = first_of(event["info"].get("total_token_usage"), "total_tokens")
            if total is None or total != self.total:
                self.count(event["info"].get("last_token_usage"))
            self.total = total
        elif kind in ("task_complete", "turn_complete", "turn_aborted"):
            self.session.ended = str(event.get("reason") or kind)
        elif kind in ("error", "stream_error"):
            self.fail(event.get("message"))

    def reply(self, text: str, at: float | None) -> SessionStep:
        """Return the reply that is being read, with this text added; a new one where none is."""
        if self.open is None:
            self.open = SessionStep("assistant", at=at, model=self.session.model or None)
            self.session.steps.append(self.open)
        self.open.text = "\n".join(filter(None, (self.open.text, text)))
        self.session.failure = None
        return self.open

    def count(self, used: Any) -> None:
        usage = usage_of(first_of(used, "input_tokens"), first_of(used, "output_tokens"))
        last = next((s for s in reversed(self.session.steps) if s.role == "assistant"), None)
        if usage is not None and last is not None:
            last.usage = usage if last.usage is None else last.usage + usage
        self.open = None

    def fail(self, message: Any) -> None:
        self.session.failure = RunFailure(kind="error", message=str(message or "error")[:300])


def codex(values: Values) -> Iterator[Session]:
    """Yield the session of a rollout, or of the events of `codex exec --json`."""
    reader = _Codex()
    for line in values:
        reader.line(line)
    yield reader.session


# ---- Gemini CLI ----------------------------------------------------------------------------------


def gemini(values: Values) -> Iterator[Session]:
    """Yield the session of a chat: one object, or lines that add to it."""
    session, messages = Session(agent="Gemini CLI"), dict[str, dict[str, Any]]()
    for line in values:
        session.id = session.id or first_of(line, "sessionId")
        rows = [*(line.get("messages") or ()), *(first_of(line.get("$set"), "messages") or ())]
        for row in [*rows, *([line] if "type" in line and "id" in line else [])]:
            messages[str(row.get("id") or len(messages))] = row
        if "$rewindTo" in line:  # everything from this message on was taken back
            ids = list(messages)
            at = ids.index(line["$rewindTo"]) if line["$rewindTo"] in messages else 0
            messages = {id: messages[id] for id in ids[:at]}
    for row in messages.values():
        _gemini_message(session, row)
    yield session


def _gemini_message(session: Session, row: dict[str, Any]) -> None:
    at, kind = seconds(row.get("timestamp")), row.get("type")
    if kind == "user":
        session.add({"role": "user", "content": row.get("content")}, at=at)
    elif kind == "gemini":
        (step,) = session.add({"role": "assistant", "content": row.get("content")}, at=at)
        tokens = row.get("tokens")
        prompt, reply = (
            total_of(tokens, ("input", "tool")),
            total_of(tokens, ("output", "thoughts")),
        )
        step.usage = usage_of(prompt, reply)
        step.model, session.failure = row.get("model"), None
        for call in row.get("toolCalls") or ():
            step.calls.append(tool_call(call.get("name"), call.get("args"), call.get("id")))
            results = [first_of(r, "functionResponse") or r for r in call.get("result") or ()]
            answer = [first_of(r.get("response"), "output", "error") or r for r in results]
            failed = call.get("status") in ("error", "cancelled")
            text = answer[0] if len(answer) == 1 else answer
            session.result(call.get("id"), text, failed=failed, at=seconds(call.get("timestamp")))
    elif kind == "error":
        session.failure = RunFailure(kind="error", message=str(row.get("content"))[:300])


def gemini_prompts(values: Values) -> Iterator[Session]:
    """Refuse the list of prompts that Gemini CLI keeps in `logs.json`."""
    raise InputError(
        f"{len(values)} prompts of Gemini CLI without answers (logs.json): give "
        "chats/session-*.json of the same folder"
    )


# ---- ATIF ----------------------------------------------------------------------------------------


def atif(document: dict[str, Any], thread: str = "") -> Session:
    """Return the session of a trajectory; those of agents below it are threads."""
    agent = document.get("agent") or {}
    session = Session(
        first_of(document, "trajectory_id", "session_id"),
        str(agent.get("name") or ""),
        str(agent.get("model_name") or ""),
    )
    for step in document["steps"]:
        at, source = seconds(step.get("timestamp")), step["source"]
        role = {"agent": "assistant"}.get(source, source)
        calls = [
            tool_call(call["function_name"], call.get("arguments"), call.get("tool_call_id"))
            for call in step.get("tool_calls") or ()
        ]
        if step.get("message") or calls or role == "assistant":
            added = session.add(
                {"role": role, "content": step.get("message")}, at=at, thread=thread
            )
            added[-1].calls = calls
            metrics = None if step.get("is_copied_context") else step.get("metrics")
            added[-1].usage = usage_of(
                first_of(metrics, "prompt_tokens"),
                first_of(metrics, "completion_tokens"),
                first_of(metrics, "cost_usd"),
            )
            added[-1].model = step.get("model_name")
        for result in first_of(step.get("observation"), "results") or ():
            facts: dict[str, Any] = {"at": at, "thread": thread}
            if result.get("content") is not None:  # otherwise a reference to an agent below
                session.result(result.get("source_call_id"), result["content"], **facts)
    for number, below in enumerate(document.get("subagent_trajectories") or (), start=1):
        name = str(first_of(below.get("agent"), "name") or "agent")
        session.steps += atif(below, f"{name} {number}").steps
    totals = document.get("final_metrics")
    names = ("total_prompt_tokens", "total_completion_tokens", "total_cost_usd")
    session.usage = usage_of(*(first_of(totals, name) for name in names))
    session.metadata = {"version": agent.get("version"), "notes": document.get("notes")}
    return session
