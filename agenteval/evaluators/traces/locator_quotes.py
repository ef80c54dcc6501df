"""Whether the words that a judge quotes stand where it says that they do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import Literal

from agenteval.evaluators.traces.detectors import texts
from agenteval.evaluators.traces.locator_text import flat, quoted_in
from agenteval.evaluators.traces.pieces import Condensed
from agenteval.records import Run

QuoteCheck = Literal["span", "step", "off"]
_FLAT = 32  # flattened texts of spans that are kept


class Quotes:
    """The texts of a trace in which quoted words are looked for.

    The words count where they stand in the span, as it was shown or as it is in the trace: what was
    shown as a reference is read elsewhere. With "step" they also count, for less, where they stand
    in the step of the span: the chain or tool around it, and what else that holds. With "span" they
    do not, and with "off" nothing is looked for.
    """

    def __init__(self, run: Run, condensed: Condensed, rule: QuoteCheck = "step") -> None:
        self.rule = rule
        self._pieces = {piece.index: piece.text for piece in condensed.pieces}
        self._ids = {piece.index: piece.span for piece in condensed.pieces}
        self._spans = {span.id: span for span in reversed(run.spans)}
        self._by_id = {piece.span: piece.text for piece in condensed.pieces}
        self._below: Mapping[str | None, list[str]] = defaultdict(list)
        for span in run.spans:
            self._below[span.parent_id].append(span.id)
        self._flat = lru_cache(maxsize=_FLAT)(self._flatten)

    def __contains__(self, index: object) -> bool:
        return index in self._pieces

    def problem(self, index: str, quote: str) -> str | None:
        """Why a quote does not count for a span; None where it stands in it."""
        if self.rule == "off":
            return None
        problem = quoted_in(quote, flat(self._pieces[index]))
        if problem is None or quoted_in(quote, self._flat(self._ids[index])) is None:
            return None
        return problem

    def stands_near(self, index: str, quote: str) -> bool:
        """Whether the rule lets a quote count that stands in another span of the same step."""
        if self.rule != "step" or index not in self._ids:
            return False
        return any(quoted_in(quote, self._flat(id)) is None for id in self._step(self._ids[index]))

    def _step(self, id: str) -> list[str]:
        """The other spans of the step of a span: what stands below it, the chain or tool that it
        stands in, and the others in that."""
        span = self._spans.get(id)
        around = self._spans.get((span.parent_id or "") if span else "")
        step = list(self._below.get(id, ()))
        if around is not None and around.parent_id is not None and around.kind != "agent":
            step += [around.id, *self._below[around.id]]
        return [other for other in step if other != id]

    def _flatten(self, id: str) -> str:
        span = self._spans.get(id)
        shown = self._by_id.get(id, "")
        return flat("\n".join([shown, *(texts(span) if span else ())]))
