"""What is wrong with criteria, told from their text alone, before any money is spent on scoring.

An error makes scores wrong or unusable; a warning is for a person to decide. Lexicons are general
English and lean towards silence: a check that cries wolf is switched off.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from rapidfuzz.distance import OSA

from agenteval.evaluators.utility.labels import fold
from agenteval.evaluators.utility.scale_order import counted_in_units, order_of, place
from agenteval.evaluators.utility.scale_words import DEGREES, FILLERS, NEGATING_PREFIXES, QUALITY
from agenteval.records import Criterion

Kind = Literal["duplicate", "similar", "best_first", "unclear_order", "nominal", "same_label",
               "overlap", "too_few", "too_many", "measurable", "vague", "constant",
               "mixed"]  # fmt: skip
Similar = Callable[[Criterion, Criterion], bool]

_MOST_LEVELS = 7  # people and models cannot tell more grades apart reliably
_THINGS = r"(?:steps|tokens|calls|turns|messages|words|lines|attempts|iterations|retries)"
_MEASURED_NAME = re.compile(
    rf"\b(?:number|count|amount) of (?:[a-z]+ )?{_THINGS}\b"
    r"|\b(?:token|step|word|call|turn|line|message|character) (?:count|usage|consumption|number)\b"
    r"|\b(?:response|reply|execution|processing|solving|completion|elapsed|wall|running|answer)"
    r"[- ](?:time|times|speed|duration)\b|\b(?:time|speed|duration) (?:taken|spent|used|elapsed)\b"
    r"|\b(?:time|speed) (?:to|of) (?:the )?(?:completion|completing|solve|solution|answer|response"
    r"|respond|reply|finish)\b|\b(?:latency|runtime|duration)\b|^(?:speed|cost|length|time|steps)$"
    r"|\b(?:api|token|monetary|money|dollar|financial|inference) costs?\b|\bcost (?:in|per|of) "
    r"|\b(?:response|answer|solution|output|text|reply|trajectory) length\b"
    r"|\blength of (?:the )?(?:response|answer|solution|output|text|reply|trajectory)\b"
    r"|\b(?:memory|cpu) (?:usage|use|consumption)\b|\blines of code\b"
)
_MEASURED_TEXT = re.compile(
    rf"\b(?:number|count) of (?:[a-z]+ )?{_THINGS}\b|\bhow many (?:[a-z]+ )?{_THINGS}\b"
    r"|\b(?:time|seconds|minutes) (?:taken|spent|elapsed|needed|required)\b|\bresponse time\b"
    r"|\bhow (?:long|fast|quickly) the (?:system|agent|assistant|model|bot)\b|\btime[- ]effective\b"
    r"|\b(?:duration|time) from\b|\b(?:short|long) (?:amount|period) of time\b"
    r"|\bspeed of the (?:response|reply|answer|system|agent|assistant|model)\b"
)
_CONSTANT = re.compile(
    r"\b(?:problem|task|question|exercise|puzzle)(?:'s)? (?:difficulty|complexity|level|type|topic"
    r"|category|domain|discipline|length)\b|^difficulty(?: level)?$|^(?:level of )?difficulty\b"
    r"|^(?:the )?(?:level of )?(?:difficulty|complexity|level|type|topic|category|branch) of the "
    r"(?:given )?(?:problem|task|question|exercise)\b|\bdisciplines?$|\b(?:the|which) branch of \w+"
)
_ASPECTS: dict[str, tuple[str, ...]] = {
    "clarity": ("clarity", "clear", "readab", "understandab", "legib"),
    "correctness": ("correct", "accura", "right"),
    "completeness": ("complete", "coverage", "thorough"),
    "efficiency": ("efficien", "concis", "brevity", "econom"),
    "coherence": ("coheren", "consisten", "logic"),
    "relevance": ("relevan",),
    "creativity": ("creativ", "original", "novel", "innovat"),
    "safety": ("safe", "harm", "privacy"),
    "politeness": ("polite", "tone", "empath", "friendl"),
    "checking": ("verif", "check"),
}
_FILLERS = FILLERS | {
    "how", "well", "whether", "which", "level", "degree", "extent", "quality", "overall", "work",
    "answer", "solution", "response", "output", "result",
}  # fmt: skip
_WORD = re.compile(r"[a-z0-9']+")


@dataclass(frozen=True, slots=True)
class RubricIssue:
    """One thing wrong with one criterion. `message` is one plain line for a person."""

    criterion_id: str
    kind: Kind
    severity: Literal["error", "warning"]
    message: str


def check_criteria(
    criteria: Sequence[Criterion], *, similar: Similar | None = None
) -> list[RubricIssue]:
    """All issues: between criteria first, then criterion by criterion, sub-criteria included.

    `similar(a, b)` may tell that two criteria of different names mean the same, for example by
    their embeddings.
    """
    issues = list(_between(criteria, similar))
    for criterion in criteria:
        issues.extend(_walk(criterion, criterion.id, similar))
    return issues


def _walk(criterion: Criterion, path: str, similar: Similar | None) -> Iterator[RubricIssue]:
    for kind, severity, message in _about_text(criterion):
        yield RubricIssue(path, kind, severity, f"{criterion.name}: {message}")
    if criterion.sub_criteria:
        for issue in _between(criterion.sub_criteria, similar):
            yield RubricIssue(
                f"{path}/{issue.criterion_id}", issue.kind, issue.severity, issue.message
            )
        for part in criterion.sub_criteria:
            yield from _walk(part, f"{path}/{part.id}", similar)
        return
    for kind, severity, message in _about_scale(criterion):
        yield RubricIssue(path, kind, severity, f"{criterion.name}: {message}")


_Found = tuple[Kind, Literal["error", "warning"], str]


def _between(criteria: Sequence[Criterion], similar: Similar | None) -> Iterator[RubricIssue]:
    for first, second in combinations(criteria, 2):
        name = fold(second.name) == fold(first.name)
        if name or first.id == second.id:
            what = "name" if name else f"id {second.id!r}"
            yield RubricIssue(second.id, "duplicate", "error",
                              f"{second.name}: another criterion has the same {what}; "
                              "merge them or rename one")  # fmt: skip
        elif similar is not None and similar(first, second):
            yield RubricIssue(second.id, "similar", "warning",
                              f"{second.name}: says nearly the same as {first.name!r}; "
                              "keep one of them")  # fmt: skip


def _about_text(criterion: Criterion) -> Iterator[_Found]:
    name, description = fold(criterion.name), fold(criterion.description)
    counted = counted_in_units(criterion.accepted_values)
    if counted or _MEASURED_NAME.search(name) or _MEASURED_TEXT.search(description):
        yield ("measurable", "warning", "time, cost, length and counts are measured exactly by a "
               "program; a judge can only guess them")  # fmt: skip
    if _CONSTANT.search(name) or _CONSTANT.search(_opening(description)):
        yield ("constant", "warning", "rates the problem and not the work, so it is the same for "
               "every solution of one problem")  # fmt: skip
    if not set(_WORD.findall(description)) - set(_WORD.findall(name)) - _FILLERS:
        yield ("vague", "warning", "its description says no more than its name; say what an "
               "examiner should look at")  # fmt: skip
    both = _two_aspects(name)
    if both:
        yield ("mixed", "warning", f"asks for {both[0]} and {both[1]} in one grade; make two "
               "criteria, so that each level has one meaning")  # fmt: skip


def _opening(description: str) -> str:
    """Without "Rates the ...": only what a description opens with says what is rated."""
    return re.sub(r"^(?:(?:rates|measures|assesses|how|the|an?) )+", "", description)


def _two_aspects(name: str) -> tuple[str, str] | None:
    """The two qualities that a name joins by "and", when both are in the table and differ."""
    sides = re.split(r"\s+(?:and|&|\+)\s+|\s*/\s*", name)
    if len(sides) != 2:
        return None
    first, second = (_aspects(side) for side in sides)
    if len(first) == len(second) == 1 and first != second:
        return first.pop(), second.pop()
    return None


def _aspects(text: str) -> set[str]:
    tokens = [t.removeprefix("in") if t.startswith("incorr") else t for t in _WORD.findall(text)]
    return {a for a, stems in _ASPECTS.items() if any(t.startswith(stems) for t in tokens)}


def _about_scale(criterion: Criterion) -> Iterator[_Found]:
    labels = criterion.accepted_values
    if criterion.scale == "numeric":
        return
    if len(labels) < 2:
        yield ("too_few", "error", f"has {len(labels)} accepted value(s); a scale needs two")
        return
    if len(labels) > _MOST_LEVELS and criterion.scale != "nominal":
        yield ("too_many", "warning", f"has {len(labels)} levels; more than {_MOST_LEVELS} can "
               "hardly be told apart")  # fmt: skip
    yield from _about_order(criterion)
    yield from _about_labels(labels)


def _about_order(criterion: Criterion) -> Iterator[_Found]:
    labels = criterion.accepted_values
    if criterion.scale == "nominal":
        yield ("nominal", "warning", "names kinds and not grades: it is counted, never averaged")
        return
    told = order_of(labels, criterion.name)
    if criterion.order == "unclear":
        why = (criterion.order_reason or told.reason).removeprefix("unclear: ")
        yield ("unclear_order", "error", f"it is not clear which of its values is best ({why}); "
               'put the worst first and add "order_confirmed": true')  # fmt: skip
    elif criterion.order_confirmed or not told.plain:
        return
    elif told.verdict == "best_to_worst":
        yield ("best_first", "error", f"its values run from best to worst ({told.reason}); turn "
               "them round, or every score is inverted")  # fmt: skip
    elif told.verdict == "nominal":
        yield ("nominal", "error", "its values name kinds and not grades, so their rank means "
               'nothing; set "scale": "nominal"')  # fmt: skip


def _about_labels(labels: Sequence[str]) -> Iterator[_Found]:
    for first, second in combinations(labels, 2):
        if fold(first) == fold(second):
            yield ("same_label", "error", f"the value {second!r} stands twice")
        elif why := _overlap(fold(first), fold(second)):
            yield ("overlap", "warning", f"{first!r} and {second!r} {why}; a judge cannot tell "
                   "them apart")  # fmt: skip


def _overlap(first: str, second: str) -> str | None:
    """Why two labels say the same, or None."""
    ours, theirs = (_content(text) for text in (first, second))
    if not ours or not theirs or ours[0] != theirs[0]:  # different numbers in front
        return None
    if ours == theirs:
        return "differ in words without weight only"
    if _same_degree(ours[1:], theirs[1:]):
        return "say the same degree in two words"
    if len(ours) == len(theirs) and all(
        a == b or _misspelt(a, b) for a, b in zip(ours, theirs, strict=True)
    ):
        return "differ by a letter only"
    return None


def _content(text: str) -> tuple[str, ...]:
    """Number in front ("" without), then the words that carry meaning, in their order."""
    number = re.match(r"\d+", text)
    words = [w for w in _WORD.findall(text) if w not in _FILLERS]
    if number:
        words = words[1:]
    return (number.group() if number else "", *words) if words else ()


def _same_degree(ours: tuple[str, ...], theirs: tuple[str, ...]) -> bool:
    """One word differs, and both are the same degree: "somewhat clear", "partially clear"."""
    if len(ours) != len(theirs):
        return False
    differ = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    if len(differ) != 1 or len(ours) < 2:
        return False
    a, b = differ[0]
    if a in QUALITY or b in QUALITY or a not in DEGREES or b not in DEGREES:
        return False
    return DEGREES[a] == DEGREES[b] and place(" ".join(ours)) == place(" ".join(theirs))


def _misspelt(a: str, b: str) -> bool:
    if any(a == p + b or b == p + a for p in NEGATING_PREFIXES) or min(len(a), len(b)) < 6:
        return False
    return a[:3] == b[:3] and OSA.distance(a, b) == 1
