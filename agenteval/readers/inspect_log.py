"""Read samples from logs of inspect_ai (`.eval` and `.json`, version 2), without that package.

Based on the sources of inspect_ai 0.3.285. An `.eval` file is a zip archive of `header.json`
(`_journal/start.json` for a killed run) and `samples/ID_epoch_N.json`. Of two entries with the same
name, the last counts. A `.json` file has the header, including the list of samples.

Samples without a score are counted here, because the header counts them after epochs were reduced
to one value: it misses one of three epochs without a score.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.files import LARGE, decoded, opened
from agenteval.readers.samples import LoggedSample, failed, rating
from agenteval.readers.strict_json import Notes, decode

# The order of these keys is part of the format.
HEAD = re.compile(rb'\s*\{\s*"version"\s*:\s*\d+\s*,\s*"status"\s*:\s*"\w+"\s*,\s*"eval"\s*:')
_VERSION = 2
_ZSTD = 93
# Values of scorer words in inspect's own metrics (`value_to_float`)
_VALUES = {"C": 1.0, "P": 0.5, "I": 0.0, "N": 0.0}
_VERDICTS = {"C": True, "I": False, "N": False, True: True, False: False}
_SAMPLE = re.compile(r"samples/.+_epoch_\d+\.json", re.DOTALL)  # an id may contain "/"
_ATTACHED = re.compile(r"(?:attachment|tc)://(.+)", re.DOTALL)


def eval_samples(path: Path, notes: Notes) -> Iterator[LoggedSample]:
    """Yield the samples of an `.eval` file in logged order.

    Raises InputError for other files and versions, for a log without samples, and, before Python
    3.14, for zstd-compressed entries if the package zstandard is missing.
    """
    name = str(path)
    with opened(path, name) as stream:
        try:
            archive = zipfile.ZipFile(stream)
        except (zipfile.BadZipFile, ValueError) as error:
            raise InputError(f"not a complete log of inspect ({error})", name) from None
        entries = _Entries(archive, {info.filename: info for info in archive.infolist()}, name)
        head = next((n for n in ("header.json", "_journal/start.json") if n in entries.infos), None)
        if head is None:
            raise InputError("a zip archive without header.json: not a log of inspect", name)
        log = _Log(entries.read(head), name, notes)
        if any(re.fullmatch(r"samples/.+/sample\.json", entry) for entry in entries.infos):
            raise InputError("its samples are chunked, which is not supported", name)
        names = [entry for entry in entries.infos if _SAMPLE.fullmatch(entry)]
        log.check(len(names), "reductions.json" in entries.infos)
        for entry in names:
            yield log.sample(entries.read(entry), f"{name}:{entry}")


def json_samples(header: dict[str, Any], name: str, notes: Notes) -> Iterator[LoggedSample]:
    """Yield the samples of a `.json` log; `header` is the decoded document."""
    log = _Log(header, name, notes)
    samples = header.get("samples") or []
    log.check(len(samples), bool(header.get("reductions")))
    for i, sample in enumerate(samples):
        yield log.sample(sample, f"{name}:samples[{i}]")


@dataclass(frozen=True)
class _Entries:
    archive: zipfile.ZipFile
    infos: dict[str, zipfile.ZipInfo]
    name: str

    def read(self, entry: str) -> Any:
        """Return the JSON value of an entry. Raises InputError."""
        info, place = self.infos[entry], f"{self.name}:{entry}"
        try:
            if info.compress_type == _ZSTD and not hasattr(zipfile, "ZIP_ZSTANDARD"):
                data = _unpacked(self.archive, info, place)
            else:
                with self.archive.open(info) as stream:
                    data = stream.read(LARGE + 1)
        except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise InputError(f"cannot be read from the archive ({error})", place) from None
        if len(data) > LARGE:
            raise InputError(f"larger than {LARGE:,} bytes", place)
        return decode(decoded(data, place), place, notes=Notes(), finite=False)


def _unpacked(archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: str) -> bytes:
    """Decompress a zstd entry (one frame or several), at most one byte above the limit."""
    try:
        import zstandard
    except ImportError:
        problem = "compressed with zstd, which Python before 3.14 cannot read: "
        raise InputError(problem + "pip install 'agenteval[inspect]'", place) from None
    raw = copy(info)  # to read the compressed bytes as if they were stored
    raw.compress_type, raw.file_size = zipfile.ZIP_STORED, info.compress_size
    raw.CRC = None  # type: ignore[assignment]  # the CRC is that of the decompressed data, checked below
    try:
        with archive.open(raw) as stream:
            reader = zstandard.ZstdDecompressor().stream_reader(stream, read_across_frames=True)
            text: bytes = reader.read(LARGE + 1)
    except zstandard.ZstdError as error:
        raise zipfile.BadZipFile(str(error)) from None
    if len(text) <= LARGE and zlib.crc32(text) != info.CRC:
        raise zipfile.BadZipFile("wrong checksum")
    return text


class _Log:
    """The header, which applies to all samples. Raises InputError for other versions."""

    def __init__(self, header: Any, name: str, notes: Notes) -> None:
        spec = header.get("eval") if isinstance(header, dict) else None
        version = header.get("version") if isinstance(header, dict) else None
        if version != _VERSION or not isinstance(spec, dict) or "model" not in spec:
            problem = f"a log of inspect in version {version}; version {_VERSION} is read"
            raise InputError(problem, name)
        self._name, self._notes = name, notes
        self._status = header.get("status", "started")
        self._task = str(spec.get("task") or "").rpartition("/")[2]  # TASK in PACKAGE/TASK
        solver = spec.get("solver")
        self._system = f"{spec['model']} · {solver}" if solver else spec["model"]
        config = spec.get("config") or {}
        self._epochs = config.get("epochs") or 1
        results = header.get("results") or {}
        ids = (spec.get("dataset") or {}).get("sample_ids") or ()
        self._total = results.get("total_samples") or len(ids) * self._epochs
        first: dict[str, Any] = next(iter(results.get("scores") or ()), {})
        headline = results.get("headline") or first
        self._headline = str(headline.get("scorer")), headline.get("score", headline.get("name"))

    def check(self, samples: int, reduced: bool) -> None:
        """Warn if samples are missing. Raises InputError if there are none."""
        status = f"(status of the evaluation: {self._status})"
        if not samples and reduced:
            problem = "has only scores reduced over epochs; each sample is needed (inspect eval "
            raise InputError(problem + "without --no-log-samples)", self._name)
        if not samples:
            raise InputError(f"contains no samples {status}", self._name)
        if self._status != "success" or samples < self._total:
            self._notes.add(f"{samples} of {self._total} samples are logged {status}", self._name)

    def sample(self, sample: Any, place: str) -> LoggedSample:
        """Convert one sample of the log. Raises InputError for anything else."""
        number = sample.get("epoch") if isinstance(sample, dict) else None
        if type(number) is not int or number < 1 or type(sample.get("id")) not in (str, int):
            raise InputError("not a sample of inspect (an id, and an epoch from 1)", place)
        run, scores = str(sample["id"]), sample.get("scores") or {}
        invalid = sample.get("invalidation")
        why = "the sample was declared invalid" if invalid else _error(sample)
        shown = _with_attachments(
            {key: sample.get(key) for key in ("input", "messages", "output")},
            sample.get("attachments") or {},
        )
        target, success = sample.get("target"), self._success(scores)
        record: dict[str, Any] = {
            "sample_id": f"{run}:{number}" if self._epochs > 1 else run,
            "input": shown["input"],
            "messages": [part for m in shown["messages"] or () for part in message_parts(m)],
            "output": (shown["output"] or {}).get("completion") or None,
            **({"error": why, "status": "error"} if sample.get("error") else {}),
            "target": target or None,
            "model": self._system,
            "success": success,
            "task": self._task,
            "metadata": {
                **(sample.get("metadata") or {}),
                **{k: sample[k] for k in ("choices", "limit") if sample.get(k)},
                "epoch": number,
            },
        }
        if invalid:
            self._notes.add("declared invalid in its log, and read", place)
        note = "" if success is None else f"success is what the scorer {self._headline[0]!r} says"
        return LoggedSample(
            place,
            run,
            number - 1,
            self._system,
            record,
            {c: failed(why) if invalid else s for c, s in _ratings(scores)},
            why,
            note,
        )

    def _success(self, scores: Mapping[str, Any]) -> bool | None:
        scorer, key = self._headline
        value = (scores.get(scorer) or {}).get("value")
        if isinstance(value, dict):
            value = value.get(key)
        return _VERDICTS.get(value) if isinstance(value, (str, bool)) else None


def _error(sample: Mapping[str, Any]) -> str:
    error = sample.get("error")
    text = str(error.get("message")) if isinstance(error, dict) else ""
    ended = f"the sample ended with an error: {' '.join(text.split())[:200]}"
    return ended if text else "the sample was not scored"


def _ratings(scores: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield ratings by criterion: the scorer, or SCORER/KEY for each key of its value."""
    for scorer, score in scores.items():
        value, explanation = score.get("value"), score.get("explanation")
        keyed = dict(enumerate(value)) if isinstance(value, list) else value
        parts = {scorer: value}
        if isinstance(keyed, dict):
            parts = {f"{scorer}/{key}": part for key, part in keyed.items()}
        for criterion, part in parts.items():
            yield criterion, rating(part, explanation, why=score.get("reason"), words=_VALUES)


def _with_attachments(value: Any, attachments: Mapping[str, str]) -> Any:
    """Return the value with references to texts resolved; images stay references."""
    if isinstance(value, dict):
        return {key: _with_attachments(item, attachments) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_attachments(item, attachments) for item in value]
    reference = _ATTACHED.fullmatch(value) if isinstance(value, str) else None
    text = attachments.get(reference[1], value) if reference else value
    return value if isinstance(text, str) and text.startswith("data:") else text


def message_parts(message: Any) -> Iterator[Any]:
    """Yield messages in OpenAI's format; the error of a tool becomes its text."""
    content, error = message.get("content"), message.get("error")
    parts = content if isinstance(content, list) else [content]
    if isinstance(error, dict):
        parts = [f"[error] {error.get('message')}", *parts]
    calls = [
        {"id": call.get("id"), "name": call.get("function"), "arguments": call.get("arguments")}
        for call in message.get("tool_calls") or ()
    ]
    number = message.get("tool_call_id")
    yield {
        "role": message.get("role"),
        "content": [_shown(part) for part in parts],
        **({"tool_calls": calls} if calls else {}),
        **({"tool_call_id": number} if isinstance(number, str) else {}),
        **({"name": message["function"]} if message.get("function") else {}),
    }
    for part in parts:  # tools run by the provider within the message
        if isinstance(part, dict) and part.get("type") == "tool_use":
            result = part.get("error") or part.get("result")
            yield {"role": "tool", "content": result, "tool_call_id": part.get("id")}


def _shown(part: Any) -> Any:
    """Return a part of a message, with the summary of encrypted reasoning."""
    if isinstance(part, dict) and part.get("type") == "reasoning" and part.get("redacted"):
        return {"type": "text", "text": part.get("summary") or "[reasoning, encrypted]"}
    return part
