"""Annotations and predictions in TRAIL's layout: one JSON object per trace, read leniently.

::

    {"trace_id": ..., "errors": [{"category", "location", "evidence", "description", "impact"}],
     "scores": [{"reliability_score", "reliability_reasoning", ..., "overall"}]}

People and models write these files, so nearly everything in them may be wrong. A text that can be
understood is read, with a warning for each defect. Any other text becomes a status, never an empty
list of errors. The raw text is kept, because the official scorer reads less than this reader.
"""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.errors import InputError, ReplyError
from agenteval.files import file_in, read_bytes, refuse_other_kinds, write_atomically
from agenteval.models.reply import parse_reply
from agenteval.models.wire import printable
from agenteval.readers.source_files import find
from agenteval.records import GRADES, Finding, Findings, Grade, Impact, Rejected
from agenteval.text import did_you_mean
from agenteval.traces.taxonomy import Taxonomy, built_in

OVERALL = "overall"

_GRADE_KEYS = {**{name: f"{name}_score" for name in GRADES}, OVERALL: OVERALL}
_FIELDS = ("category", "location", "evidence", "description", "impact", "confidence", "source")
_MAX_REJECTED = 2000  # characters
_NOT_FINITE = re.compile(r"(?<=[:\[,])\s*-?(?:NaN|Infinity)\b")
IMPACTS: dict[str, Impact] = {"HIGH": "HIGH", "MEDIUM": "MEDIUM", "LOW": "LOW"}


@dataclass(frozen=True)
class Annotation:
    """The annotation of one trace.

    `name` is the file name without its suffix, `text` the raw text for the official scorer. If
    nothing could be read, `findings.status` is "unscored:parse".
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
    """Read an annotation from any text; never raises.

    Categories in `taxonomy` (default: the built-in one) get the name of their leaf; others stay as
    written. An error with several locations becomes one finding per location. Grades that are not
    finite or outside 0 to 5 have no value.
    """
    try:
        return _AnnotationReader(taxonomy or built_in()).annotation(text, name)
    except RecursionError:
        return _unread(name, text, "nested too deeply")


def official_object(findings: Findings, *, extra: bool = False) -> dict[str, Any]:
    """Return `findings` as a JSON object in the official layout.

    `extra` adds confidence and source of each finding, which the layout does not have. Grades
    without a value are left out. Raises ValueError for findings with a status: in this layout they
    would look like "no errors".
    """
    if findings.status is not None:
        raise ValueError(f"{findings.trace}: {findings.status}, so there are no findings to write")
    errors = []
    for finding in findings.findings:
        more = ("impact", "confidence", "source") if extra else ("impact",)
        optional = {key: getattr(finding, key) for key in more}
        errors.append(
            {
                "category": finding.category,
                "location": finding.span,
                "evidence": finding.evidence,
                "description": finding.description,
                **{key: value for key, value in optional.items() if value not in (None, "")},
            }
        )
    scores: dict[str, Any] = {}
    for name, key in _GRADE_KEYS.items():
        grade = findings.grades.get(name)
        if grade is not None and grade.value is not None:
            scores[key] = grade.value
            scores |= {} if name == OVERALL else {f"{name}_reasoning": grade.reason}
    return {"trace_id": findings.trace, "errors": errors, "scores": [scores] if scores else []}


def official_text(findings: Findings, *, extra: bool = False) -> str:
    """Return the text of a file in the official layout.

    Findings with a status become a sentence that cannot be read as a list of errors.
    """
    if findings.status is not None:
        return f"{findings.status}. No output generated.\n"
    return json.dumps(official_object(findings, extra=extra), ensure_ascii=False, indent=1) + "\n"


def _unread(name: str, text: str, why: str, notes: Sequence[str] = ()) -> Annotation:
    findings = Findings(trace=name, status="unscored:parse", message=why)
    return Annotation(name, findings, text, (*notes, f"unreadable: {why}"))


def _is_annotation(value: Any) -> bool:
    if isinstance(value, dict):
        return "errors" in value or "scores" in value
    if not isinstance(value, list) or not value:
        return False
    return all(isinstance(entry, dict) and "category" in entry for entry in value)


class _AnnotationReader:
    """Reads one annotation and collects corrections and omissions in `notes`."""

    def __init__(self, taxonomy: Taxonomy) -> None:
        self.taxonomy = taxonomy
        self.notes: list[str] = []

    def annotation(self, text: str, name: str) -> Annotation:
        try:
            value = self._value(text)
        except ReplyError as error:
            return _unread(name, text, str(error), self.notes)
        if isinstance(value, list):
            self.notes.append("a bare list, read as the errors")
            value = {"errors": value}
        trace = self._trace_id(value.get("trace_id"), name)
        errors = value.get("errors")
        if isinstance(errors, dict) and errors:
            self.notes.append("errors: one object instead of a list")
            errors = [errors]
        grades = self._grades(value.get("scores"))
        if isinstance(errors, list):
            more = self._findings(errors)
        else:
            more = {"status": "unscored:parse", "message": "no list of errors found"}
            self.notes.append("unreadable: no list of errors found")
        findings = Findings(trace=trace, grades=grades, **more)
        return Annotation(name, findings, text, tuple(self.notes))

    def _value(self, text: str) -> Any:
        """Return the JSON object or list in the text. Raises ReplyError if there is none."""
        try:
            value = json.loads(text.lstrip("\ufeff"))
        except (ValueError, RecursionError):
            parsed = parse_reply(_NOT_FINITE.sub(" null", text), _is_annotation)
            self.notes.append(f"not strict JSON ({parsed.rung})")
            return parsed.value
        if not _is_annotation(value):
            raise ReplyError("valid JSON, but without errors or scores")
        return value

    def _trace_id(self, stated: Any, name: str) -> str:
        if stated is None:
            return name
        if not isinstance(stated, str) or not stated.strip() or not stated.isprintable():
            self.notes.append("trace_id is not a string; using the file name instead")
            return name
        if stated.strip() != name:
            self.notes.append(f"trace_id {stated.strip()!r} differs from the file name {name!r}")
        return stated.strip()

    def _findings(self, errors: Sequence[Any]) -> dict[str, Any]:
        findings: list[Finding] = []
        rejected: list[Rejected] = []
        for number, error in enumerate(errors, 1):
            place = f"error {number}"
            if not isinstance(error, dict) or not error:
                why = f"{place} is not an object"
                rejected.append(Rejected(why=why, said=_text(error)[:_MAX_REJECTED]))
                self.notes.append(why)
                continue
            fields = self._fields(error, place)
            category = self._category(_text(fields.get("category")).strip(), place)
            locations = self._locations(fields.get("location"), place)
            if not category and locations == [""]:
                why = f"{place}: no category and no location"
                rejected.append(Rejected(why=why, said=_text(error)[:_MAX_REJECTED]))
                continue
            more = self._details(fields, place)
            findings += [Finding(span=span, category=category, **more) for span in locations]
        return {"findings": tuple(findings), "rejected": tuple(rejected)}

    def _fields(self, error: Mapping[str, Any], place: str) -> dict[str, Any]:
        """Return values by their proper key; accepts another spelling if the key is missing."""
        fields = {key: error[key] for key in _FIELDS if key in error}
        for key in [key for key in error if key not in _FIELDS]:
            near = difflib.get_close_matches(key.strip().casefold(), _FIELDS, n=1, cutoff=0.8)
            if near and near[0] not in fields:
                fields[near[0]] = error[key]
                self.notes.append(f"{place}: key {key!r} read as {near[0]}")
            else:
                self.notes.append(f"{place}: unknown key {key!r}")
        self.notes += [
            f"{place}: no {key}" for key in ("category", "location") if key not in fields
        ]
        return fields

    def _category(self, text: str, place: str) -> str:
        leaf = self.taxonomy.find(text) if text else None
        if leaf is None and text:
            hint = did_you_mean(text, [leaf.name for leaf in self.taxonomy.leaves])
            hint = f"; {hint}" if hint else ""
            self.notes.append(f"{place}: unknown category {text!r}{hint}")
        return leaf.name if leaf else text

    def _locations(self, value: Any, place: str) -> list[str]:
        if isinstance(value, list):
            self.notes.append(f"{place}: {len(value)} locations")
            return [_text(entry).strip() for entry in value] or [""]
        text = _text(value).strip()
        if any(c.isspace() for c in text):
            self.notes.append(f"{place}: location {text[:80]!r} is not a span id")
        return [text]

    def _details(self, fields: Mapping[str, Any], place: str) -> dict[str, Any]:
        impact = _text(fields.get("impact")).strip().upper()
        if impact and impact not in IMPACTS:
            self.notes.append(f"{place}: impact {impact[:80]!r} is not HIGH, MEDIUM or LOW")
        confidence = to_number(fields.get("confidence"))
        if confidence is not None and not 0 <= confidence <= 1:
            self.notes.append(f"{place}: confidence {confidence:g} is not between 0 and 1")
            confidence = None
        texts = {key: _text(fields.get(key)) for key in ("evidence", "description", "source")}
        return {**texts, "impact": IMPACTS.get(impact), "confidence": confidence}

    def _grades(self, scores: Any) -> dict[str, Grade]:
        if isinstance(scores, list) and scores:
            if len(scores) > 1:
                self.notes.append(f"{len(scores)} score objects; using the first")
            scores = scores[0]
        if scores and not isinstance(scores, dict):
            self.notes.append("scores is not an object")
            scores = {}
        return {
            name: Grade(
                value=self._grade(scores[key], key), reason=_text(scores.get(f"{name}_reasoning"))
            )
            for name, key in _GRADE_KEYS.items()
            if key in (scores or {})
        }

    def _grade(self, value: Any, key: str) -> float | None:
        number = to_number(value)
        if number is None:
            self.notes.append(f"{key}: {_text(value)[:80]!r} is not a number")
        elif not 0 <= number <= 5:  # prompts of the data set say 0 to 5, its guide 1 to 5
            self.notes.append(f"{key}: {number:g} is not between 0 and 5")
            return None
        return number


def to_number(value: Any) -> float | None:
    """Convert a number or numeric string to a finite float; anything else gives None."""
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
    return printable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


# -- folders, one file per trace -------------------------------------------------------------------


@dataclass(frozen=True)
class Pairing:
    """Pairs of gold annotation and prediction (None if missing), and predictions without gold."""

    pairs: tuple[tuple[Annotation, Annotation | None], ...]
    without_gold: tuple[Annotation, ...]


def read_folder(source: str | Path, taxonomy: Taxonomy | None = None) -> list[Annotation]:
    """Read one file, or all .json files in a folder and its subfolders, sorted by path.

    Raises InputError if a file is missing or too large, or if two files annotate the same trace.
    """
    files = [f.path for f in find(source).files if f.path.suffix.lower() == ".json"]
    if not files:
        raise InputError("this folder has no .json files (one per trace)", str(source))
    read: dict[str, Path] = {}
    annotations = []
    for path in files:
        data = read_bytes(path)
        refuse_other_kinds(data, str(path))
        text = data.decode("utf-8-sig", "replace")  # people and models may write anything
        annotation = read_annotation(text, path.stem, taxonomy)
        other = read.setdefault(annotation.trace, path)
        if other is not path:
            raise InputError(f"trace {annotation.trace!r} is also annotated in {other}", str(path))
        annotations.append(annotation)
    return annotations


def write_folder(folder: Path, findings: Iterable[Findings], *, extra: bool = False) -> list[Path]:
    """Write one file per trace, named after it (see `official_text`), and return the paths.

    Raises InputError for an id that cannot be a file name, or if writing fails.
    """
    paths, names = [], set[str]()
    for findings_of_trace in findings:
        path = file_in(folder, findings_of_trace.trace, ".json", names)
        write_atomically(path, official_text(findings_of_trace, extra=extra))
        paths.append(path)
    return paths


def pair_up(gold: Sequence[Annotation], predicted: Sequence[Annotation]) -> Pairing:
    """Match predictions by trace id, else by file name, as the official scorer does."""
    by_trace = {p.trace: p for p in predicted}
    matched = {g.trace for g in gold} & set(by_trace)
    by_name = {p.name: p for p in predicted if p.trace not in matched}
    pairs = tuple((g, by_trace.get(g.trace) or by_name.pop(g.name, None)) for g in gold)
    used = {match.trace for _, match in pairs if match is not None}
    return Pairing(pairs, tuple(p for p in predicted if p.trace not in used))
