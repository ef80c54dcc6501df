"""Check that the words a judge quotes occur in the span that it names."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import lru_cache
from typing import Literal

from rapidfuzz import fuzz

from agenteval.models.prompts import neutralise
from agenteval.records import Run
from agenteval.traces.condense import Condensed
from agenteval.traces.spans import texts

QuoteCheck = Literal["span", "step", "off"]
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrt])?")
_SHOWN_CODE = re.compile(r"\[U\+[0-9A-F]{4,6}\]")  # how prompts show invisible characters
_NOISE = re.compile(r"[\s\"'`´‘’‚‛“”„‟«»‹›\u200b-\u200f\u2060\ufeff]+")
_ELLIPSIS = re.compile(r"\[\s*(?:\.{3,}|…)\s*\]|\(\s*(?:\.{3,}|…)\s*\)|\.{3,}|…")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MIN_QUOTE = 3  # characters without white space and quote marks
_MIN_PIECE = 8  # of the longest piece of a quote with gaps, and of a line that is quoted whole
_SIMILARITY = 90  # from which words are the same but for slips (0 to 100)
_CACHED = 32  # flattened texts of spans


def flat(text: str) -> str:
    """Remove what quoting changes: white space, quote marks, escapes, dashes, case."""
    text = _SHOWN_CODE.sub("", neutralise(text))  # a judge may quote the original or what it saw
    text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else "", text)
    if _SURROGATE.search(text):  # two escapes may make one character: \\ud83e\\udd9c
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("–", "-").replace("—", "-")
    return _NOISE.sub("", text).casefold()


def quoted_in(quote: str, flat_text: str) -> str | None:
    """Return why a quote does not count for a text (see `flat`); None if it occurs in it.

    White space, quote marks, backslash escapes and case do not matter. An ellipsis stands for
    omitted words: the pieces must follow one another in the text, and one of them must have eight
    characters. A quote of fewer than three characters shows nothing.
    """
    words = flat(quote)
    if len(_ELLIPSIS.sub("", words)) < _MIN_QUOTE:
        return "it does not quote the span"
    if words in flat_text:
        return None
    pieces = [piece for part in _ELLIPSIS.split(quote) if (piece := flat(part))]
    if len(pieces) > 1 and max(map(len, pieces)) < _MIN_PIECE:
        return "the quoted pieces are too short to be located"
    at = 0
    for piece in pieces:
        position = flat_text.find(piece, at)
        if position < 0:
            return "the quoted words are not in the span"
        at = position + len(piece)
    return None


class Quotes:
    """The texts of a trace in which quoted words are searched.

    The words count if they occur in the span as it was shown, or in its reply and output: what was
    shown as a reference can be read elsewhere. One line of several is enough, and slips are
    allowed. With "step" they also count, for less, in what the span was sent and in its step: the
    chain or tool around it, and what else that holds. With "off" nothing is searched.
    """

    def __init__(self, run: Run, condensed: Condensed, rule: QuoteCheck = "step") -> None:
        self.rule = rule
        self._ids = {piece.index: piece.span for piece in condensed.pieces}
        self._shown = {piece.span: piece.text for piece in condensed.pieces}
        self._spans = {span.id: span for span in reversed(run.spans)}
        self._children: defaultdict[str | None, list[str]] = defaultdict(list)
        for span in run.spans:
            self._children[span.parent_id].append(span.id)
        self._text = lru_cache(2 * _CACHED)(self._flat_text)

    def __contains__(self, index: object) -> bool:
        return index in self._ids

    def problem(self, index: str, quote: str) -> str | None:
        """Return why a quote does not count for a span; None if it occurs in it."""
        return None if self.rule == "off" else _missing(quote, self._text(self._ids[index]))

    def is_near(self, index: str, quote: str) -> bool:
        """Return whether the rule accepts a quote that occurs in the input or step of the span."""
        if self.rule != "step":
            return False
        id = self._ids[index]
        texts_near = (self._text(i, everything=True) for i in [id, *self._step(id)])
        return any(_missing(quote, text) is None for text in texts_near)

    def _step(self, id: str) -> list[str]:
        """The other spans of the step: children, the chain or tool around it, and its children."""
        span = self._spans.get(id)
        parent = self._spans.get((span.parent_id or "") if span else "")
        step = list(self._children.get(id, ()))
        if parent is not None and parent.parent_id is not None and parent.kind != "agent":
            step += [parent.id, *self._children[parent.id]]
        return [other for other in step if other != id]

    def _flat_text(self, id: str, *, everything: bool = False) -> str:
        parts, span = [self._shown.get(id, "")], self._spans.get(id)
        if span and everything:
            parts += texts(span)
        elif span:
            parts += [span.output, *(message.content for message in span.reply)]
        return flat("\n".join(parts))


def _missing(quote: str, text: str) -> str | None:
    problem = quoted_in(quote, text)
    if problem is None:
        return None
    lines = [line for line in map(flat, quote.splitlines()) if len(line) >= _MIN_PIECE]
    if len(lines) > 1 and any(line in text for line in lines):
        return None
    words = flat(quote)
    slips = len(words) >= 2 * _MIN_PIECE and fuzz.partial_ratio(
        words, text, score_cutoff=_SIMILARITY
    )
    return None if slips else problem
