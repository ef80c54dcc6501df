"""Sessions of OpenHands: its events in 0.x (`action` and `observation`) and in 1.x (`kind`)."""

from __future__ import annotations

from typing import Any

from agenteval.readers.chat_forms import first_of
from agenteval.readers.sessions.session import Session, SessionStep, tool_call, usage_of
from agenteval.readers.spans import seconds
from agenteval.records import RunFailure, Usage

Row = dict[str, Any]
_SILENT = ("change_agent_state", "recall", "null", "agent_state_changed", "condensation", "system")


def openhands(document: Any) -> Session:
    """Return the session of a list of events, or of a row of an evaluation with its `history`."""
    row = document if isinstance(document, dict) else {}
    events = (row.get("history") or row.get("events") or ()) if row else document
    pairs = (e if isinstance(e, list) else [e] for e in events)
    session = Session(first_of(row, "instance_id"), "OpenHands")
    session.task = first_of(row, "instruction")
    session.model = str(first_of(first_of(first_of(row, "metadata"), "llm_config"), "model") or "")
    replies: dict[str, SessionStep] = {}
    for event in (e for pair in pairs for e in pair if isinstance(e, dict)):
        read = _event_v1 if "kind" in event else _event_v0
        read(session, event, replies)
    _metrics(session, row.get("metrics"))
    patch = first_of(row.get("test_result"), "git_patch")
    session.output = patch if isinstance(patch, str) and patch.strip() else session.output
    if row.get("error"):
        session.failure = RunFailure(kind="error", message=str(row["error"])[:300])
    return session


def _metrics(session: Session, metrics: Any) -> None:
    """Read figures that accumulate: the last ones are those of the session."""
    if metrics:
        tokens = first_of(metrics, "accumulated_token_usage")
        counts = (first_of(tokens, "prompt_tokens"), first_of(tokens, "completion_tokens"))
        stated = usage_of(*counts, first_of(metrics, "accumulated_cost"))
        session.usage = stated or session.usage


def _reply(
    session: Session, key: Any, replies: dict[str, SessionStep], event: Row, text: str
) -> SessionStep:
    """Return the reply of a model that an event belongs to: several calls may come of one."""
    step = replies.get(str(key)) if key is not None else None
    if step is None:
        step = SessionStep("assistant", text, at=seconds(event.get("timestamp")))
        session.steps.append(step)
        if key is not None:
            replies[str(key)] = step
    return step


def _event_v0(session: Session, event: Row, replies: dict[str, SessionStep]) -> None:
    action, args, at = event.get("action"), event.get("args") or {}, seconds(event.get("timestamp"))
    call = event.get("tool_call_metadata") or {}
    _metrics(session, event.get("llm_metrics"))
    if "observation" in event:
        extras, kind = event.get("extras") or {}, event["observation"]
        if kind == "agent_state_changed":
            session.ended = str(extras.get("agent_state") or session.ended)
            if session.ended == "error":
                why = str(extras.get("reason") or session.ended)
                session.failure = RunFailure(kind="error", message=why[:300])
        if kind not in _SILENT:
            code = first_of(extras.get("metadata"), "exit_code")
            failed = kind == "error" or first_of(extras, "exit_code", "error") not in (None, 0, "")
            id = call.get("tool_call_id") or _id(event.get("cause"))
            failed = failed or code not in (None, 0, -1)
            session.result(id, event.get("content"), failed=failed, at=at)
    elif action == "system":
        session.steps.append(SessionStep("system", str(args.get("content") or ""), at=at))
    elif action == "message" and event.get("source") == "user":
        session.steps.append(SessionStep("user", str(args.get("content") or ""), at=at))
    elif action not in (None, *_SILENT):
        reply = call.get("model_response") or {}
        text = first_of(args, "content") if action == "message" else first_of(args, "thought")
        if action == "finish":
            text = (
                first_of(args, "final_thought") or first_of(args.get("outputs"), "content") or text
            )
            session.ended = "finish"
        step = _reply(session, reply.get("id"), replies, event, str(text or ""))
        used = reply.get("usage")
        counts = (first_of(used, "prompt_tokens"), first_of(used, "completion_tokens"))
        step.usage, step.model = step.usage or usage_of(*counts), reply.get("model")
        if action not in ("message", "finish"):
            remaining = {
                k: v
                for k, v in args.items()
                if k not in ("thought", "hidden", "confirmation_state")
            }
            name, id = call.get("function_name") or action, call.get("tool_call_id")
            step.calls.append(tool_call(name, remaining, id or _id(event.get("id"))))


def _id(value: Any) -> str | None:
    return None if value is None else str(value)


def _observed(session: Session, event: Row, at: float | None) -> None:
    if event.get("tool_name") == "finish":
        return
    held = event.get("observation") or {}
    value = first_of(held, "content", "output", "error")
    value = first_of(event, "error", "rejection_reason") if value is None else value
    failed = event["kind"] != "ObservationEvent" or held.get("is_error") is True
    failed = failed or first_of(held, "exit_code") not in (None, 0, -1)
    session.result(event.get("tool_call_id"), value, failed=failed, at=at)


def _state_update(session: Session, event: Row) -> None:
    key, value = event.get("key"), event.get("value")
    state = value if key == "full_state" else {key: value}
    session.ended = str(first_of(state, "execution_status", "agent_status") or session.ended)
    of_each_use = list((first_of(first_of(state, "stats"), "usage_to_metrics") or {}).values())
    usages: list[Usage] = []
    for metrics in of_each_use:
        session.usage = None
        _metrics(session, metrics)
        usages += [session.usage] if session.usage is not None else []
    if of_each_use:
        session.usage = sum(usages, Usage()) if usages else None


def _event_v1(session: Session, event: Row, replies: dict[str, SessionStep]) -> None:
    kind, at = event["kind"], seconds(event.get("timestamp"))
    if kind == "SystemPromptEvent":
        session.add({"role": "system", "content": event.get("system_prompt")}, at=at)
    elif kind == "MessageEvent":
        role = "assistant" if event.get("source") == "agent" else "user"
        session.add({"role": role, "content": first_of(event.get("llm_message"), "content")}, at=at)
    elif kind == "ActionEvent":
        action, call = event.get("action") or {}, event.get("tool_call") or {}
        words = Session()
        words.add({"role": "assistant", "content": event.get("thought") or []})
        text = next((step.text for step in words.steps), "")
        if event.get("tool_name") == "finish":
            text, session.ended = str(action.get("message") or text), "finish"
        step = _reply(session, event.get("llm_response_id"), replies, event, text)
        if event.get("tool_name") != "finish":
            arguments = first_of(call, "arguments") or {
                k: v for k, v in action.items() if k != "kind"
            }
            step.calls.append(
                tool_call(event.get("tool_name"), arguments, event.get("tool_call_id"))
            )
    elif kind in ("ObservationEvent", "AgentErrorEvent", "UserRejectObservation"):
        _observed(session, event, at)
    elif kind == "ConversationStateUpdateEvent":
        _state_update(session, event)
    elif kind == "ConversationErrorEvent":
        session.failure = RunFailure(kind="error", message=str(event.get("detail"))[:300])
