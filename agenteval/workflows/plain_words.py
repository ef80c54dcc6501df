"""Understanding of plain English questions by the scripted user, using words of names and
choices."""

from __future__ import annotations

import re

from agenteval.workflows.scenario import Profile

_ALIKE = (("e-mail", "email"), ("kind|sort", "type"), ("surname|family name", "last name"))
_STEM, ENOUGH = 5, 0.5  # letters of a word that count; share of a choice's words
_IDLE = re.compile(  # words that say nothing about a choice
    r"\b(?:a|all|an|and|another|as|at|be|by|for|i|in|is|it|me|my|of|on|or|other|same|so|that|the|"
    r"then|this|to|was|we|with|you|your)\b"
)
ASKS = re.compile(  # a reply that wants an answer
    r"\?|\bplease (?:tell|give|enter|provide|share|state|confirm|send|let|specify|choose)\b|"
    r"\b(?:tell|give) me\b|\bi(?:'ll)? (?:still |also |will )?need\b|\blet me know\b",
    re.I,
)
ANYTHING_ELSE = re.compile(r"\b(?:anything|something) (?:else|more)\b", re.I)
CONFIRMS = re.compile(
    r"\b(?:is|are|was|were) (?:that|this|these|those|it|everything|all)\b[^?,]{0,40}"
    r"\b(?:right|correct|ok|okay|fine)\b|^\W*(?:right|correct)\W*$|, (?:right|correct)\?",
    re.I,
)
OPEN = re.compile(r"\b(?:what|which|when|where|who|how|why)\b", re.I)
POLITE = re.compile(
    r"\b(?:could|can|would|will|may|might) (?:you|i)(?: please| kindly| also)* (?:tell|give|have|"
    r"provide|share|get|know|confirm|check|enter|state|let|ask|say|send|specify|explain|describe)\b|"
    r"\bdo you (?:have|know|remember)\b|\bplease\b|\b(?:tell|give) me\b|\bi need\b",
    re.I,
)
OR = re.compile(r"\bor\b", re.I)
WISHES = re.compile(  # open questions for what the user wants
    r"\b(?:help|assist|do for you|looking for|clarify|explain|describe|more about|like|want|wish|"
    r"prefer|proceed|go on|continue|instead)\b",
    re.I,
)
_KINDS = (  # the form of a value, and the words that ask for it
    (re.compile(r"\d{4}-\d\d-\d\d"), re.compile(r"\b(?:dates?|days?|when)\b", re.I)),
    (re.compile(r"\d{1,2}:\d\d"), re.compile(r"\b(?:time|when|what hour)\b", re.I)),
    (re.compile(r"\S+@\S+"), re.compile(r"\be-?mail\b", re.I)),
)


def questions(text: str) -> str:
    """Return the sentences that want an answer."""
    return " ".join(part for part in re.split(r"(?<=[.!?])\s+", text) if ASKS.search(part))


def requested(profile: Profile, text: str) -> list[str]:
    """Return the facts that a reply asks for: by name; by a value among alternatives; by the form
    of their values; else the only one whose name ends in a word of the question."""
    question = questions(text)
    words, choosing = _words(question), OR.search(question)
    names, last = [], []
    for name, fact in profile.facts.items():
        values = [str(value) for value in (fact if isinstance(fact, list) else [fact])]
        is_requested = _words(name) <= words
        is_requested |= any(
            look.fullmatch(v) and way.search(question) for look, way in _KINDS for v in values
        )
        is_requested |= bool(choosing) and any(v.isalpha() and _words(v) <= words for v in values)
        names += [name] if is_requested else []
        last += [name] if name.rpartition("_")[2] in words else []
    return names or (last if len(last) == 1 and not choosing else [])


def share(choice: str, text: str) -> float:
    """Return the share of the meaningful words of a choice that the text has, by their stems."""
    stems, stems_of_text = (
        {word[:_STEM] for word in _words(_IDLE.sub("", part.casefold()))} for part in (choice, text)
    )
    return len(stems & stems_of_text) / len(stems) if stems else 0.0


def _words(text: str) -> set[str]:
    text = text.casefold().replace("_", " ")
    for way, other in _ALIKE:
        text = re.sub(rf"\b{way}\b", other, text)
    return set(re.findall(r"\w+", text))
