"""Measuring and cutting text for prompts, and finding quoted words in it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agenteval.models.client import estimate_tokens
from agenteval.models.prompts import neutralise
from agenteval.models.wire import NONCE, Request

# 24 random hex digits are two characters to a token; the placeholder has 11 bytes.
_NONCE_EXTRA = 2 * 24 - len(NONCE.encode())
_SEAM = 120  # bytes shown in both windows, so that words at the border can be read
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrt])?")
_SHOWN_CODE = re.compile(r"\[U\+[0-9A-F]{4,6}\]")  # how prompts show invisible characters
_NOISE = re.compile(r"[\s\"'`´‘’‚‛“”„‟«»‹›\u200b-\u200f\u2060\ufeff]+")
_ELLIPSIS = re.compile(r"\[\s*(?:\.{3,}|…)\s*\]|\(\s*(?:\.{3,}|…)\s*\)|\.{3,}|…")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FEWEST = 3  # characters of a quote, without white space and quote marks
_LONGEST = 8  # of the longest piece of a quote with gaps


def tokens(text: str) -> int:
    """Tokens of a text, estimated as the model client does: UTF-8 bytes / 3, rounded up."""
    return -(-(_bytes(text) + _NONCE_EXTRA * text.count(NONCE)) // 3)


def prompt_tokens(request: Request) -> int:
    """Tokens of a request's prompt, estimated, with the nonce that is yet to be put in."""
    nonces = sum(str(m.get("content") or "").count(NONCE) for m in request.messages)
    return estimate_tokens(request) + -(-_NONCE_EXTRA * nonces // 3)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def shorten(text: str, most: int) -> str:
    """At most `most` tokens: beginning and end, and how many characters are missing between."""
    if tokens(text) <= most:
        return text
    data = text.encode("utf-8", "replace")
    room = max(3 * most - 60, 0)  # the mark takes up to 60 bytes
    head = data[: room * 2 // 3].decode("utf-8", "ignore")
    tail = data[len(data) - room // 3 :].decode("utf-8", "ignore") if room >= 3 else ""
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[... {left_out:,} characters left out ...]\n{tail}"


def windows(text: str, most: int) -> Iterator[tuple[int, int]]:
    """(start, end) offsets of stretches of at most `most` bytes that together cover the text.

    They end at a line break where one is near, and begin a few words before the last one ended.
    """
    if not text:
        yield 0, 0
        return
    start = 0
    while start < len(text):
        end = start + len(text[start : start + most].encode("utf-8", "replace")[:most].decode(
            "utf-8", "ignore"
        ))  # fmt: skip
        end = max(end, start + 1)
        if end < len(text) and (line := text.rfind("\n", start + 4 * (end - start) // 5, end)) > 0:
            end = line + 1
        yield start, end
        if end == len(text):
            return
        start = max(end - min(_SEAM, most // 8), start + 1)


def flat(text: str) -> str:
    """The text without what quoting changes: white space, quote marks, escapes, dashes, case."""
    text = _SHOWN_CODE.sub("", neutralise(text))  # a judge may quote the original or what it saw
    text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else "", text)
    if _SURROGATE.search(text):  # two escapes may make one character: \\ud83e\\udd9c
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("–", "-").replace("—", "-")
    return _NOISE.sub("", text).casefold()


def quoted_in(quote: str, flat_text: str) -> str | None:
    """None when the quote stands in the text (`flat`), else why it does not count.

    White space, quote marks, backslash escapes and case do not matter. An ellipsis in the quote
    stands for words left out: its pieces must follow one another in the text, and one of them
    must have eight characters. A quote of fewer than three characters shows nothing.
    """
    whole = flat(quote)
    if len(_ELLIPSIS.sub("", whole)) < _FEWEST:
        return "no words are quoted"
    if whole in flat_text:
        return None
    pieces = [piece for part in _ELLIPSIS.split(quote) if (piece := flat(part))]
    if len(pieces) > 1 and max(map(len, pieces)) < _LONGEST:
        return "the pieces quoted are too short to be found again"
    at = 0
    for piece in pieces:
        found = flat_text.find(piece, at)
        if found < 0:
            return "the quoted words are not in the span"
        at = found + len(piece)
    return None
