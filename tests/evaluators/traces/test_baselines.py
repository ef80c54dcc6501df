"""The predictors that read nothing, against the same predictions written out."""

import json
import random
from collections.abc import Sequence

import pytest

from agenteval.evaluators.traces.annotations import official_text
from agenteval.evaluators.traces.official import official_case, score_official
from agenteval.evaluators.traces.scorer import Case, Scoring, make_case, score
from agenteval.evaluators.traces.scoring import (
    Baseline,
    gold_as_prediction,
    official_with_baseline,
    trivial,
    with_baseline,
)
from agenteval.evaluators.traces.taxonomy import built_in
from agenteval.records import Finding, Findings, Span

CATEGORIES = [leaf.name for leaf in built_in().assigned]
QUICK = Scoring(resamples=100)


def traces(n: int = 8, seed: int = 1) -> tuple[dict[str, Findings], dict[str, list[Span]]]:
    rng = random.Random(seed)
    gold, spans = {}, {}
    for i in range(n):
        kinds = ["agent", "llm", "tool", "chain", *rng.choices(["llm", "tool", "chain"], k=6)]
        spans[f"t{i}"] = [
            Span.model_validate({"id": f"s{j}", "kind": kind}) for j, kind in enumerate(kinds)
        ]
        found = [
            Finding(span=f"s{rng.randrange(10)}", category=rng.choice(CATEGORIES[:10]))
            for _ in range(rng.randrange(5))
        ]
        gold[f"t{i}"] = Findings(trace=f"t{i}", findings=tuple(found))
    return gold, spans


def cases(gold: dict[str, Findings], spans: dict[str, list[Span]]) -> list[Case]:
    return [make_case(g, None, built_in(), spans.get(t)) for t, g in gold.items()]


def written_out(trace: str, spans: Sequence[Span], baseline: Baseline) -> Findings:
    found = [
        Finding(span=span.id, category=category)
        for span in spans
        if span.kind in baseline.kinds
        for category in baseline.categories
    ]
    return Findings(trace=trace, findings=tuple(found))


def test_the_three_predictors() -> None:
    pairs = [("Goal Deviation", "a"), ("Goal Deviation", "b"), ("Goal Deviation", "c"),
             ("Timeout Issues", "a"), ("Timeout Issues", "b"), ("Resource Abuse", "a"),
             ("Language-only", "a"), ("Incorrect Memory Usage", "a"),
             ("Nonsense", "a")]  # fmt: skip
    gold = Findings(trace="t", findings=tuple(Finding(category=c, span=s) for c, s in pairs))
    every, eight, three = trivial([make_case(gold, None, built_in()).gold], built_in())
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
    assert eight.name == "LLM spans x 4 commonest"


def test_without_gold_errors_there_is_no_commonest() -> None:
    assert len(trivial([], built_in())) == 1


@pytest.mark.parametrize("number", range(3))
def test_both_scorers_see_what_the_written_out_predictions_would_be(number: int) -> None:
    gold, spans = traces()
    made = cases(gold, spans)
    baseline = trivial([case.gold for case in made], built_in())[number]
    out = {t: written_out(t, spans[t], baseline) for t in gold}
    expected = score([make_case(g, out[t], built_in(), spans[t]) for t, g in gold.items()], QUICK)
    assert score(with_baseline(made, baseline), QUICK) == expected
    near = Scoring(tolerance=("ancestor", "neighbour"), resamples=100)
    assert (
        score(with_baseline(made, baseline), near).levels
        == score([make_case(g, out[t], built_in(), spans[t]) for t, g in gold.items()], near).levels
    )
    texts = [official_case(t, official_text(g), official_text(out[t])) for t, g in gold.items()]
    missing = [official_case(t, official_text(g), None) for t, g in gold.items()]
    official = score_official(official_with_baseline(missing, spans, baseline), resamples=100)
    assert official == score_official(texts, resamples=100)


def test_naming_everything_wins_officially_and_not_by_precision() -> None:
    gold, spans = traces(30)
    made = cases(gold, spans)
    everything = Baseline("all", ("agent", "llm", "tool", "chain"), tuple(CATEGORIES))
    missing = [official_case(t, official_text(g), None) for t, g in gold.items()]
    official = score_official(official_with_baseline(missing, spans, everything), resamples=100)
    with_errors = sum(bool(g.findings) for g in gold.values()) / len(gold)
    assert official.location.mean == official.joint.mean == pytest.approx(with_errors)
    joint = score(with_baseline(made, everything), QUICK).levels[2].micro
    assert joint.recall.mean == 1
    assert joint.precision.mean is not None
    assert joint.precision.mean < 0.02


def test_traces_without_spans_or_named_kinds() -> None:
    gold, spans = traces(3)
    del spans["t1"]
    spans["t2"] = [Span(id="x", kind="chain")]
    made = cases(gold, spans)
    baseline = Baseline("b", ("llm",), ("Goal Deviation",))
    with_it = with_baseline(made, baseline)
    assert [case.trace for case in with_it] == ["t0", "t2"]
    assert with_it[1].predicted is not None
    assert (with_it[1].predicted.entries, with_it[1].predicted.categories) == (0, frozenset())
    missing = [official_case(t, official_text(g), None) for t, g in gold.items()]
    official = official_with_baseline(missing, spans, baseline)
    assert [case.trace for case in official] == ["t0", "t2"]
    assert official[1].predicted is not None
    assert official[1].predicted.categories == frozenset()


def test_unreadable_gold_has_no_baseline() -> None:
    assert official_with_baseline([official_case("t", "{,}", None)], {"t": []},
                                  Baseline("b", ("llm",), ())) == []  # fmt: skip


def test_gold_itself() -> None:
    gold, spans = traces(10)
    found = score(gold_as_prediction(cases(gold, spans)), QUICK)
    assert all(one.macro.f1.mean == 1 for one in found.levels)


def test_a_hundred_thousand_spans_cost_no_twenty_times() -> None:
    spans = [Span(id=f"s{i}", kind="llm") for i in range(100_000)]
    gold = Findings(trace="t", findings=(Finding(span="s5", category="Goal Deviation"),))
    case = make_case(gold, None, built_in(), spans)
    every = trivial([case.gold], built_in())[0]
    found = score(with_baseline([case], every), QUICK)
    assert found.levels[2].counts.predicted == 2_000_000
    assert found.levels[2].counts.hits == 1
    json.dumps(found.predictions.mean)
