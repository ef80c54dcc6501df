"""Other cases like a given one, for dissection (algorithm 2 of arXiv 2404.17833).

TerminalSubstitute: the same skeleton in other words. TopicChange: the same skeleton and words
about another profession. QuerySynthesize: other sentences with equivalent demands.

Points of time are terminals of the extended language (figure 6 of the paper), and substituting
their wording alone would be what other prepositions do already. `other_hours` therefore puts other
hours: each so that all demands can be met with the case's durations, and no demand follows from
the others that did not before. An hour without such a choice stays. Other hours make other
demands, which may be easier to meet; that is why the operation stands by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from agenteval.errors import InputError
from agenteval.planning.case import (
    DAY,
    Activity,
    Before,
    Case,
    Constraint,
    TimeLimit,
    mock_tools,
)
from agenteval.planning.grammar import (
    Actions,
    Object,
    Paragraph,
    Relative,
    RequestSentence,
    SubSentence,
    Time,
    constraints_of,
    fill,
    forms_in,
    refill,
)
from agenteval.planning.solver import Graph, Timed, solver_for
from agenteval.planning.suite import build_case, paragraph_of, request_text
from agenteval.planning.synthesis import Dice, resynthesize
from agenteval.planning.words import Lexicon, Topic, action, built_in, built_in_topics

Kind = Literal["terminal", "topic", "structure"]
KINDS: tuple[Kind, ...] = ("terminal", "topic", "structure")
_NOBODY = "assistant"  # the job in a request without a topic, as suites have it
_SAME = 20  # draws before a substitute that was there already is taken


@dataclass(frozen=True)
class Choices:
    """What substitutes are drawn from.

    `draws`: of so many structures, the one that shares the fewest clause forms with the original is
    taken (1: any, as in the paper). `topics` and `lexicon`: the built-in ones if None.
    """

    draws: int = 8
    topics: Sequence[Topic] | None = None
    lexicon: Lexicon | None = None


@dataclass(frozen=True)
class Base:
    """A case with the tree of its text."""

    case: Case
    tree: Paragraph
    lexicon: Lexicon

    @property
    def demands(self) -> tuple[Constraint, ...]:
        """The constraints by action numbers."""
        return tuple(entry.constraint for entry in constraints_of(self.tree))


def base_of(case: Case, lexicon: Lexicon | None = None) -> Base:
    """The case with its tree. InputError for one that cannot be dissected.

    Such a case has no text or no tree of it, a text that is not part of the request, or one that
    demands something else than the case's constraints.
    """
    words = lexicon or built_in()
    if not case.text:
        raise InputError("it cannot be dissected: it has no synthesized text", case.id)
    tree = paragraph_of(case, words)
    base = Base(case, tree, words)
    if {entry.constraint for entry in case.stated} != set(base.demands):
        raise InputError("it cannot be dissected: its text and its constraints differ", case.id)
    if case.text not in case.request:
        raise InputError("it cannot be dissected: its request does not hold its text", case.id)
    return base


def rebuilt(
    base: Base,
    name: str,
    tree: Paragraph,
    role: str | None = None,
    actions: Sequence[Activity] | None = None,
) -> Case:
    """The case of another tree, or about another profession with as many actions.

    A request in the usual frame is framed again; in any other the text is exchanged, and the
    name of the topic. Tools that are not the usual mocks are kept with their actions.
    """
    old = base.case
    topic = old.topic if role is None else role
    case = build_case(
        f"{old.id}~{name}", topic, actions or old.actions, tree, base.lexicon, old.hours
    )
    extended = old.hours is not None
    more: dict[str, Any] = {}
    if old.request == request_text(old.topic or _NOBODY, old.n, old.text, extended=extended):
        more["request"] = request_text(topic or _NOBODY, old.n, case.text, extended=extended)
    else:
        more["request"] = old.request.replace(old.text, case.text)
        more["template"] = old.template
        if old.topic and topic != old.topic:
            more["request"] = more["request"].replace(old.topic, topic)
    if actions is None and old.tools and old.tools != mock_tools(old):
        more["tools"] = old.tools
    return case.model_copy(update=more)


def substitutes(
    base: Base, kind: Kind, count: int, seed: int = 0, choices: Choices | None = None
) -> tuple[Case, ...]:
    """`count` substitutes of one kind, named "<id>~terminal1" and so on, different if possible.

    Each is decided by the seed, the case and its number alone. InputError where no other topic
    has enough activities.
    """
    seen = {base.case.text}
    cases = []
    for number in range(1, count + 1):
        key = [seed, int(base.case.sha256[:16], 16), KINDS.index(kind), number]
        for again in range(_SAME):
            rng = np.random.default_rng([*key, again])
            case = _substitute(base, kind, f"{kind}{number}", rng, choices or Choices())
            if case.text not in seen:
                break
        seen.add(case.text)
        cases.append(case)
    return tuple(cases)


def _substitute(
    base: Base, kind: Kind, name: str, rng: np.random.Generator, choices: Choices
) -> Case:
    case, tree, dice = base.case, base.tree, Dice(rng)
    if kind == "terminal":
        tree = refill(tree, base.lexicon, rng)
        if case.hours is not None:
            tree = other_hours(tree, case.hours, dice)
        return rebuilt(base, name, tree)
    if kind == "topic":
        known = built_in_topics() if choices.topics is None else choices.topics
        own = case.topic.casefold()
        others = [t for t in known if t.role.casefold() != own and len(t.activities) >= case.n]
        if not others:
            raise InputError(f"no other topic has {case.n} activities", "--topic")
        topic = dice.choice(others)
        phrases = dice.shuffled(topic.activities)[: case.n]
        base.lexicon.check_activities(phrases)
        return rebuilt(base, name, tree, topic.role, [action(phrase) for phrase in phrases])
    drawn = [
        resynthesize(dice, case.n, base.demands, unlike=tree) for _ in range(max(1, choices.draws))
    ]
    before = forms_in(tree)
    tree = min(drawn, key=lambda tree: len(forms_in(tree) & before))
    return rebuilt(base, name, fill(tree, base.lexicon, rng))


def other_hours(tree: Paragraph, durations: Sequence[int], dice: Dice) -> Paragraph:
    """The tree with another hour at every point of time that allows one, in the tree's order.

    `durations` are hours by action. `Undecided` at Z3's timeout.
    """
    old = _with_hours(tree)[1]
    hours = list(old)
    solver = solver_for(len(durations), durations)  # stays empty: only asked
    before = _followers(solver, tree, durations)
    if before is None:
        return tree  # a text whose demands cannot be met at all
    for place, hour in enumerate(old):
        for other in dice.shuffled([h for h in range(DAY + 1) if h != hour]):
            changed, _ = _with_hours(tree, [*hours[:place], other, *hours[place + 1 :]])
            if len(constraints_of(changed)) < len(constraints_of(tree)):
                continue  # two limits became one
            followers = _followers(solver, changed, durations)
            if followers is not None and followers <= before:
                hours[place] = other
                break
    return _with_hours(tree, hours)[0]


def _followers(solver: Graph | Timed, tree: Paragraph, durations: Sequence[int]) -> set[int] | None:
    """Places of the demands that follow from all the others; None if they cannot all be met."""
    demands = [entry.constraint for entry in constraints_of(tree)]
    if not solver.allows(demands):
        return None
    return {
        place
        for place, demand in enumerate(demands)
        if not solver.allows(
            [*demands[:place], *demands[place + 1 :], _opposite(demand, durations)]
        )
    }


def _opposite(demand: Constraint, durations: Sequence[int]) -> Constraint:
    """What holds iff the demand does not, for actions in whole hours that never overlap."""
    if isinstance(demand, Before):
        return Before(demand.second, demand.first)
    lasts = durations[demand.action]
    if demand.side == "before":  # ends at hour + 1 or later
        return TimeLimit(demand.action, "after", demand.hour + 1 - lasts)
    return TimeLimit(demand.action, "before", demand.hour - 1 + lasts)


def _with_hours(tree: Paragraph, hours: Sequence[int] | None = None) -> tuple[Paragraph, list[int]]:
    """The tree with these hours at its points of time in their order, and those it had."""
    old: list[int] = []

    def node(phrase_object: Object) -> Object:
        if isinstance(phrase_object, Time):
            old.append(phrase_object.hour)
            return phrase_object if hours is None else Time(hours[len(old) - 1])
        return actions(phrase_object)

    def actions(subject: Actions) -> Actions:
        if subject.relative is None:
            return subject
        return Actions(subject.ids, Relative(subject.relative.link, node(subject.relative.object)))

    def part(sentence_part: SubSentence) -> SubSentence:
        return replace(
            sentence_part, subject=actions(sentence_part.subject), object=node(sentence_part.object)
        )

    sentences = (RequestSentence(tuple(map(part, s.parts)), s.conjunctions) for s in tree.sentences)
    return Paragraph(tuple(sentences)), old
