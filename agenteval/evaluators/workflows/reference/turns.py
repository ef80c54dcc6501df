"""Turn level as the published script counts (turn_metric_display.py)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from agenteval.evaluators.workflows.reference.values import (
    Asked,
    Judge,
    same_type,
    texts_equal,
    without_empty,
)

ERROR = "api call error"
_ACTION = re.compile(r"Action: (.*)\n")
_UP_TO_BRACE = re.compile(r"Action Input: (.*?)}")


@dataclass(frozen=True, slots=True)
class ReferenceTurn:
    """A row of the published format: gold texts ("" or None where there is none), the agent's
    text, and the system prompt, in which the judge's question looks up the tool."""

    action: str | None
    action_input: str | None
    predict: str
    prompt: str = ""


@dataclass(frozen=True, slots=True)
class TurnCounts:
    """Sums over turns, and the four published figures."""

    calls: int = 0
    predicted: int = 0
    right: int = 0
    parameters: int = 0
    parameters_predicted: int = 0
    parameters_right: int = 0

    def __add__(self, other: TurnCounts) -> TurnCounts:
        return TurnCounts(
            self.calls + other.calls,
            self.predicted + other.predicted,
            self.right + other.right,
            self.parameters + other.parameters,
            self.parameters_predicted + other.parameters_predicted,
            self.parameters_right + other.parameters_right,
        )

    @property
    def figures(self) -> dict[str, float]:
        """By their published names. A zero denominator is replaced by -1, which gives -0.0."""
        return {
            "turn_call_pre": self.right / (self.predicted or -1),
            "turn_call_rec": self.right / (self.calls or -1),
            "turn_params_pre": self.parameters_right / (self.parameters_predicted or -1),
            "turn_params_rec": self.parameters_right / (self.parameters or -1),
        }


def f1(precision: float, recall: float) -> float | None:
    """2PR / (P + R), which the paper reports and the script does not compute; None for 0/0."""
    return 2 * precision * recall / (precision + recall) if precision + recall else None


async def score_turns(turns: Iterable[ReferenceTurn], judge: Judge) -> TurnCounts:
    """The sums over all turns; those with an API error in them are dropped.

    Raises ValueError where the published script does: "matches is None." when the judge would be
    asked about a tool that the system prompt does not describe, and for gold that is no JSON.
    """
    total = TurnCounts()
    for turn in turns:
        if ERROR not in turn.predict:
            total = total + await score_turn(turn, judge)
    return total


async def score_turn(turn: ReferenceTurn, judge: Judge) -> TurnCounts:
    """The counts of one turn; see `score_turns`."""
    called = predicted_tool(turn.predict)
    if not turn.action or not turn.action_input:
        labelled = "Action: " in turn.predict or "Action Input: " in turn.predict
        return TurnCounts(predicted=int(labelled and called is not None))
    given_text = predicted_input(turn.predict)
    gold, given = json.loads(turn.action_input), _loaded(given_text)
    lookup = _Lookup(turn.prompt, called)
    credited = 0
    for key, value in gold.items():
        if key in given and same_type(value, given[key]):
            credited += await _equal(key, value, given[key], lookup, judge)
    right = called == turn.action and await _same_input(
        turn.action_input, given_text, lookup, judge
    )
    return TurnCounts(1, int(called is not None), int(right), len(gold), len(given), credited)


def predicted_tool(predict: str) -> str | None:
    """The name after the first "Action: ", which a line end must follow; blanks are kept."""
    found = _ACTION.search(predict)
    return found.group(1).removeprefix("functions.").split(".")[0] if found else None


def predicted_input(predict: str) -> str:
    """The text read as JSON: up to the first "}", which must stand on the same line.

    Where that holds more than one "{", the braces are balanced over the whole, else it stands as
    it is; "{}" where nothing is found.
    """
    found = _UP_TO_BRACE.search(predict)
    if found is None:
        return "{}"
    if found.group(1).count("{") <= 1:
        return found.group(1) + "}"
    return balanced(predict, found.start(1)) or "{}"


def balanced(text: str, start: int) -> str | None:
    r"""What `\{(?:[^{}]|(?R))*\}` finds first from `start`: braces within texts count as well."""
    open_at: list[int] = []
    spans: list[tuple[int, int]] = []
    for at in range(start, len(text)):
        if text[at] == "{":
            open_at.append(at)
        elif text[at] == "}" and open_at:
            spans.append((open_at.pop(), at + 1))
            if not open_at:
                break
    if not spans:
        return None
    first = min(spans)  # the leftmost brace that is ever closed
    return text[first[0] : first[1]]


@dataclass(frozen=True, slots=True)
class _Lookup:
    prompt: str
    tool: str | None

    def block(self) -> str:
        """From "API: <name>" to the next blank line."""
        start = self.prompt.find(f"API: {self.tool}")
        end = self.prompt.find("\n\n", start)
        if start < 0 or end < 0:
            raise ValueError("matches is None.")
        return self.prompt[start:end]


async def _equal(key: str, gold: Any, given: Any, lookup: _Lookup, judge: Judge) -> bool:
    if not isinstance(gold, str):
        return bool(gold == given)

    async def asking(asked: Asked) -> str:
        # the tool is looked up only when the judge is needed, and it is the one predicted
        return await judge(Asked(lookup.block(), key, gold, given))

    return await texts_equal(Asked("", key, gold, given), asking)


async def _same_input(gold_text: str, given_text: str, lookup: _Lookup, judge: Judge) -> bool:
    """Whether every filled gold value is there, both texts in lower case; more keys are free."""
    gold = without_empty(_loaded(gold_text.lower()))
    given = without_empty(_loaded(given_text.lower()))
    for key, value in gold.items():
        if key not in given or not same_type(value, given[key]):
            return False
        if not await _equal(key, value, given[key], lookup, judge):
            return False
    return True


def _loaded(text: str) -> dict[str, Any]:
    """The object, {} where the text is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
