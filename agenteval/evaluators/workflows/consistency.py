"""Do text, code and flowchart of a scenario tell the same procedure: tools, order, branches?"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.defects import Defect
from agenteval.evaluators.workflows.chart.follow import ChartProcedure, comparisons_of, relation
from agenteval.evaluators.workflows.chart.nouns import Chart
from agenteval.evaluators.workflows.chart.parse import parse_chart
from agenteval.evaluators.workflows.chart.world import TooLarge, make_world
from agenteval.evaluators.workflows.code_reader import Code, CodeProcedure, read_code
from agenteval.evaluators.workflows.differences import differences
from agenteval.evaluators.workflows.scenario import Scenario, WorkflowTool
from agenteval.evaluators.workflows.text_check import text_defects

__all__ = ["chart_against_chart", "code_against_chart", "consistent", "text_defects"]


def consistent(scenario: Scenario) -> tuple[Defect, ...]:
    """All differences between the three formats; () when they tell the same.

    Code is compared with the chart by the relation "this call, this returned, this chosen, that
    call next", text by its names of tools and fields and the order of their first mention. What
    cannot be read is a defect of kind `unreadable`.
    """
    try:
        chart = parse_chart(scenario.flowchart)
    except InputError as error:
        return (Defect(kind="unreadable", message=str(error)),)
    code = read_code(scenario.code, scenario.tools, chart.parameters)
    return (
        *code_against_chart(code, chart, scenario.tools),
        *text_defects(scenario.text, chart, scenario.tools),
    )


def code_against_chart(
    code: Code, chart: Chart, tools: Sequence[WorkflowTool]
) -> tuple[Defect, ...]:
    """What is wrong with the code, and where it and the chart part."""
    if not code.ops or any(d.severity == "error" for d in code.defects):
        return code.defects
    tested = [*comparisons_of(chart), *code.comparisons]
    found = [*code.defects, *_intents(code, chart)]
    names = [t.name for t in tools]
    try:
        world = make_world(tools, tested)
        walk = ChartProcedure(chart, names, world, frozenset(code.asked))
        theirs = relation(walk, world)
        run = CodeProcedure(code, world, walk)
        ours = relation(run, world)
        told = differences(("the chart", theirs), ("the code", ours), world, walk.all_groups)
    except TooLarge as error:
        return (*found, Defect(kind="too_large", message=f"code and chart: {error}"))
    found += [Defect(kind="branch", message=line) for line in told]
    for intent in run.alone:
        alone = f"user_says({intent!r}): in the chart nothing else can be chosen there"
        found.append(Defect(kind="branch", message=alone, severity="warning"))
    return tuple(found)


def chart_against_chart(
    one: tuple[str, Chart], other: tuple[str, Chart], tools: Sequence[WorkflowTool]
) -> list[str]:
    """Sentences on where two charts part, each with its name; wording does not count.

    Raises TooLarge.
    """
    charts = (one, other)
    tested = [c for _, chart in charts for c in comparisons_of(chart)]
    world = make_world(tools, tested)
    names = [t.name for t in tools]
    first, second = (
        (name, relation(ChartProcedure(chart, names, world), world)) for name, chart in charts
    )
    return differences(first, second, world)


def _intents(code: Code, chart: Chart) -> Iterator[Defect]:
    """Words of user_says that stand on no edge."""
    known = list(dict.fromkeys(e.intent for e in chart.edges if e.intent))
    for intent in code.asked:
        if intent not in known:
            near = difflib.get_close_matches(intent, known, 1)
            hint = f"; is {near[0]!r} meant?" if near else ""
            told = f"user_says({intent!r}) is the intent of no edge{hint}"
            yield Defect(kind="unknown_intent", message=told)
