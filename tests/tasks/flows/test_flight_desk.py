"""The airline desk: what holds of every role, and the rules of its business, worked out by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.workflows.scenario import Action, Profile
from agenteval.evaluators.workflows.scripted.plan import Plan
from agenteval.evaluators.workflows.scripted.walker import Book, Do, lead
from agenteval.evaluators.workflows.simulators.nouns import Heard
from agenteval.evaluators.workflows.simulators.user_scripted import ScriptedUser
from agenteval.records import Message
from tests.tasks.flows.checks import ALL, Check, load
from tests.tasks.flows.flow import carry_out

# Whole phrases that stand for a value in the sessions.
SAID = {"0": ("no bags", "zero bags"), "illness": ("pneumonia",)}
FLOW = load(Path(__file__).parents[3] / "tasks" / "flows" / "flight_desk", SAID)


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_role(check: Check) -> None:
    assert check(FLOW) == []


@pytest.mark.parametrize("profile", [p for _, p in FLOW.profiles()], ids=lambda p: p.id)
def test_who_walks_the_charts_with_this_user_makes_the_gold_calls(profile: Profile) -> None:
    """The walker knows the charts and what the user tells, and no gold."""
    desk, user, made = FLOW.backend(), ScriptedUser(), []
    said = [Message(role="user", content=profile.opening)]
    walk = lead(Book.of(FLOW.role, profile.scenarios), Plan())
    step = next(walk)
    for _ in range(100):
        if isinstance(step, Do):
            made.append(Action(tool=step.tool, arguments=step.arguments))
            answer = json.dumps(carry_out(desk, step.tool, step.arguments))
        else:
            said.append(Message(role="assistant", content=step.text))
            heard = user.say(Heard(profile, FLOW.role.now, tuple(said)))
            if heard.done:
                break
            said.append(Message(role="user", content=heard.text))
            answer = heard.text
        step = walk.send(answer)
    assert tuple(made) == profile.actions


@pytest.fixture
def desk() -> Any:
    return FLOW.backend()


def seats(desk: Any, flight: str, day: str, fare_class: str) -> int:
    return int(desk.state["seats"][f"{flight}/{day}"][fare_class])


def test_agents_say_the_sums_that_were_returned() -> None:
    """Every amount of euros in a reply stands in a result before it, as does every reference."""
    for where, session, _ in FLOW.sessions():
        known = {"35"}  # the price of a bag
        for turn in session.turns:
            if turn.kind == "call":
                known |= set(re.findall(r"\w+", str(turn.result)))
            elif turn.kind == "user":
                known |= set(re.findall(r"\w+", turn.text.upper()))
            else:
                told = re.findall(
                    r"\b(\d+) euros|\b(?:reference|flight) ([A-Z0-9]{6})\b", turn.text
                )
                assert {a or b for a, b in told} <= known, (where, turn.text)


# TRN101: 80 light, classic 40 dearer, flex 90 dearer; 0, 1, 2 bags included, 35 for each other.
@pytest.mark.parametrize(
    ("fare_class", "bags", "total"),
    [
        ("light", 0, 80),
        ("light", 3, 185),
        ("classic", 1, 120),
        ("classic", 3, 190),
        ("flex", 2, 170),
        ("flex", 3, 205),
    ],
)
def test_fares(desk: Any, fare_class: str, bags: int, total: int) -> None:
    assert desk.quote_fare("TRN101", "Monday", fare_class, bags)["total"] == total


def test_flights_are_listed_by_time_and_name_the_days(desk: Any) -> None:
    found = desk.search_flights("Bergen", "Aberdeen", "Wednesday")
    assert [f["flight_no"] for f in found["flights"]] == ["TRN101", "TRN103"]
    assert found["days"] == ["Monday", "Wednesday", "Thursday", "Friday", "Sunday"]
    assert desk.search_flights("Lerwick", "Bergen", "Monday") == {
        "count": 0,
        "flights": [],
        "days": [],
    }


def test_a_hold_takes_a_seat_and_a_paid_ticket_the_hold(desk: Any) -> None:
    assert desk.hold_seat("TRN305", "Thursday", "classic", 1, "Ada Berg")["held"]
    assert seats(desk, "TRN305", "Thursday", "classic") == 3
    ticket = desk.issue_ticket("TRN305", "Thursday", "Ada Berg", "4417")
    assert ticket["paid"] == 100
    assert desk.state["cards"]["4417"] == 800
    assert desk.state["holds"] == {}
    assert seats(desk, "TRN305", "Thursday", "classic") == 3
    assert desk.find_booking(ticket["reference"], "berg")["status"] == "open"


def test_nobody_has_two_seats_on_a_flight(desk: Any) -> None:
    assert desk.hold_seat("TRN101", "Friday", "flex", 0, "signe halvorsen")["held"] is False
    assert desk.hold_seat("TRN101", "Monday", "flex", 0, "Signe Halvorsen")["held"] is True
    assert desk.hold_seat("TRN101", "Monday", "flex", 0, "SIGNE Halvorsen")["held"] is False
    assert seats(desk, "TRN101", "Friday", "flex") == 2
    assert seats(desk, "TRN101", "Monday", "flex") == 1


def test_a_card_without_credit_leaves_the_hold(desk: Any) -> None:
    desk.hold_seat("TRN103", "Monday", "light", 0, "Ada Berg")  # 95 euros
    assert desk.issue_ticket("TRN103", "Monday", "Ada Berg", "4471") == {  # credit 90
        "issued": False,
        "reference": "",
        "paid": 0,
    }
    assert desk.state["cards"]["4471"] == 90
    assert desk.issue_ticket("TRN103", "Monday", "Ada Berg", "5526")["issued"] is True


# H4K9TR is TRN101 classic, 120 euros; K6RTF3 TRN305 classic, 100; D4SJQ9 flex; Q7XWB2 light.
@pytest.mark.parametrize(
    ("reference", "flight", "day", "offer", "fee", "difference"),
    [
        ("H4K9TR", "TRN101", "Wednesday", "possible", 45, 0),
        ("H4K9TR", "TRN103", "Monday", "possible", 45, 15),
        ("H4K9TR", "TRN103", "Thursday", "full", 0, 0),
        ("H4K9TR", "TRN103", "Tuesday", "full", 0, 0),
        ("K6RTF3", "TRN307", "Monday", "possible", 45, 10),
        ("D4SJQ9", "TRN412", "Wednesday", "possible", 0, 0),
        ("Q7XWB2", "TRN101", "Friday", "fixed", 0, 0),
    ],
)
def test_offers_to_move(
    desk: Any, reference: str, flight: str, day: str, offer: str, fee: int, difference: int
) -> None:
    assert desk.quote_move(reference, flight, day) == {
        "offer": offer,
        "fee": fee,
        "difference": difference,
        "total": fee + difference,
    }


def test_a_move_frees_the_old_seat_and_adds_up_what_is_due(desk: Any) -> None:
    desk.add_bags("H4K9TR", 2)
    moved = desk.move_booking("H4K9TR", "TRN103", "Monday")
    assert moved == {"flight_no": "TRN103", "day": "Monday", "departs": "17:45", "due": 130}
    assert seats(desk, "TRN101", "Friday", "classic") == 5
    assert seats(desk, "TRN103", "Monday", "classic") == 3
    # TRN101 is the cheaper one: the difference is never paid out.
    assert desk.quote_move("H4K9TR", "TRN101", "Friday")["difference"] == 0


def test_three_bags_at_most(desk: Any) -> None:
    assert desk.add_bags("T2NPK6", 3) == {"added": False, "bags": 1, "due": 0}
    assert desk.add_bags("T2NPK6", 2) == {"added": True, "bags": 3, "due": 70}
    assert desk.add_bags("T2NPK6", 1) == {"added": False, "bags": 3, "due": 70}


# Paid: V7BKN2 155 flex, Thursday; T2NPK6 90 classic, Saturday; K6RTF3 100 classic, Tuesday 09:00;
# W5HDM7 70 light, delayed by 260 minutes; B8LGX4 215 light, delayed by 45; H4K9TR 120 classic.
@pytest.mark.parametrize(
    ("reference", "reason", "amount", "voucher"),
    [
        ("V7BKN2", "plans", 155, 186),
        ("V7BKN2", "illness", 124, 148),
        ("V7BKN2", "delay", 0, 0),
        ("T2NPK6", "plans", 45, 54),
        ("K6RTF3", "plans", 0, 0),
        ("K6RTF3", "illness", 80, 96),
        ("W5HDM7", "plans", 0, 0),
        ("W5HDM7", "delay", 70, 84),
        ("B8LGX4", "delay", 0, 0),
        ("B8LGX4", "illness", 86, 103),
        ("H4K9TR", "plans", 60, 72),
    ],
)
def test_refunds(desk: Any, reference: str, reason: str, amount: int, voucher: int) -> None:
    found = desk.assess_refund(reference, reason)
    assert (found["amount"], found["voucher"]) == (amount, voucher)
    if amount == 0:
        with pytest.raises(ValueError, match="nothing is paid back"):
            desk.pay_refund(reference, reason)
        with pytest.raises(ValueError, match="nothing is paid back"):
            desk.issue_voucher(reference, reason, "a@b.example")


# It is Sunday 09:00: Monday 09:00 is 24 hours away and Wednesday 09:00 is 72.
@pytest.mark.parametrize(
    ("fare_class", "flight", "day", "percent"),
    [
        ("flex", "TRN305", "Monday", 100),
        ("flex", "TRN101", "Monday", 50),
        ("classic", "TRN305", "Wednesday", 50),
        ("classic", "TRN101", "Wednesday", 0),
    ],
)
def test_time_limits_of_refunds(
    desk: Any, fare_class: str, flight: str, day: str, percent: int
) -> None:
    desk.state["bookings"]["K6RTF3"] |= {
        "fare_class": fare_class,
        "flight_no": flight,
        "day": day,
        "paid": 100,
    }
    assert desk.assess_refund("K6RTF3", "plans")["amount"] == percent


def test_a_refund_frees_the_seat_and_closes_the_ticket(desk: Any) -> None:
    desk.pay_refund("V7BKN2", "plans")
    assert desk.state["cards"]["6638"] == 855
    assert seats(desk, "TRN306", "Thursday", "flex") == 3
    assert desk.find_booking("V7BKN2", "Karimi")["status"] == "closed"
    for tool, arguments in [
        ("pay_refund", ("V7BKN2", "plans")),
        ("quote_move", ("V7BKN2", "TRN306", "Monday")),
        ("add_bags", ("V7BKN2", 1)),
    ]:
        with pytest.raises(ValueError, match="closed"):
            getattr(desk, tool)(*arguments)


def test_a_booking_is_found_by_both_reference_and_surname(desk: Any) -> None:
    assert desk.find_booking("H4K9TR", "halvorsen")["status"] == "open"
    assert desk.find_booking("H4K9TR", "Signe")["status"] == "none"
    assert desk.find_booking("H4K9TR", "Reyes")["passenger"] == ""
    assert desk.find_booking("R9CVJ5", "Okafor")["status"] == "closed"


REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("the same", lambda d: d.search_flights("Bergen", "Bergen", "Monday")),
    ("no flight TRN101 on Tuesday", lambda d: d.quote_fare("TRN101", "Tuesday", "light", 0)),
    ("0 to 3 bags", lambda d: d.quote_fare("TRN101", "Monday", "light", 4)),
    ("sold out", lambda d: d.hold_seat("TRN101", "Wednesday", "light", 0, "Ada Berg")),
    ("no seat is held", lambda d: d.issue_ticket("TRN101", "Monday", "Ada Berg", "4417")),
    ("route", lambda d: d.quote_move("H4K9TR", "TRN305", "Monday")),
    ("already booked", lambda d: d.quote_move("H4K9TR", "TRN101", "Friday")),
    ("cannot be moved", lambda d: d.move_booking("Q7XWB2", "TRN103", "Thursday")),
    ("cannot be moved", lambda d: d.move_booking("H4K9TR", "TRN103", "Thursday")),
    ("no booking", lambda d: d.add_bags("AAAAAA", 1)),
    ("at least one", lambda d: d.add_bags("H4K9TR", 0)),
    ("closed", lambda d: d.assess_refund("R9CVJ5", "illness")),
    ("no reason", lambda d: d.assess_refund("H4K9TR", "weather")),
]


@pytest.mark.parametrize(("why", "call"), REFUSED, ids=[f"{i}" for i in range(len(REFUSED))])
def test_refused_with_a_sentence(desk: Any, why: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=why):
        call(desk)
    assert desk.state == FLOW.backend().state


def test_unknown_card_and_second_booking_of_a_returned_ticket_are_refused(desk: Any) -> None:
    desk.hold_seat("TRN305", "Friday", "flex", 0, "Ada Berg")
    with pytest.raises(ValueError, match="no card ending in 0000"):
        desk.issue_ticket("TRN305", "Friday", "Ada Berg", "0000")
    reference = desk.issue_ticket("TRN305", "Friday", "Ada Berg", "5526")["reference"]
    desk.pay_refund(reference, "plans")
    desk.hold_seat("TRN305", "Friday", "flex", 0, "Ada Berg")
    with pytest.raises(ValueError, match=reference):
        desk.issue_ticket("TRN305", "Friday", "Ada Berg", "5526")


def test_the_order_of_calls_changes_no_state() -> None:
    steps: list[Callable[[Any], Any]] = [
        lambda d: d.hold_seat("TRN101", "Wednesday", "classic", 1, "Ada Berg"),
        lambda d: d.hold_seat("TRN101", "Wednesday", "classic", 1, "Bo Dahl"),
        lambda d: d.move_booking("D4SJQ9", "TRN412", "Sunday"),
        lambda d: d.add_bags("T2NPK6", 1),
        lambda d: d.issue_voucher("W5HDM7", "delay", "a@b.example"),
    ]
    ends = []
    for order in permutations(steps):
        desk: Any = FLOW.backend()
        for step in order:
            step(desk)
        ends.append(desk.state)
    assert all(end == ends[0] for end in ends)


_FLIGHT = st.sampled_from(["TRN101", "TRN103", "TRN305", "TRN412", "TRN520"])
_DAY = st.sampled_from(["Monday", "Wednesday", "Thursday", "Friday", "Sunday"])
_REF = st.sampled_from(["H4K9TR", "K6RTF3", "D4SJQ9", "Q7XWB2", "R9CVJ5", "W5HDM7"])
_NAME = st.sampled_from(["Ada Berg", "Bo Dahl", "Signe Halvorsen"])
_CLASS, _BAGS = st.sampled_from(["light", "classic", "flex"]), st.integers(0, 4)
_REASON, _CARD = st.sampled_from(["plans", "illness", "delay"]), st.sampled_from(["4417", "2086"])
_CALLS = st.one_of(
    st.tuples(st.just("hold_seat"), st.tuples(_FLIGHT, _DAY, _CLASS, _BAGS, _NAME)),
    st.tuples(st.just("issue_ticket"), st.tuples(_FLIGHT, _DAY, _NAME, _CARD)),
    st.tuples(st.just("move_booking"), st.tuples(_REF, _FLIGHT, _DAY)),
    st.tuples(st.just("add_bags"), st.tuples(_REF, _BAGS)),
    st.tuples(st.just("pay_refund"), st.tuples(_REF, _REASON)),
    st.tuples(st.just("issue_voucher"), st.tuples(_REF, _REASON, st.just("a@b.example"))),
)


def _taken(desk: Any) -> dict[str, int]:
    """Seats left, held and booked, together, by flight, day and class."""
    count = {
        f"{k}/{c}": n for k, by_class in desk.state["seats"].items() for c, n in by_class.items()
    }
    for key, hold in desk.state["holds"].items():
        count[f"{key.rsplit('/', 1)[0]}/{hold['fare_class']}"] += 1
    for b in desk.state["bookings"].values():
        if b["status"] != "cancelled":
            count[f"{b['flight_no']}/{b['day']}/{b['fare_class']}"] += 1
    return count


@given(st.lists(_CALLS, max_size=12))
def test_no_seat_and_no_euro_is_lost(calls: list[tuple[str, tuple[Any, ...]]]) -> None:
    desk: Any = FLOW.backend()
    seats_before, old = _taken(desk), set(desk.state["bookings"])
    money = sum(desk.state["cards"].values())
    for name, arguments in calls:
        try:
            getattr(desk, name)(*arguments)
        except ValueError:
            continue
    state = desk.state
    assert _taken(desk) == seats_before
    assert min(n for by_class in state["seats"].values() for n in by_class.values()) >= 0
    charged = sum(b["paid"] for ref, b in state["bookings"].items() if ref not in old)
    assert sum(state["cards"].values()) == money - charged + sum(state["refunds"].values())
    assert min(state["cards"].values()) >= 0
