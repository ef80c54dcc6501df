"""From a parsed reply to one answer per criterion, whatever shape the judge chose.

Shapes read: {criterion: label}, {criterion: {label, explanation}}, a list of such objects with
the criterion's name inside, any of these wrapped once ({"ratings": ...}), and for a single
criterion {label, explanation} alone. Levels beside a `max_score` count only if it is the top of the
scale.
Answers for criteria nobody asked for are named, never used.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum
from typing import Any

from pydantic import JsonValue

from agenteval.errors import ReplyError
from agenteval.models.jsonish import Doubled
from agenteval.records import CellKey, Criterion, Failure, FailureStatus, Result, Score, slug
from agenteval.utility.labels import Match, fold, read_label, stated_number, words

LABEL_KEYS = words(
    """label value level rating score grade answer accepted_value accepted_values
    assessment result choice verdict final_score overall_score final_rating
    overall_rating final_answer judgment judgement decision"""
)
REASON_KEYS = words(
    """explanation reason reasoning rationale justification evidence feedback analysis
    comment comments summary conclusion"""
)
NAME_KEYS = words(
    """criterion id name criteria criterion_id criterion_name metric dimension aspect"""
)
TOP_KEYS = words(
    """max_score max maximum max_rating maximum_score out_of scale score_range rating_scale
    range"""
)
_WRAPPERS = words(
    """evaluation result results output response assessment judgement judgment answer
    rating ratings score scores final data grading label value final_answer"""
)
_BESIDE = frozenset((*LABEL_KEYS, *REASON_KEYS, *NAME_KEYS, *TOP_KEYS)) | frozenset(
    words("confidence certainty min min_score weight version step probabilities")
)
_AFFIXES = re.compile(
    r"(?:score|rating|grade|label|level)-(?:for|of|on)-(?:the-)?(?P<behind>.+)"
    r"|(?P<before>.+)-(?:score|rating|grade|label|level)"
)
_MOST_DEPTH = 4


@dataclass(frozen=True, slots=True)
class Answer:
    """A readable answer on one leaf criterion. `value` is None for N/A and nominal labels."""

    label: str | None
    value: float | None
    match: Match
    explanation: str | None = None
    probabilities: dict[str, float] | None = None
    not_applicable: bool = False
    evidence: dict[str, JsonValue] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why one leaf criterion has no answer."""

    status: FailureStatus
    message: str


TWICE = NoAnswer("unscored:parse", "the reply answers this criterion twice, differently")


@dataclass(slots=True)
class Answers:
    """Per leaf path an Answer or NoAnswer, and the names of what was not asked for."""

    by_path: dict[str, Answer | NoAnswer] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)

    def missing(self) -> list[str]:
        """Paths without a readable answer."""
        return [p for p, a in self.by_path.items() if isinstance(a, NoAnswer)]

    @property
    def all_answered(self) -> bool:
        """Whether every criterion has a readable answer."""
        return not self.missing()


def leaves_of(criteria: Sequence[Criterion]) -> list[tuple[str, Criterion]]:
    """(path, leaf) of all: the criterion itself, or its sub-criteria with paths `parent/child`."""
    return [leaf for criterion in criteria for leaf in criterion.leaves()]


def read_answers(value: Any, criteria: Sequence[Criterion]) -> Answers:
    """One Answer or NoAnswer per leaf of `criteria`; never raises for content."""
    return AnswerReader(criteria).read(value)


class AnswerReader:
    """Reads the values that one reply may mean; what is tried is gathered once."""

    def __init__(self, criteria: Sequence[Criterion]) -> None:
        self._asked = leaves_of(criteria)
        self._names = names_of(self._asked)
        self._last: tuple[Any, dict[str, list[Any]], set[str]] | None = None

    def _gathered(self, value: Any) -> tuple[dict[str, list[Any]], set[str]]:
        if self._last is None or self._last[0] is not value:
            by_path, extra = _gather(value, self._names)
            if len(self._asked) == 1 and (verdict := self._verdict(value)) is not None:
                by_path.setdefault(self._asked[0][0], []).append(verdict)
            self._last = value, by_path, extra
        return self._last[1:]

    def _verdict(self, value: Any) -> Any:
        """What a value says of the only criterion without its name; None when it may speak of
        another one."""
        path, leaf = self._asked[0]
        if isinstance(value, list):
            verdicts = [self._verdict(item) for item in value]
            return Doubled(tuple(verdicts)) if verdicts and None not in verdicts else None
        if not isinstance(value, dict):
            return None
        keyed = _keyed(value)
        names = [keyed[key] for key in NAME_KEYS if isinstance(keyed.get(key), str)]
        if any(path_of(name, self._names) != path for name in names):
            return None
        for key, other in keyed.items():
            if key in _BESIDE or path_of(key, self._names) == path:
                continue
            if isinstance(other, dict | list) and key not in _WRAPPERS and _has_labels(other):
                return None
            if not isinstance(other, dict | list) and isinstance(answer_of(other, leaf), Answer):
                return None
        inner = [keyed[key] for key in _WRAPPERS if isinstance(keyed.get(key), dict | list)]
        if _labels_in(keyed):
            return keyed
        return self._verdict(_over(inner[0], _top_of(keyed))) if len(inner) == 1 else None

    def speaks(self, value: Any) -> bool:
        """True when the value speaks of at least one criterion, other than to say what it asks for.

        An explanation without a label and a label of null do: the answer is there and says nothing.
        """
        by_path, _ = self._gathered(value)
        return any(_is_attempt(raw) for raws in by_path.values() for raw in raws)

    def read(self, value: Any) -> Answers:
        """As `read_answers`."""
        by_path, extra = self._gathered(value)
        answers = {path: _read_all(by_path.get(path, ()), leaf) for path, leaf in self._asked}
        return Answers(answers, sorted(extra))


# ---------------------------------------------------------------- which criterion is meant


def names_of(asked: Sequence[tuple[str, Criterion]]) -> dict[str, str]:
    """Every name under which a reply may answer a leaf, as a slug, to the leaf's path."""
    return _names_of(tuple((path, leaf.id, leaf.name) for path, leaf in asked))


@lru_cache(maxsize=64)
def _names_of(asked: tuple[tuple[str, str, str], ...]) -> dict[str, str]:
    """An ambiguous name names nothing."""
    paths: dict[str, set[str]] = {}
    for path, *names in asked:
        for name in (path, path.replace("/", " "), *names):
            paths.setdefault(slug(name), set()).add(path)
    known = {name: next(iter(own)) for name, own in paths.items() if len(own) == 1}
    return known | {slug(path): path for path, _, _ in asked}


def path_of(name: str, names: Mapping[str, str]) -> str | None:
    """The path that a name stands for, also as "clarity score" and "score for clarity"."""
    plain = slug(name)
    if plain in names:
        return names[plain]
    affixed = _AFFIXES.fullmatch(plain)
    return names.get(affixed["behind"] or affixed["before"]) if affixed else None


def _gather(
    value: Any,
    names: dict[str, str],
    parents: tuple[str, ...] = (),
    top: float | None = None,
) -> tuple[dict[str, list[Any]], set[str]]:
    """What is said of each path, and the names that stand for none. `top` as in `_over`."""
    by_path: dict[str, list[Any]] = {}
    extra: set[str] = set()
    if isinstance(value, dict):
        top = _top_of({k: v for k, v in _keyed(value).items() if slug(k) not in names}) or top
    for name, raw in _pairs(value) if len(parents) <= _MOST_DEPTH else ():
        chain = (*parents, name)
        # the path that the whole chain of names stands for, or else the longest end of it
        ends = (path_of(" ".join(chain[i:]), names) for i in range(len(chain)))
        path = next((path for path in ends if path is not None), None)
        if path is not None:
            by_path.setdefault(path, []).append(_over(raw, top))
            continue
        values = raw.values if isinstance(raw, Doubled) else (raw,)
        inner = [_gather(v, names, chain, top) for v in values if isinstance(v, dict | list)]
        spoken = [entry for entry in inner if entry[0]]
        for key in dict.fromkeys(key for labels, _ in spoken for key in labels):
            raws = [raw for labels, _ in spoken for raw in labels.get(key, ())]
            doubled = sum(key in labels for labels, _ in spoken) > 1
            by_path.setdefault(key, []).extend([Doubled(tuple(raws))] if doubled else raws)
        extra |= set().union(*(more for _, more in spoken)) if spoken else {name}
    return by_path, extra


def _pairs(value: Any) -> Iterator[tuple[str, Any]]:
    """(name, what is said of it) of an object, of a list of them, or of one that has its name."""
    if isinstance(value, list):
        for item in value:
            yield from _pairs(item)
    elif isinstance(value, dict):
        keyed = _keyed(value)
        labels = [keyed[k] for k in LABEL_KEYS if k in keyed and not _is_rubric(k, keyed[k])]
        name = next((keyed[k] for k in NAME_KEYS if isinstance(keyed.get(k), str)), None)
        if name is not None and not all(isinstance(label, dict) for label in labels):
            yield name, keyed
        else:
            yield from ((str(key), raw) for key, raw in value.items())


# ---------------------------------------------------------------- what is said of it


def _keyed(value: Mapping[Any, Any]) -> dict[str, Any]:
    """The object with keys in one spelling: "Final Score" is final_score."""
    keyed: dict[str, Any] = {}
    for key, said in value.items():
        name = re.sub(r"[\s-]+", "_", str(key).strip().casefold())
        keyed[name] = Doubled((keyed[name], said)) if name in keyed else said
    return keyed


def _top_of(keyed: Mapping[str, Any]) -> float | None:
    """The top of the scale that an object states beside its levels."""
    for said in (keyed[key] for key in TOP_KEYS if key in keyed):
        numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", str(said)[:60])
        if numbers and not isinstance(said, bool):
            return max(map(float, numbers))
    return None


def _over(raw: Any, top: float | None) -> Any:
    """What is said, with its bare numbers over the top of the scale on which they were given."""
    if isinstance(raw, dict) and top is not None:
        return {"out_of": top} | raw
    if isinstance(raw, Doubled):
        return Doubled(tuple(_over(value, top) for value in raw.values))
    number = isinstance(raw, int | float) and not isinstance(raw, bool)
    if top is None or not (number or (isinstance(raw, str) and stated_number(fold(raw)))):
        return raw
    text = str(raw).strip()
    return text if "/" in text or " " in text or "%" in text else f"{text}/{top:g}"


def _has_labels(value: Any) -> bool:
    items = value if isinstance(value, list) else [value]
    return any(isinstance(item, dict) and _labels_in(_keyed(item)) for item in items)


def _is_rubric(key: str, value: Any) -> bool:
    return key == "accepted_values" and isinstance(value, list)


def _is_attempt(raw: Any) -> bool:
    """Not a list of levels, a description with levels, or a piece of a schema."""
    if isinstance(raw, Doubled):
        return any(map(_is_attempt, raw.values))
    if not isinstance(raw, dict):
        return not isinstance(raw, list)
    raw = _keyed(raw)
    if any(label is not None for label in _labels_in(raw)[:1]):
        return True
    if not _labels_in(raw) and isinstance(raw.get("probabilities"), dict):
        return True
    rubric = any(_is_rubric(k, raw[k]) for k in raw)
    return not rubric and any(k in raw for k in (*LABEL_KEYS, *REASON_KEYS))


def _labels_in(raw: dict[Any, Any]) -> list[Any]:
    """Everything that stands under a key for labels, the plainest key first; sentences last."""
    labels = [raw[k] for k in LABEL_KEYS if k in raw and not _is_rubric(k, raw[k])]
    if labels and isinstance(labels[0], list | dict):
        return []
    top = _top_of(raw)
    labels = [_over(label, top) for label in labels if not isinstance(label, list | dict)]
    return sorted(labels, key=lambda label: isinstance(label, str) and label.count(" ") > 6)


def _read_all(raws: Sequence[Any], leaf: Criterion) -> Answer | NoAnswer:
    """The one answer of all that is said of a leaf; what cannot be read contradicts nothing."""
    read = [answer for raw in raws if (answer := _read(raw, leaf)) is not None]
    if not read:
        return NoAnswer("unscored:missing", "the reply does not answer this criterion")
    answers = [answer for answer in read if isinstance(answer, Answer)]
    if len(read) > 1 and (TWICE in read or len(set(map(meaning, answers))) > 1):
        return TWICE
    return answers[0] if answers else read[-1]


def meaning(answer: Answer) -> tuple[str | None, bool, float | None]:
    """What an answer says, without how it was written."""
    return answer.label, answer.not_applicable, answer.value


def _read(raw: Any, leaf: Criterion) -> Answer | NoAnswer | None:
    """None where `raw` says nothing; a list of accepted values is a rubric, no answer."""
    if isinstance(raw, Doubled):
        return _agreed([_read(value, leaf) for value in raw.values])
    if raw is None or isinstance(raw, list):
        return None
    if not isinstance(raw, dict):
        return answer_of(raw, leaf)
    raw = _keyed(raw)
    labels, masses = _labels_in(raw), raw.get("probabilities")
    reasons = (raw[k] for k in REASON_KEYS if isinstance(raw.get(k), str))
    explanation = next((reason[:4000] for reason in reasons), None)
    answers = [answer_of(label, leaf, explanation) for label in labels if label is not None]
    readable = {answer.label for answer in answers if isinstance(answer, Answer)}
    if isinstance(masses, Doubled):
        return TWICE
    if isinstance(masses, dict) and labels[:1] != [None]:
        answer = from_probabilities(masses, leaf, explanation)
        own = (answer.probabilities if isinstance(answer, Answer) else None) or {}
        likeliest = max(own.values(), default=0.0)
        less_likely = any(own.get(label or "", 0.0) < likeliest for label in readable)
        return TWICE if less_likely else answer
    if not labels or labels[0] is None:
        return None
    if len(readable) > 1:  # {"label": "good", "rating": "poor"}
        return TWICE
    return answers[0]


def _agreed(read: Sequence[Answer | NoAnswer | None]) -> Answer | NoAnswer | None:
    """What a key with several values says: their one answer, where all of them give it."""
    meanings = {meaning(a) if isinstance(a, Answer) else None for a in read}
    if not any(read):
        return None
    return read[0] if len(meanings) == 1 and None not in meanings else TWICE


def answer_of(raw: Any, leaf: Criterion, explanation: str | None = None) -> Answer | NoAnswer:
    """What one label, as it stands in a reply, says of a leaf."""
    if isinstance(raw, Doubled):
        return _agreed([answer_of(value, leaf, explanation) for value in raw.values]) or TWICE
    if leaf.scale == "numeric":
        return _from_number(raw, leaf, explanation)
    label = read_label(raw, leaf.accepted_values, allow_na=leaf.allow_na)
    if label is None:
        shown = repr(raw)[:80]
        return NoAnswer("unscored:off_scale", f"{shown} is none of the accepted values")
    if label.value is None:
        return Answer(None, None, label.match, explanation, not_applicable=True)
    return Answer(label.value, leaf.value_of(label.value), label.match, explanation)


def _from_number(raw: Any, leaf: Criterion, explanation: str | None) -> Answer | NoAnswer:
    """A number, also as text; one over a denominator only where that is the top of the range."""
    if leaf.allow_na and read_label(raw, (), allow_na=True):
        return Answer(None, None, "exact", explanation, not_applicable=True)
    if leaf.numeric_range is None:
        raise ReplyError(f"criterion {leaf.id!r} is numeric but has no range")
    worst, best = leaf.numeric_range
    top = max(worst, best)
    number = raw if isinstance(raw, int | float) and not isinstance(raw, bool) else None
    if isinstance(raw, str) and (stated := stated_number(fold(raw))):
        number = stated.number if stated.top in (None, top) else None
    if number is None or not min(worst, best) <= number <= top:
        shown = repr(raw)[:80]
        return NoAnswer("unscored:off_scale", f"{shown} is no number from {worst:g} to {best:g}")
    match: Match = "tolerant" if isinstance(raw, str) else "exact"
    value = (number - worst) / (best - worst) if leaf.ordered else None
    return Answer(f"{number:g}", value, match, explanation)


def from_probabilities(
    raw: Mapping[Any, Any], leaf: Criterion, explanation: str | None
) -> Answer | NoAnswer:
    """The likeliest level, and the expected value. The masses must sum to 1."""
    masses: dict[str, float] = {}
    for name, mass in raw.items():
        label = read_label(name, leaf.accepted_values)
        number = isinstance(mass, int | float) and not isinstance(mass, bool) and 0 <= mass <= 1
        if label is None or label.value is None or label.value in masses or not number:
            return NoAnswer(
                "unscored:off_scale", f"{name!r}: {mass!r} is no probability of a level"
            )
        masses[label.value] = float(mass)
    total = sum(masses.values())
    if abs(total - 1) > 0.02:
        return NoAnswer("unscored:off_scale", f"the probabilities sum to {total:.3f}, not 1")
    likely = max(masses, key=lambda k: masses[k])
    return Answer(likely, leaf.expected_value(masses), "exact", explanation, masses)


# ---------------------------------------------------------------- results


def result_of(
    criterion: Criterion, key: CellKey, answer: Answer | NoAnswer, rung: str | None = None
) -> Result:
    """Score or Failure of one criterion from the one answer to it."""
    if isinstance(answer, NoAnswer):
        return Failure(
            key=key,
            criterion_id=criterion.id,
            status=answer.status,
            message=answer.message,
            rung=rung,
        )
    return Score(
        key=key,
        criterion_id=criterion.id,
        status="not_applicable" if answer.not_applicable else "scored",
        label=answer.label,
        value=answer.value,
        probabilities=answer.probabilities,
        explanation=answer.explanation,
        evidence=answer.evidence,
        rung=rung,
        match=answer.match,
    )


def to_result(
    criterion: Criterion, key: CellKey, answers: Mapping[str, Answer | NoAnswer], rung: str | None
) -> Result:
    """Score or Failure of one criterion from the answers by path.

    A criterion with parts is scored by its rule (mean or min) over the parts that apply; one part
    without an answer leaves the whole unscored, because the rest is no fair sample of it.
    """
    if not criterion.sub_criteria:
        return result_of(criterion, key, answers[criterion.id], rung)
    parts: dict[str, Answer] = {}
    for path, _ in criterion.leaves():
        part = answers[path]
        if isinstance(part, NoAnswer):
            failed = NoAnswer(part.status, f"{path}: {part.message}")
            return result_of(criterion, key, failed, rung)
        parts[path] = part
    for path, leaf in criterion.leaves():
        if not leaf.ordered:  # a rank nobody stated must not enter a mean
            why = f"the levels of its part {path} have no known order"
            return result_of(criterion, key, NoAnswer("unscored:unsupported", why), rung)
    values = [part.value for part in parts.values() if part.value is not None]
    mean = fsum(values) / len(values) if values else None
    labels: dict[str, JsonValue] = {
        path: "not applicable" if a.not_applicable else a.label for path, a in parts.items()
    }
    masses: dict[str, JsonValue] = {
        path: dict(a.probabilities) for path, a in parts.items() if a.probabilities
    }
    reasons = [f"{path}: {a.explanation}" for path, a in parts.items() if a.explanation]
    return Score(
        key=key,
        criterion_id=criterion.id,
        status="scored" if values else "not_applicable",
        value=min(values, default=None) if criterion.aggregation == "min" else mean,
        explanation="\n".join(reasons) or None,
        evidence={"parts": labels, **({"probabilities": masses} if masses else {})},
        rung=rung,
        match="exact" if all(a.match == "exact" for a in parts.values()) else "tolerant",
    )
