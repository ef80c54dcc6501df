"""docs/store.md: the tables are those of the code, and the queries say what they promise."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from pathlib import Path

from agenteval.evaluators.base import Unit
from agenteval.store import Store, schema
from tests.store.making import ScriptedJudge, criteria, failures, items, rank_of, scores

TEXT = (Path(__file__).parents[2] / "docs" / "store.md").read_text(encoding="utf-8")


def test_every_table_and_column_is_documented() -> None:
    tables = TEXT.split("## Tables")[1].split("## Two queries")[0]
    parts = {m[1]: m[2] for m in re.finditer(r"^`(\w+)`:(.*?)(?=^`\w+`:|\Z)", tables, re.M | re.S)}
    assert set(parts) == set(schema.metadata.tables)
    for name, table in schema.metadata.tables.items():
        named = set(re.findall(r"`([^`]+)`", parts[name]))
        named |= {word.strip() for text in named for word in text.split(",")}
        assert {c.name for c in table.columns} <= named, name


def test_the_queries_run_and_agree_with_a_count_by_hand(tmp_path: Path) -> None:
    judge, runs, dimensions = ScriptedJudge(), items(6), criteria(2)
    values: dict[tuple[str, str], list[float]] = defaultdict(list)
    with Store(tmp_path / "s.db") as store:
        store.register(runs, dimensions, judge.source)
        for i, (run, view) in enumerate(runs):
            unit = Unit(run, view, tuple(dimensions))
            failed = i == 4
            done = (
                failures(unit, judge.source, "unscored:parse")
                if failed
                else scores(unit, judge.source)
            )
            for c in dimensions:
                values[c.id, run.system] += [] if failed else [rank_of(unit, c) / 4]
            store.commit_soon(done.results, done.call).result(5)
    first, second = re.findall(r"```sql\n(.*?)```", TEXT, re.S)
    db = sqlite3.connect(tmp_path / "s.db")
    assert db.execute(first).fetchall() == [
        ("scripted", c, s, round(sum(v) / len(v), 3), len(v), 1 if s == "style-1" else 0)
        for (c, s), v in sorted(values.items())
    ]
    # five calls of 100 and 10 tokens, and one that failed without a report
    assert db.execute(second).fetchall() == [("scripted", 6, 6, 500, 50, None)]
    db.close()
