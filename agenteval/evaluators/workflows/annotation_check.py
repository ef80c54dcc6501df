"""Do the annotations of sessions and the wishes of profiles stand in the charts?"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping, Sequence

from agenteval.evaluators.workflows.chart.nouns import Chart, Defect
from agenteval.evaluators.workflows.scenario import Profile, RecordedSession, Turn

OUT_OF_SCOPE = "out of scope"


def annotation_defects(
    profiles: Sequence[Profile], sessions: Sequence[RecordedSession], charts: Mapping[str, Chart]
) -> tuple[Defect, ...]:
    """Nodes and intents of turns, and choices of profiles, that no chart has.

    `charts` are those of the role, by the scenario's id. A choice is a label or an intent of an
    edge in one of the profile's scenarios.
    """
    found: list[Defect] = []
    for profile in profiles:
        known = {word for id in profile.scenarios if id in charts for word in _words(charts[id])}
        found += [
            _unknown(f"profile {profile.id}: the choice", choice, known)
            for choice in profile.choices
            if choice not in known
        ]
    for session in sessions:
        for i, turn in enumerate(session.turns):
            if turn.kind != "user":
                found += _turn(f"session {session.id}, turn {i}: ", turn, charts)
    return tuple(found)


def _turn(where: str, turn: Turn, charts: Mapping[str, Chart]) -> Iterator[Defect]:
    chart = charts.get(turn.scenario)
    if chart is None:
        yield _unknown(f"{where}the scenario", turn.scenario, charts)
        return
    nodes = {n.id for n in chart.nodes}
    if turn.node not in nodes:
        yield _unknown(f"{where}the node", turn.node, nodes)
        return
    into = _words(chart, turn.node)
    if turn.intent not in ("", OUT_OF_SCOPE, *into):
        yield _unknown(f"{where}an edge into {turn.node} labelled", turn.intent, into)


def _words(chart: Chart, target: str | None = None) -> set[str]:
    """Labels and intents of the edges, of those into `target` where it is given."""
    edges = [e for e in chart.edges if target in (None, e.target)]
    return {word for e in edges for word in (e.label, e.intent) if word}


def _unknown(what: str, name: str, known: Iterable[str]) -> Defect:
    near = difflib.get_close_matches(name, list(known), 1)
    hint = f"; is {near[0]!r} meant?" if near else ""
    return Defect(kind="annotation", message=f"{what} {name!r} is in no chart{hint}")
