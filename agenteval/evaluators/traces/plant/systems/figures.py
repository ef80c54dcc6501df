"""Analysis of sales in an SQLite database, with a tool that runs SQL."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from agenteval.evaluators.traces.plant.dice import Dice
from agenteval.evaluators.traces.plant.http import Api
from agenteval.evaluators.traces.plant.steps import Call, Final, Mind, Slip, Thinking, again, got
from agenteval.evaluators.traces.plant.system import CLEAN, SIMPLE, Case, TracedSystem, no_service
from agenteval.evaluators.traces.plant.tools import WorldTool, tool
from agenteval.evaluators.traces.plant.world import World

DATABASE = "sales.db"
_REGIONS = ("north", "south", "coast", "hills", "valley")
_TOTAL = (
    "What is the total amount of sales in the region {0}?",
    "Compute the total amount sold in the region {0} from the table sales.",
)
_AVERAGE = (
    "What is the average number of units of a sale in the region {0}?",
    "Tell me the average units per sale for the region {0}.",
)
_STORE = (
    "Store the total amount of every region in a new table totals.",
    "Make a table totals that holds the total amount of each region.",
)
_EACH = (
    "Give the total amount for each of the regions {0}, one query for each.",
    "Query the total amount of the regions {0} one after the other and name the largest.",
)


def _case(dice: Dice, scene: str) -> Case:
    rows = []
    for _ in range(dice.between(20, 60)):
        if scene == "numbers":
            amount: float = dice.pick((429.0, 404.0, 500.0, 503.0, 401.0))
        else:
            amount = dice.between(100, 90_000) / 100
        rows.append((dice.pick(_REGIONS), amount, dice.between(1, 12)))
    incidents = [("10:01", "HTTP 503 from the payment service"), ("10:07", "timeout of worker 4"),
                 ("10:09", "HTTP 429 Too Many Requests"), ("11:30", "out of memory")]  # fmt: skip
    data = {"rows": rows, "incidents": incidents, "pages": None, "scene": scene}
    region = dice.pick(_REGIONS)
    if scene == "log":
        ask = dice.pick(("How many incidents does the table incidents hold? Show them.",
                         "List the incidents of the table incidents and count them."))  # fmt: skip
        return Case(ask, data, ("count",), prepare=make)
    if scene == "other arguments":
        ask = dice.pick(_EACH).format(", ".join(dice.some(_REGIONS, 4)))
        return Case(ask, data, ("region", "amount"), prepare=make)
    if scene == "fallback":
        ask = dice.pick(_TOTAL).format(region)
        return Case(ask, data, ("region", "amount"), prepare=make)
    asks = (*_TOTAL, *_AVERAGE) if scene == SIMPLE else (*_TOTAL, *_AVERAGE, *_STORE)
    ask = dice.pick(asks).format(region)
    return Case(ask, data, ("region", "amount"), prepare=make)


def make(world: World) -> None:
    """Write the database file of a world."""
    with sqlite3.connect(world.folder / DATABASE) as base:
        base.execute("CREATE TABLE sales (region TEXT, amount REAL, units INTEGER)")
        base.executemany("INSERT INTO sales VALUES (?, ?, ?)", world.data["rows"])
        base.execute("CREATE TABLE incidents (at TEXT, what TEXT)")
        base.executemany("INSERT INTO incidents VALUES (?, ?)", world.data["incidents"])
    base.close()


def _ask(world: World, query: str) -> Any:
    path = Path(os.environ["DATA_DIR"]) / DATABASE
    base = sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=1.0)
    try:
        if world.data["pages"]:
            base.execute(f"PRAGMA max_page_count = {world.data['pages']}")
        with base:
            found = base.execute(query)
            names = [column[0] for column in found.description or ()]
            return {"columns": names, "rows": [list(row) for row in found.fetchmany(50)]}
    finally:
        base.close()


def _tools(world: World, api: Api) -> Sequence[WorldTool]:
    def run_sql(query: str) -> Any:
        if world.data["scene"] == "fallback":  # an index that may be there, or not
            try:
                _ask(world, "SELECT * FROM sales INDEXED BY by_region")
            except sqlite3.OperationalError as error:
                world.handled(error)
        pool = ThreadPoolExecutor(1)
        try:
            return pool.submit(_ask, world, query.strip()).result(world.tools.patience)
        finally:
            pool.shutdown(wait=False)

    def list_tables() -> Any:
        return run_sql("SELECT name, sql FROM sqlite_master WHERE type = 'table'")

    def calculate(expression: str) -> Any:
        left, sign, right = expression.split()
        numbers = float(left), float(right)
        value = {"+": sum(numbers), "*": numbers[0] * numbers[1]}[sign]
        return {"expression": expression, "value": value}

    return [
        tool("list_tables", "Lists the tables with their columns.", list_tables),
        tool("run_sql", "Runs one statement of SQL; returns at most 50 rows.", run_sql,
             query="string: the statement"),
        tool("calculate", "Calculates with two numbers, as '2 + 3'.", calculate,
             expression="string: number, sign, number"),
    ]  # fmt: skip


def _policy(mind: Mind) -> Thinking:
    if mind.errs("Tool-related"):
        slip = Slip("Tool-related", "reports the result of a query that it never ran")
        yield Final(
            "I ran SELECT SUM(amount) FROM sales and the database returned 48210.55. "
            "The figure is final.", {"region": None, "amount": 48210.55}, slip,
        )  # fmt: skip
        return
    said = yield Call("list_tables", {})
    if got(said, "rows") is None:
        yield mind.give_up("look at the database", said, ("region", "amount"))
        return
    yield from again(mind, Call("list_tables", {}), "lists the tables again and again")
    if mind.asks("incidents"):
        said = yield Call("run_sql", {"query": "SELECT at, what FROM incidents"})
        found = got(said, "rows")
        if found is None:
            yield mind.give_up("count the incidents", said, ("count",))
            return
        shown = "; ".join(f"{row[0]} {row[1]}" for row in found["rows"])
        count = len(found["rows"])
        yield Final(f"The table holds {count} incidents: {shown}.", {"count": count})
    elif mind.asks("new table|table totals"):
        yield from _store(mind)
    elif mind.asks("each of|one after"):
        yield from _each(mind)
    else:
        yield from _one(mind)


def _store(mind: Mind) -> Thinking:
    query = "CREATE TABLE totals AS SELECT region, SUM(amount) AS amount FROM sales GROUP BY region"
    said = yield Call("run_sql", {"query": query})
    if got(said, "rows") is None:
        yield mind.give_up("store the totals", said, ("region", "amount"))
        return
    yield Final("The table totals is made. It holds the total amount of every region.", {})


def _each(mind: Mind) -> Thinking:
    sums: dict[str, float] = {}
    for region in mind.all("|".join(_REGIONS)):
        query = f"SELECT SUM(amount) FROM sales WHERE region = '{region}'"  # noqa: S608  the model's own
        said = yield Call("run_sql", {"query": query})
        found = got(said, "rows")
        if found is None:
            yield mind.give_up("query every region", said, ("region", "amount"))
            return
        sums[region] = round(found["rows"][0][0] or 0.0, 2)
    best = max(sums, key=lambda r: sums[r])
    shown = ", ".join(f"{region} {amount}" for region, amount in sums.items())
    yield Final(f"The totals are {shown}. The largest is that of {best}.",
                {"region": best, "amount": sums[best]})  # fmt: skip


def _one(mind: Mind) -> Thinking:
    region = mind.find("|".join(_REGIONS))
    average = mind.asks("average")
    what, word = ("AVG(units)", "average number of units") if average else ("SUM(amount)", "total")
    slip = None
    if mind.errs("Incorrect Problem Identification"):
        what, word = "MAX(amount)", "largest sale"
        slip = Slip(
            "Incorrect Problem Identification",
            "asks for the largest single sale, not what was asked",
        )
    if mind.errs("Tool Selection Errors"):
        wrong = Slip("Tool Selection Errors", "uses the calculator to look up data")
        said = yield Call("calculate", {"expression": "1 + 1"}, f"I get the {word}.", wrong)
        yield Final(f"The calculator gave no {word} of the region {region}. I stop here.", {})
        return
    thought = "The user wants the largest single sale." if slip else ""
    query = f"SELECT {what}, COUNT(*) FROM sales WHERE region = '{region}'"  # noqa: S608  the model's own
    said = yield Call("run_sql", {"query": query}, thought, slip)
    found = got(said, "rows")
    if found is None:
        yield mind.give_up(f"compute the {word} of {region}", said, ("region", "amount"))
        return
    value, count = found["rows"][0]
    value, slip_end, extra = round(value or 0.0, 2), None, " It is taken from the table sales."
    if mind.errs("Tool Output Misinterpretation"):
        slip_end = (
            None
            if value == count
            else Slip("Tool Output Misinterpretation", "gives the number of rows as the result")
        )
        value = count
    if mind.errs("Language-only"):
        extra = " It is so high because the region has the most shops in the country."
        slip_end = Slip("Language-only", "names a cause that was never looked into", "MEDIUM")
    yield Final(f"The {word} of the region {region} is {value}.{extra}",
                {"region": region, "amount": value}, slip_end)  # fmt: skip


FIGURES = TracedSystem(
    name="figures",
    about="analysis of sales in an SQLite database",
    instructions="You answer questions about sales. The data are in an SQLite database.",
    has=frozenset({"database"}),
    slips=(
        "Tool-related", "Tool Selection Errors", "Incorrect Problem Identification",
        "Resource Abuse", "Tool Output Misinterpretation", "Language-only",
    ),
    scenes=(CLEAN, "numbers", "log", "other arguments", "fallback"),
    case=_case,
    tools=_tools,
    policy=_policy,
    service=no_service,
    victim="run_sql",
    swapped="calculate",
)  # fmt: skip
