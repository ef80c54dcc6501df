"""A dry run on the terminal: who would be asked how often, and what it would cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from agenteval.models.limits import Price
from agenteval.models.rehearsal import Amount, Bill, Part
from agenteval.records.table import Cell, Column, Table
from agenteval.report.terminal import print_table
from agenteval.text import visible_line

_ATTEMPTS = 6  # of one request, see RetryPolicy
_MEANING = (
    "'at least' is what is asked when every reply can be used as it comes, 'at most' the bound "
    "however bad replies are. Tokens are estimated. Not counted here: a request that is lost on "
    f"the way, or refused for its form, is sent again (up to {_ATTEMPTS} times), and one whose "
    "limit on tokens leaves no room for words is asked without it, unless --max-tokens sets one."
)
_NO_PRICE = "unknown; --price-in and --price-out (per million tokens) tell it"


def print_bill(bill: Bill, console: Console) -> None:
    """The bill in words, with a table of who is asked."""
    lines = [*bill.about, f"requests: {_range(bill)}"]
    parts = [part for part in bill.parts if part.most.requests]
    if parts:
        lines.append(f"cost: {_cost(bill)}")
    for line in lines:
        console.print(Text(visible_line(line)))
    if parts:
        print_table(_table(bill, parts), console)
    asked = (f"{p.who}: asks {', '.join(sorted(p.where))}" for p in parts if p.where)
    for line in (*(f"{p.who}: {p.why}" for p in parts), *asked, *_caps(bill), *bill.notes):
        console.print(Text(visible_line(line)))
    if parts:
        console.print(Text(_MEANING, "dim"))


def _range(bill: Bill) -> str:
    least, most = bill.requests
    shown = f"{most:,}" if least == most else f"at least {least:,}, at most {most:,}"
    if all(part.exact for part in bill.parts):
        return shown
    return f"{shown} (about: among so many, a sample was looked at)"


def _cost(bill: Bill) -> str:
    if bill.budget.price is None:
        return _NO_PRICE
    least, most = bill.cost
    low = f"at least about {_money(least)}"
    if most is None:
        return f"{low}; at most not known, --max-cost would bound it"
    return f"{low}, at most about {_money(most)}"


def _caps(bill: Bill) -> Iterator[str]:
    budget, (least, most) = bill.budget, bill.requests
    if budget.max_calls is not None and bill.most.requests:
        made = f", {budget.spent.requests:,} of them made already" if budget.spent.requests else ""
        head = f"--max-calls {budget.max_calls:,}{made}: "
        if least < bill.least.requests:
            yield f"{head}it stops before all is done ({bill.least.requests:,} at least are needed)"
        elif most < bill.most.requests:
            without = f"{bill.most.requests:,}"
            yield f"{head}it may stop before all is done (without it at most {without})"
        else:
            yield f"{head}enough for all of it"
    if bill.reserved is not None and bill.money_left is not None:
        left = bill.money_left
        refused = "; the cap is below it: no such request is made" if bill.reserved > left else ""
        yield (
            f"--max-cost {budget.max_cost:g}: up to about {_money(bill.reserved)} is reserved for "
            f"one request before it is made (its prompt in bytes and the longest reply allowed)"
            f"{refused}"
        )
        if _dear(bill):
            shown = _money(bill.uncapped_cost)
            yield f"  it bounds the cost (without it at most: {shown}); it may stop before the end"


def _dear(bill: Bill) -> bool:
    """Whether more money may be wanted than the cap leaves."""
    most, left = bill.uncapped_cost, bill.money_left
    return left is not None and (most is None or most > left)


def _money(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.4f}" if value < 100 else f"{value:,.0f}"


def _table(bill: Bill, parts: Sequence[Part]) -> Table:
    price = bill.budget.price
    columns = [
        Column("who", "who is asked"),
        Column("bound", ""),
        Column("requests", "requests", "count"),
        Column("prompt", "prompt tokens", "count"),
        Column("reply", "reply tokens", "count"),
    ]
    columns += [Column("cost", "cost", "money")] if price else []
    rows = [row for part in parts for row in _rows(part.who, [part], price)]
    if len(parts) > 1:
        rows += _rows("all together", parts, price)
    capped = _dear(bill) or bill.requests != (bill.least.requests, bill.most.requests)
    title = "without the caps" if capped else ""
    return Table("parts", title, tuple(columns), tuple(rows), group="who")


def _rows(who: str, parts: Sequence[Part], price: Price | None) -> Iterator[dict[str, Cell]]:
    """The rows of some parts taken together."""
    rows = {"at least": [part.least for part in parts]}
    known = all(part.likely is not None or part.least == part.most for part in parts)
    if known and any(part.likely is not None for part in parts):
        rows["likely"] = [part.likely or part.least for part in parts]
    rows["at most"] = [part.most for part in parts]
    for bound, amounts in rows.items():
        whole = sum(amounts, Amount())
        row: dict[str, Cell] = {
            "who": who, "bound": bound, "requests": whole.requests,
            "prompt": "not known" if whole.prompt is None else whole.prompt,
            "reply": "not known" if whole.reply is None else whole.reply,
        }  # fmt: skip
        if price is not None:
            priced = [a for part, a in zip(parts, amounts, strict=True) if part.priced]
            costs = [a.cost(price, known=bound == "at least") for a in priced]
            total = None if None in costs else sum(cost or 0.0 for cost in costs)
            row["cost"] = (total if total is not None else "not known") if priced else "no price"
        yield row
