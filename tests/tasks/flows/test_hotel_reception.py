"""The role ``tasks/flows/hotel_reception``: what holds of every role, and its rules, worked out
by hand."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from typing import Any

import pytest

from tests.tasks.flows.checks import ByHand, Told, load, role_test

pytestmark = pytest.mark.xdist_group("hotel_reception")  # so that one worker reads the role

# What people say instead of the value that a tool takes; all else must occur as it is.
ALIASES = {
    "1": ("just me", "just her", "alone"),
    "family": ("famly",),  # a typo, which the agent reads back
    "missing": ("nothing came",),
    "2031-08-15": ("the same days",),  # as in the booking, which the agent read back
}
# Said without a tool: what stands in the procedure, and two times that the agent suggests.
SAID_FREELY = frozenset({"12", "60", "10:00", "18:00", "13:30", "14:00"})
REFUSED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("past", "find_rooms", ("double", "2031-05-13", 1, 2)),
    ("open until", "find_rooms", ("double", "2031-12-30", 2, 2)),
    ("1 to 14", "find_rooms", ("double", "2031-06-01", 15, 2)),
    ("no castle rooms", "find_rooms", ("castle", "2031-06-01", 1, 2)),
    ("nothing to wait for", "join_waiting_list", ("double", "2031-06-20", 1, "a@b.example")),
    ("no open booking", "check_change", ("AH-9999", "2031-06-20", 1)),
    ("cannot be moved", "change_booking", ("AH-2041", "2031-06-06", 1)),
    ("neither moved nor cancelled", "cancel_booking", ("AH-2115",)),
    ("no order", "check_kitchen", ("RS-999",)),
    ("cannot make", "send_replacement", ("RS-318",)),
]
STEPS: list[tuple[str, tuple[Any, ...]]] = [
    ("reserve_room", ("double", "2031-07-18", 2, 2, "Ada Berg", "ada@berg.example")),
    ("change_booking", ("AH-2162", "2031-07-18", 2)),
    ("cancel_booking", ("AH-2264",)),  # of the same two nights
    ("reserve_parking", ("KW-MH 418", "2031-07-18", 2)),
    ("credit_order", ("RS-311", "cold")),
]
VALUES: dict[str, list[Any]] = {
    "room_type": ["double", "suite"],
    "arrival": ["2031-06-05", "2031-06-06", "2031-05-24", "2031-07-04", "2031-02-30"],
    "nights": [1, 2, 3],
    "guests": [1, 2, 3],
    "guest_name": ["Ada Berg", "Bo Dahl"],
    "email": ["a@b.example", "marta@walks.example", "r.kessler@posthorn.example"],
    "booking_number": ["AH-2041", "AH-2115", "AH-2130", "AH-2236", "AH-2252"],
    "last_name": ["Okafor", "quill", "Delgado"],
    "order_number": ["RS-311", "RS-314", "RS-320", "RS-322", "RS-297"],
    "room_number": ["204", "117", "302"],
}


def keeps(before: Any, after: Any) -> None:
    """No room is given to two guests, nor more than three open bookings to one."""
    rooms = {"single": 4, "double": 8, "family": 3, "suite": 2}
    slept: Counter[tuple[str, str]] = Counter()
    for room, nights in before["taken"].items():
        slept.update({(room, night): n for night, n in nights.items()})
    booked = [b for b in after["bookings"].values() if b["status"] == "open"]
    for b in booked:
        first = date.fromisoformat(b["arrival"])
        slept.update((b["room_type"], f"{first + timedelta(n)}") for n in range(b["nights"]))
    assert all(n <= rooms[room] for (room, _), n in slept.items())
    assert max(Counter(b["email"] for b in booked).values()) <= 3
    credits = [o["settled"].split() for o in after["orders"].values() if "credit" in o["settled"]]
    assert all(int(words[2]) <= 60 for words in credits)  # "credit of 16 for cold"


FLOW = load(
    "hotel_reception",
    ByHand(
        told=Told(r"€(\d+)|\b(?:AH|RS|W|Y)-\d+\b|\b\d\d:\d\d\b", SAID_FREELY, least=61),
        weekdays=21,
        refused=REFUSED,
        steps=STEPS,
        values=VALUES,
        keeps=keeps,
        aliases=ALIASES,
        # a stay of 2.0 nights is not understood
    ),
)
test_role = role_test(FLOW)


@pytest.fixture
def hotel() -> Any:
    return FLOW.backend()


# --- the words -------------------------------------------------------------------------------


def test_no_reply_is_used_twice_and_turns_differ_in_length() -> None:
    replies = [t.text for _, s, _ in FLOW.sessions() for t in s.turns if t.kind == "reply"]
    assert len(set(replies)) == len(replies)
    users = [t.text for _, s, _ in FLOW.sessions() for t in s.turns if t.kind == "user"]
    sizes = sorted(len(text.split()) for text in users)
    assert sizes[len(sizes) // 10] <= 3
    assert sizes[-len(sizes) // 10] >= 18


# --- rooms and prices: 84, 118, 164, 232 a night, 20 more on Fridays and Saturdays -------------


@pytest.mark.parametrize(
    ("room_type", "arrival", "nights", "total"),
    [
        ("single", "2031-05-19", 1, 84),  # Monday
        ("single", "2031-05-15", 3, 3 * 84 + 2 * 20),  # Thursday to Sunday
        ("double", "2031-10-05", 7, 7 * 118 + 2 * 20),  # a week
        ("family", "2031-11-14", 1, 164 + 20),  # Friday
        ("suite", "2031-11-16", 5, 5 * 232),  # Sunday to Friday
    ],
)
def test_prices(hotel: Any, room_type: str, arrival: str, nights: int, total: int) -> None:
    found = hotel.find_rooms(room_type, arrival, nights, 1)
    assert (found["status"], found["total"]) == ("free", total)


def test_one_full_night_makes_a_stay_full(hotel: Any) -> None:
    def status(arrival: str, nights: int) -> str:
        return str(hotel.find_rooms("double", arrival, nights, 2)["status"])

    assert status("2031-06-05", 1) == "free"  # the night before the festival
    assert status("2031-06-05", 2) == "full"
    assert status("2031-06-08", 2) == "free"  # the night of departure is not slept in


def test_the_last_rooms_can_be_taken_once(hotel: Any) -> None:
    stay = ("suite", "2031-11-03", 2)
    for guest in ("a", "b"):
        assert hotel.find_rooms(*stay, 2)["rooms_left"] == {"a": 2, "b": 1}[guest]
        assert hotel.reserve_room(*stay, 2, f"{guest} X", f"{guest}@x.example")["reserved"]
    assert hotel.find_rooms(*stay, 2)["status"] == "full"
    assert hotel.find_rooms("suite", "2031-11-05", 1, 2)["status"] == "free"
    with pytest.raises(ValueError, match="can be reserved"):
        hotel.reserve_room(*stay, 2, "c X", "c@x.example")
    assert hotel.join_waiting_list(*stay, "c@x.example")["answer_by"] == "2031-10-27"


@pytest.mark.parametrize(("room_type", "takes"), [("single", 1), ("double", 2), ("suite", 3)])
def test_guests_of_a_room(hotel: Any, room_type: str, takes: int) -> None:
    assert hotel.find_rooms(room_type, "2031-11-03", 1, takes)["status"] == "free"
    found = hotel.find_rooms(room_type, "2031-11-03", 1, takes + 1)
    assert (found["status"], found["takes_guests"]) == ("too_small", takes)


def test_a_fourth_booking_is_refused_until_one_is_cancelled(hotel: Any) -> None:
    stay = ("single", "2031-11-03", 1, 1, "Marta Delgado", "Marta@Walks.example")
    assert hotel.reserve_room(*stay)["reason"] == "too_many_bookings"
    hotel.cancel_booking("AH-2252")
    assert hotel.reserve_room(*stay)["reserved"]


# --- bookings --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("number", "name", "status", "reason"),
    [
        ("AH-2041", "OKAFOR", "open", ""),
        ("AH-2041", "Haddad", "not_found", ""),
        ("AH-2115", "Lindqvist", "fixed", "saver_rate"),
        ("AH-2130", "Achterberg", "fixed", "too_close"),  # arrives tomorrow
        ("AH-2188", "Brandt", "open", ""),  # in four days
    ],
)
def test_who_may_change_what(hotel: Any, number: str, name: str, status: str, reason: str) -> None:
    found = hotel.find_booking(number, name)
    assert (found["status"], found["reason"]) == (status, reason)
    assert (found["booked_from"] == "") == (status == "not_found")


def test_the_fee_begins_six_days_before_arrival(hotel: Any) -> None:
    for arrival, fee in (("2031-05-21", 0), ("2031-05-20", 84)):  # seven days, six days
        hotel.change_booking("AH-2188", arrival, 2)
        assert hotel.quote_cancellation("AH-2188") == {"fee": fee}


def test_a_booking_does_not_stand_in_its_own_way(hotel: Any) -> None:
    hotel.state["taken"]["double"]["2031-06-13"] = 7  # with AH-2041 all eight
    assert hotel.find_rooms("double", "2031-06-13", 1, 2)["status"] == "full"
    assert hotel.check_change("AH-2041", "2031-06-13", 1) == {
        "possible": True,
        "new_total": 138,
        "difference": 138 - 276,
    }


def test_a_cancelled_room_is_free_again(hotel: Any) -> None:
    before = hotel.find_rooms("double", "2031-06-13", 2, 2)["rooms_left"]
    hotel.cancel_booking("AH-2041")
    assert hotel.find_rooms("double", "2031-06-13", 2, 2)["rooms_left"] == before + 1
    assert hotel.find_booking("AH-2041", "Okafor")["status"] == "not_found"


# --- room service ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("order", "complaint", "amount", "reason"),
    [
        ("RS-311", "cold", 16, ""),
        ("RS-311", "late", 0, "not_late"),  # 12 minutes
        ("RS-314", "late", 7, ""),  # 38 minutes: half of 14
        ("RS-322", "cold", 0, "over_limit"),  # 92
        ("RS-297", "spoiled", 0, "too_old"),  # two nights ago
    ],
)
def test_credits(hotel: Any, order: str, complaint: str, amount: int, reason: str) -> None:
    found = hotel.credit_order(order, complaint)
    assert found == {"credited": amount > 0, "amount": amount, "reason": reason}
    if amount:
        with pytest.raises(ValueError, match="settled already"):
            hotel.send_replacement(order)


@pytest.mark.parametrize(
    ("wanted", "agreed"), [("09:45", "10:00"), ("12:10", "12:10"), ("21:00", "18:00")]
)
def test_hours_of_the_manager(hotel: Any, wanted: str, agreed: str) -> None:
    assert hotel.call_manager("204", wanted)["calls_at"] == agreed


# --- all of it -------------------------------------------------------------------------------
