"""Do text, code and flowchart of a scenario tell the same procedure?

Of text and code, names are held against the flowchart: tools and fields that decide; of the text
also the order in which tools come first, of the code parameters and intents. Two flowcharts are
compared by the relation "this call, this returned, that call next".
"""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterator, Sequence
from itertools import combinations, groupby, pairwise

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.check import (
    known_words,
    near_name,
    reached,
    successors,
    tool_like,
)
from agenteval.evaluators.workflows.chart.follow import (
    END,
    START,
    Relation,
    State,
    World,
    comparisons_of,
    make_world,
    relation,
)
from agenteval.evaluators.workflows.chart.nouns import WORD, Chart, Defect, calls_in, names_in
from agenteval.evaluators.workflows.chart.parse import parse_chart
from agenteval.evaluators.workflows.code_check import Code, read_code
from agenteval.evaluators.workflows.scenario import Scenario, WorkflowTool

_MOST = 8  # differences told; the rest is counted
_Way = tuple[str, State, str]


def consistent(scenario: Scenario) -> tuple[Defect, ...]:
    """All differences of text and code from the flowchart; () when they tell the same.

    What cannot be read is a defect of kind `unreadable`.
    """
    try:
        chart = parse_chart(scenario.flowchart)
    except InputError as error:
        return (Defect(kind="unreadable", message=str(error)),)
    code = read_code(scenario.code, scenario.tools, chart.parameters)
    return (
        *code_defects(code, chart, scenario.tools),
        *text_defects(scenario.text, chart, scenario.tools),
    )


def code_defects(code: Code, chart: Chart, tools: Sequence[WorkflowTool]) -> tuple[Defect, ...]:
    """What is wrong with the code, and where the names in it and the chart part."""
    if any(d.severity == "error" for d in code.defects):
        return code.defects
    known = list(dict.fromkeys(e.intent for e in chart.edges if e.intent))
    found = list(code.defects)
    for intent in code.intents:
        if intent not in known:
            near = difflib.get_close_matches(intent, known, 1)
            hint = f"; is {near[0]!r} meant?" if near else ""
            told = f"user_says({intent!r}) is the intent of no edge{hint}"
            found.append(Defect(kind="unknown_intent", message=told))
    return (*found, *_named("the code", code.tools, code.fields, chart, tools))


def text_defects(text: str, chart: Chart, tools: Sequence[WorkflowTool]) -> list[Defect]:
    """What the text does not tell as the chart does."""
    names = [t.name for t in tools]
    mentioned = list(dict.fromkeys(names_in(text, names)))
    found = list(_named("the text", mentioned, set(WORD.findall(text)), chart, tools))
    for word in tool_like(text, names, known_words(tools, chart.parameters)):
        near = near_name(word, names)
        hint = f"; is {near} meant?" if near else ""
        told = f"the text names {word}, which is no tool, parameter or field{hint}"
        found.append(Defect(kind="unknown_tool", message=told))
    # Two tools in an order in which no walk through the chart calls them first. Code is not asked:
    # its lines stand in the order of its branches.
    to, known = _by_call(chart, names), _called(chart, names)
    for first, second in combinations([m for m in mentioned if m in known], 2):
        if _possible(to, second, first) and not _possible(to, first, second):
            told = f"the text names {first} before {second}; in the chart {second} comes first"
            found.append(Defect(kind="order", message=told))
    return found


def _named(
    what: str,
    mentioned: Sequence[str],
    fields: Container[str],
    chart: Chart,
    tools: Sequence[WorkflowTool],
) -> Iterator[Defect]:
    """Tools that are mentioned, and tested fields, beside the chart's."""
    called = _called(chart, [t.name for t in tools])
    for name in called:
        if name not in mentioned:
            told = f"{what} does not name {name}, which the chart calls"
            yield Defect(kind="missing_tool", message=told)
    for name in mentioned:
        if name not in called:
            told = f"{what} names {name}, which the chart never calls"
            yield Defect(kind="unknown_tool", message=told)
    for name in dict.fromkeys(c.field for c in comparisons_of(chart)):
        if name not in fields:
            told = f"{what} does not name {name}, which edges test"
            yield Defect(kind="missing_field", message=told)


def _called(chart: Chart, names: Sequence[str]) -> list[str]:
    """The tools that the chart calls, each once."""
    return list(
        dict.fromkeys(c for n in chart.nodes if n.shape == "call" for c in calls_in(n, names))
    )


def _possible(to: dict[str, list[str]], first: str, second: str) -> bool:
    """Whether some walk calls `first`, and `second` only after it."""
    without = {
        place: [p for p in places if p.partition(" ")[2] != second] for place, places in to.items()
    }
    here = [p for p in reached([""], without) if p.partition(" ")[2] == first]
    return any(p.partition(" ")[2] == second for p in reached(here, to))


def _by_call(chart: Chart, names: Sequence[str]) -> dict[str, list[str]]:
    """The chart with a place for each call, `node tool`, and `node` behind the last; "" begins."""
    forward = successors(chart)
    places: dict[str, list[str]] = {"": [], **{n.id: [] for n in chart.nodes}}
    entry: dict[str, str] = {}
    for node in chart.nodes:
        calls = calls_in(node, names) if node.shape == "call" else ()
        row = [*(f"{node.id} {call}" for call in calls), node.id]
        entry[node.id] = row[0]
        for one, following in pairwise(row):
            places.setdefault(one, []).append(following)
        if node.shape == "start":
            places[""].append(row[0])
    for id, targets in forward.items():
        places[id] += [entry[t] for t in targets]
    return places


def chart_against_chart(
    one: tuple[str, Chart], other: tuple[str, Chart], tools: Sequence[WorkflowTool]
) -> list[str]:
    """Sentences on every way that one of two charts has and the other has not; [] when none.

    A way is: this call, this returned, that call next; wording does not count. Where only one of
    the two can come, an earlier difference has led, and that one is told. Raises TooLarge.
    """
    world = make_world(tools, [c for _, chart in (one, other) for c in comparisons_of(chart)])
    ours, theirs = ((name, relation(chart, tools, world)) for name, chart in (one, other))
    told = []
    for (name, mine), (without, yours) in ((ours, theirs), (theirs, ours)):
        missing = [
            (last, state, to)
            for (last, state), nexts in mine.follows.items()
            for to in nexts
            if to not in yours.follows.get((last, state), {to})
        ]
        told += [f"{line}; {without} does not" for line in _told(name, missing, mine, world)]
    more = len(told) - _MOST
    return [*told[:_MOST], f"and {more} further differences"] if more > 0 else told


def _told(name: str, ways: list[_Way], whole: Relation, world: World) -> Iterator[str]:
    """One sentence for each (call, next call), with the values common to its states."""

    def key(way: _Way) -> tuple[str, str]:
        return way[0], way[2]

    for (last, to), same in groupby(sorted(ways, key=key), key):
        states = [way[1] for way in same]
        values = _common(states, [s for (t, s) in whole.follows if t == last], world)
        when = f" ({values})" if values else ""
        after = "from the start" if last == START else f"after {last}"
        on = "to the end" if to == END else f"to {to}"
        yield f"{after}{when}, {name} goes on {on}"


def _common(states: list[State], everywhere: list[State], world: World) -> str:
    """Values of the variables that tell these states from the others after the same call."""
    parts: dict[str, str] = {}
    for i, (tool, field) in enumerate(world.variables):
        here, all_ = {s[i] for s in states}, {s[i] for s in everywhere}
        if here != all_:
            shown = " or ".join(world.name(i, v) for v in sorted(here))
            parts.setdefault(field, f"{tool}.{field} is {shown}" if tool else f"{field} is {shown}")
    return ", ".join(parts.values())
