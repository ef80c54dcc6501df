"""Replies that ended at a limit of tokens."""

from __future__ import annotations

from collections.abc import Iterator

from agenteval.evaluators.traces.detectors.conversations import conversations
from agenteval.evaluators.traces.detectors.obedience import cut_off
from agenteval.evaluators.traces.detectors.registry import Hit, rule
from agenteval.evaluators.traces.detectors.view import TraceView, quote
from agenteval.records import Span


def _below_limit(span: Span) -> bool:
    """Whether fewer tokens came than were asked for at most."""
    used = None if span.usage is None else span.usage.completion_tokens
    return span.limit is not None and used is not None and used < span.limit


def _end(span: Span) -> str:
    text = "\n".join(m.content for m in span.reply).strip()
    return quote(span, text[-200:], text.rpartition("\n")[2][-200:], span.finish or "")


@rule(
    "context-full",
    "Context Handling Failures",
    "HIGH",
    "The provider says that the context window was exceeded, or the reply was cut for length "
    "before it had the tokens that the request allowed; a cut without both numbers is not covered.",
)
def context_full(view: TraceView) -> Iterator[Hit]:
    """The first such reply of the trace."""
    for span in view.llms:
        full = "context_window" in (span.finish or "") or "context_length" in (span.finish or "")
        if full or (cut_off(span) and _below_limit(span)):
            yield Hit(span, _end(span), "the context window was full before the reply ended")
            return


@rule(
    "cut-answer",
    "Formatting Errors",
    "MEDIUM",
    "The last reply of a conversation was cut at the limit of tokens, so that what came out is "
    "incomplete; that it was cut is certain, that it did harm and the category are not.",
    confidence=0.6,
)
def cut_answer(view: TraceView) -> Iterator[Hit]:
    """The last reply of each conversation, if it was cut."""
    for conversation in conversations(view).all:
        if conversation.requests:
            span = conversation.requests[-1]
            if cut_off(span) and not _below_limit(span):
                yield Hit(span, _end(span), "the last reply was cut at the limit of tokens")
