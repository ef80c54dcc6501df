"""The data of ``tasks/support`` and its criteria, and the path without a success label.

Amounts and days are computed here from the prices and rules that the notes state.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from agenteval.analysis.means import ALL, ScoreRow, load_ratings, summarize
from agenteval.engine import Experiment
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Request
from agenteval.readers import find_leaks, make_view, read_runs
from agenteval.readers.tasks import load_task
from agenteval.records import Run
from agenteval.store import Store
from agenteval.testing.scripted import ScriptedTransport
from agenteval.utility.bank import load_bank
from agenteval.utility.criteria_file import load_criteria
from agenteval.utility.evaluator import JudgeEvaluator
from agenteval.utility.quantifier import Quantifier
from agenteval.utility.rubric_check import check_criteria

Data = dict[str, Any]
Check = Callable[[list[Data]], list[str]]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tasks" / "support"
CRITERIA = ROOT / "criteria" / "support.reviewed.json"
SYSTEMS = ("brief", "warm", "formal")
MAILS = tuple(f"m{n:02d}" for n in range(1, 11))
FIELDS = {"id", "task", "system", "input", "output", "messages", "success", "reference", "metadata"}
OPERATORS = {
    *("drop_sentences", "drop_words", "drop_middle", "shuffle_sentences"),
    *("truncate", "swap_numbers", "pad", "whitespace", "formatting"),
}


@pytest.fixture(scope="module")
def runs() -> list[Data]:
    text = (FOLDER / "runs.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


# --- what the notes imply, computed ----------------------------------------------------------


def working_days_after(start: date, count: int) -> date:
    """The count-th working day after `start`; Saturdays and Sundays are none."""
    day = start
    while count:
        day += timedelta(days=1)
        count -= day.weekday() < 5
    return day


def implied() -> dict[str, list[str]]:
    """For each mail with amounts or days to compute: what a right reply has to state."""
    dispatch = working_days_after(date(2025, 3, 13), 1)  # booked after 14:00: the next working day
    lamp = [working_days_after(dispatch, n).day for n in (2, 3)]
    credit = Decimal("52.00") * (100 - 15) / 100
    credit_ends = date(2025, 1, 2) + timedelta(days=90)
    corrected = working_days_after(date(2025, 3, 6), 3)
    goods = (Decimal("36.00") + Decimal("6.50")) * (100 - 10) / 100
    workshop = [working_days_after(date(2025, 6, 11), n).day for n in (2, 3)]
    return {
        "m01": [f"{dispatch.day} March", *(f"{day}th" for day in lamp)],
        "m02": [f"{credit:.2f}", f"{credit_ends.day} {credit_ends:%B}", "1 February"],
        "m03": [f"{corrected.day} March", "DE000111222"],
        "m04": ["38.00", "10 euros", "ines@quillmoor.example"],
        "m06": ["20 January", "quillmoor.example/customs"],
        "m07": ["5 June", "ten years", "quillmoor.example/privacy"],
        "m08": [f"{goods:.2f}", f"{goods + Decimal('11.50') - Decimal('25.00'):.2f}"],
        "m10": [f"{24 * Decimal('9.50'):.2f}", *(str(day) for day in workshop), "11 June"],
    }


# --- the checks ------------------------------------------------------------------------------


def check_form(runs: list[Data]) -> list[str]:
    """Fields, ids, messages, and one run of each style for each of 10 mails."""
    wanted = [f"support-{mail[1:]}-{system}" for mail in MAILS for system in SYSTEMS]
    bad = [] if [run["id"] for run in runs] == wanted else ["ids are not the 10 x 3 expected ones"]
    texts = {(run["metadata"]["mail"], run["input"]) for run in runs}
    if len(texts) != 10 or len({text for _, text in texts}) != 10:
        bad.append("a mail has several texts, or two mails share one")
    for run in runs:
        meta = run["metadata"]
        facts = {
            "fields": set(run) == FIELDS and set(meta) == {"mail", "situation", "weaknesses"},
            "id": run["id"] == f"support-{meta['mail'][1:]}-{run['system']}",
            "task": run["task"] == "support",
            "messages": run["messages"]
            == [
                {"role": "user", "content": run["input"]},
                {"role": "assistant", "content": run["output"]},
            ],
            "text": len(run["output"].split()) > 10,
            "note": run["input"].count("\n---\nNote for the agent:\n- ") == 1,
        }
        bad += [f"{run['id']}: {name}" for name, holds in facts.items() if not holds]
    return bad


def check_unlabelled(runs: list[Data]) -> list[str]:
    """``success`` and ``reference`` stand in every record, and are null."""
    return [
        f"{run['id']}: {key}"
        for run in runs
        for key in ("success", "reference")
        if key not in run or run[key] is not None
    ]


def check_facts(runs: list[Data]) -> list[str]:
    """Replies without an intended weakness state what the notes imply."""
    facts = implied()
    return [
        f"{run['id']}: does not say {fact}"
        for run in runs
        if not run["metadata"]["weaknesses"]
        for fact in facts.get(run["metadata"]["mail"], [])
        if not re.search(rf"(?<![\d.]){re.escape(fact)}(?!\d)", run["output"])
    ]


def length_auc(runs: list[Data]) -> float:
    """P(a reply without intended weakness is longer than one with), ties half."""
    sides: dict[bool, list[int]] = {True: [], False: []}
    for run in runs:
        sides[not run["metadata"]["weaknesses"]].append(len(run["output"]))
    wins = sum((a > b) + (a == b) / 2 for a in sides[True] for b in sides[False])
    return wins / (len(sides[True]) * len(sides[False]))


def check_length_and_style(runs: list[Data]) -> list[str]:
    """Neither length nor style tells replies with and without an intended weakness apart."""
    sound = Counter(run["system"] for run in runs if not run["metadata"]["weaknesses"])
    bad = [] if set(sound.values()) == {4} and len(sound) == 3 else [f"sound replies {sound}"]
    value = length_auc(runs)
    return bad + ([] if 0.40 <= value <= 0.60 else [f"AUC of length {value:.3f}"])


CHECKS = (check_form, check_unlabelled, check_facts, check_length_and_style)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_data_passes(check: Check, runs: list[Data]) -> None:
    assert check(runs) == []


def test_the_figures_of_the_readme(runs: list[Data]) -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for system in SYSTEMS:
        sizes = [len(run["output"].split()) for run in runs if run["system"] == system]
        figures = f"{min(sizes)}, {median(sizes):g}, {max(sizes)}"
        assert re.search(rf"^\| `{system}` \|.*\| {figures} \|$", text, re.M), (system, figures)
    counts = Counter(w for run in runs for w in run["metadata"]["weaknesses"])
    rows = re.findall(r"^\| `([a-z_]+)` \| [^|]* \| (\d+) \|$", text, re.M)
    assert {name: int(n) for name, n in rows} == counts
    sound = sum(not run["metadata"]["weaknesses"] for run in runs)
    assert f"empty for {sound} of the 30" in text
    assert max(len(run["metadata"]["weaknesses"]) for run in runs) == 1  # "six with one"
    assert f"({length_auc(runs):.2f})".replace("0.", ".") in text
    listed = re.findall(r"^\| `(m\d\d)` \|", text, re.M)
    assert listed == [*MAILS]
    (wordy,) = (run for run in runs if run["metadata"]["weaknesses"] == ["wordy"])
    usual = median(len(r["output"].split()) for r in runs if r["system"] == wordy["system"])
    assert len(wordy["output"].split()) > 2 * usual


def test_the_task_file_claims_no_success() -> None:
    task = load_task(FOLDER / "task.yaml")
    assert task.name == "support"
    assert not task.examples  # the critic has nothing but the description


def test_reviewed_criteria_are_well_formed() -> None:
    stored = json.loads(CRITERIA.read_text(encoding="utf-8"))
    assert (stored["schema"], stored["task"]) == (1, "support")
    loaded = load_criteria(CRITERIA)
    assert loaded.notes == ()  # nothing had to be turned round or reinterpreted
    criteria = loaded.criteria.criteria
    assert check_criteria(criteria) == []
    assert len(criteria) == 7
    known = {concept.id for concept in load_bank()}
    for entry, criterion in zip(stored["criteria"], criteria, strict=True):
        assert (entry["scale"], entry["order"]) == ("ordinal", "worst_to_best")
        assert set(criterion.expect) == OPERATORS
        assert {criterion.expect[o] for o in ("whitespace", "formatting")} == {"none"}
        assert criterion.provenance.concept in known | {None}
        for level in criterion.accepted_values:  # "Level: what it means", in their order
            assert f"{level.capitalize()}:" in criterion.description, level
        places = [
            criterion.description.index(f"{v.capitalize()}:") for v in criterion.accepted_values
        ]
        assert places == sorted(places)
    assert [c.id for c in criteria if c.provenance.concept is None] == ["next-step"]


# --- the path without ground truth -----------------------------------------------------------

WORST, BEST = 0, -1


def scripted(request: Request) -> str:
    """The worst level for the replies of `formal`, told by their signature, else the best."""
    formal = "Yours sincerely" in request.messages[1]["content"]
    criteria = load_criteria(CRITERIA).criteria.criteria
    pick = WORST if formal else BEST
    return json.dumps(
        {c.id: {"explanation": "said", "label": c.accepted_values[pick]} for c in criteria}
    )


def judged(runs: list[Run], folder: Path) -> tuple[list[ScoreRow], ScriptedTransport]:
    """The rows of the table over `runs`, scored by the scripted model, and what it was asked."""
    transport = ScriptedTransport(scripted)
    client = Client(transport, retry=RetryPolicy(attempts=1))
    judge = Quantifier(client, load_task(FOLDER / "task.yaml"))
    criteria = load_criteria(CRITERIA).criteria.criteria
    items = [(run, make_view(run)) for run in runs]
    with Store(folder / "s.db") as store:
        rated = JudgeEvaluator.of(judge, items, criteria, 1)
        ended = asyncio.run(Experiment(rated, store, concurrency=4).run())
        assert (ended.stopped, ended.progress.scored) == (None, 30 * 7)
        ratings = load_ratings(store, judge.source.sha256)
    return summarize(ratings, criteria), transport


def test_without_labels_there_are_means_and_no_split(tmp_path: Path) -> None:
    read = read_runs(str(FOLDER / "runs.jsonl"))
    assert read.warnings == []
    assert all(run.success is None and run.reference is None for run in read.runs)
    assert all(find_leaks(run, make_view(run)) == [] for run in read.runs)
    rows, transport = judged(read.runs, tmp_path)
    assert len(rows) == 7 * 4
    wanted = {"brief": 1.0, "warm": 1.0, "formal": 0.0, ALL: pytest.approx(2 / 3)}
    for row in rows:
        assert row.overall.mean == wanted[row.system]
        assert (row.overall.n, row.overall.n_clusters) == (30 if row.system == ALL else 10, 10)
        for side in (row.success, row.failed):  # unknown is neither, and not a mean of nothing
            assert (side.mean, side.low, side.high, side.n) == (None, None, None, 0)
    asked = "\n".join(m["content"] for r in transport.requests for m in r.messages)
    assert len(transport.requests) == 30
    intended = {w for r in read.runs for w in r.metadata["weaknesses"]}  # type: ignore[union-attr]
    assert [w for w in intended if "_" in str(w) and str(w) in asked] == []
    assert '"weaknesses"' not in asked


def test_with_labels_the_split_appears(tmp_path: Path) -> None:
    """The same road with twenty labels: what the test above asserts is not true of every table."""
    read = read_runs(str(FOLDER / "runs.jsonl"))
    given = {"brief": True, "warm": None, "formal": False}
    labelled = [r.model_copy(update={"success": given[r.system]}) for r in read.runs]
    rows, _ = judged(labelled, tmp_path)
    for row in (r for r in rows if r.system == ALL):
        assert (row.success.mean, row.success.n) == (1.0, 10)
        assert (row.failed.mean, row.failed.n) == (0.0, 10)
        assert row.overall.n == 30
