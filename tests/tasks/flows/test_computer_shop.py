"""The role ``tasks/flows/computer_shop``: what holds of every role, and its rules, worked out
by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tasks.flows.checks import ByHand, Told, load, role_test

pytestmark = pytest.mark.xdist_group("computer_shop")  # so that one worker reads the role

# What people say instead of the value that a tool takes; all else must occur as it is.
ALIASES = {
    "graphics_card": ("gpu", "flare 80"),
    "storage": ("a drive",),
    "Flare 80": ("the 80",),
    "pickup": ("pick it up", "picking it up"),
    "delivery": ("have it sent",),
}
REFUSED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("whole computer", "check_fit", ("Heron 14", "Elk 500")),
    ("no power supply V-650", "place_order", ("Slab 1T", "card", "pickup", "a@b.example", "V-650")),
    (
        "no power supply V-999",
        "place_order",
        ("Flare 80", "card", "pickup", "a@b.example", "V-999"),
    ),
    ("in stock", "watch_stock", ("Otter Tower", "a@b.example")),
]
STEPS: list[tuple[str, tuple[Any, ...]]] = [
    ("place_order", ("Flare 80", "card", "delivery", "a@b.example", "V-650")),
    ("place_order", ("Flare 80", "card", "pickup", "c@d.example")),
    ("watch_stock", ("Slate 2T", "a@b.example")),
    ("watch_stock", ("Slate 2T", "c@d.example")),
]
VALUES: dict[str, list[Any]] = {
    "email": ["a@b.example", "mirela@inkwell.example"],
    "supply_code": ["V-550", "V-650", "V-000"],
    "budget": [1, 119, 120, 330, 650, 1149, 1290, 2000, 9999, 10000],
}


def keeps(before: Any, after: Any) -> None:
    """What is sold is no longer in stock, and nothing else."""
    sold = [order["product"] for order in after["orders"].values()]
    for product, left in before["stock"].items():
        assert after["stock"][product] == left - sold.count(product) >= 0


FLOW = load(
    "computer_shop",
    ByHand(
        # 400 is the limit of invoices; card and power supply are 559 and 79.
        told=Told(r"€(\d+)|\b[BWV]-\d+\b", frozenset({"400"}), {"V-650": "638"}, least=31),
        refused=REFUSED,
        steps=STEPS,
        values=VALUES,
        keeps=keeps,
        aliases=ALIASES,
        from_results=frozenset({"supply_code"}),
    ),
)
test_role = role_test(FLOW)


@pytest.fixture
def shop() -> Any:
    return FLOW.backend()


# Office: Wren 11 329, Heron 14 649, Heron 16 1149. Gaming: Kite G15 1290.
@pytest.mark.parametrize(
    ("category", "use", "budget", "prices", "lowest"),
    [
        ("laptop", "office", 1149, [329, 649, 1149], 329),
        ("laptop", "office", 1148, [329, 649], 329),
        ("laptop", "gaming", 1289, [], 1290),
        ("laptop", "gaming", 1290, [1290], 1290),
        ("graphics_card", "office", 1000, [119], 119),
        ("memory", "video", 100, [], 109),
        ("desktop", "video", 1, [], 1390),
    ],
)
def test_offers(
    shop: Any, category: str, use: str, budget: int, prices: list[int], lowest: int
) -> None:
    found = shop.find_products(category, use, budget)
    assert [offer["price"] for offer in found["offers"]] == prices
    assert (found["matches"], found["lowest_price"]) == (len(prices), lowest)


# Watts: Flare 60 450, Flare 80 650, Ember 20 300; Elk 500, Otter Tower 550, Badger Pro 750, Finch
# One 350 in a form of its own; no cards go into an Otter Mini or a laptop.
@pytest.mark.parametrize(
    ("product", "machine", "fit", "reason", "supply_code"),
    [
        ("Flare 60", "Elk 500", "fits", "", None),
        ("Flare 80", "Elk 500", "needs_power", "", "V-650"),
        ("Flare 80", "Otter Tower", "needs_power", "", "V-650"),
        ("Flare 80", "Badger Pro", "fits", "", None),
        ("Flare 60", "Finch One", "no_fit", "special_supply", None),
        ("Ember 20", "Finch One", "fits", "", None),
        ("Ember 20", "Otter Mini", "no_fit", "no_slot", None),
        ("Loom D4-16", "Elk 500", "fits", "", None),
        ("Loom D5-16", "Elk 500", "no_fit", "wrong_memory", None),
        ("Loom D5-16", "Heron 16", "no_fit", "soldered_memory", None),
        ("Slab 1T", "Otter Mini", "no_fit", "no_connector", None),
        ("Slate 1T", "Heron 14", "fits", "", None),
    ],
)
def test_what_fits(
    shop: Any, product: str, machine: str, fit: str, reason: str, supply_code: str | None
) -> None:
    found = shop.check_fit(product, machine)
    assert (found["fit"], found["reason"], found["supply_code"]) == (fit, reason, supply_code)
    assert found["supply_price"] == (79 if supply_code == "V-650" else 0)


@pytest.mark.parametrize(
    ("product", "payment", "handover", "supply", "total", "ready"),
    [
        ("Slab 1T", "card", "pickup", None, 59, "2031-03-12"),
        ("Slab 1T", "card", "delivery", None, 59 + 9, "2031-03-14"),
        ("Flare 60", "card", "delivery", None, 289 + 9, "2031-03-14"),
        ("Flare 60", "card", "delivery", "V-550", 289 + 59, "2031-03-14"),  # 300 or more: no 9
        ("Flare 60", "invoice", "delivery", "V-650", 289 + 79, "2031-03-14"),
        ("Otter Mini", "cash", "pickup", None, 489, "2031-03-13"),  # set up overnight
    ],
)
def test_orders(
    shop: Any,
    product: str,
    payment: str,
    handover: str,
    supply: str | None,
    total: int,
    ready: str,
) -> None:
    left = shop.state["stock"][product]
    done = shop.place_order(product, payment, handover, "a@b.example", supply)
    assert (done["status"], done["total"], done["ready_on"]) == ("ordered", total, ready)
    assert shop.state["stock"][product] == left - 1
    assert shop.state["orders"][done["order_number"]]["total"] == total


@pytest.mark.parametrize(
    ("product", "payment", "handover", "email", "reason"),
    [
        ("Slab 1T", "cash", "delivery", "a@b.example", "cash_only_at_the_counter"),
        ("Otter Mini", "invoice", "pickup", "a@b.example", "over_invoice_limit"),
        ("Slab 1T", "invoice", "pickup", "Mirela@Inkwell.example", "unpaid_invoice"),
        ("Otter Mini", "invoice", "pickup", "mirela@inkwell.example", "unpaid_invoice"),
    ],
)
def test_refused_payments_change_nothing(
    shop: Any, product: str, payment: str, handover: str, email: str, reason: str
) -> None:
    done = shop.place_order(product, payment, handover, email)
    assert (done["status"], done["reason"], done["total"]) == ("payment_refused", reason, 0)
    assert shop.state == FLOW.backend().state


def test_sold_out_is_told_before_a_payment_is_refused(shop: Any) -> None:
    done = shop.place_order("Badger Pro", "invoice", "pickup", "a@b.example")
    assert (done["status"], done["back_on"], done["reason"]) == ("sold_out", "2031-04-02", "")


def test_the_last_piece_is_sold_once_and_then_waited_for(shop: Any) -> None:
    with pytest.raises(ValueError, match="in stock"):
        shop.watch_stock("Otter Tower", "a@b.example")
    assert shop.place_order("Otter Tower", "card", "pickup", "a@b.example")["total"] == 1390
    assert shop.place_order("Otter Tower", "card", "pickup", "c@d.example")["status"] == "sold_out"
    number = shop.watch_stock("Otter Tower", "C@d.example")["watch_number"]
    assert shop.state["watched"] == {number: {"product": "Otter Tower", "email": "c@d.example"}}


def test_nobody_orders_the_same_twice(shop: Any) -> None:
    shop.place_order("Slab 1T", "card", "pickup", "a@b.example")
    with pytest.raises(ValueError, match="ordered already"):
        shop.place_order("Slab 1T", "card", "pickup", "A@b.example")
