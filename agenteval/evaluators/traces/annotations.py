"""Annotations and predictions in TRAIL's layout: one JSON object per trace, read leniently.

::

    {"trace_id": ..., "errors": [{"category", "location", "evidence", "description", "impact"}],
     "scores": [{"reliability_score", "reliability_reasoning", ..., "overall"}]}

People and models write these by hand, so nearly everything may be wrong. What can be understood
is kept and the defect told as a warning with its place; what cannot becomes a status, never an
empty list of errors. The raw text is kept, because the official scorer reads less than this does.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.errors import ReplyError
from agenteval.evaluators.traces.taxonomy import Taxonomy, built_in
from agenteval.models.reply import parse_reply
from agenteval.models.wire import printable
from agenteval.records import GRADES, Finding, Findings, Grade, Impact, Rejected

OVERALL = "overall"
LOWEST, HIGHEST = 0.0, 5.0  # grades: prompts of the data set say 0 to 5, its guide 1 to 5

_FIELDS = ("category", "location", "evidence", "description", "impact", "confidence", "source")
_NEEDED = ("category", "location")
_SAID = 2000  # characters kept of what was not taken
_NOT_FINITE = re.compile(r"(?<=[:\[,])\s*-?(?:NaN|Infinity)\b")
_IMPACTS: dict[str, Impact] = {"HIGH": "HIGH", "MEDIUM": "MEDIUM", "LOW": "LOW"}


@dataclass(frozen=True)
class Annotation:
    """What one file says of one trace.

    `name` is the file name without its suffix, `text` the raw text (what the official scorer
    reads). Where nothing could be read `findings.status` is "unscored:parse".
    """

    name: str
    findings: Findings
    text: str
    warnings: tuple[str, ...] = ()

    @property
    def trace(self) -> str:
        """Id of the trace: the field `trace_id`, else the file name."""
        return self.findings.trace


def read_annotation(text: str, name: str, taxonomy: Taxonomy | None = None) -> Annotation:
    """Annotation of one text, whatever its state; nothing is raised.

    Categories that `taxonomy` (default: the built-in one) knows get the name of their leaf, others
    stay as written. An error that names several locations becomes one finding for each. Grades
    outside 0 to 5 or not finite have no value.
    """
    try:
        return _annotation(text, name, taxonomy or built_in())
    except RecursionError:
        return _unread(name, name, text, "nested too deeply", [])


def official_object(findings: Findings, *, extra: bool = False) -> dict[str, Any]:
    """`findings` as an object of the official layout, ready for JSON.

    `extra` adds what the layout has no place for: confidence and source of each finding. Grades
    without a value are left out. Raises ValueError for findings with a status: in this layout
    "not known" would look like "no errors".
    """
    if findings.status is not None:
        raise ValueError(f"{findings.trace}: {findings.status}, there are no findings to write")
    errors = []
    for finding in findings.findings:
        error: dict[str, Any] = {"category": finding.category, "location": finding.span}
        error |= {"evidence": finding.evidence, "description": finding.description}
        error |= {"impact": finding.impact} if finding.impact else {}
        if extra:
            error |= {} if finding.confidence is None else {"confidence": finding.confidence}
            error |= {"source": finding.source} if finding.source else {}
        errors.append(error)
    scores: dict[str, Any] = {}
    for name in GRADES:
        grade = findings.grades.get(name)
        if grade is not None and grade.value is not None:
            scores[f"{name}_score"] = grade.value
            scores[f"{name}_reasoning"] = grade.reason
    overall = findings.grades.get(OVERALL)
    if overall is not None and overall.value is not None:
        scores[OVERALL] = overall.value
    return {
        "trace_id": findings.trace,
        "errors": errors,
        "scores": [scores] if scores else [],
    }


def official_text(findings: Findings, *, extra: bool = False) -> str:
    """Text of a file in the official layout; of findings with a status, words that no reader
    takes for a list of errors, so that a failure stays one."""
    if findings.status is not None:
        return f"{findings.status}. No output generated.\n"
    return json.dumps(official_object(findings, extra=extra), ensure_ascii=False, indent=1) + "\n"


def _annotation(text: str, name: str, taxonomy: Taxonomy) -> Annotation:
    notes: list[str] = []
    try:
        value = _value(text, notes)
    except ReplyError as error:
        return _unread(name, name, text, str(error), notes)
    if isinstance(value, list):
        notes.append("a bare list, read as the errors")
        value = {"errors": value}
    trace = _trace_id(value, name, notes)
    errors = value.get("errors")
    if isinstance(errors, dict) and errors:
        notes.append("errors: one object instead of a list")
        errors = [errors]
    grades = _grades(value.get("scores"), notes)
    if not isinstance(errors, list):
        unread = _unread(trace, name, text, "no list of errors", notes)
        return Annotation(
            name, unread.findings.model_copy(update={"grades": grades}), text, unread.warnings
        )
    found, rejected = _findings(errors, taxonomy, notes)
    findings = Findings(trace=trace, findings=found, grades=grades, rejected=rejected)
    return Annotation(name, findings, text, tuple(notes))


def _unread(trace: str, name: str, text: str, why: str, notes: list[str]) -> Annotation:
    findings = Findings(trace=trace, status="unscored:parse", message=why)
    return Annotation(name, findings, text, (*notes, f"unreadable: {why}"))


def _value(text: str, notes: list[str]) -> Any:
    """The object or list of the text. Raises ReplyError."""
    try:
        value = json.loads(text.lstrip("\ufeff"))
    except (ValueError, RecursionError):
        parsed = parse_reply(_NOT_FINITE.sub(" null", text), _is_annotation)
        notes.append(f"not strict JSON ({parsed.rung})")
        return parsed.value
    if not _is_annotation(value):
        raise ReplyError("JSON, but neither errors nor scores in it")
    return value


def _is_annotation(value: Any) -> bool:
    if isinstance(value, dict):
        return "errors" in value or "scores" in value
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(entry, dict) and "category" in entry for entry in value)


def _trace_id(value: Mapping[str, Any], name: str, notes: list[str]) -> str:
    stated = value.get("trace_id")
    if stated is None:
        return name
    if not isinstance(stated, str) or not stated.strip() or not stated.isprintable():
        notes.append("trace_id is no text; the file name stands in its place")
        return name
    if stated.strip() != name:
        notes.append(f"trace_id {stated.strip()!r} is not the file name {name!r}")
    return stated.strip()


def _findings(
    errors: list[Any], labels: Taxonomy, notes: list[str]
) -> tuple[tuple[Finding, ...], tuple[Rejected, ...]]:
    findings: list[Finding] = []
    rejected: list[Rejected] = []
    for number, error in enumerate(errors, 1):
        place = f"error {number}"
        if not isinstance(error, dict) or not error:
            rejected.append(Rejected(why=f"{place} is no object", said=_text(error)[:_SAID]))
            notes.append(rejected[-1].why)
            continue
        fields = _fields(error, place, notes)
        category = _category(fields.get("category"), labels, place, notes)
        locations = _locations(fields.get("location"), place, notes)
        if not category and locations == [""]:
            rejected.append(
                Rejected(why=f"{place}: no category, no place", said=_text(error)[:_SAID])
            )
            continue
        rest = _rest(fields, place, notes)
        findings += [Finding(span=span, category=category, **rest) for span in locations]
    return tuple(findings), tuple(rejected)


def _fields(error: Mapping[str, Any], place: str, notes: list[str]) -> dict[str, Any]:
    """Values under the proper keys; a key in other spelling counts where the proper is absent."""
    fields = {key: error[key] for key in _FIELDS if key in error}
    for key, value in error.items():
        if key in _FIELDS:
            continue
        near = difflib.get_close_matches(key.strip().casefold(), _FIELDS, n=1, cutoff=0.8)
        if near and near[0] not in fields:
            fields[near[0]] = value
            notes.append(f"{place}: key {key!r} read as {near[0]}")
        else:
            notes.append(f"{place}: unknown key {key!r}")
    notes += [f"{place}: no {key}" for key in _NEEDED if key not in fields]
    return fields


def _category(value: Any, labels: Taxonomy, place: str, notes: list[str]) -> str:
    text = _text(value).strip()
    leaf = labels.find(text) if text else None
    if leaf is not None:
        return leaf.name
    if text:
        close = difflib.get_close_matches(text, [one.name for one in labels.leaves], n=1)
        hint = f"; meant is perhaps {close[0]!r}" if close else ""
        notes.append(f"{place}: unknown category {text!r}{hint}")
    return text


def _locations(value: Any, place: str, notes: list[str]) -> list[str]:
    if isinstance(value, list):
        notes.append(f"{place}: {len(value)} locations")
        return [_text(entry).strip() for entry in value] or [""]
    text = _text(value).strip()
    if any(c.isspace() for c in text):
        notes.append(f"{place}: location {text[:80]!r} is no span id")
    return [text]


def _rest(fields: Mapping[str, Any], place: str, notes: list[str]) -> dict[str, Any]:
    impact = _text(fields.get("impact")).strip().upper()
    if impact and impact not in _IMPACTS:
        notes.append(f"{place}: impact {impact[:80]!r} is not HIGH, MEDIUM or LOW")
    confidence = to_number(fields.get("confidence"))
    if confidence is not None and not 0 <= confidence <= 1:
        notes.append(f"{place}: confidence {confidence:g} is not within 0 and 1")
        confidence = None
    return {
        "evidence": _text(fields.get("evidence")),
        "description": _text(fields.get("description")),
        "impact": _IMPACTS.get(impact),
        "confidence": confidence,
        "source": _text(fields.get("source")),
    }


def _grades(scores: Any, notes: list[str]) -> dict[str, Grade]:
    if isinstance(scores, list) and scores:
        if len(scores) > 1:
            notes.append(f"{len(scores)} objects of scores; the first counts")
        scores = scores[0]
    if not scores:
        return {}
    if not isinstance(scores, dict):
        notes.append("scores is no object")
        return {}
    grades = {}
    for name in (*GRADES, OVERALL):
        key = name if name == OVERALL else f"{name}_score"
        if key in scores:
            reason = _text(scores.get(f"{name}_reasoning"))
            grades[name] = Grade(value=_grade(scores[key], key, notes), reason=reason)
    return grades


def _grade(value: Any, key: str, notes: list[str]) -> float | None:
    number = to_number(value)
    if number is None:
        notes.append(f"{key}: {_text(value)[:80]!r} is no number")
    elif not LOWEST <= number <= HIGHEST:
        notes.append(f"{key}: {number:g} is not within {LOWEST:g} and {HIGHEST:g}")
        return None
    return number


def to_number(value: Any) -> float | None:
    """A finite number, given as one or as its text; None otherwise."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return printable(value)
    return printable(json.dumps(value, ensure_ascii=False))
