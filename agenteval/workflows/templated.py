"""An agent that talks in the two text templates of arXiv 2406.14884 (listing 1).

It has no function calling: the tools stand behind its instructions, and every reply of the model is
a Thought with a Response or with one call.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence

from agenteval.agents import Dialogue, System
from agenteval.agents.conversation import Exchange, arguments_text, in_words
from agenteval.agents.endpoint import Endpoint, Line
from agenteval.agents.toolbox import Toolbox
from agenteval.models.client import Client
from agenteval.models.prompts import Prompt, load_prompt
from agenteval.models.wire import Request, WireMessage
from agenteval.records import Message, ToolCall
from agenteval.workflows.instructions import CHART_HEADING
from agenteval.workflows.reply_text import read_reply
from agenteval.workflows.session import Prediction

VERSION = 2  # of the templates and of how replies are read
_TRIES = 2  # replies in no form before the words are taken as they are
# A line that was meant as a part of a form, or JSON: nothing to say to a user.
_MEANT = re.compile(
    r"^\W{0,8}(?:thought|response|action(?:[ _]?input)?)\b[^\w\n]{0,4}[:：]|^\W{0,8}\{", re.I | re.M
)


def _prompt(name: str) -> Prompt:
    """Return what is added to the instructions ("template": the tools and the two forms), or what
    is said to a reply in neither form ("again")."""
    return load_prompt("agenteval.workflows", f"agent_{name}")


class TemplateAgent:
    """A model asked in words until it speaks to the user."""

    def __init__(self, endpoint: Endpoint, client: Client) -> None:
        self._parameters = endpoint.request_parameters()
        self._client = client

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Return the text after `Response:`.

        A reply in neither form is malformed, and the model is told so; a second one in a row is
        said to the user as it is, or "" when it looks like a part of one of the forms. Of several
        calls in a reply only the first is carried out. A refusal in the endpoint's own field is the
        reply. Raises ModelError for a failing endpoint.
        """
        line = Line(self._client, tools)
        shown = [
            {**tool.model_dump(), "parameters": json.dumps(tool.parameters, ensure_ascii=False)}
            for tool in tools.tools
        ]
        instructions = dialogue.instructions or ""
        system = _prompt("template").render(
            instructions=instructions, chart=CHART_HEADING in instructions, tools=shown
        )
        messages: list[WireMessage] = [{"role": "system", "content": system}]
        messages += template_history(dialogue.messages)
        unreadable = 0
        while not tools.exhausted.is_set():
            reply = await line.ask(Request(tuple(messages), parameters=self._parameters))
            prediction = read_reply(reply.text)
            number = f"template_{len(messages)}"
            if reply.refusal:
                tools.say(Message(role="assistant", content=reply.text))
                return reply.text
            if prediction.form == "unreadable":
                unreadable += 1
                tools.malformed(reply.text)
                if unreadable == _TRIES or tools.exhausted.is_set():
                    _say(prediction, number, tools)
                    return "" if _MEANT.search(reply.text) else reply.text.strip()
                answer_text = _prompt("again").render()
            else:
                _say(prediction, number, tools)
                if prediction.form == "reply":
                    return prediction.response
                unreadable = 0
                answer = await tools.call_async(prediction.tool, prediction.arguments)
                answer_text = _result(prediction.tool, answer)
                tools.say(Message(role="tool", content=answer, tool_call_id=number))
            text = reply.text or "(nothing)"  # some endpoints refuse an empty message
            messages.append({"role": "assistant", "content": text})
            messages.append({"role": "user", "content": answer_text})
        return ""


def template_agent(endpoint: Endpoint, client: Client) -> System:
    """Return the agent `template:MODEL`; `client` comes from `connect(endpoint)`."""
    return System(
        name=f"template:{endpoint.model}",
        make=lambda: TemplateAgent(endpoint, client),
        parameters={
            "adapter": "template",
            "version": VERSION,
            "prompt": _prompt("template").sha256,
            "again": _prompt("again").sha256,
            **endpoint.parameters(),
        },
    )


def template_history(messages: Sequence[Message]) -> Iterator[WireMessage]:
    """Yield a dialogue in the templates; simultaneous calls follow one another."""
    for item in in_words(messages):
        if isinstance(item, Exchange):
            yield {"role": "assistant", "content": _as_call(item)}
            yield {"role": "user", "content": _result(item.call.name, item.result)}
        elif item.role == "assistant" and read_reply(item.content).form != "reply":
            yield {"role": "assistant", "content": f"Response: {item.content}"}
        else:
            yield {"role": item.role, "content": item.content}


def _as_call(item: Exchange) -> str:
    read = read_reply(item.thought)
    if read.form == "call" and read.tool == item.call.name:  # it was said in this form
        return item.thought
    lines = [f"Thought: {item.thought}"] if item.thought.strip() else []
    lines += [f"Action: {item.call.name}", f"Action Input: {arguments_text(item.call)}"]
    return "\n".join(lines)


def _result(tool: str, answer: str) -> str:
    return f"{tool} returned: {answer}"


def _say(prediction: Prediction, number: str, tools: Toolbox) -> None:
    calls: tuple[ToolCall, ...] = ()
    if prediction.form == "call":
        calls = (ToolCall(name=prediction.tool, arguments=prediction.arguments, id=number),)
    tools.say(Message(role="assistant", content=prediction.raw, tool_calls=calls))
