"""Show a dry run on the terminal: requests of each party, and their cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console
from rich.text import Text

from agenteval.engine import Amount, CostEstimate, EstimateLine
from agenteval.models.limits import Price
from agenteval.records.table import Cell, Column, Table
from agenteval.reporting.terminal import print_table
from agenteval.text import visible_line

_ATTEMPTS = 6  # of one request, see RetryPolicy
_MEANING = (
    "'at least' holds if every reply is usable, 'at most' however bad replies are: a malformed "
    "reply is asked for once more. Token counts are estimates. Not counted: a request that fails "
    f"on the way, or is refused for its form, is sent again (up to {_ATTEMPTS} times), and one "
    "whose token limit leaves no room for words is sent without it, unless --max-tokens sets one."
)
_NO_PRICE = "unknown; give --price-in and --price-out (per million tokens)"


def print_estimate(estimate: CostEstimate, console: Console) -> None:
    """Print the planned requests, with a table by party."""
    lines = [line for line in estimate.lines if line.most.requests]
    texts = [*estimate.about, f"requests: {_range(estimate)}"]
    if lines:
        texts.append(f"cost: {_cost(estimate)}")
    for text in texts:
        console.print(Text(visible_line(text)))
    if lines:
        print_table(_table(estimate, lines), console)
    recipients = (f"{line.who}: {', '.join(sorted(line.where))}" for line in lines if line.where)
    for text in (*recipients, *_caps(estimate), *estimate.notes):
        console.print(Text(visible_line(text)))
    if lines:
        console.print(Text(_MEANING, "dim"))


def _range(estimate: CostEstimate) -> str:
    least, most = estimate.requests
    shown = f"{most:,}" if least == most else f"at least {least:,}, at most {most:,}"
    if all(line.exact for line in estimate.lines):
        return shown
    return f"{shown} (extrapolated from a sample)"


def _cost(estimate: CostEstimate) -> str:
    if estimate.budget.price is None:
        return _NO_PRICE
    least, most = estimate.cost
    low = f"at least about {_money(least)}"
    if most is None:
        return f"{low}; no upper bound is known, --max-cost sets one"
    return f"{low}, at most about {_money(most)}"


def _caps(estimate: CostEstimate) -> Iterator[str]:
    budget, (least, most) = estimate.budget, estimate.requests
    if budget.max_calls is not None and estimate.most.requests:
        sent = f", {budget.spent.requests:,} of them sent already" if budget.spent.requests else ""
        head = f"--max-calls {budget.max_calls:,}{sent}: "
        if least < estimate.least.requests:
            yield f"{head}stops before the end (at least {estimate.least.requests:,} are needed)"
        elif most < estimate.most.requests:
            yield f"{head}may stop before the end (without it at most {estimate.most.requests:,})"
        else:
            yield f"{head}enough for all of it"
    if estimate.reserved is not None and estimate.money_left is not None:
        low = estimate.reserved > estimate.money_left
        yield (
            f"--max-cost {budget.max_cost:g}: up to about {_money(estimate.reserved)} is reserved "
            "for one request before it is sent (its prompt in bytes and the longest reply allowed)"
            + ("; the cap is lower: no such request is sent" if low else "")
        )
        if _exceeds_cap(estimate):
            without = _money(estimate.uncapped_cost)
            yield f"  the cap limits the cost (without it at most: {without}); it may stop early"


def _exceeds_cap(estimate: CostEstimate) -> bool:
    """Whether more money may be needed than the cap leaves."""
    most, money_left = estimate.uncapped_cost, estimate.money_left
    return money_left is not None and (most is None or most > money_left)


def _money(value: float | None) -> str:
    return "unknown" if value is None else f"{value:,.4f}" if value < 100 else f"{value:,.0f}"


def _table(estimate: CostEstimate, lines: Sequence[EstimateLine]) -> Table:
    price = estimate.budget.price
    columns = [
        Column("who", "party"),
        Column("bound", ""),
        Column("requests", "requests", "count"),
        Column("prompt", "prompt tokens", "count"),
        Column("reply", "reply tokens", "count"),
    ]
    columns += [Column("cost", "cost", "money")] if price else []
    rows = [row for line in lines for row in _rows(line.who, [line], price)]
    if len(lines) > 1:
        rows += _rows("total", lines, price)
    uncapped = estimate.least.requests, estimate.most.requests
    capped = _exceeds_cap(estimate) or estimate.requests != uncapped
    title = "without the caps" if capped else ""
    return Table("parts", title, tuple(columns), tuple(rows), group="who")


def _rows(
    who: str, lines: Sequence[EstimateLine], price: Price | None
) -> Iterator[dict[str, Cell]]:
    """Return the combined row of several lines."""
    bounds = {
        "at least": [line.least for line in lines],
        "at most": [line.most for line in lines],
    }
    for bound, amounts in bounds.items():
        total = sum(amounts, Amount())
        row: dict[str, Cell] = {
            "who": who,
            "bound": bound,
            "requests": total.requests,
            "prompt": "unknown" if total.prompt is None else total.prompt,
            "reply": "unknown" if total.reply is None else total.reply,
        }
        if price is not None:
            cost = total.cost(price, known=bound == "at least")
            row["cost"] = "unknown" if cost is None else cost
        yield row
