"""Criteria in the viewer: an edit is previewed with its cost, then written to the file."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agenteval.utility.criteria_file import load_criteria
from tests.view.conftest import Browser, Open

REVIEWED = Path(__file__).parents[2] / "criteria" / "math.reviewed.json"
LEVELS = "wrong\nhalf right\nright"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "math.json"
    path.write_bytes(REVIEWED.read_bytes())
    return path


def form_of(client: Browser, criterion: str) -> dict[str, str]:
    page = client.get("/criteria").text
    (hash_,) = re.findall(rf'name="id" value="{criterion}">\s*<input[^>]*value="(\w+)"', page)
    return {"id": criterion, "sha256": hash_, "name": "Accuracy", "description": "Is it right?"}


def test_an_edit_says_what_is_judged_again_and_is_written_when_confirmed(
    browser: Open, file: Path
) -> None:
    client = browser(labelling=True, criteria_file=file)
    form = {**form_of(client, "accuracy"), "levels": LEVELS}
    before = file.read_bytes()
    page = client.send("/criteria/edit", **form).text
    assert "60 results of recorded are judged again" in page
    assert "<ins>" in page
    assert file.read_bytes() == before
    client.send("/criteria/edit", **form, confirm="yes")
    edited = {c.id: c for c in load_criteria(file).criteria.criteria}
    assert edited["accuracy"].accepted_values == ("wrong", "half right", "right")
    assert edited["accuracy"].order_confirmed
    assert len(edited) == len(json.loads(before)["criteria"])
    answer = client.send("/criteria/edit", **form, confirm="yes")
    assert (answer.status_code, "has changed since" in answer.text) == (422, True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"levels": "only one"}, "at least two"),
        ({"levels": "same\nSame"}, "repeated"),
        ({"name": " "}, "name"),
        ({"id": "wit"}, "criteri"),
    ],
)
def test_an_edit_that_makes_no_scale_is_refused(
    browser: Open, file: Path, change: dict[str, str], said: str
) -> None:
    client = browser(labelling=True, criteria_file=file)
    form = {**form_of(client, "accuracy"), "levels": LEVELS, **change}
    answer = client.send("/criteria/edit", **form, confirm="yes")
    assert (answer.status_code, said in answer.text) == (422, True)
    assert file.read_bytes() == REVIEWED.read_bytes()


def test_without_a_file_or_labelling_nothing_can_be_edited(browser: Open, file: Path) -> None:
    for client in (browser(criteria_file=file), browser(labelling=True)):
        page = client.get("/criteria")
        assert page.status_code == 200
        assert "60 stored results on this wording" in page.text
        assert "/criteria/edit" not in page.text
        assert client.send("/criteria/edit", id="accuracy").status_code in (403, 422)
