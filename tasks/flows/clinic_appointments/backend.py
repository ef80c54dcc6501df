"""The book of the Fennel Street Clinic: times, appointments, referrals, waiting list.

The clock stands at the `now` of role.yaml. Numbers that are made up follow from the arguments
alone, so the order of calls changes no state.
"""

from __future__ import annotations

import hashlib
from datetime import date, datetime, timedelta
from typing import Any

NOW = datetime(2031, 9, 8, 8, 20)
DAYS_AHEAD = 60  # so far is the book open
NOTICE = timedelta(hours=24)  # nearer than this only the desk changes an appointment, by phone
LEAD = timedelta(hours=2)  # nearer than this no time is given out
ANSWER_DAYS = 3  # days before the day that somebody waits for on which the clinic answers

# Weekdays on which a department is open (Monday is 0), its times, whether it needs a referral.
_DEPARTMENTS: dict[str, tuple[tuple[int, ...], tuple[str, ...], bool]] = {
    "general_practice": ((0, 1, 2, 3, 4), ("08:30", "09:15", "11:00", "14:00", "16:30"), False),
    "eye_clinic": ((0, 2, 4), ("09:00", "10:30", "13:30"), False),
    "dermatology": ((1, 3), ("10:00", "11:20", "15:00"), True),
    "cardiology": ((2, 4), ("08:45", "12:15"), True),
    "physiotherapy": ((0, 1, 3), ("07:45", "12:00", "17:15"), True),
}
# Times that are taken by people who do not appear below.
_TAKEN: dict[str, list[str]] = {
    "general_practice 2031-09-09": ["08:30", "11:00", "16:30"],
    "general_practice 2031-09-10": ["09:15"],
    "eye_clinic 2031-09-10": ["09:00", "10:30", "13:30"],
    "eye_clinic 2031-09-12": ["09:00", "13:30"],
    "eye_clinic 2031-09-15": ["10:30"],
    "dermatology 2031-09-09": ["10:00"],
    "dermatology 2031-09-11": ["10:00", "11:20", "15:00"],
    "cardiology 2031-09-10": ["08:45", "12:15"],
    "cardiology 2031-09-12": ["08:45", "12:15"],
    "physiotherapy 2031-09-09": ["07:45", "12:00", "17:15"],
    "physiotherapy 2031-09-15": ["07:45", "12:00"],
}
_PATIENTS = {  # patient number: name, date of birth
    "P1043": ("Mona Eklund", "1998-02-17"),
    "P1187": ("Rolf Baumann", "1961-11-30"),
    "P1220": ("Selma Ortiz", "1989-06-05"),
    "P1261": ("Otto Vance", "1954-03-22"),
    "P1304": ("Tess Moreau", "2002-08-09"),
    "P1355": ("Ravi Menon", "1972-12-01"),
    "P1398": ("Lene Dahl", "1947-05-14"),
    "P1416": ("Amira Saleh", "1993-10-26"),
    "P1472": ("Goran Pavic", "1980-01-19"),
    "P1509": ("Nell Ashby", "1976-07-03"),
}
_REFERRALS = {  # code: patient, department, last day
    "R-40112": ("P1187", "dermatology", "2031-08-15"),
    "R-40376": ("P1355", "cardiology", "2031-12-31"),
    "R-40541": ("P1472", "dermatology", "2031-11-30"),
    "R-40603": ("P1220", "physiotherapy", "2031-10-31"),
}
_APPOINTMENTS = {  # number: patient, department, day, time
    "A-2210": ("P1220", "physiotherapy", "2031-09-11", "12:00"),
    "A-2254": ("P1261", "eye_clinic", "2031-09-17", "10:30"),
    "A-2291": ("P1304", "general_practice", "2031-09-08", "16:30"),
    "A-2317": ("P1509", "cardiology", "2031-09-17", "12:15"),
    "A-2340": ("P1398", "general_practice", "2031-09-23", "14:00"),
}


class Backend:
    """State: appointments and the waiting list."""

    def __init__(self) -> None:
        fields = ("patient_number", "department", "day", "time")
        self.state: dict[str, Any] = {
            "appointments": {
                number: dict(zip(fields, values, strict=True)) | {"status": "open", "referral": ""}
                for number, values in _APPOINTMENTS.items()
            },
            "waiting": {},
        }

    def find_appointment(self, appointment_number: str, birth_date: str) -> dict[str, Any]:
        """An appointment is told only to who knows number and date of birth."""
        _date(birth_date)
        found = self.state["appointments"].get(appointment_number)
        known = found is not None and found["status"] == "open"
        if not known or _PATIENTS[found["patient_number"]][1] != birth_date:
            return {"state": "not_found", "department": None, "booked_day": "", "booked_time": ""}
        return {
            "state": "too_close" if _close(found) else "open",
            "department": found["department"],
            "booked_day": found["day"],
            "booked_time": found["time"],
        }

    def find_slots(self, department: str, day: str) -> dict[str, Any]:
        """Times of a day that nobody has, and the next day after it with such a time."""
        first, last = _date(day), NOW.date() + timedelta(DAYS_AHEAD)
        if not NOW.date() <= first <= last:
            raise ValueError(f"appointments are made from today until {last}")
        times = self._free(department, first)
        later = (first + timedelta(n) for n in range(1, (last - first).days + 1))
        following = next((d.isoformat() for d in later if self._free(department, d)), "")
        return {
            "free": len(times),
            "times": times,
            "next_day": following,
            "needs_referral": _DEPARTMENTS[department][2],
        }

    def book_slot(
        self,
        department: str,
        day: str,
        time: str,
        patient_number: str,
        referral_code: str | None = None,
        appointment_number: str | None = None,
    ) -> dict[str, Any]:
        """Books a free time, or moves the appointment of that number to it.

        A new appointment in some departments needs a referral; one that is moved keeps its own.
        """
        if patient_number not in _PATIENTS:
            raise ValueError(f"there is no patient {patient_number}")
        if time not in self.find_slots(department, day)["times"]:
            raise ValueError(f"{time} on {day} is not free in {department}")
        new = {"patient_number": patient_number, "department": department, "day": day, "time": time}
        if appointment_number is not None:
            old = self._changeable(appointment_number)
            if (old["patient_number"], old["department"]) != (patient_number, department):
                raise ValueError(f"{appointment_number} is of another patient or department")
            old.update(day=day, time=time)
            return {"outcome": "booked", "booked_number": appointment_number, "reason": ""}
        reason = _referral_problem(department, day, patient_number, referral_code)
        if reason:
            return {"outcome": "no_referral", "booked_number": "", "reason": reason}
        self._refuse_second(patient_number, department)
        number = f"A-{_digits(department, day, time, patient_number)}"
        referral = referral_code if referral_code and _DEPARTMENTS[department][2] else ""
        self.state["appointments"][number] = new | {"status": "open", "referral": referral}
        return {"outcome": "booked", "booked_number": number, "reason": ""}

    def cancel_appointment(self, appointment_number: str) -> dict[str, Any]:
        """Sets the time free. Its number can be used no more."""
        found = self._changeable(appointment_number)
        found["status"] = "cancelled"
        return {"cancelled": appointment_number, "freed": f"{found['day']} {found['time']}"}

    def join_waiting_list(self, department: str, day: str, patient_number: str) -> dict[str, Any]:
        """Notes who wants a time on a day that is full; refused while one is free."""
        if patient_number not in _PATIENTS:
            raise ValueError(f"there is no patient {patient_number}")
        if self.find_slots(department, day)["free"]:
            raise ValueError(f"{department} has a free time on {day}")
        if _date(day).weekday() not in _DEPARTMENTS[department][0]:
            raise ValueError(f"{department} is closed on {day}")
        number = f"L-{_digits('waiting', department, day, patient_number)}"
        self.state["waiting"][number] = {
            "department": department,
            "day": day,
            "patient_number": patient_number,
        }
        answer = max(_date(day) - timedelta(ANSWER_DAYS), NOW.date() + timedelta(1))
        return {"list_number": number, "answer_by": answer.isoformat()}

    # --- helpers ---

    def _free(self, department: str, day: date) -> list[str]:
        if department not in _DEPARTMENTS:
            raise ValueError(f"there is no department {department}")
        weekdays, times, _ = _DEPARTMENTS[department]
        if day.weekday() not in weekdays:
            return []
        taken = set(_TAKEN.get(f"{department} {day}", ()))
        taken |= {
            a["time"]
            for a in self.state["appointments"].values()
            if (a["status"], a["department"], a["day"]) == ("open", department, day.isoformat())
        }
        return [t for t in times if t not in taken and _at(day.isoformat(), t) >= NOW + LEAD]

    def _changeable(self, number: str) -> dict[str, Any]:
        found: dict[str, Any] | None = self.state["appointments"].get(number)
        if found is None or found["status"] != "open":
            raise ValueError(f"there is no open appointment {number}")
        if _close(found):
            raise ValueError(f"{number} is too close to be changed here")
        return found

    def _refuse_second(self, patient_number: str, department: str) -> None:
        """Nobody has two open appointments in one department."""
        for number, a in self.state["appointments"].items():
            held = (a["status"], a["patient_number"], a["department"])
            if held == ("open", patient_number, department):
                raise ValueError(f"this patient has {number} in {department}, which can be moved")


def _referral_problem(department: str, day: str, patient: str, code: str | None) -> str:
    """Why the department does not take the patient on that day, "" when it does."""
    if not _DEPARTMENTS[department][2]:
        return ""
    if code is None:
        return "missing"
    owner, valid_in, last_day = _REFERRALS.get(code, ("", "", ""))
    if (owner, valid_in) != (patient, department):
        return "not_for_this"
    return "expired" if day > last_day else ""


def _close(appointment: dict[str, Any]) -> bool:
    return _at(appointment["day"], appointment["time"]) - NOW < NOTICE


def _at(day: str, time: str) -> datetime:
    return datetime.fromisoformat(f"{day} {time}")


def _date(text: str) -> date:
    """The day. Raises ValueError for one that is in no calendar."""
    return date.fromisoformat(text)


def _digits(*parts: str) -> str:
    """Four digits that follow from the parts."""
    return f"{int(hashlib.sha256('|'.join(parts).encode()).hexdigest(), 16) % 6000 + 4000}"
