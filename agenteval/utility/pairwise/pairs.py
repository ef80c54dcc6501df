"""Pairs of runs of two systems on one case, and how a judge sees them: first and second response.

A pair is stored as a run whose system is "A | B", in the order shown.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from agenteval.errors import InputError
from agenteval.readers import degenerate
from agenteval.records import Criterion, Message, Run, View
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
        by_system = sorted((self.a[0], self.b[0]), key=lambda one: one.system)
        both = Run(
            id=SEPARATOR.join(dict.fromkeys(one.id for one in by_system)),
            task=run.task,
            system=SEPARATOR.join(one.system for one, _ in sides),
            input=run.input,
            output="[first response]\n{}\n\n[second response]\n{}".format(*texts),
            messages=tuple(Message(role="assistant", content=text) for text in texts),
            metadata={"degenerate": [degenerate(one) for one, _ in sides]},
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
