"""What a scripted agent understands of a request, and the faults that can be planted in it.

A scripted agent is an agent like any other: it sees the request and the tools, nothing of the case.
It reads the sentences with the parser of the language, since what it tests is not reading.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from agenteval.agents import Tool
from agenteval.errors import AgentevalError, InputError
from agenteval.evaluators.planning.case import RESTART, START, Constraint, limits, orders
from agenteval.evaluators.planning.dsl.fill import CONJ, forms_in, words_in
from agenteval.evaluators.planning.dsl.lexicon import KINDS, Lexicon, Phrase
from agenteval.evaluators.planning.dsl.parse import parse
from agenteval.evaluators.planning.dsl.tree import Paragraph, constraints_of
from agenteval.evaluators.planning.solver.graph import count_plans, reduction
from agenteval.evaluators.planning.synthesis.topics import choose_topics

_ACTIVITY = re.compile(r"^Carry out the activity: ([^.]+)\.")
_DIRECTED = ("verb", "preposition", "fronted preposition", "pair", "fronted pair", "relative",
             "time")  # fmt: skip
FORMS = (
    *(f"{form} {direction}" for form in _DIRECTED for direction in ("prec", "succ")),
    "plural",
    "conjunction",
)
PATTERNS = ("chain3", "fan-in", "fan-out", "limit", "partial", "total")


@dataclass(frozen=True)
class Reading:
    """A request as a scripted agent reads it; actions are numbered in the order of the tools."""

    text: str  # the sentences alone
    tools: tuple[str, ...]
    phrases: tuple[str, ...]
    timed: bool
    paragraph: Paragraph
    lexicon: Lexicon

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """What the sentences demand."""
        return tuple(entry.constraint for entry in constraints_of(self.paragraph))

    @cached_property
    def mentioned(self) -> tuple[int, ...]:
        """The actions in the order of their first mention; those that are not mentioned last."""
        text = self.text.lower()
        found = [text.find(phrase.lower()) for phrase in self.phrases]
        return tuple(
            sorted(
                range(len(found)),
                # of two that begin at one place the longer phrase is the one that stands there
                key=lambda i: (found[i] < 0, found[i], -len(self.phrases[i])),
            )
        )


Fault = Callable[[Reading], bool]  # does the agent go wrong here?


def read(request: str, tools: Sequence[Tool], lexicon: Lexicon) -> Reading:
    """The reading of a request. AgentevalError where no line of it is in the language.

    An activity's phrase stands in the description of its tool; of other tools the name is taken,
    with spaces for underscores. The sentences are a line, maybe behind a word and a colon.
    """
    own = [tool for tool in tools if tool.name != RESTART]
    phrases = tuple(_phrase(tool) for tool in own)
    for line in request.splitlines():
        for text in dict.fromkeys((line.strip(), line.partition(": ")[2].strip())):
            try:
                paragraph = parse(text, phrases, lexicon)
            except InputError:
                continue  # the frame of the request, or a line of it with another meaning
            names = tuple(tool.name for tool in own)
            timed = any(takes_hour(tool) for tool in own)
            return Reading(text, names, phrases, timed, paragraph, lexicon)
    raise AgentevalError("a scripted agent found no sentence of the language in the request")


def takes_hour(tool: Tool) -> bool:
    """Does the tool take a start hour, as those of extended cases do?"""
    properties = tool.parameters.get("properties")
    return isinstance(properties, dict) and START in properties


def wrong_word(value: str, lexicon: Lexicon) -> Fault:
    """Wrong wherever a terminal phrase is in the text: "prior to", or of one kind "P_prec/before".

    Verb phrases are named in the singular; they count in the plural too. "CONJ/, and" is a
    conjunction of clauses. InputError for a phrase that the lexicon does not have.
    """
    kind, slash, phrase = value.partition("/")
    if not slash:
        kind, phrase = "", value
    if kind and kind not in (*KINDS, CONJ):
        raise InputError(f"no kind of words {kind!r}; there are {', '.join((*KINDS, CONJ))}")
    lists: dict[str, Sequence[Phrase | str]] = {k: lexicon.words[k] for k in KINDS}
    lists[CONJ] = lexicon.conjunctions
    planted = {
        (name, number)
        for name, words in lists.items()
        for number, word in enumerate(words)
        if kind in ("", name) and phrase == (word if isinstance(word, str) else word.singular)
    }
    if not planted:
        words = [w if isinstance(w, str) else w.singular for w in lists.get(kind, ())]
        known = ", ".join(map(repr, words)) if kind else "those of the lexicon, verbs in singular"
        raise InputError(f"no phrase {phrase!r}{f' of {kind}' if kind else ''}; allowed: {known}")
    return lambda reading: not planted.isdisjoint(words_in(reading.paragraph))


def wrong_topic(role: str) -> Fault:
    """Wrong wherever all activities belong to this profession. InputError for an unknown one."""
    (topic,) = choose_topics([role])
    activities = set(topic.activities)
    return lambda reading: activities.issuperset(reading.phrases)


def wrong_form(form: str) -> Fault:
    """Wrong wherever the text has this clause form, a name of `fill.forms_in`."""
    _known(form, FORMS, "clause form")
    return lambda reading: form in forms_in(reading.paragraph)


def wrong_pattern(pattern: str) -> Fault:
    """Wrong wherever the demands have this pattern, which no other wording of them removes.

    Of the transitive reduction of the orders: "chain3" (a before b before c), "fan-out" (an action
    directly before two others), "fan-in" (directly after two others). Of all valid plans: "total"
    (there is one alone), "partial" (there are several); time limits are not counted here. "limit":
    there is a time limit.
    """
    _known(pattern, PATTERNS, "pattern")
    return lambda reading: pattern in patterns_in(len(reading.tools), reading.constraints)


def patterns_in(n: int, constraints: Sequence[Constraint]) -> set[str]:
    """Names of the patterns (see `wrong_pattern`) that these satisfiable constraints have."""
    edges = reduction(n, orders(constraints))
    sources, targets = [e.first for e in edges], [e.second for e in edges]
    found = {"total" if count_plans(n, edges) == 1 else "partial"}
    if set(sources) & set(targets):
        found.add("chain3")
    if len(set(sources)) < len(sources):
        found.add("fan-out")
    if len(set(targets)) < len(targets):
        found.add("fan-in")
    if limits(constraints):
        found.add("limit")
    return found


def _known(name: str, names: Sequence[str], what: str) -> None:
    if name not in names:
        raise InputError(f"no {what} {name!r}; there are {', '.join(names)}")


def _phrase(tool: Tool) -> str:
    found = _ACTIVITY.match(tool.description)
    return found[1] if found else tool.name.replace("_", " ")
