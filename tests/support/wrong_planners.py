"""Scripted planners that fail where the request has something: a word, topic, form or pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agenteval.planning.case import Case, limits, orders
from agenteval.planning.grammar import CONJ, forms_in
from agenteval.planning.oracle import PlanStep
from agenteval.planning.scripted import Factory, perfect, scripted, wrong
from agenteval.planning.solver import Graph
from agenteval.planning.suite import paragraph_of
from agenteval.planning.synthesis import Dice
from agenteval.planning.words import CONJUNCTIONS, choose_topics, words
from tests.support.english import words_in


def wrong_planner(spec: str) -> Factory:
    """Return the factory of a planner that is wrong wherever its fault is, else perfect.

    The fault is wrong-word=KIND/PHRASE, wrong-topic=ROLE, wrong-form=FORM (see `forms_in`) or
    wrong-pattern=PATTERN (chain3 or limit). Other specs are those of `scripted`.
    """
    kind, _, value = spec.partition("=")
    faults: dict[str, Callable[[str], Callable[[Case], bool]]] = {
        "wrong-word": _has_word,
        "wrong-topic": _has_topic,
        "wrong-form": lambda form: lambda case: form in forms_in(paragraph_of(case)),
        "wrong-pattern": lambda name: lambda case: name in _patterns(case),
    }
    if kind not in faults:
        return scripted(spec)
    fault = faults[kind](value)

    def script(case: Case, dice: Dice) -> Sequence[PlanStep]:
        return wrong(case, dice) if fault(case) else perfect(case, dice)

    return Factory(script)


def _has_word(value: str) -> Callable[[Case], bool]:
    kind, _, phrase = value.partition("/")
    listed = (
        list(CONJUNCTIONS) if kind == CONJ else [word.singular for word in words()[kind]]  # type: ignore[index]
    )
    planted = (kind, listed.index(phrase))
    return lambda case: planted in words_in(paragraph_of(case))


def _has_topic(role: str) -> Callable[[Case], bool]:
    (topic,) = choose_topics([role])
    return lambda case: set(topic.activities) >= {action.phrase for action in case.actions}


def _patterns(case: Case) -> set[str]:
    """Patterns of the constraints, which every wording has: "chain3" (a before b before c in the
    transitive reduction) and "limit" (a time limit)."""
    constraints = [s.constraint for s in case.stated]
    edges = Graph(case.n, orders(constraints)).reduction()
    chain = {e.first for e in edges} & {e.second for e in edges}
    return {name for name, found in (("chain3", chain), ("limit", limits(constraints))) if found}
