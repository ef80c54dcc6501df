"""The role ``tasks/flows/hotel_reception``: data against backend and charts, rules by hand."""

from __future__ import annotations

import re
from datetime import date
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest

from agenteval.evaluators.workflows.scenario import Action
from tests.tasks.flows.checks import ALL, Check, load
from tests.tasks.flows.flow import state_after
from tests.tasks.flows.spoken import DAYS, MONTHS

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "tasks" / "flows" / "hotel_reception"
# What people say instead of the value that a tool takes; all else must occur as it is.
ALIASES = {
    "1": ("just me", "just her", "alone"),
    "family": ("famly",),  # a typo, which the agent reads back
    "missing": ("nothing came",),
    "2031-08-15": ("the same days",),  # as in the booking, which the agent read back
}
FLOW = load(FOLDER, ALIASES)
HOUSE_RULES = {"€12", "€60", "10:00", "18:00"}  # said without a tool: they stand in the procedure


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_role(check: Check) -> None:
    assert check(FLOW) == []


@pytest.fixture
def hotel() -> Any:
    return FLOW.backend()


# --- the words -------------------------------------------------------------------------------


def test_sums_times_and_numbers_that_agents_say_were_returned_or_said_before() -> None:
    told = re.compile(r"€\d+|\b(?:AH|RS|W|Y)-\d+\b|\b\d\d:\d\d\b")
    found = 0
    for where, session, _ in FLOW.sessions():
        known = set(HOUSE_RULES)
        for turn in session.turns:
            if turn.kind == "call":
                assert isinstance(turn.result, dict)
                known |= {str(v) for v in turn.result.values()}
                known |= {f"€{v}" for v in turn.result.values() if isinstance(v, int)}
            elif turn.kind == "user":
                known |= {text.upper() for text in told.findall(turn.text.upper())}
                known |= {f"€{n}" for n in re.findall(r"\d+", turn.text)}
            else:
                said = set(told.findall(turn.text)) - {"13:30", "14:00"}  # times it suggests
                found += len(said)
                assert said <= known, (where, turn.text, said - known)
    assert found > 60


def test_weekdays_fit_their_dates() -> None:
    days, months = "|".join(DAYS), "|".join(MONTHS)
    named = re.compile(rf"\b({days}),? (?:the )?(\d+)(?:st|nd|rd|th)?\b", re.I)
    found = 0
    for where, session, _ in FLOW.sessions():
        for turn in session.turns:
            for match in named.finditer(turn.text):
                after = re.search(rf"\b({months})\b", turn.text[match.end() :], re.I)
                if after is None:
                    continue
                month = MONTHS.index(after[1].casefold()) + 1
                day = date(2031, month, int(match[2]))
                assert DAYS[day.weekday()] == match[1].casefold(), (where, turn.text)
                found += 1
    assert found > 20


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


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (("find_rooms", "double", "2031-05-13", 1, 2), "past"),
        (("find_rooms", "double", "2031-12-30", 2, 2), "open until"),
        (("find_rooms", "double", "2031-06-01", 15, 2), "1 to 14"),
        (("find_rooms", "castle", "2031-06-01", 1, 2), "no castle rooms"),
        (("join_waiting_list", "double", "2031-06-20", 1, "a@b.example"), "nothing to wait for"),
        (("check_change", "AH-9999", "2031-06-20", 1), "no open booking"),
        (("change_booking", "AH-2041", "2031-06-06", 1), "cannot be moved"),
        (("cancel_booking", "AH-2115"), "neither moved nor cancelled"),
        (("check_kitchen", "RS-999"), "no order"),
        (("send_replacement", "RS-318"), "cannot make"),
    ],
)
def test_refusals_leave_no_trace(hotel: Any, call: tuple[Any, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        getattr(hotel, call[0])(*call[1:])
    assert hotel.state == FLOW.backend().state


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


def test_the_order_of_goals_changes_no_state() -> None:
    """Of users with several goals: each order leads to the same state."""
    tried = 0
    for _, profile in FLOW.profiles():
        wanted = state_after(FLOW, profile.actions)
        for order in permutations(profile.goals):
            actions: tuple[Action, ...] = sum((goal.actions for goal in order), ())
            assert state_after(FLOW, actions) == wanted, profile.id
            tried += 1
    assert tried >= 29 + 7  # each of 29 profiles, and more for those with several goals


def test_the_figures_of_the_readme() -> None:
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    charts = FLOW.charts()
    rows = {}
    for group, profiles, sessions in FLOW.groups():
        turns = sum(len(s.turns) for s in sessions)
        chart = charts.get(group)
        size = (len(chart.nodes), len(chart.edges)) if chart else ("", "")
        tools = len(FLOW.role.scenario(group).tools) if chart else ""
        rows[group] = [str(n) for n in (*size, tools, len(profiles), len(sessions), turns)]
    found = {
        row[0]: row[1:]
        for row in ([cell.strip(" `") for cell in line.split("|")[1:-1]] for line in
                    re.findall(r"^\| `.*\|$", text, re.M))
        if row[0] in rows
    }  # fmt: skip
    assert found == rows
