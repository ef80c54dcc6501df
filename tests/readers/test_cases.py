"""Cases of `cases/*.jsonl`: files and what is read from them, or why they are refused.

A case has `files` (by name: their `text`, the value or `lines` of JSON, or `base64`), what is
`read` (runs, traces or scores) from `source` with `options`, and the result: `runs` without the
defaults of their fields, `rows` of ratings, `warnings`, `skipped` files, or the `error`. Of
messages, only the facts are compared: names in quotes, options, places and numbers.

`python -m tests.readers.test_cases NAME runs FILE` prints the line of a new case, to be checked.
"""

from __future__ import annotations

import base64
import json
import random
import re
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers import make_view, read_runs
from agenteval.readers.scores import read_scores
from agenteval.readers.traces import read_traces
from agenteval.records import Criterion, Run
from agenteval.stats.scores import CodedColumn, ScoreTable
from tests.thorough import often

FOLDER = Path(__file__).parent / "cases"
FACTS = re.compile(r"'[^']*'|--[\w-]+|\S*\.(?:jsonl?|csv|tsv|txt|eval|ndjson)\S*|\d[\d,.]*")
GOLD = "GOLDEN-7391"  # a gold answer that no judge may see
READ: dict[str, Callable[..., Any]] = {
    "runs": read_runs,
    "traces": read_traces,
    "scores": read_scores,
}


def cases() -> Iterator[Any]:
    for path in sorted(FOLDER.glob("*.jsonl")):
        for number, line in enumerate(path.read_text().splitlines(), start=1):
            case = json.loads(line)
            yield pytest.param(case, id=f"{path.stem}:{number} {case['case']}")


def written(root: Path, case: dict[str, Any]) -> Path:
    """Write the files of a case; returns its source."""
    for name, content in case["files"].items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if "base64" in content:
            data = base64.b64decode(content["base64"])
        elif "lines" in content:
            data = "".join(json.dumps(line) + "\n" for line in content["lines"]).encode()
        else:
            text = content["text"] if "text" in content else json.dumps(content["json"])
            data = text.encode()
        path.write_bytes(data)
    return root / case["source"]


def new_case(name: str, read: str, path: Path) -> dict[str, Any]:
    """Return the case of a file of text as it is read now."""
    case: dict[str, Any] = {"case": name, "read": read, "source": path.name}
    case["files"] = {path.name: {"text": path.read_text()}}
    try:
        result = READ[read](path)
    except InputError as error:
        return case | {"error": str(error).replace(f"{path.parent}/", "")}
    if read == "scores":
        return case | {"rows": table_rows(result)}
    warnings = [line.replace(f"{path.parent}/", "") for line in result.warnings]
    return case | {"runs": [dump(run) for run in result.runs], "warnings": warnings}


def facts(text: str, root: Path) -> list[str]:
    return FACTS.findall(text.replace(f"{root}/", "").replace(str(root), "."))


def dump(run: Run) -> Any:
    return json.loads(run.model_dump_json(exclude_defaults=True))


def table_rows(table: ScoreTable) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for i in range(len(table.repeat)):
        row: dict[str, Any] = {}
        for name in (field.name for field in fields(table)):
            column = getattr(table, name)
            if isinstance(column, CodedColumn):
                row[name] = column.names[column.codes[i]] if column.codes[i] >= 0 else None
            else:
                value = column[i].item()
                row[name] = None if value != value else value
        rows.append(row)
    return rows


@pytest.mark.parametrize("case", list(cases()))
def test_case(tmp_path: Path, case: dict[str, Any]) -> None:
    options = dict(case.get("options", {}))
    if "criteria" in options:
        options["criteria"] = [Criterion.model_validate(c) for c in options["criteria"]]
    read, source = READ[case["read"]], written(tmp_path, case)
    if "error" in case:
        with pytest.raises(InputError) as refusal:
            read(source, **options)
        assert facts(str(refusal.value), tmp_path) == facts(case["error"], tmp_path)
        assert "\n" not in str(refusal.value)
        return
    result = read(source, **options)
    if case["read"] == "scores":
        assert table_rows(result) == case["rows"]
        return
    assert [dump(run) for run in result.runs] == case["runs"]
    messages = [(result.warnings, "warnings")]
    messages.append(([f"{s.path}: {s.reason}" for s in result.skipped], "skipped"))
    for lines, key in messages:
        expected = [facts(line, tmp_path) for line in case.get(key, ())]
        assert [facts(line, tmp_path) for line in lines] == expected, key
    if GOLD in json.dumps(case["files"]):
        assert not any(GOLD in make_view(run).model_dump_json() for run in result.runs)


ODD = [None, True, 0, 2.5, "", "x", [], {}, [1], {"a": 1}, [["a", "b"]], {"content": "x"}]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a value."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in pairs:
        yield (*path, key)
        if isinstance(item, (dict, list)):
            yield from places(item, (*path, key))


@pytest.mark.parametrize("topic", sorted(path.stem for path in FOLDER.glob("*.jsonl")))
def test_mutated_cases_are_read_or_refused_in_one_line(tmp_path: Path, topic: str) -> None:
    """Values of another type and keys taken away, at any place of a JSON file."""
    dice = random.Random(topic)
    lines = (FOLDER / f"{topic}.jsonl").read_text().splitlines()
    refusals: list[str] = []
    for number, line in enumerate(dice.choices(lines, k=often(60, 2000))):
        case = json.loads(line)
        content = case["files"].get(case["source"], {})
        value = content.get("json", content.get("lines"))
        if not isinstance(value, (dict, list)) or not value:
            continue
        *path, last = dice.choice(list(places(value)))
        for key in path:
            value = value[key]
        value[last] = dice.choice(ODD)
        if dice.random() < 0.3:
            del value[last]
        root = tmp_path / str(number)
        try:
            READ[case["read"]](written(root, case))
        except InputError as error:
            refusals.append(str(error))
    assert not any("\n" in line for line in refusals)


if __name__ == "__main__":
    print(json.dumps(new_case(sys.argv[1], sys.argv[2], Path(sys.argv[3]))))
