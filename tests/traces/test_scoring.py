"""One finder by both scorers, with the trivial predictors beside it, as tables and as JSON."""

import random

import pytest
from scipy.stats import pearsonr, spearmanr

from agenteval.records import GRADES, Finding, Findings, Grade, Span
from agenteval.records.table import Table
from agenteval.traces.annotations import Annotation, official_text, read_annotation
from agenteval.traces.evaluation import (
    GOLD,
    Evaluation,
    GradeScore,
    against_length,
    baselines,
    evaluate,
    score_grades,
    values,
)
from agenteval.traces.score import ScoredTrace, Scoring
from agenteval.traces.score_api import score_tables
from agenteval.traces.taxonomy import Leaf, Taxonomy, built_in

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


def titles(tables: tuple[Table, ...]) -> list[str]:
    return [table.title for table in tables]


def notes(result: Evaluation) -> str:
    return "\n".join(result.notes)


def test_figures_of_both_scorers_and_of_what_stands_beside() -> None:
    gold, predicted, spans = corpus()
    result = evaluate(gold, predicted, QUICK, spans, {t: 10 * (i + 1) for i, t in enumerate(spans)})
    joint = result.scores.levels[2].micro
    assert (joint.precision.mean, joint.recall.mean, joint.f1.mean) == (0.5, 0.5, 0.5)
    assert result.official is not None
    assert (result.official.location.mean, result.official.joint.mean) == (0.5, 0.5)
    assert [one.name for one in result.beside] == [
        "LLM and tool spans x 20",
        "LLM spans x 3 most common",
        "LLM spans x 3 most common",
        GOLD,
    ]
    every, best = result.beside[0], result.beside[-1]
    assert every.official is not None
    assert every.official.joint.mean == 1
    assert every.scores.levels[2].micro.precision.mean == pytest.approx(2 / 120)
    assert best.scores.levels[2].micro.f1.mean == 1
    assert [one.grade for one in result.grades] == ["overall"]
    assert result.grades[0].error.mean == 0
    assert len(result.lengths) == 3
    assert result.notes == ()


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
    assert "1 of 11 traces have no spans" in notes(result)
    assert "1 gold locations are not spans" in notes(result)
    # with gold unreadable, the prediction of that trace is none without gold
    assert "1 predictions are for traces without gold: stray" in notes(result)
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
    assert [row["predictor"] for row in official.rows][:2] == [
        "this result",
        "this result, missing as empty",
    ]


def test_a_teams_own_taxonomy_has_no_official_figures() -> None:
    own = Taxonomy(name="own", leaves=(Leaf(name="Late", area="", group="", definition=""),))
    gold = [read_annotation('{"errors": [{"category": "late", "location": "a"}]}', "t", own)]
    result = evaluate(gold, gold, Scoring(taxonomy=own, resamples=100))
    assert result.official is None
    assert result.penalised is None
    assert result.scores.levels[2].micro.f1.mean == 1
    assert "TRAIL's categories only" in notes(result)
    (table,) = score_tables(result, official=True)
    assert table.rows == ()
    assert any("TRAIL's categories only" in note for note in table.notes)


def test_tables() -> None:
    gold, predicted, spans = corpus()
    result = evaluate(
        gold, predicted, QUICK, spans, {t: len(t) * 100 + i for i, t in enumerate(spans)}
    )
    tables = score_tables(result)
    assert titles(tables)[:5] == [
        "Findings against gold",
        "Comparison with trivial predictors",
        "By category (pairs of span and category)",
        "Grades of traces",
        "Official figures",
    ]
    assert len(tables) == 8
    for table in (*tables, *score_tables(result, official=True)):
        assert table.rows
    assert [table.detail for table in tables] == [False, *[True] * 7]
    row = tables[0].rows[4]
    assert (row["level"], row["over"]) == ("joint", "errors")
    assert tables[0].records()[4]["precision"] == 0.5
    assert (row["hits"], row["predicted"], row["gold"]) == (12, 24, 24)
    assert any("12 of 12 traces have a readable prediction" in note for note in tables[0].notes)
    for table in (tables[1], tables[4]):  # the trivial predictors stand beside both
        assert [row["predictor"] for row in table.rows] == [
            "this result",
            *(b.name for b in result.beside),
        ]
    assert titles(score_tables(result, official=True)) == [
        "Official figures",
        "Official figures by category (presence in a trace)",
        "Official correlations of grades",
    ]


CATEGORIES = [leaf.name for leaf in built_in().assigned]


def traces(n: int = 8) -> tuple[list[Annotation], dict[str, list[Span]]]:
    rng = random.Random(1)
    gold, spans = [], {}
    for i in range(n):
        kinds = ["agent", "llm", "tool", "chain", *rng.choices(["llm", "tool", "chain"], k=6)]
        spans[f"t{i}"] = [
            Span.model_validate({"id": f"s{j}", "kind": kind}) for j, kind in enumerate(kinds)
        ]
        found = [
            Finding(span=f"s{rng.randrange(10)}", category=rng.choice(CATEGORIES[:10]))
            for _ in range(rng.randrange(5))
        ]
        gold.append(annotation(Findings(trace=f"t{i}", findings=tuple(found))))
    return gold, spans


def test_the_three_predictors() -> None:
    pairs = [
        ("Goal Deviation", "a"),
        ("Goal Deviation", "b"),
        ("Goal Deviation", "c"),
        ("Timeout Issues", "a"),
        ("Timeout Issues", "b"),
        ("Resource Abuse", "a"),
        ("Language-only", "a"),
        ("Incorrect Memory Usage", "a"),
        ("Nonsense", "a"),
    ]
    gold = Findings(trace="t", findings=tuple(Finding(category=c, span=s) for c, s in pairs))
    every, eight, three = baselines([ScoredTrace.of(gold, None, built_in()).gold], built_in())
    assert (every.kinds, len(every.categories)) == (("llm", "tool"), 20)
    # only four assigned leaves occur; of equally frequent ones the first of the taxonomy
    assert eight.categories == (
        "Goal Deviation",
        "Timeout Issues",
        "Language-only",
        "Resource Abuse",
    )
    assert three.categories == eight.categories[:3]
    assert eight.kinds == three.kinds == ("llm",)
    assert eight.name == "LLM spans x 4 most common"
    assert len(baselines([], built_in())) == 1  # without gold errors there is no commonest


@pytest.mark.parametrize("number", range(3))
def test_both_scorers_see_what_the_written_out_predictions_would_be(number: int) -> None:
    gold, spans = traces()
    how = QUICK
    result = evaluate(gold, [], how, spans)
    baseline = baselines(
        [ScoredTrace.of(g.findings, None, built_in()).gold for g in gold], built_in()
    )
    written = [
        annotation(
            Findings(
                trace=trace,
                findings=tuple(
                    Finding(span=span.id, category=category)
                    for span in mine
                    if span.kind in baseline[number].kinds
                    for category in baseline[number].categories
                ),
            )
        )
        for trace, mine in spans.items()
    ]
    expected = evaluate(gold, written, how, spans)
    assert result.beside[number].scores == expected.scores
    assert result.beside[number].official == expected.official


# Grades, and scores against length


def graded(trace: str, **grades: float | None) -> Findings:
    return Findings(trace=trace, grades={k: Grade(value=v) for k, v in grades.items()})


def grade_of(gold: list[float | None], said: list[float | None]) -> GradeScore:
    pairs = [
        (graded(str(i), security=g), graded(str(i), security=p))
        for i, (g, p) in enumerate(zip(gold, said, strict=True))
    ]
    return score_grades(pairs, QUICK.bootstrap)[0]


def test_grades_by_hand_and_scipy() -> None:
    gold, said = [1.0, 1.0, 5.0, 4.0, 3.0], [2.0, 2.0, 4.0, 5.0, 1.0]
    found = grade_of([*gold, None, 3.0], [*said, 4.0, None])
    assert found.pearson.mean == pytest.approx(pearsonr(gold, said).statistic, abs=1e-12)
    assert found.error.mean == pytest.approx((1 + 1 + 1 + 1 + 2) / 5)
    assert found.constant == pytest.approx((2 + 2 + 2 + 1 + 0) / 5)  # all given the median, 3
    assert (found.pearson.n, found.missing, found.no_gold) == (5, 1, 1)


def test_overall_is_the_mean_of_four_where_it_is_not_given() -> None:
    four = dict(zip(GRADES, (1.0, 2.0, 4.0, 5.0), strict=True))
    assert values(graded("a", **four))["overall"] == 3
    assert values(graded("a", **four, overall=1))["overall"] == 1
    assert "overall" not in values(graded("a", reliability=4))


LENGTHS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 5000]
SCORES = [1.0, 0.9, 0.8, 0.9, 0.6, 0.5, 0.7, 0.3, 0.2, 0.4, 0.1, 0.0]


def test_correlations_are_those_of_scipy() -> None:
    scores = [(f"t{i}", s, True) for i, s in enumerate(SCORES)]
    tokens = {f"t{i}": n for i, n in enumerate(LENGTHS)}
    found = against_length(
        "joint", [*scores, ("lost", 1.0, True)], tokens | {"unused": 3}, QUICK.bootstrap
    )
    assert found.pearson.mean == pytest.approx(pearsonr(LENGTHS, SCORES).statistic, abs=1e-12)
    assert found.spearman.mean == pytest.approx(spearmanr(LENGTHS, SCORES).statistic, abs=1e-12)
    assert found.unknown == 1


def test_bins_are_quartiles_by_hand() -> None:
    scores = [(f"t{i}", s, i < 8) for i, s in enumerate(SCORES)]
    tokens = {f"t{i}": n for i, n in enumerate(LENGTHS)}
    found = against_length("joint", scores, tokens, QUICK.bootstrap)
    assert [(b.low, b.high, b.score.n) for b in found.bins] == [
        (10, 30, 3),
        (40, 60, 3),
        (70, 90, 3),
        (100, 5000, 3),
    ]
    assert [b.score.mean for b in found.bins] == pytest.approx([0.9, 2 / 3, 0.4, 0.5 / 3])
    assert all(b.score.low is None for b in found.bins)  # three traces each
    assert [b.answered for b in found.bins] == [3, 3, 2, 0]
