"""Recorded comparisons of AlpacaEval, arena-hard and JudgeBench.

The layouts are those of `annotations.json` (github.com/tatsu-lab/alpaca_eval), `model_judgment`
(github.com/lmarena/arena-hard-auto, versions 0.1 and 2.0) and `outputs`
(github.com/ScalerLab/JudgeBench).
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from math import fsum
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.strict_json import Item, Notes
from agenteval.readers.table_files import file_items
from agenteval.records import content_hash
from agenteval.stats.interval import Interval
from agenteval.utility.pairwise.pairs import OVERALL, PairOutcome

# preference for A
_FOR_A = {**dict.fromkeys(("A>>B", "A>B", "B<A", "B<<A"), 1.0), "A=B": 0.5, "B=A": 0.5}
_SCORES = {**_FOR_A, **dict.fromkeys(("B>>A", "B>A", "A<B", "A<<B"), 0.0)}
_ARENA_TEXTS = re.compile(
    r"<\|User Prompt\|>\n(?P<problem>.*?)\n*<\|The Start of Assistant A's Answer\|>\n(?P<first>.*?)"
    r"\n*<\|The End of Assistant A's Answer\|>\n*<\|The Start of Assistant B's Answer\|>\n"
    r"(?P<second>.*?)\n*<\|The End of Assistant B's Answer\|>",
    re.S,
)


@dataclass(frozen=True, slots=True)
class RecordedPair:
    """A comparison in a file: two systems on a problem, with what is known of it.

    `shown_first` and `shown_second` are as in `PairOutcome`. `label` is the preference for A that
    is taken as right. Texts are None where the file does not have them.
    """

    id: str
    a: str
    b: str
    problem: str | None
    text_a: str | None
    text_b: str | None
    shown_first: float | None = None
    shown_second: float | None = None
    label: float | None = None
    one_order: bool = False

    def outcome(self) -> PairOutcome:
        """Return the recorded verdicts; pairs on one problem are one case."""
        return PairOutcome(
            case=content_hash(self.problem or ["pair", self.id]),
            run=self.id,
            a=self.a,
            b=self.b,
            criterion=OVERALL.id,
            shown_first=self.shown_first,
            shown_second=self.shown_second,
            one_order=self.one_order,
        )


@dataclass(frozen=True)
class RecordedPairs:
    """The comparisons of a file, and the name of their format."""

    format: str
    pairs: tuple[RecordedPair, ...]

    @property
    def labels(self) -> dict[tuple[str, str], float]:
        """The preference that is taken as right, by pair and system."""
        labelled = [(p, p.label) for p in self.pairs if p.label is not None]
        return {
            (p.id, name): value for p, x in labelled for name, value in ((p.a, x), (p.b, 1 - x))
        }

    def published(self) -> dict[str, Interval]:
        """Return the figures that the authors of the format publish, by name, as shares.

        AlpacaEval: mean of preference - 1. JudgeBench: share of pairs of which more orders agree
        with the label than contradict it; a missing judgment counts as neither.
        """
        figures: defaultdict[str, list[float]] = defaultdict(list)
        for pair in self.pairs:
            orders = [v for v in (pair.shown_first, pair.shown_second) if v is not None]
            if self.format == "JudgeBench":
                right = sum(v - 0.5 for v in orders) * ((pair.label or 0.0) - 0.5) > 0
                figures["accuracy (JudgeBench)"].append(float(right))
            elif self.format == "AlpacaEval":
                figures[f"win rate of {pair.a} against {pair.b} (AlpacaEval)"] += orders
        return {
            name: Interval(fsum(v) / len(v), None, None, None, len(v), None, "as published")
            for name, v in figures.items()
            if v
        }


def read_pairs(path: Path) -> RecordedPairs:
    """Return the comparisons of a JSON or JSON Lines file. Raises InputError naming the line."""
    formats = {"AlpacaEval": _alpaca, "arena-hard": _arena, "JudgeBench": _judgebench}
    marks = {"AlpacaEval": "output_1", "arena-hard": "games", "JudgeBench": "response_A"}
    pairs, seen = list[RecordedPair](), set[str]()
    for item in _records(path):
        name = next((name for name, key in marks.items() if key in item.value), None)
        if name is None or (seen and name not in seen):
            expected = " or ".join([*seen] or marks)
            raise InputError(f"this is not a comparison of {expected}", item.place)
        seen.add(name)
        pairs.append(formats[name](item.value, item.place))
    if not pairs:
        raise InputError("there are no comparisons in this file", str(path))
    return RecordedPairs(seen.pop(), tuple(pairs))


def _records(path: Path) -> list[Item]:
    """Return the objects of a file, those of a JSON array one by one."""
    items: list[Item] = []
    for item in file_items(path, Notes()):
        listed = item.value if isinstance(item.value, list) else None
        entries = [Item(value, f"{item.place}[{i}]", None) for i, value in enumerate(listed or ())]
        items += [item] if listed is None else entries
    for item in items:
        if not isinstance(item.value, dict):
            raise InputError("a comparison must be a JSON object", item.place)
    return items


def _text(record: Mapping[str, Any], key: str, place: str) -> str:
    value = record.get(key)
    if not isinstance(value, str | int) or value == "":
        raise InputError(f"{key!r} must be a text, not {value!r}", place)
    return str(value)


def _member(value: Any, key: str, place: str) -> Any:
    """Return a member of an object; None of null, which stands for a failed judgment."""
    if value is not None and not isinstance(value, dict):
        raise InputError(f"expected an object with {key!r}, not {value!r}"[:200], place)
    return None if value is None else value.get(key)


def _verdict(value: Any, preferences: Mapping[str, float], key: str, place: str) -> float | None:
    if value is not None and value not in preferences:
        raise InputError(f"{key} {value!r} is none of {', '.join(preferences)}", place)
    return None if value is None else preferences[value]


def _alpaca(record: Mapping[str, Any], place: str) -> RecordedPair:
    preference = record.get("preference")
    number = not isinstance(preference, bool) and isinstance(preference, int | float)
    if preference is not None and not (number and (preference == 0 or 1 <= preference <= 2)):
        raise InputError(
            f"'preference' must be from 1 to 2, or 0 for a draw, not {preference!r}", place
        )
    value = None if preference is None else (preference or 1.5) - 1  # an earlier version wrote 0
    problem = _text(record, "instruction", place)
    return RecordedPair(
        id=f"pair {re.findall(r'[0-9]+', place)[-1]}",
        a=_text(record, "generator_2", place),
        b=_text(record, "generator_1", place),
        problem=problem + (f"\n\n{record['input']}" if record.get("input") else ""),
        text_a=str(record.get("output_2") or ""),
        text_b=str(record.get("output_1") or ""),
        shown_first=value,
        label=value,
        one_order=True,
    )


def _arena(record: Mapping[str, Any], place: str) -> RecordedPair:
    games = record["games"]
    if not isinstance(games, list) or len(games) != 2:
        raise InputError("'games' must be two games with swapped positions", place)
    baseline_first, model_first = (
        _verdict(_member(game, "score", place), _SCORES, "score", place) for game in games
    )
    prompt = _member(games[0], "user_prompt", place) or _member(games[0], "prompt", place)
    if isinstance(prompt, list) and prompt:
        prompt = _member(prompt[-1], "content", place)
    texts = _ARENA_TEXTS.search(prompt) if isinstance(prompt, str) else None
    return RecordedPair(
        id=_text(record, "uid" if "uid" in record else "question_id", place),
        a=_text(record, "model", place),
        b=str(record.get("baseline") or "baseline"),
        problem=texts["problem"] if texts else None,
        text_a=texts["second"] if texts else None,
        text_b=texts["first"] if texts else None,
        shown_first=model_first,
        shown_second=None if baseline_first is None else 1 - baseline_first,
    )


def _judgebench(record: Mapping[str, Any], place: str) -> RecordedPair:
    values = {"A>B": 1.0, "A=B": 0.5, "B>A": 0.0}
    label, judgments = record.get("label"), record.get("judgments") or []
    if label not in ("A>B", "B>A"):
        raise InputError(f"'label' must be A>B or B>A, not {label!r}", place)
    decisions = [
        _verdict(_member(entry, "decision", place), values, "decision", place)
        for entry in judgments
    ]
    first, second = [*decisions, None, None][:2]
    return RecordedPair(
        id=_text(record, "pair_id", place),
        a="response_A",
        b="response_B",
        problem=_text(record, "question", place),
        text_a=_text(record, "response_A", place),
        text_b=_text(record, "response_B", place),
        shown_first=first,
        shown_second=None if second is None else 1 - second,
        label=values[label],
        one_order=len(decisions) == 1,
    )
