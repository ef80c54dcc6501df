"""Whether the words that a judge quotes stand where it says that they do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from rapidfuzz import fuzz

from agenteval.records import Run
from agenteval.traces.detectors import texts
from agenteval.traces.locator_text import flat, quoted_in
from agenteval.traces.pieces import Condensed

QuoteCheck = Literal["span", "step", "off"]
_FLAT = 32  # flattened texts of spans that are kept
_LINE = 8  # characters of a line that is quoted whole
_ALIKE = 90  # likeness (to 100) from which words are the same but for slips


class Quotes:
    """The texts of a trace in which quoted words are looked for.

    The words count where they stand in the span as it was shown, or in what it brought forth (reply
    and output): what was shown as a reference is read elsewhere. One whole line of several is
    enough, and slips are allowed. With "step" they also count, for less, in what the span was sent
    and in its step: the chain or tool around it, and what else that holds. With "span" they do not,
    and with "off" nothing is looked for.
    """

    def __init__(self, run: Run, condensed: Condensed, rule: QuoteCheck = "step") -> None:
        self.rule = rule
        self._ids = {piece.index: piece.span for piece in condensed.pieces}
        self._shown = {piece.span: piece.text for piece in condensed.pieces}
        self._spans = {span.id: span for span in reversed(run.spans)}
        self._below: Mapping[str | None, list[str]] = defaultdict(list)
        for span in run.spans:
            self._below[span.parent_id].append(span.id)
        self._own, self._whole = (lru_cache(_FLAT)(make) for make in (self._own_of, self._all_of))

    def __contains__(self, index: object) -> bool:
        return index in self._ids

    def problem(self, index: str, quote: str) -> str | None:
        """Why a quote does not count for a span; None where it stands in it."""
        return None if self.rule == "off" else _missing(quote, self._own(self._ids[index]))

    def stands_near(self, index: str, quote: str) -> bool:
        """Whether the rule lets a quote count that stands in what the span was sent, or in its
        step."""
        if self.rule != "step":
            return False
        near = [self._ids[index], *self._step(self._ids[index])]
        return any(_missing(quote, self._whole(id)) is None for id in near)

    def _step(self, id: str) -> list[str]:
        """The other spans of the step of a span: what stands below it, the chain or tool that it
        stands in, and the others in that."""
        span = self._spans.get(id)
        around = self._spans.get((span.parent_id or "") if span else "")
        step = list(self._below.get(id, ()))
        if around is not None and around.parent_id is not None and around.kind != "agent":
            step += [around.id, *self._below[around.id]]
        return [other for other in step if other != id]

    def _own_of(self, id: str) -> str:
        span = self._spans.get(id)
        texts_of_span = [span.output, *(m.content for m in span.reply)] if span else []
        return flat("\n".join([self._shown.get(id, ""), *texts_of_span]))

    def _all_of(self, id: str) -> str:
        span = self._spans.get(id)
        return flat("\n".join([self._shown.get(id, ""), *(texts(span) if span else ())]))


def _missing(quote: str, text: str) -> str | None:
    """Why a quote does not stand in a flattened text; None where it does."""
    problem = quoted_in(quote, text)
    if problem is None:
        return None
    lines = [line for line in map(flat, quote.splitlines()) if len(line) >= _LINE]
    if len(lines) > 1 and any(line in text for line in lines):
        return None
    whole = flat(quote)
    slips = len(whole) >= 2 * _LINE and fuzz.partial_ratio(whole, text, score_cutoff=_ALIKE)
    return None if slips else problem
