"""ReAct by text: the model writes Thought, Action, Action Input; the loop writes Observation."""

from __future__ import annotations

from agenteval.agents.toolbox import as_object
from agenteval.agents.conversation import begun
from agenteval.agents.endpoint import Endpoint, Line
from agenteval.agents.protocol import Dialogue, System
from agenteval.agents.react_text import Step, read_step, text_history
from agenteval.agents.toolbox import Toolbox
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
    """The template of the system message for a single request."""
    return load_prompt("agenteval.agents", "react")


def react_dialogue_prompt() -> Prompt:
    """The template of the system message for a dialogue."""
    return load_prompt("agenteval.agents", "react_dialogue")


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
            system = _system(react_prompt(), tools)
            begun(dialogue, system, tools)
        else:
            system = _system(react_dialogue_prompt(), tools, instructions=dialogue.instructions)
        line = Line(self._client, tools)
        messages: list[WireMessage] = [{"role": "system", "content": system}]
        messages += text_history(dialogue.messages)
        while True:
            reply = await line.ask(Request(tuple(messages), parameters=self._parameters))
            step = read_step(reply.text)
            number = f"step_{len(messages)}" if _is_call(step, reply) else None
            keep = keep_unusable or bool(reply.refusal or number) or step.kind == "final"
            if keep:
                _say(step, number, tools)
            if reply.refusal:
                return reply.text
            if step.kind == "final":
                return step.answer
            observation = await _observe(step, reply, tools)
            if tools.exhausted.is_set():
                return ""
            if keep:
                name = step.name or None
                tools.say(Message(role="tool", name=name, content=observation, tool_call_id=number))
            messages += [_said(step), {"role": "user", "content": f"{STOP} {observation}"}]


def _system(prompt: Prompt, tools: Toolbox, **more: str) -> str:
    shown = [
        {
            "name": tool.name,
            "description": tool.description,
            "parameters": canonical_json(tool.parameters),
        }
        for tool in tools.tools
    ]
    return prompt.render(tools=shown, names=", ".join(t.name for t in tools.tools), **more)


async def _observe(step: Step, reply: Reply, tools: Toolbox) -> str:
    """Execute the step; return the observation for the model."""
    if _is_call(step, reply):
        return await tools.call_async(step.name, step.arguments)
    tools.malformed(reply.text)
    return CUT if reply.finish == "length" else CORRECTION


def _is_call(step: Step, reply: Reply) -> bool:
    return step.kind == "action" and not (reply.finish == "length" and not step.arguments)


def _said(step: Step) -> WireMessage:
    """The reply in the history; some endpoints refuse an empty one."""
    return {"role": "assistant", "content": step.text or "(nothing)"}


def _say(step: Step, number: str | None, tools: Toolbox) -> None:
    calls: tuple[ToolCall, ...] = ()
    if step.kind == "action":
        step_arguments, _ = as_object(step.arguments)
        calls = (ToolCall(name=step.name, arguments=step_arguments, id=number),)
    tools.say(Message(role="assistant", content=step.text, tool_calls=calls))


def react(
    endpoint: Endpoint, client: Client, *, name: str | None = None, dialogue: bool = False
) -> System:
    """The system `react:MODEL`; `client` comes from `connect(endpoint)`, `dialogue` as for
    `openai_chat`."""
    prompt = react_dialogue_prompt() if dialogue else react_prompt()
    return System(
        name=name or f"react:{endpoint.model}",
        make=lambda: ReActAgent(endpoint, client),
        parameters={
            "adapter": "react",
            "version": VERSION,
            "prompt": prompt.sha256,
            **endpoint.parameters(),
        },
    )
