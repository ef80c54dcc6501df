"""One format of a procedure into another, by a model, accepted only if it tells the same.

Two flowcharts tell the same where the same is called next after every call and what it returned.
Of code and text the names are compared with a flowchart: tools, fields, of the text their order, of
the code parameters and intents (see `consistency`). What the model writes gets one request for
repair with the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from agenteval.errors import InputError, ReplyError
from agenteval.evaluators.workflows.chart import Chart
from agenteval.evaluators.workflows.chart_check import Defect, check_chart
from agenteval.evaluators.workflows.consistency import (
    Code,
    chart_against_chart,
    code_defects,
    read_code,
    text_defects,
)
from agenteval.evaluators.workflows.mermaid import parse_chart
from agenteval.evaluators.workflows.scenario import Scenario
from agenteval.models.asking import ask
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.wire import NONCE, Request
from agenteval.records import Record, Usage

_PACKAGE = "agenteval.evaluators.workflows"
_FENCED = re.compile(r"```[^\n`]*\n(.*?)```", re.DOTALL)
_PROBLEM = 2000  # characters of reasons shown to the model
Told = Literal["text", "code", "flowchart"]


class Converted(Record):
    """What the model wrote, and whether it tells the same; `reasons` say why not.

    `back` is the flowchart that a second request made of the text alone, where one was made.
    `usage` is what the answered requests took.
    """

    source: Told
    target: Told
    text: str
    accepted: bool
    reasons: tuple[str, ...] = ()
    back: str = ""
    usage: Usage = Usage()


def questions(scenario: Scenario, source: Told, target: Told) -> int:
    """How many questions `convert` asks where every answer can be used."""
    unread = source == "text" and not scenario.flowchart.strip()
    return 1 + unread + (target == "text")


async def convert(scenario: Scenario, source: Told, target: Told, client: Client) -> Converted:
    """The procedure in the target's format, with the verdict on it. Nothing is written anywhere.

    A flowchart is parsed, checked, and compared; of code and text, names and order are checked; for
    a text a second request, which sees nothing but the text, makes a flowchart of
    it, which is compared. The source of a text is the scenario's flowchart; if that is empty, what
    a request of its own makes of the text. Raises InputError for a source that cannot be read, and
    whatever the client raises.
    """
    if source == target:
        raise InputError(f"{source} cannot be converted into itself", "--to")
    given = str(getattr(scenario, source))
    if not given.strip():
        raise InputError(f"the scenario {scenario.id} has no {source}", "--from")
    work = _Conversion(scenario, source, client)
    spent = Usage()
    if source == "text" and work.chart is None:
        text, reasons, spent = await work.written("text", given, "flowchart", repeat=1)
        if reasons:
            reasons = tuple(f"the source cannot be understood: {r}" for r in reasons)
            return Converted(source=source, target=target, text="", accepted=False,
                             reasons=reasons, back=text, usage=spent)  # fmt: skip
        work.chart = parse_chart(text)
    made, reasons, usage = await work.written(source, given, target)
    spent, back = spent + usage, ""
    if target == "text" and not reasons:
        work.name = "the flowchart made of the new text"
        back, reasons, usage = await work.written("text", made, "flowchart")
        spent += usage
    return Converted(source=source, target=target, text=made, accepted=not reasons,
                     reasons=reasons, back=back, usage=spent)  # fmt: skip


class _Conversion:
    """What a result is held against: the chart or the code of the source, and its text where it is
    one. The scenario's chart is not asked where code is the source: that the two name the same does
    not say that they branch alike."""

    def __init__(self, scenario: Scenario, source: Told, client: Client) -> None:
        self.scenario, self.client, self.name = scenario, client, "the new flowchart"
        self.text = scenario.text if source == "text" else ""
        self.chart: Chart | None = None
        self.code: Code | None = None
        if source == "code":
            self.code = read_code(scenario.code, scenario.tools)
            if wrong := _errors(self.code.defects):
                raise InputError(f"the code cannot be converted: {wrong[0]}", "--from")
        elif source == "flowchart" or scenario.flowchart.strip():
            self.chart = parse_chart(scenario.flowchart)

    def reasons(self, target: Told, written: str) -> list[str]:
        """Why what was written does not tell the same; InputError: it cannot be read."""
        tools = self.scenario.tools
        if target == "flowchart":
            chart = parse_chart(written, self.name)
            wrong = _errors(check_chart(chart, tools))
            if self.text and not wrong:
                wrong = [d.message for d in text_defects(self.text, chart, tools)]
            if wrong or self.chart is None:
                return wrong or (
                    _errors(code_defects(self.code, chart, tools)) if self.code else []
                )
            return chart_against_chart(("the source", self.chart), (self.name, chart), tools)
        if target == "code":
            assert self.chart is not None
            code = read_code(written, tools, self.chart.parameters)
            return _errors(code_defects(code, self.chart, tools))
        if self.chart is not None:
            return _errors(text_defects(written, self.chart, tools))
        assert self.code is not None
        return [f"the text does not name {name}" for name in self.code.tools if name not in written]

    async def written(
        self, source: Told, text: str, target: Told, repeat: int = 0
    ) -> tuple[str, tuple[str, ...], Usage]:
        """What the model writes, after one repair where it needs it, and why that is not right."""
        tries: list[tuple[str, tuple[str, ...]]] = []

        def read(reply: str) -> tuple[str, tuple[str, ...]]:
            made = unfenced(reply)
            try:
                reasons = self.reasons(target, made) if made else ["the reply is empty"]
            except InputError as error:
                reasons = [str(error)]
            tries.append((made, tuple(reasons)))
            if reasons and len(tries) == 1:
                raise ReplyError("\n".join(f"- {reason}" for reason in reasons)[:_PROBLEM])
            return tries[-1]

        system, user, repair = (
            load_prompt(_PACKAGE, f"convert_{part}") for part in ("system", "user", "repair")
        )
        tools = [t.model_dump(mode="json", exclude={"effect"}) for t in self.scenario.tools]
        instructions = system.render(nonce=NONCE, source=source, target=target)
        request = Request(
            messages=(
                {"role": "system", "content": instructions},
                {"role": "user", "content": user.render(text=text, source=source, tools=tools)},
            ),
            parameters={"temperature": 0.0, "max_tokens": 4096, "seed": 0},
            repeat=repeat,
            role=f"flow:convert:{target}",
        )
        try:
            asked = await ask(
                self.client, request, read, lambda problem: repair.render(problem=problem)
            )
        except ReplyError:  # the repair could not be asked for: what was first wrong stands
            return *tries[-1], Usage()
        return *asked.value, asked.usage


def _errors(defects: Iterable[Defect]) -> list[str]:
    return [d.message for d in defects if d.severity == "error"]


def unfenced(reply: str) -> str:
    """What stands in the reply's only fence, or all of it, with one line feed at its end; "" for
    nothing."""
    blocks = _FENCED.findall(reply)
    text = (blocks[0] if len(blocks) == 1 else reply).strip()
    return text + "\n" if text else ""
