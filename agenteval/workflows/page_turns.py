"""Wrong turns of recorded sessions as the page unfolds them: what was due and predicted."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence

from pydantic import JsonValue

from agenteval.analysis.system_pairs import by_system
from agenteval.reporting.page import (
    Facts,
    Foldout,
    Fragment,
    Lines,
    Words,
    badge,
    bounded,
    round_robin,
)
from agenteval.reporting.text import cut
from agenteval.workflows.flags import flow_signs
from agenteval.workflows.page_sessions import (
    MOST_LISTED,
    MOST_NAME,
    MOST_TEXT,
    MOST_WORDS,
    heading,
    json_text,
    unique_id,
)
from agenteval.workflows.results import TurnJudged, TurnResult
from agenteval.workflows.session import Prediction
from agenteval.workflows.turn_score import TurnVerdict
from agenteval.workflows.values import filled

MOST_TURNS = 100
WRONG = {
    "wrong": "wrong call",
    "missed": "no call",
    "spurious": "call instead of a reply",
    "unreadable": "unreadable",
}


def outcome_of(result: TurnResult) -> str:
    """Return the word that the store has for its outcome, "" without a verdict."""
    return "" if result.verdict is None else TurnJudged(turn=result.verdict).outcome


def wrong_turns(results: Sequence[TurnResult], most: int) -> tuple[list[Foldout], int]:
    """Return wrong turns to unfold, the systems taking turns, and how many are wrong in all."""
    wrong = [
        (r.case.task, r.verdict.turn, r.trial, r)
        for r in results
        if r.verdict is not None and outcome_of(r) in WRONG
    ]
    ordered = [r for *_, r in sorted(wrong, key=lambda row: row[:3])]
    mixed = round_robin(rows for _, rows in sorted(by_system(ordered).items()))
    seen: Counter[str] = Counter()
    return [turn_item(r, seen) for r in mixed[:most]], len(mixed)


def turn_item(result: TurnResult, seen: Counter[str]) -> Foldout:
    """Return a turn that has a verdict: what was due, and what was predicted."""
    verdict, prediction, outcome = result.verdict, result.prediction, outcome_of(result)
    assert verdict is not None
    assert isinstance(prediction, Prediction)
    facts: list[tuple[str, Words]] = [
        ("before it", cut(result.case.said, MOST_WORDS)),
        ("gold", [Fragment(cut(result.case.gold, MOST_WORDS), "code")]),
        ("predicted", [Fragment(_predicted(prediction), "code")]),
        ("thought", cut(prediction.thought, MOST_WORDS)),
    ]
    lines = bounded(list(_differences(verdict, prediction, result.case.gold)), MOST_LISTED)
    return Foldout(
        unique_id("turn", result, seen),
        heading(result.case.id, result.system, f"trial {result.trial}" if result.trial else ""),
        [Facts([fact for fact in facts if fact[1]]), Lines(lines, "Differs")],
        [badge(WRONG.get(outcome, outcome), "drop" if outcome in WRONG else "keep")],
        kind="case",
        signs=flow_signs(result) or (),
    )


def _predicted(prediction: Prediction) -> str:
    if prediction.form == "call":
        arguments = "" if prediction.arguments is None else json_text(prediction.arguments)
        more = f"\nbeside it: {', '.join(prediction.further)}" if prediction.further else ""
        call = f"{cut(prediction.tool, MOST_NAME)}({cut(arguments, MOST_TEXT)})"
        return call + cut(more, MOST_WORDS)
    if prediction.form == "reply":
        return cut(prediction.response, MOST_WORDS)
    return cut(prediction.raw, MOST_WORDS) or "(no text)"


def _differences(verdict: TurnVerdict, prediction: Prediction, gold: str) -> Iterator[str]:
    if verdict.form == "unreadable":
        due = "a call" if verdict.gold_call else "a reply"
        yield f"neither a call nor a reply could be read; expected was {due}"
    elif not verdict.gold_call:
        yield "a reply was expected, not a call"
    elif verdict.form == "reply":
        yield "a call was expected, not a reply"
    elif verdict.name_right is False:
        yield "another tool was expected"
    elif verdict.arguments_unreadable:
        yield "the arguments are not a JSON object"
    else:
        yield from _arguments(verdict, prediction, gold)
    if verdict.node_right is False:
        yield f"names the wrong node, {cut(prediction.node, MOST_NAME)}"


def _arguments(verdict: TurnVerdict, prediction: Prediction, gold: str) -> Iterator[str]:
    """Yield what differs between the arguments of a call and those of the gold call."""
    for pair in verdict.parameters:
        if pair.verdict != "equal":
            by = " (by a judge)" if pair.by == "judge" else ""
            by = " (undecided)" if pair.verdict == "unjudged" else by
            name = cut(pair.parameter, MOST_NAME)
            yield f"{name}: {_value(pair.given)}, gold {_value(pair.gold)}{by}"
    try:  # a gold call is stored in words, `tool({…})`
        expected = filled(json.loads(gold.partition("(")[2].removesuffix(")")))
    except ValueError:
        expected = {}
    stated = filled(prediction.arguments)
    for name, value in expected.items():
        if name not in stated:
            yield f"{cut(name, MOST_NAME)}: not given, gold {_value(value)}"
    for name, value in stated.items():
        if expected and name not in expected:
            yield f"{cut(name, MOST_NAME)}: {_value(value)}, which is not in gold"


def _value(value: JsonValue) -> str:
    return cut(json.dumps(value, ensure_ascii=False), MOST_NAME)
