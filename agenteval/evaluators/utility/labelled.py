"""Answers as lines, `Clarity: fair`, from judges that do not write JSON.

A line in prose may be a quotation. So it is read only where the form leaves no doubt: from the
first such line on there is nothing but such lines, reasons and decoration, every criterion that was
asked for has one, and none has two that differ.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from agenteval.evaluators.utility.answers import (
    LABEL_KEYS,
    REASON_KEYS,
    Answer,
    Answers,
    leaves,
    names_of,
    read_answers,
)
from agenteval.records import Criterion, slug

_ENTRY = re.compile(
    r"\s{0,20}(?:[-*+•]\s|\d{1,2}[.)]\s)?[\s*_`\"]{0,8}(?P<name>[^\s*_`\":=：][^:=：\n]{0,100}?)"
    r"[\s*_`\"]{0,8}[:=：](?P<said>[^\n]{0,4000})"
)
_DECORATION = re.compile(r"[\s*_=#`~-]*|\s{0,20}#{1,6}\s[^\n]{0,200}|</?\w{1,20}>|```\w{0,20}")
_VERDICTS = frozenset(slug(key) for key in (*LABEL_KEYS, "final answer", "verdict", "final score"))
_REASONS = frozenset(map(slug, REASON_KEYS))
_MOST_LINES = 2000


def read_lines(text: str, criteria: Sequence[Criterion], *, whole: bool) -> Answers | None:
    """One Answer per leaf, or None when the text is not in the form.

    `whole` is False when the text may have been cut off: its last line then counts only with its
    end. With a single criterion `Score: ...` and the like name it too, and a text that is nothing
    but one of its values answers it.
    """
    asked = [leaf for c in criteria for leaf in leaves(c)]
    names = names_of(asked)
    if len(asked) == 1:
        names = dict.fromkeys(_VERDICTS, asked[0][0]) | names
    if len(asked) == 1 and whole and "\n" not in text.strip():
        found = read_answers({asked[0][0]: text.strip()}, criteria)
        if isinstance(found.by_path[asked[0][0]], Answer):
            return found
    said: list[tuple[str, str]] = []
    for line in _lines(text, whole):
        entry = _ENTRY.fullmatch(line)
        path = None if entry is None else names.get(slug(entry["name"]))
        if entry is not None and path is not None:
            said.append((path, entry["said"].strip().rstrip(",").strip('*_`" \t')))
        elif said and not _may_stand_between(line, entry):
            return None
    rows = [{"criterion": path, "label": label} for path, label in said]
    found = read_answers(rows, criteria)
    complete = all(isinstance(one, Answer) for one in found.by_path.values())
    return found if rows and complete and _every_line_is_read(said, criteria) else None


def _every_line_is_read(said: list[tuple[str, str]], criteria: Sequence[Criterion]) -> bool:
    """No line names a criterion and then says something that is none of its values."""
    for path, label in said:
        one = read_answers({path: label}, criteria).by_path[path]
        if not isinstance(one, Answer):
            return False
    return True


def _lines(text: str, whole: bool) -> list[str]:
    lines = text.split("\n", _MOST_LINES)
    if len(lines) > _MOST_LINES:
        return []
    return lines if whole else lines[:-1]


def _may_stand_between(line: str, entry: re.Match[str] | None) -> bool:
    reason = entry is not None and slug(entry["name"]) in _REASONS
    return reason or (len(line) <= 200 and _DECORATION.fullmatch(line.strip()) is not None)
