"""A bill as a person reads it, and as JSON."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from agenteval.cli.console import clean, out, print_json
from agenteval.cli.dry_bill import Amount

if TYPE_CHECKING:
    from agenteval.cli.dry_bill import Asked, Bill
    from agenteval.cli.grid import Grid, Row
    from agenteval.models.limits import Price

_ATTEMPTS = 6  # of one request, see RetryPolicy
_MEANING = (
    "'at least' is what is asked when every reply can be used as it comes, 'at most' the bound "
    "however bad replies are. Tokens are estimated. A request that is lost on the way, or refused "
    f"for its form, is sent again (up to {_ATTEMPTS} times): that is not counted here."
)
_NO_PRICE = "unknown; --price-in and --price-out (per million tokens) tell it"


def show(bill: Bill, *, as_json: bool) -> None:
    """The bill on standard output."""
    if as_json:
        print_json(bill_json(bill))
        return
    from agenteval.cli.grid import print_grids

    for line in bill.about:
        _say(line)
    _say(f"requests: {_range(*bill.requests)}{_inexact(bill)}")
    if bill.most.requests:
        _say(f"cost: {_cost(bill)}")
        print_grids(_grid(bill))
        for one in bill.asked:
            if one.most.requests:
                _say(f"{one.who}: {one.why}")
    for line in (*_caps(bill), *bill.notes):
        _say(line)
    if bill.most.requests:
        out().print(f"[dim]{clean(_MEANING)}[/dim]")


def bill_json(bill: Bill) -> dict[str, Any]:
    """The same figures as fields; null is what nobody can say."""
    price = bill.limits.price
    least, most = bill.requests
    low, high = bill.cost
    total: dict[str, Any] = {"least": least, "most": most}
    cap = {
        "max_calls": bill.limits.max_calls, "max_cost": bill.limits.max_cost,
        "spent_requests": bill.spent.requests, "spent_cost": bill.spent.cost,
        "reserved_for_one_request": bill.reserved,
        "uncapped": {"least": bill.least.requests, "most": bill.most.requests},
    }  # fmt: skip
    return {
        "command": bill.command,
        "dry_run": True,
        "about": list(bill.about),
        "requests": total,
        "exact": all(one.exact for one in bill.asked),
        "prompt_tokens": {"least": bill.least.prompt, "most": bill.most.prompt},
        "reply_tokens": {"least": bill.least.reply, "most": bill.most.reply},
        "cost": None if price is None else {"least": low, "most": high},
        "cap": cap,
        "parts": [_part_json(one, price) for one in bill.asked],
        "notes": list(bill.notes),
    }


def _part_json(one: Asked, price: Price | None) -> dict[str, Any]:
    price = price if one.priced else None
    said: dict[str, Any] = {"who": one.who, "why": one.why, "exact": one.exact,
                            "capped": one.budget is not None}  # fmt: skip
    for name, amount in (("least", one.least), ("likely", one.likely), ("most", one.most)):
        if amount is not None:
            cost = amount.cost(price, known=name == "least")
            said[name] = {"requests": amount.requests, "prompt_tokens": amount.prompt,
                          "reply_tokens": amount.reply, "cost": cost}  # fmt: skip
    return said


def _say(line: str) -> None:
    out().print(clean(line))


def _range(least: int, most: int) -> str:
    return f"{most:,}" if least == most else f"at least {least:,}, at most {most:,}"


def _inexact(bill: Bill) -> str:
    if all(one.exact for one in bill.asked):
        return ""
    return " (at least about: among so many, stored replies were not looked for)"


def _cost(bill: Bill) -> str:
    if bill.limits.price is None:
        return _NO_PRICE
    least, most = bill.cost
    low = f"at least about {_money(least)}"
    if most is None:
        return f"{low}; at most not known, --max-cost would bound it"
    return f"{low}, at most about {_money(most)}"


def _caps(bill: Bill) -> Iterator[str]:
    allowed, limits = bill.allowed, bill.limits
    if allowed is not None and bill.most.requests:
        made = f", {bill.spent.requests:,} of them made already" if bill.spent.requests else ""
        least, most = bill.requests
        head = f"--max-calls {limits.max_calls:,}{made}: "
        if least < bill.least.requests:
            yield f"{head}it stops before all is done ({bill.least.requests:,} at least are needed)"
        elif most < bill.most.requests:
            yield f"{head}it may stop before all is done (without it at most {_most(bill)})"
        else:
            yield f"{head}enough for all of it"
    if bill.reserved is not None and bill.money_left is not None:
        left = bill.money_left
        refused = "; the cap is below it: no such request is made" if bill.reserved > left else ""
        yield (
            f"--max-cost {limits.max_cost:g}: up to about {_money(bill.reserved)} is reserved for "
            f"one request before it is made (its prompt in bytes and the longest reply allowed)"
            f"{refused}"
        )
        uncapped = bill.uncapped_cost
        if uncapped is None or uncapped > left:
            shown = "not known" if uncapped is None else _money(uncapped)
            yield f"  it bounds the cost (without it at most: {shown}); it may stop before the end"


def _most(bill: Bill) -> str:
    return f"{bill.most.requests:,}"


def _money(value: float | None) -> str:
    return "not known" if value is None else f"{value:,.4f}" if value < 100 else f"{value:,.0f}"


def _grid(bill: Bill) -> Grid:
    from agenteval.cli.grid import Column, Grid, Group

    price = bill.limits.price
    heads = ("requests", "prompt tokens", "reply tokens", *(("cost",) if price else ()))
    lines: list[Row | Group] = []
    shown = [one for one in bill.asked if one.most.requests]
    for one in shown:
        lines += [Group(one.who), *_rows([one], price)]
    if len(shown) > 1:
        lines += [Group("all together"), *_rows(shown, price)]
    title = "without the caps" if bill.capped else ""
    return Grid((Column("", number=False), *map(Column, heads)), tuple(lines), title)


def _rows(parts: list[Asked], price: Price | None) -> Iterator[Row]:
    """The rows of some parts taken together."""
    from agenteval.cli.grid import Row

    every = {"at least": [one.least for one in parts]}
    sure = [one.likely is not None or one.least == one.most for one in parts]
    if all(sure) and any(one.likely is not None for one in parts):
        every["likely"] = [one.likely or one.least for one in parts]
    every["at most"] = [one.most for one in parts]
    for name, amounts in every.items():
        whole = sum(amounts, Amount())
        cells = [name, f"{whole.requests:,}", _tokens(whole.prompt), _tokens(whole.reply)]
        if price is not None:
            priced = [a for one, a in zip(parts, amounts, strict=True) if one.priced]
            costs = [a.cost(price, known=name == "at least") for a in priced]
            known = [cost for cost in costs if cost is not None]
            whole_cost = sum(known) if len(known) == len(costs) else None
            cells.append(_money(whole_cost) if priced else "no price")
        yield Row(tuple(cells))


def _tokens(number: int | None) -> str:
    return "not known" if number is None else f"{number:,}"
