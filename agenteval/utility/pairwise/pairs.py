"""Pairs of runs of two systems on one case, the outcomes of their comparisons, and their figures.

A judge sees a first and a second response. A pair is stored as a run whose system is "A | B", in
the order shown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Literal

import numpy as np

from agenteval.analysis.means import Rating
from agenteval.errors import InputError
from agenteval.readers import degenerate
from agenteval.records import Criterion, Message, Run, View
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.interval import Interval
from agenteval.stats.vectors import Floats
from agenteval.store.rows import case_key
from agenteval.text import plural
from agenteval.utility.evaluator import Item

SEPARATOR = " | "
LEVELS = ("second", "tie", "first")  # for the first response from worst to best
OVERALL = Criterion(id="preference", name="preference", accepted_values=LEVELS)


def preference_on(criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
    """Return the criteria with second, tie and first as their levels; sub-criteria one by one."""
    levels = {"accepted_values": LEVELS, "scale": "ordinal", "order": "worst_to_best"}
    unused = {"allow_na": False, "numeric_range": None, "order_confirmed": False}
    return tuple(
        leaf.model_copy(update={"id": path.replace("/", "-"), **levels, **unused})
        for criterion in criteria
        for path, leaf in criterion.leaves()
    )


@dataclass(frozen=True)
class ResponsePair:
    """Runs on one case as judges of single runs see them.

    To verify a judge, B is A or a changed copy of it; `origin` is the key of A's view then.
    """

    a: Item
    b: Item
    origin: str | None = None

    @property
    def orders(self) -> tuple[bool, ...]:
        """Whether the pair is swapped, for each order in which it is judged: equal texts have
        one."""
        same = self.a[1].trajectory == self.b[1].trajectory
        return (False,) if same and self.origin is not None else (False, True)

    def shown(self, *, swapped: bool) -> Item:
        """Return the pair as one text to judge: A is the first response, unless `swapped`.

        The messages of the run are the responses. Its metadata says which of them are degenerate.
        """
        sides = (self.b, self.a) if swapped else (self.a, self.b)
        texts = [view.trajectory for _, view in sides]
        run, view = self.a
        by_system = sorted((self.a[0], self.b[0]), key=lambda side: side.system)
        both = Run(
            id=SEPARATOR.join(dict.fromkeys(side.id for side in by_system)),
            task=run.task,
            system=SEPARATOR.join(side.system for side, _ in sides),
            input=run.input,
            output="[first response]\n{}\n\n[second response]\n{}".format(*texts),
            messages=tuple(Message(role="assistant", content=text) for text in texts),
            metadata={"degenerate": [degenerate(side) for side, _ in sides]},
        )
        shown = View(
            run_id=both.id,
            problem=view.problem,
            trajectory=both.output,
            reference=view.reference,
            origin=self.origin,
            owner=(both.task, both.system),
        )
        return both, shown


@dataclass(frozen=True)
class PairedRuns:
    """The pairs of several systems, and by pair of systems the number of cases without a pair of
    runs, by reason; cases that neither system has do not count."""

    systems: tuple[str, ...]
    pairs: tuple[ResponsePair, ...]
    left_out: Mapping[str, Mapping[str, int]]


def pair_runs(
    items: Sequence[Item], systems: Sequence[str], limit: int | None = None
) -> PairedRuns:
    """Pair every two systems on each case, of at most `limit` cases. A run whose system failed is
    in no pair; of several runs on a case the first are paired, then the second, and so on.

    Raises InputError for fewer than two systems, and where no case has runs of two.
    """
    by_case: defaultdict[str, defaultdict[str, list[Item]]] = defaultdict(lambda: defaultdict(list))
    for item in items:
        by_case[case_key(item[0])][item[0].system].append(item)
    names = tuple(dict.fromkeys(systems))
    if len(names) < 2:
        raise InputError(f"two systems are needed, and there is {plural(len(names), 'system')}")
    if marked := [name for name in names if SEPARATOR in name]:
        raise InputError(f"the name of a system must not contain {SEPARATOR!r}: {marked[0]!r}")
    pairs, left_out = list[ResponsePair](), defaultdict[str, Counter[str]](Counter)
    for runs in list(by_case.values())[:limit]:
        for a, b in combinations(names, 2):
            if not (runs[a] or runs[b]):
                continue
            answered = {
                name: [item for item in runs[name] if item[0].failure is None] for name in (a, b)
            }
            pairs += [ResponsePair(*both) for both in zip(answered[a], answered[b], strict=False)]
            if reasons := [
                f"run of {name} failed" if runs[name] else f"no run of {name}"
                for name in (a, b)
                if not answered[name]
            ]:
                left_out[f"{a} against {b}"][", ".join(reasons)] += 1
            elif more := abs(len(answered[a]) - len(answered[b])):
                left_out[f"{a} against {b}"]["run without a counterpart"] += more
    if not pairs:
        why = "; ".join(
            f"{both}: {reason} ({n})" for both, by in left_out.items() for reason, n in by.items()
        )
        raise InputError(f"no case has an answer of two systems: {why or 'there are no runs'}")
    return PairedRuns(names, tuple(pairs), left_out)


# -- outcomes --------------------------------------------------------------------------------------

OutcomeName = Literal["win", "loss", "tie", "flip", "missing"]


@dataclass(frozen=True, slots=True)
class PairOutcome:
    """One comparison of systems A and B on a case.

    `shown_first` is the preference for A when A was the first response, `shown_second` when it was
    the second: 1 if A is preferred, 0.5 for a tie, 0 if B is; None if the judgment is missing. With
    `one_order` it was asked once, in an unknown order, which is `shown_first`.
    """

    case: str
    run: str
    a: str
    b: str
    criterion: str
    shown_first: float | None
    shown_second: float | None
    repeat: int = 0
    one_order: bool = False

    @property
    def preferences(self) -> list[float]:
        """The preferences for A in the orders that were asked; fewer if one is missing."""
        both = (self.shown_first,) if self.one_order else (self.shown_first, self.shown_second)
        return [value for value in both if value is not None]

    @property
    def outcome(self) -> OutcomeName:
        """Return what the orders agree on for A, "flip" if they differ, "missing" without one."""
        if len(self.preferences) < 2 - self.one_order:
            return "missing"
        signs = {float(np.sign(value - 0.5)) for value in self.preferences}
        if len(signs) > 1:
            return "flip"
        return {1.0: "win", 0.0: "tie", -1.0: "loss"}[signs.pop()]  # type: ignore[return-value]

    @property
    def score(self) -> float | None:
        """Return 1 for a win of A, 0.5 for a tie or a flip, 0 for a loss (of numbers the mean)."""
        outcome = self.outcome
        if outcome in ("missing", "flip"):
            return None if outcome == "missing" else 0.5
        return sum(self.preferences) / len(self.preferences)


def pair_outcomes(ratings: Sequence[Rating], systems: Sequence[str] = ()) -> list[PairOutcome]:
    """Return the comparisons of stored results; A comes before B in `systems`, else by name."""
    order = {name: place for place, name in enumerate(systems)}
    answers: defaultdict[tuple[str, str, str, int, frozenset[str]], dict[str, float | None]]
    answers = defaultdict(dict)
    for rating in ratings:
        names = rating.system.split(SEPARATOR)
        run = rating.run_id.removeprefix(f"{rating.system}/")  # named so where systems share ids
        key = rating.case, run, rating.criterion_id, rating.repeat, frozenset(names)
        answers[key][names[0]] = rating.value
    outcomes = []
    for (case, run, criterion, repeat, both), value in answers.items():
        a, b = sorted(both, key=lambda name: (order.get(name, len(order)), name))
        other = value.get(b)
        swapped = None if other is None else 1 - other
        outcomes.append(PairOutcome(case, run, a, b, criterion, value.get(a), swapped, repeat))
    return outcomes


def by_case(outcomes: Sequence[PairOutcome], values: Sequence[float | None]) -> Floats:
    """Return the mean value of each case; comparisons without a value do not count."""
    grouped: defaultdict[str, list[float]] = defaultdict(list)
    for outcome, value in zip(outcomes, values, strict=True):
        if value is not None:
            grouped[outcome.case].append(value)
    return np.array([sum(group) / len(group) for group in grouped.values()])


def win_rate(outcomes: Sequence[PairOutcome], *, flips: bool = True) -> Interval:
    """Return the mean score of A over cases with its interval; without `flips` they are left out
    instead of counted as half."""
    used = [o for o in outcomes if flips or o.outcome != "flip"]
    return bounded_interval(by_case(used, [o.score for o in used]), (0.0, 1.0))


def mirrored(outcomes: Sequence[PairOutcome]) -> Interval:
    """Return the share of comparisons in which both orders agree."""
    values = [None if o.score is None else float(o.outcome != "flip") for o in outcomes]
    return bounded_interval(by_case(outcomes, values), (0.0, 1.0))


def position_bias(outcomes: Sequence[PairOutcome]) -> Interval:
    """Return the share of the first position minus 1/2, ties as halves, over cases.

    Only comparisons in both orders count: then each response was first once, and quality cancels.
    """
    values = [
        None
        if o.one_order or o.shown_first is None or o.shown_second is None
        else (o.shown_first - o.shown_second) / 2
        for o in outcomes
    ]
    return bounded_interval(by_case(outcomes, values), (-0.5, 0.5))


def wins_by_case(outcomes: Sequence[PairOutcome], systems: Sequence[str]) -> Floats:
    """Return the wins (cases, k, k) of each system against each; each pair of systems counts once
    in a case, whatever the number of repeats."""
    grouped: defaultdict[str, defaultdict[tuple[int, int], list[float]]]
    grouped = defaultdict(lambda: defaultdict(list))
    for o in outcomes:
        if o.score is not None:
            grouped[o.case][systems.index(o.a), systems.index(o.b)].append(o.score)
    wins = np.zeros((len(grouped), len(systems), len(systems)))
    for case, pairs in enumerate(grouped.values()):
        for (i, j), scores in pairs.items():
            wins[case, i, j] = sum(scores) / len(scores)
            wins[case, j, i] = 1 - wins[case, i, j]
    return wins
