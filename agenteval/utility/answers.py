"""Read one answer per criterion from a parsed reply, in any of the shapes that judges produce.

Accepted shapes: {criterion: label}, {criterion: {label, explanation}}, a list of objects that
contain the criterion's name, any of these wrapped once ({"ratings": ...}), and for a single
criterion {label, explanation} alone. If a reply states a `max_score`, its levels count only if that
is the top of the scale. Answers for criteria that were not requested are listed but never used.
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
from agenteval.records.rubric import rubric_total
from agenteval.utility.labels import Match, fold, read_label, reply_words, stated_number

_KEYS = reply_words("judge")
LABEL_KEYS, REASON_KEYS = _KEYS["labels"], _KEYS["reasons"]
NAME_KEYS, TOP_KEYS, _WRAPPERS = _KEYS["names"], _KEYS["tops"], _KEYS["wrappers"]
_BESIDE = frozenset((*LABEL_KEYS, *REASON_KEYS, *NAME_KEYS, *TOP_KEYS, *_KEYS["beside"]))
_AFFIXES = re.compile(
    r"(?:score|rating|grade|label|level)-(?:for|of|on)-(?:the-)?(?P<behind>.+)"
    r"|(?P<before>.+)-(?:score|rating|grade|label|level)"
)
_MOST_DEPTH = 4


@dataclass(frozen=True, slots=True)
class LevelAnswer:
    """A readable answer for one leaf criterion. `value` is None for N/A and nominal labels.

    Two answers are equal if they mean the same, even if they are written differently.
    """

    label: str | None
    value: float | None
    match: Match = field(compare=False)
    explanation: str | None = field(default=None, compare=False)
    probabilities: dict[str, float] | None = field(default=None, compare=False)
    not_applicable: bool = False
    evidence: dict[str, JsonValue] = field(default_factory=dict, compare=False)


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """The reason why a leaf criterion has no answer."""

    status: FailureStatus
    message: str


MISSING = NoAnswer("unscored:missing", "the reply does not answer this criterion")
TWICE = NoAnswer("unscored:parse", "the reply answers this criterion twice, differently")


@dataclass(slots=True)
class Answers:
    """An answer or NoAnswer by leaf path, and the names of criteria that were not requested."""

    by_path: dict[str, LevelAnswer | NoAnswer] = field(default_factory=dict)
    extra: list[str] = field(default_factory=list)

    def missing(self) -> list[str]:
        """Return the paths without a readable answer."""
        return [p for p, a in self.by_path.items() if isinstance(a, NoAnswer)]

    @property
    def all_answered(self) -> bool:
        """Whether every criterion has a readable answer."""
        return not self.missing()


def leaves_of(criteria: Sequence[Criterion]) -> list[tuple[str, Criterion]]:
    """Return (path, leaf) for each undivided criterion and each sub-criterion `parent/child`."""
    return [leaf for criterion in criteria for leaf in criterion.leaves()]


def read_answers(value: Any, criteria: Sequence[Criterion]) -> Answers:
    """Return an answer or NoAnswer per leaf of `criteria`; malformed content does not raise."""
    leaves = leaves_of(criteria)
    by_path, extra = _statements(value, leaves)
    return Answers({p: _read_all(by_path.get(p, ()), leaf) for p, leaf in leaves}, sorted(extra))


def speaks_of(value: Any, criteria: Sequence[Criterion]) -> bool:
    """Return whether the value answers a criterion, rather than only describing it.

    An explanation without a label counts, and so does a null label: both are empty answers.
    """
    by_path, _ = _statements(value, leaves_of(criteria))
    return any(_is_attempt(raw) for raws in by_path.values() for raw in raws)


def _statements(
    value: Any, asked: Sequence[tuple[str, Criterion]]
) -> tuple[dict[str, list[Any]], set[str]]:
    """Return all statements in a value by path, and the names that match no path."""
    names = names_of(asked)
    by_path, extra = _gather(value, names)
    if len(asked) == 1 and (verdict := _verdict(value, names, *asked[0])) is not None:
        by_path.setdefault(asked[0][0], []).append(verdict)
    return by_path, extra


def _verdict(value: Any, names: Mapping[str, str], path: str, leaf: Criterion) -> Any:
    """Return a statement that does not name the only criterion, or None if it may be about another
    criterion."""
    if isinstance(value, list):
        verdicts = [_verdict(item, names, path, leaf) for item in value]
        if not verdicts or None in verdicts:
            return None
        return verdicts[0] if len(verdicts) == 1 else Doubled(tuple(verdicts))
    if not isinstance(value, dict):
        return None
    keyed = _keyed(value)
    stated = [keyed[key] for key in NAME_KEYS if isinstance(keyed.get(key), str)]
    if any(path_of(name, names) != path for name in stated):
        return None
    if any(_is_about_another(key, other, names, path, leaf) for key, other in keyed.items()):
        return None
    if _labels_in(keyed):
        return keyed
    inner = [keyed[key] for key in _WRAPPERS if isinstance(keyed.get(key), dict | list)]
    if len(inner) != 1:
        return None
    return _verdict(_over(inner[0], _top_of(keyed)), names, path, leaf)


def _is_about_another(
    key: str, value: Any, names: Mapping[str, str], path: str, leaf: Criterion
) -> bool:
    """Whether an entry next to a verdict may answer a criterion that was not requested."""
    if key in _BESIDE or path_of(key, names) == path:
        return False
    if not isinstance(value, dict | list):
        return isinstance(answer_of(value, leaf), LevelAnswer)
    items = value if isinstance(value, list) else [value]
    labelled = any(isinstance(item, dict) and _labels_in(_keyed(item)) for item in items)
    return key not in _WRAPPERS and labelled


# ---------------------------------------------------------------- names of criteria


def names_of(asked: Sequence[tuple[str, Criterion]]) -> dict[str, str]:
    """Map every name (as a slug) that a reply may use for a leaf to the leaf's path."""
    return _names_of(tuple((path, leaf.id, leaf.name) for path, leaf in asked))


@lru_cache(maxsize=64)
def _names_of(asked: tuple[tuple[str, str, str], ...]) -> dict[str, str]:
    paths: dict[str, set[str]] = {}
    for path, *names in asked:
        for name in (path, path.replace("/", " "), *names):
            paths.setdefault(slug(name), set()).add(path)
    unique = {name: path for name, (path, *more) in paths.items() if not more}
    return unique | {slug(path): path for path, _, _ in asked}  # an ambiguous name is ignored


def path_of(name: str, names: Mapping[str, str]) -> str | None:
    """Return the path for a name; "clarity score" and "score for clarity" are also recognised."""
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
    """Return the values by path, and the names that match no path. `top` is as in `_over`."""
    by_path: dict[str, list[Any]] = {}
    extra: set[str] = set()
    if isinstance(value, dict):
        top = _top_of({k: v for k, v in _keyed(value).items() if slug(k) not in names}) or top
    for name, raw in _pairs(value) if len(parents) <= _MOST_DEPTH else ():
        chain = (*parents, name)
        # the path that matches the whole chain of names, or else its longest suffix
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
    """Yield (name, value) from an object, a list of objects, or an object with a name field."""
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


# ---------------------------------------------------------------- reading one value


def _keyed(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Normalise the keys of an object: "Final Score" becomes final_score."""
    keyed: dict[str, Any] = {}
    for key, item in value.items():
        name = re.sub(r"[\s-]+", "_", str(key).strip().casefold())
        keyed[name] = Doubled((keyed[name], item)) if name in keyed else item
    return keyed


def _top_of(keyed: Mapping[str, Any]) -> float | None:
    """Return the top of the scale that an object states along with its levels."""
    for stated in (keyed[key] for key in TOP_KEYS if key in keyed):
        numbers = re.findall(r"(?<![\w.])\d+(?:\.\d+)?", str(stated)[:60])
        if numbers and not isinstance(stated, bool):
            return max(map(float, numbers))
    return None


def _over(raw: Any, top: float | None) -> Any:
    """Return the value, with "/top" appended to plain numbers."""
    if isinstance(raw, dict) and top is not None:
        return {"out_of": top} | raw
    if isinstance(raw, Doubled):
        return Doubled(tuple(_over(value, top) for value in raw.values))
    number = isinstance(raw, int | float) and not isinstance(raw, bool)
    if top is None or not (number or (isinstance(raw, str) and stated_number(fold(raw)))):
        return raw
    text = str(raw).strip()
    return text if "/" in text or " " in text or "%" in text else f"{text}/{top:g}"


def _is_rubric(key: str, value: Any) -> bool:
    return key == "accepted_values" and isinstance(value, list)


def _is_attempt(raw: Any) -> bool:
    """Return whether the value is an answer, rather than a list of levels, a description with
    levels, or part of a schema."""
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
    """Return the values of all label keys, in order of preference; sentences come last."""
    labels = [raw[k] for k in LABEL_KEYS if k in raw and not _is_rubric(k, raw[k])]
    if labels and isinstance(labels[0], list | dict):
        return []
    top = _top_of(raw)
    labels = [_over(label, top) for label in labels if not isinstance(label, list | dict)]
    return sorted(labels, key=lambda label: isinstance(label, str) and label.count(" ") > 6)


def _read_all(raws: Sequence[Any], leaf: Criterion) -> LevelAnswer | NoAnswer:
    """Merge all statements about a leaf into one answer; unreadable ones do not contradict."""
    read = [answer for raw in raws if (answer := _read(raw, leaf)) is not None]
    answers = [answer for answer in read if isinstance(answer, LevelAnswer)]
    if len(read) > 1 and (TWICE in read or len(set(answers)) > 1):
        return TWICE
    return answers[0] if answers else read[-1] if read else MISSING


def _read(raw: Any, leaf: Criterion) -> LevelAnswer | NoAnswer | None:
    """Return the answer in `raw`, or None. A list of accepted values is a rubric, not an
    answer."""
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
    readable = {answer.label for answer in answers if isinstance(answer, LevelAnswer)}
    if isinstance(masses, Doubled):
        return TWICE
    if isinstance(masses, dict) and labels[:1] != [None]:
        answer = from_probabilities(masses, leaf, explanation)
        probability = (isinstance(answer, LevelAnswer) and answer.probabilities) or {}
        highest = max(probability.values(), default=0.0)
        less_likely = any(probability.get(label or "", 0.0) < highest for label in readable)
        return TWICE if less_likely else answer
    if not labels or labels[0] is None:
        return None
    return TWICE if len(readable) > 1 else answers[0]  # {"label": "good", "rating": "poor"}


def _agreed(read: Sequence[LevelAnswer | NoAnswer | None]) -> LevelAnswer | NoAnswer | None:
    """Return the answer that all values of a repeated key agree on, else TWICE."""
    if not any(read):
        return None
    agree = isinstance(read[0], LevelAnswer) and all(answer == read[0] for answer in read)
    return read[0] if agree else TWICE


def answer_of(raw: Any, leaf: Criterion, explanation: str | None = None) -> LevelAnswer | NoAnswer:
    """Return the answer for a leaf from one label of a reply."""
    if isinstance(raw, Doubled):
        return _agreed([answer_of(value, leaf, explanation) for value in raw.values]) or TWICE
    if leaf.scale == "numeric":
        return _from_number(raw, leaf, explanation)
    label = read_label(raw, leaf.accepted_values, na=leaf.na_label if leaf.allow_na else None)
    if label is None:
        shown = repr(raw)[:80]
        return NoAnswer("unscored:off_scale", f"{shown} is none of the accepted values")
    if label.value is None:
        return LevelAnswer(None, None, label.match, explanation, not_applicable=True)
    return LevelAnswer(label.value, leaf.value_of(label.value), label.match, explanation)


def _from_number(raw: Any, leaf: Criterion, explanation: str | None) -> LevelAnswer | NoAnswer:
    """Read a number or its text; a denominator must be the top of the range."""
    if leaf.allow_na and read_label(raw, (), na=leaf.na_label):
        return LevelAnswer(None, None, "exact", explanation, not_applicable=True)
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
    return LevelAnswer(f"{number:g}", value, match, explanation)


def from_probabilities(
    raw: Mapping[Any, Any], leaf: Criterion, explanation: str | None
) -> LevelAnswer | NoAnswer:
    """Return the most likely level and the expected value; probabilities must sum to 1."""
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
    return LevelAnswer(likely, leaf.expected_value(masses), "exact", explanation, masses)


# ---------------------------------------------------------------- results


def result_of(
    criterion: Criterion, key: CellKey, answer: LevelAnswer | NoAnswer, rung: str | None = None
) -> Result:
    """Return the Score or Failure of a criterion from its answer."""
    if isinstance(answer, NoAnswer):
        status, message = answer.status, answer.message
        return Failure(
            key=key, criterion_id=criterion.id, status=status, message=message, rung=rung
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
    criterion: Criterion,
    key: CellKey,
    answers: Mapping[str, LevelAnswer | NoAnswer],
    rung: str | None,
) -> Result:
    """Return the Score or Failure of a criterion from the answers by path.

    A criterion with parts is scored by the mean or minimum of the applicable parts. If a part has
    no answer, the criterion is unscored: the other parts are not a fair sample.
    """
    answer = _aggregated(criterion, answers) if criterion.sub_criteria else answers[criterion.id]
    return result_of(criterion, key, answer, rung)


def combined(criterion: Criterion, values: Mapping[str, float | None]) -> float | None:
    """Combine the values of parts by path into the value of the criterion. Parts that do not apply
    or have no value are None; returns None if all are."""
    if criterion.is_rubric:
        leaves = [(leaf.weight or 0.0, values[path]) for path, leaf in criterion.leaves()]
        met = [None if v is None else 1 - v if w < 0 else v for w, v in leaves]
        return rubric_total([weight for weight, _ in leaves], met)
    applying = [value for value in values.values() if value is not None]
    if applying and criterion.aggregation == "mean":
        return fsum(applying) / len(applying)
    return min(applying, default=None)


def _aggregated(
    criterion: Criterion, answers: Mapping[str, LevelAnswer | NoAnswer]
) -> LevelAnswer | NoAnswer:
    parts: dict[str, LevelAnswer] = {}
    labels, masses = dict[str, JsonValue](), dict[str, JsonValue]()
    for path, leaf in criterion.leaves():
        part = answers[path]
        if isinstance(part, NoAnswer):
            return NoAnswer(part.status, f"{path}: {part.message}")
        parts[path] = part
        labels[path] = leaf.na_label if part.not_applicable else part.label
        if labels[path] is None and part.value is not None and leaf.weight is not None:
            labels[path] = f"{part.value:g}"  # an item with only a number
        if part.probabilities:
            masses[path] = {**part.probabilities}
    for path, leaf in criterion.leaves():
        if not leaf.ordered:  # an unknown rank must not enter a mean
            why = f"the levels of its part {path} have no known order"
            return NoAnswer("unscored:unsupported", why)
    evidence: dict[str, JsonValue] = {"parts": labels}
    if masses:
        evidence["probabilities"] = masses
    reasons = [f"{path}: {a.explanation}" for path, a in parts.items() if a.explanation]
    value = combined(criterion, {path: a.value for path, a in parts.items()})
    return LevelAnswer(
        None,
        value,
        "exact" if all(a.match == "exact" for a in parts.values()) else "tolerant",
        "\n".join(reasons) or None,
        not_applicable=value is None,
        evidence=evidence,
    )
