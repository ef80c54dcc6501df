"""Brindle Computers: the catalogue, the machines that parts go into, stock and orders.

The clock stands at the `now` of role.yaml. Sums are whole euros. Numbers that are made up follow
from the arguments alone, so the order of calls changes no state.
"""

from __future__ import annotations

import hashlib
from typing import Any

USES = ("office", "gaming", "video")
TODAY, TOMORROW, BY_POST = "2031-03-12", "2031-03-13", "2031-03-14"
DELIVERY, FREE_DELIVERY = 9, 300  # euros; an order of so much is delivered free of charge
INVOICE_LIMIT = 400  # more is not sold on invoice
COMPUTERS = ("laptop", "desktop")  # set up overnight, and built into nothing

# name: category, uses, price, pieces in stock, day of the next pieces
_PRODUCTS: dict[str, tuple[str, str, int, int, str]] = {
    "Wren 11": ("laptop", "office", 329, 0, "2031-03-26"),
    "Heron 14": ("laptop", "office", 649, 6, ""),
    "Heron 16": ("laptop", "office video", 1149, 2, ""),
    "Kite G15": ("laptop", "gaming video", 1290, 3, ""),
    "Otter Mini": ("desktop", "office", 489, 4, ""),
    "Otter Tower": ("desktop", "gaming video", 1390, 1, ""),
    "Badger Pro": ("desktop", "video", 1890, 0, "2031-04-02"),
    "Ember 20": ("graphics_card", "office", 119, 5, ""),
    "Flare 60": ("graphics_card", "gaming", 289, 4, ""),
    "Flare 80": ("graphics_card", "gaming video", 559, 2, ""),
    "Loom D4-16": ("memory", "office gaming", 39, 12, ""),
    "Loom D5-16": ("memory", "office gaming", 62, 9, ""),
    "Loom D5-32": ("memory", "office gaming video", 109, 0, "2031-03-19"),
    "Slab 1T": ("storage", "office gaming video", 59, 8, ""),
    "Slate 1T": ("storage", "office gaming video", 74, 7, ""),
    "Slate 2T": ("storage", "office gaming video", 129, 0, "2031-03-20"),
}
_WATTS = {"Ember 20": 300, "Flare 60": 450, "Flare 80": 650}  # that the machine must supply
_NEEDS = {  # memory and connectors: what the machine must take
    "Loom D4-16": "D4",
    "Loom D5-16": "D5",
    "Loom D5-32": "D5",
    "Slab 1T": "SATA",
    "Slate 1T": "M2",
    "Slate 2T": "M2",
}
# machine: watts of its supply (0: no place for a card), whether it takes another one, connectors
_MACHINES: dict[str, tuple[int, bool, str]] = {
    "Heron 14": (0, False, "M2"),
    "Heron 16": (0, False, "M2"),
    "Otter Mini": (0, False, "D5 M2"),
    "Otter Tower": (550, True, "D5 M2 SATA"),
    "Badger Pro": (750, True, "D5 M2 SATA"),
    "Elk 500": (500, True, "D4 M2 SATA"),
    "Finch One": (350, False, "D4 SATA"),
}
_SUPPLIES = {"V-550": (550, 59), "V-650": (650, 79)}  # code: watts, price; always in stock


class Backend:
    """State: stock, orders, customers with an unpaid invoice, who waits for what."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {
            "stock": {name: product[3] for name, product in _PRODUCTS.items()},
            "orders": {},
            "unpaid": {"mirela@inkwell.example": 84},
            "watched": {},
        }

    def find_products(self, category: str, use: str, budget: int) -> dict[str, Any]:
        """What suits the use and the budget, the cheapest first. Stock is not looked at."""
        if use not in USES:
            raise ValueError(f"there is no use {use}; there are {', '.join(USES)}")
        suitable = sorted(
            (price, name)
            for name, (kind, uses, price, _, _) in _PRODUCTS.items()
            if kind == category and use in uses.split()
        )
        if not suitable:
            raise ValueError(f"there is no {category} for {use}")
        offers = [{"name": name, "price": price} for price, name in suitable if price <= budget]
        return {"matches": len(offers), "offers": offers, "lowest_price": suitable[0][0]}

    def check_fit(self, product: str, machine: str) -> dict[str, Any]:
        """Does the part go into the machine? A weak power supply may be replaced by a stronger."""
        kind = _product(product)[0]
        if kind in COMPUTERS:
            raise ValueError(f"the {product} is a whole computer, which is built into nothing")
        if machine not in _MACHINES:
            raise ValueError(f"the machine {machine} is not known")
        watts, replaceable, takes = _MACHINES[machine]
        needed = _WATTS.get(product, 0)
        if kind != "graphics_card":
            reason = "" if _NEEDS[product] in takes.split() else _mismatch(kind, takes)
        elif watts == 0:
            reason = "no_slot"
        elif watts < needed and not replaceable:
            reason = "special_supply"
        else:
            reason = ""
        if reason or watts >= needed:
            fit = "no_fit" if reason else "fits"
            return {"fit": fit, "reason": reason, "supply_code": None, "supply_price": 0}
        code = next(code for code, (supplies, _) in _SUPPLIES.items() if supplies >= needed)
        price = _SUPPLIES[code][1]
        return {"fit": "needs_power", "reason": "", "supply_code": code, "supply_price": price}

    def place_order(
        self, product: str, payment: str, handover: str, email: str, supply_code: str | None = None
    ) -> dict[str, Any]:
        """Sells one piece, with a power supply if wanted, when it is there and can be paid so."""
        kind, _, price, _, back = _product(product)
        if supply_code is not None and (supply_code not in _SUPPLIES or kind != "graphics_card"):
            raise ValueError(f"no power supply {supply_code} is sold with the {product}")
        number = f"B-{_digits(product, email.casefold())}"
        if number in self.state["orders"]:
            raise ValueError(f"the {product} is ordered already, as {number}")
        if self.state["stock"][product] == 0:
            return _ordered("sold_out", back_on=back)
        total = price + (_SUPPLIES[supply_code][1] if supply_code else 0)
        total += DELIVERY if handover == "delivery" and total < FREE_DELIVERY else 0
        reason = self._refusal(payment, handover, email.casefold(), total)
        if reason:
            return _ordered("payment_refused", reason=reason)
        self.state["stock"][product] -= 1
        self.state["orders"][number] = {
            "product": product,
            "supply_code": supply_code,
            "email": email.casefold(),
            "payment": payment,
            "handover": handover,
            "total": total,
        }
        pickup = TOMORROW if kind in COMPUTERS else TODAY
        ready = pickup if handover == "pickup" else BY_POST
        return _ordered("ordered", order_number=number, total=total, ready_on=ready)

    def watch_stock(self, product: str, email: str) -> dict[str, Any]:
        """Notes an address to be told when a product that is sold out is back."""
        back = _product(product)[4]
        if self.state["stock"][product] > 0:
            raise ValueError(f"the {product} is in stock, so there is nothing to wait for")
        number = f"W-{_digits('watch', product, email.casefold())}"
        self.state["watched"][number] = {"product": product, "email": email.casefold()}
        return {"watch_number": number, "expected_on": back or "2031-04-15"}

    def _refusal(self, payment: str, handover: str, email: str, total: int) -> str:
        """Why it cannot be paid in this way, "" when it can."""
        if payment == "cash" and handover != "pickup":
            return "cash_only_at_the_counter"
        if payment != "invoice":
            return ""
        if email in self.state["unpaid"]:
            return "unpaid_invoice"
        return "over_invoice_limit" if total > INVOICE_LIMIT else ""


def _product(name: str) -> tuple[str, str, int, int, str]:
    if name not in _PRODUCTS:
        raise ValueError(f"the shop has no {name}")
    return _PRODUCTS[name]


def _mismatch(kind: str, takes: str) -> str:
    if kind == "storage":
        return "no_connector"
    return "wrong_memory" if "D4" in takes or "D5" in takes else "soldered_memory"


def _ordered(
    status: str,
    *,
    order_number: str = "",
    total: int = 0,
    ready_on: str = "",
    reason: str = "",
    back_on: str = "",
) -> dict[str, Any]:
    """What `place_order` returns."""
    return {
        "status": status,
        "order_number": order_number,
        "total": total,
        "ready_on": ready_on,
        "reason": reason,
        "back_on": back_on,
    }


def _digits(*parts: str) -> str:
    """Four digits that follow from the parts."""
    return f"{int(hashlib.sha256('|'.join(parts).encode()).hexdigest(), 16) % 9000 + 1000}"
