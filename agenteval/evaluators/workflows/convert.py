"""One format of a procedure into another, by a model, accepted only if it tells the same.

Two flowcharts tell the same where the same is called next after every call and what it returned.
Of code and text the names are compared with a flowchart: tools, fields, of the text their order, of
the code parameters and intents (see `consistency`). What the model writes gets one request for
repair with the reasons.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from agenteval.errors import InputError, ReplyError
from agenteval.evaluators.workflows.chart import Chart, parse_chart
from agenteval.evaluators.workflows.chart_check import check_chart
from agenteval.evaluators.workflows.consistency import (
    Code,
    chart_against_chart,
    code_defects,
    read_code,
    text_defects,
)
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


@dataclass(frozen=True)
class _Written:
    text: str
    reasons: tuple[str, ...]
    usage: Usage


@dataclass(frozen=True)
class _Source:
    """What the result is held against: a chart, or code.

    `text` is that of the source, where the source is a text.
    """

    scenario: Scenario
    chart: Chart | None = None
    code: Code | None = None
    text: str = ""

    def parts_with_chart(self, found: Chart, name: str) -> list[str]:
        tools = self.scenario.tools
        if self.text and (told := text_defects(self.text, found, tools)):
            return [d.message for d in told]
        if self.chart is not None:
            return chart_against_chart(("the source", self.chart), (name, found), tools)
        if self.code is not None:
            return [
                d.message for d in code_defects(self.code, found, tools) if d.severity == "error"
            ]
        return []


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
    against = _against(scenario, source)
    spent = Usage()
    if source == "text" and against.chart is None:
        first = await _ask(client, scenario, ("text", given), "flowchart", _chart_check(against), 1)
        if first.reasons:
            reasons = tuple(f"the source cannot be understood: {r}" for r in first.reasons)
            return Converted(source=source, target=target, text="", accepted=False,
                             reasons=reasons, back=first.text, usage=first.usage)  # fmt: skip
        against = _Source(scenario, parse_chart(first.text), text=given)
        spent = first.usage
    checks = {"text": _text_check, "code": _code_check, "flowchart": _chart_check}
    made = await _ask(client, scenario, (source, given), target, checks[target](against), 0)
    spent, reasons, back = spent + made.usage, made.reasons, ""
    if target == "text" and not reasons:
        check = _chart_check(against, "the flowchart made of the new text")
        read = await _ask(client, scenario, ("text", made.text), "flowchart", check, 0)
        spent, reasons, back = spent + read.usage, read.reasons, read.text
    return Converted(source=source, target=target, text=made.text, accepted=not reasons,
                     reasons=reasons, back=back, usage=spent)  # fmt: skip


def _against(scenario: Scenario, source: Told) -> _Source:
    """What is known of the source. The scenario's chart is not asked where code is the source: that
    the two name the same does not say that they branch alike."""
    if source == "flowchart":
        return _Source(scenario, parse_chart(scenario.flowchart))
    if source == "text":
        chart = parse_chart(scenario.flowchart) if scenario.flowchart.strip() else None
        return _Source(scenario, chart, text=scenario.text)
    code = read_code(scenario.code, scenario.tools)
    wrong = [d.message for d in code.defects if d.severity == "error"]
    if wrong:
        raise InputError(f"the code cannot be converted: {wrong[0]}", "--from")
    return _Source(scenario, code=code)


def _chart_check(against: _Source, name: str = "the new flowchart") -> Callable[[str], list[str]]:
    """For a flowchart; also in the words of the code where that is the source."""

    def reasons(written: str) -> list[str]:
        tools = against.scenario.tools
        chart = parse_chart(written, name)
        found = [d.message for d in check_chart(chart, tools) if d.severity == "error"]
        return found or against.parts_with_chart(chart, name)

    return reasons


def _code_check(against: _Source) -> Callable[[str], list[str]]:
    def reasons(written: str) -> list[str]:
        assert against.chart is not None
        code = read_code(written, against.scenario.tools, against.chart.parameters)
        found = code_defects(code, against.chart, against.scenario.tools)
        return [d.message for d in found if d.severity == "error"]

    return reasons


def _text_check(against: _Source) -> Callable[[str], list[str]]:
    def reasons(written: str) -> list[str]:
        if against.chart is not None:
            found = text_defects(written, against.chart, against.scenario.tools)
            return [d.message for d in found if d.severity == "error"]
        assert against.code is not None
        return [
            f"the text does not name {name}" for name in against.code.tools if name not in written
        ]

    return reasons


async def _ask(
    client: Client,
    scenario: Scenario,
    given: tuple[Told, str],
    target: Told,
    check: Callable[[str], list[str]],
    repeat: int,
) -> _Written:  # fmt: skip
    tries: list[_Written] = []

    def read(reply: str) -> _Written:
        text = unfenced(reply)
        try:
            reasons = check(text) if text else ["the reply is empty"]
        except InputError as error:
            reasons = [str(error)]
        tries.append(_Written(text, tuple(reasons), Usage()))
        if reasons and len(tries) == 1:
            raise ReplyError("\n".join(f"- {reason}" for reason in reasons)[:_PROBLEM])
        return tries[-1]

    repair = load_prompt(_PACKAGE, "convert_repair")
    request = _request(scenario, given, target, repeat)
    try:
        asked = await ask(client, request, read, lambda problem: repair.render(problem=problem))
    except ReplyError:  # the repair could not be asked for: what was first wrong stands
        return tries[-1]
    return _Written(asked.value.text, asked.value.reasons, asked.usage)


def _request(scenario: Scenario, given: tuple[Told, str], target: Told, repeat: int) -> Request:
    source, text = given
    tools = [t.model_dump(mode="json", exclude={"effect"}) for t in scenario.tools]
    system = load_prompt(_PACKAGE, "convert_system")
    user = load_prompt(_PACKAGE, "convert_user")
    return Request(
        messages=(
            {"role": "system", "content": system.render(nonce=NONCE, source=source, target=target)},
            {"role": "user", "content": user.render(text=text, source=source, tools=tools)},
        ),
        parameters={"temperature": 0.0, "max_tokens": 4096, "seed": 0},
        repeat=repeat,
        role=f"flow:convert:{target}",
    )


def unfenced(reply: str) -> str:
    """What stands in the reply's only fence, or all of it, with one line feed at its end; "" for
    nothing."""
    found = _FENCED.findall(reply)
    text = (found[0] if len(found) == 1 else reply).strip()
    return text + "\n" if text else ""
