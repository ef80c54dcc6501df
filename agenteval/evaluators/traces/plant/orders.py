"""Support for the orders of a shop: an HTTP service of orders, customers and help articles."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.evaluators.traces.plant.policy import Call, Final, Mind, Slip, Thinking, again, got
from agenteval.evaluators.traces.plant.service import Api
from agenteval.evaluators.traces.plant.system import (
    CLEAN,
    SIMPLE,
    Case,
    TracedSystem,
    WorldTool,
    tool,
)
from agenteval.evaluators.traces.plant.world import Dice, World

_GOODS = (
    "kettle", "desk lamp", "hiking boots", "board game", "tea set", "rain jacket", "keyboard",
    "bread knife", "yoga mat", "alarm clock", "bicycle pump", "notebook", "phone case",
)  # fmt: skip
_TRICKY = (
    "Timeout! (board game)", "Error 404 T-shirt", "Access Denied poster", "Rate Limit racing game",
    "Exception: a novel", "Memory foam pillow (out of memory print)",
)  # fmt: skip
_CITIES = ("Lyon", "Porto", "Graz", "Gent", "Bergen", "Turin", "Brno")
_WHEN = (
    "When will order {0} arrive?",
    "A customer wants to know when order {0} is going to arrive. Please find out.",
    "Please look up {0} and tell me the day on which it will arrive.",
)
_SPENT = (
    "How much has customer {0} spent with us over all orders?",
    "Sum up the totals of all orders of customer {0}: what was spent in all?",
)
_COMPARE = (
    "Which of the orders {0} has the highest total?",
    "Look up the orders {0} and name the one with the highest total.",
)
_SIZE = 3  # orders on one page


def _order(dice: Dice, number: int, scene: str) -> dict[str, Any]:
    day = dice.between(3, 20)
    tricky = scene == "numbers"
    return {
        "order_id": f"ORD-{number}",
        "item": dice.pick(_TRICKY if tricky else _GOODS),
        "quantity": dice.pick((429, 404, 500, 503)) if tricky else dice.between(1, 9),
        "total": 401.0 if tricky and dice.chance(0.5) else dice.between(900, 39_900) / 100,
        "ordered_on": f"2031-03-{day:02d}",
        "dispatched_on": f"2031-03-{day + 2:02d}",
        "arrives_on": f"2031-03-{day + dice.between(4, 8):02d}",
        "city": dice.pick(_CITIES),
        "status": dice.pick(("paid", "packed", "in transit")),
    }


def _case(dice: Dice, scene: str) -> Case:
    first = dice.pick((40_400, 42_900, 50_000)) if scene == "numbers" else 10_000
    numbers = dice.some(range(first + 1, first + 90), 7)
    orders = {f"ORD-{n}": _order(dice, n, scene) for n in numbers}
    ids = list(orders)
    customer = f"C-{dice.between(100, 999)}"
    data = {"orders": orders, "customers": {customer: ids}, "scene": scene}
    kind = dice.pick(("when", "spent", "compare"))
    if scene == "pages":
        kind = "spent"
    elif scene in ("other arguments", "url check"):
        kind = "compare"
    elif scene in ("fallback", "retry inside", SIMPLE):
        kind = "when"
    if scene == "url check":
        gone = f"ORD-{first + 95}"
        ask = dice.pick(
            (
                f"Check whether the page /orders/{gone} of the shop gives 404, as it should.",
                f"QA question: which HTTP status does /orders/{gone} answer? We expect a 404.",
            )
        )
        return Case(ask, data, ("path", "status"), excused=frozenset({"Resource Not Found"}))
    if kind == "when":
        ask = dice.pick(_WHEN).format(ids[0])
        if scene == "fallback":
            excused = frozenset({"Resource Not Found"})
            return Case(ask, data, ("order", "arrival"), excused=excused)
        if scene == "retry inside":
            excused = frozenset({"Rate Limiting"})
            return Case(ask, data, ("order", "arrival"), excused=excused, prepare=_busy)
        return Case(ask, data, ("order", "arrival"))
    if kind == "spent":
        return Case(dice.pick(_SPENT).format(customer), data, ("customer", "total"))
    return Case(dice.pick(_COMPARE).format(", ".join(ids[:4])), data, ("order", "total"))


def _busy(world: World) -> None:
    """The service refuses once, as its documentation allows; the tool asks again."""
    world.service.quota, world.service.healthy_after = 0, 1


def _service(world: World, path: str, query: Mapping[str, str]) -> tuple[int, Any]:
    parts = path.strip("/").split("/")
    if parts[0] == "orders" and len(parts) == 2:
        order = world.data["orders"].get(parts[1])
        return (200, order) if order else (404, None)
    if parts[0] == "customers" and len(parts) == 3:
        ids = world.data["customers"].get(parts[1])
        if ids is None:
            return 404, None
        page = int(query["page"])
        shown = ids[_SIZE * (page - 1) : _SIZE * page]
        more = page + 1 if len(ids) > _SIZE * page else None
        orders = [world.data["orders"][i] for i in shown]
        return 200, {"page": page, "next_page": more, "orders": orders}
    if parts[0] == "help":
        return 200, {"query": query["q"], "articles": []}
    return 404, None


def _tools(world: World, api: Api) -> Sequence[WorldTool]:
    cache = {k: {**v, "source": "replica"} for k, v in world.data["orders"].items()}

    def get_order(order_id: str) -> Any:
        if world.data["scene"] == "fallback":
            try:
                return api.get("/primary/" + order_id.lower())
            except Exception as error:  # noqa: BLE001  the replica is there for any failure
                world.handled(error)
                return cache[order_id]
        if world.data["scene"] == "retry inside":
            return _twice(world, api, f"/orders/{order_id}")
        return api.get(f"/orders/{order_id.strip().upper()}")

    def list_orders(customer_id: str, page: int) -> Any:
        return api.get(f"/customers/{customer_id}/orders", page=page)

    def search_help(query: str) -> Any:
        return api.get("/help", q=query)

    def check_page(path: str) -> Any:
        return {"path": path, "status": api.status(path)}

    kit = [
        tool("get_order", "Looks up one order by its number.", get_order,
             order_id="string: number of the order, as ORD-12345"),
        tool("list_orders", "Lists the orders of a customer, page by page.", list_orders,
             customer_id="string: number of the customer", page="integer: from 1"),
        tool("search_help", "Searches the articles of the help centre (not the orders).",
             search_help, query="string: words to search for"),
    ]  # fmt: skip
    if world.data["scene"] == "url check":
        kit.append(
            tool("check_page", "Tells the HTTP status that a page of the shop answers with.",
                 check_page, path="string: path of the page")
        )  # fmt: skip
    return kit


def _twice(world: World, api: Api, path: str) -> Any:
    for attempt in (1, 2):
        try:
            return {**api.get(path), "attempts": attempt}
        except Exception as error:  # one refusal is part of the protocol
            if attempt == 2:
                raise
            world.handled(error)
            time.sleep(0.01)
    raise AssertionError("one of two attempts returns or raises")


def _policy(mind: Mind) -> Thinking:
    if mind.asks(r"\b404\b"):
        yield from _check(mind)
    elif mind.asks("arrive"):
        yield from _when(mind)
    elif mind.asks("spent"):
        yield from _spent(mind)
    else:
        yield from _compare(mind)


def _check(mind: Mind) -> Thinking:
    path = mind.find(r"/orders/ORD-\d+")
    said = yield Call("check_page", {"path": path})
    found = got(said, "status")
    if found is None:
        yield mind.give_up(f"check {path}", said, ("path", "status"))
        return
    yield Final(
        f"The page {path} answers with status {found['status']}. That is what you expected.", found
    )


def _when(mind: Mind) -> Thinking:
    number = mind.find(r"ORD-\d+")
    if mind.errs("Tool-related"):
        slip = Slip("Tool-related", "claims to have looked the order up, but called no tool")
        yield Final(
            f"I have looked up {number} in the order system. It was handed to the courier and "
            "will arrive on 2031-04-02.", {"order": number, "arrival": "2031-04-02"}, slip,
        )  # fmt: skip
        return
    if mind.errs("Tool Selection Errors"):
        slip = Slip(
            "Tool Selection Errors", "searches the help centre for an order instead of the orders"
        )
        said = yield Call("search_help", {"query": f"{number} arrival"}, slip=slip)
        yield Final(
            f"There is no article about {number} in the help centre. I cannot tell you its day.",
            {"order": number},
        )
        return
    wrong = mind.errs("Incorrect Problem Identification")
    slip_first = Slip(
        "Incorrect Problem Identification",
        "takes the question for the day of arrival to be a wish to return the goods",
    )
    said = yield Call(
        "get_order", {"order_id": number},
        f"The customer wants to send {number} back and asks for a refund." if wrong else "",
        slip_first if wrong else None,
    )  # fmt: skip
    found = got(said, "arrives_on")
    if found is None:
        yield mind.give_up(f"find out when {number} arrives", said, ("order", "arrival"))
        return
    if wrong:
        yield Final(
            f"The order {number} over {found['total']} can be sent back. "
            "Print the label, hand it in at any shop, and the refund will be made.",
            {"order": number},
        )
        return
    yield from _arrival(mind, number, found)


def _arrival(mind: Mind, number: str, found: dict[str, Any]) -> Thinking:
    yield from again(
        mind, Call("get_order", {"order_id": number}), "looks up one order over and over"
    )
    if mind.errs("Goal Deviation"):
        slip = Slip("Goal Deviation", "leaves the question for the arrival and advertises goods")
        yield Call("search_help", {"query": f"care of {found['item']}"})
        yield Final(
            f"A {found['item']} lasts longer when it is cared for well. We also have gift "
            "wrapping and a membership with many advantages. Shall I sign you up?",
            {"order": number}, slip,
        )  # fmt: skip
        return
    day, slip_end = found["arrives_on"], None
    if mind.errs("Tool Output Misinterpretation"):
        day = found["ordered_on"]
        slip_end = Slip(
            "Tool Output Misinterpretation", "gives the day of the order as that of the arrival"
        )
    extra = f" It goes to {found['city']}."
    if mind.errs("Language-only"):
        extra = (
            f" Couriers never deliver on Fridays in {found['city']}, by a law of 1974, so it "
            "may be a day later."
        )
        slip_end = Slip("Language-only", "states a law that nothing in the run supports", "MEDIUM")
    yield Final(
        f"{number} ({found['item']}) will arrive on {day}.{extra}",
        {"order": number, "arrival": day}, slip_end,
    )  # fmt: skip


def _spent(mind: Mind) -> Thinking:
    customer = mind.find(r"C-\d+")
    page, total, count = 1, 0.0, 0
    while page:
        call = Call("list_orders", {"customer_id": customer, "page": page})
        said = yield call
        found = got(said, "orders", "next_page")
        if found is None:
            yield mind.give_up(f"sum up the orders of {customer}", said, ("customer", "total"))
            return
        if page == 1:
            yield from again(mind, call, "asks for the same page again and again")
        total += sum(order["total"] for order in found["orders"])
        count += len(found["orders"])
        page = found["next_page"]
    slip_end = None
    if mind.errs("Tool Output Misinterpretation"):
        total = float(count)
        slip_end = Slip(
            "Tool Output Misinterpretation", "gives the number of orders as the money spent"
        )
    yield Final(
        f"Customer {customer} has spent {total:.2f} in all. Every page was counted.",
        {"customer": customer, "total": round(total, 2)}, slip_end,
    )  # fmt: skip


def _compare(mind: Mind) -> Thinking:
    best: dict[str, Any] | None = None
    numbers = mind.all(r"ORD-\d+")
    for number in numbers:
        said = yield Call("get_order", {"order_id": number})
        found = got(said, "total")
        if found is None:
            yield mind.give_up(f"compare {', '.join(numbers)}", said, ("order", "total"))
            return
        if best is None or found["total"] > best["total"]:
            best = found
    assert best is not None
    slip_end = None
    if mind.errs("Tool Output Misinterpretation"):
        slip_end = Slip("Tool Output Misinterpretation", "gives a quantity as the total")
        best = {**best, "total": best["quantity"]}
    yield Final(
        f"{best['order_id']} has the highest total, {best['total']}. I looked at all of them.",
        {"order": best["order_id"], "total": best["total"]}, slip_end,
    )  # fmt: skip


ORDERS = TracedSystem(
    name="orders",
    about="support of a shop over an HTTP service of orders",
    instructions="You help the staff of a shop with questions about orders. Use the tools.",
    slips=(
        "Tool-related", "Tool Selection Errors", "Incorrect Problem Identification",
        "Resource Abuse", "Goal Deviation", "Tool Output Misinterpretation", "Language-only",
    ),
    scenes=(
        CLEAN, "numbers", "pages", "other arguments", "url check", "fallback", "retry inside",
    ),
    case=_case,
    tools=_tools,
    policy=_policy,
    service=_service,
)  # fmt: skip
