"""compare from end to end: systems, judges, stores, files; gates; what cannot be compared."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Et

import pytest

from agenteval.engine import Experiment, Outcome
from agenteval.engine.judging import JudgeUnit, cell_key
from agenteval.records import CallRecord, Criterion, Run, Score, View
from agenteval.store import Store
from agenteval.utility.evaluator import JudgeEvaluator
from tests.cli.conftest import Cli
from tests.store.making import LEVELS, ScriptedJudge, criteria, items

Rank = Callable[[JudgeUnit, Criterion], int]


def judge_of(rank: Rank, **more: Any) -> ScriptedJudge:
    """A judge that gives the level of a rule."""

    def script(unit: JudgeUnit) -> Outcome:
        key = judge.source.sha256
        given = tuple(
            Score(
                key=cell_key(unit, c, key),
                criterion_id=c.id,
                label=LEVELS[rank(unit, c)],
                value=rank(unit, c) / 4,
            )
            for c in unit.criteria
        )
        return Outcome(given, CallRecord(shown=tuple(c.id for c in unit.criteria)))

    judge = ScriptedJudge(script=script, **more)
    return judge


def fill(
    path: Path,
    judge: ScriptedJudge,
    runs: Sequence[tuple[Run, View]],
    rated: Sequence[Criterion] | None = None,
    repeats: int = 1,
) -> None:
    with Store(path) as store:
        rated = JudgeEvaluator.of(judge, runs, rated or criteria(1), repeats)
        asyncio.run(Experiment(rated, store, concurrency=4).run())


def table(told: Any, key: str) -> list[dict[str, Any]]:
    """The rows of one of the tables of `--json`."""
    rows: list[dict[str, Any]] = told["tables"][key]["rows"]
    return rows


def write_scores(path: Path, values: Sequence[float], **more: Any) -> Path:
    lines = [
        {"run": f"r{i}", "case": f"c{i}", "criterion": "clarity", "value": v, **more}
        for i, v in enumerate(values)
    ]
    path.write_text("".join(json.dumps(x) + "\n" for x in lines))
    return path


# ---- what is compared ----------------------------------------------------------------------------


def test_two_judges_of_the_same_runs(cli: Cli, tmp_path: Path) -> None:
    strict = judge_of(lambda u, _: int(u.run.id[4:]) % 3, model="strict")
    lenient = judge_of(lambda u, _: int(u.run.id[4:]) % 3 + 1, model="lenient")
    store = tmp_path / "agenteval.db"
    fill(store, strict, items(66))
    fill(store, lenient, items(63))
    key = lenient.source.sha256[:10]
    result = cli("compare", "--source", "strict", "--source", key, "--json")
    (row,) = table(result.json, "rows")
    assert result.json["pair_by"] == "run"
    assert row["difference"]["value"] == pytest.approx(0.25)
    assert row["verdict"] == "higher"
    assert (row["n"], len(result.json["only_first"])) == (21, 1)
    shown = cli("compare", "--source", "strict", "--source", "lenient")
    assert ": higher, by" in shown.out
    assert "better" not in shown.out


def test_two_stores(cli: Cli, tmp_path: Path) -> None:
    for name, levels in (("a", 1), ("b", 3)):
        fill(tmp_path / f"{name}.db", judge_of(lambda *_, n=levels: n), items(60))
    whole = cli("compare", "--store", "a.db", "--with", "b.db", "--json").json
    assert (whole["pair_by"], whole["a"], whole["b"]) == ("system", "a.db", "b.db")
    assert table(whole, "rows")[0]["difference"]["value"] == 0.5
    assert [r["criterion_id"] for r in table(whole, "rows")] == [
        "quality-0"
    ]  # the same runs, no success
    one = cli("compare", "style-2", "--store", "a.db", "--with", "b.db", "--json").json
    assert table(one, "sides")[0]["ratings"] == 20
    two = cli("compare", "style-2", "style-0", "--store", "a.db", "--with", "b.db", "--json").json
    assert (two["pair_by"], two["a"], two["b"]) == ("case", "style-2", "style-0")


def test_a_changed_scale_is_not_compared(cli: Cli, tmp_path: Path) -> None:
    kept, old = criteria(2)
    new = Criterion(name=old.name, accepted_values=("no", "yes"))
    fill(tmp_path / "a.db", ScriptedJudge(), items(9), [kept, old])
    fill(tmp_path / "b.db", judge_of(lambda *_: 1), items(9), [kept, new])
    result = cli("compare", "--store", "a.db", "--with", "b.db", "--json").json
    assert [r["criterion_id"] for r in table(result, "rows")] == [kept.id]
    assert any("its text or scale differs" in w for w in result["warnings"])
    assert any("the judges also differ" in line for line in result["about"]) == (
        judge_of(lambda *_: 1).source != ScriptedJudge().source
    )


# ---- gates ---------------------------------------------------------------------------------------


OUTCOMES = [1.0] * 27 + [0.0] * 13
WEAKER = [1.0] * 14 + [0.0] * 13 + [1.0] * 7 + [0.0] * 6  # .525, and 20 of 40 pairs differ


@pytest.mark.parametrize(
    ("second", "options", "code", "elements"),
    [
        (OUTCOMES, ["--fail-on-regression"], 0, ["system-out"]),
        (OUTCOMES, ["--fail-if", "not-surely-as-good"], 0, ["system-out"]),
        (WEAKER, ["--fail-on-regression"], 4, ["error", "system-out"]),
        (
            WEAKER,
            ["--fail-if", "surely-worse", "--on-undecided", "fail"],
            4,
            ["error", "system-out"],
        ),
        (WEAKER, ["--fail-on-regression", "--on-undecided", "pass"], 0, ["system-out"]),
        (WEAKER, ["--fail-if", "not-surely-as-good"], 1, ["failure", "system-out"]),
        (
            WEAKER,
            ["--fail-if", "not-surely-as-good", "--on-undecided", "pass"],
            1,
            ["failure", "system-out"],
        ),
    ],
)
def test_forty_cases(
    cli: Cli,
    tmp_path: Path,
    second: list[float],
    options: list[str],
    code: int,
    elements: list[str],
) -> None:
    """Exit code and JUnit say the same; an undecided gate says what would decide it."""
    write_scores(tmp_path / "a.jsonl", OUTCOMES)
    write_scores(tmp_path / "b.jsonl", second)
    result = cli("compare --scores a.jsonl --with b.jsonl", *options, "--junit", "j.xml")
    assert result.code == code, result.out
    case = Et.parse(tmp_path / "j.xml").getroot().find("testsuite/testcase")
    assert case is not None
    assert [element.tag for element in case] == elements
    assert ("about 385 similar cases would settle it" in " ".join(result.out.split())) == (
        second == WEAKER
    )


def test_levels_without_an_order_are_counted_and_have_no_gate(cli: Cli, tmp_path: Path) -> None:
    tone = Criterion(name="tone", scale="nominal", accepted_values=("dry", "warm"))

    def script(unit: JudgeUnit) -> Outcome:
        scores = tuple(
            Score(
                key=cell_key(unit, c, judge.source.sha256),
                criterion_id=c.id,
                label="dry" if c is not tone else ("warm" if unit.run.success else "dry"),
                value=None if c.id == tone.id else 0.5,
            )
            for c in unit.criteria
        )
        return Outcome(scores, CallRecord(shown=tuple(c.id for c in unit.criteria)))

    judge = ScriptedJudge(script=script)
    fill(tmp_path / "agenteval.db", judge, items(72), [criteria(1)[0], tone])
    names = ("style-0", "style-1", "--criterion", "tone")
    shown = cli("compare", *names, "--criterion", "quality-0", "--fail-on-regression")
    assert shown.code == 0, shown.out
    assert "counted: tone, A: dry 12, warm 12" in shown.out
    assert "not rated: tone" not in shown.out
    only = cli("compare", *names, "--fail-on-regression")
    assert only.code == 2
    assert "(tone: levels without an order" in only.err


def test_hostile_names_stay_text(cli: Cli, tmp_path: Path) -> None:
    bad = "[bold]x\x1b[31m</testcase>&"
    for name, value in (("a", 0.5), ("b", 0.25)):
        lines = [
            {"run": f"r{i}", "criterion": bad, "value": value, "system": bad} for i in range(24)
        ]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(x) + "\n" for x in lines))
    result = cli(
        "compare --scores a.jsonl --with b.jsonl --fail-on-regression --junit j.xml",
    )
    assert result.code == 1
    assert "\x1b" not in result.out
    assert "[bold]x[U+001B][31m</testcase>&" in result.out
    case = Et.parse(tmp_path / "j.xml").getroot().find("testsuite/testcase")
    assert case is not None
    assert case.get("name") == "[bold]x�[31m</testcase>&"


# ---- bad input -----------------------------------------------------------------------------------


def test_the_cases_behind_a_difference(cli: Cli, tmp_path: Path) -> None:
    """24 of 40 cases fall by .25, r7 by .75; r39 rises."""
    fell = [0.75 - 0.25 * (i < 24) - 0.5 * (i == 7) + 0.25 * (i == 39) for i in range(40)]
    write_scores(tmp_path / "a.jsonl", [0.75] * 40, system="a")
    write_scores(tmp_path / "b.jsonl", fell, system="b")
    asked = ("compare", "--scores", "a.jsonl", "--with", "b.jsonl")
    shown = cli(*asked)
    assert "clarity: lower in 24 of 40 cases: r7 −0.75, r0 −0.25, r1 −0.25, ..." in " ".join(
        shown.out.split()
    )
    assert "r23" not in shown.out
    assert "r23" in cli(*asked, "--all").out
    rows = table(cli(*asked, "--json").json, "cases")
    assert len(rows) == 25
    assert rows[0] == {
        "criterion_id": "clarity",
        "criterion": "clarity",
        "case": "c7",
        "run": "r7",
        "a": 0.75,
        "b": 0.0,
        "difference": -0.75,
    }
    assert {row["run"] for row in rows if row["difference"] > 0} == {"r39"}
