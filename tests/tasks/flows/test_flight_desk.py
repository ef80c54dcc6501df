"""The role ``tasks/flows/flight_desk``: what holds of every role, and its rules, worked out
by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tasks.flows.checks import ByHand, Told, load

pytestmark = pytest.mark.xdist_group("flight_desk")  # so that one worker reads the role

# Whole phrases that stand for a value in the sessions.
SAID = {"0": ("no bags", "zero bags"), "illness": ("pneumonia",)}
REFUSED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("the same", "search_flights", ("Bergen", "Bergen", "Monday")),
    ("no flight TRN101 on Tuesday", "quote_fare", ("TRN101", "Tuesday", "light", 0)),
    ("0 to 3 bags", "quote_fare", ("TRN101", "Monday", "light", 4)),
    ("sold out", "hold_seat", ("TRN101", "Wednesday", "light", 0, "Ada Berg")),
    ("no seat is held", "issue_ticket", ("TRN101", "Monday", "Ada Berg", "4417")),
    ("route", "quote_move", ("H4K9TR", "TRN305", "Monday")),
    ("already booked", "quote_move", ("H4K9TR", "TRN101", "Friday")),
    ("cannot be moved", "move_booking", ("Q7XWB2", "TRN103", "Thursday")),
    ("cannot be moved", "move_booking", ("H4K9TR", "TRN103", "Thursday")),
    ("no booking", "add_bags", ("AAAAAA", 1)),
    ("at least one", "add_bags", ("H4K9TR", 0)),
    ("closed", "assess_refund", ("R9CVJ5", "illness")),
    ("no reason", "assess_refund", ("H4K9TR", "weather")),
]
STEPS: list[tuple[str, tuple[Any, ...]]] = [
    ("hold_seat", ("TRN101", "Wednesday", "classic", 1, "Ada Berg")),
    ("hold_seat", ("TRN101", "Wednesday", "classic", 1, "Bo Dahl")),
    ("move_booking", ("D4SJQ9", "TRN412", "Sunday")),
    ("add_bags", ("T2NPK6", 1)),
    ("issue_voucher", ("W5HDM7", "delay", "a@b.example")),
]
_FLIGHTS = ["TRN101", "TRN103", "TRN305", "TRN412", "TRN520"]
_DAYS = ["Monday", "Wednesday", "Thursday", "Friday", "Sunday"]
VALUES: dict[str, list[Any]] = {
    "flight_no": _FLIGHTS,
    "new_flight_no": _FLIGHTS,
    "day": _DAYS,
    "new_day": _DAYS,
    "reference": ["H4K9TR", "K6RTF3", "D4SJQ9", "Q7XWB2", "R9CVJ5", "W5HDM7"],
    "passenger": ["Ada Berg", "Bo Dahl", "Signe Halvorsen"],
    "surname": ["Berg", "Halvorsen", "Reyes"],
    "bags": [0, 1, 2, 3],
    "extra_bags": [1, 2, 3],
    "card": ["4417", "2086"],
    "email": ["a@b.example"],
}


def _taken(state: Any) -> dict[str, int]:
    """Seats left, held and booked, together, by flight, day and class."""
    count = {f"{k}/{c}": n for k, by_class in state["seats"].items() for c, n in by_class.items()}
    for key, hold in state["holds"].items():
        count[f"{key.rsplit('/', 1)[0]}/{hold['fare_class']}"] += 1
    for b in state["bookings"].values():
        if b["status"] != "cancelled":
            count[f"{b['flight_no']}/{b['day']}/{b['fare_class']}"] += 1
    return count


def keeps(before: Any, after: Any) -> None:
    """No seat and no euro is lost."""
    assert _taken(after) == _taken(before)
    assert min(n for by_class in after["seats"].values() for n in by_class.values()) >= 0
    new = [b for reference, b in after["bookings"].items() if reference not in before["bookings"]]
    money = sum(before["cards"].values()) - sum(b["paid"] for b in new)
    assert sum(after["cards"].values()) == money + sum(after["refunds"].values())
    assert min(after["cards"].values()) >= 0


FLOW = load(
    "flight_desk",
    ByHand(
        # 35 is the price of a bag.
        told=Told(r"\b(\d+) euros|\b(?:reference|flight) ([A-Z0-9]{6})\b", known=frozenset({"35"})),
        refused=REFUSED,
        steps=STEPS,
        values=VALUES,
        keeps=keeps,
        aliases=SAID,
        follow=frozenset({"lars"}),  # who has bags added to the ticket that he just bought
    ),
)


@pytest.fixture
def desk() -> Any:
    return FLOW.backend()


def seats(desk: Any, flight: str, day: str, fare_class: str) -> int:
    return int(desk.state["seats"][f"{flight}/{day}"][fare_class])


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


def test_unknown_card_and_second_booking_of_a_returned_ticket_are_refused(desk: Any) -> None:
    desk.hold_seat("TRN305", "Friday", "flex", 0, "Ada Berg")
    with pytest.raises(ValueError, match="no card ending in 0000"):
        desk.issue_ticket("TRN305", "Friday", "Ada Berg", "0000")
    reference = desk.issue_ticket("TRN305", "Friday", "Ada Berg", "5526")["reference"]
    desk.pay_refund(reference, "plans")
    desk.hold_seat("TRN305", "Friday", "flex", 0, "Ada Berg")
    with pytest.raises(ValueError, match=reference):
        desk.issue_ticket("TRN305", "Friday", "Ada Berg", "5526")
