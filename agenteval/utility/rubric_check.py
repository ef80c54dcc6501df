"""Check the text of criteria for defects, before any money is spent on scoring.

An error makes scores wrong or unusable; a warning is for the user to decide. The word lists are
general English and deliberately conservative, because users turn off checks with false alarms.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

from rapidfuzz.distance import OSA

from agenteval.records import Criterion
from agenteval.utility import scale_words as lexicon
from agenteval.utility.labels import fold, words
from agenteval.utility.scale_order import counted_in_units, order_of

Severity = Literal["error", "warning"]

_MOST_LEVELS = 7  # people and models cannot reliably distinguish more grades
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
_STEMS = {
    "clarity": "clarity clear readab understandab legib",
    "correctness": "correct accura right",
    "completeness": "complete coverage thorough",
    "efficiency": "efficien concis brevity econom",
    "coherence": "coheren consisten logic",
    "relevance": "relevan",
    "creativity": "creativ original novel innovat",
    "safety": "safe harm privacy",
    "politeness": "polite tone empath friendl",
    "checking": "verif check",
}
_ASPECTS = {aspect: words(stems) for aspect, stems in _STEMS.items()}
_FILLERS = lexicon.FILLERS.union(
    words(
        "how well whether which level degree extent quality overall work answer solution response "
        "output result"
    )
)
_WORD = re.compile(r"[a-z0-9']+")


@dataclass(frozen=True, slots=True)
class RubricIssue:
    """A defect of a criterion. `message` is one line.

    `kind` is one of duplicate, best_first, unclear_order, nominal, same_label, overlap, too_many,
    measurable, vague, constant, mixed.
    """

    criterion_id: str
    kind: str
    severity: Severity
    message: str


_Problem = tuple[str, Severity, str]  # kind, severity and message


def check_criteria(criteria: Sequence[Criterion]) -> list[RubricIssue]:
    """Return all issues, including those of sub-criteria; duplicates come first."""
    return list(_issues(criteria, ""))


def _issues(criteria: Sequence[Criterion], prefix: str) -> Iterator[RubricIssue]:
    for first, second in combinations(criteria, 2):
        same_name = fold(second.name) == fold(first.name)
        if same_name or first.id == second.id:
            what = "name" if same_name else f"id {second.id!r}"
            why = f"{second.name}: another criterion has the same {what}; merge them or rename one"
            yield RubricIssue(prefix + second.id, "duplicate", "error", why)
    for criterion in criteria:
        path = prefix + criterion.id
        problems = list(_in_text(criterion))
        if not criterion.sub_criteria and criterion.scale != "numeric":
            problems += [*_in_order(criterion), *_in_labels(criterion.accepted_values)]
        for kind, severity, message in problems:
            yield RubricIssue(path, kind, severity, f"{criterion.name}: {message}")
        yield from _issues(criterion.sub_criteria, f"{path}/")


def _in_text(criterion: Criterion) -> Iterator[_Problem]:
    name, description = fold(criterion.name), fold(criterion.description)
    counted = counted_in_units(criterion.accepted_values)
    if counted or _MEASURED_NAME.search(name) or _MEASURED_TEXT.search(description):
        why = "time, cost, length and counts are measured exactly by a program"
        yield "measurable", "warning", f"{why}; a judge can only guess them"
    # drop "Rates the ..."; the opening of a description names what is rated
    opening = re.sub(r"^(?:(?:rates|measures|assesses|how|the|an?) )+", "", description)
    if _CONSTANT.search(name) or _CONSTANT.search(opening):
        why = "rates the problem, not the work"
        yield "constant", "warning", f"{why}, so it is the same for every solution of a problem"
    if not set(_WORD.findall(description)) - set(_WORD.findall(name)) - _FILLERS:
        why = "its description only repeats its name"
        yield "vague", "warning", f"{why}; describe what an examiner should look at"
    aspects = [_aspects(side) for side in re.split(r"\s+(?:and|&|\+)\s+|\s*/\s*", name)]
    if list(map(len, aspects)) == [1, 1] and aspects[0] != aspects[1]:
        (first,), (second,) = aspects
        why = f"combines {first} and {second} in one grade"
        yield "mixed", "warning", f"{why}; make two criteria, so that each level has one meaning"


def _aspects(text: str) -> set[str]:
    tokens = [t.removeprefix("in") if t.startswith("incorr") else t for t in _WORD.findall(text)]
    return {a for a, stems in _ASPECTS.items() if any(t.startswith(stems) for t in tokens)}


def _in_order(criterion: Criterion) -> Iterator[_Problem]:
    labels = criterion.accepted_values
    if len(labels) > _MOST_LEVELS and criterion.scale != "nominal":
        why = f"has {len(labels)} levels; more than {_MOST_LEVELS} are hard to distinguish"
        yield "too_many", "warning", why
    order = order_of(labels, criterion.name, criterion.description)
    plain = order.verdict if order.plain and not criterion.order_confirmed else None
    if criterion.scale == "nominal":
        yield "nominal", "warning", "its values are kinds, not grades: it is counted, not averaged"
    elif criterion.order == "unclear":
        reason = (criterion.order_reason or order.reason).removeprefix("unclear: ")
        why = f"it is not clear which of its values is best ({reason})"
        yield (
            "unclear_order",
            "error",
            f'{why}; put the worst first and add "order_confirmed": true',
        )
    elif plain == "best_to_worst":
        why = f"its values run from best to worst ({order.reason})"
        yield "best_first", "error", f"{why}; reverse them, otherwise every score is inverted"
    elif plain == "nominal":
        why = "its values are kinds, not grades, so their rank is meaningless"
        yield "nominal", "error", f'{why}; set "scale": "nominal"'


def _in_labels(labels: Sequence[str]) -> Iterator[_Problem]:
    for first, second in combinations(labels, 2):
        if fold(first) == fold(second):
            yield "same_label", "error", f"the value {second!r} occurs twice"
        elif why := _overlap(fold(first), fold(second)):
            both = f"{first!r} and {second!r} {why}"
            yield "overlap", "warning", f"{both}; a judge cannot distinguish them"


def _overlap(first: str, second: str) -> str | None:
    """Return why two labels mean the same, or None."""
    ours, theirs = (_content(text) for text in (first, second))
    if not ours or not theirs or ours[0] != theirs[0]:  # different leading numbers
        return None
    if ours == theirs:
        return "differ only in filler words"
    if len(ours) != len(theirs):
        return None
    differ = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    a, b = differ[0]
    degrees = (
        a in lexicon.DEGREES
        and b in lexicon.DEGREES
        and a not in lexicon.QUALITY
        and b not in lexicon.QUALITY
    )
    if len(differ) == 1 and len(ours) > 2 and degrees and lexicon.DEGREES[a] == lexicon.DEGREES[b]:
        # "somewhat clear", "partially clear"
        same = lexicon.place(" ".join(ours[1:])) == lexicon.place(" ".join(theirs[1:]))
        return "express the same degree" if same else None
    return "differ only by a letter" if all(_misspelt(a, b) for a, b in differ) else None


def _content(text: str) -> tuple[str, ...]:
    """Return the leading number (or ""), then the words without fillers, in order."""
    number = re.match(r"\d+", text)
    content = [w for w in _WORD.findall(text) if w not in _FILLERS][1 if number else 0 :]
    return (number.group() if number else "", *content) if content else ()


def _misspelt(a: str, b: str) -> bool:
    if any(a == p + b or b == p + a for p in lexicon.NEGATING_PREFIXES) or min(len(a), len(b)) < 6:
        return False
    return a[:3] == b[:3] and OSA.distance(a, b) == 1
