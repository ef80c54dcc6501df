"""Words for counts, and phrases that must not come back into messages and docstrings."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import agenteval
from agenteval.text import plural

_PACKAGE = Path(agenteval.__file__).parent

# Phrases of messages and docstrings that readers stumbled over, each with a plain replacement.
_FORBIDDEN = (
    r"\bmay be given often\b",  # Repeatable
    r"\bmade elsewhere\b",  # existing ratings
    r"\bfor want of\b",  # without
    r"\bin no rate\b",  # excluded from rates
    r"\b(command|call) goes on\b",  # run the same command to continue
    r"\bwhat is done is stored\b",  # finished results are stored
    r"\bso many\b",
    r"\bcommonest (level|cause|reason)\b",  # most common
    r"\bby other means\b",
)
_OPENINGS = r"(What|Who|Whose|Whoever|Nobody) |.*\b([Nn]obody|[Ww]hoever)\b"  # of docstrings
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def _trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(_PACKAGE.rglob("*.py")):
        yield path.relative_to(_PACKAGE).as_posix(), ast.parse(path.read_text("utf-8"))


def test_no_text_has_a_forbidden_phrase() -> None:
    phrases = re.compile("|".join(_FORBIDDEN))
    found = [
        f"{name}:{node.lineno}: {phrase[0]}"
        for name, tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if (phrase := phrases.search(" ".join(node.value.split())))
    ]
    assert found == []


def test_docstrings_start_with_a_verb_or_the_subject() -> None:
    found = [
        f"{name}:{getattr(node, 'lineno', 1)}"
        for name, tree in _trees()
        for node in ast.walk(tree)
        if isinstance(node, _DOCUMENTED)
        if re.match(_OPENINGS, " ".join((ast.get_docstring(node) or "").split()))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("count", "word", "want"),
    [
        (1, "case", "1 case"),
        (0, "case", "0 cases"),
        (3000, "run", "3,000 runs"),
        (1, "criterion", "1 criterion"),
        (2, "criterion", "2 criteria"),
        (2, "copy", "2 copies"),
    ],
)
def test_words_follow_their_number(count: int, word: str, want: str) -> None:
    assert plural(count, word) == want
