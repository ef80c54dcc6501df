"""Every promise in the documents names tests and benchmarks that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = ("docs/reliability.md", "docs/scoring-policy.md", "docs/grading-robustness.md")
ROW = re.compile(r"^\| (?!promise |---)(?P<promise>.+?) \| (?P<shown>.+) \|$", re.M)
TEST = re.compile(r"`(tests/[\w/]+\.py)(?:::(\w+))?`")
BENCH = re.compile(r"`(benchmarks/\w+(?:\.py)?)`")
LINK = re.compile(r"\]\((?!https?:)([^)#]+)")


def names_in(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {n.name for n in ast.walk(tree) if isinstance(n, kinds) and n.name.startswith("test_")}


def promises(page: str) -> list[tuple[str, str]]:
    """Rows of the tables whose head is `promise | shown by`."""
    text = (ROOT / page).read_text("utf-8")
    found = []
    for table in re.split(r"\n\n", text):
        if table.startswith("| promise | shown by |"):
            found += [(m["promise"], m["shown"]) for m in ROW.finditer(table)]
    return found


@pytest.mark.parametrize("page", PAGES)
def test_every_promise_names_a_test_that_exists(page: str) -> None:
    rows = promises(page)
    assert len(rows) >= 8  # the tables were found
    for promise, shown in rows:
        named = TEST.findall(shown)
        assert named, f"{page}: no test shows {promise!r}"
        for path, test in named:
            assert (ROOT / path).is_file(), f"{page}: {path}"
            assert not test or test in names_in(ROOT / path), f"{page}: {path}::{test}"
        for path in BENCH.findall(shown):
            runs = ROOT / path if path.endswith(".py") else ROOT / path / "__main__.py"
            assert runs.is_file(), f"{page}: {path}"


@pytest.mark.parametrize("page", [*PAGES, "SECURITY.md", "README.md"])
def test_links_lead_somewhere(page: str) -> None:
    file = ROOT / page
    for target in LINK.findall(file.read_text("utf-8")):
        assert (file.parent / target).exists(), f"{page}: {target}"
