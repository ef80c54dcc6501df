"""Files of annotations: folders with one file per trace, which prediction belongs to which gold
file, and the sheets in which people mark the errors of a trace.

In a sheet `errors` is empty (null) until somebody has looked: a sheet that nobody has filled in
must not pass for a trace without errors.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.evaluators.traces.annotations import (
    OVERALL,
    Annotation,
    official_object,
    official_text,
    read_annotation,
)
from agenteval.evaluators.traces.outline import Outline
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.files import file_in, read_bytes, refuse_other_kinds, write_atomically
from agenteval.readers.runs import find
from agenteval.readers.strict_json import read_json
from agenteval.records import GRADES, Findings

_READ = ("trace_id", "errors", "scores")
_SHOWN = ("how", "kinds", "spans")  # for who fills a sheet in; left out when it is read
_SCORES = (*(f"{name}_{part}" for name in GRADES for part in ("score", "reasoning")), OVERALL)
_LEAST = 1.0  # of a grade, as the guide for annotators has it
_DEEPEST = 12  # levels that indent in the list of spans
_WIDE = 160


@dataclass(frozen=True)
class Pairing:
    """Each gold annotation with its prediction (None: missing), and predictions without gold."""

    pairs: tuple[tuple[Annotation, Annotation | None], ...]
    without_gold: tuple[Annotation, ...]


def read_folder(source: str | Path, taxonomy: Taxonomy | None = None) -> list[Annotation]:
    """Annotations of all .json files of a folder (and its folders), or of one file, by path.

    Raises InputError when there is no such file, a file is too large, or two files annotate the
    same trace, since which of them counts would be a guess.
    """
    files = [
        source_file.path
        for source_file in find(source).files
        if source_file.path.suffix.lower() == ".json"
    ]
    if not files:
        raise InputError("no .json file, one per trace, is here", str(source))
    read: dict[str, Path] = {}
    annotations = []
    for path in files:
        annotation = read_annotation(_read(path), path.stem, taxonomy)
        other = read.setdefault(annotation.trace, path)
        if other is not path:
            raise InputError(f"trace {annotation.trace!r} stands in {other} already", str(path))
        annotations.append(annotation)
    return annotations


def write_folder(folder: Path, findings: Iterable[Findings], *, extra: bool = False) -> list[Path]:
    """One file per trace, named after it; see `official_text`. Paths written.

    Raises InputError for an id that is no file name and for what the system refuses.
    """
    paths, taken = [], set[str]()
    for findings_of_trace in findings:
        path = file_in(folder, findings_of_trace.trace, ".json", taken)
        write_atomically(path, official_text(findings_of_trace, extra=extra))
        paths.append(path)
    return paths


def pair_up(gold: Sequence[Annotation], predicted: Sequence[Annotation]) -> Pairing:
    """Predictions by the id of their trace, else by the file name, as the official scorer does."""
    by_trace = {annotation.trace: annotation for annotation in predicted}
    matched = {annotation.trace for annotation in gold} & set(by_trace)
    by_name = {
        annotation.name: annotation for annotation in predicted if annotation.trace not in matched
    }
    pairs = tuple(
        (annotation, by_trace.get(annotation.trace) or by_name.pop(annotation.name, None))
        for annotation in gold
    )
    used = {match.trace for _, match in pairs if match is not None}
    return Pairing(
        pairs, tuple(annotation for annotation in predicted if annotation.trace not in used)
    )


def _read(path: Path) -> str:
    """The text as far as it is UTF-8: models and people write what they like, see `annotations`."""
    data = read_bytes(path)
    refuse_other_kinds(data, str(path))
    return data.decode("utf-8-sig", "replace")


@dataclass(frozen=True)
class FilledSheet:
    """What a sheet says. `findings` is None while nobody has filled in `errors`.

    `problems` are lines "FILE: what is wrong"; with any of them the sheet does not count.
    """

    trace: str
    findings: Findings | None
    problems: tuple[str, ...] = ()


def sheet(outline: Outline, taxonomy: Taxonomy, start: Findings | None = None) -> str:
    """The sheet of a trace, JSON in the official layout with the kinds of errors and the spans.

    `start` are findings to begin with, for somebody to review.
    """
    last = "".join(f"; for {leaf.name} the last" for leaf in taxonomy.assigned
                   if leaf.locate == "last")  # fmt: skip
    errors, scores = None, dict.fromkeys(_SCORES)
    if start is not None and start.status is None:
        given = official_object(start)
        errors = given["errors"]
        scores |= given["scores"][0] if given["scores"] else {}
    value = {
        "how": [
            "one entry in errors for each error; [] when there is none",
            "category: one of the kinds below; location: id of the first span that shows the "
            f"error{last}",
            "evidence: words of the span; description: what is wrong; impact: HIGH, MEDIUM or LOW",
            "scores: 1 (bad) to 5 (good), or null",
        ],
        "trace_id": outline.trace,
        "errors": errors,
        "scores": [scores],
        "kinds": [f"{leaf.name}: {leaf.definition}" for leaf in taxonomy.assigned],
        "spans": list(_span_lines(outline)),
    }
    return json.dumps(value, ensure_ascii=False, indent=1) + "\n"


def read_sheet(
    path: Path, taxonomy: Taxonomy, spans_of: Mapping[str, Collection[str]]
) -> FilledSheet:
    """What was filled in. `spans_of` gives the ids of the spans of every trace.

    Raises InputError for what is no JSON object, or no JSON that is read only one way.
    """
    value = read_json(path)
    if not isinstance(value, dict):
        raise InputError(f"a sheet is an object with the keys {', '.join(_READ)}", str(path))
    problems = [f"unknown key {key!r}, known are {', '.join(_READ)}"
                for key in value if key not in (*_READ, *_SHOWN)]  # fmt: skip
    trace = str(value.get("trace_id") or "").strip()
    if not trace:
        problems.append("no trace_id")
    elif trace not in spans_of:
        problems.append(f"trace {trace!r} is not among the traces given")
    scores = value.get("scores")
    scores = scores if isinstance(scores, list) else [scores] if scores else []
    stated = [key for grades in scores if isinstance(grades, dict) for key in grades]
    problems += [f"scores: unknown key {key!r}, known are {', '.join(_SCORES)}"
                 for key in stated if key not in _SCORES]  # fmt: skip
    errors = value.get("errors")
    wanted = {
        "errors": [] if errors is None else errors,
        "scores": [_without_null(grades) for grades in scores],
    }
    annotation = read_annotation(json.dumps(wanted), trace, taxonomy)
    problems += annotation.warnings
    problems += [f"{name}: {grade.value:g} is below {_LEAST:g}"
                 for name, grade in annotation.findings.grades.items()
                 if grade.value is not None and grade.value < _LEAST]  # fmt: skip
    for number, error in enumerate(errors if isinstance(errors, list) else (), 1):
        if isinstance(error, dict):
            problems += _of_error(error, f"error {number}", spans_of.get(trace))
    lines = tuple(f"{path}: {problem}" for problem in dict.fromkeys(problems))
    return FilledSheet(trace, None if lines or errors is None else annotation.findings, lines)


def _without_null(scores: Any) -> Any:
    if not isinstance(scores, dict):
        return scores
    return {key: score for key, score in scores.items() if score is not None}


def _of_error(error: Mapping[str, Any], place: str, spans: Collection[str] | None) -> Iterator[str]:
    """What is wrong with an entry beyond what the reader of annotations says of it."""
    for key in ("category", "location"):
        if not error.get(key):
            yield f"{place}: no {key}"
    location = error.get("location")
    if location and spans is not None and str(location).strip() not in spans:
        yield f"{place}: the trace has no span {location!r}"


def _span_lines(outline: Outline) -> Iterator[str]:
    depths: dict[str, int] = {}
    for span in outline.spans:
        depth = depths.get(span.parent_id or "", -1) + 1
        depths.setdefault(span.id, depth)
        indent = "  " * min(depth, _DEEPEST)
        outcome = f"  ERROR {_line(span.note)}".rstrip() if span.status == "error" else ""
        yield f"{indent}{span.id}  {span.kind}  {_line(span.name)}{outcome}"
        for name, said in (("in: ", span.input), ("out: ", span.output)):
            if said:
                yield f"{indent}    {name}{_line(said)}"
    left = outline.total - len(outline.spans)
    if left:
        yield f"... {left:,} more spans"


def _line(text: str) -> str:
    """The text on one line, cut; characters that are not shown stand as their codes."""
    line = " ".join(text[: 4 * _WIDE].split())
    line = "".join(c if c.isprintable() else f"[U+{ord(c):04X}]" for c in line)
    return line if len(line) <= _WIDE else line[: _WIDE - 1] + "…"
