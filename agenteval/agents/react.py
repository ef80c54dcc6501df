"""ReAct by text (arXiv 2210.03629): the model writes Thought, Action, Action Input; the loop writes
Observation."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

from agenteval.agents.conversation import Exchange, arguments_text, begun, in_words
from agenteval.agents.endpoint import Endpoint, Line, model_system
from agenteval.agents.protocol import Dialogue, System
from agenteval.agents.toolbox import Toolbox, as_object
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.wire import Request, WireMessage, printable
from agenteval.records import Message, ToolCall, canonical_json

VERSION = 1  # of the template and of the reply parser; raised when either changes
STOP = "Observation:"
CORRECTION = (
    "That was no step. Write `Action:` with the name of one tool and `Action Input:` with a JSON "
    "object, or `Final Answer:`."
)
CUT = "The last reply was cut off because it was too long. Write the step again, shorter."


_MARK = r"^[ \t>*_#`-]*{}(?:[ \t]+\d+)?[ \t*_`]*:[ \t*_]*"
_ACTION = re.compile(_MARK.format("Action"), re.I | re.M)
_INPUT = re.compile(_MARK.format(r"Action[ \t_]+Input"), re.I | re.M)
_FINAL = re.compile(_MARK.format(r"Final[ \t]+Answer"), re.I | re.M)
_OBSERVATION = re.compile(_MARK.format("Observation"), re.I | re.M)
_ANY = re.compile(
    _MARK.format(r"(?:Thought|Action(?:[ \t_]+Input)?|Observation|Final[ \t]+Answer)"), re.I | re.M
)
_THINKING = re.compile(r"\A.*</think>|<think>.*\Z", re.S)
_FENCE = re.compile(r"\A```[^\n`]*\n(.*?)(?:\n```.*)?\Z", re.S)
_CALL = re.compile(r"([\w.-]+)[ \t]*(?:\((.*)\)|\[(.*)\])\Z", re.S)
_NO_INPUT = {"", "none", "null", "n/a", "nothing", '""', "''", "()", "no input"}
_NAMES = ("action", "tool", "name", "tool_name")
_INPUTS = ("action_input", "tool_input", "arguments", "input", "args", "parameters")


class ReActAgent:
    """A model that gets the tools as text and calls them in text; its final answer goes to the
    user."""

    def __init__(self, endpoint: Endpoint, client: Client) -> None:
        self._parameters = {**endpoint.request_parameters(), "stop": [STOP]}
        self._client = client

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Return the final answer. Raises ModelError when the endpoint fails.

        Every reply is a turn with at most one call. A reply without a valid step is malformed, and
        the model is informed. A refusal in the endpoint's refusal field is the final answer.
        Malformed replies are not added to the conversation.
        """
        keep_unusable = dialogue.instructions is None
        if dialogue.instructions is None:
            system = _system("react", tools)
            begun(dialogue, system, tools)
        else:
            system = _system("react_dialogue", tools, instructions=dialogue.instructions)
        line = Line(self._client, tools)
        messages: list[WireMessage] = [{"role": "system", "content": system}]
        messages += text_history(dialogue.messages)
        while True:
            reply = await line.ask(Request(tuple(messages), parameters=self._parameters))
            step = read_step(reply.text)
            cut = reply.finish == "length" and not step.arguments
            is_call = step.kind == "action" and not cut
            number = f"step_{len(messages)}" if is_call else None
            keep = keep_unusable or bool(reply.refusal or number) or step.kind == "final"
            if keep:
                calls: tuple[ToolCall, ...] = ()
                if step.kind == "action":
                    step_arguments, _ = as_object(step.arguments)
                    calls = (ToolCall(name=step.name, arguments=step_arguments, id=number),)
                tools.say(Message(role="assistant", content=step.text, tool_calls=calls))
            if reply.refusal:
                return reply.text
            if step.kind == "final":
                return step.answer
            if is_call:
                observation = await tools.call_async(step.name, step.arguments)
            else:
                tools.malformed(reply.text)
                observation = CUT if reply.finish == "length" else CORRECTION
            if tools.exhausted.is_set():
                return ""
            if keep:
                name = step.name or None
                tools.say(Message(role="tool", name=name, content=observation, tool_call_id=number))
            # some endpoints refuse an empty message
            messages.append({"role": "assistant", "content": step.text or "(nothing)"})
            messages.append({"role": "user", "content": f"{STOP} {observation}"})


def _system(template: str, tools: Toolbox, **more: str) -> str:
    shown = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": canonical_json(tool.parameters),
        }
        for tool in tools.tools
    ]
    names = ", ".join(tool.name for tool in tools.tools)
    return load_prompt("agenteval.agents", template).render(tools=shown, names=names, **more)


def react(
    endpoint: Endpoint, client: Client, *, name: str | None = None, dialogue: bool = False
) -> System:
    """The system `react:MODEL`; `client` comes from `connect(endpoint)`, `dialogue` as for
    `openai_chat`."""
    prompt = load_prompt("agenteval.agents", "react_dialogue" if dialogue else "react")
    make = partial(ReActAgent, endpoint, client)
    return model_system(
        "react", endpoint, make, name, {"version": VERSION, "prompt": prompt.sha256}
    )


# ---- one reply as a step -------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Step:
    """The step in a reply.

    `text` is the reply without private thinking and without text after the step, which was written
    before any observation. `name` and `arguments` (text; "" means none) belong to an action,
    `answer` to a final answer. A `malformed` step has neither.
    """

    kind: Literal["action", "final", "malformed"]
    text: str
    name: str = ""
    arguments: str = ""
    answer: str = ""


def read_step(reply: str) -> Step:
    """Return the first step in a reply, ignoring text that the model added."""
    text = _THINKING.sub("", printable(reply)).strip()
    action, final = _ACTION.search(text), _FINAL.search(text)
    if final and not (action and action.start() < final.start()):
        answer = text[final.end() :]
        invented = _OBSERVATION.search(answer)
        answer = answer[: invented.start()] if invented else answer
        return Step("final", text[: final.end() + len(answer)].rstrip(), answer=answer.strip())
    if action is None:
        seen = _OBSERVATION.search(text)
        return Step("malformed", text[: seen.start()].rstrip() if seen else text)
    named_until = _next(text, action.end())
    name, arguments = _named(text[action.end() : named_until])
    end = named_until
    input_match = _INPUT.match(text, named_until)
    if input_match:
        end = _next(text, input_match.end())
        arguments = _arguments(text[input_match.end() : end]) or arguments
    step_text = text[:end].rstrip()
    if name.lower() == "final answer":  # as other templates have it
        return Step("final", step_text, answer=arguments)
    if not name:
        return Step("malformed", step_text)
    return Step("action", step_text, name=name, arguments=arguments)


def text_history(messages: Sequence[Message]) -> Iterator[WireMessage]:
    """A dialogue in the form of ReAct: a step for each call, with its result as the observation.

    Simultaneous calls become consecutive steps, because a step has one call. Raises InputError
    for the result of a tool that no call asked for.
    """
    for item in in_words(messages):
        if isinstance(item, Exchange):
            yield {"role": "assistant", "content": _as_step(item.thought, item.call)}
            yield {"role": "user", "content": f"Observation: {item.result}"}
        elif item.role == "assistant" and read_step(item.content).kind != "final":
            yield {"role": "assistant", "content": f"Final Answer: {item.content}"}
        else:
            yield {"role": item.role, "content": item.content}


def _as_step(thought: str, call: ToolCall) -> str:
    step = read_step(thought)
    if step.kind == "action" and step.name == call.name:  # it was said in this form
        return step.text
    lines = [thought] if thought.strip() else []
    return "\n".join([*lines, f"Action: {call.name}", f"Action Input: {arguments_text(call)}"])


def _next(text: str, start: int) -> int:
    """Return the position of the next marker after `start`."""
    match = _ANY.search(text, start)
    return match.start() if match else len(text)


def _bare(text: str) -> str:
    text = text.strip()
    fenced = _FENCE.match(text)
    return (fenced[1] if fenced else text).strip()


def _named(body: str) -> tuple[str, str]:
    """Return (name, arguments) from the text after `Action:`: a bare name on the first line,
    `name(...)`, `name[...]`, or a JSON object with both."""
    body = _bare(body)
    if body.startswith("{"):
        return _from_object(body)
    line = body.partition("\n")[0].strip().strip("`*_\"' ").rstrip(".")
    call = _CALL.match(body.strip("`*\"' ").rstrip("."))
    if call:
        inside = call[2] if call[2] is not None else call[3]
        return call[1], _arguments(inside)
    if line.startswith("[") and line.endswith("]"):  # copied from a template
        line = line[1:-1]
    return line, ""


def _from_object(body: str) -> tuple[str, str]:
    try:
        value, _ = json.JSONDecoder().raw_decode(body)
    except (ValueError, RecursionError):
        return "", ""
    name = next((value[n] for n in _NAMES if isinstance(value.get(n), str)), "")
    step_input = next((value[n] for n in _INPUTS if n in value), None)
    if step_input is None or step_input == {}:
        return name, ""
    return name, _arguments(step_input) if isinstance(step_input, str) else json.dumps(step_input)


def _arguments(body: str) -> str:
    """Return the arguments as text: only a leading JSON object, or "" for any form of none."""
    body = _bare(body)
    if len(body) > 1 and body[0] == body[-1] == "`":
        body = body.strip("`").strip()
    if body.lower().rstrip(".") in _NO_INPUT:
        return ""
    if body.startswith("{"):
        try:
            _, end = json.JSONDecoder().raw_decode(body)
        except (ValueError, RecursionError):
            return body
        return body[:end]
    return body
