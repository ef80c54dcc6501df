"""The limit follows the endpoint: bursts, strays, trials by hand; whole runs in virtual time."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.models.ceiling import LONG_ENOUGH, SELDOM, SOON, TOLERATED, TRIAL, Ceiling, Slot
from tests.models.simulated import Load, Narrow, constant, lognormal, simulate
from tests.thorough import PROFILE, often


class Served:
    """A ceiling and who is in flight, oldest first; the clock stands still."""

    def __init__(self, maximum: int, start: int | None = None) -> None:
        self.now = 0.0
        self.of = Ceiling(maximum, start or maximum, clock=lambda: self.now)
        self.inside: list[Slot] = []
        self.fill()

    def fill(self) -> None:
        while len(self.inside) < int(self.of.limit):
            self.inside.append(self.of.admitted(len(self.inside) + 1))

    def answer(self, times: int = 1) -> None:
        for _ in range(times):
            self.of.answered(self.inside.pop(0))
            self.fill()

    def refuse(self, which: int = -1) -> None:
        slot = self.inside.pop(which)
        self.of.refused(slot, len(self.inside))
        self.fill()


@pytest.mark.parametrize(("maximum", "start"), [(0, 1), (3, 0)])
def test_a_limit_below_one_is_refused(maximum: int, start: int) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Ceiling(maximum, start)


@pytest.mark.parametrize("chance", range(5))
def test_a_burst_ends_at_what_was_accepted_in_whatever_order_it_is_told(chance: int) -> None:
    served, order = Served(64), random.Random(chance)
    for _ in range(59):  # of 64 sent at once, 5 are accepted
        served.refuse(order.randrange(len(served.inside)))
    assert served.of.limit == served.of.level == 5.0
    assert len(served.inside) == 5  # nobody was let in meanwhile


def test_a_stray_429_costs_one_slot_for_a_round() -> None:
    served = Served(10)
    served.answer(20)
    served.refuse()
    assert (served.of.limit, served.of.level) == (9.0, 10.0)
    served.answer(10)
    assert served.of.limit == 10.0


def test_one_429_in_a_hundred_never_lowers_the_level() -> None:
    served = Served(20)
    for _ in range(100):
        served.answer(99)
        served.refuse()
        assert served.of.level == 20.0
        assert served.of.limit >= 19.0


def test_too_many_429s_among_the_answers_are_a_message() -> None:
    served = Served(20)
    for _ in range(40):  # one of 17 attempts: four times the noise
        served.answer(16)
        served.refuse()
    assert served.of.level < 20.0


def test_a_fallen_ceiling_costs_few_429s() -> None:
    """100 in flight, and from now on the endpoint takes 30: what is let in above is refused."""
    served, refused = Served(100), 0
    for _ in range(400):
        if len(served.inside) > 30:
            # the newest was let in while more than 30 were served, or an older one ends
            if served.inside[-1].serial > 100:
                served.refuse()
                refused += 1
            else:
                served.answer()
    # the noise, and then log(93/30)/log(1/.85) falls, each found out by one 429
    assert refused <= TOLERATED + 2 + 8
    assert 24 <= served.of.level <= 30


def test_growth_from_one_doubles_and_ends_at_the_maximum() -> None:
    served = Served(100, start=1)
    seen = []
    for _ in range(3000):
        served.answer()
        seen.append(served.of.level)
    assert served.of.limit == 100.0
    assert seen == sorted(seen)
    # a round is at most as many answers as there are slots; a trial needs two of them at most,
    # and levels 1, 2, 4, 8 … reach 100 after seven; without doubling it took 99 trials
    assert seen.index(100.0) < 2 * sum(2 * 2**k for k in range(8))


def test_trials_become_rare_and_cost_one_429_each() -> None:
    served, since = Served(40), 0
    gaps: list[int] = []
    for _ in range(30):  # the endpoint takes 10
        served.refuse()
    while len(gaps) < 6:
        served.answer()
        since += 1
        if len(served.inside) > 10:
            served.refuse()
            gaps.append(since)
            since = 0
            assert served.of.limit == 10.0
    assert gaps[:4] == [SOON, 4 * SOON, 16 * SOON, SELDOM]
    assert gaps[4:] == [SELDOM] * 2


def test_after_a_while_a_trial_is_due_even_so() -> None:
    served = Served(40)
    for _ in range(30):
        served.refuse()
    answers, seconds = LONG_ENOUGH
    for gap in (SOON, 4 * SOON):
        served.answer(gap)
        served.refuse()
    served.now += seconds
    served.answer(answers - 1)
    assert served.of.limit == 10.0
    served.answer()
    assert served.of.limit == 11.0


def test_a_raised_ceiling_is_found() -> None:
    served = Served(40)
    for _ in range(30):
        served.refuse()
    served.answer(SOON + 10 + TRIAL)
    assert served.of.level > 10.0
    served.answer(2000)
    assert served.of.limit == 40.0


def test_without_enough_to_do_the_limit_stays() -> None:
    ceiling = Ceiling(100, 10)
    for _ in range(5000):  # never more than 3 in flight
        ceiling.answered(ceiling.admitted(3))
    assert ceiling.level == 10.0
    assert ceiling.limit <= 11.0 + 10.0  # a trial may be open, and proves nothing


STEPS = st.lists(st.tuples(st.booleans(), st.integers(0, 10**6)), max_size=200)


@settings(max_examples=often(60, 400), deadline=None)
@given(maximum=st.integers(1, 30), start=st.integers(1, 30), steps=STEPS)
def test_whatever_comes_the_limit_stays_within_bounds(
    maximum: int, start: int, steps: list[tuple[bool, int]]
) -> None:
    served = Served(maximum, min(start, maximum))
    for good, which in steps:
        if not served.inside:
            served.fill()
        slot = served.inside.pop(which % len(served.inside))
        before = served.of.limit
        if good:
            served.of.answered(slot)
            assert served.of.limit >= before or served.of.limit == served.of.level
        else:
            served.of.refused(slot, len(served.inside))
            assert served.of.limit <= before
        assert 1.0 <= served.of.limit <= maximum
        assert 1.0 <= served.of.level <= maximum
        served.fill()


# ---- Whole runs: the real Client and Limiter in virtual time -------------------------------------

LAWS: dict[str, Callable[[float], Callable[[random.Random], float]]] = {
    "constant": constant, "lognormal": lognormal,
}  # fmt: skip
USUAL = [
    (5, 1.0, "constant", None), (20, 1.0, "lognormal", 1), (50, 0.1, "lognormal", None),
    (200, 1.0, "lognormal", None),
]  # fmt: skip
GRID = [
    (n, latency, law, start)
    for n in (5, 8, 20, 50, 100, 200)
    for latency in (0.02, 0.1, 1.0)
    for law in LAWS
    for start in (None, n // 4)
]


CASES = GRID if settings.get_current_profile_name() == PROFILE else USUAL


@pytest.mark.parametrize(("ceiling", "latency", "law", "start"), CASES)
def test_the_ceiling_is_used_and_429s_are_few(
    ceiling: int, latency: float, law: str, start: int | None
) -> None:
    """At least 80 % of the ceiling, at most 2 % of 429s, after 10 s or 2,000 requests."""
    endpoint = Narrow(lambda _: ceiling, LAWS[law](latency))
    warm, measured = (10.0, often(2000, 6000)), (60.0, often(1000, 3000))
    load = Load(512 if start is None and ceiling > 50 else 4 * ceiling, start, warm, measured)
    found = simulate(endpoint, load)
    assert found.use >= 0.8, found
    assert found.refused <= 0.02, found
    assert found.lost == 0


@pytest.mark.parametrize(("before", "after"), [(20, 50), (100, 30)])
def test_a_ceiling_that_changes_is_followed(before: int, after: int) -> None:
    """It changes at 15 s; measured from 10 s later on."""
    endpoint = Narrow(lambda now: before if now < 15 else after, lognormal(0.6))
    found = simulate(endpoint, Load(128, warm=(25.0, 10**9), measured=(20.0, 1000)))
    assert found.use >= 0.8, found
    assert found.refused <= 0.02, found


def test_one_percent_of_stray_429s_does_not_slow_it_down() -> None:
    endpoint = Narrow(lambda _: 20, lognormal(0.1), stray=0.01)
    found = simulate(endpoint, Load(64, warm=(10.0, 1500), measured=(60.0, 1500)))
    assert found.use >= 0.8, found
    assert found.refused <= 0.02, found
