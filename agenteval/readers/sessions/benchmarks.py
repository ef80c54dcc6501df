"""Sessions in the files of benchmarks and frameworks.

Names: SWE-agent's and mini-swe-agent's trajectories; Who&When (arXiv 2505.00212); AgentRx (arXiv
2602.02475); tau-bench and tau2-bench; AgentDojo; histories of browser-use; sessions of Google ADK;
the run states of the OpenAI Agents SDK in Python and JavaScript; lists of messages.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from agenteval.readers.chat_forms import RESPONSES, first_of
from agenteval.readers.fields import snake
from agenteval.readers.messages import ROLES, constructed, role_of
from agenteval.readers.public_logs import swe_agent
from agenteval.readers.sessions.session import Session, SessionStep, tool_call, usage_of
from agenteval.readers.spans import seconds
from agenteval.records import RunFailure

Row = dict[str, Any]
_CODE = re.compile(r"```[\w-]*\n(.*?)\n?```", re.DOTALL)
_CODE_RESULT = re.compile(r"\s*(?:<returncode>(-?\d+)</returncode>|Observation:)")

# ---- transcripts ---------------------------------------------------------------------------------


def speaker(row: Row) -> str:
    """Return the name of who speaks in a message of a team: `name`, else `role`."""
    return str(row.get("name") or row.get("role") or "")


def turns(value: Any) -> list[Any]:
    """Return the messages of a list, those of LangChain with their type as role."""
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
        known_role = (
            "tool" if "terminal" in name.lower() and known_role != "assistant" else known_role
        )
        words, error = row.get("content"), row.get("error") if known_role == "tool" else None
        words = error if isinstance(error, str) and not words else words
        content = {"role": known_role or "assistant", "content": words, **_calls_of(row)}
        for step in session.add(content, at=seconds(row.get("timestamp"))):
            step.name = None if name.lower() in ROLES else name[:200] or None
            step.id = f"step-{number}" if step.role != "tool" else None
            if step.role == "assistant":
                used = row.get("usage")
                tokens = (first_of(used, "prompt_tokens"), first_of(used, "completion_tokens"))
                step.usage = usage_of(*tokens, row.get("cost"))
            step.failed = step.failed or bool(error)
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
        if not rows:
            session.failure = RunFailure(kind="error", message=session.ended or "no message")
        session.usage = usage_of(None, None, row.get("agent_cost"))
        session.metadata |= {key: row.get(key) for key in ("task_id", "trial", "seed")}
        yield session


def agentdojo(row: Row) -> Session:
    """Return the session of a run of AgentDojo; `utility` is whether the user's task was done."""
    session = transcript(row["messages"])
    names = ("pipeline_name", "suite_name", "user_task_id", "injection_task_id", "attack_type")
    session.id = "-".join(str(row[name]) for name in names if row.get(name))
    session.model = str(row["pipeline_name"] or "")
    session.success = row.get("utility") if isinstance(row.get("utility"), bool) else None
    session.metadata = {name: row.get(name) for name in (*names, "security")}
    if row.get("error"):
        session.failure = RunFailure(kind="error", message=str(row["error"])[:300])
    return session


# ---- agents in a browser, Google ADK -------------------------------------------------------------


def browser_use(document: Row) -> Session:
    """Return the session of a history of browser-use, which does not hold its task."""
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
    """Return the session that Google ADK stores: events with contents of Gemini."""
    name = first_of(document, "appName", "app_name")
    session = Session(first_of(document, "id"), str(name or ""))
    for row in document["events"]:
        event = _plain(row)
        for step in session.add(row.get("content") or {}, at=seconds(event.get("timestamp"))):
            if step.role == "assistant":
                used = event.get("usage_metadata")
                tokens = (
                    first_of(used, f"{side}_token_count") for side in ("prompt", "candidates")
                )
                step.usage, step.model = usage_of(*tokens), event.get("model_version")
                step.name = event.get("author")
        if event.get("error_code"):
            why = str(event.get("error_message") or event["error_code"])
            session.failure = RunFailure(kind="error", message=why[:300])
    return session


# ---- SWE-agent -----------------------------------------------------------------------------------


def swe_trajectory(row: Row) -> Session:
    """Return the session of SWE-agent or mini-swe-agent; commands in text are calls of `bash`."""
    record, info = swe_agent(row, ""), row["info"] if isinstance(row["info"], dict) else {}
    session = Session(first_of(row, "instance_id"), "", str(record["system"] or ""))
    waiting = acted = False  # for the result of a command; of one that stands in `action`
    for message in record["messages"]:
        text = message.get("content")
        result = _CODE_RESULT.match(text) if isinstance(text, str) and waiting else None
        role = "tool" if result or (waiting and acted) else message.get("role", "user")
        extra = message.get("extra")
        for step in session.add(
            {**message, "role": role}, at=seconds(first_of(extra, "timestamp"))
        ):
            if step.role == "assistant":
                _command(step, message, extra)
                waiting, acted = bool(step.calls), isinstance(message.get("action"), str)
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
