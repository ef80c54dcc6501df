"""find_signs: tells texts that seem to talk to whoever grades them. A flag, never a filter.

What is flagged is judged like everything else: the boundary of the prompt keeps it from working
(models/prompts.py), and a person may want to know that somebody tried. Patterns know what they were
written for. No flag does not mean no attempt, and an honest text about grading may carry one.

Signs: `fake marker` (an end of the data that is none), `role tag` (turns of a chat template),
`instruction to the judge`, `verdict` (a grade in the form of an answer), `invisible characters`,
`bidirectional` (text that reads otherwise than it stands), `control characters` (of terminals),
`look-alike letters` (of another alphabet within a word), `encoded` (text hidden in base64).
"""

from __future__ import annotations

import base64
import binascii
import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from agenteval.models.prompts import neutralise
from agenteval.readers.injection_patterns import PATTERNS
from agenteval.records import View

_EXCERPT = 100  # characters
_HIDDEN = re.compile(
    "[\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f"
    "\u3164\ufe00-\ufe0d\uffa0\ufff9-\ufffb\U000e0000-\U000e01ef\ue0f0]|(?<=.)\ufeff",
    re.S,
)
_BIDI = re.compile("[\u202a-\u202e\u2066-\u2069]")
_CONTROL = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f]|\r(?!\n)(?=[\x1b])")
_BASE64 = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{32,4000}={0,2}(?![A-Za-z0-9+/=])")
_MIXED = re.compile(r"[A-Za-z][\u0400-\u04ff]{1,3}[A-Za-z]?[A-Za-z\u0400-\u04ff]{2}")
# Letters of other alphabets that look like Latin ones.
_LOOKS = str.maketrans("аеорсухіјѕԁһӏкмтвнԛԝαεορτυνικ", "aeopcyxijsdhlkmtbhqwaeoptuvik")
_LAYOUT = dict.fromkeys(map(ord, "\n\t\r"))
_MOST_ENCODED = 40  # stretches that are decoded in one text


@dataclass(frozen=True, slots=True)
class Sign:
    """One thing about a text that seems to be meant for the judge; `excerpt` shows it, harmless."""

    name: str
    excerpt: str


def find_signs(text: str) -> tuple[Sign, ...]:
    """At most one sign of each name, in the order of the module's list. Linear in the text."""
    found = [*_characters(text)]
    plain = _folded(text)
    lines = plain.split("\n")
    for name, (words, pattern) in PATTERNS.items():
        there = [word for word in words if word in plain]
        if not there:
            continue
        worth = "\n".join(line for line in lines if any(word in line for word in there))
        if name == "instruction to the judge":
            worth = worth.replace("_", " ")  # as file names have it
        if hit := pattern.search(worth):
            found.append(Sign(name, _excerpt(worth, hit.start())))
    if hidden := _decoded(text):
        found.append(Sign("encoded", _excerpt(hidden, 0)))
    order = {name: i for i, name in enumerate(NAMES)}
    return tuple(sorted(found, key=lambda sign: order[sign.name]))


NAMES = (*PATTERNS, "invisible characters", "bidirectional", "control characters",
         "look-alike letters", "encoded")  # fmt: skip


def view_signs(view: View) -> tuple[Sign, ...]:
    """Signs in what a judge sees of a run: the problem, the trajectory and the reference."""
    return texts_signs((view.problem, view.trajectory, view.reference or ""))


def texts_signs(texts: Iterable[str]) -> tuple[Sign, ...]:
    """Signs in any of the texts, each name once."""
    found: dict[str, Sign] = {}
    for text in texts:
        for sign in find_signs(text):
            found.setdefault(sign.name, sign)
    return tuple(sorted(found.values(), key=lambda sign: NAMES.index(sign.name)))


def _characters(text: str) -> Iterable[Sign]:
    if text.isascii() and text.translate(_LAYOUT).isprintable():
        return
    for hit in _HIDDEN.finditer(text):
        around = text[max(0, hit.start() - 1) : hit.end() + 1]
        if neutralise(around) != around:  # not the joiner of an emoji or of a script
            yield Sign("invisible characters", _excerpt(text, hit.start()))
            break
    for name, pattern in (("bidirectional", _BIDI), ("control characters", _CONTROL),
                          ("look-alike letters", _MIXED)):  # fmt: skip
        if place := pattern.search(text):
            yield Sign(name, _excerpt(text, place.start()))


def _folded(text: str) -> str:
    """Lower case without hidden characters, compatibility forms and look-alikes."""
    if text.isascii():
        return text.lower()
    if not unicodedata.is_normalized("NFKC", text):
        text = unicodedata.normalize("NFKC", text)
    text = _HIDDEN.sub("", text).lower()
    return text.translate(_LOOKS) if _MIXED.search(text) else text


def _decoded(text: str) -> str:
    """The first base64 text that holds words, decoded; "" when there is none."""
    for count, hit in enumerate(_BASE64.finditer(text)):
        if count == _MOST_ENCODED:
            break
        run = hit.group().rstrip("=")
        try:
            data = base64.b64decode(run + "=" * (-len(run) % 4), validate=True)
            words = data.decode("utf-8")
        except (binascii.Error, UnicodeDecodeError):
            continue
        if words.isprintable() and len(words.split()) >= 4:
            return words
    return ""


def _excerpt(text: str, at: int) -> str:
    start = max(0, at - 20)
    cut = " ".join(text[start : start + _EXCERPT].split())
    return neutralise(cut)[:_EXCERPT]
