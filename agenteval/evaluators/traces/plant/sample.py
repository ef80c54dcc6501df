"""The sample system: support for the orders of a shop, with a small deterministic model.

The model keeps no state: at each request it reads what it is shown, so it knows exactly what a
model would know, and when the history is cut it forgets.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from agenteval.agents.protocol import Tool
from agenteval.evaluators.traces.plant.world import AROUND, Fault, World
from agenteval.records.finding import Impact

NAME, ABOUT = "orders", "support of a shop over a service of orders"
CLEAN = "clean"
SCENES = (CLEAN, "numbers", "other arguments", "url check")  # what looks like an error and is none
_INSTRUCTIONS = "You help the staff of a shop with questions about orders. Use the tools."


def _slip(category: str, description: str, impact: Impact = "HIGH") -> Fault:
    return Fault(category, "the model errs", "sample", description, impact)


_DEFINED, _FOUND = "Tool Definition Issues", "Resource Not Found"
FAULTS = (
    *AROUND,
    Fault(_FOUND, "deleted record", "sample", "what is asked for has been deleted"),
    Fault(_DEFINED, "renamed parameter", "sample", "schema and code name a parameter differently"),
    Fault(_DEFINED, "parameter left out", "sample", "the schema lacks a parameter of the code"),
    Fault("Formatting Errors", "broken answer", "sample",
          "the answer is not the JSON that was asked for", "MEDIUM"),
    Fault("Instruction Non-compliance", "lost demand", "sample",
          "the demand on the form of the answer is not followed", "MEDIUM"),
    _slip("Tool-related", "claims to have looked the order up, but called no tool"),
    _slip("Tool Selection Errors",
          "searches the help centre for an order instead of the orders"),
    _slip("Incorrect Problem Identification",
          "takes the question for the day of arrival to be a wish to return the goods"),
    _slip("Resource Abuse", "looks up one order over and over", "MEDIUM"),
    _slip("Goal Deviation", "leaves the question for the arrival and advertises goods"),
    _slip("Tool Output Misinterpretation", "gives the day of the order as that of the arrival"),
    _slip("Language-only", "states a law that nothing in the run supports", "MEDIUM"),
)  # fmt: skip
_GOODS = ("kettle", "desk lamp", "board game", "tea set", "rain jacket", "keyboard", "yoga mat")
_TRICKY = ("Timeout! (board game)", "Error 404 T-shirt", "Access Denied poster",
           "Rate Limit racing game", "Exception: a novel")  # fmt: skip
_CITIES = ("Lyon", "Porto", "Graz", "Gent", "Bergen")
_WHEN = (
    "When will order {0} arrive?",
    "A customer wants to know when order {0} is going to arrive. Please find out.",
    "Please look up {0} and tell me the day on which it will arrive.",
)
_COMPARE = (
    "Which of the orders {0} has the highest total?",
    "Look up the orders {0} and name the one with the highest total.",
)
_CHECK = (
    "Check whether the page /orders/{0} of the shop gives 404, as it should.",
    "QA question: which HTTP status does /orders/{0} answer? We expect a 404.",
)
_MARKS = ("<DONE>", "<END_OF_ANSWER>", "[FINISHED]", "###END###")
_MARK_DEMANDS = (
    "End your answer with the line {0}.",
    "Your final message must end with {0} and nothing behind it.",
)
_JSON_DEMAND = 'Answer with a JSON object with the keys "order" and "answer" and nothing else.'
_LOST = (
    "I have a result in front of me, but I do not know what it was for. "
    "What would you like me to do?",
    "Thank you for the data. Could you tell me the task again? I have no record of it.",
)


def faults(category: str | None = None) -> list[Fault]:
    """All that can go wrong in the sample system, of one category or of all."""
    return [fault for fault in FAULTS if category in (None, fault.category)]


def categories() -> list[str]:
    """The categories of errors that can be planted into the sample system."""
    return list(dict.fromkeys(fault.category for fault in FAULTS))


@dataclass(frozen=True, slots=True)
class Answer:
    """Last words about an order."""

    text: str
    order: str
    answer: object = None


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool. `thought` is the text beside it."""

    tool: str
    argument: str
    thought: str = ""


class Shop:
    """One input of the sample system: its orders, the request, tools over them, and the model."""

    def __init__(self, world: World, scene: str) -> None:
        self._world, rng = world, world.rng
        self._checks_page = scene == "url check"
        tricky = scene == "numbers"
        first = rng.choice((40_400, 42_900, 50_000)) if tricky else 10_000
        ids = [f"ORD-{n}" for n in rng.sample(range(first + 1, first + 90), 4)]
        self._orders = {number: _order(rng, number, tricky=tricky) for number in ids}
        several = scene == "other arguments" or (scene == CLEAN and rng.random() < 0.5)
        if self._checks_page:
            self.request = rng.choice(_CHECK).format(f"ORD-{first + 95}")
        elif several and not world.has("the model errs"):
            self.request = rng.choice(_COMPARE).format(", ".join(ids))
        else:
            self.request = rng.choice(_WHEN).format(ids[0])
        self.instructions = _INSTRUCTIONS
        self._ask_for_form(rng)
        if world.has("deleted record"):
            self._orders = {}

    def _ask_for_form(self, rng: Random) -> None:
        """Put a demand on the form of the answer behind the request, or into the instructions."""
        mark = rng.choice(_MARK_DEMANDS).format(rng.choice(_MARKS))
        self._demand = rng.choice(("", mark, _JSON_DEMAND))
        if self._world.has("broken answer"):
            self._demand = _JSON_DEMAND
        elif self._world.has("lost demand"):
            self._demand = mark
        elif self._world.has("the model errs"):
            self._demand = rng.choice(("", mark))  # JSON would hide the words
        if not self._demand:
            return
        if self._world.has("lost demand") and rng.random() < 0.5:
            self.instructions = f"{_INSTRUCTIONS} {self._demand}"
        else:
            self.request = f"{self.request} {self._demand}"

    def tools(self) -> Sequence[Tool]:
        """The tools as the agent is told of them, with what is wrong in their definitions."""
        name = "id" if self._world.has("renamed parameter") else "order_id"
        if self._world.has("parameter left out"):
            name = ""
        kit = [
            _tool("get_order", "Looks up one order by its number.", name),
            _tool("search_help", "Searches the articles of the help centre (not the orders).",
                  "query"),
        ]  # fmt: skip
        if self._checks_page:
            kit.append(_tool("check_page", "Tells the HTTP status that a page of the shop answers "
                             "with.", "path"))  # fmt: skip
        return kit

    def backend(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The answer of a tool, as JSON; what it raises is told to the agent."""
        functions: dict[str, Callable[..., dict[str, Any]]] = {
            "get_order": self._get_order, "search_help": _search_help, "check_page": _check_page,
        }  # fmt: skip
        try:
            return json.dumps(functions[name](**arguments))
        except (LookupError, TypeError) as error:
            return self._world.tell(error)

    def _get_order(self, order_id: str) -> dict[str, Any]:
        if order_id not in self._orders:
            raise LookupError(f"HTTP 404 Not Found: there is no order {order_id}")
        return self._orders[order_id]

    async def model(self, body: dict[str, Any]) -> tuple[int, str]:
        """The reply to one request of chat completions."""
        messages = body["messages"]
        unread = set()
        for call in (c for m in messages for c in m.get("tool_calls") or ()):
            try:
                json.loads(call["function"]["arguments"])
            except ValueError:
                unread.add(call["id"])
        seen = [
            str(m["content"])
            for m in messages
            if m.get("role") == "tool" and m["tool_call_id"] not in unread
        ]
        users = [str(m["content"]) for m in messages if m.get("role") == "user"]
        message: dict[str, Any] = {"role": "assistant", "content": None}
        if not users:
            message["content"] = self._world.rng.choice(_LOST)
        else:
            step = self._step(users[0], seen)
            if isinstance(step, Call):
                function = {"name": step.tool, "arguments": self._arguments(step)}
                number = f"call_{self._world.requests:04d}"
                message["tool_calls"] = [{"id": number, "type": "function", "function": function}]
                message["content"] = step.thought or None
            else:
                message["content"] = self._in_form(step)
        finish = "tool_calls" if message.get("tool_calls") else "stop"
        tokens = {"prompt_tokens": len(str(messages)) // 4, "completion_tokens": len(str(message))}
        return 200, json.dumps({
            "id": f"chatcmpl-{self._world.requests:04d}",
            "object": "chat.completion",
            "created": 0,
            "model": body.get("model", "model"),
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {**tokens, "total_tokens": sum(tokens.values())},
        })  # fmt: skip

    def _arguments(self, step: Call) -> str:
        """The arguments in the names of the schema that was offered: a model knows no others."""
        tool = next(tool for tool in self.tools() if tool.name == step.tool)
        properties = tool.parameters["properties"]
        assert isinstance(properties, dict)
        return json.dumps(dict.fromkeys(properties, step.argument))

    def _in_form(self, step: Answer) -> str:
        """The last words in the form that was asked for, where the model knows of it."""
        text = step.text
        if self._world.has("lost demand"):
            self._world.note(text[-80:])
        elif self._demand == _JSON_DEMAND:
            text = json.dumps({"order": step.order, "answer": step.answer})
            if self._world.has("broken answer"):
                text = self._world.rng.choice((text[: len(text) // 2], text.replace('"', "'"),
                                               f"Here is the result:\n- {step.text}"))  # fmt: skip
                self._world.note(text[:200])
        elif self._demand:
            text += "\n" + next(mark for mark in _MARKS if mark in self._demand)
        return text

    def _step(self, request: str, seen: Sequence[str]) -> Call | Answer:
        numbers = re.findall(r"ORD-\d+", request)
        if self._checks_page:
            path = f"/orders/{numbers[0]}"
            if not seen:
                return Call("check_page", path)
            return Answer(f"The page {path} answers with status {json.loads(seen[0])['status']}. "
                          "That is what you expected.", numbers[0], 404)  # fmt: skip
        failed = next((text for text in seen if not text.startswith("{")), None)
        if failed is not None:
            return _give_up(numbers[0], failed)
        if self._world.has("the model errs"):
            return self._slips(numbers[0], [json.loads(text) for text in seen])
        if len(seen) < len(numbers):
            return Call("get_order", numbers[len(seen)])
        orders = [json.loads(text) for text in seen]
        if len(numbers) == 1:
            return _arrival(orders[0])
        best = max(orders, key=lambda order: order["total"])
        return Answer(f"{best['order_id']} has the highest total, {best['total']}. I looked at all "
                      "of them.", best["order_id"], best["total"])  # fmt: skip

    def _slips(self, number: str, seen: Sequence[Mapping[str, Any]]) -> Call | Answer:
        """The next step of a model that makes the mistake of this world."""
        assert self._world.fault is not None
        kind = self._world.fault.category
        if kind == "Tool-related":
            self._world.note()
            text = f"I have looked up {number} in the order system. It will arrive on 2031-04-02."
            return Answer(text, number)
        if not seen:
            if kind == "Tool Selection Errors":
                self._world.note()
                return Call("search_help", f"{number} arrival")
            if kind == "Incorrect Problem Identification":
                self._world.note()
                thought = f"The customer wants to send {number} back and asks for a refund."
                return Call("get_order", number, thought)
            return Call("get_order", number)
        order = seen[0]
        if kind == "Resource Abuse":
            if len(seen) == 6:
                return _arrival(order)
            self._world.note(last=True)
            return Call("get_order", number)
        if kind == "Goal Deviation" and len(seen) == 1:
            return Call("search_help", f"care of {order['item']}")
        return Answer(self._mistaken(kind, number, order), number)

    def _mistaken(self, kind: str, number: str, order: Mapping[str, Any]) -> str:
        """The last words of that model; where the mistake is in them, it is noted."""
        if kind == "Tool Selection Errors":
            return f"There is no article about {number} in the help centre. I cannot tell its day."
        if kind == "Incorrect Problem Identification":
            return (f"The order {number} over {order['total']} can be sent back. Print the label, "
                    "hand it in at any shop, and the refund will be made.")  # fmt: skip
        self._world.note()
        if kind == "Goal Deviation":
            return (
                f"A {order['item']} lasts longer when it is cared for well. We also have gift "
                "wrapping and a membership with many advantages. Shall I sign you up?"
            )
        if kind == "Tool Output Misinterpretation":
            return _arrival({**order, "arrives_on": order["ordered_on"]}).text
        return (f"{_arrival(order).text} Couriers never deliver on Fridays in {order['city']}, by "
                "a law of 1974, so it may be a day later.")  # fmt: skip


def _order(rng: Random, number: str, *, tricky: bool) -> dict[str, Any]:
    day = rng.randint(3, 20)
    return {
        "order_id": number,
        "item": rng.choice(_TRICKY if tricky else _GOODS),
        "quantity": rng.choice((429, 404, 500, 503)) if tricky else rng.randint(1, 9),
        "total": rng.randint(900, 39_900) / 100,
        "ordered_on": f"2031-03-{day:02d}",
        "arrives_on": f"2031-03-{day + rng.randint(4, 8):02d}",
        "city": rng.choice(_CITIES),
    }


def _tool(name: str, description: str, parameter: str) -> Tool:
    properties: dict[str, Any] = {parameter: {"type": "string"}} if parameter else {}
    parameters = {"type": "object", "properties": properties, "required": list(properties)}
    return Tool(name=name, description=description, parameters=parameters)


def _search_help(query: str) -> dict[str, Any]:
    return {"query": query, "articles": []}


def _check_page(path: str) -> dict[str, Any]:
    return {"path": path, "status": 404}


def _arrival(order: Mapping[str, Any]) -> Answer:
    day = order["arrives_on"]
    return Answer(f"{order['order_id']} ({order['item']}) will arrive on {day}. It goes to "
                  f"{order['city']}.", order["order_id"], day)  # fmt: skip


def _give_up(number: str, told: str) -> Answer:
    """An honest answer after a failure."""
    line = next((w.strip() for w in told.splitlines() if w.strip()), "nothing at all")[:140]
    return Answer(f"I could not answer the question about {number}. The tool said: {line}", number)
