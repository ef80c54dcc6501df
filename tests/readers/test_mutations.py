"""A valid file of every kind, mutated: it is read, or an InputError names it; nothing else.

Cut off after every byte (small ones), keys taken away, values of another type.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.files import read_text
from agenteval.models.replay import ReplayTransport
from agenteval.planning.suite import read_suite
from agenteval.planning.words import read_topics
from agenteval.readers import read_runs
from agenteval.readers.scores import read_scores
from agenteval.readers.tasks import load_task
from agenteval.readers.traces import read_traces
from agenteval.traces.annotations import read_folder
from agenteval.traces.taxonomy import load_taxonomy
from agenteval.utility.criteria_file import load_criteria
from agenteval.workflows.flowbench_rows import read_rows
from agenteval.workflows.folder import read_role, read_tools
from agenteval.workflows.mermaid import parse_chart
from tests.support.valid_files import write_valid_files
from tests.thorough import often


def role_around(path: Path) -> object:
    """The role whose folder holds this file, as its commands read it."""
    return read_role(next(p for p in path.parents if (p / "role.yaml").exists()))


# what is read: (clean file, how it is read)
LOADERS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "runs": ("runs.jsonl", read_runs),
    "trace": ("trace.json", read_traces),
    "trace, as runs": ("trace.json", read_runs),
    "spans": ("trace.jsonl", read_traces),
    "criteria": ("criteria.json", load_criteria),
    "task": ("t/task.yaml", load_task),
    "taxonomy": ("small.json", load_taxonomy),
    "taxonomy in YAML": ("small.yaml", load_taxonomy),
    "words": ("words.json", read_topics),
    "suite": ("suite.jsonl", lambda path: list(read_suite(path))),
    "ratings": ("scores.csv", read_scores),
    "ratings as lines": ("scores.jsonl", read_scores),
    "rows": ("rows.jsonl", lambda path: read_rows([path])),
    "rows as a list": ("rows.json", lambda path: read_rows([path])),
    "tools": ("desk/lend_book/tools.json", read_tools),
    "profiles": ("desk/lend_book/profiles.yaml", role_around),
    "scenario": ("desk/lend_book/scenario.yaml", role_around),
    "chart": ("desk/lend_book/workflow.mmd", lambda p: parse_chart(read_text(p), str(p))),
    "recording": ("recording.jsonl", ReplayTransport),
    "annotations": ("found/x.json", read_folder),
}
LEAF = {"name": "Rude", "area": "a", "group": "g", "definition": "d"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mutations")
    write_valid_files(folder)
    (findings,) = (folder / "found").iterdir()
    findings.rename(findings.with_stem("x"))
    small = {"name": "x", "leaves": [LEAF, {**LEAF, "name": "Late", "aliases": ["tardy"]}]}
    for name in ("small.json", "small.yaml"):
        (folder / name).write_text(json.dumps(small))
    entry = {"run": "r0", "repeat": 0, "text": "fine", "role": "judge"}
    (folder / "recording.jsonl").write_text(json.dumps(entry) + "\n")
    return folder


def outcome(kind: str, folder: Path, data: bytes) -> str:
    """ "read" or "refused"; anything else fails."""
    name, load = LOADERS[kind]
    path = folder / name
    clean = path.read_bytes()
    try:
        path.write_bytes(data)
        load(path)
    except InputError as error:
        line = str(error)
        assert "\n" not in line, line
        assert len(line) < 5000
        assert str(path.parent) in line, line
        return "refused"
    finally:
        path.write_bytes(clean)
    return "read"


@pytest.mark.parametrize("kind", LOADERS)
def test_the_clean_file_is_read(files: Path, kind: str) -> None:
    assert outcome(kind, files, (files / LOADERS[kind][0]).read_bytes()) == "read"


@pytest.mark.parametrize("kind", LOADERS)
def test_cut_off_anywhere(files: Path, kind: str) -> None:
    """After every byte of a small file, in the thorough profile; else after every n-th."""
    clean = (files / LOADERS[kind][0]).read_bytes()
    step = max(1, len(clean) // often(12, 2000))
    found = {outcome(kind, files, clean[:end]) for end in range(0, len(clean), step)}
    assert "refused" in found or kind in ("annotations", "chart")


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every (container, key) of a value."""
    if isinstance(value, dict | list):
        for key in list(value) if isinstance(value, dict) else range(len(value)):
            yield value, key
            yield from places(value[key])


OTHERS: tuple[Any, ...] = (None, True, -1, 1.5, 10**400, "x", "\u2028", [], {}, [[]], {"": None})
JSON_KINDS = [
    kind
    for kind, (name, _) in LOADERS.items()
    if Path(name).suffix != ".csv" and Path(name).suffix != ".mmd"
]


@pytest.mark.parametrize("kind", JSON_KINDS)
@settings(max_examples=often(8, 500), suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_keys_gone_and_values_of_another_type(files: Path, kind: str, data: st.DataObject) -> None:
    """Changed at up to three places; files of YAML are written as JSON, which YAML is."""
    import yaml

    text = (files / LOADERS[kind][0]).read_text()
    value = yaml.safe_load(
        text.split("\n")[0]
        if LOADERS[kind][0].endswith("l") and not LOADERS[kind][0].endswith("yaml")
        else text
    )
    for _ in range(data.draw(st.integers(1, 3))):
        found = list(places(value))
        if not found:
            break
        container, key = data.draw(st.sampled_from(found))
        change = data.draw(st.sampled_from(["delete", "replace", "double"]))
        if change == "delete":
            del container[key]
        elif change == "replace" or isinstance(container, dict):
            container[key] = deepcopy(data.draw(st.sampled_from(OTHERS)))
        else:
            container.append(deepcopy(container[key]))
    outcome(kind, files, json.dumps(value, ensure_ascii=False).encode() + b"\n")
