"""ReAct by text: the model writes Thought, Action, Action Input; the loop writes Observation."""

from __future__ import annotations

from agenteval.agents.endpoint import Endpoint, Line, opening
from agenteval.agents.protocol import System
from agenteval.agents.react_text import Step, read_step
from agenteval.agents.toolbox import Toolbox, as_object
from agenteval.models.client import Client
from agenteval.models.prompts import Prompt, load_prompt
from agenteval.models.wire import Reply, Request, WireMessage
from agenteval.records import Message, ToolCall, canonical_json

VERSION = 1  # of the template and of how replies are read: raised with every change of either
STOP = "Observation:"
CORRECTION = (
    "That was no step. Write `Action:` with the name of one tool and `Action Input:` with a JSON "
    "object, or `Final Answer:`."
)
CUT = "The last reply was cut off because it was too long. Write the step again, shorter."


def react_prompt() -> Prompt:
    """The template of the system message."""
    return load_prompt("agenteval.agents", "react")


class ReActAgent:
    """A model that is told of the tools in words and asks for them in words."""

    def __init__(self, endpoint: Endpoint, client: Client) -> None:
        self._parameters = {**endpoint.request_parameters(), "stop": [STOP]}
        self._client = client

    async def run(self, request: str, tools: Toolbox) -> str:
        """The final answer. Raises ModelError for a failing endpoint.

        Every reply is a turn of at most one call; a reply that is no step is malformed, and the
        model is told so. A refusal in the endpoint's own field is the final answer.
        """
        line = Line(self._client, tools)
        messages = opening(_system(tools), request, tools)
        while True:
            reply = await line.ask(Request(tuple(messages), parameters=self._parameters))
            step = read_step(reply.text)
            _say(step, tools)
            if reply.refusal:
                return reply.text
            if step.kind == "final":
                return step.answer
            observation = _observe(step, reply, tools)
            if tools.exhausted.is_set():
                return ""
            tools.say(Message(role="tool", name=step.name or None, content=observation))
            messages += [_said(step), {"role": "user", "content": f"{STOP} {observation}"}]


def _system(tools: Toolbox) -> str:
    shown = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": canonical_json(tool.parameters),
        }
        for tool in tools.tools
    ]
    return react_prompt().render(tools=shown, names=", ".join(t.name for t in tools.tools))


def _observe(step: Step, reply: Reply, tools: Toolbox) -> str:
    """Carry out the step; returns what the model is told."""
    cut = reply.finish == "length"
    if step.kind == "action" and not (cut and not step.arguments):
        return tools.call(step.name, step.arguments)
    tools.malformed(reply.text)
    return CUT if cut else CORRECTION


def _said(step: Step) -> WireMessage:
    """The reply in the history; some endpoints refuse an empty one."""
    return {"role": "assistant", "content": step.text or "(nothing)"}


def _say(step: Step, tools: Toolbox) -> None:
    calls: tuple[ToolCall, ...] = ()
    if step.kind == "action":
        calls = (ToolCall(name=step.name, arguments=as_object(step.arguments)[0]),)
    tools.say(Message(role="assistant", content=step.text, tool_calls=calls))


def react(endpoint: Endpoint, client: Client, *, name: str | None = None) -> System:
    """The system `react:MODEL`; `client` comes from `connect(endpoint)`."""
    return System(
        name=name or f"react:{endpoint.model}",
        make=lambda: ReActAgent(endpoint, client),
        parameters={
            "adapter": "react",
            "version": VERSION,
            "prompt": react_prompt().sha256,
            **endpoint.parameters(),
        },
    )
