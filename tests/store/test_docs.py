"""docs/store.md: the tables are those of the code, and the queries say what they promise."""

from __future__ import annotations

import re
import sqlite3
from collections import defaultdict
from pathlib import Path

from agenteval.engine.judging import JudgeUnit
from agenteval.records.trial import TrialSystem
from agenteval.store import Store, schema
from tests.store.making import ScriptedJudge, criteria, failures, items, rank_of, scores
from tests.store.trial_making import SYSTEM, failed, key, known, trial

EVALUATOR = ScriptedJudge().source.evaluator
TEXT = (Path(__file__).parents[2] / "docs" / "store.md").read_text(encoding="utf-8")


def test_every_table_and_column_is_documented() -> None:
    tables = TEXT.split("## Tables")[1].split("## Three queries")[0]
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
            unit = JudgeUnit(run, view, tuple(dimensions))
            failed = i == 4
            done = (
                failures(unit, judge.source, "unscored:parse")
                if failed
                else scores(unit, judge.source)
            )
            for c in dimensions:
                values[c.id, run.system] += [] if failed else [rank_of(unit, c) / 4]
            store.save_soon(done.results, done.call).result(5)
    first, second, _ = re.findall(r"```sql\n(.*?)```", TEXT, re.S)
    db = sqlite3.connect(tmp_path / "s.db")
    assert db.execute(first).fetchall() == [
        (EVALUATOR, "scripted", c, s, round(sum(v) / len(v), 3), len(v), int(s == "style-1"))
        for (c, s), v in sorted(values.items())
    ]
    # five calls of 100 and 10 tokens, and one that failed without a report
    assert db.execute(second).fetchall() == [(EVALUATOR, "scripted", 6, 6, 500, 50, None)]
    db.close()


def test_the_query_on_trials_agrees_with_a_count_by_hand(tmp_path: Path) -> None:
    other = TrialSystem(key=key("other"), name="another", parameters={})
    made = [
        *(
            trial(i, n, outcome=o)
            for i, n, o in [(0, 0, "pass"), (0, 1, "order_error"), (1, 0, "pass"), (1, 1, "pass")]
        ),
        failed(2),
        trial(3, outcome=None, check_key=None, verdict=None),
        trial(0, system=other.key, outcome="action_lost"),
    ]
    with Store(tmp_path / "s.db") as store:
        trials = known(store, 4, SYSTEM, other)
        for t in made:
            trials.store.save_soon((), t).result(5)
    db = sqlite3.connect(tmp_path / "s.db")
    assert db.execute(re.findall(r"```sql\n(.*?)```", TEXT, re.S)[2]).fetchall() == [
        ("planning", "another", "action_lost", 1),
        ("planning", "scripted", "done", 1),
        ("planning", "scripted", "error:infrastructure", 1),
        ("planning", "scripted", "order_error", 1),
        ("planning", "scripted", "pass", 3),
    ]
    db.close()
