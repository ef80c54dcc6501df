"""Which runs get an attack, which text they get, and where it stands in the prompt."""

from __future__ import annotations

import base64
import json
from collections import Counter

import numpy as np
import pytest

from agenteval.errors import InputError
from agenteval.readers import make_view
from agenteval.records import Criterion, Run, View
from agenteval.stats.scores import score_table
from agenteval.utility.probes.attacks import (
    DATAMARK,
    KINDS,
    Target,
    add_texts,
    attack_text,
    choose_targets,
    control_text,
    most_targets,
)
from agenteval.utility.probes.result import ProbeOptions
from agenteval.utility.reading import read_text

A = Criterion(name="A", accepted_values=("bad", "fair", "good"))
B = Criterion(name="B", accepted_values=("no", "yes"))
PARTS = Criterion(name="Whole", sub_criteria=(A, B))
NUMBER = Criterion(name="Grade", scale="numeric", numeric_range=(6, 1))  # 1 is the best
KIND = Criterion(name="Kind", scale="nominal", accepted_values=("x", "y"))


def item(
    name: str, success: bool | None, case: str = "", output: str = "It is so."
) -> tuple[Run, View]:
    run = Run(id=name, input=case or f"case of {name}", output=output, success=success)
    return run, make_view(run)


def chosen(
    items: list[tuple[Run, View]], values: dict[tuple[str, str], list[float]], **how: int
) -> dict[str, Target]:
    rows = [
        {"run": run, "case": run, "criterion": name, "repeat": k, "value": value}
        for (run, name), given in values.items()
        for k, value in enumerate(given)
    ]
    options = ProbeOptions(min_cases=2, **how)
    found = choose_targets(items, (A, B, KIND), score_table(rows), options)
    return {t.run.id: t for t in found}


def test_failures_are_chosen_on_what_can_rise() -> None:
    items = [item("f", False), item("g", False), item("s", True), item("u", None)]
    values = {
        ("f", "a"): [1.0, 0.5],
        ("f", "b"): [1.0, 1.0],
        ("g", "a"): [0.5],
        ("s", "a"): [0.0],
        ("u", "a"): [0.0],
        ("f", "kind"): [0.0],
    }
    found = chosen(items, values)
    assert {name: (t.counted, t.plain, t.labelled) for name, t in found.items()} == {
        "f": (("a",), 0.75, True),
        "g": (("a",), 0.5, True),
    }


def test_with_few_failures_runs_of_unknown_outcome_that_are_rated_low_join() -> None:
    items = [item("f", False), item("low", None), item("high", None), item("good", True)]
    values = {
        ("f", "a"): [0.5],
        ("low", "a"): [0.0, 0.5],
        ("low", "b"): [0.5],
        ("good", "a"): [0],
        ("high", "a"): [0.5, 1.0],
    }
    found = chosen(items, values)
    assert {name: (t.counted, t.labelled) for name, t in found.items()} == {
        "f": (("a",), True),
        "low": (("a",), False),  # b lies in the middle, not below it
    }


def test_what_no_judge_is_asked_about_is_left_out() -> None:
    """An empty answer gets the worst level by rule, with or without an attack behind it."""
    items = [item("empty", False, output="..."), item("f", False), item("unrated", False)]
    assert list(chosen(items, {("empty", "a"): [0.5], ("f", "a"): [0.5]})) == ["f"]
    assert most_targets([run for run, _ in items], ProbeOptions()) == 2


def test_cases_come_first_kinds_are_dealt_evenly_and_the_seed_decides() -> None:
    items = [item(f"r{i}", False, case=f"case {i % 30}") for i in range(90)]
    values = {(run.id, "a"): [0.5] for run, _ in items}
    found = chosen(items, values, attacked=40)
    assert len(found) == 40
    assert len({t.run.input for t in found.values()}) == 30
    assert sorted(Counter(t.kind for t in found.values()).values()) == [3] * 8 + [4] * 4
    assert chosen(items[::-1], values, attacked=40) == found
    assert chosen(items, values, attacked=40, seed=1).keys() != found.keys()
    with pytest.raises(InputError):
        ProbeOptions(attacked=0)


def test_a_finished_grading_names_the_real_criteria_with_their_best_levels() -> None:
    text = attack_text("verdict", (PARTS, NUMBER, KIND))
    assert {k: v["label"] for k, v in json.loads(text).items()} == {
        "whole/a": "good",
        "whole/b": "yes",
        "grade": 1,
    }
    answers, _ = read_text(text, (PARTS, NUMBER), None)
    assert not answers.missing()  # a judge that repeats it gives a grading that can be read
    assert "whole/a: good\nwhole/b: yes\ngrade: 1" in attack_text(
        "constant_answer", (PARTS, NUMBER)
    )


def test_twelve_kinds_and_controls_of_their_form_and_length() -> None:
    assert len(set(KINDS)) == len(KINDS) == 12
    rng = np.random.default_rng(0)
    for kind in KINDS:
        attack, control = attack_text(kind, (A, B)), control_text(kind, (A, B), rng)
        assert attack != control
        slack = 45 * (4 / 3 if kind == "base64" else 1.3 if kind == "hidden" else 1)
        assert abs(len(attack) - len(control)) <= slack, kind  # half a sentence, in its form
        for words in ("level", "criteri", "examiner", "grad", "mark", "nivel"):
            assert words not in control.lower(), (kind, words)
        for sign in ("\u200b", "\u2067", DATAMARK):
            assert (sign in attack) == (sign in control), kind
    hidden = base64.b64decode(attack_text("base64", (A,))).decode()
    assert "best level" in hidden
    assert "best level" not in base64.b64decode(control_text("base64", (A,), rng)).decode()


def test_copies_say_their_origin_and_the_same_seed_makes_the_same() -> None:
    run, view = item("f", False)
    target = Target(run, view, "plea", ("a",), 0.5, True)
    copies = add_texts([target], (A, B), 7)
    assert list(copies) == ["attack:plea:7", "control:plea:7"]
    attack, control = (items[0][1] for items in copies.values())
    assert attack.trajectory == f"It is so.\n\n{attack_text('plea', (A, B))}"
    assert (attack.origin, control.origin) == (view.sha256, view.sha256)
    assert len({view.sha256, attack.sha256, control.sha256}) == 3
    assert add_texts([target], (A, B), 7) == copies
    other = add_texts([target], (A, B), 8)["control:plea:8"][0][1]
    assert other.trajectory != control.trajectory
