"""Reading prose with care: what stands in quotes, code or data is not said by the speaker."""

from __future__ import annotations

import re
from collections.abc import Iterator

_CITED = re.compile(r"^[ \t]*>.*$", re.MULTILINE)
_QUOTED = re.compile(
    r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|(?<!\w)'[^'\n]{1,400}'(?!\w)|`[^`\n]{1,400}`"
)
_ELEMENT = re.compile(
    r"<(document|context|article|data|example|examples|email|page|content|source|passage|quote|"
    r"text|file|transcript)\b[^<>]{0,200}>",
    re.IGNORECASE,
)
_SENTENCE = re.compile(r"(?<=[.!?])[\s]+|\n+")
_CONDITION = re.compile(
    r"\b(?:if|when|whenever|once|unless|until|after|before|in case|otherwise|except|for example"
    r"|such as|e\.g|might|could|can|optionally|either|would)\b",
    re.IGNORECASE,
)
_NEGATION = re.compile(r"\b(?:not|never|no longer|avoid|without)\b|n['’]t\b", re.IGNORECASE)


def without_blocks(text: str) -> str:
    """The text without fenced code, quoted lines and elements that hold data."""
    if "```" in text or "~~~" in text:
        text = _without_fences(text)
    if "</" in text:
        text = _without_elements(text)
    return _CITED.sub(" ", text) if ">" in text else text


def _without_fences(text: str) -> str:
    """A fence that is never closed reaches to the end."""
    kept, fence = [], ""
    for line in text.split("\n"):
        mark = line.lstrip(" \t")[:3]
        if fence:
            fence = "" if mark == fence and not line.strip(" \t`~") else fence
        elif mark in ("```", "~~~"):
            fence = mark
        else:
            kept.append(line)
    return "\n".join(kept)


def _without_elements(text: str) -> str:
    """One pass: a tag that is not closed once is not looked for again."""
    lower, kept, at, unclosed = text.lower(), [], 0, set()
    for found in _ELEMENT.finditer(text):
        tag = found[1].lower()
        if found.start() < at or tag in unclosed:
            continue
        end = lower.find(f"</{tag}>", found.end())
        if end < 0:
            unclosed.add(tag)
            continue
        kept.append(text[at : found.start()])
        at = end + len(tag) + 3
    return " ".join((*kept, text[at:]))


def without_quotes(text: str) -> str:
    """The text without what stands within quotation marks or backticks on one line."""
    return _QUOTED.sub(" ", text)


def sentences(text: str) -> Iterator[str]:
    """Sentences and lines of a text, without the marks of a list."""
    for part in _SENTENCE.split(text):
        plain = part.strip().lstrip("-*•#").strip().replace("**", "")
        if plain:
            yield plain


def conditional(sentence: str) -> bool:
    """Whether a sentence holds only under a condition; quotations do not count."""
    return _CONDITION.search(without_quotes(sentence)) is not None


def negated(sentence: str) -> bool:
    """Whether a sentence denies or forbids something; quotations do not count."""
    return _NEGATION.search(without_quotes(sentence)) is not None
