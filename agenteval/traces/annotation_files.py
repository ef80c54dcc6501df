"""Folders of annotations, one file per trace, and which prediction belongs to which gold file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.errors import InputError
from agenteval.files import file_in, read_bytes, refuse_other_kinds, write_atomically
from agenteval.readers.source_files import find
from agenteval.records import Findings
from agenteval.traces.annotations import (
    Annotation,
    official_text,
    read_annotation,
)
from agenteval.traces.taxonomy import Taxonomy


@dataclass(frozen=True)
class Pairing:
    """Each gold annotation with its prediction (None: missing), and predictions without gold."""

    pairs: tuple[tuple[Annotation, Annotation | None], ...]
    without_gold: tuple[Annotation, ...]


def read_folder(source: str | Path, taxonomy: Taxonomy | None = None) -> list[Annotation]:
    """Read all .json files of a folder and its subfolders, or one file, by path.

    Raises InputError if there is no such file, a file is too large, or two files annotate the same
    trace.
    """
    files = [f.path for f in find(source).files if f.path.suffix.lower() == ".json"]
    if not files:
        raise InputError("no .json file, one per trace, is here", str(source))
    read: dict[str, Path] = {}
    annotations = []
    for path in files:
        data = read_bytes(path)
        refuse_other_kinds(data, str(path))
        text = data.decode("utf-8-sig", "replace")  # people and models may write anything
        annotation = read_annotation(text, path.stem, taxonomy)
        other = read.setdefault(annotation.trace, path)
        if other is not path:
            raise InputError(f"trace {annotation.trace!r} stands in {other} already", str(path))
        annotations.append(annotation)
    return annotations


def write_folder(folder: Path, findings: Iterable[Findings], *, extra: bool = False) -> list[Path]:
    """Write one file per trace, named after it (see `official_text`), and return the paths.

    Raises InputError for an id that cannot name a file, and if the system refuses to write.
    """
    paths, names = [], set[str]()
    for findings_of_trace in findings:
        path = file_in(folder, findings_of_trace.trace, ".json", names)
        write_atomically(path, official_text(findings_of_trace, extra=extra))
        paths.append(path)
    return paths


def pair_up(gold: Sequence[Annotation], predicted: Sequence[Annotation]) -> Pairing:
    """Match predictions by trace id, else by file name, as the official scorer does."""
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
