"""The published scorer of arXiv 2406.14884 as it counts, its mistakes included.

For comparison with published numbers only; `turn_score` and `session_score` are what to use. The
released scripts (turn_metric_display.py; session_eval in session_simulate.py) cannot run: names
they use are never imported. Here those are repaired, and with `published=True` sessions are scored
as if they were not.
"""

from __future__ import annotations

import json
import re
import string
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import astuple, dataclass
from typing import Any

ERROR = "api call error"
_TRIES = 10
_DELETED = str.maketrans("", "", string.punctuation + string.whitespace)
_ACTION = re.compile(r"Action: (.*)\n")
_UP_TO_BRACE = re.compile(r"Action Input: (.*?)}")


@dataclass(frozen=True, slots=True)
class Asked:
    """What the judge is asked: two texts; `api` is the toolbox's block on the tool predicted."""

    api: str
    parameter: str
    gold: str
    given: str


# The text of the judge's reply.
Judge = Callable[[Asked], Awaitable[str]]


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
        return TurnCounts(*map(sum, zip(astuple(self), astuple(other), strict=True)))

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
            total += await _score_turn(turn, judge)
    return total


async def _score_turn(turn: ReferenceTurn, judge: Judge) -> TurnCounts:
    match = _ACTION.search(turn.predict)  # a line end must follow the name; blanks are kept
    called = match[1].removeprefix("functions.").split(".")[0] if match else None
    if not turn.action or not turn.action_input:
        labelled = "Action: " in turn.predict or "Action Input: " in turn.predict
        return TurnCounts(predicted=int(labelled and called is not None))
    given_text = _predicted_input(turn.predict)

    async def asking(asked: Asked) -> str:
        # The tool is looked up only when the judge is needed, and it is the one predicted.
        start = turn.prompt.find(f"API: {called}")
        end = turn.prompt.find("\n\n", start)
        if start < 0 or end < 0:
            raise ValueError("matches is None.")
        return await judge(Asked(turn.prompt[start:end], asked.parameter, asked.gold, asked.given))

    gold, given = json.loads(turn.action_input), _loaded(given_text)
    credited = 0
    for key, value in gold.items():
        credited += await _same(key, value, given, asking)
    right = called == turn.action
    if right:  # every filled gold value is there, both texts in lower case; more keys are free
        wanted = _without_empty(_loaded(turn.action_input.lower()))
        lower = _without_empty(_loaded(given_text.lower()))
        right = await _all_same(wanted, lower, asking)
    return TurnCounts(1, int(called is not None), int(right), len(gold), len(given), credited)


def _predicted_input(predict: str) -> str:
    """The text read as JSON: up to the first "}", which must stand on the same line.

    Where that holds more than one "{", the braces are balanced over the whole, else it stands as
    it is; "{}" where nothing is found.
    """
    match = _UP_TO_BRACE.search(predict)
    if match is None:
        return "{}"
    if match[1].count("{") <= 1:
        return match[1] + "}"
    return balanced(predict, match.start(1)) or "{}"


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


_ACTIONS = re.compile(r"(Action: [^\n]+)\n(Action Input: [\s\S]+?)(?=\n\n|\nAction: |\Z)")
_NAME = re.compile(r"Action: (?:functions\.)?(\w+)")
# The published pattern recurses as a whole, label included: only flat braces ever match it.
_FLAT = re.compile(r"Action Input: (\{[^{}]*\})")


@dataclass(frozen=True, slots=True)
class ReferenceCounts:
    """Gold actions that were matched, gold actions, generated ones."""

    right: int
    gold: int
    generated: int


async def score_session(
    gold_actions: str, dialogue: str, judge: Judge, *, published: bool = False
) -> ReferenceCounts:
    """The counts of one session from its two texts.

    Every gold action is right when any generated one equals it: one call may serve many, and
    precision may exceed 1. No action at all counts as one empty action. Nested JSON reads as {}.
    With `published` the names `string` and `llm` are unbound, as in the released file: a gold
    action that holds a text is never right.
    """
    gold = gold_actions.split("\n\n")
    generated = "\n\n".join("\n".join(parts) for parts in _ACTIONS.findall(dialogue)).split("\n\n")
    right = 0
    for action in gold:
        for other in generated:
            if await _equal_actions(action, other, judge, published=published):
                right += 1
                break
    return ReferenceCounts(right, len(gold), len(generated))


def micro(sessions: Sequence[ReferenceCounts]) -> tuple[float | None, float | None]:
    """Precision and recall over sessions: sum right / sum generated, sum right / sum gold."""
    right = sum(session.right for session in sessions)
    generated = sum(session.generated for session in sessions)
    gold = sum(session.gold for session in sessions)
    return (right / generated if generated else None), (right / gold if gold else None)


async def _equal_actions(gold: str, other: str, judge: Judge, *, published: bool) -> bool:
    """Whether two texts are the same call. Names go without case, as do the inputs; any error in
    reading them is a no."""
    names, inputs = [], []
    for text in (gold, other):
        name, flat = _NAME.search(text), _FLAT.search(text)
        names.append(name[1].lower() if name else "")
        try:
            inputs.append(_without_empty(json.loads(flat[1].lower())) if flat else {})
        except (ValueError, AttributeError):
            return False
    if names[0] != names[1]:
        return False
    if published and any(isinstance(value, str) for value in inputs[0].values()):
        return False  # a NameError, swallowed
    return await _all_same(inputs[0], inputs[1], judge)


async def _all_same(wanted: dict[str, Any], given: dict[str, Any], judge: Judge) -> bool:
    for key, value in wanted.items():
        if not await _same(key, value, given, judge):
            return False
    return True


async def _same(key: str, gold: Any, given: dict[str, Any], judge: Judge) -> bool:
    """Identical Python types (2 is not 2.0, and 1 is not true), and equal; texts without
    punctuation and blanks, or gold within the other ("2" is within "12", "am" within "tampa"), or
    the judge says so in ten tries: "no" anywhere in the reply is no, also in "I do not know"."""
    if key not in given or type(gold) is not type(given[key]):
        return False
    if not isinstance(gold, str):
        return bool(gold == given[key])
    if by_substring(gold, given[key]):
        return True
    for _ in range(_TRIES):
        reply = (await judge(Asked("", key, gold, given[key]))).lower()
        if "no" in reply:
            return False
        if "yes" in reply:
            return True
    return False


def by_substring(gold: str, given: str) -> bool:
    """Whether gold is equal to, or part of, what was given; case counts."""
    return gold.strip().translate(_DELETED) in given.strip().translate(_DELETED)


def _without_empty(arguments: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in arguments.items() if value not in ("", [])}


def _loaded(text: str) -> dict[str, Any]:
    """The object, {} where the text is no JSON."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}
