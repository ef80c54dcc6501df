"""Traces of any size, as agents with a growing history leave them; seeded, with planted facts.

A manager answers questions one after the other; in steps it thinks, calls tools (search, pages,
code, logs) and now and then hands a part to a searcher with a history of its own. Every model call
is sent its whole history again, so most of the text is repeated, as in real traces. All words are
invented.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agenteval.records import Message, Run, ToolCall, ToolSpec
from agenteval.records.run import Span, SpanEvent, SpanKind, Usage

_PLACES = (
    *("Alverton", "Brisk Harbour", "Corrin", "Dunmeer", "Eastwick", "Farrow", "Gant", "Holt"),
    *("Inverley", "Jarrow Point", "Kelm", "Lastrum", "Morwen", "Nessby", "Orrin", "Pellworth"),
)
_THINGS = ("bridge", "library", "harbour", "observatory", "market hall", "reservoir", "mill")
_WORDS = (
    *("the", "a", "of", "in", "on", "by", "for", "with", "from", "old", "new", "small", "large"),
    *("north", "south", "early", "later", "council", "record", "survey", "archive", "report"),
    *("visitor", "season", "repair", "stone", "timber", "river", "quay", "ledger", "annual"),
    *("total", "measured", "opened", "closed", "moved", "counted", "built", "planned", "noted"),
)
_RULES = (
    "You answer questions by calling tools in steps.\n"
    "Always write a plan before the first call.\n"
    "Never quote a figure that no tool has returned.\n"
    "When you know the answer, say it in one sentence.\n"
)
_TOOLS = tuple(
    ToolSpec(
        name=name,
        description=f"{what} Returns text.",
        parameters={"type": "object", "properties": {key: {"type": "string"}}, "required": [key]},
    )
    for name, what, key in (
        ("search", "Searches the archive for a phrase.", "query"),
        ("visit_page", "Opens a page of the archive.", "path"),
        ("python", "Runs code and returns what it prints.", "code"),
        ("read_log", "Reads the log of a service.", "service"),
        ("ask_searcher", "Hands a part of the work to the searcher.", "task"),
    )
)


@dataclass(frozen=True, slots=True)
class Fact:
    """A sentence planted in the middle of a tool's output, and the reply that uses it.

    `contradicted` when the reply states another figure than the output.
    """

    output_span: str
    output_text: str
    reply_span: str
    reply_text: str
    contradicted: bool


@dataclass
class LongTrace:
    """Makes the spans of one trace, a parent before its children; `facts` fill as they come.

    `tokens` is the wanted size of the file in tokens of four bytes; the making ends with the step
    that reaches it. The same arguments give the same trace.
    """

    tokens: int
    seed: int = 0
    steps: int = 20  # of one question, before its history starts anew
    facts: list[Fact] = field(default_factory=list)
    _rng: np.random.Generator = field(init=False)
    _count: int = field(default=1, init=False)  # an id of zeros stands for none
    _used: int = field(default=0, init=False)  # bytes, estimated
    _clock: float = field(default=1_700_000_000.0, init=False)

    def spans(self) -> Iterator[Span]:
        """The spans in their order; may be asked for once."""
        self._rng = np.random.default_rng(self.seed)
        root = self._span(None, "main", "chain", input="archive questions", output="done")
        yield root
        question = 0
        while self._used < 4 * self.tokens:
            question += 1
            yield from self._question(root.id, question)

    def run(self) -> Run:
        """The trace as a Run; its LLM spans share their messages."""
        spans = tuple(self.spans())
        return Run(id=f"long-{self.seed}", task="archive", system="manager", spans=spans)

    def _question(self, root: str, number: int) -> Iterator[Span]:
        place, thing = self._pick(_PLACES), self._pick(_THINGS)
        goal = f"Question {number}: in which year was the {thing} of {place} opened, and why then?"
        outer = self._span(root, "answer_question", "chain", input=json.dumps({"question": goal}))
        yield outer
        agent = self._span(outer.id, "Manager.run", "agent", input=goal)
        yield agent
        history = [Message(role="system", content=_RULES), Message(role="user", content=goal)]
        yield from self._steps(agent.id, history, self.steps, deep=True)

    def _steps(self, agent: str, history: list[Message], steps: int, deep: bool) -> Iterator[Span]:
        known: tuple[str, str, str] | None = None  # span, sentence, figure
        for number in range(1, steps + 1):
            if self._used >= 4 * self.tokens:
                return
            step = self._span(agent, f"Step {number}", "chain")
            yield step
            name, arguments = self._call(deep)
            said = self._prose(int(self._rng.integers(20, 120)))
            id_ = f"{self._count:016x}"
            if known is not None:
                said = f"{said} {self._use(known, id_)} {self._prose(10)}"
            known = None
            call = ToolCall(name=name, arguments=arguments, id=f"call_{self._count}")
            reply = Message(role="assistant", content=said, tool_calls=(call,))
            model = self._model(step.id, tuple(history), reply)
            yield model
            history.append(reply)
            if name == "ask_searcher":
                yield from self._searcher(step.id, str(arguments["task"]))
                output = self._prose(60)
            else:
                tool, known = self._tool(step.id, name, arguments)
                yield tool
                output = tool.output or f"{name} failed: {tool.status_message}"
            history.append(Message(role="tool", content=output, tool_call_id=call.id))

    def _searcher(self, step: str, task: str) -> Iterator[Span]:
        agent = self._span(step, "Searcher.run", "agent", input=task)
        yield agent
        history = [Message(role="system", content=_RULES), Message(role="user", content=task)]
        yield from self._steps(agent.id, history, int(self._rng.integers(3, 9)), deep=False)

    def _call(self, deep: bool) -> tuple[str, dict[str, Any]]:
        place, thing = self._pick(_PLACES), self._pick(_THINGS)
        kind = int(self._rng.integers(0, 20))
        if deep and kind == 0:
            return "ask_searcher", {"task": f"Find what the ledgers say of the {thing} of {place}."}
        if kind < 9:
            return "search", {"query": f"{thing} {place} {self._prose(3)}"}
        if kind < 14:
            return "visit_page", {"path": f"/{place.lower()}/{thing}/{self._rng.integers(1, 90)}"}
        if kind < 18:
            code = "\n".join(f"print({self._rng.integers(1, 999)} * {k})" for k in range(kind))
            return "python", {"code": code}
        return "read_log", {"service": place}

    def _tool(
        self, step: str, name: str, arguments: dict[str, Any]
    ) -> tuple[Span, tuple[str, str, str] | None]:
        given = json.dumps(arguments)
        if self._rng.random() < 0.04:
            message = f"ConnectionError: {self._pick(_PLACES)} archive did not answer"
            event = SpanEvent(
                name="exception",
                at=self._clock,
                attributes={"exception.type": "ConnectionError", "exception.message": message},
            )
            span = self._span(
                step,
                name,
                "tool",
                tool=name,
                input=given,
                status="error",
                status_message=message,
                events=(event,),
            )
            return span, None
        lines = self._lines(name)
        known = None
        if name in ("search", "visit_page") and self._rng.random() < 0.5:
            figure = str(self._rng.integers(1000, 9999))
            serial = self._count
            sentence = f"Entry {serial}-{figure}: {self._pick(_THINGS)} opened in {figure}."
            lines.insert(len(lines) // 2, sentence)
            known = (f"{self._count:016x}", sentence, f"{serial}-{figure}")
        span = self._span(step, name, "tool", tool=name, input=given, output="\n".join(lines))
        return span, known

    def _use(self, known: tuple[str, str, str], reply_span: str) -> str:
        span, sentence, figure = known
        wrong = bool(self._rng.random() < 0.3)
        year = figure.split("-")[1]
        said = f"Entry {figure} gives the year {int(year) + 7 if wrong else year}."
        self.facts.append(Fact(span, sentence, reply_span, said, wrong))
        return said

    def _lines(self, name: str) -> list[str]:
        """Lines of an output of 200 to 40,000 characters, most of them short."""
        count = int(min(400, 3 + self._rng.lognormal(3.0, 1.0)))
        if name == "read_log":
            return [
                f"12:{k // 60 % 60:02d}:{k % 60:02d} INFO worker {self._rng.integers(9)} "
                f"handled {self._rng.integers(9999)} rows, 0 errors"
                for k in range(count)
            ]
        if name == "python":
            return [str(self._rng.integers(1, 10**6)) for _ in range(count)]
        return [self._prose(int(self._rng.integers(6, 18))) for _ in range(count)]

    def _prose(self, words: int) -> str:
        picked = self._rng.integers(0, len(_WORDS), words)
        text = " ".join(_WORDS[i] for i in picked)
        return f"{text.capitalize()} {self._pick(_PLACES)} {self._rng.integers(10, 9999)}."

    def _pick(self, row: tuple[str, ...]) -> str:
        return row[int(self._rng.integers(len(row)))]

    def _model(self, step: str, history: tuple[Message, ...], reply: Message) -> Span:
        sent = sum(len(m.content) for m in history)
        self._used += 2 * sent + 250 * len(history) + 1800
        return self._span(
            step,
            "Model.__call__",
            "llm",
            messages=history,
            reply=(reply,),
            tools=_TOOLS,
            model="archive-model-1",
            finish="tool_calls",
            limit=4000,
            usage=Usage(
                requests=1, prompt_tokens=sent // 4, completion_tokens=len(reply.content) // 4
            ),
        )

    def _span(self, parent: str | None, name: str, kind: SpanKind, **more: Any) -> Span:
        id_ = f"{self._count:016x}"
        self._count += 1
        start = self._clock
        self._clock += float(self._rng.uniform(0.1, 4.0))
        more.setdefault("status", "ok")
        span = Span(
            id=id_, parent_id=parent, name=name, kind=kind, start=start, end=self._clock, **more
        )
        self._used += 900 + len(span.input) + len(span.output)
        return span
