"""Magpie Parcels: scans, redirections and claims.

The clock stands at the `now` of role.yaml. Sums are whole euros. Numbers that are made up follow
from the arguments alone, so the order of calls changes no state.
"""

from __future__ import annotations

import hashlib
from datetime import date, datetime, time, timedelta
from typing import Any

NOW = datetime(2031, 11, 20, 11, 40)
CLOSING_HOUR = 18  # of the day before delivery: until then a parcel can be redirected
OVERDUE_DAYS = 5  # after the expected day
LATEST_DAYS = 7  # a parcel is kept so many days beyond the expected day
DAMAGE_DAYS, ABSENCE_DAYS = 7, 21  # after delivery: until then claims are taken
HEAVY = 10  # kilograms; more goes into no locker
FEES = {"home": 0, "shop": 0, "locker": 2, "neighbour": 3}

_FIELDS = ("postcode", "kilograms", "cover", "signature", "expected", "delivered", "note")
# number: see _FIELDS. `signature`: handed over against one only; `note`: the last scan in words.
_PARCELS: dict[str, tuple[str, int, int, bool, str, str, str]] = {
    "MP5041773": ("27180", 3, 50, False, "2031-11-21", "", "in the depot of Harle"),
    "MP5042218": ("27180", 6, 50, False, "2031-11-22", "", "on the road to Harle"),
    "MP5043605": ("30455", 4, 250, True, "2031-11-24", "", "in the sorting centre"),
    "MP5044190": ("27233", 1, 50, False, "2031-11-20", "", "in the van of the driver"),
    "MP5045832": ("31008", 8, 50, False, "2031-11-22", "", "in the depot of Lunde"),
    "MP5030914": ("30455", 5, 50, False, "2031-11-18", "2031-11-18", "left in the porch"),
    "MP5028467": ("27233", 2, 120, False, "2031-11-08", "2031-11-08", "left with no. 14"),
    "MP5031552": ("31008", 7, 50, False, "2031-11-19", "2031-11-19", "left with no. 9"),
    "MP5019276": ("30517", 3, 300, False, "2031-11-11", "", "in the sorting centre"),
    "MP5033348": ("30517", 12, 50, False, "2031-11-25", "", "on the road to Lunde"),
    "MP5034071": ("27180", 2, 400, True, "2031-11-17", "2031-11-17", "signed by the receiver"),
}
_PROOFS = {  # what customers have uploaded: F a photo, D a signed declaration
    "F-2231": "MP5030914",
    "F-2260": "MP5028467",
    "D-1107": "MP5034071",
    "D-1130": "MP5019276",
}


class Backend:
    """State: parcels with their redirections, and claims."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {
            "parcels": {
                number: dict(zip(_FIELDS, values, strict=True)) | {"redirected": ""}
                for number, values in _PARCELS.items()
            },
            "claims": {},
        }

    def track_parcel(self, tracking_number: str, postcode: str) -> dict[str, Any]:
        """A parcel is told only to who knows number and postcode."""
        parcel = self.state["parcels"].get(tracking_number)
        if parcel is None or parcel["postcode"] != postcode:
            return {"status": "unknown", "expected_on": "", "delivered_on": "", "last_scan": ""}
        return {
            "status": _status(parcel),
            "expected_on": parcel["expected"],
            "delivered_on": parcel["delivered"],
            "last_scan": parcel["note"],
        }

    def check_redirect(self, tracking_number: str, place: str, day: str) -> dict[str, Any]:
        """Can the parcel go to another place or come on another day, and for how much?"""
        parcel = self._parcel(tracking_number)
        if _status(parcel) != "on_the_way":
            raise ValueError(f"{tracking_number} is not on its way, so it cannot be redirected")
        if place not in FEES:
            raise ValueError(f"there is no redirection to {place}")
        reason = _obstacle(parcel, place, date.fromisoformat(day))
        return {"possible": not reason, "fee": 0 if reason else FEES[place], "reason": reason}

    def redirect_parcel(self, tracking_number: str, place: str, day: str) -> dict[str, Any]:
        """Redirects it, once; refused where `check_redirect` says that it is not possible."""
        checked = self.check_redirect(tracking_number, place, day)
        if not checked["possible"]:
            raise ValueError(f"{tracking_number} cannot be redirected ({checked['reason']})")
        self.state["parcels"][tracking_number].update(redirected=place, expected=day)
        return {"redirected_to": place, "arrives_on": day, "charged": checked["fee"]}

    def open_claim(
        self, tracking_number: str, problem: str, value: int, proof: str | None = None
    ) -> dict[str, Any]:
        """Pays what was lost, up to the cover of the parcel, in time and with a proof."""
        parcel = self._parcel(tracking_number)
        status = _status(parcel)
        if status == "on_the_way":
            raise ValueError(f"{tracking_number} is still on its way")
        if status == "overdue" and problem != "not_received":
            raise ValueError(f"{tracking_number} was not delivered, so nothing of it is {problem}")
        number = f"C-{_digits(tracking_number, problem)}"
        if any(c["tracking_number"] == tracking_number for c in self.state["claims"].values()):
            raise ValueError(f"there is a claim for {tracking_number} already")
        if reason := _too_late(parcel, problem):
            return _verdict("refused", reason)
        if reason := _lacking(tracking_number, problem, proof):
            return _verdict("proof_missing", reason)
        amount = min(value, parcel["cover"])
        self.state["claims"][number] = {
            "tracking_number": tracking_number,
            "problem": problem,
            "proof": proof,
            "amount": amount,
        }
        return _verdict("accepted", "", number, amount)

    def _parcel(self, number: str) -> dict[str, Any]:
        parcel: dict[str, Any] | None = self.state["parcels"].get(number)
        if parcel is None:
            raise ValueError(f"there is no parcel {number}")
        return parcel


def _status(parcel: dict[str, Any]) -> str:
    if parcel["delivered"]:
        return "delivered"
    late = NOW.date() - date.fromisoformat(parcel["expected"])
    return "overdue" if late > timedelta(OVERDUE_DAYS) else "on_the_way"


def _obstacle(parcel: dict[str, Any], place: str, day: date) -> str:
    """Why the parcel cannot be redirected so, "" when it can."""
    expected = date.fromisoformat(parcel["expected"])
    closes = datetime.combine(expected - timedelta(1), time(CLOSING_HOUR))
    if parcel["redirected"]:
        return "redirected_before"
    if closes < NOW:
        return "deadline_passed"
    if parcel["signature"] and place in ("locker", "neighbour"):
        return "signature_needed"
    if parcel["kilograms"] > HEAVY and place == "locker":
        return "too_heavy"
    if day.weekday() == 6:
        return "sunday"
    return "" if expected <= day <= expected + timedelta(LATEST_DAYS) else "day_not_possible"


def _too_late(parcel: dict[str, Any], problem: str) -> str:
    """Why no claim is taken whatever the proof, "" when one is. What never came has no deadline."""
    if not parcel["delivered"]:
        return ""
    if problem == "not_received" and parcel["signature"]:
        return "signed_for"
    days = (NOW.date() - date.fromisoformat(parcel["delivered"])).days
    limit = ABSENCE_DAYS if problem == "not_received" else DAMAGE_DAYS
    return "deadline_passed" if days > limit else ""


def _lacking(number: str, problem: str, proof: str | None) -> str:
    """The proof that is wanted: a photo of what came, a declaration of what did not come."""
    letter, wanted = (
        ("D", "declaration_needed") if problem == "not_received" else ("F", "photo_needed")
    )
    if proof is None or not proof.startswith(letter):
        return wanted
    return "" if _PROOFS.get(proof) == number else "proof_unknown"


def _verdict(verdict: str, reason: str, number: str = "", amount: int = 0) -> dict[str, Any]:
    return {"verdict": verdict, "claim_number": number, "amount": amount, "reason": reason}


def _digits(*parts: str) -> str:
    """Four digits that follow from the parts."""
    return f"{int(hashlib.sha256('|'.join(parts).encode()).hexdigest(), 16) % 7000 + 2000}"
