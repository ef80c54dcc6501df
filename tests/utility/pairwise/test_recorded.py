"""Comparisons of AlpacaEval, arena-hard and JudgeBench: figures equal those of their authors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval.errors import InputError

# Samples of our own in the layouts of the published files.
ALPACA = [
    {
        "instruction": f"Name {n} rivers.",
        "output_1": "The Elbe.",
        "output_2": "The Elbe and the Oder.",
        "generator_1": "base",
        "generator_2": "model",
        "annotator": "a",
        "preference": preference,
    }
    for n, preference in enumerate((1, 2, 1.9, 1.5, 0, None))
]
PROMPT = (
    "<|User Prompt|>\nWhat is 2 + 2?\n\n<|The Start of Assistant A's Answer|>\nfive\n"
    "<|The End of Assistant A's Answer|>\n\n<|The Start of Assistant B's Answer|>\nfour\n"
    "<|The End of Assistant B's Answer|>"
)


def arena(uid: str, first: str | None, second: str | None, **more: Any) -> dict[str, Any]:
    games = [{"score": first, "prompt": [{"role": "user", "content": PROMPT}]}, {"score": second}]
    return {"uid": uid, "model": "m", "baseline": "base", "judge": "j", "games": games, **more}


# In the first game A is the baseline, in the second the model.
ARENA = [
    arena("q1", "B>>A", "A>>B"),
    arena("q2", "A>B", "A=B"),
    arena("q3", "A>>B", "A>B"),
    arena("q4", "B>A", None),
]


def judgebench(n: int, label: str, *decisions: str | None) -> dict[str, Any]:
    return {
        "pair_id": f"p{n}",
        "question": f"What is {n} + 1?",
        "response_A": f"It is {n + 1}.",
        "response_B": f"It is {n + 2}, of course.",
        "label": label,
        "judgments": [None if d is None else {"decision": d, "judgment": {}} for d in decisions],
    }


JUDGEBENCH = [
    judgebench(1, "A>B", "A>B", "B>A"),  # right in both orders
    judgebench(2, "A>B", "A>B", "A=B"),  # right, and a tie
    judgebench(3, "B>A", "A>B", "A>B"),  # the first position each time
    judgebench(4, "B>A", "A>B", "B>A"),  # wrong in both orders
    judgebench(5, "B>A", "B>A", None),  # right, and a failed judgment
]


def written(folder: Path, rows: list[dict[str, Any]], name: str = "pairs.jsonl") -> Path:
    path = folder / name
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    path.write_text(json.dumps(rows) if path.suffix == ".json" else lines)
    return path


@pytest.mark.parametrize("name", ["annotations.json", "annotations.jsonl"])
def test_alpaca_eval_win_rate_is_the_mean_of_preference_minus_1(tmp_path: Path, name: str) -> None:
    report = agenteval.prefer(verdicts=written(tmp_path, ALPACA, name))
    (row,) = report["published"].rows
    assert row["value"].value == pytest.approx((0 + 1 + 0.9 + 0.5 + 0.5) / 5)
    (preference,) = report.rows
    assert (preference.system, preference.against) == ("model", "base")
    assert (preference.wins, preference.losses, preference.ties) == (2, 1, 2)
    assert (preference.flips, preference.missing) == (0, 1)
    assert preference.win_rate.mean == row["value"].value


def test_both_games_of_arena_hard_are_one_comparison(tmp_path: Path) -> None:
    report = agenteval.prefer(verdicts=written(tmp_path, ARENA))
    (preference,) = report.rows
    assert (preference.system, preference.against) == ("m", "base")
    assert (preference.wins, preference.flips, preference.missing) == (1, 2, 1)
    # first position: q1 none, one; q2 one, tie; q3 one, one
    bias = report["position"].rows[0]["bias"].value
    assert bias == pytest.approx((0 + 1 + 1 + 0.5 + 1 + 1) / 6 - 0.5)


def test_judgebench_accuracy_counts_pairs_with_more_right_than_wrong(tmp_path: Path) -> None:
    report = agenteval.prefer(verdicts=written(tmp_path, JUDGEBENCH))
    (row,) = report["published"].rows
    assert row["value"].value == pytest.approx(3 / 5)
    (agreement,) = report["labels"].rows
    assert agreement["value"].value == pytest.approx(1 / 4)  # both orders, and none missing


@pytest.mark.parametrize("rows", [ALPACA[:4], [arena("q", None, None)], JUDGEBENCH[:4]])
def test_the_pairs_are_judged_and_compared_with_their_labels(
    tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    def longer(first: agenteval.Run, second: agenteval.Run, criterion: object) -> str:
        a, b = len(first.output), len(second.output)
        return "tie" if a == b else "first" if a > b else "second"

    path = written(tmp_path, rows)
    report = agenteval.prefer(pairs=path, judge=longer, version="1", store=tmp_path / "s.db")
    assert len(report.outcomes) == len(rows)
    assert report.rows[0].flips == 0
    if "games" in rows[0]:
        assert report.rows[0].ties == 1  # "five" and "four"
        return
    (agreement,) = report["labels"].rows
    # AlpacaEval: preferences 1, 2, 1.9 and 1.5, a tie; JudgeBench: two labels for the longer B
    expected = 2 / 3 if "preference" in rows[0] else 0.5
    assert agreement["value"].value == pytest.approx(expected)


@pytest.mark.parametrize(
    ("rows", "line", "value"),
    [
        ([ALPACA[0], {**ALPACA[1], "preference": 3}], 2, "3"),
        ([{**ALPACA[0], "preference": 0.5}], 1, "0.5"),
        ([{**ALPACA[0], "preference": "model"}], 1, "'model'"),
        ([ARENA[0], arena("q", "A>>>B", "A=B")], 2, "'A>>>B'"),
        ([{**ARENA[0], "games": [{"score": "A>B"}]}], 1, "'games'"),
        ([{**ARENA[0], "games": ["A>B", "A>B"]}], 1, "'A>B'"),
        ([judgebench(1, "A=B", "A>B")], 1, "'A=B'"),
        ([judgebench(1, "A>B", "first")], 1, "'first'"),
        ([JUDGEBENCH[0], ALPACA[0]], 2, "JudgeBench"),
        ([{"a": 1}], 1, "AlpacaEval"),
    ],
)
def test_values_that_are_not_published_ones_are_refused_with_their_line(
    tmp_path: Path, rows: list[dict[str, Any]], line: int, value: str
) -> None:
    path = written(tmp_path, rows)
    with pytest.raises(InputError) as error:
        agenteval.prefer(verdicts=path)
    assert str(error.value).startswith(f"{path}:{line}: ")
    assert value in str(error.value)


def test_pairs_without_texts_or_verdicts_name_the_other_way(tmp_path: Path) -> None:
    no_texts = [{**ARENA[0], "games": [{"score": "A>B"}, {"score": "B>A"}]}]
    with pytest.raises(InputError, match="--verdicts"):
        agenteval.prefer(pairs=written(tmp_path, no_texts), judge=lambda a, b, c: "tie")
    path = written(tmp_path, [judgebench(1, "A>B")])
    for options in ({}, {"judge": "m"}, {"verify": True}):
        with pytest.raises(InputError, match="--pairs"):
            agenteval.prefer(verdicts=path, **options)
