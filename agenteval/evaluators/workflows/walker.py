"""An assistant that walks the flowcharts by itself, knowing nothing but the charts and the user.

It speaks as `simulators.user_scripted` understands it. At a node that calls tools it asks for the
parameters it does not know, calls, and follows the edge whose condition holds; where the user's
will decides it offers the labels. It keeps nothing: at each turn it walks the dialogue again from
its first message, so `run` is a function of the dialogue.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from agenteval.agents import Dialogue
from agenteval.agents.toolbox import Toolbox
from agenteval.errors import AgentevalError
from agenteval.evaluators.workflows.chart import Chart, Edge, Node, calls_by_node
from agenteval.evaluators.workflows.conditions import holds
from agenteval.evaluators.workflows.mermaid import parse_chart
from agenteval.evaluators.workflows.scenario import Action, Role, WorkflowTool
from agenteval.evaluators.workflows.simulated_user import (
    NONE_OF_THESE,
    UNKNOWN,
    ask_for,
    chosen,
    offer,
    plain,
    read_value,
    told,
)
from agenteval.records import Message, ToolCall

_GOODBYE = "Goodbye."
_SORRY = "I am sorry, I cannot help with that here."
_LONGEST = 200  # nodes in one walk: a chart may go in circles by itself


@dataclass(frozen=True, slots=True)
class Say:
    """Say this to the user; comes back with the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Do:
    """Call this tool; comes back with what the tool says."""

    tool: str
    arguments: dict[str, JsonValue]


Walk = Generator["Say | Do", str, "str"]  # its value is the answer to the last question
Part = Generator["Say | Do", str, Any]


@dataclass(frozen=True)
class Plan:
    """The step that is left out: `at` is the index of a gold call; the perfect assistant has none,
    and knows no gold.

    `edges` are those that the gold walk takes out of the node of a call, by the index of the call:
    who leaves a step out cannot know by its result.
    """

    at: int | None = None
    gold: tuple[Action, ...] = ()
    edges: Mapping[int, Edge] = field(default_factory=dict)

    def guess(self, number: int, name: str) -> JsonValue:
        """A value that nobody told, for who has left out what returns it; None: no guess."""
        return self.gold[number].arguments.get(name) if number < len(self.gold) else None


@dataclass(frozen=True, slots=True)
class Book:
    """The charts and tools of the scenarios at hand."""

    charts: dict[str, Chart]
    tools: dict[str, WorkflowTool]
    titles: dict[str, str]
    calls: dict[str, tuple[str, ...]]  # by node, see `calls_by_node`

    @classmethod
    def of(cls, role: Role, scenarios: Sequence[str]) -> Book:
        """Those of a role. Raises InputError for a chart outside the subset."""
        known = {id: role.scenario(id) for id in dict.fromkeys(scenarios)}
        charts = {id: parse_chart(s.flowchart, f"{role.id}/{id}") for id, s in known.items()}
        tools = {tool.name: tool for tool in role.tools_of(tuple(known))}
        titles = {id: s.title for id, s in known.items()}
        return cls(charts, tools, titles, calls_by_node(charts.values(), tools))

    def starts(self) -> list[tuple[str, str, Edge | None]]:
        """What can be begun: label, scenario and edge out of its start; None where the start is a
        step of its own."""
        begun: list[tuple[str, str, Edge | None]] = []
        for id, chart in self.charts.items():
            start, title = chart.starts[0].id, plain(self.titles[id])
            if chart.begins or self.calls[start]:
                begun.append((title, id, None))
                continue
            begun += [(plain(e.intent) or title, id, e) for e in chart.leaving(start)]
        return begun


class Walker:
    """The assistant; `plan` may have it leave out a step."""

    def __init__(self, book: Book, plan: Plan) -> None:
        self._book = book
        self._plan = plan

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """The next words, after all calls that come before them.

        Raises AgentevalError for a dialogue that is not one of its own.
        """
        past = [m for m in dialogue.messages if m.role in ("user", "tool")]
        walk = lead(self._book, self._plan)
        step = next(walk)
        at, made = 1, 0  # the first message is the user's opening
        while True:
            if isinstance(step, Do):
                made += 1
            if at < len(past):
                answer = _recalled(step, past[at])
                at += 1
            elif isinstance(step, Say):
                return step.text
            else:
                answer, at = await _call(step, made, tools), at + 1
                past.append(Message(role="tool", content=answer))
                if tools.exhausted.is_set():
                    return ""
            step = walk.send(answer)


def lead(book: Book, plan: Plan) -> Generator[Say | Do, str, None]:
    """One conversation from the user's first words on. It never ends."""
    return _Walk(book, plan).run()


def _recalled(step: Say | Do, message: Message) -> str:
    if (message.role == "user") != isinstance(step, Say):
        raise AgentevalError("the dialogue is not one that this scripted assistant led")
    return message.content


async def _call(step: Do, number: int, tools: Toolbox) -> str:
    turn, id = tools.turn(), f"step_{number}"
    call = ToolCall(name=step.tool, arguments=step.arguments, id=id)
    status, answer = await tools.attempt_async(step.tool, step.arguments, turn=turn)
    if status is not None:
        tools.say(Message(role="assistant", tool_calls=(call,)))
        tools.say(Message(role="tool", content=answer, tool_call_id=id))
    return answer


@dataclass(slots=True)
class _Scene:
    """What is known within one scenario: what the user told, what tools returned, and what was
    asked for at which node."""

    chart: Chart
    told: dict[str, JsonValue] = field(default_factory=dict)
    returned: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    asked: dict[str, tuple[str, ...]] = field(default_factory=dict)
    edge: Edge | None = None  # as planned, out of the node at hand

    def known(self, name: str) -> JsonValue:
        """The latest value of that name, None where there is none."""
        if name in self.told:
            return self.told[name]
        for _, result in reversed(self.returned):
            if name in result:
                value: JsonValue = result[name]
                return value
        return None


class _Walk:
    """One walk from the user's first words on. Lines that wait are said with the next question."""

    def __init__(self, book: Book, plan: Plan) -> None:
        self._book = book
        self._plan = plan
        self._waiting: list[str] = ["Hello."]
        self._over = False
        self._steps = 0
        self._calls = 0  # steps of the gold walk behind us, made or left out

    def run(self) -> Generator[Say | Do, str, None]:
        """Never ends: after its goodbye it says it again."""
        question, cross = "What can I do for you?", len(self._book.charts) > 1
        first = True
        while not self._over:
            starts = self._book.starts()
            label = yield from self._choose(question, [name for name, _, _ in starts])
            begun = next((s for s in starts if s[0] == label), None)
            if begun is None and first and len(starts) == 1:
                begun = starts[0]
            if begun is None:
                break
            yield from self._scenario(_Scene(self._book.charts[begun[1]]), begun[2])
            question, first = "Is there anything else?", False
            self._over |= not cross
        while True:
            yield Say(self._with_waiting(_GOODBYE))

    def _scenario(self, scene: _Scene, edge: Edge | None) -> Part:
        node: Node | None = scene.chart.node(edge.target) if edge else scene.chart.starts[0]
        while node is not None and not self._over:
            self._steps += 1
            if self._steps > _LONGEST:
                self._stop(_SORRY)
                return
            tools = self._book.calls[node.id]
            scene.edge = None
            for name in scene.asked.pop(node.id, ()):  # here again: the user may say otherwise now
                scene.told.pop(name, None)
            if not tools:
                self._waiting.append(plain(node.text))
            for tool in tools:
                yield from self._step(scene, node, tool)
                if self._over:
                    return
            edge = yield from self._next(scene, node)
            node = scene.chart.node(edge.target) if edge else None

    def _step(self, scene: _Scene, node: Node, tool: str) -> Part:
        """One call of the procedure, as it should be or as planned."""
        number = self._calls
        self._calls += 1
        scene.edge = self._plan.edges.get(number)
        if self._plan.at == number:
            yield from self._arguments(scene, node, tool)  # asked for all the same
        else:
            yield from self._made(scene, node, tool)

    def _made(self, scene: _Scene, node: Node, tool: str) -> Part:
        """Ask, call, and once more when the tool refused."""
        for attempt in range(2):
            arguments = yield from self._arguments(scene, node, tool)
            if arguments is None:
                self._stop(f"Without that I cannot go on. {_SORRY}")
                return
            result = yield Do(tool, arguments)
            if self._keep(scene, tool, result):
                return
            self._waiting.append(f"That did not work: {plain(result)}")
            for name in scene.asked.pop(node.id, ()) if attempt == 0 else ():
                scene.told.pop(name, None)
        self._stop(_SORRY)

    def _keep(self, scene: _Scene, tool: str, result: str) -> bool:
        try:
            value = json.loads(result)
        except ValueError:
            return False
        if isinstance(value, dict):
            scene.returned.append((tool, value))
        return isinstance(value, dict)

    def _arguments(
        self, scene: _Scene, node: Node, tool: str
    ) -> Generator[Say | Do, str, dict[str, JsonValue] | None]:
        """The arguments of a call; None when the user does not know what must be known."""
        spec = self._book.tools[tool]
        properties = spec.properties
        before = scene.asked.get(node.id, ())
        missing = [n for n in properties if scene.known(n) is None and n not in before]
        if missing:
            scene.asked[node.id] = (*before, *missing)
            lines = yield from self._ask(ask_for(missing))
            values, rest = told(lines, missing)
            if rest and values:
                self._waiting.append(_SORRY)
            for name, written in values.items():
                if written != UNKNOWN:
                    scene.told[name] = read_value(written, properties[name])
        arguments: dict[str, JsonValue] = {
            n: value for n in properties if (value := scene.known(n)) is not None
        }
        for name in spec.required:
            if name not in arguments:
                guess = self._plan.guess(self._calls - 1, name)
                if guess is None:
                    return None
                arguments[name] = guess
        return arguments

    def _next(self, scene: _Scene, node: Node) -> Generator[Say | Do, str, Edge | None]:
        """The edge to follow; None at an end."""
        left_out = self._plan.at == self._calls - 1
        if left_out and scene.edge is not None and scene.edge.source == node.id:
            return scene.edge  # whatever was returned
        leaving = scene.chart.leaving(node.id)
        held = [e for e in leaving if e.condition and holds(e.condition, scene.returned)]
        if not held and scene.edge in leaving and self._plan.at is not None:
            return scene.edge
        open_to = held or [e for e in leaving if e.condition is None]
        if not open_to:
            if leaving:
                self._stop(_SORRY)  # nothing that was returned says where to go
            return None
        labels = [plain(e.intent) for e in open_to]
        if len(open_to) == 1 or not all(labels):
            return open_to[0]
        label = yield from self._choose("Which of these do you want?", labels)
        return next((e for e in open_to if plain(e.intent) == label), None)

    def _choose(self, question: str, labels: list[str]) -> Generator[Say | Do, str, str | None]:
        """The option that the user names, asked twice at most; None for none of them."""
        for _ in range(2):
            text = yield from self._ask(offer(question, labels))
            label = chosen(text, labels)
            lines = [line for line in text.split("\n") if line.strip()]
            if len(lines) > 1:
                self._waiting.append(_SORRY)
            if label is not None or NONE_OF_THESE in text:
                return label
        return None

    def _ask(self, question: str) -> Walk:
        answer = yield Say(self._with_waiting(question))
        return answer

    def _with_waiting(self, text: str) -> str:
        lines, self._waiting = [*self._waiting, text], []
        return "\n".join(lines)

    def _stop(self, words: str) -> None:
        self._waiting.append(words)
        self._over = True
