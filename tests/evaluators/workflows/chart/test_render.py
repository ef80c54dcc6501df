"""Charts as Mermaid, and back."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.conditions import split_label, written
from agenteval.evaluators.workflows.chart.nouns import Chart, Edge, Node
from agenteval.evaluators.workflows.chart.parse import parse_chart
from agenteval.evaluators.workflows.chart.render import render, without_lines
from tests.evaluators.workflows.chart.boats import CHART
from tests.evaluators.workflows.chart.test_conditions import conditions

LETTERS = "abxo é'\"`[](){}<>|#;:-_&%!?.,=0123\\/~@end"


def lines(text: str) -> str:
    return "\n".join(line.strip() for line in text.split("\n")).strip("\n")


texts = st.text(alphabet=LETTERS + "\n", min_size=1, max_size=30).map(lines).filter(bool)
ids = st.lists(st.from_regex(r"[A-Z]{2}[0-9]{3}", fullmatch=True), min_size=1, max_size=6,
               unique=True)  # fmt: skip
wishes = st.text(alphabet=LETTERS, max_size=20).map(lambda t: " ".join(t.split()))


def makes_no_condition(label: str) -> bool:
    try:
        return split_label(label) == (label, None)
    except InputError:
        return False


labels = st.one_of(
    wishes.filter(makes_no_condition),
    conditions.map(lambda c: " ".join(f"So ({written(c)})".split())).filter(
        lambda label: split_label(label)[1] is not None
    ),
)


@st.composite
def charts(draw: st.DrawFn) -> Chart:
    names = draw(ids)
    shapes = st.sampled_from(["start", "reply", "call"])
    nodes = tuple(Node(id=n, shape=draw(shapes), text=draw(texts)) for n in names)
    edges = []
    for _ in range(draw(st.integers(0, 6))):
        label = draw(labels)
        intent, condition = split_label(label)
        edges.append(
            Edge(
                source=draw(st.sampled_from(names)), target=draw(st.sampled_from(names)),
                label=label, intent=intent, condition=condition,
            )
        )  # fmt: skip
    parameters = draw(
        st.dictionaries(st.from_regex(r"[a-z_]{1,8}", fullmatch=True), wishes, max_size=3)
    )
    return Chart(
        direction=draw(st.sampled_from(["TD", "LR"])), nodes=nodes, edges=tuple(edges),
        parameters=parameters,
    )  # fmt: skip


@given(charts())
def test_a_rendered_chart_is_read_as_it_was(chart: Chart) -> None:
    assert without_lines(parse_chart(render(chart))) == chart


def test_what_is_written() -> None:
    chart = parse_chart(
        'flowchart LR\nA(Start)--Go on (x = 1)-->B>call it]-->C["(quoted) [b] #quot;x#quot;"]\n'
        'C-->|"a -- b"|B\n'
        'The auxiliary parameter information in the workflow is as follows:\n"size": "S "to" XL"'
    )
    assert render(chart) == (
        "flowchart LR\n"
        "A(Start)\n"
        "B>call it]\n"
        'C["(quoted) [b] #quot;x#quot;"]\n'
        "A-- Go on (x = 1) -->B\n"
        "B-->C\n"
        'C-->|"a -- b"|B\n'
        "The auxiliary parameter information in the workflow is as follows:\n"
        '"size": "S \\"to\\" XL"\n'
    )


def test_charts_written_by_people_come_back() -> None:
    desk = Path(__file__).parents[1] / "library_desk"
    written_by_people = [CHART, *(p.read_text() for p in desk.glob("*/workflow.mmd"))]
    assert len(written_by_people) == 3
    for text in written_by_people:
        chart = parse_chart(text)
        assert without_lines(parse_chart(render(chart))) == without_lines(chart)
        assert render(parse_chart(render(chart))) == render(chart)


@pytest.mark.parametrize(
    "edge",
    [
        Edge(source="A", target="B"),
        Edge(source="A", target="A", label="x (f = 1)", intent="x"),
        Edge(source="A", target="A", label="x", intent="y"),
        Edge(source="A", target="A", label="two  blanks", intent="two  blanks"),
    ],
)
def test_a_chart_that_no_text_states_is_refused(edge: Edge) -> None:
    with pytest.raises(InputError):
        render(Chart(nodes=(Node(id="A", shape="start", text="s"),), edges=(edge,)))


@pytest.mark.parametrize("id", ["a b", "end", "", "A-B"])
def test_an_id_that_is_no_word_is_refused(id: str) -> None:
    with pytest.raises(InputError):
        render(Chart(nodes=(Node(id=id, shape="start", text="s"),), edges=()))
