"""Orders and times decided by Z3; the only file of the package that imports it.

The model is that of PDoctor (arXiv 2404.17833, sections 4.2 and 4.4). Without times, action i has
a position from 1 to n, all distinct. With times it has whole hours 0 <= start < end <= 24, no two
actions overlap, end = start + duration where durations are known (else any duration of at least
one hour will do), an order demands end <= start, a time limit end <= hour or start >= hour.

Z3 objects live in one context per thread, so that threads do not disturb each other and names are
stored once, however many cases are decided. An `unknown` from Z3 raises `Undecided`; it is never
read as an answer.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import Any

from agenteval.errors import AgentevalError
from agenteval.evaluators.planning.case import (
    DAY,
    Before,
    Constraint,
    Span,
    Stated,
    TimeLimit,
    actions,
    holds,
)

TIMEOUT = 10.0  # seconds for one question; those of nine actions take milliseconds
_WITNESSES = 4
_local = threading.local()


class Undecided(AgentevalError):
    """Z3 found no answer within its time limit."""

    exit_code = 3


class Smt:
    """A `Solver` on Z3, for orders and time limits.

    The positions of the model without times give way to hours with the first time limit, unless
    durations are given from the start. Solutions found earlier are kept: a question that one of
    them answers is not put to Z3. `calls` counts those that were. ValueError where durations are
    too long for a day.
    """

    def __init__(
        self,
        n: int,
        constraints: Sequence[Constraint] = (),
        durations: Sequence[int] | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self.n = n
        self.calls = 0
        self._durations = _checked(n, durations)
        self._timeout = timeout
        self._added: list[Constraint] = []
        self._witnesses: list[tuple[Span, ...]] = []
        self._build(timed=durations is not None)
        if constraints:
            self.add(constraints)

    def allows(self, constraints: Sequence[Constraint]) -> bool:
        """Would the set stay satisfiable with all of these added? `Undecided` at the timeout."""
        self._known(constraints)
        self._prepare(constraints)
        if any(all(holds(c, w) for c in constraints) for w in self._witnesses):
            return True
        return self._satisfiable([self._model.says(c) for c in constraints])

    def implies(self, constraint: Constraint) -> bool:
        """Does it hold in every solution? `Undecided` at the timeout."""
        self._known([constraint])
        self._prepare([constraint])
        if not all(holds(constraint, witness) for witness in self._witnesses):
            return False
        return not self._satisfiable([_z3().Not(self._model.says(constraint))])

    def add(self, constraints: Sequence[Constraint]) -> None:
        """Add them. ValueError if the set were unsatisfiable; it is then as it was."""
        if not self.allows(constraints):
            raise ValueError(f"{', '.join(map(str, constraints))}: contradicts what was there")
        self._added += constraints
        self._solver.add(*(self._model.says(c) for c in constraints))
        self._witnesses = [w for w in self._witnesses if all(holds(c, w) for c in constraints)]

    def solution(self) -> tuple[Span, ...]:
        """One solution: where each action begins and ends (hours, or positions)."""
        if not self._witnesses and not self._satisfiable([]):
            raise AssertionError("a satisfiable set became unsatisfiable")
        return self._witnesses[-1]

    def _known(self, constraints: Sequence[Constraint]) -> None:
        for constraint in constraints:
            if not all(0 <= i < self.n for i in actions(constraint)):
                raise ValueError(f"{constraint} is not about actions 0 to {self.n - 1}")

    def _prepare(self, constraints: Sequence[Constraint]) -> None:
        if not self._model.timed and any(isinstance(c, TimeLimit) for c in constraints):
            if self.n > DAY:
                raise ValueError(f"{self.n} actions of at least 1 hour do not fit into a day")
            self._build(timed=True)

    def _build(self, *, timed: bool) -> None:
        self._model = _Model(self.n, self._durations, timed=timed)
        self._solver = _solver(self._timeout)
        self._solver.add(*self._model.basics(), *map(self._model.says, self._added))
        self._witnesses = []

    def _satisfiable(self, formulas: Sequence[Any]) -> bool:
        self.calls += 1
        self._solver.push()
        try:
            self._solver.add(*formulas)
            satisfiable = _decided(self._solver)
            if satisfiable:
                found = self._model.spans(self._solver.model())
                self._witnesses = [*self._witnesses[1 - _WITNESSES :], found]
            return satisfiable
        finally:
            self._solver.pop()


def core(
    n: int,
    stated: Sequence[Stated],
    durations: Sequence[int] | None = None,
    timeout: float = TIMEOUT,
) -> tuple[int, ...] | None:
    """Why the constraints contradict each other: a core of them, as indices into `stated`, rising.

    Minimal: without any one of them the rest of the core can be satisfied. Empty when no
    constraint is needed, since the durations alone are too long for a day; None when there is no
    contradiction. `Undecided` at the timeout.
    """
    timed = durations is not None or any(isinstance(s.constraint, TimeLimit) for s in stated)
    try:
        model = _Model(n, _checked(n, durations), timed=timed)
    except ValueError:
        return ()
    solver = _solver(timeout)
    solver.add(*model.basics())
    names = _track(solver, [[model.says(s.constraint)] for s in stated])
    return _minimal(solver, names)


def violated_core(
    stated: Sequence[Stated],
    calls: Sequence[Span | None],
    hours: Sequence[Span | None] | None = None,
    timeout: float = TIMEOUT,
) -> tuple[int, ...]:
    """The numbers of sub-sentences that contradict what the agent did: a minimal unsat core.

    `calls[i]` says from where until where in the sequence action i was called (None: never; what
    speaks of it is left out), `hours` when it took place. Orders are held against the calls, time
    limits against the hours. Since what the agent did is fixed, a minimal core names one sentence
    of possibly many that were violated. Empty if none was, or none that has a number.
    """
    facts = _Model(len(calls), None, timed=True)
    times = _Model(len(calls), None, timed=True, prefix="hour")
    solver = _solver(timeout)
    solver.add(*facts.fixed(calls), *times.fixed(hours or ()))
    says: dict[int, list[Any]] = {}
    for item in stated:
        order = isinstance(item.constraint, Before)
        known = calls if order else hours or [None] * len(calls)
        if all(known[i] is not None for i in actions(item.constraint)):
            for sentence in item.sentences:
                says.setdefault(sentence, []).append(
                    (facts if order else times).says(item.constraint)
                )
    sentences = sorted(says)
    found = _minimal(solver, _track(solver, [says[sentence] for sentence in sentences]))
    return () if found is None else tuple(sentences[i] for i in found)


def schedule(
    n: int, constraints: Sequence[Constraint], durations: Sequence[int], timeout: float = TIMEOUT
) -> tuple[int, ...] | None:
    """Start hours that satisfy everything; None if there are none. `Undecided` at the timeout."""
    try:
        solver = Smt(n, constraints, durations, timeout)
    except ValueError:
        return None
    return tuple(start for start, _ in solver.solution())


class _Model:
    """Z3's variables for n actions; `says` and `basics` are the formulas about them."""

    def __init__(
        self, n: int, durations: tuple[int, ...] | None, *, timed: bool, prefix: str = ""
    ) -> None:
        z3, context = _z3(), _context()
        self.timed = timed
        self.starts = [z3.Int(f"{prefix}start{i}", context) for i in range(n)]
        if durations is not None:
            self.ends = [s + hours for s, hours in zip(self.starts, durations, strict=True)]
        elif timed:
            self.ends = [z3.Int(f"{prefix}end{i}", context) for i in range(n)]
        else:
            self.ends = [start + 1 for start in self.starts]

    def basics(self) -> list[Any]:
        z3, starts, ends = _z3(), self.starts, self.ends
        n = len(starts)
        if not self.timed:
            bounds = [z3.And(start >= 1, start <= n) for start in starts]
            return bounds + ([z3.Distinct(*starts)] if n > 1 else [])
        pairs = [(i, j) for i in range(n) for j in range(i)]
        return [
            *(z3.And(s >= 0, s < e, e <= DAY) for s, e in zip(starts, ends, strict=True)),
            *(z3.Or(ends[i] <= starts[j], ends[j] <= starts[i]) for i, j in pairs),
        ]

    def says(self, constraint: Constraint) -> Any:
        if isinstance(constraint, Before):
            return self.ends[constraint.first] <= self.starts[constraint.second]
        if constraint.side == "before":
            return self.ends[constraint.action] <= constraint.hour
        return self.starts[constraint.action] >= constraint.hour

    def fixed(self, spans: Sequence[Span | None]) -> list[Any]:
        """What is known of where the actions are."""
        formulas = []
        for i, span in enumerate(spans):
            if span is not None:
                formulas += [self.starts[i] == span[0], self.ends[i] == span[1]]
        return formulas

    def spans(self, solution: Any) -> tuple[Span, ...]:
        value = partial(solution.eval, model_completion=True)
        return tuple(
            (value(start).as_long(), value(end).as_long())
            for start, end in zip(self.starts, self.ends, strict=True)
        )


def _track(solver: Any, groups: Sequence[Sequence[Any]]) -> list[Any]:
    """Assert each group under a name of its own; returns the names."""
    z3 = _z3()
    names = [z3.Bool(f"named{i}", _context()) for i in range(len(groups))]
    for name, formulas in zip(names, groups, strict=True):
        solver.add(*(z3.Implies(name, formula) for formula in formulas))
    return names


def _minimal(solver: Any, names: list[Any]) -> tuple[int, ...] | None:
    """Indices of a minimal unsat core of the named groups; None if all can be satisfied.

    Z3's core need not be minimal; its members are tried one by one, the last first, so that of
    several reasons the one stated first remains.
    """
    if _decided(solver, *names):
        return None
    indices = {str(name): i for i, name in enumerate(names)}
    left = sorted(indices[str(name)] for name in solver.unsat_core())
    for index in reversed(tuple(left)):
        fewer = [i for i in left if i != index]
        if not _decided(solver, *(names[i] for i in fewer)):
            left = fewer
    return tuple(left)


def _checked(n: int, durations: Sequence[int] | None) -> tuple[int, ...] | None:
    """The durations; ValueError if they are not n, not positive, or too long for a day."""
    if durations is None:
        return None
    if len(durations) != n or any(hours < 1 for hours in durations):
        raise ValueError(f"needs {n} durations of at least 1 hour, not {list(durations)}")
    if sum(durations) > DAY:
        raise ValueError(f"the actions take {sum(durations)} hours, a day has {DAY}")
    return tuple(durations)


def _solver(timeout: float) -> Any:
    solver = _z3().SimpleSolver(ctx=_context())
    solver.set("timeout", max(1, round(1000 * timeout)))
    return solver


def _decided(solver: Any, *assumptions: Any) -> bool:
    z3 = _z3()
    answer = solver.check(*assumptions)
    if answer == z3.sat:
        return True
    if answer == z3.unsat:
        return False
    raise Undecided(f"Z3 gave no answer: {solver.reason_unknown()}")


def _context() -> Any:
    found = getattr(_local, "context", None)
    if found is None:
        found = _local.context = _z3().Context()
    return found


def _z3() -> Any:
    import z3

    return z3
