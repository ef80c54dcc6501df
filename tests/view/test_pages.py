"""The pages that show runs, on the recorded judgements of tasks/math."""

from __future__ import annotations

import html
import json
import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from agenteval.records.verification import Check, JudgeVerdict, Verification, VerifiedSet
from agenteval.store import Store
from agenteval.store.experiments import Grid, StoredExperiment, begin, short
from agenteval.view.judge_index import read_index
from tests.view.conftest import Browser, Open


def words(page: str) -> str:
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def rows(page: str) -> list[str]:
    (table,) = re.findall(r'<table class="grid">(.*?)</table>', page, re.S)
    return re.findall(r"<tr><th scope=\"row\"><a[^>]*>(.*?)</a>", table)


def link(page: str, start: str) -> str:
    found = re.search(rf'href="({re.escape(start)}[^"]*)"', page)
    assert found is not None
    return html.unescape(found[1])


@pytest.fixture
def pages(browser: Open) -> Browser:
    return browser()


@pytest.mark.parametrize(
    ("query", "total"),
    [
        ({}, 60),
        ({"success": "yes"}, 31),
        ({"success": "no"}, 29),
        ({"success": "unknown"}, 0),
        ({"system": "duo"}, 20),
        ({"text": "MATH-07"}, 3),
        ({"text": "%"}, None),
        ({"status": "failure", "system": "duo"}, None),
    ],
)
def test_the_grid_is_filtered_as_the_runs_are(
    pages: Browser, store: Path, query: dict[str, str], total: int | None
) -> None:
    page = pages.get("/grid", **query).text
    with Store(store, create=False) as opened:
        index = read_index(opened, opened.sources()[-1][0])
        bodies = dict(opened.bodies(index.by_key))
    if total is None and "text" in query:
        total = sum("%" in str(body) for body in bodies.values())
    elif total is None:
        failed = [run for run, n in zip(index.runs, index.failed, strict=True) if n]
        total = sum(run.system == "duo" for run in failed)
    assert f"of {total} " in words(page) or (total == 0 and "No run fits" in page)


def test_the_grid_sorts_by_the_mean_of_a_criterion(pages: Browser, store: Path) -> None:
    with Store(store, create=False) as opened:
        ((key, _),) = opened.sources()
        criterion = next(iter(opened.criteria_of(key).values())).id
        values: dict[str, list[float]] = {}
        for result in opened.results(key, variant="original"):
            value = getattr(result, "value", None)
            if result.criterion_id == criterion and value is not None:
                values.setdefault(result.key.run, []).append(value)
        names = {k: run["run_id"] for k, run in opened.runs().items()}
    means = {names[k]: sum(v) / len(v) for k, v in values.items()}
    shown = rows(pages.get("/grid", sort=criterion, order="desc").text)
    assert [means[run] for run in shown] == sorted(means.values(), reverse=True)[:50]
    second = rows(pages.get("/grid", sort=criterion, order="desc", page="2").text)
    assert sorted([*shown, *second]) == sorted(means)


def test_dots_are_thirds_of_the_scale_and_levels_can_be_filtered(
    pages: Browser, store: Path
) -> None:
    with Store(store, create=False) as opened:
        ((key, _),) = opened.sources()
        results = [r for r in opened.results(key, variant="original") if hasattr(r, "label")]
        names = {k: run["run_id"] for k, run in opened.runs().items()}
    page = pages.get("/grid").text
    shown = set(rows(page))
    thirds = [min(int(r.value * 3 + 1e-9), 2) for r in results if names[r.key.run] in shown]
    body = page.partition("<tbody>")[2]
    dots = [body.count(f'"dot {kind}"') for kind in ("low", "middle", "high")]
    assert dots == [thirds.count(third) for third in (0, 1, 2)]
    criterion, level = results[0].criterion_id, results[0].label
    having = {names[r.key.run] for r in results if (r.criterion_id, r.label) == (criterion, level)}
    filtered = pages.get("/grid", criterion=criterion, level=level).text
    assert set(rows(filtered)) <= having
    assert f"of {len(having)} " in words(filtered)


def test_cases_by_systems(pages: Browser, store: Path) -> None:
    page = pages.get("/grid", by="accuracy").text
    assert len(rows(page)) == 20
    assert all(f'<th scope="col">{name}</th>' in page for name in ("coder", "duo", "stepwise"))


def test_a_run_shows_text_levels_and_calls(pages: Browser, store: Path) -> None:
    page = pages.get("/grid").text
    address = link(page, "/run?")
    run = words(pages.get(address).text)
    with Store(store, create=False) as opened:
        ((key, _),) = opened.sources()
        item = re.search(r"item=(\w+)", address)
        assert item is not None
        ((_, body),) = opened.bodies([item[1]])
        results = list(opened.results(key, item=item[1]))
    assert " ".join(body["problem"].split()) in run
    for result in results:
        assert getattr(result, "label", None) is None or result.label in run
        assert " ".join((getattr(result, "explanation", "") or "").split()) in run
    assert "Reply, as it came" in run


def test_compare_lists_cases_by_their_difference(pages: Browser) -> None:
    page = pages.get("/compare", a="coder", b="duo", criterion="accuracy").text
    (tiles,) = re.findall(r'<dl class="tiles">(.*?)</dl>', page, re.S)
    common, without, worse, better, equal = (int(n) for n in re.findall(r"<dd>(\d+)</dd>", tiles))
    assert (common, without) == (worse + better + equal, 0)
    assert common == 20
    differences = [
        float(n) for n in re.findall(r'<tr><th.*?data-k="(-?[\d.]+)">[^<]*</td></tr>', page)
    ]
    falls = [d for d in differences if d < 0]
    assert falls == sorted(falls)
    case = pages.get(link(page, "/compare/case?")).text
    assert "<ins>" in case or "<del>" in case


def test_a_judge_that_was_not_verified_is_said_to_be(pages: Browser) -> None:
    assert "agenteval verify" in words(pages.get("/trust").text)


@pytest.mark.parametrize(
    ("path", "query", "wrong"),
    [
        ("/run", {"item": "0" * 64}, "removed"),
        ("/trial", {"call": "nothing"}, "removed"),
        ("/grid", {"judge": "zz"}, "zz"),
        ("/grid", {"sort": "nothing"}, "nothing"),
        ("/grid", {"success": "maybe"}, "maybe"),
        ("/compare", {"a": "nobody"}, "nobody"),
        ("/compare", {"criterion": "nothing"}, "nothing"),
    ],
)
def test_what_is_not_there_has_one_line(
    pages: Browser, path: str, query: dict[str, str], wrong: str
) -> None:
    answer = pages.get(path, **query)
    assert answer.status_code == 404
    assert wrong in words(answer.text)


def test_results_that_are_added_are_announced(store: Path, browser: Open) -> None:
    pages = browser()
    assert "Results were added" not in pages.get("/grid").text
    with Store(store) as writer, writer.engine.begin() as connection:
        connection.exec_driver_sql(
            "INSERT INTO calls (call_id, source_key, item_key, variant, repeat, record) "
            "SELECT 'new', source_key, item_key, variant, 99, record FROM calls LIMIT 1"
        )
    assert "Results were added" in pages.get("/grid").text


def test_progress_ends_when_nothing_runs(pages: Browser) -> None:
    answer = pages.get("/progress")
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert answer.text == "data: []\n\n"


def test_the_prompt_of_a_call_is_the_one_that_was_sent(pages: Browser, store: Path) -> None:
    page = words(pages.get(link(pages.get("/grid").text, "/run?")).text)
    assert "Prompt, system" in page
    assert "<<BEGIN criteria" in page
    assert "The prompt is not shown" not in page


def test_a_prompt_with_another_hash_is_not_shown(store: Path) -> None:
    with Store(store) as opened:
        with opened.engine.begin() as connection:
            connection.exec_driver_sql(
                "UPDATE replies SET reply = json_set(reply, '$.request.key', 'other')"
            )
        pages = Browser(opened).enter()
        page = words(pages.get(link(pages.get("/grid").text, "/run?")).text)
    assert "differs from the one that was sent" in page
    assert "<<BEGIN criteria" not in page


def test_figures_are_drawn_of_a_verified_judge(store: Path) -> None:
    check = Check(
        name="agreement", outcome="pass", reason="made up", estimate=0.5, low=0.4, high=0.6
    )
    with Store(store) as opened:
        ((key, _),) = opened.sources()
        verified = [
            Verification(
                criterion_id=criterion.id,
                verdict="keep",
                reasons=("made up",),
                runs=60,
                cases=20,
                repeats=2,
                checks=(check,),
            )
            for criterion in opened.newest_criteria(key).values()
        ]
        judge = JudgeVerdict(verdict="trustworthy", reasons=("made up",))
        opened.save_verdict(key, "math", VerifiedSet(judge=judge, criteria=tuple(verified)))
        pages = Browser(opened).enter()
        page = pages.get("/trust").text
        assert "trustworthy" in words(page)
        figures = re.findall(r'src="(/trust/figure[^"]*)"', page)
        assert [f.rpartition("=")[2] for f in figures] == ["points", "reliability"]
        for figure in figures:
            answer = pages.get(html.unescape(figure))
            assert answer.headers["content-type"].startswith("image/svg+xml")
            assert "<svg" in answer.text
        assert pages.get("/trust/figure", name="effects").status_code == 404


def test_what_is_not_finished_shows_its_progress(store: Path) -> None:
    with Store(store) as opened:
        ((key, source),) = opened.sources()
        runs = [run for run, about in opened.runs().items() if about["origin"] is None]
        criteria = list(opened.newest_criteria(key))
        stored = sum(1 for _ in opened.results(key, variant="original"))
        repeats = stored // (len(runs) * len(criteria)) + 1
        grid = Grid(short(runs), repeats, "original", tuple(criteria))
        begin(opened, StoredExperiment(key, source.evaluator, source.model, "lock", (grid,)))
        page = Browser(opened).enter().get("/").text
        (value,) = re.findall(r'<progress max="(\d+)" value="\d+"', page)
        assert int(value) == len(runs) * len(criteria) * repeats
        assert f"{stored:,} of {int(value):,} planned cells are done" in words(page)


def test_a_failure_of_one_side_is_no_difference(browser: Open, store: Path) -> None:
    """One system lost its results on a criterion: means are over what both sides have."""
    with closing(sqlite3.connect(store)) as db, db:
        (criterion,) = db.execute(
            "SELECT item_key FROM items WHERE kind = 'criterion' AND id = 'accuracy'"
        ).fetchone()
        db.execute(
            "UPDATE results SET status = 'unscored:parse', label = NULL, value = NULL "
            "WHERE criterion_key = ? AND item_key IN (SELECT item_key FROM items WHERE "
            "system = 'coder')",
            (criterion,),
        )
        rest = (
            "SELECT case_key, avg(value) FROM results JOIN items USING (item_key) WHERE "
            "system = ? AND criterion_key != ? GROUP BY case_key"
        )
        by_hand = [
            dict(db.execute(rest, (name, criterion)).fetchall()) for name in ("coder", "duo")
        ]
    page = browser().get("/compare", a="coder", b="duo").text
    shown = [float(n) for n in re.findall(r'<tr><th.*?data-k="(-?[\d.]+)">[^<]*</td></tr>', page)]
    expected = [by_hand[1][case] - by_hand[0][case] for case in by_hand[0]]
    assert sorted(shown) == pytest.approx(sorted(d for d in expected if abs(d) > 1e-9), abs=1e-6)


def test_runs_of_several_tasks_are_compared_without_the_test(browser: Open, store: Path) -> None:
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("UPDATE items SET task = 'other' WHERE kind = 'run' AND system = 'duo'")
    page = browser().get("/compare", a="coder", b="duo")
    assert page.status_code == 200
    assert "several tasks" in words(page.text)
    assert "/compare/case?" in page.text


def test_undecided_trials_are_in_no_pass_rate(browser: Open, store: Path) -> None:
    """Of four sessions one succeeded, one failed, and two have no verdict: 1 of 2 passed."""
    with closing(sqlite3.connect(store)) as db, db:
        (key,) = db.execute("SELECT source_key FROM sources").fetchone()
        db.execute(
            "INSERT INTO sources SELECT 'agent', 'workflows.sessions', 'bot', 'agent', record, "
            "used FROM sources WHERE source_key = ?",
            (key,),
        )
        items = [item for (item,) in db.execute("SELECT item_key FROM items LIMIT 4")]
        for item, outcome in zip(items, ("success", "failure", "undecided", None), strict=True):
            db.execute(
                "INSERT INTO calls (call_id, source_key, item_key, variant, repeat, status, "
                "outcome, record) VALUES (?, 'agent', ?, 'original', 0, 'done', ?, '{}')",
                (item, item, outcome),
            )
        grid = {"rows": [], "repeats": 1, "variant": "", "criteria": []}
        db.execute(
            "INSERT INTO experiments VALUES "
            "('e', 'agent', 'workflows.sessions', 'bot', 'l', ?, 1, 2)",
            (json.dumps({"grids": [grid], "system": "a"}),),
        )
    (row,) = [r for r in browser().get("/").text.split("<tr>") if ">bot agent<" in r]
    assert "50%" in row
    assert re.search(r'data-k="2(\.0)?">2<', row)
