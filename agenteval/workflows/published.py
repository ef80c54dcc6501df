"""FlowBench's figures as counted by its released scripts, for comparison with published numbers.

The rules, mistakes included, are those of turn_metric_display.py and of session_eval in
session_simulate.py (arXiv 2406.14884) with their missing imports repaired; everything else uses
`scores`. Questions without an answer of the judge are undecided: each figure has a value with all
of them wrong and one with all of them right.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from agenteval.errors import Filtered, InputError, ReplyError, TooLong, Transient
from agenteval.workflows.equality import Decision, Same
from agenteval.workflows.flowbench_rows import Rows, SessionRow, TurnRow
from agenteval.workflows.judges import EqualityJudge, ValueQuestion
from agenteval.workflows.scores import MatchCounts

Judge = Callable[[ValueQuestion], Awaitable[Same]]
_Ask = Callable[[str, str, str], Awaitable[Same]]  # parameter, gold, given
_Object = Mapping[str, Any]
_Call = tuple[str, _Object | None]  # None: broken JSON
# The script deletes [!"#…[\]^…~ ]: in a character class, that backslash is an escape.
_DELETED = str.maketrans("", "", string.punctuation.replace("\\", "") + " ")
_ACTION = re.compile(r"Action: (.*)\n")
_INPUT = re.compile(r"Action Input: (.*?)}")
_CALLS = re.compile(r"(Action: [^\n]+)\n(Action Input: [\s\S]+?)(?=\n\n|\nAction: |\Z)")
_NAME = re.compile(r"Action: (?:functions\.)?(\w+)")
# The script's pattern recurses as a whole, label included, so only flat braces ever match.
_FLAT = re.compile(r"Action Input: (\{[^{}]*\})")


async def figures(
    rows: Rows, judge: EqualityJudge | None
) -> tuple[dict[str, dict[str, float | None]], int]:
    """Return the `low` and `high` of each figure, and how many questions to the judge are open.

    Raises InputError at the row where the script would stop.
    """
    answers: dict[ValueQuestion, Same] = {}

    async def ask(question: ValueQuestion) -> Same:
        if question not in answers:
            answers[question] = "unjudged"
            if judge is not None:
                with suppress(ReplyError, Filtered, Transient, TooLong):
                    equal, _ = (await judge.same(question)).value
                    answers[question] = "equal" if equal else "different"
        return answers[question]

    ends: dict[str, tuple[float | None, float | None]] = {}
    if rows.level == "turn":
        turns = [await count_turn(row, ask) for row in rows.turns]
        calls = shares("turn_call", [call for call, _ in turns])
        ends |= calls | shares("turn_params", [parameters for _, parameters in turns])
        # The script does not compute F1, which the paper reports.
        pairs = zip(calls["turn_call_pre"], calls["turn_call_rec"], strict=True)
        low, high = (2 * p * r / (p + r) if p + r else None for p, r in pairs)
        ends["turn_call_f1"] = low, high
    else:
        ends |= shares("session_call", [await count_session(row, ask) for row in rows.sessions])
        for name, values in (
            ("success_rate", [r.success for r in rows.sessions if r.success is not None]),
            ("avg_progress", [r.progress for r in rows.sessions if r.progress is not None]),
        ):
            if values:
                mean = sum(values) / len(values)
                ends[f"{name} (as the rows keep it), n = {len(values)}"] = (mean, mean)
    by_name = {name: {"low": low, "high": high} for name, (low, high) in ends.items()}
    return by_name, [*answers.values()].count("unjudged")


async def count_turn(turn: TurnRow, judge: Judge) -> tuple[MatchCounts, MatchCounts]:
    """Return the counts of the call and of its parameters, which count for a wrong tool too.

    Raises InputError where the script stops: the judge is needed and the system prompt does not
    describe the predicted tool.
    """
    predict = turn.predict.strip()
    if turn.failed:
        return MatchCounts(), MatchCounts()
    match = _ACTION.search(predict)  # the name must end with the line; blanks are kept
    called = match[1].removeprefix("functions.").split(".")[0] if match else ""
    if not turn.action or not turn.action_input:
        labelled = "Action: " in predict or "Action Input: " in predict
        return MatchCounts(predicted=int(labelled and match is not None)), MatchCounts()

    async def ask(parameter: str, gold: str, predicted: str) -> Same:
        start = turn.prompt.find(f"API: {called}")
        end = turn.prompt.find("\n\n", start)
        if start < 0 or end < 0:
            raise InputError("the published script stops here: matches is None.", turn.where)
        api = turn.prompt[start:end]
        tool = api.partition("\n")[0].removeprefix("API:").strip()
        return await judge(ValueQuestion(tool, parameter, api, gold, predicted))

    text = predicted_input(predict)
    gold, predicted = _loaded(turn.action_input) or {}, _loaded(text) or {}
    verdicts = Counter([await _same(key, value, predicted, ask) for key, value in gold.items()])
    decision: Decision = "wrong"
    if called == turn.action:
        lower = _loaded(turn.action_input.lower()), _loaded(text.lower())
        decision = await _all_same(*lower, ask)
    call = MatchCounts(decision == "right", decision == "undecided", match is not None, 1)
    parameters = (verdicts["equal"], verdicts["unjudged"], len(predicted), len(gold))
    return call, MatchCounts(*parameters)


async def count_session(session: SessionRow, judge: Judge) -> MatchCounts:
    """Return the counts of a session.

    A gold action is right if any generated action equals it, so one call can match several gold
    actions and precision can exceed 1. A text without actions counts as one empty action. Nested
    JSON reads as {}.
    """

    async def ask(parameter: str, gold: str, predicted: str) -> Same:
        return await judge(ValueQuestion("", parameter, "", gold, predicted))

    async def in_any(gold: _Call) -> Decision:
        best: Decision = "wrong"
        for name, arguments in generated:
            if name == gold[0]:
                decision = await _all_same(gold[1], arguments, ask)
                if decision == "right":
                    return decision
                best = "undecided" if decision == "undecided" else best
        return best

    actions = "\n\n".join("\n".join(parts) for parts in _CALLS.findall(session.dialogue))
    generated = [_read_call(text) for text in actions.strip().split("\n\n")]
    gold = [_read_call(text) for text in session.gold_text.strip().split("\n\n")]
    decisions = Counter([await in_any(action) for action in gold])
    return MatchCounts(decisions["right"], decisions["undecided"], len(generated), len(gold))


def shares(name: str, counts: Sequence[MatchCounts]) -> dict[str, tuple[float, float]]:
    """Return the lower and the upper value of precision and recall, by their published names. The
    script replaces a zero denominator by -1."""
    low, undecided, predicted, gold = (
        sum(column) for column in zip(MatchCounts(), *counts, strict=True)
    )
    high, predicted, gold = low + undecided, predicted or -1, gold or -1
    return {
        f"{name}_pre": (low / predicted, high / predicted),
        f"{name}_rec": (low / gold, high / gold),
    }


def _read_call(text: str) -> _Call:
    """Return name and arguments in lower case."""
    name, flat = _NAME.search(text), _FLAT.search(text)
    return name[1].lower() if name else "", _loaded(flat[1].lower() if flat else "")


async def _all_same(gold: _Object | None, predicted: _Object | None, ask: _Ask) -> Decision:
    """Compare every non-empty gold value; additional keys are ignored."""
    if gold is None or predicted is None:
        return "wrong"
    filled = {key: value for key, value in predicted.items() if value not in ("", [])}
    result: Decision = "right"
    for key, value in gold.items():
        same = "equal" if value in ("", []) else await _same(key, value, filled, ask)
        if same == "different":
            return "wrong"
        result = "undecided" if same == "unjudged" else result
    return result


async def _same(key: str, gold: Any, predicted: _Object, ask: _Ask) -> Same:
    """Compare Python types (2 is not 2.0, and 1 is not true), then values. Apart from punctuation
    and blanks, a text equals any text that contains it; otherwise the judge decides."""
    if key not in predicted or type(gold) is not type(predicted[key]):
        return "different"
    if not isinstance(gold, str):
        return "equal" if gold == predicted[key] else "different"
    if gold.strip().translate(_DELETED) in predicted[key].strip().translate(_DELETED):
        return "equal"
    return await ask(key, gold, predicted[key])


def predicted_input(predict: str) -> str:
    """Return the text that the script reads as JSON: the braces after the label, which end on its
    line, or the first balanced ones after a label if that text has several "{"."""
    match = _INPUT.search(predict)
    if match is None or "{" not in match[1]:
        return ""
    if match[1].count("{") == 1:
        return match[1] + "}"
    opened: list[int] = []
    ends: dict[int, int] = {}
    for at, char in enumerate(predict):
        if char == "{":
            opened.append(at)
        elif char == "}" and opened:
            ends[opened.pop()] = at + 1
    starts = [m.end() for m in re.finditer(r"Action Input: (?=\{)", predict)]
    return next((predict[start : ends[start]] for start in starts if start in ends), "")


def _loaded(text: str) -> dict[str, Any] | None:
    """Return the object, {} for no text, None for broken JSON."""
    try:
        value = json.loads(text) if text.strip() else {}
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
