"""Hostile texts, and which characters of a text hide or act on a terminal."""

from __future__ import annotations

import json
import unicodedata
from pathlib import Path

CORPUS = Path(__file__).parents[1] / "data/payloads.json"
_JOINERS = frozenset("\u200c\u200d")  # words and emoji of many scripts need them
_SCRIPTS = ("ARABIC NUMBER", "ARABIC END", "SYRIAC", "KAITHI", "EGYPTIAN", "MUSICAL", "SHORTHAND")


def payloads() -> dict[str, str]:
    """Return the corpus: texts by name."""
    corpus = json.loads(CORPUS.read_text(encoding="utf-8"))
    return {entry["name"]: entry["text"] for entry in corpus["payloads"]}


def hidden_in(text: str) -> set[str]:
    """Return the characters that hide or act (Unicode, chapter 23).

    These are controls but tab and line feed, surrogates, line separators, and format characters
    that no script needs.
    """
    return {
        char
        for char in set(text)
        if unicodedata.category(char) in ("Cc", "Cs", "Zl", "Zp", "Cf")
        and char not in "\n\t"
        and char not in _JOINERS
        and not unicodedata.name(char, "").startswith(_SCRIPTS)
    }
