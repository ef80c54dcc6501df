"""Read sessions from files of benchmarks and frameworks.

Names: SWE-agent's and mini-swe-agent's trajectories; Who&When (arXiv 2505.00212); AgentRx (arXiv
2602.02475); tau-bench and tau2-bench; AgentDojo; histories of browser-use; sessions of Google ADK;
histories of pydantic-ai; the run states of the OpenAI Agents SDK in Python and JavaScript; lists of
messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agenteval.readers.chat_forms import RESPONSES, first_of
from agenteval.readers.fields import snake
from agenteval.readers.messages import ROLES, constructed, role_of
from agenteval.readers.public_logs import swe_agent
from agenteval.readers.sessions.session import Session, SessionStep, tool_call, usage_in, usage_of
from agenteval.readers.spans import seconds

Row = dict[str, Any]

# ---- transcripts ---------------------------------------------------------------------------------


def speaker(row: Row) -> str:
    """Return the speaker of a message in a team: `name`, else `role`."""
    return str(row.get("name") or row.get("role") or "")


def turns(value: Any) -> list[Any]:
    """Return the messages of a list; LangChain's have their type as role."""
    rows = [constructed(row) for row in value] if isinstance(value, list) else []
    return [{"role": role, **row} if (role := role_of(row)) else row for row in rows]


def transcript(rows: Any) -> Session:
    """Return the session of a list of messages; unknown roles are treated as agents."""
    session = Session()
    for number, row in enumerate(turns(rows)):
        if row.get("type") in RESPONSES:
            if row["type"] != "reasoning":
                session.add(row)
            continue
        name, role = speaker(row), str(row.get("role") or row.get("from") or "").lower()
        known_role = ROLES.get(role) or ROLES.get(name.lower())
        if "terminal" in name.lower() and known_role != "assistant":
            known_role = "tool"
        content, error = row.get("content"), row.get("error") if known_role == "tool" else None
        content = error if isinstance(error, str) and not content else content
        message = {"role": known_role or "assistant", "content": content}
        message |= {key: row[key] for key in ("tool_calls", "tool_call_id") if row.get(key)}
        if row.get("role") == "tool" and row.get("tool_call_id") is None and row.get("id"):
            message["tool_call_id"] = row["id"]
        for step in session.add(message, at=seconds(row.get("timestamp"))):
            step.name = None if name.lower() in ROLES else name[:200] or None
            step.id = f"step-{number}" if step.role != "tool" else None
            if step.role == "assistant":
                step.usage = usage_in(row.get("usage"), cost=row.get("cost"))
            step.failed = step.failed or bool(error)
    return session


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
    """Return the session of an AgentRx trajectory, with a list of messages in each step."""
    session = transcript([part for step in row["steps"] for part in step["substeps"]])
    id = first_of(row, "trajectory_id", "task_id")
    session.id, session.task = None if id is None else str(id), first_of(row, "instruction")
    return session


def tau_bench(row: Row) -> Session:
    """Return the session of a result of tau-bench; a reward of 1 is a success."""
    session = transcript(row["traj"])
    session.id = "-".join(str(row[key]) for key in ("task_id", "trial") if row.get(key) is not None)
    _reward(session, row.get("reward"))
    info = row.get("info") or {}
    if not row["traj"]:
        session.fail(info.get("error") or "the recording has no messages")
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
        if not rows:
            session.fail(session.ended or "no message")
        session.usage = usage_of(None, None, row.get("agent_cost"))
        session.metadata |= {key: row.get(key) for key in ("task_id", "trial", "seed")}
        yield session


def agentdojo(row: Row) -> Session:
    """Return the session of an AgentDojo run; `utility` says whether the user's task was done."""
    session = transcript(row["messages"])
    names = ("pipeline_name", "suite_name", "user_task_id", "injection_task_id", "attack_type")
    session.id = "-".join(str(row[name]) for name in names if row.get(name))
    session.model = str(row["pipeline_name"] or "")
    session.success = row.get("utility") if isinstance(row.get("utility"), bool) else None
    session.metadata = {name: row.get(name) for name in (*names, "security")}
    if row.get("error"):
        session.fail(row["error"])
    return session


# ---- agents in a browser, Google ADK -------------------------------------------------------------


def browser_use(document: Row) -> Session:
    """Return the session of a browser-use history, which does not contain the task."""
    session = Session(agent="browser-use")
    for number, row in enumerate(document["history"]):
        thought, times = row.get("model_output") or {}, row.get("metadata") or {}
        state = thought.get("current_state") or thought
        texts = [state.get(key) for key in ("evaluation_previous_goal", "memory", "next_goal")]
        step = SessionStep("assistant", "\n".join(filter(None, texts)), id=f"step-{number}")
        step.at = seconds(times.get("step_end_time"))
        step.usage = usage_of(times.get("input_tokens"), None)
        for i, action in enumerate(thought.get("action") or ()):
            name, arguments = next(iter(action.items()), ("", None))
            step.calls.append(tool_call(name, arguments, f"{number}.{i}"))
        session.steps.append(step)
        for i, result in enumerate(row.get("result") or ()):
            error, text = result.get("error"), result.get("extracted_content")
            answers = step.calls[i].id if i < len(step.calls) else None
            session.result(answers, error or text, failed=bool(error), at=step.at)
            if result.get("is_done"):
                session.output, session.ended = str(text or ""), "done"
                session.metadata["claims_success"] = result.get("success")
    return session


def adk_session(document: Row) -> Session:
    """Return a stored session of Google ADK: events with Gemini contents."""
    name = first_of(document, "appName", "app_name")
    session = Session(first_of(document, "id"), str(name or ""))
    for row in document["events"]:
        event = _snake_keys(row)
        for step in session.add(row.get("content") or {}, at=seconds(event.get("timestamp"))):
            if step.role == "assistant":
                used = event.get("usage_metadata")
                step.usage = usage_in(used, "prompt_token_count", "candidates_token_count")
                step.name, step.model = event.get("author"), event.get("model_version")
        if event.get("error_code"):
            session.fail(event.get("error_message") or event["error_code"])
    return session


def _snake_keys(value: Any) -> Any:
    """Return a value with keys in snake case, because JavaScript writes camel case."""
    if isinstance(value, list):
        return [_snake_keys(item) for item in value]
    if isinstance(value, dict):
        return {snake(key): _snake_keys(item) for key, item in value.items()}
    return value


# ---- SWE-agent -----------------------------------------------------------------------------------

_CODE = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)
_CODE_RESULT = re.compile(r"\s*(?:<returncode>(-?\d+)</returncode>|Observation:)")


def swe_trajectory(row: Row) -> Session:
    """Return the session of SWE-agent or mini-swe-agent; commands in texts become `bash` calls."""
    record, info = swe_agent(row, ""), row["info"] if isinstance(row["info"], dict) else {}
    session = Session(first_of(row, "instance_id"), "", str(record["system"] or ""))
    waiting = acted = False  # for the result of a command; whether the command came from `action`
    for message in record["messages"]:
        text, extra = message.get("content"), message.get("extra")
        result = _CODE_RESULT.match(text) if isinstance(text, str) and waiting else None
        role = "tool" if result or (waiting and acted) else message.get("role", "user")
        at = seconds(first_of(extra, "timestamp"))
        for step in session.add({**message, "role": role}, at=at):
            if step.role == "assistant":
                _command(step, message, extra)
                waiting, acted = bool(step.calls), isinstance(message.get("action"), str)
            elif step.role == "tool":
                code = first_of(extra, "returncode") if result is None else result[1]
                step.failed, waiting = code not in (None, 0, "0"), False
    stats = info.get("model_stats") or {}
    counts = (stats.get("tokens_sent"), stats.get("tokens_received"), stats.get("instance_cost"))
    session.usage = usage_of(*counts, requests=stats.get("api_calls"))
    session.ended = str(info.get("exit_status") or "")
    session.output = str(info["submission"]) if info.get("submission") else None
    if session.output is None and session.ended.lower() not in ("", "submitted"):
        session.fail(f"status: {session.ended}")
        session.output = ""
    return session


def _command(step: SessionStep, message: Row, extra: Any) -> None:
    """Add the call of a command in the text, and the usage of the reply."""
    command = message.get("action")
    if not isinstance(command, str) and len(blocks := _CODE.findall(step.text)) == 1:
        command = blocks[0]
    if not step.calls and isinstance(command, str) and command.strip():
        step.calls.append(tool_call("bash", {"command": command.strip()}))
    used = first_of(first_of(extra, "response"), "usage")
    step.usage = usage_in(used, cost=first_of(extra, "cost"))


# ---- pydantic-ai, OpenAI Agents SDK --------------------------------------------------------------


def pydantic_ai(rows: list[Row]) -> Session:
    """Return the session of a message history of pydantic-ai: requests and responses."""
    session = Session(agent="pydantic-ai")
    for row in rows:
        step, used = SessionStep("assistant"), row.get("usage")
        step.at, step.model = seconds(row.get("timestamp")), row.get("model_name")
        step.usage = usage_in(used, "input_tokens", "output_tokens")
        step.usage = step.usage or usage_in(used, "request_tokens", "response_tokens")
        if row["kind"] == "response":
            session.steps.append(step)
        for part in row["parts"]:
            kind, content, id = part["part_kind"], part.get("content"), part.get("tool_call_id")
            at, role = seconds(part.get("timestamp")), _PYDANTIC_ROLES.get(kind)
            if kind == "text":
                step.text = "\n".join(filter(None, (step.text, content)))
            elif kind.endswith("tool-call"):
                step.calls.append(tool_call(part["tool_name"], part.get("args"), id))
            elif kind.endswith("tool-return") or (kind == "retry-prompt" and part.get("tool_name")):
                session.result(id, content, failed=kind == "retry-prompt", at=at)
            elif role is not None:
                session.add({"role": role, "content": content}, at=at)
    return session


_PYDANTIC_ROLES = {"system-prompt": "system", "user-prompt": "user", "retry-prompt": "user"}


def run_state(document: Row) -> Session:
    """Return the session of a run state: replies, with the results of their calls."""
    state = _snake_keys(document)
    session = Session(agent=str(first_of(state.get("current_agent"), "name") or "agent"))
    sent = state.get("original_input")
    for row in sent if isinstance(sent, list) else [sent]:
        session.add(row if isinstance(row, dict) else {"role": "user", "content": row}, "user")
    results: dict[str, tuple[Row, Any]] = {}
    for item in state.get("generated_items") or ():
        raw = item.get("raw_item") or {}
        if item.get("type") in ("tool_call_output_item", "handoff_output_item"):
            results[str(first_of(raw, "call_id", "id"))] = (raw, item.get("output"))
    for response in state.get("model_responses") or ():
        step = SessionStep("assistant", id=first_of(response, "response_id"))
        for raw in response.get("output") or ():
            for added in Session().add(raw) if raw.get("type") != "reasoning" else ():
                step.text = "\n".join(filter(None, (step.text, added.text)))
                step.calls += added.calls
        used = response.get("usage") or {}
        requests = used.get("requests")
        step.usage = usage_in(used, "input_tokens", "output_tokens", requests=requests)
        session.steps.append(step)
        for call in step.calls:
            if str(call.id) in results:
                raw, shown = results.pop(str(call.id))
                output = first_of(raw, "output")
                session.result(call.id, first_of(output, "text") or output or shown)
    ended = state.get("current_step") or {}
    session.ended = str(ended.get("type") or "")
    session.output = ended["output"] if isinstance(ended.get("output"), str) else None
    return session
