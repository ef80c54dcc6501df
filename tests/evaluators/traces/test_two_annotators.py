"""Agreement of two annotators: counts by hand, kappa and F1 by scikit-learn."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import cohen_kappa_score, f1_score

from agenteval.errors import InputError
from agenteval.evaluators.traces.taxonomy import built_in
from agenteval.evaluators.traces.two_annotators import two_annotators
from agenteval.records import Finding, Findings


def said(trace: str, *marks: tuple[str, str]) -> Findings:
    return Findings(trace=trace, findings=tuple(Finding(span=s, category=c) for s, c in marks))


def test_counts_by_hand() -> None:
    first = [
        said("t1", ("s1", "Formatting Errors"), ("s2", "Goal Deviation")),
        said("t2", ("s1", "Resource Abuse")),
        said("t3"),
    ]
    second = [
        said("t1", ("s1", "Formatting Errors"), ("s2", "Resource Abuse"), ("s3", "Rate Limiting")),
        said("t2"),
        said("t4"),
    ]
    spans = {"t1": ["s1", "s2", "s3", "s4"], "t2": ["s1", "s2"]}
    found = two_annotators(first, second, spans=spans)
    assert (found.traces, found.only_first, found.only_second) == (2, 1, 1)
    # spans: t1 both s1, s2; second alone s3; neither s4. t2: first alone s1; neither s2
    s = found.spans
    assert (s.both, s.only_first, s.only_second, s.neither) == (2, 1, 1, 2)
    assert s.positive.mean == pytest.approx(2 * 2 / (2 * 2 + 1 + 1))
    # observed 4/6; by chance (3/6)(3/6) + (3/6)(3/6) = 1/2; kappa (4/6 - 1/2) / (1/2)
    assert s.kappa == pytest.approx(1 / 3)
    assert (found.pairs.both, found.pairs.only_first, found.pairs.only_second) == (1, 2, 2)
    assert found.pairs.kappa is None
    # of the spans with one category by both, s1 agrees and s2 does not
    assert (found.labels.spans, found.labels.same) == (2, 1)
    assert found.labels.mixed == (("Goal Deviation", "Resource Abuse", 1),)
    abuse = found.categories["Resource Abuse"]  # first in t2, second in t1
    assert (abuse.both, abuse.only_first, abuse.only_second, abuse.neither) == (0, 1, 1, 0)
    assert abuse.kappa == pytest.approx(-1.0)
    formatting = found.categories["Formatting Errors"]
    assert (formatting.both, formatting.neither) == (1, 1)
    assert formatting.kappa == pytest.approx(1.0)


def test_without_the_spans_nobody_knows_what_neither_marked() -> None:
    found = two_annotators([said("t", ("s1", "A"))], [said("t", ("s1", "A"))])
    assert found.spans.neither is None
    assert found.spans.kappa is None
    assert found.spans.positive.mean == 1.0


def test_spellings_are_one_category_with_a_taxonomy() -> None:
    sides = ([said("t", ("s1", "Formatting Error"))], [said("t", ("s1", " formatting ERRORS"))])
    assert two_annotators(*sides).pairs.both == 0
    found = two_annotators(*sides, taxonomy=built_in())
    assert found.pairs.both == 1
    assert list(found.categories) == ["Formatting Errors"]


def test_places_outside_of_the_trace_are_told() -> None:
    found = two_annotators([said("t", ("nowhere", "A"))], [said("t")], spans={"t": ["s1"]})
    assert found.unknown_spans == ("t: nowhere",)
    assert found.spans.only_first == 1
    assert found.spans.kappa is None  # neither marked the only span: no variation


def test_nothing_marked_by_both_is_no_agreement_of_zero() -> None:
    found = two_annotators([said("t")], [said("t")])
    assert found.spans.positive.mean is None
    assert found.categories == {}


def test_an_unreadable_annotation_is_not_an_empty_one() -> None:
    lost = Findings(trace="t", status="unscored:parse", message="cut off")
    with pytest.raises(InputError, match="no trace that both"):
        two_annotators([lost], [said("t")])
    found = two_annotators([lost, said("u")], [said("t", ("s", "A")), said("u")])
    assert (found.traces, found.failed) == (1, 1)
    assert found.spans.only_second == 0


def test_two_annotations_of_one_trace_are_refused() -> None:
    with pytest.raises(InputError, match="t: this annotator has two"):
        two_annotators([said("t"), said("t")], [said("t")])


SPANS = ["s1", "s2", "s3", "s4"]
marks = st.dictionaries(st.sampled_from(SPANS), st.sampled_from("AB"))


@given(st.lists(st.tuples(marks, marks), min_size=1, max_size=6))
@settings(max_examples=60, deadline=None)
def test_against_scikit_learn(traces: list[tuple[dict[str, str], dict[str, str]]]) -> None:
    first = [said(f"t{i}", *a.items()) for i, (a, _) in enumerate(traces)]
    second = [said(f"t{i}", *b.items()) for i, (_, b) in enumerate(traces)]
    found = two_annotators(first, second, spans={f"t{i}": SPANS for i in range(len(traces))})
    x = [s in a for a, _ in traces for s in SPANS]
    y = [s in b for _, b in traces for s in SPANS]
    if any(x) or any(y):
        assert found.spans.positive.mean == pytest.approx(f1_score(x, y, zero_division=0))
    else:
        assert found.spans.positive.mean is None
    if len({*x, *y}) > 1:
        expected = cohen_kappa_score(x, y)
        assert found.spans.kappa == pytest.approx(expected)
    swapped = two_annotators(second, first, spans={f"t{i}": SPANS for i in range(len(traces))})
    assert swapped.pairs.both == found.pairs.both
    assert swapped.pairs.only_first == found.pairs.only_second
