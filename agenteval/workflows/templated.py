"""An assistant that talks in the two text templates of arXiv 2406.14884 (listing 1).

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
from agenteval.models.wire import Reply, Request, WireMessage
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


def template_prompt() -> Prompt:
    """What is added to the instructions: the tools and the two forms."""
    return load_prompt("agenteval.workflows", "agent_template")


def again_prompt() -> Prompt:
    """What is said to a reply in neither form."""
    return load_prompt("agenteval.workflows", "agent_again")


class TemplateAgent:
    """A model asked in words until it speaks to the user."""

    def __init__(self, endpoint: Endpoint, client: Client) -> None:
        self._parameters = endpoint.request_parameters()
        self._client = client

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """The text after `Response:`.

        A reply in neither form is malformed; the model is told so once, and again after every
        reply that could be used. A second one is said to the user as it stands, who would read it
        too; "" when it looks like a part of one of the forms. Of several calls in a reply the first
        alone is carried out. A refusal in the endpoint's own field is the reply. Raises ModelError
        for a failing endpoint.
        """
        line = Line(self._client, tools)
        messages = [_system(dialogue, tools), *template_history(dialogue.messages)]
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
                answer_text = again_prompt().render()
            else:
                _say(prediction, number, tools)
                if prediction.form == "reply":
                    return prediction.response
                unreadable = 0
                answer = await tools.call_async(prediction.tool, prediction.arguments)
                answer_text = _result(prediction.tool, answer)
                tools.say(Message(role="tool", content=answer, tool_call_id=number))
            messages += [_said(reply), {"role": "user", "content": answer_text}]
        return ""


def template_agent(endpoint: Endpoint, client: Client) -> System:
    """The assistant `template:MODEL`; `client` comes from `connect(endpoint)`."""
    return System(
        name=f"template:{endpoint.model}",
        make=lambda: TemplateAgent(endpoint, client),
        parameters={
            "adapter": "template",
            "version": VERSION,
            "prompt": template_prompt().sha256,
            "again": again_prompt().sha256,
            **endpoint.parameters(),
        },
    )


def template_history(messages: Sequence[Message]) -> Iterator[WireMessage]:
    """A dialogue in the templates; calls that were made at once stand one after the other."""
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


def _system(dialogue: Dialogue, tools: Toolbox) -> WireMessage:
    instructions = dialogue.instructions or ""
    shown = [
        {**tool.model_dump(), "parameters": json.dumps(tool.parameters, ensure_ascii=False)}
        for tool in tools.tools
    ]
    text = template_prompt().render(
        instructions=instructions, chart=CHART_HEADING in instructions, tools=shown
    )
    return {"role": "system", "content": text}


def _result(tool: str, answer: str) -> str:
    return f"{tool} returned: {answer}"


def _said(reply: Reply) -> WireMessage:
    """The reply in the history; some endpoints refuse an empty one."""
    return {"role": "assistant", "content": reply.text or "(nothing)"}


def _say(prediction: Prediction, number: str, tools: Toolbox) -> None:
    calls: tuple[ToolCall, ...] = ()
    if prediction.form == "call":
        calls = (ToolCall(name=prediction.tool, arguments=prediction.arguments, id=number),)
    tools.say(Message(role="assistant", content=prediction.raw, tool_calls=calls))
