"""The books of the Alder House: rooms, bookings, waiting list, parking, room service.

The clock stands at the `now` of role.yaml. Numbers that are made up follow from the arguments
alone, so the order of calls changes no state.
"""

from __future__ import annotations

import copy
import hashlib
from datetime import date, datetime, timedelta
from typing import Any

NOW = datetime(2031, 5, 14, 9, 30)
LAST_NIGHT = date(2031, 12, 30)  # the house closes for the winter
ROOMS = {  # rooms of the type, guests that one takes, price of a night
    "single": {"rooms": 4, "guests": 1, "price": 84},
    "double": {"rooms": 8, "guests": 2, "price": 118},
    "family": {"rooms": 3, "guests": 4, "price": 164},
    "suite": {"rooms": 2, "guests": 3, "price": 232},
}
WEEKEND_EXTRA = 20  # for the nights that begin on a Friday or Saturday
MOST_NIGHTS = 14
MOST_BOOKINGS = 3  # open ones, for one e-mail address
FREE_DAYS = 7  # cancelling is free until so many days before arrival, then the first night is due
FIXED_DAYS = 2  # nearer to arrival than this a booking is fixed
PARKING_PRICE = 12
CREDIT_LIMIT = 60  # what the reception may take off a bill
CREDIT_HOURS = 24
LATE_MINUTES = 20
MANAGER_FROM, MANAGER_UNTIL = "10:00", "18:00"

# Nights on which rooms are held by guests who do not appear in the bookings below.
_TAKEN = {
    "single": {"2031-06-06": 4, "2031-06-07": 4, "2031-09-12": 3},
    "double": {"2031-06-06": 8, "2031-06-07": 8, "2031-05-30": 7, "2031-07-04": 5},
    "family": {"2031-06-06": 3, "2031-08-02": 3, "2031-08-03": 3, "2031-08-04": 3},
    "suite": {"2031-05-24": 2, "2031-06-06": 2, "2031-06-07": 2, "2031-09-13": 1},
}
_BOOKINGS = [  # number, guest, e-mail, type, arrival, nights, guests, rate
    ("AH-2041", "Ines Okafor", "ines@okafor.example", "double", "2031-06-13", 2, 2, "flexible"),
    ("AH-2077", "Tomasz Wierzba", "wierzba@kiln.example", "family", "2031-05-19", 3, 4, "flexible"),
    ("AH-2115", "Greta Lindqvist", "greta@lq.example", "single", "2031-07-02", 1, 1, "saver"),
    ("AH-2130", "Paul Achterberg", "paul@dune.example", "suite", "2031-05-15", 2, 2, "flexible"),
    ("AH-2162", "Noor Haddad", "noor.h@reed.example", "double", "2031-06-20", 3, 2, "flexible"),
    ("AH-2188", "Leopold Brandt", "leo@brandt.example", "single", "2031-05-18", 4, 1, "flexible"),
    ("AH-2203", "Carmen Vidal", "cvidal@lumen.example", "double", "2031-07-11", 2, 2, "flexible"),
    ("AH-2219", "Yusuf Demir", "yusuf@fjall.example", "single", "2031-06-02", 2, 1, "flexible"),
    ("AH-2236", "Hester Quill", "hester@quill.example", "suite", "2031-09-12", 2, 2, "flexible"),
    ("AH-2264", "Alma Reyes", "alma@reyes.example", "double", "2031-07-18", 2, 2, "flexible"),
    ("AH-2270", "Bastian Krol", "bastian@krol.example", "single", "2031-08-15", 2, 1, "flexible"),
    ("AH-2281", "Femi Adeyemi", "femi@ade.example", "double", "2031-06-30", 3, 2, "flexible"),
    ("AH-2293", "Hugo Perlman", "hugo@perlman.example", "family", "2031-05-15", 2, 4, "flexible"),
    ("AH-2250", "Marta Delgado", "marta@walks.example", "double", "2031-06-27", 1, 2, "flexible"),
    ("AH-2251", "Marta Delgado", "marta@walks.example", "double", "2031-07-25", 1, 2, "flexible"),
    ("AH-2252", "Marta Delgado", "marta@walks.example", "single", "2031-08-22", 1, 1, "flexible"),
]
_ORDERS = [  # number, room, dish, price, delivered, minutes late
    ("RS-311", "204", "mushroom omelette", 16, "2031-05-14 08:40", 12),
    ("RS-314", "117", "pancakes with plum jam", 14, "2031-05-14 08:55", 38),
    ("RS-318", "302", "trout fillet", 27, "2031-05-13 20:15", 5),
    ("RS-320", "302", "cheese board", 19, "2031-05-13 21:05", 8),
    ("RS-322", "109", "champagne breakfast", 92, "2031-05-14 09:05", 0),
    ("RS-297", "211", "club sandwich", 18, "2031-05-12 22:30", 25),
    ("RS-325", "211", "porridge with pear", 9, "2031-05-14 09:10", 2),
    ("RS-327", "406", "lentil soup", 12, "2031-05-13 19:40", 45),
]
_KITCHEN = {  # minutes to make a dish now; None: it cannot be made at this hour
    "mushroom omelette": 15,
    "pancakes with plum jam": 20,
    "trout fillet": None,
    "cheese board": 10,
    "champagne breakfast": 25,
    "club sandwich": None,
    "porridge with pear": 10,
    "lentil soup": None,
}


class Backend:
    """State: bookings, waiting list, parking places, orders, calls that the manager will make."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {
            "taken": copy.deepcopy(_TAKEN),
            "bookings": {b[0]: _booking(*b[1:]) for b in _BOOKINGS},
            "unpaid": {"r.kessler@posthorn.example": 96},
            "waiting": {},
            "parking": {},
            "orders": {o[0]: _order(*o[1:]) for o in _ORDERS},
            "manager_calls": {},
        }

    # --- reserve_room ---

    def find_rooms(self, room_type: str, arrival: str, nights: int, guests: int) -> dict[str, Any]:
        """Is a room of the type free for so many guests, and what does the stay cost?"""
        nights, guests = int(nights), int(guests)  # JSON may write 2 as 2.0
        room, stay = _room(room_type), _stay(arrival, nights)
        left = self._left(room_type, stay)
        status = "too_small" if guests > room["guests"] else "free" if left > 0 else "full"
        return {
            "status": status,
            "rooms_left": left,
            "takes_guests": room["guests"],
            "total": _total(room_type, stay) if status == "free" else 0,
        }

    def reserve_room(
        self, room_type: str, arrival: str, nights: int, guests: int, guest_name: str, email: str
    ) -> dict[str, Any]:
        """Refused to guests with an unpaid bill or too many open bookings."""
        nights, guests = int(nights), int(guests)  # JSON may write 2 as 2.0
        found = self.find_rooms(room_type, arrival, nights, guests)
        if found["status"] != "free":
            raise ValueError(f"no {room_type} room can be reserved for this stay")
        address = email.casefold()
        mine = [b for b in self.state["bookings"].values() if b["email"] == address]
        if address in self.state["unpaid"]:
            return {"reserved": False, "booking_number": "", "reason": "unpaid_bill"}
        if sum(b["status"] == "open" for b in mine) >= MOST_BOOKINGS:
            return {"reserved": False, "booking_number": "", "reason": "too_many_bookings"}
        number = f"AH-{_digits(room_type, arrival, nights, address)}"
        if number in self.state["bookings"]:
            raise ValueError(f"this stay is reserved already, as {number}")
        self.state["bookings"][number] = _booking(
            guest_name, address, room_type, arrival, nights, guests, "flexible"
        )
        return {"reserved": True, "booking_number": number, "reason": ""}

    def join_waiting_list(
        self, room_type: str, arrival: str, nights: int, email: str
    ) -> dict[str, Any]:
        """The guest hears by e-mail a week before arrival, or tomorrow if that is past."""
        nights = int(nights)
        stay = _stay(arrival, nights)
        if self._left(room_type, stay) > 0:
            raise ValueError(f"a {room_type} room is free, so there is nothing to wait for")
        number = f"W-{_digits(room_type, arrival, nights, email.casefold())}"
        self.state["waiting"][number] = {
            "room_type": room_type,
            "arrival": arrival,
            "nights": nights,
            "email": email.casefold(),
        }
        answer = max(stay[0] - timedelta(7), NOW.date() + timedelta(1))
        return {"waiting_number": number, "answer_by": answer.isoformat()}

    def reserve_parking(self, plate: str, arrival: str, nights: int) -> dict[str, Any]:
        """A place in the yard for each night of the stay."""
        nights = int(nights)
        _stay(arrival, nights)
        place = f"Y-{int(_digits(plate, arrival)) % 30 + 1:02d}"
        self.state["parking"][f"{plate} {arrival}"] = {"place": place, "nights": nights}
        return {"place": place, "fee": PARKING_PRICE * nights}

    # --- change_reservation ---

    def find_booking(self, booking_number: str, last_name: str) -> dict[str, Any]:
        """A booking is told only to who knows number and name. Cancelled ones are not found."""
        booking = self.state["bookings"].get(booking_number)
        known = booking is not None and booking["status"] == "open"
        if not known or booking["guest_name"].split()[-1].casefold() != last_name.casefold():
            return _told("not_found", "", None)
        reason = _fixed(booking)
        return _told("fixed" if reason else "open", reason, booking)

    def check_change(self, booking_number: str, arrival: str, nights: int) -> dict[str, Any]:
        """Can the booking be moved, and what changes in its price?"""
        nights = int(nights)
        booking, stay = self._changeable(booking_number), _stay(arrival, nights)
        room_type = booking["room_type"]
        if self._left(room_type, stay, without=booking_number) <= 0:
            return {"possible": False, "new_total": 0, "difference": 0}
        new = _total(room_type, stay)
        return {"possible": True, "new_total": new, "difference": new - _price(booking)}

    def change_booking(self, booking_number: str, arrival: str, nights: int) -> dict[str, Any]:
        """Moves it; refused where `check_change` says that it is not possible."""
        nights = int(nights)
        checked = self.check_change(booking_number, arrival, nights)
        if not checked["possible"]:
            raise ValueError(f"{booking_number} cannot be moved to {arrival}")
        self.state["bookings"][booking_number].update(arrival=arrival, nights=nights)
        return {"arrival": arrival, "nights": nights, "total": checked["new_total"]}

    def quote_cancellation(self, booking_number: str) -> dict[str, Any]:
        """Free until a week before arrival, then the price of the first night."""
        booking = self._changeable(booking_number)
        first = _stay(booking["arrival"], 1)
        near = (first[0] - NOW.date()).days < FREE_DAYS
        return {"fee": _total(booking["room_type"], first) if near else 0}

    def cancel_booking(self, booking_number: str) -> dict[str, Any]:
        """Sets the room free; what is due stays with the booking."""
        fee = self.quote_cancellation(booking_number)["fee"]
        self.state["bookings"][booking_number].update(status="cancelled", fee=fee)
        return {"cancelled": booking_number, "fee": fee}

    # --- room_service_complaint ---

    def find_order(self, room_number: str, order_number: str) -> dict[str, Any]:
        """An order is told only to the room that it went to."""
        order = self.state["orders"].get(order_number)
        if order is None or order["room_number"] != room_number:
            return {"found": False, "dish": "", "price": 0, "delivered": "", "minutes_late": 0}
        keys = ("dish", "price", "delivered", "minutes_late")
        return {"found": True} | {key: order[key] for key in keys}

    def check_kitchen(self, order_number: str) -> dict[str, Any]:
        """Can the dish be made now, and in how many minutes?"""
        minutes = _KITCHEN[self._unsettled(order_number)["dish"]]
        return {"can_cook": minutes is not None, "minutes": minutes or 0}

    def send_replacement(self, order_number: str) -> dict[str, Any]:
        """Has the dish made once more, free of charge."""
        minutes = _KITCHEN[self._unsettled(order_number)["dish"]]
        if minutes is None:
            raise ValueError("the kitchen cannot make this dish now")
        self.state["orders"][order_number]["settled"] = "replacement"
        return {"arrives": (NOW + timedelta(minutes=minutes)).strftime("%H:%M")}

    def credit_order(self, order_number: str, complaint: str) -> dict[str, Any]:
        """Takes the price off the bill, half of it for a late dish, within the rules."""
        order = self._unsettled(order_number)
        amount = order["price"] if complaint != "late" else order["price"] // 2
        reason = ""
        if NOW - datetime.fromisoformat(order["delivered"]) > timedelta(hours=CREDIT_HOURS):
            reason = "too_old"
        elif amount > CREDIT_LIMIT:
            reason = "over_limit"
        elif complaint == "late" and order["minutes_late"] < LATE_MINUTES:
            reason = "not_late"
        if reason:
            return {"credited": False, "amount": 0, "reason": reason}
        order["settled"] = f"credit of {amount} for {complaint}"
        return {"credited": True, "amount": amount, "reason": ""}

    def call_manager(self, room_number: str, callback_time: str) -> dict[str, Any]:
        """The manager calls the room today, at the time wanted or when she is next in."""
        if not MANAGER_FROM <= callback_time <= MANAGER_UNTIL:
            callback_time = MANAGER_FROM if callback_time < MANAGER_FROM else MANAGER_UNTIL
        self.state["manager_calls"][room_number] = callback_time
        return {"manager": "Ms Ferrante", "calls_at": callback_time}

    # --- helpers ---

    def _left(self, room_type: str, stay: list[date], without: str = "") -> int:
        """Rooms of the type that are free in every night of the stay."""
        held = [
            _stay(b["arrival"], b["nights"], past=True)
            for number, b in self.state["bookings"].items()
            if number != without and (b["room_type"], b["status"]) == (room_type, "open")
        ]
        taken = self.state["taken"][room_type]
        used = max(taken.get(n.isoformat(), 0) + sum(n in nights for nights in held) for n in stay)
        return max(0, int(_room(room_type)["rooms"] - used))

    def _changeable(self, number: str) -> dict[str, Any]:
        booking: dict[str, Any] | None = self.state["bookings"].get(number)
        if booking is None or booking["status"] != "open":
            raise ValueError(f"there is no open booking {number}")
        if _fixed(booking):
            raise ValueError(f"{number} can be neither moved nor cancelled")
        return booking

    def _unsettled(self, number: str) -> dict[str, Any]:
        order: dict[str, Any] | None = self.state["orders"].get(number)
        if order is None:
            raise ValueError(f"there is no order {number}")
        if order["settled"]:
            raise ValueError(f"{number} is settled already ({order['settled']})")
        return order


def _booking(*values: str | int) -> dict[str, Any]:
    fields = ("guest_name", "email", "room_type", "arrival", "nights", "guests", "rate")
    return dict(zip(fields, values, strict=True)) | {"status": "open"}


def _order(room: str, dish: str, price: int, delivered: str, late: int) -> dict[str, Any]:
    return {
        "room_number": room,
        "dish": dish,
        "price": price,
        "delivered": delivered,
        "minutes_late": late,
        "settled": "",
    }


def _told(status: str, reason: str, booking: dict[str, Any] | None) -> dict[str, Any]:
    """What `find_booking` returns."""
    if booking is None:
        return {
            "status": status,
            "reason": reason,
            "booked_type": "",
            "booked_from": "",
            "booked_nights": 0,
            "total": 0,
        }
    return {
        "status": status,
        "reason": reason,
        "booked_type": booking["room_type"],
        "booked_from": booking["arrival"],
        "booked_nights": booking["nights"],
        "total": _price(booking),
    }


def _room(room_type: str) -> dict[str, int]:
    if room_type not in ROOMS:
        raise ValueError(f"there are no {room_type} rooms; there are {', '.join(ROOMS)}")
    return ROOMS[room_type]


def _stay(arrival: str, nights: int, *, past: bool = False) -> list[date]:
    """The nights of a stay. Raises ValueError for days that the house cannot be booked on."""
    first = date.fromisoformat(arrival)
    if not 1 <= nights <= MOST_NIGHTS:
        raise ValueError(f"a stay has 1 to {MOST_NIGHTS} nights")
    stay = [first + timedelta(n) for n in range(nights)]
    if not past and first < NOW.date():
        raise ValueError(f"{arrival} is past")
    if stay[-1] > LAST_NIGHT:
        raise ValueError(f"the house is open until {LAST_NIGHT}")
    return stay


def _total(room_type: str, stay: list[date]) -> int:
    weekend = sum(night.weekday() in (4, 5) for night in stay)
    return ROOMS[room_type]["price"] * len(stay) + WEEKEND_EXTRA * weekend


def _price(booking: dict[str, Any]) -> int:
    return _total(booking["room_type"], _stay(booking["arrival"], booking["nights"], past=True))


def _fixed(booking: dict[str, Any]) -> str:
    """Why a booking can be neither moved nor cancelled, "" when it can."""
    days = (date.fromisoformat(booking["arrival"]) - NOW.date()).days
    if booking["rate"] == "saver":
        return "saver_rate"
    return "too_close" if days < FIXED_DAYS else ""


def _digits(*parts: str | int) -> str:
    """Four digits that follow from the parts."""
    text = "|".join(str(part) for part in parts)
    return f"{int(hashlib.sha256(text.encode()).hexdigest(), 16) % 7000 + 3000}"
