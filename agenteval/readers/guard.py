"""Detect answers without substance, which are not sent to a judge."""

from __future__ import annotations

import unicodedata
from collections import Counter

from agenteval.records import Run

_STOCK_PHRASES = """
    answer | the answer | the answer is | my answer | my answer is | final answer
    | the final answer | the final answer is | solution | the solution | my solution
    | here is the solution | here is my solution | here is the answer | response | output | result
    | conclusion | explanation | reasoning | thought | thoughts | thought process | thinking
    | analysis | approach | step 1 | step by step | let's think step by step
    | let us think step by step | terminate
"""
_OPENERS = frozenset(phrase.strip() for phrase in _STOCK_PHRASES.split("|"))
# Signs that can be a complete answer ("which sign belongs between 3 and 5?")
_COMPARISONS = frozenset({"<", ">", "<=", ">=", "!=", "=="})
_SIGNS = _COMPARISONS | {"=", "+", "-", "*", "/"}
_LONG = 200
_SHARE = 0.9
_ECHO_WORDS = 3


def degenerate(run: Run) -> str | None:
    """Return why the run's answer is empty or degenerate, or None if it is not.

    All texts of the assistant and the output are checked together. The rules, in order:

    1. nothing but white space, punctuation and control characters (symbols such as an emoji or an
       infinity sign, and a lone comparison or arithmetic sign, are answers),
    2. only stock openers ("Answer:", "Thought process:", "Final answer", TERMINATE),
    3. only the input again, once or several times, compared without case, spacing and outer
       punctuation; the input must have at least 3 words, since "Paris" can answer "Paris?",
    4. at least 200 characters, more than 90 % of them (white space aside) one character or
       repetitions of one word.

    A short answer ("42", "yes") is not degenerate. A run without text that called tools or has
    spans did act, and is left to the judge. Gold fields are not used. A run with a failed system
    has no answer.
    """
    if run.failure is not None:
        return f"no answer ({run.failure.kind})"
    texts = [m.content for m in run.messages if m.role == "assistant"]
    if run.output.strip() not in [text.strip() for text in texts]:
        texts.append(run.output)
    text = "\n".join(t for t in texts if t.strip())
    if not _says_something(text):
        acted = run.spans or any(m.tool_calls for m in run.messages)
        return None if acted else "nothing but white space and punctuation"
    lines = [line for line in text.splitlines() if _says_something(line)]
    if all(_core(line) in _OPENERS and line.split()[-1] not in _COMPARISONS for line in lines):
        return "only a stock opener"
    if len((echoed := _core(run.input)).split()) >= _ECHO_WORDS:
        parts = _folded(text).split(echoed)
        if len(parts) > 1 and not any(map(_says_something, parts)):
            return "only an echo of the input"
    return _repetition(text)


def _says_something(text: str) -> bool:
    return text.strip() in _SIGNS or any(map(_says, text))


def _says(character: str) -> bool:
    """Return whether a character is a letter, a digit or a symbol beyond ASCII."""
    return character.isalnum() or (
        ord(character) > 127 and unicodedata.category(character)[0] == "S"
    )


def _folded(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").split())


def _core(text: str) -> str:
    """Normalize case and spaces, and strip punctuation at both ends."""
    folded = _folded(text)
    saying = [i for i, character in enumerate(folded) if _says(character)]
    return folded[saying[0] : saying[-1] + 1] if saying else ""


def _repetition(text: str) -> str | None:
    if len(text) < _LONG:
        return None
    words = text.split()
    solid = "".join(words)
    if Counter(solid).most_common(1)[0][1] > _SHARE * len(solid):
        return "one character repeated"
    repeated = (count * len(word) for word, count in Counter(words).items() if count > 1)
    if max(repeated, default=0) > _SHARE * len(solid):
        return "one word repeated"
    return None
