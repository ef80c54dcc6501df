"""The role ``tasks/flows/moving_service``: what holds of every role, and its rules, worked out
by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tasks.flows.checks import ByHand, Told, load, role_test

pytestmark = pytest.mark.xdist_group("moving_service")  # so that one worker reads the role

REFUSED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("no day 2031-06-31", "check_day", ("small", "2031-06-31")),
    ("next 60 days", "check_day", ("small", "2031-06-10")),  # today
    ("next 60 days", "check_day", ("small", "2031-08-10")),
    ("outside", "book_van", ("Carrow", "Zellmark", 10, "2031-06-17", "basic", "0711111111")),
    ("survey", "book_van", ("Carrow", "Dunmill", 33, "2031-06-17", "basic", "0711111111")),
    ("no small van", "book_van", ("Carrow", "Dunmill", 10, "2031-06-15", "basic", "0711111111")),
    ("next 60 days", "book_van", ("Carrow", "Dunmill", 10, "2031-06-01", "basic", "0711111111")),
    ("no move", "pay_deposit", ("OX-AAAAAA", "2204")),
    ("Sundays", "book_survey", ("Carrow", "2031-06-15", "0711111111")),
]
STEPS: list[tuple[str, tuple[Any, ...]]] = [
    ("book_van", ("Carrow", "Dunmill", 10, "2031-06-17", "basic", "0711111111")),
    ("book_van", ("Carrow", "Dunmill", 20, "2031-06-18", "basic", "0711111111")),
    ("book_van", ("Farlow", "Carrow", 4, "2031-06-17", "full", "0722222222")),
    ("book_survey", ("Estwick", "2031-06-13", "0733333333")),
]
_TOWNS = ["Carrow", "Dunmill", "aldmouth", "Haverby", "Nowhere at all"]
VALUES: dict[str, list[Any]] = {
    "origin": _TOWNS,
    "destination": _TOWNS,
    "volume": [1, 5, 10, 12, 13, 20, 32, 33, 40],
    "day": ["2031-06-14", "2031-06-15", "2031-06-16"],
    "phone": ["0711111111", "0722222222"],
    "card": ["2204", "6371"],
    # What `book_van` gives these two, who move 20 cubic metres from Carrow to Dunmill.
    "reference": ["OX-LFVDRM", "OX-HEIDH7"],
}


def keeps(before: Any, after: Any) -> None:
    """No van and no euro is lost."""
    moves = after["moves"].values()
    paid = sum(m["deposit"] for m in moves if m["status"] == "confirmed")
    assert sum(after["cards"].values()) == sum(before["cards"].values()) - paid
    assert min(after["cards"].values()) >= 0
    assert sum(after["taken"].values()) == sum(before["taken"].values()) + len(moves)
    fleet = {"small": 3, "large": 2}
    assert all(n <= fleet[key.split("/")[0]] for key, n in after["taken"].items())


FLOW = load(
    "moving_service",
    ByHand(
        # Full insurance of a small van and of a large one.
        told=Told(r"\b(\d+) euros|\b(OX-\w+)", frozenset({"45", "80"})),
        refused=REFUSED,
        steps=STEPS,
        values=VALUES,
        keeps=keeps,
        from_results=frozenset({"van", "reference"}),
        # One van will do, and the surveyor is sent.
    ),
)
test_role = role_test(FLOW)


@pytest.fixture
def firm() -> Any:
    return FLOW.backend()


# Small vans carry 12 cubic metres: 160 and 1 for each km; large ones 32: 290 and 2 for each km.
@pytest.mark.parametrize(
    ("origin", "destination", "volume", "offer", "van", "price"),
    [
        ("Carrow", "Carrow", 1, "van", "small", 160),
        ("Carrow", "Dunmill", 12, "van", "small", 200),
        ("dunmill", "CARROW", 12, "van", "small", 200),
        ("Carrow", "Dunmill", 13, "van", "large", 370),
        ("Brenford", "Farlow", 32, "van", "large", 740),
        ("Brenford", "Farlow", 33, "survey", "", 0),
        ("Dunmill", "Haverby", 5, "van", "small", 450),  # 290 km
        ("Carrow", "Haverby", 5, "outside", "", 0),  # 330 km
        ("Carrow", "Haverby", 200, "outside", "", 0),
        ("Carrow", "Zellmark", 5, "outside", "", 0),
    ],
)
def test_quotes(
    firm: Any, origin: str, destination: str, volume: int, offer: str, van: str, price: int
) -> None:
    quote = firm.quote_move(origin, destination, volume)
    assert quote == {"offer": offer, "van": van, "price": price}


# 2031-06-14 is a Saturday. Of 3 small and 2 large vans some are taken.
@pytest.mark.parametrize(
    ("van", "day", "left", "surcharge", "next_day"),
    [
        ("small", "2031-06-13", 3, 0, "2031-06-16"),  # the 14th is full, the 15th a Sunday
        ("small", "2031-06-14", 0, 20, "2031-06-16"),
        ("large", "2031-06-14", 1, 20, "2031-06-16"),
        ("small", "2031-06-15", 0, 0, "2031-06-16"),
        ("small", "2031-06-16", 1, 0, "2031-06-17"),
        ("large", "2031-06-20", 0, 0, "2031-06-23"),
        ("small", "2031-08-09", 3, 20, ""),  # the last day that can be booked
    ],
)
def test_days(firm: Any, van: str, day: str, left: int, surcharge: int, next_day: str) -> None:
    checked = firm.check_day(van, day)
    assert checked == {"vans_left": left, "surcharge": surcharge, "next_day": next_day}


# Carrow to Dunmill: 200 small, 370 large. Saturday adds a fifth, full insurance 45 or 80.
@pytest.mark.parametrize(
    ("volume", "day", "insurance", "total", "deposit"),
    [
        (10, "2031-06-17", "basic", 200, 50),
        (10, "2031-06-17", "full", 245, 61),
        (10, "2031-06-21", "full", 285, 71),
        (20, "2031-06-17", "full", 450, 112),
        (20, "2031-07-05", "basic", 444, 111),
    ],
)
def test_totals(firm: Any, volume: int, day: str, insurance: str, total: int, deposit: int) -> None:
    booked = firm.book_van("Carrow", "Dunmill", volume, day, insurance, "0711111111")
    assert (booked["total"], booked["deposit"]) == (total, deposit)


def test_the_last_van_of_a_day(firm: Any) -> None:
    firm.book_van("Carrow", "Dunmill", 10, "2031-06-16", "basic", "0711111111")
    assert firm.check_day("small", "2031-06-16")["vans_left"] == 0
    with pytest.raises(ValueError, match="no small van is left"):
        firm.book_van("Carrow", "Dunmill", 10, "2031-06-16", "basic", "0722222222")
    assert firm.check_day("large", "2031-06-16")["vans_left"] == 2


def test_a_card_pays_a_deposit_once_and_only_with_credit(firm: Any) -> None:
    booked = firm.book_van("Carrow", "Dunmill", 10, "2031-06-17", "full", "0711111111")
    reference = booked["reference"]  # total 245, deposit 61
    for card in ("6371", "0000"):  # 50 euros of credit; unknown
        assert firm.pay_deposit(reference, card) == {"paid": False, "rest": 245}
    assert firm.state["moves"][reference]["status"] == "held"
    assert firm.pay_deposit(reference, "1188") == {"paid": True, "rest": 184}
    assert firm.state["cards"]["1188"] == 339
    with pytest.raises(ValueError, match="is paid"):
        firm.pay_deposit(reference, "2204")


# 2031-06-11 is a Wednesday. Mondays, Wednesdays and Fridays in the morning.
@pytest.mark.parametrize(
    ("day", "window"),
    [
        ("2031-06-11", "09:00-12:00"),
        ("2031-06-12", "13:00-17:00"),
        ("2031-06-13", "09:00-12:00"),
        ("2031-06-14", "13:00-17:00"),
    ],
)
def test_visits(firm: Any, day: str, window: str) -> None:
    assert firm.book_survey("Estwick", day, "0711111111")["window"] == window
    with pytest.raises(ValueError, match="already"):
        firm.book_survey("Estwick", day, "0711111111")


def _book(firm: Any, destination: str, volume: int, day: str) -> Any:
    return firm.book_van("Carrow", destination, volume, day, "basic", "0711111111")


def test_one_move_of_a_phone_on_a_day(firm: Any) -> None:
    _book(firm, "Dunmill", 10, "2031-06-17")
    with pytest.raises(ValueError, match="has booked a move"):
        _book(firm, "Estwick", 5, "2031-06-17")
    assert _book(firm, "Estwick", 5, "2031-06-18")["total"] == 270
