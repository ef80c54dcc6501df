"""Tool output that the model made up, where the trace proves that no tool was run."""

from __future__ import annotations

import re
from collections.abc import Iterator

from agenteval.evaluators.traces.detectors.prose import sentences, without_blocks
from agenteval.evaluators.traces.detectors.registry import Hit, TraceView, quote, rule
from agenteval.records import Span

_NAME = r"[`'\"*]{0,3}(?:functions\.)?([A-Za-z_]\w*)(?:\(\))?[`'\"*]{0,3}"
_CLAIM = re.compile(
    rf"\b(?:I|we)(?: have|'ve|’ve)?(?: just| already| also| then| successfully)?"
    rf" (?:called|used|invoked|ran|run|executed|queried|consulted|asked)"
    rf" (?:the |our |my )?(?:tool |function )?{_NAME}"
    rf"|{_NAME}(?: tool| function)?(?: call)? (?:has )?"
    rf"(?:returned|reported|responded|confirmed|replied)\b"
    rf"|\b(?:according to|based on|as returned by|results? (?:of|from)) (?:the )?"
    rf"(?:(?:output|results?) (?:of|from) )?(?:the )?{_NAME}(?: tool| function)?",
    re.IGNORECASE,
)
_SENTENCE = 2000  # characters of a sentence that is read
_DOUBT = re.compile(
    r"\b(?:not|never|no|n't|cannot|would|could|should|will|if|when|once|had|unless|without|instead"
    r"|unable|failed to|plan|going to|example|suppose|imagine|user|you|yesterday|earlier"
    r"|previous(?:ly)?|last)\b|n['’]t\b|\?",
    re.IGNORECASE,
)
_OBSERVATION = re.compile(
    r"^[ \t]*Action[ \t]*:[^\n]*\n(?:(?!^[ \t]*(?:Observation|Action)[ \t]*:).*\n){0,40}?"
    r"^[ \t]*Observation[ \t]*:[ \t]*\S[^\n]*",
    re.MULTILINE,
)
_RESPONSE = re.compile(
    r"^[ \t]*(?:</tool_call>|</function_calls>)\s*(?:^|\s)"
    r"(?:<tool_response>|<function_results>)[^\n]*\n?[^\n]*",
    re.MULTILINE,
)


def _called(view: TraceView) -> set[str]:
    """Names of all tools of which the trace holds a call, in whatever form."""
    names = {span.tool or span.name for span in view.spans if span.kind == "tool"}
    for span in view.llms:
        names.update(call.name for m in span.reply for call in m.tool_calls)
    for _, message in view.fresh:
        names.update(call.name for call in message.tool_calls)
        if message.role == "tool" and message.name:
            names.add(message.name)
    return names


def _telling(name: str) -> bool:
    """Whether a tool's name cannot be an ordinary word."""
    return "_" in name or any(c.isupper() for c in name[1:]) or any(c.isdigit() for c in name)


@rule(
    "claimed-call",
    "Tool-related",
    "HIGH",
    "A reply says that an offered tool was called or what it returned, by its name, and the trace "
    "holds no call of it at all; claims in other words, and tools named as ordinary words, are not "
    "covered.",
    confidence=0.95,
)
def claimed_call(view: TraceView) -> Iterator[Hit]:
    """The first claim about each tool."""
    offered = {tool.name for span in view.llms for tool in span.tools if _telling(tool.name)}
    idle = {name.lower(): name for name in offered - _called(view)}
    if not idle:
        return
    told = _told(view, idle)
    for span in view.llms:
        for message in span.reply:
            for name, sentence in _claims(message.content, idle):
                if name not in told:
                    told.add(name)
                    yield Hit(
                        span,
                        quote(span, sentence, idle[name]),
                        f"the reply tells of a call of {idle[name]}, which was never called",
                    )


def _told(view: TraceView, idle: dict[str, str]) -> set[str]:
    """Tools of which others told in the conversation, or that were run in code."""
    told: set[str] = set()
    for _, message in view.fresh:
        if message.role in ("user", "tool"):
            told.update(name for name, _ in _claims(message.content, idle))
    for span in view.llms:
        for message in span.reply:
            if "(" in message.content:
                told.update(_run_in_code(message.content, idle))
    return told


def _run_in_code(text: str, idle: dict[str, str]) -> Iterator[str]:
    for found in re.finditer(r"\b([A-Za-z_]\w*)\((?!\))", text):
        if found[1].lower() in idle:
            yield found[1].lower()


def _claims(text: str, idle: dict[str, str]) -> Iterator[tuple[str, str]]:
    """(lower name, sentence) of each claim about a tool of `idle`."""
    low = text.lower()
    if not any(name in low for name in idle):
        return
    for sentence in sentences(without_blocks(text)):
        if len(sentence) > _SENTENCE:
            continue
        for found in _CLAIM.finditer(sentence):
            name = next(filter(None, found.groups())).lower()
            if name in idle and not _DOUBT.search(sentence):
                yield name, sentence


@rule(
    "invented-observation",
    "Tool-related",
    "HIGH",
    "One reply of a model holds a call in text (ReAct's Action, a tool_call element) and after it "
    "the tool's answer, which only the tool could have given; replies in frameworks that put "
    "several turns into one span are not covered (they name no model request).",
    confidence=0.95,
)
def invented_observation(view: TraceView) -> Iterator[Hit]:
    """The first such reply of the trace."""
    for span in view.llms:
        for message in span.reply:
            words = _invented(message.content)
            if words and not _explains(span):
                yield Hit(
                    span, quote(span, *words), "the model wrote the answer of the tool itself"
                )
                return


def _invented(text: str) -> tuple[str, ...]:
    if (
        "Observation" not in text
        and "<tool_response>" not in text
        and "<function_results" not in text
    ):
        return ()
    plain = without_blocks(text) if "```" in text else text
    found = _OBSERVATION.search(plain) or _RESPONSE.search(plain)
    return (found[0].strip().rpartition("\n")[2], found[0]) if found else ()


def _explains(span: Span) -> bool:
    """Whether the user asks about the form itself, so that the reply may be an example of it."""
    last = next((m.content for m in reversed(span.messages) if m.role == "user"), "")
    return re.search(r"\bReAct\b|Observation:|<tool_response>|example", last) is not None
