"""JUnit XML: the numbers of an independent parser, hostile text, the same bytes again."""

from __future__ import annotations

from xml.etree import ElementTree as Et

from hypothesis import given
from hypothesis import strategies as st

from agenteval.analysis.gates import Gate
from agenteval.reporting.junit import junit_xml

GATES = [
    Gate("regression", "met", "not worse", "clarity", 0.05),
    Gate("regression", "missed", "worse by more than 0.05", "depth", 0.05),
    Gate("fail-under", "undecided", "mean 0.81", "depth", 0.8),
]


def parsed(text: str) -> Et.Element:
    return Et.fromstring(text.encode("utf-8"))


def test_every_outcome() -> None:
    root = parsed(junit_xml(GATES, "A and B", {"margin": 0.05}, {"depth": "pairs 20"}))
    suite = root[0]
    for element in (root, suite):
        assert {k: element.get(k) for k in ("tests", "failures", "errors", "skipped")} == {
            "tests": "3",
            "failures": "1",
            "errors": "1",
            "skipped": "0",
        }
    assert [e.tag for e in suite] == ["properties", "testcase", "testcase", "testcase"]
    assert [(p.get("name"), p.get("value")) for p in suite[0]] == [("margin", "0.05")]
    passed, failed, undecided = suite[1:]
    assert (passed.get("classname"), passed.get("name"), list(passed)) == (
        "agenteval.compare.regression",
        "clarity",
        [],
    )
    assert [e.tag for e in failed] == ["failure", "system-out"]
    assert failed[0].get("message") == failed[0].text == "worse by more than 0.05"
    assert failed[1].text == "pairs 20"
    assert (undecided.get("classname"), [e.tag for e in undecided]) == (
        "agenteval.compare.fail-under",
        ["error", "system-out"],
    )
    assert undecided[0].get("message") == "undecided: mean 0.81"


def test_an_undecided_gate_that_passes_is_noted() -> None:
    suite = parsed(junit_xml(GATES, "x", {}, {"depth": "pairs 20"}, undecided_passes=True))[0]
    assert (suite.get("failures"), suite.get("errors"), suite.get("skipped")) == ("1", "0", "0")
    assert [e.tag for e in suite[-1]] == ["system-out"]
    assert suite[-1][0].text == "undecided, which passes here: mean 0.81\npairs 20"


@given(st.text(st.characters(codec=None), max_size=30))
def test_any_text_is_well_formed_xml(text: str) -> None:
    """Control characters and lone surrogates included; what XML allows comes back as it was."""
    root = parsed(junit_xml([Gate("regression", "missed", text, text, 0)], text, {}, {text: text}))
    allowed = all(
        c in "\t\n\r" or "\x20" <= c < "\ud800" or "\ue000" <= c < "\ufffe" or c >= "\U00010000"
        for c in text
    )
    case = root[0][1]
    if allowed and not set(text) & set("\r\n\t"):  # a parser may change white space
        assert case.get("name") == text
    assert len(case.get("name") or "") == len(text)
