"""A correct answer on its way to a malformed reply, with the outcome known at every step."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.records import Criterion
from agenteval.utility.answers import leaves_of
from benchmarks.malformed.corpus import criteria

PARSE, MISSING, OFF = "unscored:parse", "unscored:missing", "unscored:off_scale"
REASONS = (
    "Steps follow.",
    "See {x : x > 0} and [1].",
    "Es ist “gut” – 4 ≠ 5.",
    "",
    "a\\frac{1}{2}",
    'It says "label": "clear".',
    "</div> ```",
    "line one\nline two",
    "步骤清楚 😀",
)


@dataclass
class Draft:
    """Entries by leaf, what each must give, and how they are written.

    `tokens` stand for labels until `written` puts them in, so that it is known where each one ends.
    """

    asked: tuple[Criterion, ...]
    paths: list[str]
    leaf: dict[str, Criterion]
    said: dict[str, Any] = field(default_factory=dict)  # path -> what stands as the label
    expect: dict[str, str] = field(default_factory=dict)
    entries: dict[str, dict[str, Any]] = field(default_factory=dict)
    extra: dict[str, Any] = field(default_factory=dict)
    wrapper: str | None = None
    listed: bool = False
    names: dict[str, str] = field(default_factory=dict)
    style: str = "json"
    text: str = ""
    ends: dict[str, int] = field(default_factory=dict)  # offset behind each label in `text`
    finish: str = "stop"

    def dead(self, status: str = PARSE) -> None:
        """Nothing can be read any more."""
        self.expect = dict.fromkeys(self.paths, status)

    def settle(self) -> None:
        """A reply that speaks of no criterion is in no form; nor is one cut before any answer."""
        cut = self.finish == "length"
        if not self.entries or (cut and all(one == MISSING for one in self.expect.values())):
            self.dead()

    def write(self) -> None:
        """Make the text from the entries, and note where each label ends in it."""
        tokens = {path: f"@{i:03d}@" for i, path in enumerate(self.paths)}
        template = _dumped(self._value(tokens), self.style)
        quoted = {path: _dumped(token, self.style) for path, token in tokens.items()}
        written = sorted((template.index(quoted[path]), path) for path in self.entries)
        self.text, behind = "", 0
        for at, path in written:
            self.text += template[behind:at] + _dumped(self.said[path], self.style)
            self.ends[path] = len(self.text)
            behind = at + len(quoted[path])
        self.text += template[behind:]

    def _value(self, tokens: dict[str, str]) -> Any:
        members = {
            path: {**entry, "label": tokens[path]}
            | ({"rating": entry["rating"]} if "rating" in entry else {})
            for path, entry in self.entries.items()
        }
        value: Any
        if self.listed:
            value = [{"criterion": self.names[p], **entry} for p, entry in members.items()]
        else:
            value = {self.names[p]: entry for p, entry in members.items()} | self.extra
        return value if self.wrapper is None else {self.wrapper: value}


def _dumped(value: Any, style: str) -> str:
    if style == "python":
        return repr(value)
    indent = 2 if style == "indented" else None
    return json.dumps(value, ensure_ascii=style == "ascii", indent=indent)


def start(rng: random.Random) -> Draft:
    """A correct answer on one to four criteria."""
    asked = tuple(rng.sample(list(criteria().values()), rng.randint(1, 4)))
    listed = leaves_of(asked)
    draft = Draft(asked, [path for path, _ in listed], dict(listed))
    for path, leaf in listed:
        label = right_label(leaf, rng)
        draft.said[path] = float(label) if leaf.scale == "numeric" else label
        draft.expect[path] = f"{float(label):g}" if leaf.scale == "numeric" else label
        draft.entries[path] = {"explanation": rng.choice(REASONS)}
        draft.names[path] = path
    return draft


def right_label(leaf: Criterion, rng: random.Random) -> str:
    """An accepted value, or a number in the range."""
    if leaf.numeric_range is not None:
        low, high = sorted(leaf.numeric_range)
        return str(rng.randint(int(low), int(high)))
    return rng.choice(leaf.accepted_values)


def other_answer(draft: Draft, rng: random.Random) -> tuple[str, dict[str, str]]:
    """Another answer in JSON, and what it would give."""
    labels = {path: right_label(draft.leaf[path], rng) for path in draft.paths}
    numeric = {path for path in draft.paths if draft.leaf[path].scale == "numeric"}
    value = {
        path: float(label) if path in numeric else {"label": label}
        for path, label in labels.items()
    }
    expect = {p: f"{float(v):g}" if p in numeric else v for p, v in labels.items()}
    return json.dumps(value), expect


def pick(paths: Sequence[str], rng: random.Random) -> str:
    """One of the leaves."""
    return paths[rng.randrange(len(paths))]
