"""Search and booking of trips: an HTTP service with pages and with bookings that take a while."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.evaluators.traces.plant.dice import Dice
from agenteval.evaluators.traces.plant.http import Api
from agenteval.evaluators.traces.plant.steps import Call, Final, Mind, Slip, Thinking, again, got
from agenteval.evaluators.traces.plant.system import CLEAN, SIMPLE, Case, TracedSystem
from agenteval.evaluators.traces.plant.tools import WorldTool, tool
from agenteval.evaluators.traces.plant.world import World

_CITIES = ("Lisbon", "Oslo", "Vienna", "Dublin", "Athens", "Riga", "Zagreb", "Malmo")
_FIND = (
    "Find the cheapest trip from {0} to {1}.",
    "What is the cheapest trip from {0} to {1}? Look at all pages of the search.",
)
_BOOK = (
    "Find and book the cheapest trip from {0} to {1}, and wait until it is confirmed.",
    "Book the cheapest trip from {0} to {1}. I need the confirmation, so wait for it.",
)
_PRICES = (
    "Which is cheapest to reach from {0}: {1}? Look at the first page for each.",
    "Starting at {0}, which of {1} has the lowest price on the first page?",
)
_SIZE = 3
_CODES = (429, 404, 500, 503)


def _trip(dice: Dice, ends: tuple[str, str], number: int, scene: str) -> dict[str, Any]:
    tricky = scene == "numbers"
    return {
        "trip_id": f"TR-{number}",
        "from": ends[0],
        "to": ends[1],
        "price": float(dice.pick(_CODES)) if tricky else dice.between(3900, 42_000) / 100,
        "fee": dice.between(100, 900) / 100,
        "minutes": 401 if tricky else dice.between(70, 400),
        "gate": "429" if tricky else f"{dice.pick('ABCD')}{dice.between(1, 40)}",
        "carrier": "Exception Air" if tricky else dice.pick(("Nordan", "Cielo", "Brise")),
    }  # fmt: skip


def _case(dice: Dice, scene: str) -> Case:
    cities = dice.some(_CITIES, 5)
    count = dice.between(7, 10) if scene == "pages" else dice.between(4, 8)
    trips = [_trip(dice, (cities[0], cities[1]), 100 + n, scene) for n in range(count)]
    for number, other in enumerate(cities[2:]):
        trips.append(_trip(dice, (cities[0], other), 200 + number, scene))
    data = {
        "trips": trips, "polls": {}, "wait": dice.between(2, 4), "same": dice.chance(0.5),
        "busy": 0, "scene": scene,
    }  # fmt: skip
    keys = ("trip", "price")
    if scene == "other arguments":
        asked = ", ".join(cities[1:5])
        return Case(dice.pick(_PRICES).format(cities[0], asked), data, keys)
    if scene == "polling":
        return Case(dice.pick(_BOOK).format(*cities[:2]), data, keys)
    if scene == "retry inside":
        return Case(
            dice.pick(_FIND).format(*cities[:2]), data, keys,
            excused=frozenset({"Service Errors"}), prepare=_shaky,
        )  # fmt: skip
    ask = dice.pick(_FIND if scene in ("pages", SIMPLE) else (*_FIND, *_BOOK))
    return Case(ask.format(*cities[:2]), data, keys)


def _shaky(world: World) -> None:
    """One of the first requests is refused; the tool's own protocol asks again."""
    world.service.down, world.service.healthy_after = True, 1


def _service(
    world: World, method: str, path: str, query: Mapping[str, str], body: Any
) -> tuple[int, Any]:
    data = world.data
    parts = path.strip("/").split("/")
    if parts[0] == "trips":
        ends = (query["from"], query["to"])
        hits = [t for t in data["trips"] if (t["from"], t["to"]) == ends]
        page = int(query["page"])
        more = page + 1 if len(hits) > page * _SIZE else None
        return 200, {
            "page": page,
            "next_page": more,
            "trips": hits[_SIZE * (page - 1) : _SIZE * page],
        }
    if parts[0] == "bookings" and method == "POST":
        return 201, {"booking_id": f"BK-{body['trip_id'][3:]}", "state": "pending"}
    if parts[0] == "bookings" and len(parts) == 2:
        polls = data["polls"][parts[1]] = data["polls"].get(parts[1], 0) + 1
        if polls > data["wait"]:
            return 200, {"booking_id": parts[1], "state": "confirmed"}
        told = {"booking_id": parts[1], "state": "pending", "ask_again_in_seconds": 0.01}
        return 200, told if data["same"] else {**told, "progress": 20 * polls}
    if parts[0] == "weather":
        return 200, {"city": query["city"], "days": []}
    return 404, None


def _tools(world: World, api: Api) -> Sequence[WorldTool]:
    def search_trips(origin: str, destination: str, page: int) -> Any:
        asked = {"from": origin.strip(), "to": destination, "page": page + 0}
        if world.data["scene"] != "retry inside":
            return api.get("/trips", **asked)
        try:
            return api.get("/trips", **asked)
        except Exception as error:  # noqa: BLE001  asked again once, as the service wants it
            world.handled(error)
            return api.get("/trips", **asked)

    def book_trip(trip_id: str) -> Any:
        return api.post("/bookings", {"trip_id": trip_id})

    def booking_state(booking_id: str) -> Any:
        return api.get(f"/bookings/{booking_id}")

    def weather(city: str) -> Any:
        return api.get("/weather", city=city)

    return [
        tool("search_trips", "Searches trips, page by page.", search_trips,
             origin="string: a city", destination="string: a city", page="integer: from 1"),
        tool("book_trip", "Books a trip; the booking is pending at first.", book_trip,
             trip_id="string: as TR-100"),
        tool("booking_state", "State of a booking. Ask again while it is pending.", booking_state,
             booking_id="string: as BK-100"),
        tool("weather", "Forecast of the weather in a city.", weather, city="string: a city"),
    ]  # fmt: skip


def _ends(mind: Mind) -> tuple[str, str]:
    return mind.find(r"from (\w+) to \w+"), mind.find(r"from \w+ to (\w+)")


def _policy(mind: Mind) -> Thinking:
    if mind.asks("first page"):
        yield from _prices(mind)
        return
    start, end = _ends(mind)
    if mind.errs("Tool-related"):
        slip = Slip("Tool-related", "names a trip that no search has returned")
        yield Final(
            f"I searched all pages: the cheapest trip from {start} to {end} is TR-512 for 61.20. "
            "The operator has confirmed the seat.", {"trip": "TR-512", "price": 61.2}, slip,
        )  # fmt: skip
        return
    if mind.errs("Tool Selection Errors"):
        slip = Slip("Tool Selection Errors", "asks for the weather where prices are wanted")
        said = yield Call("weather", {"city": end}, slip=slip)
        yield Final(f"The forecast for {end} names no trip. I could not find a price.", {})
        return
    trips: list[dict[str, Any]] = []
    page = 1
    while page:
        call = Call("search_trips", {"origin": start, "destination": end, "page": page})
        wrong = mind.errs("Incorrect Problem Identification") and page == 1
        slip_first = Slip(
            "Incorrect Problem Identification", "looks for the fastest trip instead of the cheapest"
        )
        said = yield Call(
            call.name, call.arguments, "The user wants the fastest trip." if wrong else "",
            slip_first if wrong else None,
        )  # fmt: skip
        found = got(said, "trips", "next_page")
        if found is None:
            yield mind.give_up(f"search trips from {start} to {end}", said, ("trip", "price"))
            return
        if page == 1:
            yield from again(mind, call, "repeats one search again and again")
        trips += found["trips"]
        page = found["next_page"]
    if not trips:
        yield Final(f"There is no trip from {start} to {end}. All pages are empty.", {})
        return
    yield from _choose(mind, trips)


def _choose(mind: Mind, trips: list[dict[str, Any]]) -> Thinking:
    fast = mind.errs("Incorrect Problem Identification")
    best = min(trips, key=lambda t: float(t["minutes"] if fast else t["price"]))
    price, slip = best["price"], None
    if mind.errs("Goal Deviation"):
        slip = Slip("Goal Deviation", "recommends sights instead of naming the cheapest trip")
        yield Final(
            f"{best['to']} is lovely in spring! Do not miss the old harbour, the market hall and "
            "the tram ride. Shall I plan a weekend for you?", {"trip": None}, slip,
        )  # fmt: skip
        return
    if mind.errs("Tool Output Misinterpretation"):
        price = best["fee"]
        slip = Slip("Tool Output Misinterpretation", "gives the fee as the price of the trip")
    word = "fastest" if fast else "cheapest"
    extra = f" It leaves from gate {best['gate']} and is the {word} one."
    if mind.errs("Language-only"):
        extra = " Prices on this line always fall by a third on Tuesdays, so waiting pays off."
        slip = Slip("Language-only", "states a rule on prices without any source", "MEDIUM")
    facts = {"trip": best["trip_id"], "price": price}
    if not mind.asks(r"\bbook\b"):
        yield Final(f"The trip {best['trip_id']} costs {price}.{extra}", facts, slip)
        return
    said = yield Call("book_trip", {"trip_id": best["trip_id"]})
    booked = got(said, "booking_id")
    if booked is None:
        yield mind.give_up(f"book {best['trip_id']}", said, ("trip", "price"))
        return
    yield from _wait(mind, booked["booking_id"], Final(
        f"The trip {best['trip_id']} is booked and confirmed for {price}.{extra}", facts, slip
    ))  # fmt: skip


def _wait(mind: Mind, booking: str, end: Final) -> Thinking:
    state = "pending"
    while state == "pending":
        said = yield Call("booking_state", {"booking_id": booking})
        found = got(said, "state")
        if found is None:
            yield mind.give_up(f"see the state of {booking}", said, ("trip", "price"))
            return
        state = found["state"]
    yield end


def _prices(mind: Mind) -> Thinking:
    cities = mind.all("|".join(_CITIES))
    best: dict[str, Any] | None = None
    for city in cities[1:]:
        asked = {"origin": cities[0], "destination": city, "page": 1}
        said = yield Call("search_trips", asked)
        found = got(said, "trips")
        if found is None:
            yield mind.give_up("compare the cities", said, ("trip", "price"))
            return
        for trip in found["trips"]:
            if best is None or trip["price"] < best["price"]:
                best = trip
    if best is None:
        yield Final("None of these cities can be reached. Every search was empty.", {})
        return
    yield Final(
        f"{best['to']} is cheapest: {best['trip_id']} costs {best['price']}. I compared all.",
        {"trip": best["trip_id"], "price": best["price"]},
    )


TRAVEL = TracedSystem(
    name="travel",
    about="search and booking of trips over an HTTP service with pages",
    instructions="You find and book trips. Prices count without the fee.",
    has=frozenset({"service"}),
    slips=(
        "Tool-related", "Tool Selection Errors", "Incorrect Problem Identification",
        "Resource Abuse", "Goal Deviation", "Tool Output Misinterpretation", "Language-only",
    ),
    scenes=(CLEAN, "numbers", "pages", "other arguments", "polling", "retry inside"),
    case=_case,
    tools=_tools,
    policy=_policy,
    service=_service,
    victim="search_trips",
    swapped="weather",
)  # fmt: skip
