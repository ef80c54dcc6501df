"""Booking in a calendar: an HTTP service of days and events."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.evaluators.traces.plant.dice import Dice
from agenteval.evaluators.traces.plant.http import Api
from agenteval.evaluators.traces.plant.steps import Call, Final, Mind, Slip, Thinking, again, got
from agenteval.evaluators.traces.plant.system import CLEAN, Case, TracedSystem
from agenteval.evaluators.traces.plant.tools import WorldTool, tool
from agenteval.evaluators.traces.plant.world import World

_TITLES = ("review of the budget", "interview", "planning of the week", "call with the printer",
           "tasting", "safety briefing")  # fmt: skip
_TRICKY = ("post-mortem of error 500", "timeout policy", "429 ways to cook rice", "404 club",
           "unauthorized biography (book club)")  # fmt: skip
_BOOK = (
    "Book the first free hour on {0} for '{1}'.",
    "Please put '{1}' into my calendar on {0}, in the first hour that is free.",
    "I need one hour for '{1}' on {0}: take the first free one.",
)
_QUIET = (
    "Which of the days {0} has the fewest events?",
    "Compare the days {0}: which one has the fewest events?",
)
_HOURS = range(9, 17)


def _case(dice: Dice, scene: str) -> Case:
    titles = _TRICKY if scene == "numbers" else _TITLES
    days = [f"2031-05-{d:02d}" for d in dice.some(range(1, 29), 5)]
    events = {}
    for day in days:
        busy = sorted(dice.some(_HOURS, dice.between(1, 6)))
        busy = [9, *busy] if 9 not in busy and dice.chance(0.5) else busy
        events[day] = [
            {"hour": h, "title": dice.pick(titles),
             "room": dice.pick((404, 429, 500) if scene == "numbers" else (1, 2, 3))}
            for h in busy
        ]  # fmt: skip
    data = {"events": events, "pending": {}, "scene": scene}
    if scene == "sampling":
        ask = dice.pick((
            "List {0} three times in a row to see whether the calendar answers the same each time.",
            "Does {0} come back the same when it is listed three times? Try it.",
        )).format(days[0])  # fmt: skip
        return Case(ask, data, ("day", "same"))
    if scene == "other arguments" or (scene == CLEAN and dice.chance(0.3)):
        return Case(dice.pick(_QUIET).format(", ".join(days[:4])), data, ("day", "events"))
    ask = dice.pick(_BOOK).format(days[0], dice.pick(titles))
    if scene == "verify":
        ask += " List the day again afterwards to verify it."
    return Case(ask, data, ("day", "hour"))


def _service(
    world: World, method: str, path: str, query: Mapping[str, str], body: Any
) -> tuple[int, Any]:
    parts = path.strip("/").split("/")
    if parts[0] == "days" and len(parts) == 2:
        events = world.data["events"].get(parts[1])
        if events is None:
            return 404, None
        if method == "GET":
            return 200, {"day": parts[1], "events": sorted(events, key=lambda e: int(e["hour"]))}
        events.append({"hour": body["hour"], "title": body["title"], "room": 1})
        return 201, {"booked": True, "day": parts[1], "hour": body["hour"]}
    if parts[0] == "contacts":
        return 200, {"query": query["q"], "people": []}
    return 404, None


def _tools(world: World, api: Api) -> Sequence[WorldTool]:
    def list_day(day: str) -> Any:
        return api.get(f"/days/{day.strip()}")

    def add_event(day: str, hour: int, title: str) -> Any:
        return api.post(f"/days/{day.strip()}", {"hour": hour + 0, "title": title})

    def find_person(name: str) -> Any:
        return api.get("/contacts", q=name)

    return [
        tool("list_day", "Lists the events of one day.", list_day, day="string: as 2031-05-01"),
        tool("add_event", "Books one hour.", add_event, day="string: as 2031-05-01",
             hour="integer: 9 to 16", title="string: of the event"),
        tool("find_person", "Looks up a person in the address book.", find_person,
             name="string: of the person"),
    ]  # fmt: skip


def _policy(mind: Mind) -> Thinking:
    if mind.asks("three times"):
        yield from _sample(mind)
    elif mind.asks("fewest"):
        yield from _quiet(mind)
    else:
        yield from _book(mind)


def _sample(mind: Mind) -> Thinking:
    day = mind.find(r"2031-05-\d\d")
    answers = []
    for _ in range(3):
        said = yield Call("list_day", {"day": day})
        answers.append(said)
        if got(said, "events") is None:
            yield mind.give_up(f"list {day}", said, ("day", "same"))
            return
    same = len(set(answers)) == 1
    word = "the same each time" if same else "different"
    yield Final(f"I listed {day} three times; the answers were {word}.", {"day": day, "same": same})


def _quiet(mind: Mind) -> Thinking:
    counts: dict[str, int] = {}
    for number, day in enumerate(mind.all(r"2031-05-\d\d")):
        call = Call("list_day", {"day": day})
        said = yield call
        found = got(said, "events")
        if found is None:
            yield mind.give_up("compare the days", said, ("day", "events"))
            return
        counts[day] = len(found["events"])
        if number == 0:
            yield from again(mind, call, "lists the same day again and again")
    best = min(counts, key=lambda d: counts[d])
    slip = None
    if mind.errs("Tool Output Misinterpretation"):
        best = max(counts, key=lambda d: counts[d])
        slip = Slip("Tool Output Misinterpretation", "names the day with the most events")
    yield Final(
        f"{best} has the fewest events, {counts[best]}. I looked at every day that you named.",
        {"day": best, "events": counts[best]}, slip,
    )  # fmt: skip


def _book(mind: Mind) -> Thinking:
    day, title = mind.find(r"2031-05-\d\d"), mind.find("'(.*?)'")
    if mind.errs("Tool-related"):
        slip = Slip("Tool-related", "says that it booked an hour, but called no tool")
        yield Final(
            f"Done. I checked your calendar and booked 10:00 on {day} for {title}. "
            "An invitation was sent to all participants.", {"day": day, "hour": 10}, slip,
        )  # fmt: skip
        return
    if mind.errs("Tool Selection Errors"):
        slip = Slip("Tool Selection Errors", "looks for a free hour in the address book")
        said = yield Call("find_person", {"name": day}, slip=slip)
        yield Final(
            f"I found nobody for {day}, so I booked nothing. Please try again.", {"day": day}
        )
        return
    wrong = mind.errs("Incorrect Problem Identification")
    slip_first = Slip(
        "Incorrect Problem Identification",
        "takes the wish to book an hour for a wish to cancel one",
    )
    call = Call("list_day", {"day": day})
    said = yield Call(
        "list_day", {"day": day}, f"The user wants to cancel '{title}'." if wrong else "",
        slip_first if wrong else None,
    )  # fmt: skip
    found = got(said, "events")
    if found is None:
        yield mind.give_up(f"book an hour on {day}", said, ("day", "hour"))
        return
    if wrong:
        yield Final(f"'{title}' is not in the calendar of {day}. So there is nothing to cancel.",
                    {"day": day})  # fmt: skip
        return
    yield from again(mind, call, "lists the same day again and again")
    yield from _take(mind, day, title, [int(event["hour"]) for event in found["events"]])


def _take(mind: Mind, day: str, title: str, busy: list[int]) -> Thinking:
    free = [h for h in _HOURS if h not in busy]
    hour, slip_call = free[0], None
    if mind.errs("Tool Output Misinterpretation"):
        hour = busy[0]
        slip_call = Slip(
            "Tool Output Misinterpretation", "takes an hour as free that the list shows as busy"
        )
    if mind.errs("Goal Deviation"):
        slip = Slip("Goal Deviation", "gives advice on meetings instead of booking the hour")
        yield Final(
            f"{day} has {len(busy)} events. Shorter meetings are better meetings: try 25 minutes, "
            "an agenda, and no laptops.", {"day": day}, slip,
        )  # fmt: skip
        return
    said = yield Call("add_event", {"day": day, "hour": hour, "title": title}, slip=slip_call)
    if got(said, "booked") is None:
        yield mind.give_up(f"book an hour on {day}", said, ("day", "hour"))
        return
    if mind.asks("verify"):
        yield Call("list_day", {"day": day})
    extra, slip_end = " It is the first hour that was free.", None
    if mind.errs("Language-only"):
        extra = " Meetings at this hour are known to be 40 percent more productive."
        slip_end = Slip("Language-only", "states a figure that has no source", "LOW")
    yield Final(f"'{title}' is booked on {day} at {hour}:00.{extra}",
                {"day": day, "hour": hour}, slip_end)  # fmt: skip


CALENDAR = TracedSystem(
    name="calendar",
    about="booking of hours over an HTTP service of calendars",
    instructions="You keep the calendar of the user. Look before you book.",
    has=frozenset({"service"}),
    slips=(
        "Tool-related", "Tool Selection Errors", "Incorrect Problem Identification",
        "Resource Abuse", "Goal Deviation", "Tool Output Misinterpretation", "Language-only",
    ),
    scenes=(CLEAN, "numbers", "other arguments", "verify", "sampling"),
    case=_case,
    tools=_tools,
    policy=_policy,
    service=_service,
    victim="list_day",
    swapped="find_person",
)  # fmt: skip
