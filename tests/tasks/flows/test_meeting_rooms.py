"""The role ``tasks/flows/meeting_rooms``: data against backend and chart, rules by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import combinations, permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agenteval.evaluators.workflows.scripted.behaviours import CAUSE, behaviours
from tests.tasks.flows.checks import ALL, Check, load
from tests.tasks.flows.flow import carry_out

FOLDER = Path(__file__).resolve().parents[3] / "tasks" / "flows" / "meeting_rooms"
# What people say instead of the value that a tool takes.
SAID = {
    "none": ("nothing special", "no gadgets"),
    "video": ("joins from home",),  # the agent says what that means
    "1": ("for an hour",),
    "2031-09-16": ("tmrw",),
}
FLOW = load(FOLDER, SAID, frozenset({"booking_id"}))


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_role(check: Check) -> None:
    assert check(FLOW) == []


def test_nearly_every_mistake_can_be_planted_for_somebody() -> None:
    """Steps cannot be swapped so that it shows: this chart leads back from every second one."""
    planted = {
        name
        for profile in FLOW.role.scenarios[0].profiles
        for name, b in behaviours(FLOW.role, profile, backend=FLOW.backend).items()
        if b.system is not None
    }
    assert planted >= set(CAUSE) - {"swaps_steps"}


def test_agents_offer_the_rooms_that_were_returned() -> None:
    names = {"Ember", "Slip", "Glaze", "Bisque"}  # Kiln is the name of the house as well
    for where, session, _ in FLOW.sessions():
        known: set[str] = set()
        for turn in session.turns:
            if turn.kind == "reply":
                assert names & set(re.findall(r"\w+", turn.text)) <= known, (where, turn.text)
            else:
                known |= set(re.findall(r"\w+", turn.text + json.dumps(turn.result)))


def test_a_wrong_branch_leads_straight_to_another_call() -> None:
    """Here rooms are free, and another time is looked for."""
    profile = next(p for p in FLOW.role.scenarios[0].profiles if p.id == "lena")
    wrong = behaviours(FLOW.role, profile, backend=FLOW.backend)["wrong_branch"]
    assert wrong.system is not None
    assert wrong.system.parameters["edge"] == "No room is free (count = 0)"


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


REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("no day 2031-02-30", lambda d: d.find_rooms("2031-02-30", "10:00", 1, 2, "none")),
    ("no working day", lambda d: d.find_rooms("2031-09-20", "10:00", 1, 2, "none")),  # Saturday
    ("no working day", lambda d: d.find_rooms("2031-09-12", "10:00", 1, 2, "none")),  # past
    ("no working day", lambda d: d.find_rooms("2031-10-16", "10:00", 1, 2, "none")),  # 31 days
    ("has passed", lambda d: d.next_free_time("2031-09-15", "08:00", 1, 2, "none")),
    ("not between", lambda d: d.find_rooms("2031-09-16", "17:00", 2, 2, "none")),
    ("taken", lambda d: d.book_room("Glaze", "2031-09-16", "12:30", 1, 2, "Quill")),
    ("6 seats", lambda d: d.book_room("Slip", "2031-09-16", "12:30", 1, 7, "Quill")),
    ("no booking", lambda d: d.cancel_booking("KH-S0101-0800")),
    ("no booking", lambda d: d.order_catering("KH-S0101-0800", "coffee")),
]


@pytest.mark.parametrize(("why", "call"), REFUSED, ids=[f"{i}" for i in range(len(REFUSED))])
def test_refused_with_a_sentence(house: Any, why: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=why):
        call(house)
    assert house.state == FLOW.backend().state


def test_whole_numbers_may_be_written_with_a_point(house: Any) -> None:
    """JSON Schema takes 2.0 for an integer."""
    assert house.next_free_time("2031-09-16", "09:00", 2.0, 7.0, "none")["free_at"] == "12:00"
    number = house.book_room("Ember", "2031-09-17", "08:00", 2.0, 3.0, "Quill")["booking_id"]
    assert json.dumps([house.state["bookings"][number][n] for n in ("hours", "people")]) == "[2, 3]"
    assert json.dumps(house.order_catering(number, "coffee")["price"]) == "12"


def test_the_order_of_calls_changes_no_state() -> None:
    steps: list[Callable[[Any], Any]] = [
        lambda d: d.book_room("Ember", "2031-09-17", "08:00", 2, 3, "Quill"),
        lambda d: d.book_room("Slip", "2031-09-17", "08:00", 2, 3, "Thorne"),
        lambda d: d.order_catering("KH-K0917-1300", "lunch"),
        lambda d: d.cancel_booking("KH-S0919-1000"),
    ]
    ends = []
    for order in permutations(steps):
        house: Any = FLOW.backend()
        for step in order:
            step(house)
        ends.append(house.state)
    assert all(end == ends[0] for end in ends)


_DATE = r"20[0-9]{2}-(0[0-9]|1[0-9])-[0-3][0-9]"
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "day": st.sampled_from(["2031-09-15", "2031-09-16", "2031-09-18"])
    | st.from_regex(_DATE, fullmatch=True),
    "start": st.from_regex(r"(0[89]|1[0-7]):[03]0", fullmatch=True),
    "hours": st.integers(1, 4),
    "people": st.integers(1, 20),
    "equipment": st.sampled_from(["none", "screen", "video", "whiteboard"]),
    "room": st.sampled_from(["Ember", "Slip", "Glaze", "Bisque", "Kiln"]),
    "organiser": st.sampled_from(["Quill", "Petrova", "Hale", "van Dam"]),
    "booking_id": st.sampled_from(["KH-S0915-0930", "KH-G0916-1000", "KH-K0918-1200"])
    | st.from_regex("KH-[ESGBK][0-9]{4}-[0-9]{4}", fullmatch=True),
    "menu": st.sampled_from(["coffee", "sandwiches", "lunch"]),
}
_CALLS = st.sampled_from(FLOW.role.scenarios[0].tools).flatmap(
    lambda tool: st.tuples(
        st.just(tool), st.fixed_dictionaries({n: _VALUES[n] for n in tool.required})
    )
)

CHECKS = {
    (t.name, way): Draft202012Validator(schema)
    for t in FLOW.role.scenarios[0].tools
    for way, schema in (("in", t.parameters), ("out", t.returns))
}


def _hours(booking: dict[str, Any]) -> set[float]:
    """The half hours that a booking takes, counted from midnight."""
    begin = int(booking["start"][:2]) + int(booking["start"][3:]) / 60
    return {begin + n / 2 for n in range(2 * booking["hours"])}


@settings(max_examples=30)
@given(st.lists(_CALLS, max_size=12))
def test_no_room_and_nobody_is_booked_twice(calls: list[Any]) -> None:
    house: Any = FLOW.backend()
    for tool, arguments in calls:
        assert CHECKS[tool.name, "in"].is_valid(arguments)
        before = json.dumps(house.state)
        try:
            result = carry_out(house, tool.name, arguments)
        except ValueError:
            assert json.dumps(house.state) == before
            continue
        CHECKS[tool.name, "out"].validate(result)
        assert tool.effect == "write" or json.dumps(house.state) == before
    for one, other in combinations(house.state["bookings"].values(), 2):
        if one["day"] == other["day"] and _hours(one) & _hours(other):
            assert one["room"] != other["room"]
            assert one["organiser"] != other["organiser"]
