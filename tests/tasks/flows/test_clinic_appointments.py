"""The role ``tasks/flows/clinic_appointments``: what holds of every role, and its rules, worked out
by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tasks.flows.checks import ByHand, Told, load, role_test

pytestmark = pytest.mark.xdist_group("clinic_appointments")  # so that one worker reads the role

# What people say instead of the value that a tool takes; all else must occur as it is.
ALIASES = {
    "general_practice": ("family doctor",),
    "dermatology": ("skin doctor",),
    "1989-06-05": ("5 June 1989",),
    "1954-03-22": ("22nd of March 1954",),
    "2002-08-09": ("9 August 2002",),
    "1976-07-03": ("3 July 1976",),
    "1947-04-15": ("15 April 1947",),
}
GP = "general_practice"
REFUSED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("from today", "find_slots", (GP, "2031-09-07")),
    ("from today", "find_slots", (GP, "2031-11-08")),
    ("day is out of range", "find_slots", (GP, "2031-09-31")),
    ("no patient", "book_slot", (GP, "2031-09-12", "08:30", "P9999")),
    ("not free", "book_slot", (GP, "2031-09-09", "08:30", "P1472")),
    ("not free", "book_slot", (GP, "2031-09-12", "08:31", "P1472")),
    ("A-2340", "book_slot", (GP, "2031-09-12", "08:30", "P1398")),
    ("another", "book_slot", (GP, "2031-09-12", "08:30", "P1472", None, "A-2340")),
    ("another", "book_slot", ("eye_clinic", "2031-09-19", "09:00", "P1398", None, "A-2340")),
    ("too close", "book_slot", (GP, "2031-09-12", "08:30", "P1304", None, "A-2291")),
    ("too close", "cancel_appointment", ("A-2291",)),
    ("no open", "cancel_appointment", ("A-0000",)),
    ("free time", "join_waiting_list", (GP, "2031-09-12", "P1472")),
    ("closed", "join_waiting_list", (GP, "2031-09-13", "P1472")),
    ("no patient", "join_waiting_list", ("dermatology", "2031-09-11", "P9999")),
]
STEPS: list[tuple[str, tuple[Any, ...]]] = [
    ("book_slot", (GP, "2031-09-12", "08:30", "P1472")),
    ("book_slot", (GP, "2031-09-12", "09:15", "P1043")),
    ("book_slot", ("physiotherapy", "2031-09-15", "17:15", "P1220", None, "A-2210")),
    ("cancel_appointment", ("A-2254",)),
    ("join_waiting_list", ("dermatology", "2031-09-11", "P1472")),
]
VALUES: dict[str, list[Any]] = {
    "day": ["2031-09-09", "2031-09-11", "2031-09-13", "2031-09-17", "2031-02-30", "2030-01-01"],
    "time": ["10:00", "10:30", "12:15", "17:15", "25:61"],
    "patient_number": ["P1220", "P1472", "P1509", "P0000"],
    "appointment_number": ["A-2210", "A-2254", "A-2291", "A-2317", "A-0000"],
    "birth_date": ["1954-03-22", "1989-06-05", "1989-00-05"],
    "referral_code": ["R-40376", "R-40541", "R-00000"],
}


def keeps(before: Any, after: Any) -> None:
    """No time is given out twice, and nobody has two appointments in one department."""
    held = [a for a in after["appointments"].values() if a["status"] == "open"]
    places = [(a["department"], a["day"], a["time"]) for a in held]
    assert len(set(places)) == len(places)
    people = [(a["department"], a["patient_number"]) for a in held]
    assert len(set(people)) == len(people)


FLOW = load(
    "clinic_appointments",
    ByHand(
        told=Told(r"\b\d\d:\d\d\b|\b[ALR]-\d+\b", least=31),
        weekdays=16,
        refused=REFUSED,
        steps=STEPS,
        values=VALUES,
        keeps=keeps,
        aliases=ALIASES,
        from_results=frozenset({"department"}),
    ),
)
test_role = role_test(FLOW)


@pytest.fixture
def book() -> Any:
    return FLOW.backend()


# It is Monday, 8 September 2031, 08:20.
@pytest.mark.parametrize(
    ("department", "day", "times", "following"),
    [
        (GP, "2031-09-08", ["11:00", "14:00"], "2031-09-09"),  # two hours ahead; 16:30 is taken
        (GP, "2031-09-12", ["08:30", "09:15", "11:00", "14:00", "16:30"], "2031-09-15"),
        (GP, "2031-09-13", [], "2031-09-15"),  # Saturday
        (GP, "2031-09-23", ["08:30", "09:15", "11:00", "16:30"], "2031-09-24"),
        ("dermatology", "2031-09-11", [], "2031-09-16"),  # a full Thursday, then Tuesday
        ("eye_clinic", "2031-09-17", ["09:00", "13:30"], "2031-09-19"),
        ("physiotherapy", "2031-09-11", ["07:45", "17:15"], "2031-09-15"),
        (GP, "2031-11-07", ["08:30", "09:15", "11:00", "14:00", "16:30"], ""),  # the 60th day
    ],
)
def test_free_times(book: Any, department: str, day: str, times: list[str], following: str) -> None:
    found = book.find_slots(department, day)
    assert (found["times"], found["free"]) == (times, len(times))
    assert found["next_day"] == following
    assert found["needs_referral"] is (department in ("dermatology", "physiotherapy"))


@pytest.mark.parametrize(
    ("department", "day", "time", "patient", "code", "reason"),
    [
        ("dermatology", "2031-09-16", "10:00", "P1472", "R-40541", ""),
        ("dermatology", "2031-09-16", "10:00", "P1472", None, "missing"),
        ("dermatology", "2031-09-16", "10:00", "P1187", "R-40112", "expired"),
        ("dermatology", "2031-09-16", "10:00", "P1187", "R-40541", "not_for_this"),
        ("cardiology", "2031-09-19", "08:45", "P1472", "R-40541", "not_for_this"),
        ("physiotherapy", "2031-10-30", "07:45", "P1220", "R-40603", "held"),  # one is enough
        ("physiotherapy", "2031-11-03", "07:45", "P1220", "R-40603", "expired"),
        ("eye_clinic", "2031-09-19", "09:00", "P1472", None, ""),
        ("eye_clinic", "2031-09-19", "09:00", "P1472", "R-99999", ""),  # not looked at
    ],
)
def test_referrals(
    book: Any, department: str, day: str, time: str, patient: str, code: str | None, reason: str
) -> None:
    if reason == "held":
        with pytest.raises(ValueError, match="A-2210"):
            book.book_slot(department, day, time, patient, code)
        return
    done = book.book_slot(department, day, time, patient, code)
    assert (done["outcome"], done["reason"]) == ("no_referral" if reason else "booked", reason)
    left = time in book.find_slots(department, day)["times"]
    assert left is bool(reason)


def test_a_moved_appointment_keeps_its_number_and_needs_no_referral(book: Any) -> None:
    done = book.book_slot("cardiology", "2031-09-19", "12:15", "P1509", None, "A-2317")
    assert done == {"outcome": "booked", "booked_number": "A-2317", "reason": ""}
    assert "12:15" in book.find_slots("cardiology", "2031-09-17")["times"]
    assert "12:15" not in book.find_slots("cardiology", "2031-09-19")["times"]
    found = book.find_appointment("A-2317", "1976-07-03")
    assert (found["booked_day"], found["booked_time"]) == ("2031-09-19", "12:15")


def test_who_knows_number_and_date_of_birth_finds_an_appointment(book: Any) -> None:
    assert book.find_appointment("A-2254", "1954-03-22")["state"] == "open"
    assert book.find_appointment("A-2254", "1954-03-23")["state"] == "not_found"
    assert book.find_appointment("A-2291", "2002-08-09")["state"] == "too_close"
    book.cancel_appointment("A-2254")
    assert book.find_appointment("A-2254", "1954-03-22")["state"] == "not_found"
    assert "10:30" in book.find_slots("eye_clinic", "2031-09-17")["times"]


def test_24_hours_are_the_limit(book: Any) -> None:
    late = book.book_slot(GP, "2031-09-09", "09:15", "P1472")["booked_number"]
    assert book.find_appointment(late, "1980-01-19")["state"] == "open"  # 24 h 55 min
    book.state["appointments"][late]["time"] = "08:15"
    assert book.find_appointment(late, "1980-01-19")["state"] == "too_close"


def test_the_waiting_list_is_for_full_days(book: Any) -> None:
    assert book.join_waiting_list("dermatology", "2031-09-11", "P1472")["answer_by"] == "2031-09-09"
    for time in ("10:00", "11:20", "15:00"):  # fill a later day
        book.state["appointments"][f"A-{time[:2]}00"] = {
            "patient_number": "P1043",
            "department": "dermatology",
            "day": "2031-09-25",
            "time": time,
            "status": "open",
            "referral": "",
        }
    assert book.join_waiting_list("dermatology", "2031-09-25", "P1472")["answer_by"] == "2031-09-22"
    assert len(book.state["waiting"]) == 2
