"""Samples in the logs of other tools: the record of a run, with its scores."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.fields import Context, RunDraft, is_missing, number_of, shorten
from agenteval.readers.formats import recognise
from agenteval.readers.strict_json import Notes
from agenteval.records.base import content_hash

_INFINITE = ("Infinity", "-Infinity", math.inf, -math.inf)


@dataclass(frozen=True)
class LoggedSample:
    """One recorded execution of a system.

    `record` has the run under names known to `fields`. `run` and `repeat` identify the rating.
    `scores` has fields of ratings by criterion (see `rating`, `failed`). `why` is the reason why a
    criterion of other samples is missing, or None if the sample was not scored on it. `note` is for
    people who read the run, and `extra` has more fields of its ratings.
    """

    place: str
    run: str
    repeat: int
    system: str | None
    record: dict[str, Any]
    scores: dict[str, dict[str, Any]]
    why: str | None = None
    note: str = ""
    extra: Mapping[str, Any] = field(default_factory=dict)


def failed(message: str) -> dict[str, Any]:
    """Return the fields of a failed rating."""
    return {"status": "unscored:missing", "message": message}


def rating(
    value: Any,
    explanation: Any = None,
    *,
    why: Any = None,
    words: Mapping[str, float] | None = None,
) -> dict[str, Any]:
    """Return the fields of a rating from a scorer's boolean, number or word.

    A number from 0 to 1 is a value; any other number is a label, which needs criteria with a range.
    A word is a label unless it is in `words` or a verdict. A missing value or NaN is a Failure with
    the reason `why`.
    """
    if is_missing(value):
        return failed(": ".join(str(part) for part in (why, explanation) if part) or "no value")
    if not isinstance(value, (bool, int, float, str)) or value in _INFINITE:
        return {**failed(f"no value of a scale: {shorten(value)}"), "status": "unscored:off_scale"}
    fields: dict[str, Any] = {}
    if isinstance(value, bool):
        fields = {"label": str(value).lower(), "value": float(value)}
    else:
        text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
        fields["label"] = text
        number = (words or {}).get(text, number_of(text))
        if number is not None and 0 <= number <= 1:
            fields["value"] = number
    if isinstance(explanation, str) and explanation:
        fields["explanation"] = explanation
    return fields


def rating_rows(samples: Iterable[LoggedSample], name: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield location and fields of a rating for each sample and each criterion in the log.

    The case is the input, as for runs, so that ratings of several systems are paired; the text is
    the system's output in all turns. A missing criterion is a Failure. A failed scorer that has
    several criteria elsewhere in the log fails on each of them. Raises InputError if no sample has
    a score.
    """
    rows: list[tuple[LoggedSample, dict[str, str]]] = []
    for sample in samples:
        form = recognise(sample.record)
        run = form.to_draft(sample.record, Context(sample.place, Notes())) if form else RunDraft()
        turns = [m.content for m in run.messages if m.role == "assistant"]
        case = content_hash(run.input) if run.input else sample.run
        fields = {"case": case, "text": "\n".join([*turns, run.output]), **sample.extra}
        rows.append((replace(sample, record={}), fields))
    scores = [item for sample, _ in rows for item in sample.scores.items()]
    rated = {criterion for criterion, score in scores if "status" not in score}
    of_parts = {criterion.rpartition("/")[0] for criterion in rated} - rated
    criteria = [c for c in dict.fromkeys(criterion for criterion, _ in scores) if c not in of_parts]
    if not criteria:
        why = next((sample.why for sample, _ in rows if sample.why), "none was scored")
        raise InputError(f"none of its {len(rows)} samples has a score: {why}", name)
    for sample, fields in rows:
        about = {"run": sample.run, "system": sample.system, "repeat": sample.repeat}
        for criterion in criteria:
            score = sample.scores.get(criterion)
            if score is None and (scorer := criterion.rpartition("/")[0]) in of_parts:
                score = sample.scores.get(scorer)
            if score is None and sample.why is not None:
                score = failed(sample.why)
            if score is not None:
                yield sample.place, {**about, "criterion": criterion, **fields, **score}
