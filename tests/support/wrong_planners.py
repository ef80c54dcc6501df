"""Scripted planners that go wrong where the request has something: a word, topic, form, pattern.

`wrong_planner("KIND=VALUE")` is the factory: wrong wherever its fault is there, else perfect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agenteval.planning.case import Case, Constraint, limits, orders
from agenteval.planning.grammar import CONJ, DIRECTIONS, forms_in
from agenteval.planning.oracle import PlanStep
from agenteval.planning.scripted import (
    Factory,
    in_order,
    perfect,
    scripted,
    valid_order,
    wrong,
)
from agenteval.planning.solver import Graph, count_plans
from agenteval.planning.suite import paragraph_of
from agenteval.planning.synthesis import Dice
from agenteval.planning.words import built_in, choose_topics
from tests.support.english import words_in

FORMS = (
    *(f"{form} {direction}"
      for form in ("verb", "preposition", "fronted preposition", "pair", "fronted pair",
                   "relative", "time")
      for direction in DIRECTIONS),
    "plural",
    "conjunction",
)  # fmt: skip
PATTERNS = ("chain3", "fan-in", "fan-out", "limit", "partial", "total")


def wrong_planner(spec: str) -> Factory:
    """wrong-word=KIND/PHRASE, wrong-topic=ROLE, wrong-form=FORM, wrong-pattern=PATTERN, reversed;
    other specs are those of `scripted`."""
    kind, _, value = spec.partition("=")
    makers: dict[str, Callable[[str], Callable[[Case], bool]]] = {
        "wrong-word": wrong_word,
        "wrong-topic": wrong_topic,
        "wrong-form": lambda form: lambda case: form in forms_in(paragraph_of(case, built_in())),
        "wrong-pattern": lambda name: (
            lambda case: name in patterns_in(case.n, [s.constraint for s in case.stated])
        ),
    }
    if kind == "reversed":
        return Factory(lambda case, dice: in_order(case, valid_order(case)[::-1]))
    if kind not in makers:
        return scripted(spec)
    fault = makers[kind](value)

    def script(case: Case, dice: Dice) -> Sequence[PlanStep]:
        return wrong(case, dice) if fault(case) else perfect(case, dice)

    return Factory(script)


def wrong_word(value: str) -> Callable[[Case], bool]:
    kind, _, phrase = value.partition("/")
    lexicon = built_in()
    words = (
        list(lexicon.conjunctions)
        if kind == CONJ
        else [word.singular for word in lexicon.words[kind]]  # type: ignore[index]
    )
    planted = (kind, words.index(phrase))
    return lambda case: planted in words_in(paragraph_of(case, lexicon))


def wrong_topic(role: str) -> Callable[[Case], bool]:
    (topic,) = choose_topics([role])
    return lambda case: set(topic.activities) >= {action.phrase for action in case.actions}


def patterns_in(n: int, constraints: Sequence[Constraint]) -> set[str]:
    """Patterns of the demands, which no other wording of them removes.

    Of the transitive reduction of the orders: "chain3" (a before b before c), "fan-out" (an action
    directly before two others), "fan-in" (directly after two others). Of all valid plans: "total"
    (there is one alone), "partial" (there are several); time limits are not counted here. "limit":
    there is a time limit.
    """
    edges = Graph(n, orders(constraints)).reduction()
    sources, targets = [e.first for e in edges], [e.second for e in edges]
    patterns = {"total" if count_plans(n, edges) == 1 else "partial"}
    if set(sources) & set(targets):
        patterns.add("chain3")
    if len(set(sources)) < len(sources):
        patterns.add("fan-out")
    if len(set(targets)) < len(targets):
        patterns.add("fan-in")
    if limits(constraints):
        patterns.add("limit")
    return patterns
