"""Wrong turns of recorded sessions: what was predicted, what was due, and what differs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from itertools import chain, zip_longest

from pydantic import JsonValue

from agenteval.evaluators.workflows.equality import Judgement
from agenteval.evaluators.workflows.results import TurnJudged, TurnResult
from agenteval.evaluators.workflows.session import Prediction
from agenteval.evaluators.workflows.turn_score import TurnVerdict
from agenteval.evaluators.workflows.values import filled
from agenteval.report.flows_signs import flow_signs
from agenteval.report.page import Facts, Item, Lines, Piece, Words, badge, signs_text
from agenteval.report.sessions import call_text, heading, unique_id
from agenteval.report.text import cut

MOST_TURNS = 100
_MOST_TEXT = 1_500
_MOST_VALUE = 200
_MOST_LINES = 30
WRONG = {
    "wrong": "wrong call",
    "missed": "no call",
    "spurious": "call instead of a reply",
    "unreadable": "unreadable",
}


def wrong_turns(results: Sequence[TurnResult], most: int) -> tuple[list[Item], int]:
    """Wrong turns to be unfolded, the systems taking turns, and how many are wrong in all."""
    queues: dict[str, list[TurnResult]] = {}
    for r in results:
        if r.verdict is not None and outcome_of(r.verdict) in WRONG:
            queues.setdefault(r.system, []).append(r)
    ordered = [sorted(own, key=lambda r: (r.case.task, _index(r), r.trial))
               for _, own in sorted(queues.items())]  # fmt: skip
    some = [r for r in chain.from_iterable(zip_longest(*ordered)) if r is not None]
    seen: Counter[str] = Counter()
    return [_turn(r, seen) for r in some[:most]], len(some)


def outcome_of(verdict: TurnVerdict) -> str:
    """The word that the store has for it."""
    return TurnJudged(turn=verdict).outcome


def _index(result: TurnResult) -> int:
    return result.verdict.turn if result.verdict else 0


def _turn(result: TurnResult, seen: Counter[str]) -> Item:
    """A predicted turn that is wrong; its id is the same on every page."""
    verdict, prediction = result.verdict, result.prediction
    assert verdict is not None  # `wrong_turns` takes no others
    assert isinstance(prediction, Prediction)
    signs = flow_signs(result) or ()
    facts: list[tuple[str, Words]] = [
        ("before it", cut(result.case.said, _MOST_TEXT)),
        ("gold", [Piece(cut(result.case.gold, _MOST_TEXT), "code")]),
        ("predicted", [Piece(_predicted(prediction), "code")]),
        ("thought", cut(prediction.thought, _MOST_TEXT)),
    ]
    lines = _differences(verdict, prediction, result.case.gold)
    blocks = [*signs_text(signs), Facts([f for f in facts if f[1]]), Lines(lines, "Differs")]
    badges = [badge(WRONG[outcome_of(verdict)], "drop")]
    badges += [badge("talks to the judge", "repair")] if signs else []
    trial = f"trial {result.trial + 1}" if result.trial else ""
    title = heading(result.case.id, result.system, trial)
    return Item(unique_id("turn", result, seen), title, blocks, badges, kind="case")


def _predicted(prediction: Prediction) -> str:
    if prediction.form == "call":
        more = f"\nbeside it: {', '.join(prediction.further)}" if prediction.further else ""
        return call_text(prediction.tool, prediction.arguments) + cut(more, _MOST_TEXT)
    if prediction.form == "reply":
        return cut(prediction.response, _MOST_TEXT)
    return cut(prediction.raw, _MOST_TEXT) or "(nothing was said)"


def _differences(verdict: TurnVerdict, prediction: Prediction, gold: str) -> list[str]:
    """What differs, in sentences."""
    lines = []
    if verdict.form == "unreadable":
        due = "a call" if verdict.gold_call else "a reply"
        lines.append(f"neither call nor reply could be read; due was {due}")
    elif not verdict.gold_call:
        lines.append("a reply was due, not a call")
    elif verdict.form == "reply":
        lines.append("a call was due, not a reply")
    else:
        lines += _call_lines(verdict, prediction, gold)
    if verdict.node_right is False:
        lines.append(f"says that it stands at node {cut(prediction.node, _MOST_VALUE)}: wrong")
    rest = len(lines) - _MOST_LINES
    return lines[:_MOST_LINES] + ([f"… and {rest:,} more"] if rest > 0 else [])


def _call_lines(verdict: TurnVerdict, prediction: Prediction, gold: str) -> list[str]:
    if verdict.name_right is False:
        return ["another tool was due"]
    if verdict.arguments_unreadable:
        return ["the arguments are no JSON object"]
    lines = [_told(j) for j in verdict.parameters if j.verdict != "equal"]
    wanted, given = filled(_gold_arguments(gold)), filled(prediction.arguments)
    lines += [f"{cut(k, _MOST_VALUE)}: not given, gold {_value(v)}"
              for k, v in wanted.items() if k not in given]  # fmt: skip
    lines += [f"{cut(k, _MOST_VALUE)}: {_value(v)}, which gold has not"
              for k, v in given.items() if wanted and k not in wanted]  # fmt: skip
    return lines


def _told(found: Judgement) -> str:
    name = cut(found.parameter, _MOST_VALUE)
    text = f"{name}: {_value(found.given)}, gold {_value(found.gold)}"
    if found.verdict == "unjudged":
        return f"{text} (undecided)"
    return f"{text} (by a judge)" if found.by == "judge" else text


def _value(value: JsonValue) -> str:
    return cut(json.dumps(value, ensure_ascii=False), _MOST_VALUE)


def _gold_arguments(gold: str) -> JsonValue:
    """The arguments of a gold call as it is stored in words, `tool({…})`; None if it is none."""
    try:
        found: JsonValue = json.loads(gold.partition("(")[2].removesuffix(")"))
    except ValueError:
        return None
    return found
