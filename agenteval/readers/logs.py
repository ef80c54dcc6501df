"""Read samples from logs of other tools: inspect, promptfoo, tables of mlflow."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, count
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.files import LARGE, decoded, opened, read_bytes
from agenteval.readers import inspect_log
from agenteval.readers.fields import LONGEST_NAME, field_of, is_missing, number_of, snake
from agenteval.readers.samples import LoggedSample, failed, rating
from agenteval.readers.strict_json import Item, Notes, decode

# Start of promptfoo's results, and of a table by pandas or mlflow (`orient="split"`)
_PROMPTFOO = re.compile(rb'\s*\{\s*(?:"evalId"\s*:\s*(?:"[^"]*"|null)\s*,\s*)?"results"\s*:\s*\{')
_SPLIT = re.compile(rb'\s*\{\s*"columns"\s*:\s*\[')
_HEAD = 4096
_RUBRIC = re.compile("rubric|g-eval|closedqa")  # assertions with a prompt as their value
# Columns of a scorer in tables of `mlflow.genai.evaluate`, and of the older `mlflow.evaluate`
_SCORER = re.compile(r"(.+)/(?:value|score)")
# Columns of numbers that are not ratings
_NOT_RATINGS = re.compile(
    r"(?:^|_)(?:id|index|repeat|epoch|seed|temperature|top_p|cost|price|latency|duration|seconds|ms|"
    r"tokens|time|timestamp)$|^(?:value|label|weight)$"
)
_EXPLANATIONS = ("rationale", "justification")
_TEXTS = ("input", "output", "messages")
_EXTRA = ("case", "success", "variant", "rater", "sample", "weight")


def log_samples(path: Path, notes: Notes) -> Iterator[LoggedSample] | None:
    """Return the samples of a log of inspect or promptfoo, or None for other files.

    Raises InputError, also during iteration, for a log that cannot be used.
    """
    if not is_log(path):
        return None
    name = str(path)
    if path.suffix.lower() == ".eval":
        return _as_written(inspect_log.eval_samples(path, notes), name)
    document = _document(path, notes)
    if inspect_log.HEAD.match(_head(path)):
        return _as_written(inspect_log.json_samples(document, name, notes), name)
    return _as_written(promptfoo_samples(document, name), name)


def _document(path: Path, notes: Notes) -> Any:
    name = str(path)
    return decode(decoded(read_bytes(path, LARGE), name), name, notes=notes, finite=False)


def _as_written(samples: Iterator[LoggedSample], name: str) -> Iterator[LoggedSample]:
    """Yield the samples. Raises InputError for an unexpected structure."""
    done = 0
    try:
        for sample in samples:
            yield sample
            done += 1
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"not in the format of its tool (after {done} samples: {error})"
        raise InputError(problem, name) from error


def is_log(path: Path) -> bool:
    """Return whether a file has the start and name of a log of inspect or promptfoo.

    Raises InputError for a file that cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix != ".json":
        return suffix == ".eval"
    head = _head(path)
    return bool(inspect_log.HEAD.match(head) or _PROMPTFOO.match(head))


def split_table(path: Path) -> Iterator[Item] | None:
    """Return the rows of a JSON table with columns and data, or None for other files.

    Raises InputError.
    """
    if path.suffix.lower() != ".json" or not _SPLIT.match(_head(path)):
        return None
    table = _document(path, Notes())
    columns, rows = table["columns"], table.get("data")
    if isinstance(table.get("rows"), list) or "context.span_id" in columns:
        return None  # spans of Logfire or Phoenix
    if not isinstance(rows, list) or any(
        not isinstance(row, list) or len(row) != len(columns) for row in rows
    ):
        raise InputError("a table needs `data`, a list of rows as long as `columns`", str(path))
    return (
        Item(dict(zip(map(str, columns), row, strict=True)), f"{path}:data[{i}]", i + 1)
        for i, row in enumerate(rows)
    )


def logged_records(path: Path, notes: Notes) -> Iterator[Item] | None:
    """Return the records of runs in a log or the rows of a JSON table; None for other files.

    Raises as `log_samples` does.
    """
    samples = log_samples(path, notes)
    return split_table(path) if samples is None else _records(samples, str(path), notes)


def _records(samples: Iterable[LoggedSample], name: str, notes: Notes) -> Iterator[Item]:
    seen = {""}
    for number, sample in enumerate(samples, start=1):
        if sample.note not in seen:
            seen.add(sample.note)
            notes.add(sample.note, name)
        yield Item(sample.record, sample.place, number)


def _head(path: Path) -> bytes:
    with opened(path) as stream:
        return stream.read(_HEAD)


# ---- promptfoo -----------------------------------------------------------------------------------


def promptfoo_samples(document: Any, name: str) -> Iterator[LoggedSample]:
    """Yield the results of `promptfoo eval -o FILE.json` (types of promptfoo 0.121).

    Each assertion is a criterion named by its metric or type, with the text of its rubric;
    duplicate names get a number. Repeated tests become repeats. Raises InputError.
    """
    summary = document["results"]
    results = summary.get("results")
    if not isinstance(results, list) or not results or summary.get("version") not in (2, 3):
        problem = f"results of promptfoo in version {summary.get('version')} with no list of "
        raise InputError(problem + "results; versions 2 and 3 are read", name)
    prompts = list(dict.fromkeys(r.get("promptId") for r in results if isinstance(r, dict)))
    repeats: dict[str, list[str]] = {}  # names of results, by test and prompt
    for i, result in enumerate(results):
        place = f"{name}:results[{i}]"
        test = result.get("testCase") if isinstance(result, dict) else None
        if not isinstance(test, dict) or "promptIdx" not in result:
            raise InputError("not a result of promptfoo (a testCase and a promptIdx)", place)
        key = json.dumps([test, result["promptIdx"]], sort_keys=True)
        names = repeats.setdefault(key, [])
        names.append(f"{result.get('testIdx', i)}:{result['promptIdx']}")
        provider = result.get("provider") or {}
        system = str(provider.get("label") or provider.get("id") or "unnamed")
        if len(prompts) > 1:
            system += f" · prompt {prompts.index(result.get('promptId')) + 1}"
        prompt = (result.get("prompt") or {}).get("raw")
        output = (result.get("response") or {}).get("output")
        record: dict[str, Any] = {
            "sample_id": names[-1] if names.count(names[-1]) == 1 else f"{names[-1]}:{len(names)}",
            "input": result.get("vars") or test.get("vars") or prompt,
            "messages": [{"role": "user", "content": prompt or ""}],
            "output": output,
            **({"error": result.get("error")} if result.get("failureReason") == 2 else {}),
            "model": system,
            "success": result.get("success") if result.get("failureReason") != 2 else None,
            "metadata": {**(test.get("metadata") or {}), "testIdx": result.get("testIdx")},
        }
        if output is not None:
            content = output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)
            record["messages"].append({"role": "assistant", "content": content})
        yield LoggedSample(place, names[0], len(names) - 1, system, record, _assertions(result))


def _assertions(result: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the ratings of one result.

    A failed grader gives no rating, whatever its score; without any grading, all assertions fail.
    """
    grading = result.get("gradingResult") or {}
    parts = grading.get("componentResults") or ([grading] if "score" in grading else [])
    if not parts:
        why = str(result.get("error") or "it was not graded")
        failed_part = {"reason": why, "metadata": {"graderError": True}}
        parts = [{"assertion": a, **failed_part} for a in result["testCase"].get("assert") or ()]
    scores: dict[str, dict[str, Any]] = {}
    for part in parts:
        assertion = part.get("assertion") or {}
        kind, value = str(assertion.get("type") or "score"), assertion.get("value")
        is_rubric = _RUBRIC.search(kind) and isinstance(value, str)
        plain = str(assertion.get("metric") or (f"{kind}: {value}" if is_rubric else kind))
        names = chain([plain], (f"{plain} ({i})" for i in count(2)))
        name = next(name for name in names if name not in scores)
        broken, reason = (part.get("metadata") or {}).get("graderError"), part.get("reason")
        scores[name] = failed(str(reason)) if broken else rating(part.get("score"), reason)
    return scores


# ---- tables --------------------------------------------------------------------------------------


def scored_rows(
    items: Iterable[Item], criteria: Mapping[str, str], stem: str
) -> Iterator[LoggedSample] | None:
    """Return the rows of a table with a column per scorer as samples, or None without scorers.

    Scorers are the columns of `criteria` (criteria by name in snake case), else NAME/value and
    NAME/score (mlflow), else columns of numbers or booleans that are not a field of a run (ragas).
    The id of a row is its own, else the id that `read_runs` would give it.
    """
    rows = list(items)
    names = dict.fromkeys(key for item in rows for key in item.value)
    columns = {key: criteria[snake(key)] for key in names if snake(key) in criteria}
    columns |= {key: hit[1] for key in names if (hit := _SCORER.fullmatch(key))}
    if not columns:
        columns = {key: key for key in names if _is_metric(key, rows)}
    return (_scored(item, columns, stem) for item in rows) if columns else None


def _is_metric(name: str, rows: Sequence[Item]) -> bool:
    if len(name) > LONGEST_NAME or field_of(name) or _NOT_RATINGS.search(snake(name)):
        return False
    values = [v for item in rows if not is_missing(v := item.value.get(name))]
    return bool(values) and all(number_of(value) is not None for value in values)


def _scored(item: Item, columns: Mapping[str, str], stem: str) -> LoggedSample:
    row = item.value
    scores = {}
    for column, scorer in columns.items():
        explanation = next((row[k] for w in _EXPLANATIONS if row.get(k := f"{scorer}/{w}")), None)
        error = "the row is cut off" if item.cut_off else row.get(f"{scorer}/error_message")
        scores[scorer] = failed(str(error)) if error else rating(row.get(column), explanation)
    fields = {key: (field_of(key) or ("",))[0] for key in row}
    record = {key: row[key] for key in row if fields[key] in _TEXTS}
    record |= {"input": row["request"]} if row.get("request") else {}
    record |= {} if "output" in fields.values() else {"output": ""}
    plain = {snake(key): value for key, value in row.items() if not is_missing(value)}
    ids = (plain.get(key) for key in ("run", "run_id", "trace_id", "request_id", "id"))
    run = next((str(name) for name in ids if name is not None), f"{stem}:{item.line}")
    systems = (row[key] for key in row if fields[key] == "system" and row[key])
    system = next((str(name) for name in systems), None)
    repeat = int(number_of(plain.get("repeat", 0)) or 0)
    extra = {key: plain[key] for key in _EXTRA if key in plain}
    return LoggedSample(item.place, run, repeat, system, record, scores, extra=extra)
