"""Variants of a case, for dissection (algorithm 2 of arXiv 2404.17833).

TerminalSubstitute: the same skeleton in other words. TopicChange: the same skeleton and words
about another profession. QuerySynthesize: other sentences with equivalent demands.

Times are terminals of the extended language (figure 6 of the paper), and other words for them would
only be other prepositions. `other_hours` therefore changes the hours, such that all demands can be
met with the case's durations and no further demand follows from the others. An hour without an
alternative stays. The new hours may be easier to meet.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from agenteval.errors import InputError
from agenteval.planning.case import DAY, Activity, Before, Case, Constraint, TimeLimit, mock_tools
from agenteval.planning.grammar import (
    Paragraph,
    constraints_of,
    fill,
    followed,
    forms_in,
    refill,
    rewritten,
)
from agenteval.planning.solver import Graph, Timed, solver_for
from agenteval.planning.suite import build_case, paragraph_of, request_text
from agenteval.planning.synthesis import Dice, placed, resynthesize
from agenteval.planning.words import (
    Topic,
    action,
    built_in_topics,
    check_activities,
    ends_in_phrase,
)

Variant = Literal["terminal", "topic", "structure"]
VARIANTS: tuple[Variant, ...] = get_args(Variant)
_MAX_DRAWS = 20  # draws before a repeated text is accepted


@dataclass(frozen=True)
class Base:
    """A case with the tree of its text."""

    case: Case
    tree: Paragraph


def base_of(case: Case) -> Base:
    """Return the case with its tree. Raises InputError for a case that cannot be dissected.

    This is a case without a text or syntax tree, or with a text that is not part of the request or
    does not match the constraints.
    """
    if not case.text:
        raise InputError("it cannot be dissected: it has no synthesized text", case.id)
    tree = paragraph_of(case)
    if {stated.constraint for stated in case.stated} != set(_demands(tree)):
        raise InputError("it cannot be dissected: its text and its constraints differ", case.id)
    if case.text not in case.request:
        raise InputError("it cannot be dissected: its request does not contain its text", case.id)
    return Base(case, tree)


def substitutes(
    base: Base,
    variant: Variant,
    count: int,
    seed: int = 0,
    *,
    topics: Sequence[Topic] | None = None,
    draws: int = 8,
) -> tuple[Case, ...]:
    """Return `count` variants, named "<id>~terminal1" and so on, distinct if possible.

    Each depends only on the seed, the case and its number. `topics` default to the built-in ones.
    Of `draws` structures, the least ambiguous one that shares the fewest clause forms with the
    original is used (1: any, as in the paper). Raises InputError if no other topic has enough
    activities.
    """
    texts = {base.case.text}
    cases = []
    for number in range(1, count + 1):
        key = [seed, int(base.case.sha256[:16], 16), VARIANTS.index(variant), number]
        for draw in range(_MAX_DRAWS):
            rng = np.random.default_rng([*key, draw])
            name = f"{variant}{number}"
            if variant == "terminal":
                case = _other_words(base, name, rng)
            elif variant == "topic":
                case = _other_topic(base, name, Dice(rng), topics)
            else:
                case = _other_structure(base, name, rng, draws)
            if case.text not in texts:
                break
        texts.add(case.text)
        cases.append(case)
    return tuple(cases)


def _other_words(base: Base, name: str, rng: np.random.Generator) -> Case:
    tree, dice = base.tree, Dice(rng)
    tree = refill(tree, rng)
    if base.case.hours is not None:
        tree = other_hours(tree, base.case.hours, dice)
    return rebuilt(base, name, tree)


def _other_topic(base: Base, name: str, dice: Dice, topics: Sequence[Topic] | None) -> Case:
    n, role = base.case.n, base.case.topic.casefold()
    every = built_in_topics() if topics is None else topics
    candidates = [t for t in every if t.role.casefold() != role and len(t.activities) >= n]
    if not candidates:
        raise InputError(f"no other topic has {n} activities", "--topic")
    topic = dice.choice(candidates)
    phrases = placed(dice.shuffled(topic.activities), n, base.tree)
    check_activities(phrases)
    return rebuilt(base, name, base.tree, topic.role, [action(phrase) for phrase in phrases])


def _other_structure(base: Base, name: str, rng: np.random.Generator, draws: int) -> Case:
    case, tree, dice = base.case, base.tree, Dice(rng)
    drawn = [resynthesize(dice, case.n, _demands(tree), unlike=tree) for _ in range(draws)]
    forms = forms_in(tree)
    risky = {i for i, a in enumerate(case.actions) if ends_in_phrase(a.phrase)}
    least_similar = min(
        drawn, key=lambda other: (len(followed(other) & risky), len(forms_in(other) & forms))
    )
    return rebuilt(base, name, fill(least_similar, rng))


def rebuilt(
    base: Base,
    name: str,
    tree: Paragraph,
    role: str | None = None,
    actions: Sequence[Activity] | None = None,
) -> Case:
    """Return the case with another tree, or about another profession with as many actions.

    A request from the default template is rendered again; in other requests, the text and the name
    of the topic are replaced. Tools other than the default mocks are kept with their actions.
    """
    old = base.case
    topic = old.topic if role is None else role
    case = build_case(f"{old.id}~{name}", topic, actions or old.actions, tree, old.hours)
    extended = old.hours is not None
    changes: dict[str, Any] = {}
    if old.request == request_text(old.topic, old.n, old.text, extended=extended):
        changes["request"] = request_text(topic, old.n, case.text, extended=extended)
    else:
        changes["request"] = old.request.replace(old.text, case.text)
        changes["template"] = old.template
        if old.topic and topic != old.topic:
            changes["request"] = changes["request"].replace(old.topic, topic)
    if actions is None and old.tools and old.tools != mock_tools(old):
        changes["tools"] = old.tools
    return case.model_copy(update=changes)


def other_hours(tree: Paragraph, durations: Sequence[int], dice: Dice) -> Paragraph:
    """Return the tree with another hour for each time that allows one, in order.

    `durations` are hours by action. Raises `Undecided` on a timeout of Z3.
    """
    hours: list[int] = []

    def collect(hour: int) -> int:
        hours.append(hour)
        return hour

    rewritten(tree, hour=collect)
    solver = solver_for(len(durations), durations)  # stays empty
    implied = _implied(solver, tree, durations)
    if implied is None:
        return tree  # the demands of the text cannot be met
    for place, hour in enumerate(tuple(hours)):
        for other in dice.shuffled([h for h in range(DAY + 1) if h != hour]):
            changed = _with_hours(tree, [*hours[:place], other, *hours[place + 1 :]])
            if len(_demands(changed)) < len(_demands(tree)):
                continue  # two limits would become one
            follows = _implied(solver, changed, durations)
            if follows is not None and follows <= implied:
                hours[place] = other
                break
    return _with_hours(tree, hours)


def _with_hours(tree: Paragraph, hours: Sequence[int]) -> Paragraph:
    remaining = iter(hours)
    return rewritten(tree, hour=lambda _: next(remaining))


def _implied(solver: Graph | Timed, tree: Paragraph, durations: Sequence[int]) -> set[int] | None:
    """Return positions of demands implied by all others; None if they cannot all be met."""
    demands = _demands(tree)
    if not solver.allows(demands):
        return None
    return {
        i
        for i, demand in enumerate(demands)
        if not solver.allows([*demands[:i], *demands[i + 1 :], _opposite(demand, durations)])
    }


def _demands(tree: Paragraph) -> tuple[Constraint, ...]:
    """The constraints by action numbers."""
    return tuple(stated.constraint for stated in constraints_of(tree))


def _opposite(demand: Constraint, durations: Sequence[int]) -> Constraint:
    """Return the negation of a demand, for actions in whole hours that never overlap."""
    if isinstance(demand, Before):
        return Before(demand.second, demand.first)
    duration = durations[demand.action]
    if demand.side == "before":  # ends at hour + 1 or later
        return TimeLimit(demand.action, "after", demand.hour + 1 - duration)
    return TimeLimit(demand.action, "before", demand.hour - 1 + duration)
