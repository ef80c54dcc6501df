"""verify --scores: ratings made elsewhere, by the recipe of docs/verify.md and without it."""

from __future__ import annotations

import json
import random
import re
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Cli, Result

PAGE = (Path(__file__).parents[2] / "docs" / "verify.md").read_text(encoding="utf-8")
LABELS = ("unclear", "fair", "clear")
VARIANTS = ("original", "drop_sentences:0.25:0", "shuffle_sentences:-:0", "whitespace:-:0")
Row = dict[str, Any]


def rows_of(judge: str, cases: int = 40, repeats: int = 3) -> list[Row]:
    """Ratings of `clarity`: `fair` follows the case and the perturbation, `random` neither."""
    rng = random.Random(1)
    rows = []
    for case in range(cases):
        for variant in VARIANTS:
            for repeat in range(repeats):
                level = case % 3 if judge == "fair" else rng.randrange(3)
                if judge == "fair" and variant[0] in "ds":
                    level = max(0, level - 1)
                row: Row = {"run": f"r{case}", "criterion": "clarity", "repeat": repeat}
                row |= {"variant": variant, "label": LABELS[level], "success": case % 3 == 2}
                rows.append(row)
    return rows


def verified(cli: Cli, folder: Path, rows: list[Row], *more: object, **expect: str) -> Result:
    """What `verify --scores` makes of the rows; `expect` as given, else of the first two."""
    expected = expect or {"drop_sentences": "lower", "shuffle_sentences": "lower"}
    criterion = {"name": "Clarity", "accepted_values": LABELS, "expect": expected}
    (folder / "mine.json").write_text(
        json.dumps({"schema": 1, "task": "sums", "criteria": [criterion]})
    )
    (folder / "s.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return cli("verify", "--scores", folder / "s.jsonl", "--criteria", folder / "mine.json", *more)


@pytest.mark.parametrize(
    ("judge", "code", "verdict"), [("fair", 0, "trustworthy"), ("random", 5, "not trustworthy")]
)
def test_ratings_made_elsewhere(
    cli: Cli, project: Path, judge: str, code: int, verdict: str
) -> None:
    result = verified(cli, project, rows_of(judge), "--gate")
    assert result.code == code, result.out + result.err
    assert f"the judge {verdict}" in " ".join(result.out.split())
    assert "→ " in result.out


@pytest.mark.parametrize(
    ("options", "verdict"), [((), "not enough data"), (("--deterministic",), "trustworthy")]
)
def test_a_function_needs_no_repeats(
    cli: Cli, project: Path, options: tuple[str, ...], verdict: str
) -> None:
    found = verified(cli, project, rows_of("fair", repeats=1), *options, "--json").json["judge"]
    assert found["verdict"] == verdict
    assert ("--deterministic" in found["next_step"]) is (not options)


def test_a_refuted_criterion_is_named_by_the_gate_unless_it_is_allowed(
    cli: Cli, project: Path
) -> None:
    """Clarity is right, tone is better in failed runs; damage lowers both."""
    rows = rows_of("fair")
    tone = [
        row
        | {"criterion": "tone", "label": LABELS[2 - row["success"] - (row["variant"][0] in "ds")]}
        for row in rows
    ]
    expect = {"drop_sentences": "lower", "shuffle_sentences": "lower"}
    both = [{"name": n, "accepted_values": LABELS, "expect": expect} for n in ("Clarity", "Tone")]
    mine, ratings = project / "mine.json", project / "s.jsonl"
    mine.write_text(json.dumps({"schema": 1, "task": "sums", "criteria": both}))
    ratings.write_text("".join(json.dumps(r) + "\n" for r in [*rows, *tone]))
    command = ("verify", "--scores", ratings, "--criteria", mine, "--gate", "--json")
    refused = cli(*command)
    assert refused.code == 5
    assert refused.json["judge"]["refuted"] == ["tone"]
    assert "tone" in refused.json["gates"][0]["detail"]
    allowed = cli(*command, "--allow-criterion", "Tone")
    assert (allowed.code, allowed.json["judge"]["verdict"]) == (0, "trustworthy except tone")


# ---- copies that equal their original ------------------------------------------------------------


def same(row: Row) -> bool:
    """Whether this test has it that the copy is the same text as the original."""
    return row["variant"].startswith("shuffle") and int(row["run"][1:]) < 15


def with_copies(rows: list[Row], more: Callable[[Row], Row]) -> list[Row]:
    """The rows, copies that are `same` rated as their original, with what `more` adds."""
    original = {r["run"]: r["label"] for r in rows if r["variant"] == "original"}
    return [r | ({"label": original[r["run"]]} if same(r) else {}) | more(r) for r in rows]


def text(row: Row) -> Row:
    """A text for each run and variant; that of a copy which is `same` is its original's."""
    return {"text": f"{row['run']} {'original' if same(row) else row['variant']}"}


def words(row: Row) -> Row:
    """An explanation for each text and repeat."""
    return {"explanation": f"{text(row)['text']} {row['repeat']}"}


def shuffled(result: Result) -> Row:
    (one,) = result.json["criteria"]
    return next(e for e in one["effects"] if e["operator"] == "shuffle_sentences")


def test_copies_with_the_text_of_their_original_are_left_out(cli: Cli, project: Path) -> None:
    result = verified(cli, project, with_copies(rows_of("fair"), text), "--json")
    effect = shuffled(result)
    assert (effect["unchanged"], effect["n"]) == (15, 25)
    # of cases 15 to 39, two in three are not at the lowest level and fall by one of two steps
    assert effect["estimate"] == pytest.approx(0.5 * sum(c % 3 > 0 for c in range(15, 40)) / 25)
    assert effect["shorter"] == 0
    judge = result.json["judge"]
    assert "shuffle_sentences: equal to the original: 15 copies" in judge["warnings"]
    assert not any("rated exactly" in w for w in judge["warnings"])


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            words,
            "copies rated word for word as their original: 15 of 40 by shuffle_sentences: "
            "they are probably the same text; a column `text` tells",
        ),
        # of the 25 others one in three is at the lowest level already: 9 more stay as they are
        (
            lambda row: {},
            "copies rated exactly as their original: 14 of 40 by drop_sentences 25%, "
            "24 of 40 by shuffle_sentences: the same text, or a change that no rating shows; "
            "a column `text` tells",
        ),
    ],
    ids=["explained", "values only"],
)
def test_without_texts_equal_ratings_are_warned_of(
    cli: Cli, project: Path, more: Callable[[Row], Row], said: str
) -> None:
    result = verified(cli, project, with_copies(rows_of("fair"), more), "--json")
    assert shuffled(result)["unchanged"] == 0
    assert said in result.json["judge"]["warnings"]


def blocks(language: str) -> list[str]:
    part = PAGE.split("## Ratings made elsewhere")[1].split("\n## ")[0]
    return re.findall(rf"```{language}\n(.*?)```", part, re.S)


def test_the_recipe(cli: Cli, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (sh,), (program, from_python), (criteria,) = blocks("sh"), blocks("python"), blocks("json")
    tasks = Path(__file__).parents[2] / "tasks" / "math" / "runs.jsonl"
    (project / "runs.jsonl").write_text(tasks.read_text())
    (project / "rate.py").write_text(program)
    (project / "my.json").write_text(criteria)
    make, rate, verify = sh.strip().splitlines()
    monkeypatch.chdir(project)
    made = cli(*make.removeprefix("agenteval ").split())
    assert made.code == 0, made.err
    assert rate == "python rate.py"
    runpy.run_path("rate.py")
    result = cli(*verify.removeprefix("agenteval ").split(), "--json")
    assert result.code == 0, result.err
    judge = result.json["judge"]
    # it counts numbers and letters: what keeps both goes unnoticed, and controls are in it
    assert judge["verdict"] == "not enough data"
    assert not any("control" in reason for reason in judge["reasons"])
    assert not any("repeat" in reason for reason in judge["reasons"])
    length = next(c for c in result.json["criteria"] if c["criterion_id"] == "length")
    drop = next(e for e in length["effects"] if e["operator"] == "drop_sentences")
    assert (drop["outcome"], drop["shorter"], length["cases"]) == ("pass", 1.0, 20)
    (project / "example.py").write_text(from_python)
    example = runpy.run_path("example.py")
    assert example["report"].judge.verdict == "not enough data"  # numbers and letters, no more


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("runs.jsonl", "-o", "c.jsonl", "--perturb", "nonsense"), "'nonsense' does not exist"),
        (("none.jsonl", "-o", "c.jsonl"), "none.jsonl"),
        (("runs.jsonl", "-o", "runs.jsonl"), "the command also reads this file"),
    ],
)
def test_bad_input_to_perturb(
    cli: Cli, project: Path, arguments: tuple[str, ...], said: str
) -> None:
    before = sorted(p.name for p in project.iterdir())
    result = cli("perturb", *arguments)
    assert result.code == 2
    assert said in result.err
    assert len(result.err.strip().splitlines()) == 1
    assert sorted(p.name for p in project.iterdir()) == before
