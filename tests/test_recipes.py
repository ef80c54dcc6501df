"""docs/recipes.md: what all recipes share, and promptfoo's, called as promptfoo 0.121 calls it.

The others are run by `make test-interop` with the packages that they need.
"""

from __future__ import annotations

import importlib
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

from agenteval.store import Store
from tests.interop.three_answers import EXPECTED, FAILURE, QUESTION, SAID, SCORES

PAGE = (Path(__file__).parents[1] / "docs" / "recipes.md").read_text(encoding="utf-8")
FILES = dict(re.findall(r"^```python\n# (\w+\.py)\n(.*?)^```", PAGE, re.M | re.S))


@pytest.fixture
def recipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`import_module` in a folder with the files of the page."""
    from tests.interop import three_answers

    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)
    three_answers.write()
    before = set(sys.modules)
    for name, text in FILES.items():
        Path(name).write_text(text, encoding="utf-8")
    yield importlib.import_module
    for name in {"ours", "judges", "in_promptfoo"} - before:
        sys.modules.pop(name, None)


def test_scores_and_failures_of_one_answer(recipes: Any) -> None:
    judged = recipes("ours").judged
    for said, expected in zip(SAID, SCORES, strict=True):
        scores, failures = judged(QUESTION, said, EXPECTED)
        assert {score.criterion_id: score.value for score in scores} == expected
        assert {f.status for f in failures} == ({FAILURE} if len(expected) == 1 else set())
    with Store("agenteval.db", create=False) as store:
        assert len(store.runs()) == 3


def test_promptfoo(recipes: Any) -> None:
    get_assert = recipes("in_promptfoo").get_assert
    context = {"vars": {"question": QUESTION, "expected": EXPECTED}}
    right, wrong = (get_assert(said, context) for said in SAID[:2])
    assert (right["pass"], right["score"], right["namedScores"]) == (True, 1.0, SCORES[0])
    assert (wrong["pass"], wrong["score"], wrong["namedScores"]) == (False, 0.0, SCORES[1])
    json.dumps([right, wrong])  # promptfoo's wrapper writes it so
    with pytest.raises(ValueError, match=f"clarity: {FAILURE}"):
        get_assert(SAID[2], context)


def test_each_recipe_but_promptfoos_is_run_by_test_interop() -> None:
    scripts = Path(__file__).parent / "interop"
    used = "".join(path.read_text() for path in scripts.glob("page_*.py"))
    imported = set(re.findall(r"^from (\w+) import Utility", used, re.M))
    assert imported == {Path(name).stem for name in FILES} - {"ours", "in_promptfoo"}
