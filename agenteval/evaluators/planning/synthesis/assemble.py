"""From a paragraph to a whole case: words, request, tools, and what a valid plan must satisfy."""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.evaluators.planning.case import (
    DAY,
    Action,
    Before,
    Case,
    OrderRule,
    Size,
    Stated,
    TimeRule,
    limits,
    mock_tools,
    orders,
)
from agenteval.evaluators.planning.dsl.derive import constraints_of
from agenteval.evaluators.planning.dsl.lexicon import Lexicon, built_in
from agenteval.evaluators.planning.dsl.nodes import Paragraph
from agenteval.evaluators.planning.dsl.parse import parse
from agenteval.evaluators.planning.dsl.render import render
from agenteval.evaluators.planning.solver.graph import count_plans, plans
from agenteval.models.prompts import Prompt, load_prompt

_MOST_COUNTED = 7  # actions of an extended case whose orders are tried one by one


def template(*, extended: bool) -> Prompt:
    """The frame of a request, around the synthesized text."""
    return load_prompt("agenteval.evaluators.planning", "extended" if extended else "base")


def request_text(role: str, n: int, text: str, *, extended: bool) -> str:
    """What the agent is asked."""
    return template(extended=extended).render(role=role, n=n, text=text)


def build_case(
    identity: str,
    role: str,
    actions: Sequence[Action],
    paragraph: Paragraph,
    lexicon: Lexicon,
    durations: Sequence[int] | None = None,
) -> Case:
    """The case of a paragraph with words; durations (hours by action) make it an extended one."""
    text = render(paragraph, [action.phrase for action in actions], lexicon)
    found = constraints_of(paragraph)
    extended = durations is not None
    case = Case(
        id=identity,
        topic=role,
        actions=tuple(actions),
        constraints=rules_of(found, actions),
        text=text,
        request=request_text(role, len(actions), text, extended=extended),
        durations=dict(zip((a.tool for a in actions), durations, strict=True))
        if durations
        else None,
        valid_plans=count_valid(len(actions), found, durations),
        size=Size(
            actions=len(actions),
            sub_sentences=sum(1 for _ in paragraph.parts()),
            constraints=len(found),
            words=len(text.split()),
        ),
        template=template(extended=extended).sha256[:12],
        words="built-in" if lexicon is built_in() else lexicon.sha256,
    )
    return case.model_copy(update={"tools": mock_tools(case)})


def count_valid(
    n: int, found: Sequence[Stated], durations: Sequence[int] | None = None
) -> int | None:
    """Number of valid plans; with durations, of orders for which start times exist.

    None where it is not counted: orders beyond the graph's bound, extended cases of more than 7
    actions, and time limits without durations.
    """
    constraints = [entry.constraint for entry in found]
    timed = limits(constraints)
    if durations is None:
        return None if timed else count_plans(n, orders(constraints))
    if n > _MOST_COUNTED:
        return None
    earliest, latest = [0] * n, [DAY] * n
    for limit in timed:
        if limit.side == "after":
            earliest[limit.action] = max(earliest[limit.action], limit.hour)
        else:
            latest[limit.action] = min(latest[limit.action], limit.hour)

    def works(plan: Sequence[int]) -> bool:
        now = 0  # for a given order the earliest starts are the best ones
        for i in plan:
            now = max(now, earliest[i]) + durations[i]
            if now > latest[i]:
                return False
        return True

    return sum(1 for plan in plans(n, orders(constraints)) if works(plan))


def paragraph_of(case: Case, lexicon: Lexicon) -> Paragraph:
    """The tree of a case's text. InputError where the text is not in the language."""
    return parse(case.text, [action.phrase for action in case.actions], lexicon)


def rules_of(
    found: Sequence[Stated], actions: Sequence[Action]
) -> tuple[OrderRule | TimeRule, ...]:
    """The constraints with tool names, as a case holds them."""
    return tuple(_rule(entry, actions) for entry in found)


def _rule(entry: Stated, actions: Sequence[Action]) -> OrderRule | TimeRule:
    constraint = entry.constraint
    if isinstance(constraint, Before):
        return OrderRule(
            first=actions[constraint.first].tool,
            second=actions[constraint.second].tool,
            sentences=entry.sentences,
        )
    return TimeRule(
        tool=actions[constraint.action].tool,
        side=constraint.side,
        hour=constraint.hour,
        sentences=entry.sentences,
    )
