"""Task folders: where they are found, and one clear line for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.readers.tasks import find_task, load_task, task_names

GOOD = "description: Do it.\nexamples:\n  success:\n    - {input: a, output: b}\n"


def write(folder: Path, text: str, name: str = "mine") -> Path:
    path = folder / "tasks" / name / "task.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_the_packaged_task_is_found_from_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = find_task("math")
    assert folder.task.name == "math"
    assert folder.runs is not None
    assert "math" in task_names()


def test_the_working_folder_comes_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, GOOD, "math")
    monkeypatch.chdir(tmp_path)
    assert find_task("math").task.description == "Do it."


def test_a_folder_named_by_the_environment_or_by_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(tmp_path, GOOD)
    monkeypatch.setenv("AGENTEVAL_TASKS", str(tmp_path / "tasks"))
    assert find_task("mine").task.examples.success[0].output == "b"
    monkeypatch.delenv("AGENTEVAL_TASKS")
    assert find_task(str(path.parent)).task.name == "mine"


def test_an_unknown_task_names_the_nearest() -> None:
    with pytest.raises(InputError, match="no task 'maht'; did you mean math"):
        find_task("maht")
    with pytest.raises(InputError, match="no task"):
        find_task("../tasks/math")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("description: [unclosed", "not valid YAML"),
        ("- a list", "a task is a mapping"),
        ("name: x", "description: field required"),
        ("description: d\nnmae: x", "nmae: extra inputs"),
        ("description: d\ndescription: e", "'description' occurs twice"),
        ("description: &a d\nname: *a", "aliases are not allowed"),
        ("description: d\nexamples: {success: [{input: a}]}", "examples.success.0.output"),
        ("description: 12", "description: input should be a valid string"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, text: str, message: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(InputError, match=message) as caught:
        load_task(path)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
