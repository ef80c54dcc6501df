"""The built-in taxonomy, and taxonomies of a team's own."""

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.traces.official import CATEGORIES
from agenteval.traces.taxonomy import built_in, load_taxonomy

GROUPS = {  # arXiv 2505.08638, section 3: leaves per group
    "Hallucinations": 2,
    "Information Processing": 2,
    "Decision Making": 2,
    "Output Generation": 2,
    "Configuration": 2,
    "API Issues": 4,
    "Resource Management": 2,
    "Context Management": 2,
    "Task Management": 2,
}
OWN = {
    "name": "ours",
    "leaves": [
        {"name": "Rude answer", "area": "Tone", "group": "Words", "definition": "Insults."},
        {
            "name": "Too late",
            "area": "Time",
            "group": "Time",
            "definition": "Late.",
            "aliases": ["Tardy"],
            "locate": "last",
        },
    ],
}


def test_built_in_has_20_leaves_in_3_areas_and_9_groups() -> None:
    taxonomy = built_in()
    assert len(taxonomy.assigned) == 20
    assert len(taxonomy.areas) == 3
    assert {g: sum(x.group == g for x in taxonomy.assigned) for g in GROUPS} == GROUPS
    assert all(leaf.definition and leaf.signs for leaf in taxonomy.assigned)


def test_built_in_knows_the_scorers_21_labels_one_of_them_unassigned() -> None:
    taxonomy = built_in()
    assert {leaf.name for leaf in taxonomy.leaves} == set(CATEGORIES)
    unassigned = [leaf.name for leaf in taxonomy.leaves if not leaf.assigned]
    assert unassigned == ["Incorrect Memory Usage"]


@pytest.mark.parametrize(
    ("written", "leaf"),
    [
        ("Context Handling Failure", "Context Handling Failures"),
        ("Goal deviation", "Goal Deviation"),
        (" Incorrect Problem Identification", "Incorrect Problem Identification"),
        ("Instruction Non-Compliance", "Instruction Non-compliance"),
        ("Instruction non complience", "Instruction Non-compliance"),
        ("Task Orchestration Errors", "Task Orchestration"),
        ("tool_related", "Tool-related"),
    ],
)
def test_spellings_seen_in_annotations_are_known(written: str, leaf: str) -> None:
    found = built_in().find(written)
    assert found is not None
    assert found.name == leaf


def changed(**leaf: Any) -> dict[str, Any]:
    return {"name": "x", "leaves": [OWN["leaves"][0], {**OWN["leaves"][1], **leaf}]}  # type: ignore[dict-item]


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ([], "mapping with name and leaves"),
        ({"name": "x", "leaves": []}, "leaves: tuple should have at least 1 item"),
        (changed(locate="middle"), "leaves.1.locate: input should be 'first' or 'last'"),
        (changed(colour="red"), "leaves.1.colour: extra inputs"),
        (changed(aliases=["RUDE-answer"]), "'RUDE-answer' matches both"),
        (changed(aliases=["--"]), "has no letter or digit"),
    ],
)
def test_defects_are_named_by_key(tmp_path: Path, data: Any, says: str) -> None:
    path = tmp_path / "bad.json"
    path.write_text(json.dumps(data), "utf-8")
    with pytest.raises(InputError, match=r"bad\.json: ") as caught:
        load_taxonomy(path)
    assert says in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.json", b'{"name": "x",\n "leaves": [}', "a.json:2:13: broken JSON"),
        ("a.yaml", b"name: x\nname: y\n", "'name' occurs twice"),
    ],
)
def test_broken_files(tmp_path: Path, name: str, content: bytes, says: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_taxonomy(path)
    assert says in str(caught.value)
