"""Ids become names of files only where they can do no harm, and no two ids name one file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.files import file_in

BAD = (
    "",
    ".",
    "..",
    ".hidden",
    " a",
    "a ",
    "a.",
    "../../etc/x",
    "/etc/x",
    "a/b",
    "a\\b",
    "C:x",
    "a\0b",
    "a\nb",
    "a\x1b[31m",
    "a\x85b",
    "\u202ex",
    "a\u200bb",
    "x" * 201,
    "é" * 101,
    "a\ud800b",
    "a*",
    "a?",
    'a"',
    "<a>",
    "a|b",
)


@pytest.mark.parametrize("id", BAD)
def test_what_cannot_name_a_file(tmp_path: Path, id: str) -> None:
    with pytest.raises(InputError) as caught:
        file_in(tmp_path, id, ".json", set())
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("id", ["a", "0123abcd", "run-7_b.c", "日本", "é" * 100, "console", "-x"])
def test_what_can(tmp_path: Path, id: str) -> None:
    path = file_in(tmp_path, id, ".json", set())
    path.write_text("x")
    assert [p.name for p in tmp_path.iterdir()] == [f"{id}.json"]


@pytest.mark.parametrize(("first", "second"), [("Ab", "aB"), ("é", "e\u0301"), ("ﬁ", "FI")])
def test_two_ids_are_two_files_everywhere(tmp_path: Path, first: str, second: str) -> None:
    taken: set[str] = set()
    file_in(tmp_path, first, ".json", taken)
    file_in(tmp_path, "other", ".json", taken)
    with pytest.raises(InputError, match="the same file"):
        file_in(tmp_path, second, ".json", taken)


def test_a_link_at_the_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "a.json").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InputError, match="a symbolic link is at this path"):
        file_in(tmp_path / "out", "a", ".json", set())


@given(st.text(max_size=20))
def test_no_id_leaves_the_folder(id: str) -> None:
    root = Path("/nowhere/root")
    try:
        path = file_in(root, id, ".json", set())
    except InputError:
        return
    assert path.parent == root
    assert path.resolve().parent == root
