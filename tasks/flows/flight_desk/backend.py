"""Tern Air's flights of one week, its bookings and their money. All sums are whole euros.

References and codes follow from the arguments alone, so that the order of calls changes no state.
"""

from __future__ import annotations

import hashlib
from typing import Any

DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
NOW_HOURS = -15  # Sunday 09:00, counted from Monday 00:00
SURCHARGE = {"light": 0, "classic": 40, "flex": 90}
INCLUDED_BAGS = {"light": 0, "classic": 1, "flex": 2}
MOVE_FEE = {"classic": 45, "flex": 0}  # a light fare cannot be moved
SEATS = {"light": 6, "classic": 4, "flex": 2}
BAG_PRICE, MAX_BAGS = 35, 3
LONG_DELAY = 180  # minutes
_LETTERS = "BCDFGHJKLMNPQRSTVWXZ23456789"

# number: origin, destination, departure, price of a light fare, days
_TIMETABLE: dict[str, tuple[str, str, str, int, str]] = {
    "TRN101": ("Bergen", "Aberdeen", "07:30", 80, "Monday Wednesday Friday"),
    "TRN103": ("Bergen", "Aberdeen", "17:45", 95, "Monday Wednesday Thursday Sunday"),
    "TRN102": ("Aberdeen", "Bergen", "20:10", 85, "Monday Wednesday Friday Sunday"),
    "TRN210": ("Bergen", "Torshavn", "10:15", 120, "Tuesday Saturday"),
    "TRN305": ("Aberdeen", "Kirkwall", "09:00", 60, "Monday Tuesday Wednesday Thursday Friday"),
    "TRN307": ("Aberdeen", "Kirkwall", "16:20", 70, "Monday Wednesday Friday"),
    "TRN306": ("Kirkwall", "Aberdeen", "11:15", 65, "Monday Tuesday Wednesday Thursday Friday"),
    "TRN412": ("Torshavn", "Reykjavik", "12:40", 140, "Wednesday Friday Sunday"),
    "TRN520": ("Kirkwall", "Lerwick", "14:05", 50, "Tuesday Thursday Saturday"),
    "TRN614": ("Reykjavik", "Bergen", "08:50", 180, "Thursday Sunday"),
}

# Seats left where some are taken; everywhere else as in SEATS.
_FEW_SEATS: dict[str, dict[str, int]] = {
    "TRN101/Wednesday": {"light": 0, "classic": 2, "flex": 1},
    "TRN103/Thursday": {"light": 3, "classic": 0, "flex": 2},
    "TRN210/Saturday": {"light": 0, "classic": 0, "flex": 1},
    "TRN307/Friday": {"light": 4, "classic": 0, "flex": 0},
    "TRN520/Thursday": {"light": 0, "classic": 3, "flex": 2},
    "TRN614/Thursday": {"light": 2, "classic": 1, "flex": 0},
}

_FIELDS = ("passenger", "flight_no", "day", "fare_class", "bags", "paid", "card", "status")
_BOOKINGS: dict[str, tuple[str, str, str, str, int, int, str, str]] = {
    "H4K9TR": ("Signe Halvorsen", "TRN101", "Friday", "classic", 1, 120, "4417", "open"),
    "Q7XWB2": ("Tomas Reyes", "TRN103", "Wednesday", "light", 0, 95, "2086", "open"),
    "M3ZD8L": ("Ines Duarte", "TRN210", "Tuesday", "flex", 2, 210, "7751", "open"),
    "R9CVJ5": ("Walter Okafor", "TRN101", "Monday", "classic", 1, 120, "3308", "checked_in"),
    "T2NPK6": ("Freya Linklater", "TRN520", "Saturday", "classic", 1, 90, "6120", "open"),
    "B8LGX4": ("Joonas Virta", "TRN614", "Sunday", "light", 1, 215, "9045", "open"),
    "W5HDM7": ("Adaeze Nwosu", "TRN307", "Wednesday", "light", 0, 70, "1593", "open"),
    "K6RTF3": ("Callum Muir", "TRN305", "Tuesday", "classic", 1, 100, "8472", "open"),
    "D4SJQ9": ("Elin Joensen", "TRN412", "Friday", "flex", 2, 230, "5264", "open"),
    "V7BKN2": ("Rashid Karimi", "TRN306", "Thursday", "flex", 2, 155, "6638", "open"),
}


class Backend:
    """State: seats left, holds, bookings, refunds, vouchers, credit of cards, delays in minutes."""

    def __init__(self) -> None:
        keys = [f"{no}/{day}" for no, flight in _TIMETABLE.items() for day in flight[4].split()]
        self.state: dict[str, Any] = {
            "seats": {key: dict(_FEW_SEATS.get(key, SEATS)) for key in keys},
            "delays": {"TRN307/Wednesday": 260, "TRN614/Sunday": 45},
            "cards": {
                "4417": 900,
                "2086": 60,
                "7751": 1500,
                "3308": 400,
                "6120": 250,
                "9045": 30,
                "1593": 500,
                "8472": 320,
                "5264": 2000,
                "6638": 700,
                "5526": 600,
                "3187": 900,
                "4471": 90,
                "9312": 400,
                "7704": 40,
                "6249": 300,
                "1836": 450,
                "5905": 300,
            },
            "holds": {},
            "bookings": {
                ref: dict(zip(_FIELDS, values, strict=True)) | {"due": 0}
                for ref, values in _BOOKINGS.items()
            },
            "refunds": {},
            "vouchers": {},
        }

    def search_flights(self, origin: str, destination: str, day: str) -> dict[str, Any]:
        """The flights of a route on a day. Refused: origin and destination are the same."""
        if origin == destination:
            raise ValueError("origin and destination are the same")
        route = {
            no: flight for no, flight in _TIMETABLE.items() if flight[:2] == (origin, destination)
        }
        flights = [
            {"flight_no": no, "departs": departs}
            | {name: price + more for name, more in SURCHARGE.items()}
            for no, (_, _, departs, price, days) in route.items()
            if day in days.split()
        ]
        flown = {d for flight in route.values() for d in flight[4].split()}
        return {
            "count": len(flights),
            "flights": sorted(flights, key=lambda f: str(f["departs"])),
            "days": [d for d in DAYS if d in flown],
        }

    def quote_fare(self, flight_no: str, day: str, fare_class: str, bags: int) -> dict[str, Any]:
        """Seats left and price. Refused: no such flight that day, no such class, over 3 bags."""
        bags = int(bags)  # JSON may write 2 as 2.0
        seats = self._seats(flight_no, day)
        total = _fare(flight_no, fare_class) + _bag_price(fare_class, bags)
        return {"seats_left": seats[fare_class], "total": total}

    def hold_seat(
        self, flight_no: str, day: str, fare_class: str, bags: int, passenger: str
    ) -> dict[str, Any]:
        """Takes a seat until 20:00, unless the passenger has one on this flight already.

        Refused: as by quote_fare, and when the class is sold out.
        """
        bags = int(bags)  # JSON may write 2 as 2.0
        quote = self.quote_fare(flight_no, day, fare_class, bags)
        if self._is_on(flight_no, day, passenger):
            return {"held": False, "until": ""}
        if quote["seats_left"] == 0:
            raise ValueError(f"{fare_class} is sold out on {flight_no} on {day}")
        self._seats(flight_no, day)[fare_class] -= 1
        self.state["holds"][f"{flight_no}/{day}/{passenger}"] = {
            "fare_class": fare_class,
            "bags": bags,
            "price": quote["total"],
        }
        return {"held": True, "until": "20:00"}

    def issue_ticket(self, flight_no: str, day: str, passenger: str, card: str) -> dict[str, Any]:
        """Turns a hold into a booking, unless the card's credit is below the price.

        Refused: no seat is held, the card is not on file, or the passenger has booked this flight
        before and moved or given back that booking (it would have the same reference).
        """
        key = f"{flight_no}/{day}/{passenger}"
        hold = self.state["holds"].get(key)
        if hold is None:
            raise ValueError(f"no seat is held for {passenger} on {flight_no} on {day}")
        if card not in self.state["cards"]:
            raise ValueError(f"no card ending in {card} is on file")
        reference = _code("booking", key)
        if reference in self.state["bookings"]:
            raise ValueError(f"{passenger} has booked this flight before, see {reference}")
        if self.state["cards"][card] < hold["price"]:
            return {"issued": False, "reference": "", "paid": 0}
        self.state["cards"][card] -= hold["price"]
        del self.state["holds"][key]
        self.state["bookings"][reference] = {
            "passenger": passenger,
            "flight_no": flight_no,
            "day": day,
            "fare_class": hold["fare_class"],
            "bags": hold["bags"],
            "paid": hold["price"],
            "card": card,
            "status": "open",
            "due": 0,
        }
        return {"issued": True, "reference": reference, "paid": hold["price"]}

    def find_booking(self, reference: str, surname: str) -> dict[str, Any]:
        """The booking, if reference and surname belong together."""
        booking = self.state["bookings"].get(reference)
        names = ("passenger", "flight_no", "day", "fare_class")
        if booking is None or _surname(booking["passenger"]) != surname.casefold():
            return {"status": "none"} | dict.fromkeys(names, "") | {"bags": 0}
        status = "open" if booking["status"] == "open" else "closed"
        return {"status": status} | {n: booking[n] for n in names} | {"bags": booking["bags"]}

    def quote_move(self, reference: str, new_flight_no: str, new_day: str) -> dict[str, Any]:
        """Offer and price. Refused: the booking is not open, another route, the booked flight."""
        booking = self._open(reference)
        nothing = {"fee": 0, "difference": 0, "total": 0}
        old, fare_class = booking["flight_no"], booking["fare_class"]
        if _flight(new_flight_no)[:2] != _flight(old)[:2]:
            raise ValueError(f"{new_flight_no} does not fly the route of {old}")
        if (new_flight_no, new_day) == (old, booking["day"]):
            raise ValueError(f"{reference} is already booked on {new_flight_no} on {new_day}")
        if fare_class not in MOVE_FEE:
            return {"offer": "fixed"} | nothing
        seats = self.state["seats"].get(f"{new_flight_no}/{new_day}")
        if seats is None or seats[fare_class] == 0:
            return {"offer": "full"} | nothing
        fee = MOVE_FEE[fare_class]
        difference = max(0, _fare(new_flight_no, fare_class) - _fare(old, fare_class))
        total = fee + difference
        return {"offer": "possible", "fee": fee, "difference": difference, "total": total}

    def move_booking(self, reference: str, new_flight_no: str, new_day: str) -> dict[str, Any]:
        """Moves the booking. Refused: as by quote_move, and when its offer is not `possible`."""
        quote = self.quote_move(reference, new_flight_no, new_day)
        if quote["offer"] != "possible":
            raise ValueError(f"{reference} cannot be moved: the offer is {quote['offer']}")
        booking = self._open(reference)
        self._seats(booking["flight_no"], booking["day"])[booking["fare_class"]] += 1
        self._seats(new_flight_no, new_day)[booking["fare_class"]] -= 1
        booking |= {"flight_no": new_flight_no, "day": new_day}
        booking["due"] += quote["total"]
        return {
            "flight_no": new_flight_no,
            "day": new_day,
            "departs": _flight(new_flight_no)[2],
            "due": booking["due"],
        }

    def add_bags(self, reference: str, extra_bags: int) -> dict[str, Any]:
        """Adds bags up to three. Refused: the booking is not open, fewer than one bag."""
        extra_bags = int(extra_bags)
        booking = self._open(reference)
        if extra_bags < 1:
            raise ValueError("at least one bag must be added")
        added = booking["bags"] + extra_bags <= MAX_BAGS
        if added:
            booking["bags"] += extra_bags
            booking["due"] += BAG_PRICE * extra_bags
        return {"added": added, "bags": booking["bags"], "due": booking["due"]}

    def assess_refund(self, reference: str, reason: str) -> dict[str, Any]:
        """Amount, voucher and the rule behind them. Refused: not open, no such reason."""
        booking = self._open(reference)
        percent, rule = self._share(booking, reason)
        amount = booking["paid"] * percent // 100
        return {"amount": amount, "voucher": amount * 120 // 100, "rule": rule}

    def pay_refund(self, reference: str, reason: str) -> dict[str, Any]:
        """Cancels the ticket; the card gets the amount. Refused: nothing is due."""
        booking, refund = self._open(reference), self._due(reference, reason)
        self._cancel(booking)
        self.state["cards"][booking["card"]] += refund["amount"]
        self.state["refunds"][reference] = refund["amount"]
        return {"amount": refund["amount"], "card": booking["card"], "days": 5}

    def issue_voucher(self, reference: str, reason: str, email: str) -> dict[str, Any]:
        """Cancels the ticket and makes a voucher. Refused: nothing is due."""
        booking, refund = self._open(reference), self._due(reference, reason)
        self._cancel(booking)
        code = f"TV-{_code('voucher', reference)}"
        self.state["vouchers"][code] = {"value": refund["voucher"], "email": email}
        return {"voucher": refund["voucher"], "code": code}

    def _share(self, booking: dict[str, Any], reason: str) -> tuple[int, str]:
        """Percent of the price paid, and the rule in words."""
        fare_class = booking["fare_class"]
        hours = _hours_to(booking["flight_no"], booking["day"])
        if reason == "delay":
            delay = self.state["delays"].get(f"{booking['flight_no']}/{booking['day']}", 0)
            if delay >= LONG_DELAY:
                return 100, "After a delay of 3 hours or more every fare is paid back in full."
            return 0, f"The flight is delayed by {delay} minutes; it must be 180 or more."
        if reason == "illness":
            if fare_class == "light":
                return 40, "In case of illness 40 percent of a light fare are paid back."
            return 80, "In case of illness 80 percent of a classic or flex fare are paid back."
        if reason != "plans":
            raise ValueError(f"there is no reason {reason}")
        if fare_class == "flex":
            if hours >= 24:
                return 100, "A flex fare is paid back in full up to 24 hours before departure."
            return 50, "Within 24 hours of departure half of a flex fare is paid back."
        if fare_class == "classic" and hours >= 72:
            return 50, "Half of a classic fare is paid back up to 72 hours before departure."
        if fare_class == "classic":
            return 0, "A classic fare is not paid back within 72 hours of departure."
        return 0, "A light fare is not paid back when plans change."

    def _due(self, reference: str, reason: str) -> dict[str, Any]:
        refund = self.assess_refund(reference, reason)
        if refund["amount"] == 0:
            raise ValueError(f"nothing is paid back for {reference}: {refund['rule']}")
        return refund

    def _cancel(self, booking: dict[str, Any]) -> None:
        self._seats(booking["flight_no"], booking["day"])[booking["fare_class"]] += 1
        booking["status"] = "cancelled"

    def _open(self, reference: str) -> dict[str, Any]:
        booking: dict[str, Any] | None = self.state["bookings"].get(reference)
        if booking is None:
            raise ValueError(f"there is no booking {reference}")
        if booking["status"] != "open":
            raise ValueError(f"the booking {reference} is closed")
        return booking

    def _seats(self, flight_no: str, day: str) -> dict[str, int]:
        seats: dict[str, int] | None = self.state["seats"].get(f"{flight_no}/{day}")
        if seats is None:
            raise ValueError(f"there is no flight {flight_no} on {day}")
        return seats

    def _is_on(self, flight_no: str, day: str, passenger: str) -> bool:
        name = passenger.casefold()
        held = (key.casefold() for key in self.state["holds"])
        return f"{flight_no}/{day}/{name}".casefold() in held or any(
            (b["flight_no"], b["day"], b["passenger"].casefold()) == (flight_no, day, name)
            for b in self.state["bookings"].values()
            if b["status"] != "cancelled"
        )


def _flight(flight_no: str) -> tuple[str, str, str, int, str]:
    if flight_no not in _TIMETABLE:
        raise ValueError(f"there is no flight {flight_no}")
    return _TIMETABLE[flight_no]


def _fare(flight_no: str, fare_class: str) -> int:
    if fare_class not in SURCHARGE:
        raise ValueError(f"there is no fare class {fare_class}")
    return _flight(flight_no)[3] + SURCHARGE[fare_class]


def _bag_price(fare_class: str, bags: int) -> int:
    if not 0 <= bags <= MAX_BAGS:
        raise ValueError(f"a passenger may have 0 to {MAX_BAGS} bags, not {bags}")
    return BAG_PRICE * max(0, bags - INCLUDED_BAGS[fare_class])


def _hours_to(flight_no: str, day: str) -> float:
    hour, minute = map(int, _flight(flight_no)[2].split(":"))
    return DAYS.index(day) * 24 + hour + minute / 60 - NOW_HOURS


def _surname(passenger: str) -> str:
    return passenger.split()[-1].casefold()


def _code(kind: str, text: str) -> str:
    """Six letters or digits that follow from the text; case does not matter."""
    digest = hashlib.sha256(f"{kind}/{text}".casefold().encode()).digest()
    return "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:6])
