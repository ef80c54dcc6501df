"""From a parsed reply to one answer per criterion, whatever shape the judge chose.

Shapes read: {criterion: label}, {criterion: {label, explanation}}, a list of such objects with
the criterion's name inside, and any of these wrapped once ({"ratings": ...}). Answers for
criteria nobody asked for are named, never used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from agenteval.errors import ReplyError
from agenteval.evaluators.utility.labels import Match, fold, read_label
from agenteval.evaluators.utility.stated_number import stated_number
from agenteval.models.jsonish import Doubled
from agenteval.records import Criterion, FailureStatus, slug

LABEL_KEYS = ("label", "value", "level", "rating", "score", "grade", "answer", "accepted_value",
              "accepted_values", "assessment", "result", "choice")  # fmt: skip
REASON_KEYS = ("explanation", "reason", "reasoning", "rationale", "justification", "evidence")
_NESTED = (list, dict)  # a union would be made anew at each look
NAME_KEYS = ("criterion", "id", "name", "criteria", "criterion_id", "criterion_name", "metric")


@dataclass(frozen=True, slots=True)
class Answer:
    """A readable answer on one leaf criterion. `value` is None for N/A and nominal labels."""

    label: str | None
    value: float | None
    match: Match
    explanation: str | None = None
    probabilities: dict[str, float] | None = None
    not_applicable: bool = False


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Why one leaf criterion has no answer."""

    status: FailureStatus
    message: str


_TWICE = NoAnswer("unscored:parse", "the reply answers this criterion twice, differently")


@dataclass(slots=True)
class Answers:
    """Per leaf path an Answer or NoAnswer, and the names of what was not asked for."""

    by_path: dict[str, Answer | NoAnswer] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)

    def missing(self) -> list[str]:
        """Paths without a readable answer."""
        return [p for p, a in self.by_path.items() if isinstance(a, NoAnswer)]


def leaves(criterion: Criterion, prefix: str = "") -> list[tuple[str, Criterion]]:
    """(path, leaf) of a criterion: itself, or its sub-criteria with paths `parent/child`."""
    return criterion.leaves(prefix)


def read_answers(value: Any, criteria: Sequence[Criterion]) -> Answers:
    """One Answer or NoAnswer per leaf of `criteria`; never raises for content."""
    return AnswerReader(criteria).read(value)


class AnswerReader:
    """Reads the values that one reply may mean; what is tried is gathered once."""

    def __init__(self, criteria: Sequence[Criterion]) -> None:
        self._asked = [leaf for c in criteria for leaf in leaves(c)]
        self._names = names_of(self._asked)
        self._last: tuple[Any, _Found] | None = None

    def _gathered(self, value: Any) -> _Found:
        if self._last is None or self._last[0] is not value:
            self._last = value, _collect(value, self._names)
        return self._last[1]

    def speaks(self, value: Any) -> bool:
        """True when the value speaks of at least one criterion, other than to say what it asks for.

        An explanation without a label and a label of null do: the answer is there and says nothing.
        """
        return any(map(_any_attempt, self._gathered(value).by_path.values()))

    def read(self, value: Any) -> Answers:
        """As `read_answers`."""
        found = self._gathered(value)
        by_path = {path: _read_one(found.by_path.get(path, ()), leaf) for path, leaf in self._asked}
        return Answers(by_path, sorted(found.extra))


@dataclass(slots=True)
class _Found:
    by_path: dict[str, list[Any]] = field(default_factory=dict)
    extra: set[str] = field(default_factory=set)


def names_of(asked: Sequence[tuple[str, Criterion]]) -> dict[str, str]:
    """Every name under which a reply may answer a leaf, as a slug, to the leaf's path."""
    return _names_of(tuple((path, leaf.id, leaf.name) for path, leaf in asked))


@lru_cache(maxsize=64)
def _names_of(asked: tuple[tuple[str, str, str], ...]) -> dict[str, str]:
    """Every way to name a leaf, folded, to its path. An ambiguous name names nothing."""
    names: dict[str, str] = {}
    ambiguous: set[str] = set()
    for path, own_id, own_name in asked:
        for name in {slug(path), slug(own_id), slug(own_name), slug(path.replace("/", " "))}:
            if names.get(name, path) != path:
                ambiguous.add(name)
            names[name] = path
    exact = {slug(path): path for path, _, _ in asked}
    return {n: p for n, p in names.items() if n not in ambiguous} | exact


def _collect(value: Any, names: dict[str, str], parents: tuple[str, ...] = ()) -> _Found:
    found = _Found()
    if len(parents) > 4:
        return found
    for name, raw in _pairs(value):
        parts = (*parents, name)
        path = _named(parts, names) if parents else names.get(slug(name))
        if path is not None:
            found.by_path.setdefault(path, []).append(raw)
            continue
        values = raw.values if isinstance(raw, Doubled) else (raw,)
        inner = [_collect(v, names, parts) for v in values if isinstance(v, dict | list)]
        for key in dict.fromkeys(key for one in inner for key in one.by_path):
            raws = [raw for one in inner for raw in one.by_path.get(key, ())]
            doubled = sum(key in one.by_path for one in inner) > 1
            found.by_path.setdefault(key, []).extend([Doubled(tuple(raws))] if doubled else raws)
        spoken = [one for one in inner if one.by_path]
        found.extra |= {name for one in spoken for name in one.extra} if spoken else {name}
    return found


def _named(parts: tuple[str, ...], names: dict[str, str]) -> str | None:
    """The path that the whole chain of names stands for, or else the longest end of it."""
    ends = (names.get(slug(" ".join(parts[i:]))) for i in range(len(parts)))
    return next((path for path in ends if path is not None), None)


def _pairs(value: Any) -> list[tuple[str, Any]]:
    if isinstance(value, dict):
        own = _own_name(value)
        return [(own, value)] if own is not None else [(str(k), v) for k, v in value.items()]
    if isinstance(value, list):
        return [pair for item in value if isinstance(item, dict | list) for pair in _pairs(item)]
    return []


def _own_name(value: dict[Any, Any]) -> str | None:
    """The criterion an object speaks of, when it says so and holds a label."""
    said = [k for k in LABEL_KEYS if k in value and not _is_rubric(k, value[k])]
    if all(isinstance(value[k], dict) for k in said):
        return None
    name = next((value[k] for k in NAME_KEYS if isinstance(value.get(k), str)), None)
    return name if isinstance(name, str) else None


def _label_of(raw: Any) -> Any:
    """The label inside an answer, or None. A list of accepted values is a rubric, no answer."""
    if isinstance(raw, dict):
        masses = raw.get("probabilities")
        return next(iter(_said_in(raw)), masses if isinstance(masses, dict) else None)
    return None if isinstance(raw, list) else raw


def _any_attempt(raws: Sequence[Any]) -> bool:
    return any(map(_is_attempt, raws))


def _is_attempt(raw: Any) -> bool:
    """Not a list of levels, a description with levels, or a piece of a schema."""
    if isinstance(raw, Doubled):
        return _any_attempt(raw.values)
    if raw is None or _label_of(raw) is not None:
        return True
    if not isinstance(raw, dict) or any(_is_rubric(k, raw.get(k)) for k in raw):
        return False
    return any(k in raw for k in (*LABEL_KEYS, *REASON_KEYS))


def _said_in(raw: dict[Any, Any]) -> list[Any]:
    """Everything that stands under a key for labels, the plainest key first."""
    said = [raw[k] for k in LABEL_KEYS if k in raw and not _is_rubric(k, raw[k])]
    if said and isinstance(said[0], _NESTED):
        return []
    return [one for one in said if not isinstance(one, _NESTED)]


def _is_rubric(key: str, value: Any) -> bool:
    return key == "accepted_values" and isinstance(value, list)


def _read_one(raws: Sequence[Any], leaf: Criterion) -> Answer | NoAnswer:
    read = [one for raw in raws if (one := _read_raw(raw, leaf)) is not None]
    if not read:
        return NoAnswer("unscored:missing", "the reply does not answer this criterion")
    if len(read) == 1:
        return read[0]
    labels = {(a.label, a.not_applicable, a.value) for a in read if isinstance(a, Answer)}
    if len(labels) > 1:
        return _TWICE
    contradicted = any(one is _TWICE for one in read)
    return _TWICE if contradicted else next((a for a in read if isinstance(a, Answer)), read[-1])


def _read_raw(raw: Any, leaf: Criterion) -> Answer | NoAnswer | None:
    """None where `raw` says nothing, that is where `_label_of` finds no label."""
    if isinstance(raw, Doubled):
        return _agreed([_read_raw(value, leaf) for value in raw.values])
    if not isinstance(raw, dict):
        said = _label_of(raw)
        return None if said is None else answer_of(said, leaf)
    found, masses = _said_in(raw), raw.get("probabilities")
    said = found[0] if found else None
    if isinstance(masses, Doubled):
        return _TWICE
    if isinstance(masses, dict) and (not found or said is not None):
        return _both(masses, found, leaf, _reason_in(raw))
    if said is None:
        return None
    if len(found) > 1 and len(_readable(found, leaf)) > 1:  # {"label": "good", "rating": "poor"}
        return _TWICE
    return answer_of(said, leaf, _reason_in(raw))


def _agreed(read: Sequence[Answer | NoAnswer | None]) -> Answer | NoAnswer | None:
    """What a key with several values says: their one answer, where all of them give it."""
    said = {(a.label, a.not_applicable, a.value) if isinstance(a, Answer) else None for a in read}
    if not any(read):
        return None
    return read[0] if len(said) == 1 and None not in said else _TWICE


def _reason_in(raw: dict[Any, Any]) -> str | None:
    for key in REASON_KEYS:
        if isinstance(text := raw.get(key), str):
            return text[:4000]
    return None


def _readable(found: list[Any], leaf: Criterion) -> set[str | None]:
    """The different accepted values among what stands under the keys for labels."""
    read = [answer_of(one, leaf) for one in found if one is not None]
    return {one.label for one in read if isinstance(one, Answer)}


def _both(
    said: dict[Any, Any], labels: list[Any], leaf: Criterion, explanation: str | None
) -> Answer | NoAnswer:
    """Probabilities, and where labels stand beside them no level may be likelier than one."""
    answer = from_probabilities(said, leaf, explanation)
    if isinstance(answer, Answer) and answer.probabilities:
        masses = answer.probabilities
        likeliest = max(masses.values())
        if any(masses.get(label or "", 0.0) < likeliest for label in _readable(labels, leaf)):
            return _TWICE
    return answer


def answer_of(said: Any, leaf: Criterion, explanation: str | None = None) -> Answer | NoAnswer:
    """What one label, as it stands in a reply, says of a leaf."""
    if isinstance(said, Doubled):
        return _agreed([answer_of(value, leaf, explanation) for value in said.values]) or _TWICE
    if leaf.scale == "numeric":
        return _from_number(said, leaf, explanation)
    label = read_label(said, leaf.accepted_values, allow_na=leaf.allow_na)
    if label is None:
        shown = repr(said)[:80]
        return NoAnswer("unscored:off_scale", f"{shown} is none of the accepted values")
    if label.not_applicable or label.value is None:
        return Answer(None, None, label.match, explanation, not_applicable=True)
    return Answer(label.value, leaf.value_of(label.value), label.match, explanation)


def _from_number(said: Any, leaf: Criterion, explanation: str | None) -> Answer | NoAnswer:
    if leaf.allow_na and read_label(said, (), allow_na=True):
        return Answer(None, None, "exact", explanation, not_applicable=True)
    if leaf.numeric_range is None:
        raise ReplyError(f"criterion {leaf.id!r} is numeric but has no range")
    worst, best = leaf.numeric_range
    top = max(worst, best)
    number = _number_said(said, top)
    if number is None or not min(worst, best) <= number <= top:
        shown = repr(said)[:80]
        return NoAnswer("unscored:off_scale", f"{shown} is no number from {worst:g} to {best:g}")
    match: Match = "tolerant" if isinstance(said, str) else "exact"
    value = (number - worst) / (best - worst) if leaf.ordered else None
    return Answer(f"{number:g}", value, match, explanation)


def _number_said(said: Any, top: float) -> int | float | None:
    """A number, also as text; one over a denominator only where that is the top of the range."""
    if isinstance(said, int | float) and not isinstance(said, bool):
        return said
    stated = stated_number(fold(said)) if isinstance(said, str) else None
    known = stated is not None and stated.top in (None, top)
    return stated.number if stated is not None and known else None


def from_probabilities(
    raw: dict[Any, Any], leaf: Criterion, explanation: str | None
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
