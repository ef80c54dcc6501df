"""Folders of annotations: one file per trace, and which prediction belongs to which gold file."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.errors import InputError
from agenteval.evaluators.traces.annotations import Annotation, official_text, read_annotation
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.files import write_atomically
from agenteval.readers.sources import find
from agenteval.records import Findings

MAX_BYTES = 64 * 2**20


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
    files = [one.path for one in find(source).files if one.path.suffix.lower() == ".json"]
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
    paths = []
    for one in findings:
        if Path(one.trace).name != one.trace or "\\" in one.trace or one.trace.startswith("."):
            raise InputError(f"the trace id {one.trace!r} cannot name a file", str(folder))
        path = folder / f"{one.trace}.json"
        write_atomically(path, official_text(one, extra=extra))
        paths.append(path)
    return paths


def pair_up(gold: Sequence[Annotation], predicted: Sequence[Annotation]) -> Pairing:
    """Predictions by the id of their trace, else by the file name, as the official scorer does."""
    by_trace = {one.trace: one for one in predicted}
    matched = {one.trace for one in gold} & set(by_trace)
    by_name = {one.name: one for one in predicted if one.trace not in matched}
    pairs = tuple((one, by_trace.get(one.trace) or by_name.pop(one.name, None)) for one in gold)
    used = {match.trace for _, match in pairs if match is not None}
    return Pairing(pairs, tuple(one for one in predicted if one.trace not in used))


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > MAX_BYTES:
            raise InputError(f"larger than {MAX_BYTES // 2**20} MiB", str(path))
        return path.read_bytes().decode("utf-8-sig", "replace")
    except OSError as error:
        raise InputError(f"cannot read ({error.strerror})", str(path)) from error
