"""Sessions of coding agents: Claude Code, Codex, Gemini CLI, OpenHands, and Harbor's ATIF.

Formats: the lines of Claude Code under `projects/` and from `stream-json`; Codex's rollouts
(`RolloutItem` in codex-rs/protocol) and the events of `codex exec --json`; Gemini CLI's chats
(chatRecordingTypes.ts) and checkpoints; OpenHands' events in 0.x (`action`, `observation`) and 1.x
(`kind`); ATIF 1.0 to 1.7 (Harbor's RFC 0001). Thinking is omitted: it is not an answer, and newer
versions encrypt it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.chat_forms import first_of
from agenteval.readers.sessions.session import (
    Session,
    SessionStep,
    tool_call,
    total_of,
    usage_in,
    usage_of,
)
from agenteval.readers.spans import seconds
from agenteval.readers.strict_json import json_or_none
from agenteval.records import Usage

Row = dict[str, Any]


def _joined(*texts: str) -> str:
    return "\n".join(filter(None, texts))


# ---- Claude Code ---------------------------------------------------------------------------------

_THINKING = ("thinking", "redacted_thinking")
_CLAUDE_SENT = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def claude_code(values: list[Row]) -> Iterator[Session]:
    """Yield one session per id; a session resumed under another id is continued.

    Lines of one reply share its id and usage. The file of a subagent contains only its thread.
    """
    sessions: dict[str, Session] = {}
    replies: dict[tuple[str, str], SessionStep] = {}
    owners: dict[str, Session] = {}  # by line id
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
        _claude_line(session, line, replies)
    for session in filter(lambda session: session.steps, sessions.values()):
        threads = {step.thread for step in session.steps}
        if len(threads) == 1 and "" not in threads:
            session.id = f"{session.id}-{threads.pop()}"
            for step in session.steps:
                step.thread = ""
        yield session


def _claude_line(session: Session, line: Row, replies: dict[tuple[str, str], SessionStep]) -> None:
    kind = line.get("type")
    if kind in ("user", "assistant"):
        _claude_message(session, line, replies)
    elif kind == "result":
        session.ended = str(line.get("subtype") or "")
        if line.get("is_error"):
            session.fail(line.get("result") or session.ended)
        elif isinstance(line.get("result"), str):
            session.output = line["result"]
        session.usage = usage_of(None, None, line.get("total_cost_usd"))
    elif line.get("subtype") == "init":
        session.model = str(line.get("model") or "")


def _claude_message(
    session: Session, line: Row, replies: dict[tuple[str, str], SessionStep]
) -> None:
    message, at, thread = line["message"], seconds(line.get("timestamp")), ""
    if line.get("isSidechain") or line.get("parent_tool_use_id"):
        thread = f"agent-{first_of(line, 'agentId', 'parent_tool_use_id') or 'sidechain'}"
    content = message.get("content")
    if isinstance(content, list):
        content = [block for block in content if isinstance(block, dict)]
    if line["type"] == "user":
        hidden = line.get("isMeta") or line.get("isCompactSummary")
        for step in session.add({"role": "user", "content": content}, at=at, thread=thread):
            step.role = "system" if hidden and step.role == "user" else step.role
        return
    if isinstance(content, list):
        spoken = [block for block in content if block.get("type") not in _THINKING]
        content = spoken or ("" if content else spoken)
    steps = Session().add({"role": "assistant", "content": content}, at=at, thread=thread)
    (step,) = steps or [SessionStep("assistant")]
    used = message.get("usage")
    prompt, completion = total_of(used, _CLAUDE_SENT), first_of(used, "output_tokens")
    step.usage = usage_of(prompt, completion, line.get("costUSD"))
    step.model, step.finish = message.get("model"), message.get("stop_reason")
    session.failure = None
    if line.get("isApiErrorMessage") or step.model == "<synthetic>":
        step.model = step.usage = None
        session.fail(step.text)
    first = replies.setdefault((thread, str(message.get("id") or line.get("uuid"))), step)
    if first is step:
        session.steps.append(step)
        return
    first.text = _joined(first.text, step.text)
    first.calls += step.calls
    first.usage, first.finish = step.usage or first.usage, step.finish or first.finish


# ---- Codex ---------------------------------------------------------------------------------------

_CONTEXT = ("<environment_context>", "<user_instructions>", "# AGENTS.md", "<INSTRUCTIONS>")
_FAILED = re.compile(r"(?:Exit code: |[\s\S]{0,200}?\bProcess exited with code )[1-9]")
_CODEX_CALLS = ("function_call", "custom_tool_call", "local_shell_call", "web_search_call")
_CODEX_ITEMS = {"command_execution": "shell", "file_change": "apply_patch", "web_search": "search"}


class _Codex:
    """Reads the lines of a rollout, or of `codex exec --json`, into one session."""

    def __init__(self) -> None:
        self.session = Session(agent="Codex")
        self.open: SessionStep | None = None  # the reply that is still receiving items
        self.total: Any = None  # from the last token count; counts are repeated

    def line(self, line: Row) -> None:
        kind, at = line.get("type"), seconds(line.get("timestamp"))
        payload = line.get("payload", line)
        if kind == "session_meta" or (kind is None and "instructions" in line):
            self.session.id = self.session.id or first_of(payload, "id")
        elif kind == "thread.started":
            self.session.id = first_of(line, "thread_id")
        elif kind == "turn_context":
            self.session.model = first_of(payload, "model") or self.session.model
        elif kind == "event_msg":
            self.event(payload)
        elif kind == "item.completed":
            self.completed(line.get("item") or {})
        elif kind == "turn.completed":
            self.count(line.get("usage"))
            self.session.ended = kind
        elif kind in ("turn.failed", "error"):
            self.fail(first_of(line.get("error"), "message") or line.get("message"))
        elif isinstance(payload, dict):
            self.item(payload, at)

    def item(self, item: Row, at: float | None) -> None:
        """Read an item of the conversation with the model."""
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
            action, arguments = item.get("action"), first_of(item, "arguments", "input")
            name = item.get("name") or str(kind).removesuffix("_call")
            arguments = arguments or first_of(action, "command") or action
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

    def completed(self, item: Row) -> None:
        """Read an item of `codex exec --json`, which has both call and result."""
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

    def event(self, event: Row) -> None:
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
        """Add text to the open reply, or to a new one, and return it."""
        if self.open is None:
            self.open = SessionStep("assistant", at=at, model=self.session.model or None)
            self.session.steps.append(self.open)
        self.open.text = _joined(self.open.text, text)
        self.session.failure = None
        return self.open

    def count(self, used: Any) -> None:
        usage = usage_in(used, "input_tokens", "output_tokens")
        last = next((s for s in reversed(self.session.steps) if s.role == "assistant"), None)
        if usage is not None and last is not None:
            last.usage = usage if last.usage is None else last.usage + usage
        self.open = None

    def fail(self, message: Any) -> None:
        self.session.fail(message or "error")


def codex(values: list[Row]) -> Session:
    """Return the session of a rollout, or of the events of `codex exec --json`."""
    reader = _Codex()
    for line in values:
        reader.line(line)
    return reader.session


# ---- Gemini CLI ----------------------------------------------------------------------------------


def gemini(values: list[Row]) -> Session:
    """Return the session of a chat: one object, or lines that extend it."""
    session, messages = Session(agent="Gemini CLI"), dict[str, Row]()
    for line in values:
        session.id = session.id or first_of(line, "sessionId")
        rows = [*(line.get("messages") or ()), *(first_of(line.get("$set"), "messages") or ())]
        for row in [*rows, *([line] if "type" in line and "id" in line else [])]:
            messages[str(row.get("id") or len(messages))] = row
        if "$rewindTo" in line:  # undoes everything from this message on
            ids = list(messages)
            end = ids.index(line["$rewindTo"]) if line["$rewindTo"] in messages else 0
            messages = {id: messages[id] for id in ids[:end]}
    for row in messages.values():
        at, kind = seconds(row.get("timestamp")), row.get("type")
        if kind == "user":
            session.add({"role": "user", "content": row.get("content")}, at=at)
        elif kind == "gemini":
            (step,) = session.add({"role": "assistant", "content": row.get("content")}, at=at)
            prompt = total_of(row.get("tokens"), ("input", "tool"))
            step.usage = usage_of(prompt, total_of(row.get("tokens"), ("output", "thoughts")))
            step.model, session.failure = row.get("model"), None
            for call in row.get("toolCalls") or ():
                step.calls.append(tool_call(call.get("name"), call.get("args"), call.get("id")))
                _gemini_result(session, call)
        elif kind == "error":
            session.fail(row.get("content"))
    return session


def _gemini_result(session: Session, call: Row) -> None:
    results = [first_of(r, "functionResponse") or r for r in call.get("result") or ()]
    answers = [first_of(r.get("response"), "output", "error") or r for r in results]
    answer = answers[0] if len(answers) == 1 else answers
    failed = call.get("status") in ("error", "cancelled")
    session.result(call.get("id"), answer, failed=failed, at=seconds(call.get("timestamp")))


def gemini_prompts(values: list[Row]) -> Session:
    """Refuse the list of prompts in Gemini CLI's `logs.json`."""
    raise InputError(
        f"{len(values)} prompts of Gemini CLI without answers (logs.json): give "
        "chats/session-*.json of the same folder"
    )


# ---- OpenHands -----------------------------------------------------------------------------------

_SILENT = ("change_agent_state", "recall", "null", "agent_state_changed", "condensation", "system")
_NO_ARGUMENTS = ("thought", "hidden", "confirmation_state")


class _OpenHands:
    """Reads events into a session; one reply of the model may cause several calls."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.replies: dict[str, SessionStep] = {}

    def metrics(self, metrics: Any) -> None:
        """Read cumulative figures: the last ones are the totals of the session."""
        tokens = first_of(metrics, "accumulated_token_usage")
        stated = usage_in(tokens, cost=first_of(metrics, "accumulated_cost"))
        self.session.usage = stated or self.session.usage

    def reply(self, key: Any, event: Row, text: str) -> SessionStep:
        """Return the model reply that an event belongs to."""
        step = self.replies.get(str(key)) if key is not None else None
        if step is None:
            step = SessionStep("assistant", text, at=seconds(event.get("timestamp")))
            self.session.steps.append(step)
            if key is not None:
                self.replies[str(key)] = step
        return step

    def event_v0(self, event: Row) -> None:
        session, at = self.session, seconds(event.get("timestamp"))
        action, args = event.get("action"), event.get("args") or {}
        call = event.get("tool_call_metadata") or {}
        self.metrics(event.get("llm_metrics"))
        if "observation" in event:
            self.observation_v0(event, call)
        elif action == "system" or (action == "message" and event.get("source") == "user"):
            role: Any = "system" if action == "system" else "user"
            session.steps.append(SessionStep(role, str(args.get("content") or ""), at=at))
        elif action not in (None, *_SILENT):
            reply = call.get("model_response") or {}
            text = first_of(args, "content" if action == "message" else "thought")
            if action == "finish":
                final = first_of(args, "final_thought")
                text = final or first_of(args.get("outputs"), "content") or text
                session.ended = "finish"
            step = self.reply(reply.get("id"), event, str(text or ""))
            step.usage = step.usage or usage_in(reply.get("usage"))
            step.model = reply.get("model")
            if action not in ("message", "finish"):
                arguments = {k: v for k, v in args.items() if k not in _NO_ARGUMENTS}
                id = call.get("tool_call_id") or event.get("id")
                name = call.get("function_name") or action
                step.calls.append(tool_call(name, arguments, id))

    def observation_v0(self, event: Row, call: Row) -> None:
        session, kind, extras = self.session, event["observation"], event.get("extras") or {}
        if kind == "agent_state_changed":
            session.ended = str(extras.get("agent_state") or session.ended)
            if session.ended == "error":
                session.fail(extras.get("reason") or session.ended)
        if kind not in _SILENT:
            code = first_of(extras.get("metadata"), "exit_code")
            failed = kind == "error" or first_of(extras, "exit_code", "error") not in (None, 0, "")
            failed, cause = failed or code not in (None, 0, -1), event.get("cause")
            id = call.get("tool_call_id") or (None if cause is None else str(cause))
            at = seconds(event.get("timestamp"))
            session.result(id, event.get("content"), failed=failed, at=at)

    def event_v1(self, event: Row) -> None:
        session, kind, at = self.session, event["kind"], seconds(event.get("timestamp"))
        finishes = event.get("tool_name") == "finish"
        if kind == "SystemPromptEvent":
            session.add({"role": "system", "content": event.get("system_prompt")}, at=at)
        elif kind == "MessageEvent":
            role = "assistant" if event.get("source") == "agent" else "user"
            content = first_of(event.get("llm_message"), "content")
            session.add({"role": role, "content": content}, at=at)
        elif kind == "ActionEvent":
            action, call = event.get("action") or {}, event.get("tool_call") or {}
            thought = Session().add({"role": "assistant", "content": event.get("thought") or []})
            text = thought[0].text if thought else ""
            if finishes:
                text, session.ended = str(action.get("message") or text), "finish"
            step = self.reply(event.get("llm_response_id"), event, text)
            if not finishes:
                arguments = first_of(call, "arguments")
                arguments = arguments or {k: v for k, v in action.items() if k != "kind"}
                id = event.get("tool_call_id")
                step.calls.append(tool_call(event.get("tool_name"), arguments, id))
        elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
            if not finishes:
                self.observation_v1(event, at)
        elif kind == "ConversationStateUpdateEvent":
            self.state(event)
        elif kind == "ConversationErrorEvent":
            session.fail(event.get("detail"))

    def observation_v1(self, event: Row, at: float | None) -> None:
        held = event.get("observation") or {}
        value = first_of(held, "content", "output", "error")
        value = first_of(event, "error", "rejection_reason") if value is None else value
        failed = event["kind"] != "ObservationEvent" or held.get("is_error") is True
        failed = failed or first_of(held, "exit_code") not in (None, 0, -1)
        self.session.result(event.get("tool_call_id"), value, failed=failed, at=at)

    def state(self, event: Row) -> None:
        key, value = event.get("key"), event.get("value")
        state = value if key == "full_state" else {key: value}
        ended = first_of(state, "execution_status", "agent_status")
        self.session.ended = str(ended or self.session.ended)
        of_each_use = (first_of(first_of(state, "stats"), "usage_to_metrics") or {}).values()
        usages: list[Usage] = []
        for metrics in of_each_use:
            self.session.usage = None
            self.metrics(metrics)
            usages += [self.session.usage] if self.session.usage is not None else []
        if of_each_use:
            self.session.usage = sum(usages, Usage()) if usages else None


def openhands(document: Any) -> Session:
    """Return the session of a list of events, or of a row of an evaluation with its `history`."""
    row = document if isinstance(document, dict) else {}
    events = (row.get("history") or row.get("events") or ()) if row else document
    session = Session(first_of(row, "instance_id"), "OpenHands")
    session.task = first_of(row, "instruction")
    session.model = str(first_of(first_of(first_of(row, "metadata"), "llm_config"), "model") or "")
    reader = _OpenHands(session)
    pairs = (event if isinstance(event, list) else [event] for event in events)
    for event in (e for pair in pairs for e in pair if isinstance(e, dict)):
        (reader.event_v1 if "kind" in event else reader.event_v0)(event)
    reader.metrics(row.get("metrics"))
    patch = first_of(row.get("test_result"), "git_patch")
    session.output = patch if isinstance(patch, str) and patch.strip() else session.output
    if row.get("error"):
        session.fail(row["error"])
    return session


# ---- ATIF ----------------------------------------------------------------------------------------


def atif(document: Row, thread: str = "") -> Session:
    """Return the session of a trajectory; trajectories of subagents become threads."""
    agent = document.get("agent") or {}
    session = Session(
        first_of(document, "trajectory_id", "session_id"),
        str(agent.get("name") or ""),
        str(agent.get("model_name") or ""),
    )
    for step in document["steps"]:
        facts: dict[str, Any] = {"at": seconds(step.get("timestamp")), "thread": thread}
        role = "assistant" if step["source"] == "agent" else step["source"]
        calls = [
            tool_call(call["function_name"], call.get("arguments"), call.get("tool_call_id"))
            for call in step.get("tool_calls") or ()
        ]
        if step.get("message") or calls or role == "assistant":
            last = session.add({"role": role, "content": step.get("message")}, **facts)[-1]
            metrics = None if step.get("is_copied_context") else step.get("metrics")
            last.usage = usage_in(metrics, cost=first_of(metrics, "cost_usd"))
            last.calls, last.model = calls, step.get("model_name")
        for result in first_of(step.get("observation"), "results") or ():
            if result.get("content") is not None:  # otherwise a reference to a subagent
                session.result(result.get("source_call_id"), result["content"], **facts)
    for number, below in enumerate(document.get("subagent_trajectories") or (), start=1):
        name = str(first_of(below.get("agent"), "name") or "agent")
        session.steps += atif(below, f"{name} {number}").steps
    totals = document.get("final_metrics")
    cost = first_of(totals, "total_cost_usd")
    session.usage = usage_in(totals, "total_prompt_tokens", "total_completion_tokens", cost=cost)
    session.metadata = {"version": agent.get("version"), "notes": document.get("notes")}
    return session
