"""One finder by both scorers, with the trivial predictors beside it, as tables and as JSON."""

import json
import random

import pytest

from agenteval.evaluators.traces.annotations import Annotation, official_text, read_annotation
from agenteval.evaluators.traces.score_tables import PlainTable, score_tables, shown
from agenteval.evaluators.traces.scorer import Scoring
from agenteval.evaluators.traces.scoring import GOLD, Result, as_json, evaluate
from agenteval.evaluators.traces.taxonomy import Leaf, Taxonomy
from agenteval.records import Finding, Findings, Grade, Span
from agenteval.stats.interval import Interval

QUICK = Scoring(resamples=100)
KINDS = ("Goal Deviation", "Formatting Errors", "Language-only")


def annotation(findings: Findings) -> Annotation:
    return read_annotation(official_text(findings), findings.trace)


def corpus(n: int = 12) -> tuple[list[Annotation], list[Annotation], dict[str, list[Span]]]:
    """Gold, predictions that find the first error of each trace and add a wrong one, spans."""
    rng = random.Random(5)
    gold, predicted, spans = [], [], {}
    for i in range(n):
        trace = f"t{i}"
        spans[trace] = [Span(id=f"s{j}", kind=("llm", "tool")[j % 2]) for j in range(6)]
        errors = tuple(
            Finding(span=f"s{j}", category=rng.choice(KINDS)) for j in rng.sample(range(6), 2)
        )
        wrong = Finding(span="s9", category="Rate Limiting")
        grade = {"overall": Grade(value=rng.randint(1, 5))}
        gold.append(annotation(Findings(trace=trace, findings=errors, grades=grade)))
        said = Findings(trace=trace, findings=(errors[0], wrong), grades=grade)
        predicted.append(annotation(said))
    return gold, predicted, spans


def titles(tables: tuple[PlainTable, ...]) -> list[str]:
    return [table.title for table in tables]


def notes(result: Result) -> str:
    return "\n".join(result.notes)


def test_figures_of_both_scorers_and_of_what_stands_beside() -> None:
    gold, predicted, spans = corpus()
    result = evaluate(gold, predicted, QUICK, spans, {t: 10 * (i + 1) for i, t in enumerate(spans)})
    joint = result.scores.levels[2].micro
    assert (joint.precision.mean, joint.recall.mean, joint.f1.mean) == (0.5, 0.5, 0.5)
    assert result.official is not None
    assert (result.official.location.mean, result.official.joint.mean) == (0.5, 0.5)
    assert [one.name for one in result.beside] == [
        "LLM and tool spans x 20", "LLM spans x 3 commonest", "LLM spans x 3 commonest", GOLD
    ]  # fmt: skip
    every, best = result.beside[0], result.beside[-1]
    assert every.official is not None
    assert every.official.joint.mean == 1
    assert every.scores.levels[2].micro.precision.mean == pytest.approx(2 / 120)
    assert best.scores.levels[2].micro.f1.mean == 1
    assert [one.grade for one in result.grades] == ["overall"]
    assert result.grades[0].error.mean == 0
    assert len(result.lengths) == 3
    assert result.notes == ()


def test_the_order_of_the_files_changes_nothing() -> None:
    gold, predicted, spans = corpus()
    assert evaluate(gold[::-1], predicted[::-1], QUICK, spans) == evaluate(
        gold, predicted, QUICK, spans
    )


def test_without_traces_the_predictors_cannot_be_made_and_that_is_said() -> None:
    gold, predicted, _ = corpus()
    result = evaluate(gold, predicted, Scoring(tolerance=("neighbour",), resamples=100))
    assert [one.name for one in result.beside] == [GOLD]
    assert "the trivial predictors cannot be made" in notes(result)
    assert "hits are exact" in notes(result)
    assert result.lengths == ()


def test_what_is_lost_on_the_way_is_told() -> None:
    gold, predicted, spans = corpus()
    gold[0] = read_annotation("not JSON at all", "t0")
    gold[1] = annotation(Findings(trace="t1", findings=(Finding(span="s77", category=KINDS[0]),)))
    stray = annotation(Findings(trace="stray"))
    del spans["t2"]
    result = evaluate(gold, [*predicted[:-1], stray], QUICK, spans)
    assert result.scores.coverage.traces == 11
    assert result.scores.coverage.lost == {"missing": 1}
    assert "1 gold files could not be read: t0" in notes(result)
    assert "1 of 11 traces have no spans here" in notes(result)
    assert "1 places in gold are no span" in notes(result)
    # with gold unreadable, the prediction of that trace is none without gold
    assert "1 predictions have no gold: stray" in notes(result)
    assert result.official is not None
    assert result.official.skipped == {"prediction missing": 1, "gold unreadable": 1}


def test_missing_predictions_flatter_the_official_figures_only() -> None:
    gold, predicted, spans = corpus(12)
    result = evaluate(gold, predicted[:6], QUICK, spans)
    assert result.official is not None
    assert result.penalised is not None
    assert (result.official.joint.mean, result.official.traces) == (0.5, 6)
    assert (result.penalised.joint.mean, result.penalised.traces) == (0.25, 12)
    assert result.scores.levels[2].macro.recall.mean == 0.25
    official = next(t for t in score_tables(result) if t.title == "Official figures")
    assert [row[0] for row in official.rows][:2] == ["this result", "this result, missing as empty"]


def test_gold_that_only_a_lenient_reader_reads_counts_here_and_not_officially() -> None:
    gold, predicted, _ = corpus()
    gold[0] = read_annotation(gold[0].text.rstrip()[:-1] + ",}", "t0")
    result = evaluate(gold, predicted, QUICK)
    assert result.official is not None
    assert result.official.skipped == {"gold unreadable": 1}
    assert len(result.scores.per_trace) == 12


def test_a_teams_own_taxonomy_has_no_official_figures() -> None:
    own = Taxonomy(name="own", leaves=(Leaf(name="Late", area="", group="", definition=""),))
    gold = [read_annotation('{"errors": [{"category": "late", "location": "a"}]}', "t", own)]
    result = evaluate(gold, gold, Scoring(taxonomy=own, resamples=100))
    assert result.official is None
    assert result.penalised is None
    assert result.scores.levels[2].micro.f1.mean == 1
    assert "they are for TRAIL's categories only" in notes(result)
    (table,) = score_tables(result, official=True)
    assert table.rows == ()
    assert any("TRAIL's categories only" in note for note in table.notes)


def test_no_gold_is_refused() -> None:
    with pytest.raises(ValueError, match="no readable gold"):
        evaluate([read_annotation("x", "t")], [], QUICK)


def test_tables() -> None:
    gold, predicted, spans = corpus()
    result = evaluate(
        gold, predicted, QUICK, spans, {t: len(t) * 100 + i for i, t in enumerate(spans)}
    )
    tables = score_tables(result)
    assert titles(tables)[:5] == [
        "Findings against gold",
        "Beside predictors that read nothing",
        "By category (pairs of span and category)",
        "Grades of whole traces",
        "Official figures",
    ]
    assert len(tables) == 8
    for table in (*tables, *score_tables(result, official=True)):
        assert table.rows
        assert all(len(row) == len(table.columns) for row in table.rows)
    assert tables[0].rows[4][:2] == ("joint", "errors")
    assert tables[0].rows[4][2].startswith("0.500")
    assert tables[0].rows[4][5:] == ("12", "24", "24")
    assert any("12 of 12 traces have a readable prediction" in note for note in tables[0].notes)
    for table in (tables[1], tables[4]):  # the trivial predictors stand beside both
        assert [row[0] for row in table.rows] == ["this result", *(b.name for b in result.beside)]
    assert titles(score_tables(result, official=True)) == [
        "Official figures",
        "Official figures by category (presence in a trace)",
        "Official correlations of grades",
    ]


def test_unknown_labels_are_shown_with_the_commonest_first() -> None:
    errors = [{"category": c, "location": "a"} for c in ("Odd", "Weird", "weird")]
    said = read_annotation(json.dumps({"errors": errors}), "t")
    gold = [annotation(Findings(trace="t", findings=(Finding(span="a", category=KINDS[0]),)))]
    table = score_tables(evaluate(gold, [said], QUICK))[0]
    assert "3 labels in predictions are not in the taxonomy: 'weird' 2, 'odd' 1" in table.notes


def test_a_constant_grade_is_not_applicable_in_the_official_table() -> None:
    five = {"security": Grade(value=5)}
    gold = [annotation(Findings(trace=f"t{i}", grades=five)) for i in range(3)]
    tables = score_tables(evaluate(gold, gold, QUICK), official=True)
    assert tables[2].rows == (("security", "n/a (constant)", "3"),)


def test_json_holds_all_numbers_and_no_nan() -> None:
    gold, predicted, spans = corpus()
    result = evaluate(gold, predicted[:-1], QUICK, spans, {"t0": 5})
    found = json.loads(json.dumps(as_json(result), allow_nan=False))
    assert found["scores"]["levels"][2]["counts"] == {"hits": 11, "predicted": 22, "gold": 24}
    assert found["scores"]["coverage"]["lost"] == {"missing": 1}
    assert found["official"]["joint"]["mean"] == 0.5
    assert found["how"]["taxonomy"]["name"] == "trail"
    assert len(found["scores"]["per_trace"]) == 12
    assert "per_trace" not in found["beside"][0]["scores"]
    assert found["beside"][-1]["name"] == GOLD


@pytest.mark.parametrize(
    ("interval", "text"),
    [
        (Interval(0.5, 0.25, 0.75, 0.1, 9, None, "m"), "0.500 [0.250, 0.750]"),
        (Interval(0.5, None, None, None, 1, None, "none", "one case: no interval"),
         "0.500 (one case: no interval)"),
        (Interval(1.0, 1.0, 1.0, 0.0, 9, None, "m", "no variation between cases"),
         "1.000 (no variation between cases)"),
        (Interval(None, None, None, None, 0, None, "none", "no values"), "n/a (no values)"),
    ],
)  # fmt: skip
def test_an_interval_in_words(interval: Interval, text: str) -> None:
    assert shown(interval) == text
