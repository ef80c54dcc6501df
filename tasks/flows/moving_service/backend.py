"""Oxbow Removals: vans and days, moves, visits of the surveyor, deposits. Sums are whole euros.

References follow from the arguments alone, so that the order of calls changes no state.
"""

from __future__ import annotations

import base64
import hashlib
from datetime import date, timedelta
from typing import Any

TODAY, DAYS_AHEAD = date(2031, 6, 10), 60
KM = {  # along the river
    "Aldmouth": 0,
    "Brenford": 35,
    "Carrow": 80,
    "Dunmill": 120,
    "Estwick": 190,
    "Farlow": 260,
    "Haverby": 410,
}
FURTHEST = 300
FLEET = {"small": 3, "large": 2}
CARRIES = {"small": 12, "large": 32}  # cubic metres
PRICE = {"small": (160, 1), "large": (290, 2)}  # to begin with, and for each km
INSURANCE = {"basic": {"small": 0, "large": 0}, "full": {"small": 45, "large": 80}}
SATURDAY_PERCENT, DEPOSIT_PERCENT = 20, 25


class Backend:
    """State: vans on the road by size and day, moves, visits, credit of cards."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {
            "taken": {
                "small/2031-06-14": 3,
                "large/2031-06-14": 1,
                "small/2031-06-16": 2,
                "large/2031-06-20": 2,
                "large/2031-06-21": 2,
                "small/2031-06-27": 3,
                "small/2031-06-28": 3,
                "large/2031-06-28": 2,
                "large/2031-06-30": 1,
            },
            "cards": {"2204": 900, "6371": 50, "1188": 400, "9410": 35, "5027": 1500, "3846": 260},
            "moves": {},
            "visits": {},
        }

    def quote_move(self, origin: str, destination: str, volume: int) -> dict[str, Any]:
        """A van and its price on a weekday; nothing outside the area or above the largest van."""
        km = _km(origin, destination)
        if km is None or km > FURTHEST:
            return {"offer": "outside", "van": "", "price": 0}
        van = _van(volume)
        if van is None:
            return {"offer": "survey", "van": "", "price": 0}
        return {"offer": "van", "van": van, "price": _price(van, km)}

    def check_day(self, van: str, day: str) -> dict[str, Any]:
        """Vans left, what the day adds to the price, the next day with a van.

        Refused: no such day or size, or a day that is not among the next 60.
        """
        if van not in FLEET:
            raise ValueError(f"there is no van of the size {van or 'nothing'}")
        when = _bookable(day)
        left = self._left(van, when)
        later = (TODAY + timedelta(n) for n in range((when - TODAY).days + 1, DAYS_AHEAD + 1))
        following = next((d for d in later if self._left(van, d)), None)
        return {
            "vans_left": left,
            "surcharge": SATURDAY_PERCENT if when.weekday() == 5 else 0,
            "next_day": following.isoformat() if following else "",
        }

    def book_van(
        self, origin: str, destination: str, volume: int, day: str, insurance: str, phone: str
    ) -> dict[str, Any]:
        """Keeps a van for a customer until the deposit is paid.

        Refused: no quote for this move, no van that day, a second move of one phone on a day.
        """
        quote = self.quote_move(origin, destination, volume)
        if quote["offer"] != "van":
            raise ValueError(f"there is no price for this move: {quote['offer']}")
        if insurance not in INSURANCE:
            raise ValueError(f"there is no insurance {insurance}")
        checked = self.check_day(quote["van"], day)
        reference = _reference(phone, day)
        if reference in self.state["moves"]:
            raise ValueError(f"{phone} has booked a move on {day} already")
        if checked["vans_left"] == 0:
            raise ValueError(f"no {quote['van']} van is left on {day}")
        total = quote["price"] * (100 + checked["surcharge"]) // 100
        total += INSURANCE[insurance][quote["van"]]
        deposit = total * DEPOSIT_PERCENT // 100
        key = f"{quote['van']}/{day}"
        self.state["taken"][key] = self.state["taken"].get(key, 0) + 1
        self.state["moves"][reference] = {
            "origin": origin.title(),
            "destination": destination.title(),
            "volume": int(volume),  # JSON may write 10 as 10.0
            "day": day,
            "insurance": insurance,
            "phone": phone,
            "total": total,
            "deposit": deposit,
            "status": "held",
        }
        return {"reference": reference, "total": total, "deposit": deposit}

    def pay_deposit(self, reference: str, card: str) -> dict[str, Any]:
        """Takes the deposit, unless the card is unknown or lacks credit.

        Refused: no such move, or its deposit is paid.
        """
        move = self.state["moves"].get(reference)
        if move is None:
            raise ValueError(f"there is no move {reference}")
        if move["status"] == "confirmed":
            raise ValueError(f"the deposit of {reference} is paid")
        deposit = move["deposit"]
        paid = self.state["cards"].get(card, 0) >= deposit
        if paid:
            self.state["cards"][card] -= deposit
            move["status"] = "confirmed"
        return {"paid": paid, "rest": move["total"] - deposit * paid}

    def book_survey(self, origin: str, day: str, phone: str) -> dict[str, Any]:
        """The surveyor's visit. Refused: no such day, a Sunday, a second visit of one phone."""
        when = _bookable(day)
        if when.weekday() == 6:
            raise ValueError("the surveyor makes no visits on Sundays")
        if phone in self.state["visits"]:
            raise ValueError(f"a visit is arranged with {phone} already")
        window = "09:00-12:00" if when.weekday() % 2 == 0 else "13:00-17:00"
        self.state["visits"][phone] = {"origin": origin.title(), "day": day, "window": window}
        return {"surveyor": "Mr Tolland", "window": window}

    def _left(self, van: str, day: date) -> int:
        if day.weekday() == 6:
            return 0
        return FLEET[van] - int(self.state["taken"].get(f"{van}/{day.isoformat()}", 0))


def _km(origin: str, destination: str) -> int | None:
    """Distance of two towns; None when one of them is not of the area."""
    first, second = KM.get(origin.title()), KM.get(destination.title())
    return None if first is None or second is None else abs(first - second)


def _van(volume: int) -> str | None:
    """The smallest van that carries it; None when there is none."""
    return next((van for van, most in CARRIES.items() if volume <= most), None)


def _price(van: str, km: int) -> int:
    begin, each = PRICE[van]
    return begin + each * km


def _bookable(day: str) -> date:
    try:
        when = date.fromisoformat(day)
    except ValueError:
        raise ValueError(f"there is no day {day}") from None
    if not 1 <= (when - TODAY).days <= DAYS_AHEAD:
        raise ValueError(f"{day} is not among the next {DAYS_AHEAD} days")
    return when


def _reference(phone: str, day: str) -> str:
    """OX- and six letters or digits that follow from phone and day."""
    digest = hashlib.sha256(f"{phone}/{day}".encode()).digest()
    return f"OX-{base64.b32encode(digest)[:6].decode()}"
