"""Recorded trajectories that others made: read, and replayed on the backend of a role.

A file is JSON or JSON lines. A trajectory is an object with its messages, in OpenAI's form, in
`traj` (as tau-bench writes its results, arXiv 2406.12045) or `messages`, or the bare list of them.
Beside them may stand `task_id`, `trial`, `reward`, and in `info.task` what was wanted: `actions`
(with `kwargs` or `arguments`), `outputs` that the user must be told, and the `instruction`. An
action called `respond` is a reply, no call. `info.reward_info` is null where the session was cut
off, and `info.error` tells of one that never was.
"""

from __future__ import annotations

import copy
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from agenteval.agents.protocol import CallStatus
from agenteval.errors import InputError
from agenteval.evaluators.workflows.backend import StatefulBackend, fresh_backend
from agenteval.evaluators.workflows.cases import OpenRole, SessionCase, session_case, session_cases
from agenteval.evaluators.workflows.final_state import as_json, changes_of, held, same
from agenteval.evaluators.workflows.scenario import (
    Action,
    Goal,
    Name,
    Profile,
    WorkflowTool,
    complaint,
)
from agenteval.evaluators.workflows.session import (
    Answered,
    SessionCall,
    SessionEnd,
    SessionFailure,
    SessionLog,
)
from agenteval.files import opened
from agenteval.readers.messages import is_message_list, parse_messages
from agenteval.readers.strict_json import Notes, decode_arguments, read_items
from agenteval.records import Message, ToolCall, content_hash

_MOST_TRIALS = 10_000
_REPLY = "respond"  # of tau-bench: a reply to the user among the actions
_STOP = "###STOP###"  # what its user writes that has nothing more to say
_OUTPUT = "API output: "
_ERROR = "error"  # how its tools begin an answer that refuses


@dataclass(frozen=True, slots=True)
class Trajectory:
    """One recorded session. `task` is "" where none is named, `trial` None where it has no number,
    `goal` None where nothing says what was wanted. `error` says why there was no session."""

    place: str
    task: str
    trial: int | None
    messages: tuple[Message, ...]
    reward: float | None = None
    goal: Goal | None = None
    ended: SessionEnd = "user"
    error: str = ""


@dataclass(slots=True)
class Reading:
    """Trajectories in the order of the files, and a line on each record that is none."""

    trajectories: list[Trajectory] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def read_trajectories(paths: Sequence[Path]) -> Reading:
    """Those of all files. Raises InputError for a file that cannot be read, or holds no JSON."""
    reading = Reading()
    for path in paths:
        with opened(path) as stream:
            lines = path.suffix in (".jsonl", ".ndjson")
            for item in read_items(stream, str(path), Notes(), lines=lines):
                for place, value in _records(item.value, item.place):
                    try:
                        reading.trajectories.append(_trajectory(value, place))
                    except InputError as error:
                        reading.problems.append(str(error))
    # a session that never was may not say what was wanted: other trials of the task do
    goals = {t.task: t.goal for t in reading.trajectories if t.task and t.goal is not None}
    reading.trajectories = [
        replace(t, goal=goals.get(t.task)) if t.error and t.goal is None else t
        for t in reading.trajectories
    ]
    return reading


def _records(value: Any, place: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list) and not is_message_list(value):
        yield from ((f"{place}[{i}]", one) for i, one in enumerate(value))
    else:
        yield place, value


def _trajectory(value: Any, place: str) -> Trajectory:
    """Raises InputError naming the key that is wrong."""
    record: dict[str, Any] = {"messages": value} if isinstance(value, list) else value
    if not isinstance(record, dict):
        raise InputError("a trajectory is an object with `traj` or `messages`", place)
    key = next((k for k in ("traj", "messages") if k in record), None)
    if key is None or not isinstance(record[key], list):
        raise InputError("a trajectory needs a list of messages in `traj` or `messages`", place)
    info = record.get("info")
    info = info if isinstance(info, dict) else {}
    messages = tuple(_spelled_out(parse_messages(record[key], key, place).messages))
    error = "" if messages else str(info.get("error") or "the recording holds no message")
    user_texts = [m.content for m in messages if m.role == "user"]
    cut = (
        "reward_info" in info
        and info["reward_info"] is None
        and _STOP not in "".join(user_texts[-1:])
    )
    task = next((record[k] for k in ("task_id", "task", "id") if _is_name(record.get(k))), "")
    return Trajectory(
        place=place,
        task=str(task),
        trial=_trial(record.get("trial"), place),
        messages=messages,
        reward=_reward(record.get("reward"), place),
        goal=_goal(record, info, place),
        ended="turns" if cut else "user",
        error=error,
    )


def _spelled_out(messages: Sequence[Message]) -> Iterator[Message]:
    """The messages with calls as calls that tau-bench's agents without function calling write as
    text: JSON after "Action:", answered by the user with "API output: "."""
    answered = False
    for message, following in zip_longest(messages, messages[1:]):
        before, answered = answered, False
        if before:
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
        answered = following is not None and following.content.startswith(_OUTPUT)
        call = ToolCall(name=action["name"], arguments=arguments)
        yield message.model_copy(update={"tool_calls": (call,)} if answered else {})


def _is_name(value: Any) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool) and str(value) != ""


def _trial(value: Any, place: str) -> int | None:
    if value is None or (type(value) is int and 0 <= value < _MOST_TRIALS):
        return value
    raise InputError(f"trial is a number from 0 to {_MOST_TRIALS - 1:,}, not {value!r}", place)


def _reward(value: Any, place: str) -> float | None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is None or (number and abs(value) <= sys.float_info.max):
        return None if value is None else float(value)
    raise InputError(f"reward is a number, not {value!r:.40}", place)


def _goal(record: Mapping[str, Any], info: Mapping[str, Any], place: str) -> Goal | None:
    """What was wanted, where the record says it."""
    wanted = next(
        (source for source in (info.get("task"), record.get("task"), info, record)
         if isinstance(source, dict) and "actions" in source), None,
    )  # fmt: skip
    if wanted is None:
        return None
    try:
        actions = tuple(
            Action(
                tool=source["name"], arguments=source.get("kwargs", source.get("arguments")) or {}
            )
            for source in wanted["actions"] or ()
            if source["name"] != _REPLY
        )
    except (KeyError, TypeError, AttributeError, ValidationError) as error:
        raise InputError(
            f"actions are objects with `name` and `kwargs` ({error})", place
        ) from error
    outputs = wanted.get("outputs") or []
    if not isinstance(outputs, list):
        raise InputError(f"outputs is a list of texts, not {outputs!r:.40}", place)
    return Goal(
        text=str(wanted.get("instruction") or ""), actions=actions, told=tuple(map(str, outputs))
    )


def case_of(of: OpenRole, one: Trajectory) -> SessionCase:
    """The user that a trajectory served: by what it says was wanted, else the user of the role that
    its task names. Raises InputError where neither is there, and for a tool of its actions that
    the role has not."""
    name = _identifier(one.task)
    if one.goal is None:
        known = {case.profile.id: case for case in session_cases([of])}
        if one.task in known or name in known:
            return known.get(one.task) or known[name]
        if not one.task and len(known) == 1:
            return next(iter(known.values()))
        users = f"; its users are {', '.join(known)}" if known else ""
        task = (
            f"the task {one.task!r} is no user of the role" if one.task
            else "it names no task (`task_id`)"
        )  # fmt: skip
        lost = f" (there was no session: {one.error[:200]})" if one.error else ""
        raise InputError(f"{task}, and no `actions` say what was wanted{users}{lost}", one.place)
    scenarios = tuple(s.id for s in of.role.scenarios)
    tools = {tool.name: tool for tool in of.role.tools_of(scenarios)}
    for action in one.goal.actions:
        _known(action.tool, tools, "what was wanted calls", one.place)
    opening = next((m.content for m in one.messages if m.role == "user"), "")
    goal = one.goal.model_copy(update={"text": one.goal.text or f"Task {one.task}."})
    profile = Profile(id=name, scenarios=scenarios, persona="", opening=opening, goals=(goal,))
    # Users differ in their words from trial to trial; the task is the same.
    same_for_all = profile.model_copy(update={"opening": goal.text})
    return session_case(of, "recorded", same_for_all, recorded=True)


def _identifier(task: str) -> str:
    for name in (task, f"task_{task}"):
        if re.fullmatch(Name, name):
            return name
    return f"task_{content_hash(task)[:12]}"


def _known(name: str, tools: Mapping[str, WorkflowTool], what: str, place: str) -> None:
    if name not in tools:
        near = get_close_matches(name, tools, 1)
        hint = f"is {near[0]!r} meant?" if near else f"it has {', '.join(tools)}"
        raise InputError(f"{what} {name!r}, a tool that the role has not; {hint}", place)


def replayed(case: SessionCase, one: Trajectory) -> SessionLog | SessionFailure:
    """The session with the calls carried out on a fresh backend of the role, in their order.

    A call keeps the answer that it had. One that the backend refuses, or whose arguments do not fit
    its tool, leaves the state as it was; one whose answer was a refusal then is not carried out.
    What else the backend raises is its defect: a failure, as is a call of a tool that the role has
    not.
    """
    if one.error:
        return SessionFailure(status="unscored:missing", message=one.error[:500])
    try:
        return _Replay(case, one).log()
    except InputError as error:
        return SessionFailure(status="unscored:unsupported", message=str(error)[:500], who="tools")


class _Replay:
    def __init__(self, case: SessionCase, one: Trajectory) -> None:
        assert case.of.backend is not None
        self.one = one
        self.tools = {t.name: t for t in case.of.role.tools_of(case.given)}
        self.backend: StatefulBackend = fresh_backend(case.of.backend)
        self.begin = as_json(self.backend.state, "the state of the backend")
        self.calls: list[SessionCall] = []
        self.differing: list[int] = []

    def log(self) -> SessionLog:
        messages = [m for m in self.one.messages if m.role != "system"]
        turn = 0
        for at, message in enumerate(messages):
            if message.role != "assistant":
                continue
            answers = []
            for later in messages[at + 1 :]:
                if later.role != "tool":
                    break
                answers.append(later)
            for call in message.tool_calls:
                self._call(call, _answer(call, answers), turn, at)
            turn += not message.tool_calls
        return SessionLog(
            messages=tuple(messages),
            calls=tuple(self.calls),
            ended=self.one.ended,
            turns=turn,
            changes=changes_of(self.begin, as_json(self.backend.state, "the state at the end")),
            differing=tuple(self.differing),
            reward=self.one.reward,
        )

    def _call(self, call: ToolCall, answer: str | None, turn: int, step: int) -> None:
        status: CallStatus = "ok"
        if call.name not in self.tools and answer == f"Unknown action {call.name}":
            status, result = "unknown_tool", answer  # the agent made it up, and was told so
        else:
            _known(call.name, self.tools, "it calls", self.one.place)
            status, result = self._carried_out(call, answer)
        if answer is not None and status == "ok" and not same(held(answer), held(result)):
            self.differing.append(len(self.calls))
        answered: Answered = "recorded" if answer is not None else "backend"
        self.calls.append(
            SessionCall(
                tool=call.name, arguments=call.arguments or {}, status=status,
                result=result if answer is None else answer, answered=answered, turn=turn,
                step=step,
            )
        )  # fmt: skip

    def _carried_out(self, call: ToolCall, answer: str | None) -> tuple[CallStatus, str]:
        arguments: JsonValue = call.arguments or {}
        if not isinstance(arguments, dict):
            return "bad_arguments", "the arguments are no JSON object"
        method = getattr(self.backend, call.name, None)
        if not callable(method):
            raise InputError(f"the backend has no method {call.name}", self.one.place)
        if answer is not None and answer.lower().startswith(_ERROR):
            return "bad_arguments", answer
        before = copy.deepcopy(self.backend.state)
        try:
            value = method(**json.loads(json.dumps(arguments)))
        except Exception as error:
            if type(error) is ValueError or complaint(self.tools[call.name].parameters, arguments):
                self.backend.state.clear()  # in place: a module's functions know no other
                self.backend.state.update(before)
                return "bad_arguments", str(error)
            problem = f"defect of the backend: {call.name} raised {type(error).__name__}: {error}"
            raise InputError(problem, self.one.place) from error
        value = as_json(value, f"{self.one.place}: the result of {call.name}")
        return "ok", value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _answer(call: ToolCall, answers: list[Message]) -> str | None:
    """The answer to a call, by its id or else its place; it is taken from the list."""
    for at, message in enumerate(answers):
        if call.id is None or message.tool_call_id in (None, call.id):
            return answers.pop(at).content
    return None
