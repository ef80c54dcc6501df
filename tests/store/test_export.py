"""Exports read back as what was stored; spreadsheets run nothing; a file is whole or absent."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.engine.judging import JudgeUnit
from agenteval.errors import InputError, StoreError
from agenteval.records import CallRecord, CellKey, Failure, Result, Run, Score, View
from agenteval.records.export import EXPORT_COLUMNS
from agenteval.store import Store
from agenteval.store.export import export_cells, results_on_copies
from tests.store.making import ScriptedJudge, criteria, items, scores

JUDGE = ScriptedJudge(seed=5, model="the model")
NASTY = [
    "=1+2",
    "+cmd",
    "-2",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "plain",
    'with "quotes", and',
    "two\nlines",
    "é €",
    "  =led",
    "'=quoted",
    "\ufeff\u00a0+1",
    "|calc",
]


@pytest.fixture
def store(tmp_path: Path):  # type: ignore[no-untyped-def]
    with Store(tmp_path / "s.db") as opened:
        runs = [
            (
                Run(id=f"r{i}", task="t", system=s, input="q", success=(None, True, False)[i % 3]),
                View(run_id=f"r{i}", problem="q", trajectory=str(i)),
            )
            for i, s in enumerate(NASTY)
        ]
        opened.register(runs, criteria(2), JUDGE.source)
        first, second = (c.sha256 for c in criteria(2))
        for i, (_, view) in enumerate(runs):
            made: list[Result] = [
                Score(
                    key=CellKey(
                        run=view.sha256, criterion=first, source=JUDGE.source.sha256, repeat=0
                    ),
                    criterion_id="quality-0",
                    label="fair",
                    value=0.25,
                    explanation=NASTY[i],
                    evidence={"n": [1, None, "x"]},
                    probabilities={"fair": 0.75, "good": 0.25},
                    match="exact",
                ),
                Failure(
                    key=CellKey(
                        run=view.sha256, criterion=second, source=JUDGE.source.sha256, repeat=0
                    ),
                    criterion_id="quality-1",
                    status="unscored:parse",
                    message=NASTY[i],
                ),
            ]
            opened.save_soon(made, CallRecord()).result(5)
        yield opened


def expected(store: Store) -> list[dict[str, Any]]:
    """Rows made from the results by hand, in the order of run id and criterion."""
    runs = store.runs()
    rows = []
    for r in store.results(JUDGE.source.sha256):
        run, row = runs[r.key.run], dict.fromkeys(EXPORT_COLUMNS)
        row.update(
            run_id=run["run_id"],
            task="t",
            system=run["system"],
            case_key=run["case_key"],
            success=None if run["success"] is None else run["success"] == 1,
            variant="original",
            criterion_id=r.criterion_id,
            repeat=0,
            status=r.status,
            evaluator="test",
            model="the model",
            seed=5,
            tries=1,
            run_key=r.key.run,
            criterion_key=r.key.criterion,
            source_key=r.key.source,
            way="",
        )
        if isinstance(r, Score):
            row.update(
                label="fair",
                value=0.25,
                explanation=r.explanation,
                match="exact",
                probabilities=r.probabilities,
                evidence=r.evidence,
            )
        else:
            row.update(message=r.message)
        rows.append(row)
    return sorted(rows, key=lambda row: (row["run_id"], row["criterion_id"]))


def test_json_lines_come_back(store: Store, tmp_path: Path) -> None:
    for name in ("a.jsonl", "a.ndjson", "A.JSONL"):
        assert export_cells(store, tmp_path / name) == 2 * len(NASTY)
        lines = (tmp_path / name).read_text(encoding="utf-8").splitlines()
        assert [json.loads(line) for line in lines] == expected(store)


def test_csv_comes_back_and_holds_no_formula(store: Store, tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    assert export_cells(store, path) == 2 * len(NASTY)
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert tuple(rows[0]) == EXPORT_COLUMNS
    for got, want in zip(rows, expected(store), strict=True):
        for name, text in got.items():
            assert text[:1] not in ("=", "+", "-", "@", "\t", "\r", "\n", "＝"), (name, text)
            value = want[name]
            plain = (
                ""
                if value is None
                else json.dumps(value)
                if isinstance(value, dict)
                else str(value)
            )
            if text != plain:
                assert text == "'" + plain
                assert plain.lstrip(" \ufeff\u00a0")[0] in "=+-@\t\r\n＝|"
    guarded = sorted(r["system"] for r in rows if r["system"].startswith("'"))
    assert len(guarded) == 2 * 12  # eleven formulas and the text that had its apostrophe already


def test_parquet_comes_back_with_its_types(store: Store, tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "a.parquet"
    assert export_cells(store, path) == 2 * len(NASTY)
    table = parquet.read_table(path)
    rows = [
        {**row, **{n: row[n] and json.loads(row[n]) for n in ("probabilities", "evidence")}}
        for row in table.to_pylist()
    ]
    assert rows == expected(store)
    types = {field.name: str(field.type) for field in table.schema}
    assert (types["value"], types["success"], types["tries"]) == ("double", "bool", "int64")
    # The types do not depend on what happens to be in the store.
    none = tmp_path / "none.parquet"
    assert export_cells(store, none, source_key="0" * 64) == 0
    assert parquet.read_table(none).schema == table.schema


def test_the_way_of_asking_stands_in_every_row_and_probes_can_be_left_out(tmp_path: Path) -> None:

    asked: dict[str, dict[str, Any]] = {
        "": {"one_per_call": False, "wording": "a"},
        "datamark": {"datamark": "^"},
        "one per call, wording b": {"one_per_call": True, "wording": "b"},
        "reversed scale": {"reversed_scale": True},
        "injection probe": {"probe": "injection/1"},
    }
    with Store(tmp_path / "s.db") as store:
        for parameters in asked.values():
            source = JUDGE.source.model_copy(update={"parameters": parameters})
            store.register(items(1), criteria(1), source)
            done = scores(JudgeUnit(*items(1)[0], tuple(criteria(1))), source)
            store.save_soon(done.results, done.call).result(5)
        sources = dict(store.sources())
        for kept, probes in ((set(asked), True), ({"", "datamark"}, False)):
            assert export_cells(store, tmp_path / "a.jsonl", probes=probes) == len(kept)
            rows = [json.loads(x) for x in (tmp_path / "a.jsonl").read_text().splitlines()]
            assert {r["way"] for r in rows} == kept
            assert all(asked[r["way"]] == sources[r["source_key"]].parameters for r in rows)
        probe = next(k for k, s in sources.items() if "probe" in s.parameters)
        assert export_cells(store, tmp_path / "b.csv", source_key=probe, probes=False) == 1


def test_perturbed_copies_are_left_out_unless_asked_for(tmp_path: Path) -> None:

    two = items(2)
    with Store(tmp_path / "s.db") as store:
        store.register(two, criteria(1), JUDGE.source)
        for (run, view), variant in (
            (two[0], "original"),
            (two[1], "original"),
            (two[0], "pad:0.25:0"),
        ):
            done = scores(JudgeUnit(run, view, tuple(criteria(1)), 0, variant), JUDGE.source)
            store.save_soon(done.results, done.call).result(5)
        for copies, variants in ((False, ["original"] * 2), (True, ["original", "pad:0.25:0"] * 2)):
            rows = export_cells(store, tmp_path / "a.jsonl", copies=copies)
            lines = [json.loads(x) for x in (tmp_path / "a.jsonl").read_text().splitlines()]
            assert sorted(x["variant"] for x in lines) == sorted(variants[:rows])
            assert rows == 2 + copies
        assert results_on_copies(store, [JUDGE.source.sha256]) == 1
        assert results_on_copies(store, ["0" * 64]) == 0


def test_a_wrong_suffix_and_a_failure_in_the_middle(store: Store, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"\.jsonl, \.csv or \.parquet"):
        export_cells(store, tmp_path / "a.xlsx")
    for name in ("old.jsonl", "old.csv", "old.parquet"):
        (tmp_path / name).write_text("old")
    import sqlite3

    with sqlite3.connect(store.path) as db:  # the last row in the order of the file is damaged
        db.execute(
            "UPDATE results SET detail = '{' WHERE rowid = (SELECT r.rowid FROM results r"
            " JOIN items USING (item_key) ORDER BY id DESC, criterion_key DESC LIMIT 1)"
        )
    db.close()
    for name in ("old.jsonl", "old.csv", "old.parquet"):
        with pytest.raises(StoreError, match="damaged"):
            export_cells(store, tmp_path / name)
        assert (tmp_path / name).read_text() == "old"
    assert not list(tmp_path.glob("*.partial")) + list(tmp_path.glob(".*.partial"))
