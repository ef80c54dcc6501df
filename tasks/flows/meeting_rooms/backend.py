"""The meeting rooms of Kiln House, their bookings and what the kitchen brings.

Numbers of bookings follow from the arguments alone, so that the order of calls changes no state.
"""

from __future__ import annotations

from datetime import date
from typing import Any

TODAY, NOW = date(2031, 9, 15), 8 * 60 + 30  # minutes of the day
OPENS, CLOSES, STEP = 8 * 60, 18 * 60, 30
DAYS_AHEAD, MOST_HOURS = 30, 4
NOTICE = {"coffee": 2, "sandwiches": 24, "lunch": 48}  # hours the kitchen needs
PRICE = {"coffee": 4, "sandwiches": 9, "lunch": 17}  # euros for each person
CANCEL_HOURS = 2

# name: seats, equipment; in the order of their size
ROOMS: dict[str, tuple[int, tuple[str, ...]]] = {
    "Ember": (4, ("screen",)),
    "Slip": (6, ("whiteboard",)),
    "Glaze": (8, ("screen", "whiteboard")),
    "Bisque": (12, ("screen", "video")),
    "Kiln": (20, ("screen", "video", "whiteboard")),
}

# room, day, start, hours, people, organiser, title
_BOOKED: list[tuple[str, str, str, int, int, str, str]] = [
    ("Slip", "2031-09-15", "09:30", 2, 3, "Marlow", "Budget review"),
    ("Bisque", "2031-09-15", "09:00", 4, 10, "Anand", "Training of new drivers"),
    ("Glaze", "2031-09-16", "10:00", 3, 7, "Petrova", "Design critique"),
    ("Bisque", "2031-09-16", "10:00", 2, 9, "Sorley", "Call with the mill"),
    ("Kiln", "2031-09-16", "08:00", 4, 18, "Anand", "Assembly of the house"),
    ("Kiln", "2031-09-17", "13:00", 3, 15, "Hale", "Workshop on glazes"),
    ("Ember", "2031-09-17", "14:00", 1, 2, "Castell", "Interview"),
    ("Bisque", "2031-09-18", "09:00", 4, 11, "Petrova", "Board, first half"),
    ("Bisque", "2031-09-18", "13:00", 4, 11, "Petrova", "Board, second half"),
    ("Kiln", "2031-09-18", "08:00", 4, 16, "Hale", "Fire drill talks"),
    ("Kiln", "2031-09-18", "12:00", 4, 16, "Hale", "First aid course"),
    ("Kiln", "2031-09-18", "16:00", 2, 16, "Hale", "Choir"),
    ("Slip", "2031-09-19", "10:00", 1, 4, "Whitlock", "Weekly tea"),
]


class Backend:
    """State: bookings by their number."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {"bookings": {}}
        for room, day, start, hours, people, organiser, title in _BOOKED:
            self.state["bookings"][_number(room, day, start)] = {
                "room": room,
                "day": day,
                "start": start,
                "hours": hours,
                "people": people,
                "organiser": organiser,
                "title": title,
                "menu": "",
            }

    def find_rooms(
        self, day: str, start: str, hours: int, people: int, equipment: str
    ) -> dict[str, Any]:
        """Free rooms, the smallest first. Refused: outside the days and hours of the house."""
        begin = _begin(day, start, hours)
        rooms = [
            {"room": name, "seats": ROOMS[name][0]}
            for name in self._free(day, begin, hours)
            if _fits(name, people, equipment)
        ]
        return {"count": len(rooms), "rooms": rooms}

    def next_free_time(
        self, day: str, start: str, hours: int, people: int, equipment: str
    ) -> dict[str, Any]:
        """The first later start on that day with a free room. Refused: as by find_rooms."""
        first = _begin(day, start, hours) + STEP
        for begin in range(first, CLOSES - 60 * int(hours) + 1, STEP):
            for name in self._free(day, begin, hours):
                if _fits(name, people, equipment):
                    return {"found": True, "free_at": _clock(begin), "free_room": name}
        return {"found": False, "free_at": "", "free_room": ""}

    def book_room(
        self, room: str, day: str, start: str, hours: int, people: int, organiser: str
    ) -> dict[str, Any]:
        """Books a room, unless the organiser has another meeting then.

        Refused: as by find_rooms, no such room, too few seats, taken by somebody else.
        """
        begin = _begin(day, start, hours)
        if room not in ROOMS:
            raise ValueError(f"there is no room {room}")
        for number, other in self._during(day, begin, hours):
            if other["organiser"].casefold() == organiser.casefold():
                meeting = f"{other['title'] or 'Meeting'} at {other['start']} in {other['room']}"
                return {"outcome": "clash", "booking_id": number, "meeting": meeting}
        if room not in self._free(day, begin, hours):
            raise ValueError(f"{room} is taken on {day} at {start}")
        if people > ROOMS[room][0]:
            raise ValueError(f"{room} has {ROOMS[room][0]} seats, {people} are needed")
        number = _number(room, day, start)
        self.state["bookings"][number] = {
            "room": room,
            "day": day,
            "start": start,
            "hours": int(hours),  # JSON may write 2 as 2.0
            "people": int(people),
            "organiser": organiser,
            "title": "",
            "menu": "",
        }
        meeting = f"Meeting at {start} in {room}"
        return {"outcome": "booked", "booking_id": number, "meeting": meeting}

    def cancel_booking(self, booking_id: str) -> dict[str, Any]:
        """Cancels a meeting that begins in two hours or later. Refused: no such booking."""
        booking = self._booking(booking_id)
        cancelled = _hours_to(booking) >= CANCEL_HOURS
        if cancelled:
            del self.state["bookings"][booking_id]
        return {"cancelled": cancelled, "begins": f"{booking['day']} {booking['start']}"}

    def order_catering(self, booking_id: str, menu: str) -> dict[str, Any]:
        """Orders for all people of a meeting, if the kitchen has notice enough.

        Refused: no such booking or menu, or something is ordered already.
        """
        booking = self._booking(booking_id)
        if menu not in NOTICE:
            raise ValueError(f"the kitchen has no {menu}")
        if booking["menu"]:
            raise ValueError(f"{booking['menu']} is ordered already for {booking_id}")
        ordered = _hours_to(booking) >= NOTICE[menu]
        if ordered:
            booking["menu"] = menu
        price = PRICE[menu] * booking["people"] if ordered else 0
        return {"ordered": ordered, "price": price, "notice": NOTICE[menu]}

    def _booking(self, booking_id: str) -> dict[str, Any]:
        booking: dict[str, Any] | None = self.state["bookings"].get(booking_id)
        if booking is None:
            raise ValueError(f"there is no booking {booking_id}")
        return booking

    def _during(self, day: str, begin: int, hours: int) -> list[tuple[str, dict[str, Any]]]:
        """Bookings of that time, by their start."""
        found = [
            (number, b)
            for number, b in self.state["bookings"].items()
            if b["day"] == day
            and _minutes(b["start"]) < begin + 60 * hours
            and begin < _minutes(b["start"]) + 60 * b["hours"]
        ]
        return sorted(found, key=lambda pair: (pair[1]["start"], pair[0]))

    def _free(self, day: str, begin: int, hours: int) -> list[str]:
        taken = {b["room"] for _, b in self._during(day, begin, hours)}
        return [name for name in ROOMS if name not in taken]


def _fits(room: str, people: int, equipment: str) -> bool:
    seats, has = ROOMS[room]
    return people <= seats and (equipment == "none" or equipment in has)


def _begin(day: str, start: str, hours: int) -> int:
    """The start in minutes of the day, once day and time are seen to be bookable."""
    ahead = (_date(day) - TODAY).days
    begin = _minutes(start)
    if not 0 <= ahead <= DAYS_AHEAD or _date(day).weekday() > 4:
        raise ValueError(f"{day} is no working day within {DAYS_AHEAD} days")
    if not 1 <= hours <= MOST_HOURS:
        raise ValueError(f"rooms are booked for 1 to {MOST_HOURS} hours, not {hours}")
    if begin < OPENS or begin + 60 * hours > CLOSES:
        raise ValueError(f"{start} for {hours} hours is not between 08:00 and 18:00")
    if ahead == 0 and begin < NOW:
        raise ValueError(f"{start} has passed today")
    return begin


def _hours_to(booking: dict[str, Any]) -> float:
    days = (_date(booking["day"]) - TODAY).days
    return days * 24 + (_minutes(booking["start"]) - NOW) / 60


def _date(day: str) -> date:
    try:
        return date.fromisoformat(day)
    except ValueError:
        raise ValueError(f"there is no day {day}") from None


def _minutes(clock: str) -> int:
    return int(clock[:2]) * 60 + int(clock[3:])


def _clock(minutes: int) -> str:
    return f"{minutes // 60:02d}:{minutes % 60:02d}"


def _number(room: str, day: str, start: str) -> str:
    """KH-S0915-0930 for Slip on the 15th of September at 09:30: nothing else begins there then."""
    return f"KH-{room[0]}{day[5:7]}{day[8:]}-{start[:2]}{start[3:]}"
