"""What prompts demand of a reply in so many words: a literal marker, JSON, a greatest length."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agenteval.evaluators.traces.detectors.prose import (
    conditional,
    negated,
    sentences,
    without_blocks,
    without_quotes,
)

_MOST = 200_000  # characters of a prompt that are read
_SENTENCE = 600  # characters of a sentence that is read

_LEAD = (
    r"(?i:^(?:\d+[.)]\s*)?(?:(?:please|always|important|note|remember|finally|then|and)[,:]?\s+)*"
    r"(?:you (?:must|should|have to|need to|will)\s+|make sure (?:you|to)\s+|remember to\s+)?"
    r"(?:always\s+)?)"
)
_END = r"(?i:(?:end|finish|conclude|close|terminate)s?)"
_REPLY = r"(?i:(?:replies|reply|responses?|answers?|messages?|outputs?|turns?))"
_OWN = r"(?i:(?:(?:your|the|each|every|all)\s+(?:of your\s+)?)?)"
_FINAL = r"(?i:(?:final|last)\s+)"
_MUST = r"(?i:(?:must|should|has to|have to|needs? to)\s+(?:always\s+)?)"
_KIND = r"(?i:(?:exact|literal|single|following|special|closing|last|end)\s+)*"
_NOUN = r"(?i:(?:words?|tag|marker|token|phrase|line|string|sequence|text|template|keyword))"
_SAYING = r"(?i:(?::|\s+(?:saying|reading|containing|that says|which says))?\s+)"
# "with the marker X", "with a line saying X", "with X"; not: with a "call to action"
_WITH = (
    rf"(?i:\s+with\s+)(?:(?i:(?:the|this|a)\s+)?{_KIND}{_NOUN}{_SAYING}|(?i:(?:the\s+)?){_KIND})"
)
_LITERAL = (
    r"(?:\"(?P<a>[^\"]{2,80})\"|“(?P<b>[^”]{2,80})”|'(?P<c>[^']{2,80})'|`(?P<d>[^`]{2,80})`"
    r"|(?P<e></?[A-Za-z][\w-]{1,40}/?>)"
    r"|(?P<f>[\[<#@|=~]{1,4}\s?[A-Za-z][\w -]{1,40}\s?[\]>#@|=~]{1,4})"
    r"|(?P<g>[A-Z](?:[A-Z_ ]{1,40}[A-Z])\b:?)(?=[\s.,;:)]*$|\s+(?:on|as|and)\s))"
)
_FORMATS = {"JSON", "XML", "HTML", "SQL", "YAML", "CSV", "URL", "ASCII", "PDF", "API", "UTC"}
_MARKERS: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(text), scope)
    for text, scope in (
        (rf"{_LEAD}{_END}\s+{_OWN}{_REPLY}{_WITH}{_LITERAL}", "any"),
        (rf"{_LEAD}{_OWN}{_REPLY}\s+{_MUST}{_END}{_WITH}{_LITERAL}", "any"),
        (rf"{_LEAD}{_END}\s+{_OWN}{_FINAL}{_REPLY}{_WITH}{_LITERAL}", "final"),
        (rf"{_LEAD}{_OWN}{_FINAL}{_REPLY}\s+{_MUST}{_END}{_WITH}{_LITERAL}", "final"),
        (
            rf"{_LEAD}{_OWN}(?i:code (?:sequence|block|blob|snippet))\s+{_MUST}{_END}{_WITH}"
            rf"{_LITERAL}",
            "code",
        ),
        (
            rf"{_LEAD}(?i:(?:after\s+[^.,]{{1,80}},\s+)?(?:write|add|append|output|print)\s+)"
            rf"(?i:(?:the\s+)?){_KIND}(?:{_NOUN}{_SAYING})?{_LITERAL}"
            r"(?i:(?:\s+(?:tag|marker|token))?\s+and (?:then\s+)?(?:stop|end)\b)",
            "any",
        ),
    )
)
_PLACEHOLDER = re.compile(
    r"\[[^\]]*\]?|\{[^}]*\}?|<[^>]*\s[^>]*>?|\.{3}|…|<[a-z_]+>$|\b(?:your|the) \w+$", re.IGNORECASE
)
_WHOLE_MARK = re.compile(r"</?[\w-]+/?>|[\[<]{1,2}[A-Z_ ]+[\]>]{1,2}")

_ADJECTIVE = r"(?:(?:a|an|one|the|single|valid|raw|strict|well-formed|plain|following|only)\s+)*"
_ANSWER = r"(?:reply|respond|answer|return|output)"
_ORDER = r"(?:^|[,;:]\s+|\b(?:must|should|always|please|to|and|then|only|will)\s+)"
_JSON = re.compile(
    rf"{_ORDER}{_ANSWER}\s+(?:(?:with|in|as|using)\s+)?"
    r"(?:only|just|nothing but|exclusively|strictly|solely)\s+(?:(?:with|in|as)\s+)?"
    rf"{_ADJECTIVE}json\b"
    rf"|{_ORDER}{_ANSWER}\s+(?:(?:with|in|as)\s+)?{_ADJECTIVE}json(?: object| array)?,?\s+"
    r"(?:only|and nothing else)\b"
    rf"|\b(?:reply|response|answer|output)\s+must\s+(?:only\s+)?be\s+{_ADJECTIVE}json\b",
    re.IGNORECASE,
)

_NUMBER = r"(?P<n>\d[\d,]{0,6})\s+(?P<unit>words|characters)\b"
_BOUND = (
    r"(?:at most|no more than|(?:a )?max(?:imum)?\.?(?: of)?|up to|not more than|fewer than"
    rf"|less than|under|within)\s+{_NUMBER}"
)
_THE_REPLY = rf"(?:your|the|each|every|all)\s+(?:(?:final|whole|entire|complete)\s+)?{_REPLY}"
_POLITE = r"^(?:(?:please|always)\s+)*"
_LENGTHS: tuple[re.Pattern[str], ...] = tuple(
    re.compile(text, re.IGNORECASE)
    for text in (
        rf"{_POLITE}(?:answer|reply|respond)\s+(?:(?:briefly|concisely),?\s+)?"
        rf"(?:(?:in|with|using)\s+)?{_BOUND}",
        rf"{_POLITE}(?:answer|reply|respond)\s+(?:in|with)\s+{_NUMBER}\s+or (?:less|fewer)\b",
        rf"\b{_THE_REPLY}\s+(?:must|should|has to|have to|may)\s+"
        rf"(?:(?:be|have|contain|stay|use|comprise)\s+)?{_BOUND}",
        rf"\b{_THE_REPLY}\s+(?:must|should|may)\s+not\s+(?:exceed|be longer than|be more than"
        rf"|have more than|contain more than)\s+{_NUMBER}",
        rf"{_POLITE}(?:keep|limit|restrict)\s+(?:{_THE_REPLY}|{_REPLY})\s+"
        rf"(?:to|within|under|below)\s+{_NUMBER}",
        rf"{_POLITE}(?:keep|limit|restrict)\s+(?:{_THE_REPLY}|{_REPLY})\s+(?:to\s+)?{_BOUND}",
    )
)
_PART = re.compile(
    r"\b(?:per|each (?:point|item|bullet|section|line)|title|summary|thought)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Demand:
    """What is demanded, in which words, and of which replies: "any", "final", those with "code"."""

    kind: Literal["marker", "json", "words", "characters"]
    words: str
    marker: str = ""
    most: int = 0
    scope: str = "any"


def demands(text: str) -> tuple[Demand, ...]:
    """The demands of a prompt, as far as they are certain.

    Only plain sentences count: not what stands in code, quotations or elements with data, and
    nothing asked for only under a condition."""
    plain = re.sub(r"(['\"`])\s*(?:\\n|\n)\s*(?=<)", r"\1", without_blocks(text[:_MOST]))
    found: list[Demand] = []
    for sentence in sentences(plain):
        if len(sentence) <= _SENTENCE:
            found.extend(_of(sentence))
    return tuple(dict.fromkeys(found))


def _of(sentence: str) -> Iterator[Demand]:
    for pattern, scope in _MARKERS:
        match = pattern.search(sentence)
        literal = _literal(match) if match else ""
        if match and literal and not conditional(_around(sentence, match)):
            yield Demand("marker", sentence, marker=literal, scope=scope)
            break
    if conditional(sentence):
        return
    if not negated(sentence) and _JSON.search(without_quotes(sentence)):
        yield Demand("json", sentence)
    yield from _length(sentence)


def _around(sentence: str, match: re.Match[str]) -> str:
    """The sentence without its demand; "after the last step, write" only says where."""
    return sentence[: match.start()] + " " + sentence[match.end() :]


def _literal(match: re.Match[str]) -> str:
    """The marker without the parts that stand for something else; "" if too little is left."""
    raw = next((value for value in match.groupdict().values() if value), "")
    raw = raw.replace("\\n", " ").strip()
    found = None if _WHOLE_MARK.fullmatch(raw) else _PLACEHOLDER.search(raw)
    text = (raw[: found.start()] if found else raw).strip()
    return text if sum(c.isalnum() for c in text) >= 2 and text not in _FORMATS else ""


def _length(sentence: str) -> Iterator[Demand]:
    if _PART.search(sentence):
        return
    for pattern in _LENGTHS:
        match = pattern.search(sentence)
        if match:
            unit: Literal["words", "characters"] = (
                "words" if match["unit"].lower() == "words" else "characters"
            )
            yield Demand(unit, sentence, most=int(match["n"].replace(",", "")))
            return
