"""Hostile texts put into every free text of a record: one per text, its links kept."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from typing import Any, Literal, get_args, get_origin, get_type_hints

from pydantic import BaseModel

from agenteval.models.wire import printable
from benchmarks.folders import ROOT

CORPUS = ROOT / "tests/data/payloads.json"
# Words that stand in fields of free text and decide what is drawn.
_WORDS = frozenset({"", "error", "ok", "unset", "original"})
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

Change = Callable[[str], str]


def payloads() -> dict[str, str]:
    """The corpus: texts by name."""
    read = json.loads(CORPUS.read_text(encoding="utf-8"))
    return {one["name"]: one["text"] for one in read["payloads"]}


class Swap:
    """Gives every distinct text a payload, or a harmless text of the same length and lines.

    The n-th text met gets payload n + `turn`, so that as many turns as there are payloads put each
    of them into each field. Equal texts get equal ones and different texts different ones: what
    refers to what stays so. Two swaps of one turn meet the same texts in the same order.
    """

    def __init__(self, turn: int, *, hostile: bool) -> None:
        # records refuse half characters: readers and clients put U+FFFD in their place
        self._texts = [printable(text) for text in payloads().values()]
        self._turn = turn
        self._hostile = hostile
        self.given: dict[str, str] = {}

    def __call__(self, text: str) -> str:
        if text in _WORDS:
            return text
        if text not in self.given:
            number = len(self.given)
            payload = self._texts[(number + self._turn) % len(self._texts)]
            if not self._hostile:
                payload = harmless(payload, number)
            again = number // len(self._texts)
            self.given[text] = f"{payload} {again}" if again else payload
        return self.given[text]


def harmless(payload: str, number: int) -> str:
    """Letters in the place of all but spaces and line ends; `number` tells them apart."""
    digits = [_LETTERS[number // 26**place % 26] for place in range(3)]
    digits[0] = digits[0].upper()  # so that no text is found within another
    return "".join(c if c in " \n\t\r" else digits[i % 3] for i, c in enumerate(payload))


def swapped(value: Any, change: Change, hint: Any = None) -> Any:
    """The value with every free text in it changed: fields, members and keys, but no word of a
    fixed list (`Literal`). Records are not validated anew."""
    if isinstance(value, str):
        return value if value in _fixed(hint) else change(value)
    if isinstance(value, BaseModel):
        hints = type(value).model_fields
        made = {n: swapped(getattr(value, n), change, f.annotation) for n, f in hints.items()}
        return type(value).model_construct(**made)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        types = get_type_hints(type(value))
        names = [f.name for f in dataclasses.fields(value)]
        return dataclasses.replace(
            value, **{n: swapped(getattr(value, n), change, types[n]) for n in names}
        )
    if isinstance(value, dict):
        return {swapped(k, change, hint): swapped(v, change, hint) for k, v in value.items()}
    if isinstance(value, list | tuple | frozenset):
        return type(value)(swapped(one, change, hint) for one in value)
    return value


def _fixed(hint: Any) -> set[Any]:
    """Words of every Literal in the annotation."""
    if get_origin(hint) is Literal:
        return set(get_args(hint))
    return {word for part in get_args(hint) for word in _fixed(part)}
