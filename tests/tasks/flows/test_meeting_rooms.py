"""The role ``tasks/flows/meeting_rooms``: what holds of every role, and its rules, worked out
by hand."""

from __future__ import annotations

import json
from itertools import combinations
from typing import Any

import pytest

from tests.tasks.flows.checks import ByHand, Told, load, role_test

pytestmark = pytest.mark.xdist_group("meeting_rooms")  # so that one worker reads the role

# What people say instead of the value that a tool takes.
SAID = {
    "none": ("nothing special", "no gadgets"),
    "video": ("joins from home",),  # the agent says what that means
    "1": ("for an hour",),
    "2031-09-16": ("tmrw",),
}
REFUSED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("no day 2031-02-30", "find_rooms", ("2031-02-30", "10:00", 1, 2, "none")),
    ("no working day", "find_rooms", ("2031-09-20", "10:00", 1, 2, "none")),  # Saturday
    ("no working day", "find_rooms", ("2031-09-12", "10:00", 1, 2, "none")),  # past
    ("no working day", "find_rooms", ("2031-10-16", "10:00", 1, 2, "none")),  # 31 days
    ("has passed", "next_free_time", ("2031-09-15", "08:00", 1, 2, "none")),
    ("not between", "find_rooms", ("2031-09-16", "17:00", 2, 2, "none")),
    ("taken", "book_room", ("Glaze", "2031-09-16", "12:30", 1, 2, "Quill")),
    ("6 seats", "book_room", ("Slip", "2031-09-16", "12:30", 1, 7, "Quill")),
    ("no booking", "cancel_booking", ("KH-S0101-0800",)),
    ("no booking", "order_catering", ("KH-S0101-0800", "coffee")),
]
STEPS: list[tuple[str, tuple[Any, ...]]] = [
    ("book_room", ("Ember", "2031-09-17", "08:00", 2, 3, "Quill")),
    ("book_room", ("Slip", "2031-09-17", "08:00", 2, 3, "Thorne")),
    ("order_catering", ("KH-K0917-1300", "lunch")),
    ("cancel_booking", ("KH-S0919-1000",)),
]
VALUES: dict[str, list[Any]] = {
    "day": ["2031-09-15", "2031-09-16", "2031-09-18"],
    "start": [f"{h:02d}:{m}" for h in range(8, 18) for m in ("00", "30")],
    "hours": [1, 2, 3, 4],
    "people": [1, 2, 3, 4, 5, 6, 7, 8, 12, 13, 20],
    "organiser": ["Quill", "Petrova", "Hale", "van Dam"],
    "booking_id": ["KH-S0915-0930", "KH-G0916-1000", "KH-K0918-1200"],
}


def _hours(booking: dict[str, Any]) -> set[float]:
    """The half hours that a booking takes, counted from midnight."""
    begin = int(booking["start"][:2]) + int(booking["start"][3:]) / 60
    return {begin + n / 2 for n in range(2 * booking["hours"])}


def keeps(before: Any, after: Any) -> None:
    """No room and nobody is booked twice."""
    for one, other in combinations(after["bookings"].values(), 2):
        if one["day"] == other["day"] and _hours(one) & _hours(other):
            assert one["room"] != other["room"]
            assert one["organiser"] != other["organiser"]


FLOW = load(
    "meeting_rooms",
    ByHand(
        told=Told(r"\b(?:Ember|Slip|Glaze|Bisque)\b"),  # Kiln is the name of the house as well
        refused=REFUSED,
        steps=STEPS,
        values=VALUES,
        keeps=keeps,
        aliases=SAID,
        from_results=frozenset({"booking_id"}),
        # So that it shows steps cannot be swapped: this chart leads back from every second one.
    ),
)
test_role = role_test(FLOW)


@pytest.fixture
def house() -> Any:
    return FLOW.backend()


# Taken on Tuesday: Glaze 10-13, Bisque 10-12, Kiln 8-12. Ember 4 seats, Slip 6, Glaze 8, ...
@pytest.mark.parametrize(
    ("start", "hours", "people", "equipment", "rooms"),
    [
        ("13:00", 2, 1, "none", "Ember Slip Glaze Bisque Kiln"),
        ("13:00", 2, 5, "none", "Slip Glaze Bisque Kiln"),
        ("13:00", 2, 4, "screen", "Ember Glaze Bisque Kiln"),
        ("13:00", 2, 6, "whiteboard", "Slip Glaze Kiln"),
        ("13:00", 2, 2, "video", "Bisque Kiln"),
        ("12:00", 1, 7, "none", "Bisque Kiln"),
        ("09:00", 1, 7, "none", "Glaze Bisque"),
        ("09:00", 2, 7, "none", ""),
        ("08:00", 2, 13, "none", ""),
    ],
)
def test_rooms_that_are_free(
    house: Any, start: str, hours: int, people: int, equipment: str, rooms: str
) -> None:
    found = house.find_rooms("2031-09-16", start, hours, people, equipment)
    assert [r["room"] for r in found["rooms"]] == rooms.split()
    assert found["count"] == len(rooms.split())


@pytest.mark.parametrize(
    ("start", "hours", "people", "free_at", "free_room"),
    [
        ("09:00", 2, 7, "12:00", "Bisque"),
        ("09:00", 2, 13, "12:00", "Kiln"),
        ("12:00", 2, 7, "12:30", "Bisque"),
        ("16:00", 2, 2, "", ""),  # only later starts are looked at, and the house closes at 18:00
    ],
)
def test_the_next_free_time(
    house: Any, start: str, hours: int, people: int, free_at: str, free_room: str
) -> None:
    found = house.next_free_time("2031-09-16", start, hours, people, "none")
    assert found == {"found": free_at != "", "free_at": free_at, "free_room": free_room}


def test_nobody_organises_two_meetings_at_once(house: Any) -> None:
    state = json.dumps(house.state)
    clash = house.book_room("Slip", "2031-09-16", "12:00", 2, 3, "PETROVA")
    assert clash["outcome"] == "clash"
    assert clash["booking_id"] == "KH-G0916-1000"
    assert json.dumps(house.state) == state
    assert house.book_room("Slip", "2031-09-16", "13:00", 2, 3, "Petrova")["outcome"] == "booked"
    assert house.book_room("Ember", "2031-09-16", "14:00", 1, 3, "Petrova")["outcome"] == "clash"
    assert house.cancel_booking("KH-S0916-1300")["cancelled"] is True
    assert house.book_room("Ember", "2031-09-16", "14:00", 1, 3, "Petrova")["outcome"] == "booked"


# It is Monday, 08:30. Coffee needs 2 hours of notice, sandwiches 24, lunch 48.
@pytest.mark.parametrize(
    ("day", "start", "menu", "ordered", "price"),
    [
        ("2031-09-15", "10:00", "coffee", False, 0),
        ("2031-09-15", "10:30", "coffee", True, 12),
        ("2031-09-16", "08:00", "sandwiches", False, 0),
        ("2031-09-16", "08:30", "sandwiches", True, 27),
        ("2031-09-17", "08:00", "lunch", False, 0),
        ("2031-09-17", "08:30", "lunch", True, 51),
    ],
)
def test_notice_of_the_kitchen(
    house: Any, day: str, start: str, menu: str, ordered: bool, price: int
) -> None:
    booked = house.book_room("Ember", day, start, 1, 3, "Quill")["booking_id"]
    answer = house.order_catering(booked, menu)
    assert (answer["ordered"], answer["price"]) == (ordered, price)
    assert house.state["bookings"][booked]["menu"] == (menu if ordered else "")
    if ordered:
        with pytest.raises(ValueError, match="already"):
            house.order_catering(booked, "coffee")


@pytest.mark.parametrize(("start", "cancelled"), [("10:00", False), ("10:30", True)])
def test_meetings_are_cancelled_until_two_hours_before(
    house: Any, start: str, cancelled: bool
) -> None:
    booked = house.book_room("Ember", "2031-09-15", start, 1, 3, "Quill")["booking_id"]
    assert house.cancel_booking(booked)["cancelled"] is cancelled
    assert (booked in house.state["bookings"]) is not cancelled


def test_whole_numbers_may_be_written_with_a_point(house: Any) -> None:
    """JSON Schema takes 2.0 for an integer."""
    assert house.next_free_time("2031-09-16", "09:00", 2.0, 7.0, "none")["free_at"] == "12:00"
    number = house.book_room("Ember", "2031-09-17", "08:00", 2.0, 3.0, "Quill")["booking_id"]
    assert json.dumps([house.state["bookings"][number][n] for n in ("hours", "people")]) == "[2, 3]"
    assert json.dumps(house.order_catering(number, "coffee")["price"]) == "12"
