"""Read recorded trajectories of other frameworks, and replay them on a role's backend.

A file is JSON or JSON lines. A trajectory is an object with its messages, in OpenAI's form, in
`traj` (as tau-bench writes its results, arXiv 2406.12045) or `messages`, or the bare list of them.
It may also have `task_id`, `trial`, `reward`, and in `info.task` the goal: `actions` (with `kwargs`
or `arguments`), `outputs` that the user must be told, and the `instruction`. An action called
`respond` is a reply, not a call. `info.reward_info` is null if the session was cut off, and
`info.error` says why there was no session. Results and simulations of tau2-bench are read too.
"""

from __future__ import annotations

import copy
import json
import marshal
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile, zip_longest
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue, ValidationError

from agenteval.agents.protocol import CallStatus
from agenteval.errors import InputError
from agenteval.files import opened
from agenteval.readers.messages import is_message_list, parse_messages
from agenteval.readers.sessions import session_format
from agenteval.readers.strict_json import Notes, decode_arguments, read_items
from agenteval.records import Message, ToolCall, content_hash
from agenteval.text import did_you_mean
from agenteval.workflows.backend import BackendDefect, StatefulBackend, call_tool, fresh_backend
from agenteval.workflows.cases import OpenRole, SessionCase, session_case, session_cases
from agenteval.workflows.final_state import as_json, changes_of, held, identical, same
from agenteval.workflows.scenario import Action, Goal, Name, Profile, WorkflowTool, complaint
from agenteval.workflows.session import SessionCall, SessionEnd, SessionFailure, SessionLog

_REPLY = "respond"  # of tau-bench: a reply to the user among the actions
_STOP = "###STOP###"  # its user ends the conversation with this
_OUTPUT = "API output: "
_OF_IMPORT = ("tau-bench", "record of a run", "transcript")
_ERROR = "error"  # start of refusals by its tools
_Object = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One recorded session. `task` is "" without a name; `trial` and `goal` are None if missing.
    `error` is the reason for a missing session."""

    place: str
    task: str
    trial: int | None
    messages: tuple[Message, ...]
    reward: float | None = None
    goal: Goal | None = None
    ended: SessionEnd = "user"
    error: str = ""


def read_trajectories(paths: Sequence[Path]) -> tuple[list[Trajectory], list[str]]:
    """Return the trajectories in the order of the files, and a message for each invalid record.

    Raises InputError for a file that cannot be read or is not JSON.
    """
    trajectories, problems = list[Trajectory](), list[str]()
    for path in paths:
        for place, value in _records(path):
            try:
                trajectories.append(_trajectory(value, place))
            except InputError as error:
                problems.append(str(error))
    # A failed session may lack the goal; other trials of its task have it.
    goals = {t.task: t.goal for t in trajectories if t.task and t.goal is not None}
    return [
        replace(t, goal=goals.get(t.task)) if t.error and t.goal is None else t
        for t in trajectories
    ], problems


def _records(path: Path) -> Iterator[tuple[str, Any]]:
    with opened(path) as stream:
        lines = path.suffix in (".jsonl", ".ndjson")
        for item in read_items(stream, str(path), Notes(), lines=lines):
            form = session_format([item.value])
            if form is not None and form.name == "tau2-bench":
                for value in item.value if isinstance(item.value, list) else [item.value]:
                    yield from _simulations(value, item.place)
            elif form is not None and form.name not in _OF_IMPORT:
                problem = f"a session of {form.name}, without the tools and the goal of a role"
                raise InputError(f"{problem}: use quantify or trace", item.place)
            elif isinstance(item.value, list) and not is_message_list(item.value):
                yield from ((f"{item.place}[{i}]", value) for i, value in enumerate(item.value))
            else:
                yield item.place, item.value


def _simulations(value: _Object, place: str) -> Iterator[tuple[str, Any]]:
    """Yield the simulations of tau2-bench with the goals of their tasks, in tau-bench's format."""
    goals = {}
    for task in value.get("tasks") or ():
        wanted = task.get("evaluation_criteria") or {}
        actions = [a for a in wanted.get("actions") or () if a.get("requestor") != "user"]
        goals[task.get("id")] = {"actions": actions, "outputs": wanted.get("communicate_info")}
    for i, run in enumerate(value.get("simulations", [value])):
        messages = [part for m in run["messages"] for part in m.get("tool_messages") or [m]]
        record = {key: run.get(key) for key in ("task_id", "trial")}
        record |= {"messages": [_answering(m) for m in messages if m.get("requestor") != "user"]}
        record |= {"reward": (run.get("reward_info") or {}).get("reward")}
        if run.get("task_id") in goals:
            record["info"] = {"task": goals[run["task_id"]]}
        yield f"{place}:simulations[{i}]" if "simulations" in value else place, record


def _answering(message: dict[str, Any]) -> dict[str, Any]:
    """Return a message with the call id in the key that tau-bench uses."""
    role, content = message.get("role"), message.get("content")
    if role == "tool":
        return {"role": role, "tool_call_id": message.get("id"), "content": content}
    # Users have their own tools.
    return {"role": role, "content": content or ""} if role == "user" else message


def _trajectory(value: Any, place: str) -> Trajectory:
    """Raises InputError naming the invalid key."""
    record: dict[str, Any] = {"messages": value} if isinstance(value, list) else value
    if not isinstance(record, dict):
        raise InputError("a trajectory must be an object with `traj` or `messages`", place)
    key = "traj" if "traj" in record else "messages"
    if not isinstance(record.get(key), list):
        raise InputError("a trajectory needs a list of messages in `traj` or `messages`", place)
    info = record.get("info")
    info = info if isinstance(info, dict) else {}
    messages = tuple(_spelled_out(parse_messages(record[key], key, place).messages))
    last = next((m.content for m in reversed(messages) if m.role == "user"), "")
    cut_off = info.get("reward_info", 0) is None and _STOP not in last
    names = [record.get(key) for key in ("task_id", "task", "id")]
    trial, reward = record.get("trial"), record.get("reward")
    if trial is not None and not (type(trial) is int and trial >= 0):
        raise InputError(f"trial must be a number from 0, not {trial!r}", place)
    numeric = isinstance(reward, int | float) and not isinstance(reward, bool)
    if reward is not None and not (numeric and abs(reward) <= sys.float_info.max):
        raise InputError(f"reward must be a number, not {reward!r:.40}", place)
    return Trajectory(
        place=place,
        task=next((str(n) for n in names if type(n) in (str, int) and n != ""), ""),
        trial=trial,
        messages=messages,
        reward=None if reward is None else float(reward),
        goal=_goal(record, info, place),
        ended="turns" if cut_off else "user",
        error="" if messages else str(info.get("error") or "the recording has no messages"),
    )


def _spelled_out(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages, replacing text calls by calls: agents of tau-bench without function
    calling write JSON after "Action:", and the user answers with "API output: "."""
    called = False
    for message, following in zip_longest(messages, messages[1:]):
        if called:
            called = False
            yield Message(role="tool", content=message.content.removeprefix(_OUTPUT))
            continue
        action = None
        if message.role == "assistant" and not message.tool_calls and "Action:" in message.content:
            action = decode_arguments(message.content.rpartition("Action:")[2].strip())
        if not isinstance(action, dict) or not isinstance(action.get("name"), str):
            yield message
            continue
        arguments = action.get("arguments")
        if action["name"] == _REPLY:
            content = arguments.get("content") if isinstance(arguments, dict) else None
            yield message.model_copy(update={"content": str(content or "")})
            continue
        called = following is not None and following.content.startswith(_OUTPUT)
        call = ToolCall(name=action["name"], arguments=arguments)
        yield message.model_copy(update={"tool_calls": (call,)} if called else {})


def _goal(record: _Object, info: _Object, place: str) -> Goal | None:
    """Return the goal of a record, or None."""
    sources = (info.get("task"), record.get("task"), info, record)
    goal = next((s for s in sources if isinstance(s, dict) and "actions" in s), None)
    if goal is None:
        return None
    try:
        actions = tuple(
            Action(tool=step["name"], arguments=step.get("kwargs", step.get("arguments")) or {})
            for step in goal["actions"] or ()
            if step["name"] != _REPLY
        )
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        problem = f"actions must be objects with `name` and `kwargs` ({error})"
        raise InputError(problem, place) from error
    outputs = goal.get("outputs") or []
    if not isinstance(outputs, list):
        raise InputError(f"outputs must be a list of texts, not {outputs!r:.40}", place)
    text = str(goal.get("instruction") or "")
    return Goal(text=text, actions=actions, told=tuple(map(str, outputs)))


def case_of(of: OpenRole, trajectory: Trajectory) -> SessionCase:
    """Return the user of a trajectory: made from its recorded goal, else the user of the role with
    its task's name. Raises InputError without either, and for an action with an unknown tool."""
    task, place = trajectory.task, trajectory.place
    ids = [name for name in (task, f"task_{task}") if re.fullmatch(Name, name)]
    id = next(iter(ids), f"task_{content_hash(task)[:12]}")
    if trajectory.goal is None:
        users = {case.profile.id: case for case in session_cases([of])}
        if task in users or id in users:
            return users.get(task) or users[id]
        if not task and len(users) == 1:
            return next(iter(users.values()))
        problem = "it does not name a task (`task_id`)"
        if task:
            problem = f"the task {task!r} is not a user of the role ({', '.join(users)})"
        failure = f" (there was no session: {trajectory.error[:200]})" if trajectory.error else ""
        raise InputError(f"{problem}, and it has no `actions` to define the goal{failure}", place)
    scenarios = tuple(s.id for s in of.role.scenarios)
    tools = {tool.name: tool for tool in of.role.tools_of(scenarios)}
    for action in trajectory.goal.actions:
        _check_tool(action.tool, tools, "what was wanted calls", place)
    goal = trajectory.goal
    goal = goal.model_copy(update={"text": goal.text or f"Task {task}."})
    # Messages of users differ between trials, so the opening is that of the task.
    profile = Profile(id=id, scenarios=scenarios, persona="", opening=goal.text, goals=(goal,))
    return session_case(of, "recorded", profile, recorded=True)


def _check_tool(name: str, tools: Mapping[str, WorkflowTool], what: str, place: str) -> None:
    if name not in tools:
        hint = did_you_mean(name, tools) or f"it has {', '.join(tools)}"
        raise InputError(f"{what} {name!r}, which is not a tool of the role; {hint}", place)


def replayed(
    case: SessionCase, trajectory: Trajectory, begin: JsonValue = None
) -> SessionLog | SessionFailure:
    """Replay the calls in order on a fresh backend of the role and return the session.

    Calls keep their recorded answers. A call that the backend refuses, or with invalid arguments,
    leaves the state unchanged; a call with a recorded refusal is not executed. Any other exception
    of the backend is a defect and thus a failure, as is a call of an unknown tool. `begin` is the
    first state of another session, if known: parts of the state that equal it are not copied.
    """
    if trajectory.error:
        return SessionFailure(status="unscored:missing", message=trajectory.error[:500])
    try:
        return _replay(case, trajectory, begin)
    except InputError as error:
        return SessionFailure(status="unscored:unsupported", message=str(error)[:500], who="tools")


def _replay(case: SessionCase, trajectory: Trajectory, begin: JsonValue) -> SessionLog:
    assert case.of.backend is not None
    tools = {t.name: t for t in case.of.role.tools_of(case.given)}
    backend = fresh_backend(case.of.backend)
    begin = as_json(backend.state, "the state of the backend", begin)
    messages = [m for m in trajectory.messages if m.role != "system"]
    calls, differing, turn = list[SessionCall](), list[int](), 0
    for at, message in enumerate(messages):
        if message.role != "assistant":
            continue
        answers = list(takewhile(lambda m: m.role == "tool", messages[at + 1 :]))
        for call in message.tool_calls:
            answer = _answer(call, answers)
            status: CallStatus = "unknown_tool"  # the agent invented the tool and got this refusal
            result = f"Unknown action {call.name}"
            if call.name in tools or answer != result:
                _check_tool(call.name, tools, "it calls", trajectory.place)
                tool = tools[call.name]
                status, result = _carried_out(backend, tool, call, answer, trajectory.place)
            if answer is not None and status == "ok" and not same(held(answer), held(result)):
                differing.append(len(calls))
            calls.append(
                SessionCall(
                    tool=call.name,
                    arguments=call.arguments or {},
                    status=status,
                    result=result if answer is None else answer,
                    answered="backend" if answer is None else "recorded",
                    turn=turn,
                    step=at,
                )
            )
        turn += not message.tool_calls
    return SessionLog(
        messages=tuple(messages),
        calls=tuple(calls),
        ended=trajectory.ended,
        turns=turn,
        changes=changes_of(begin, as_json(backend.state, "the state at the end", begin)),
        differing=tuple(differing),
        reward=trajectory.reward,
    )


def _carried_out(
    backend: StatefulBackend, tool: WorkflowTool, call: ToolCall, answer: str | None, place: str
) -> tuple[CallStatus, str]:
    """Execute a call and return its status and result."""
    arguments: JsonValue = call.arguments or {}
    if not isinstance(arguments, dict):
        return "bad_arguments", "the arguments are not a JSON object"
    if not callable(getattr(backend, call.name, None)):
        raise InputError(f"the backend has no method {call.name}", place)
    if answer is not None and answer.lower().startswith(_ERROR):
        return "bad_arguments", answer
    restored = _snapshot(backend.state)
    try:
        value = call_tool(backend, call.name, arguments)
    except (ValueError, BackendDefect) as error:
        if isinstance(error, BackendDefect) and not complaint(tool.parameters, arguments):
            raise InputError(str(error), place) from error
        _put_back(backend.state, restored(), {})
        return "bad_arguments", str(error.__cause__ or error)
    value = as_json(value, f"{place}: the result of {call.name}")
    return "ok", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _snapshot(state: dict[str, Any]) -> Callable[[], dict[str, Any]]:
    """Return a function that returns deep copies of the current state."""
    try:  # ten times as fast as `deepcopy`; shared objects stay shared
        stored = marshal.dumps(state)
    except ValueError:  # it has objects that are not of Python's plain types
        copied = copy.deepcopy(state)
        return lambda: copied
    return lambda: cast("dict[str, Any]", marshal.loads(stored))  # noqa: S302


def _put_back(state: Any, before: Any, done: dict[int, Any]) -> None:
    """Restore an earlier state in place, because a backend may hold references to parts of it, and
    functions of a module have no other state. `done` has the parts by the id of the old one."""
    done[id(before)] = state
    if isinstance(before, list):
        del state[len(before) :]
        state += before[len(state) :]
    elif list(state) != list(before):  # restores the order of keys too
        parts = {key: state.get(key, part) for key, part in before.items()}
        state.clear()
        state.update(parts)
    for key, part in list(enumerate(before)) if isinstance(before, list) else before.items():
        if id(part) not in done and isinstance(part, (dict, list)):
            if identical(state[key], part):
                continue
            if type(state[key]) is type(part):
                _put_back(state[key], part, done)
                continue
        state[key] = done.get(id(part), part)


def _answer(call: ToolCall, answers: list[Message]) -> str | None:
    """Remove the answer to a call from the list, by id or else by position, and return it."""
    for at, message in enumerate(answers):
        if call.id is None or message.tool_call_id in (None, call.id):
            return answers.pop(at).content
    return None
