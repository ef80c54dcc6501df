"""A long trace with one planted error of each kind, and the words without which none can see it.

Written by hand after the definitions of the kinds. The evidence lies in the middle of long texts
where its kind allows. Who wrote it knew the signs by which lines are chosen, and some signs (rules
in the imperative, the form of an error's line) were widened after this story had shown their gaps;
so what survives here is what the signs are meant to catch, no measure of all that may go wrong.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cache

import numpy as np

from agenteval.records.run import Message, Run, Span, SpanEvent, ToolCall, ToolSpec

NOUNS = (
    *("harbour", "ledger", "timber", "quay", "archive", "season", "council", "mill", "visitor"),
    *("river", "stone", "market"),
)
VERBS = (
    *("noted", "carried", "counted", "moved", "painted", "measured", "described", "sold"),
    *("opened", "kept"),
)
RULE = "Close every plan with the line PLAN-COMPLETE."


@dataclass
class Story:
    """An agent's steps with one growing history; `evidence` holds (kind, span id, words)."""

    seed: int = 0
    spans: list[Span] = field(default_factory=list)
    history: list[Message] = field(default_factory=list)
    evidence: list[tuple[str, str, str]] = field(default_factory=list)
    tools: tuple[ToolSpec, ...] = ()

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.spans.append(Span(id="agent", name="Clerk.run", kind="agent", status="ok"))

    def prose(self, characters: int) -> str:
        words, length = [], 0
        while length < characters:
            noun, verb, last = (
                NOUNS[self.rng.integers(12)],
                VERBS[self.rng.integers(10)],
                NOUNS[self.rng.integers(12)],
            )
            words.append(f"The {noun} {verb} {self.rng.integers(2, 99)} times by the {last}.")
            length += len(words[-1]) + 1
        return " ".join(words)

    def log(self, characters: int) -> str:
        line = "INFO batch {} of the {} done, 0 errors, 0 failed, 0 warnings"
        count = characters // 60
        return "\n".join(line.format(k, NOUNS[self.rng.integers(12)]) for k in range(count))

    def middle(self, text: str, filler: str) -> str:
        """`text` on a line of its own in the middle of the filler."""
        at = filler.find("\n", len(filler) // 2)
        if at < 0:
            at = filler.find(". ", len(filler) // 2) + 1
            return f"{filler[:at]} {text} {filler[at + 1 :]}"
        return f"{filler[:at]}\n{text}\n{filler[at + 1 :]}"

    def plant(self, kind: str, span: str, words: str) -> None:
        self.evidence.append((kind, span, words))

    def says(self, text: str, *calls: ToolCall) -> str:
        """An LLM span that is sent the history; the reply joins it."""
        reply = Message(role="assistant", content=text, tool_calls=calls)
        id_ = f"llm{len(self.spans)}"
        self.spans.append(
            Span(
                id=id_,
                parent_id="agent",
                name="Model",
                kind="llm",
                status="ok",
                messages=tuple(self.history),
                reply=(reply,),
                tools=self.tools,
            )
        )
        self.history.append(reply)
        return id_

    def runs(self, tool: str, arguments: str, output: str, **more: object) -> str:
        """A tool span whose output joins the history."""
        id_ = f"tool{len(self.spans)}"
        self.spans.append(
            Span.model_validate(
                {
                    "id": id_,
                    "parent_id": "agent",
                    "name": tool,
                    "kind": "tool",
                    "tool": tool,
                    "input": arguments,
                    "output": output,
                    "status": "ok",
                    **more,
                }
            )
        )
        self.history.append(Message(role="tool", content=output or "no answer"))
        return id_

    def step(self, tool: str, arguments: str, output: str, **more: object) -> str:
        self.says(self.prose(200), ToolCall(name=tool, arguments=arguments))
        return self.runs(tool, arguments, output, **more)

    def noise(self, steps: int) -> None:
        for _ in range(steps):
            topic = f'{{"query": "{NOUNS[self.rng.integers(12)]} {self.rng.integers(10**6)}"}}'
            long = int(self.rng.integers(400, 9000))
            self.step("search", topic, self.prose(long))


def tell(s: Story) -> None:
    """One error of each of the 20 kinds, three harmless steps between any two."""
    s.tools = tuple(
        ToolSpec(name=f"tool_{k}", description=s.prose(150), parameters={"type": "object"})
        for k in range(20)
    )
    s.tools += (
        ToolSpec(name="add_numbers", description="Searches the town archive for a phrase."),
        *(ToolSpec(name=n, description=s.prose(80)) for n in ("search", "python", "translate")),
    )
    s.history.append(Message(role="system", content=s.middle(RULE, s.prose(12_000))))
    goal = "Name the smallest of the harbours, not the largest one."
    s.history.append(Message(role="user", content=s.middle(goal, s.prose(5_000))))
    first = s.says(s.prose(300))
    s.plant("Instruction Non-compliance", first, RULE)
    s.plant("Incorrect Problem Identification", first, goal)
    s.plant("Tool Definition Issues", first, "Searches the town archive for a phrase.")
    s.noise(3)
    for part in (_thinking, _using, _breaking, _planning):
        part(s)


def _thinking(s: Story) -> None:
    plan = s.says(f"{s.prose(3_000)} That is all for now, the plan stands.")
    s.plant("Instruction Non-compliance", plan, "That is all for now, the plan stands.")
    s.noise(3)
    wrong = "I will look for the largest harbour of all."
    s.plant("Incorrect Problem Identification", s.says(s.middle(wrong, s.prose(1_500))), wrong)
    s.noise(3)
    claim = "The dam of Morwen was finished in 1874 by Ada Kell."
    s.plant("Language-only", s.says(s.middle(claim, s.prose(2_500))), claim)
    s.noise(3)
    claim = "The permit registry has told me that permit 55-831 is valid."
    s.plant("Tool-related", s.says(s.middle(claim, s.prose(2_500))), claim)
    s.noise(3)


def _using(s: Story) -> None:
    query = '{"query": "pictures of amusing cats"}'
    s.plant("Poor Information Retrieval", s.step("search", query, s.prose(3_000)), "amusing cats")
    s.noise(3)
    row = "Guests 2019: 48,210 (in thousands of crowns, not persons)"
    table = "\n".join(f"Guests {1500 + k}: {s.rng.integers(10**4)}" for k in range(900))
    found = s.step("read_table", '{"name": "guests"}', s.middle(row, table))
    s.plant("Tool Output Misinterpretation", found, row)
    told = s.says(s.prose(200) + " In 2019 there were 48,210 persons. " + s.prose(200))
    s.plant("Tool Output Misinterpretation", told, "In 2019 there were 48,210 persons.")
    s.noise(3)
    code = f"import requests\npage = requests.get('http://town.example/a')\nprint('{s.prose(900)}')"
    s.plant("Tool Selection Errors", s.step("python", code, s.prose(900)), "requests.get(")
    s.noise(3)
    broken = "SyntaxError: unterminated string literal (detected at line 14)"
    ran = s.step("python", "print('a)", s.middle(broken, s.log(50_000)))
    s.plant("Formatting Errors", ran, broken)
    s.noise(3)


def _breaking(s: Story) -> None:
    for kind, words in (
        ("Environment Setup Errors", "ModuleNotFoundError: No module named 'geotools'"),
        ("Rate Limiting", "HTTP 429 Too Many Requests, come back in 30 s"),
        ("Resource Not Found", "404 Not Found: /harbours/lastrum.csv"),
        ("Resource Exhaustion", "Killed: memory limit of 2048 MB reached"),
        ("Timeout Issues", "gave no answer, timed out after 120 seconds"),
    ):
        output = s.middle(words, s.log(50_000))
        s.plant(kind, s.step("fetch", f'{{"what": "{kind[:3]}"}}', output), words)
        s.noise(3)
    denied = "401 Unauthorized: the token has expired"
    span = s.step("fetch", '{"what": "permits"}', "", status="error", status_message=denied)
    s.plant("Authentication Errors", span, denied)
    s.noise(3)
    message = "RemoteServiceError: 500 Internal Server Error of the map service"
    stack = s.middle(message, "\n".join(f'  File "lib{k}.py", line {k}' for k in range(600)))
    event = SpanEvent(
        name="exception",
        attributes={"exception.type": "RemoteServiceError", "exception.stacktrace": stack},
    )
    span = s.step("fetch", '{"what": "map"}', "", status="error", events=(event,))
    s.plant("Service Errors", span, message)
    s.noise(3)


def _planning(s: Story) -> None:
    for _ in range(6):
        last = s.step("search", '{"query": "age of the mill"}', "One mill was built in 1610.")
    s.plant("Resource Abuse", last, "call number 6 of these")
    s.plant("Resource Abuse", last, "age of the mill")
    s.noise(3)
    asked = s.says(s.prose(100), ToolCall(name="ask", arguments='{"task": "Kelm"}'))
    nothing = "Nothing on Kelm stands anywhere."
    agent = Span(
        id="helper",
        parent_id="agent",
        name="Helper.run",
        kind="agent",
        input="When was Kelm named first?",
        output=nothing,
    )
    s.spans.append(agent)
    s.history.append(Message(role="tool", content=nothing))
    told = s.says(s.middle("The helper dates Kelm to 1902.", s.prose(900)))
    for span, words in (
        (asked, "Kelm"),
        ("helper", nothing),
        (told, "The helper dates Kelm to 1902."),
    ):
        s.plant("Task Orchestration", span, words)
    s.noise(3)
    away = "Now the yearly report shall be put into Finnish."
    s.plant("Goal Deviation", s.says(s.middle(away, s.prose(1_200))), away)
    s.step("translate", '{"language": "Finnish"}', s.prose(1_000))
    s.noise(3)
    del s.history[1:5]
    lost = s.says("Which question was it that I am to answer? " + s.prose(400))
    s.plant("Context Handling Failures", lost, "no longer sent: M2-M5")
    s.plant("Context Handling Failures", lost, "Which question was it that I am to answer?")
    s.noise(3)


@cache
def run(seed: int = 0) -> tuple[Run, list[tuple[str, str, str]]]:
    """The story as a Run, and its evidence: (kind of error, span id, words)."""
    told = Story(seed)
    tell(told)
    return Run(id=f"planted-{seed}", spans=tuple(told.spans)), told.evidence
