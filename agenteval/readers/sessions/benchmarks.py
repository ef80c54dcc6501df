"""Sessions in the files of benchmarks and frameworks.

Names: SWE-agent's and mini-swe-agent's trajectories; OpenHands' events (0.x: `action` and
`observation`; 1.x: `kind`); Who&When (arXiv 2505.00212); AgentRx (arXiv 2602.02475); tau-bench and
tau2-bench; the run states of the OpenAI Agents SDK in Python and JavaScript; lists of messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agenteval.readers.chat_forms import first_of
from agenteval.readers.fields import snake
from agenteval.readers.messages import ROLES
from agenteval.readers.public_logs import swe_agent
from agenteval.readers.sessions.session import Session, SessionStep, tool_call, usage_of
from agenteval.readers.spans import seconds
from agenteval.records import RunFailure, Usage

Row = dict[str, Any]
_CODE = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)
_CODE_RESULT = re.compile(r"\s*(?:<returncode>(-?\d+)</returncode>|Observation:)")

# ---- transcripts ---------------------------------------------------------------------------------


def speaker(row: Row) -> str:
    """Return the name of who speaks in a message of a team: `name`, else `role`."""
    return str(row.get("name") or row.get("role") or "")


def transcript(rows: list[Row], first: int = 0, key: str = "content") -> Session:
    """Return the session of a list of messages; unknown roles are treated as agents."""
    session = Session()
    for number, row in enumerate(rows, start=first):
        name, role = speaker(row), str(row.get("role") or row.get("from") or "").lower()
        known_role = ROLES.get(role) or ROLES.get(name.lower())
        known_role = (
            "tool" if "terminal" in name.lower() and known_role != "assistant" else known_role
        )
        content = {"role": known_role or "assistant", "content": row.get(key), **_calls_of(row)}
        for step in session.add(content, at=seconds(row.get("timestamp"))):
            step.name = None if name.lower() in ROLES else name[:200] or None
            step.id = f"step-{number}" if step.role != "tool" else None
            if step.role == "assistant":
                used = row.get("usage")
                tokens = (first_of(used, "prompt_tokens"), first_of(used, "completion_tokens"))
                step.usage = usage_of(*tokens, row.get("cost"))
            step.failed = step.role == "tool" and row.get("error") is True
    return session


def _calls_of(row: Row) -> Row:
    held = {key: row.get(key) for key in ("tool_calls", "tool_call_id")}
    if row.get("role") == "tool" and held["tool_call_id"] is None:
        held["tool_call_id"] = row.get("id")
    return {key: value for key, value in held.items() if value}


def who_and_when(row: Row) -> Session:
    """Return the session of a failed conversation; steps are numbered from 0, as its labels are."""
    session = transcript(row["history"])
    session.id = first_of(row, "question_ID")
    session.task = str(row.get("question") or "") or None
    session.success = row.get("is_correct") if isinstance(row.get("is_correct"), bool) else None
    gold = first_of(row, "ground_truth", "groundtruth")
    session.reference = None if gold is None else str(gold)
    names = ("mistake_agent", "mistake_step", "mistake_reason", "level")
    session.metadata = {name: row.get(name) for name in names}
    return session


def agentrx(row: Row) -> Session:
    """Return the session of a trajectory of AgentRx: steps with a list of messages in each."""
    steps = [(s.get("index"), sub) for s in row["steps"] for sub in s["substeps"]]
    session = transcript([sub for _, sub in steps])
    session.id = first_of(row, "trajectory_id", "task_id")
    session.id = None if session.id is None else str(session.id)
    session.task = first_of(row, "instruction")
    return session


def tau_bench(row: Row) -> Session:
    """Return the session of a result of tau-bench; a reward of 1 is a success."""
    session = transcript(row["traj"])
    session.id = "-".join(str(row[key]) for key in ("task_id", "trial") if row.get(key) is not None)
    _reward(session, row.get("reward"))
    info = row.get("info") or {}
    if not row["traj"]:
        why = str(info.get("error") or "the recording holds no message")
        session.failure = RunFailure(kind="error", message=why[:300])
    session.metadata["instruction"] = first_of(first_of(info, "task"), "instruction")
    session.usage = usage_of(None, None, row.get("agent_cost"))
    return session


def _reward(session: Session, reward: Any) -> None:
    if isinstance(reward, (int, float)) and not isinstance(reward, bool):
        session.success = reward == 1
        session.metadata["reward"] = reward


def tau2(document: Row) -> Iterator[Session]:
    """Yield the sessions of the simulations of a results file, or of one simulation."""
    model = first_of(first_of(first_of(document, "info"), "agent_info"), "llm")
    for row in document.get("simulations", [document]):
        rows = [part for m in row["messages"] for part in m.get("tool_messages") or [m]]
        session = transcript(rows)
        for step, message in zip(session.steps, rows, strict=False):
            step.usage = None if message.get("role") != "assistant" else step.usage
        session.id, session.model = str(row["id"]), str(model or "")
        session.ended = str(row.get("termination_reason") or "")
        _reward(session, first_of(row.get("reward_info"), "reward"))
        session.usage = usage_of(None, None, row.get("agent_cost"))
        session.metadata |= {key: row.get(key) for key in ("task_id", "trial", "seed")}
        yield session


# ---- SWE-agent -----------------------------------------------------------------------------------


def swe_trajectory(row: Row) -> Session:
    """Return the session of SWE-agent or mini-swe-agent; commands in text are calls of `bash`."""
    record, info = swe_agent(row, ""), row["info"] if isinstance(row["info"], dict) else {}
    session = Session(first_of(row, "instance_id"), "", str(record["system"] or ""))
    waiting = False
    for message in record["messages"]:
        text = message.get("content")
        result = _CODE_RESULT.match(text) if isinstance(text, str) and waiting else None
        if message.get("role") == "exit":
            continue
        role = "tool" if result else message.get("role", "user")
        extra = message.get("extra")
        for step in session.add(
            {**message, "role": role}, at=seconds(first_of(extra, "timestamp"))
        ):
            if step.role == "assistant":
                _command(step, message, extra)
                waiting = bool(step.calls)
            elif step.role == "tool":
                code = first_of(extra, "returncode") if result is None else result[1]
                step.failed = code not in (None, 0, "0")
                waiting = False
    stats = info.get("model_stats") or {}
    counts = (stats.get("tokens_sent"), stats.get("tokens_received"), stats.get("instance_cost"))
    session.usage = usage_of(*counts, requests=stats.get("api_calls"))
    session.ended = str(info.get("exit_status") or "")
    session.output = str(info["submission"]) if info.get("submission") else None
    if session.output is None and session.ended.lower() not in ("", "submitted"):
        session.failure = RunFailure(kind="error", message=f"status: {session.ended}"[:300])
        session.output = ""
    return session


def _command(step: SessionStep, message: Row, extra: Any) -> None:
    """Add the call of a command that stands in the text, and the usage of the reply."""
    command, used = message.get("action"), first_of(first_of(extra, "response"), "usage")
    if not isinstance(command, str) and len(blocks := _CODE.findall(step.text)) == 1:
        command = blocks[0]
    if not step.calls and isinstance(command, str) and command.strip():
        step.calls.append(tool_call("bash", {"command": command.strip()}))
    tokens = (first_of(used, "prompt_tokens"), first_of(used, "completion_tokens"))
    step.usage = usage_of(*tokens, first_of(extra, "cost"))


# ---- OpenHands -----------------------------------------------------------------------------------

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
        if kind not in _SILENT:
            code = first_of(extras.get("metadata"), "exit_code")
            failed = kind == "error" or first_of(extras, "exit_code", "error") not in (None, 0, "")
            id = call.get("tool_call_id") or str(event.get("cause"))
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
            step.calls.append(tool_call(name, remaining, id or str(event.get("id"))))


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
    if event.get("key") in ("execution_status", "agent_status"):
        session.ended = str(event.get("value"))
    of_each_use = list((first_of(event.get("value"), "usage_to_metrics") or {}).values())
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


# ---- OpenAI Agents SDK ---------------------------------------------------------------------------


def _plain(value: Any) -> Any:
    """Return a value with keys in snake case: the SDK for JavaScript writes camel case."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return {snake(k): _plain(v) for k, v in value.items()} if isinstance(value, dict) else value


def _response(response: Row) -> SessionStep:
    step = SessionStep("assistant", id=first_of(response, "response_id"))
    for raw in response.get("output") or ():
        for added in Session().add(raw) if raw.get("type") != "reasoning" else ():
            step.text = "\n".join(filter(None, (step.text, added.text)))
            step.calls += added.calls
    used = response.get("usage") or {}
    counts = (used.get("input_tokens"), used.get("output_tokens"))
    step.usage = usage_of(*counts, requests=used.get("requests"))
    return step


def run_state(document: Row) -> Session:
    """Return the session of a run state: replies, with the results of their calls."""
    state = _plain(document)
    session = Session(agent=str(first_of(state.get("current_agent"), "name") or "agent"))
    original_input = state.get("original_input")
    for row in (
        original_input
        if isinstance(original_input, list)
        else [{"role": "user", "content": original_input}]
    ):
        session.add(row if isinstance(row, dict) else {"role": "user", "content": row}, "user")
    results: dict[str, tuple[Row, Any]] = {}
    for item in state.get("generated_items") or ():
        raw = item.get("raw_item") or {}
        if item.get("type") in ("tool_call_output_item", "handoff_output_item"):
            results[str(first_of(raw, "call_id", "id"))] = (raw, item.get("output"))
    for response in state.get("model_responses") or ():
        step = _response(response)
        session.steps.append(step)
        for call in step.calls:
            if str(call.id) in results:
                raw, shown = results.pop(str(call.id))
                output = first_of(raw, "output")
                session.result(call.id, first_of(output, "text") or output or shown)
    ended = state.get("current_step") or {}
    session.ended = str(ended.get("type") or "")
    if isinstance(ended.get("output"), str):
        session.output = ended["output"]
    return session
