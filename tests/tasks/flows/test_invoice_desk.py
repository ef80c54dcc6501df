"""The role ``tasks/flows/invoice_desk``: what holds of every role, and its rules, worked out
by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tasks.flows.checks import ByHand, Told, load, role_test

pytestmark = pytest.mark.xdist_group("invoice_desk")  # so that one worker reads the role

REFUSED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("no_order", "file_claim", ("AA-0001", "PO-9999", 10, "E-104", "travel")),
    ("over_order", "file_claim", ("AA-0001", "PO-3152", 251, "E-305", "meals")),
    ("no employee E-999", "file_claim", ("AA-0001", "PO-3152", 20, "E-999", "meals")),
    ("no claim", "request_approval", ("CL-AA0001", "Brandt")),
    ("is paid", "request_approval", ("CL-HW7730", "Brandt")),
    ("no claim", "pay_claim", ("CL-AA0001", "salary")),
    ("is paid", "pay_claim", ("CL-HW7730", "salary")),
]
STEPS: list[tuple[str, tuple[Any, ...]]] = [
    ("file_claim", ("AA-0001", "PO-3118", 700, "E-104", "equipment")),
    ("file_claim", ("AA-0002", "PO-3118", 90, "E-122", "equipment")),
    ("file_claim", ("AA-0003", "PO-3140", 500, "E-318", "travel")),
    ("file_claim", ("AA-0004", "PO-3169", 2000, "E-246", "training")),
]
VALUES: dict[str, list[Any]] = {
    "invoice_number": ["HW-7730", "AA-0001", "AA-0002"],
    "order_number": ["PO-3107", "PO-3118", "PO-3169", "PO-3152"],
    "amount": [1, 20, 60, 61, 150, 151, 200, 250, 251, 300, 400, 500, 700, 801, 1500, 2000, 5001],
    "employee_id": ["E-104", "E-117", "E-246", "E-305"],
    "claim_id": ["CL-AA0001", "CL-AA0002", "CL-HW7730"],
}


def keeps(before: Any, after: Any) -> None:
    """No euro of an order is lost, and what is paid was to be paid in some way."""
    left = dict(before["left"])
    for claim in after["claims"].values():
        if claim["invoice_number"] != "HW-7730":  # filed before
            left[claim["order_number"]] -= claim["amount"]
        assert (claim["payment"] != "") == (claim["status"] == "paid")
    assert left == after["left"]
    assert min(left.values()) >= 0


FLOW = load(
    "invoice_desk",
    ByHand(
        told=Told(r"\b(\d+) euros|\b(CL-\w+)"),
        refused=REFUSED,
        steps=STEPS,
        values=VALUES,
        keeps=keeps,
        from_results=frozenset({"claim_id"}),
    ),
)
test_role = role_test(FLOW)


@pytest.fixture
def desk() -> Any:
    return FLOW.backend()


def test_an_invoice_fits_up_to_the_last_euro_of_its_order(desk: Any) -> None:
    assert desk.check_invoice("AA-0001", "PO-3152", 250) == {"match": "fits", "left": 250}
    assert desk.check_invoice("AA-0001", "PO-3152", 251) == {"match": "over_order", "left": 250}
    assert desk.check_invoice("AA-0001", "PO-9999", 1)["match"] == "no_order"
    assert desk.check_invoice("HW-7730", "PO-9999", 1)["match"] == "duplicate"


# Without approval: travel up to 300, training 500, equipment 150, meals 60.
@pytest.mark.parametrize(
    ("order_number", "employee_id", "category", "amount", "route"),
    [
        ("PO-3126", "E-223", "travel", 300, "pay"),
        ("PO-3126", "E-223", "travel", 301, "approve"),
        ("PO-3107", "E-104", "training", 500, "pay"),
        ("PO-3107", "E-104", "training", 501, "approve"),
        ("PO-3118", "E-104", "equipment", 150, "pay"),
        ("PO-3118", "E-104", "equipment", 151, "approve"),
        ("PO-3118", "E-104", "equipment", 800, "approve"),
        ("PO-3118", "E-104", "equipment", 801, "reject"),
        ("PO-3152", "E-305", "meals", 60, "pay"),
        ("PO-3152", "E-305", "meals", 61, "approve"),
        ("PO-3152", "E-305", "travel", 20, "reject"),  # an order for meals
        ("PO-3152", "E-104", "meals", 20, "reject"),  # an order of sales, for somebody of the lab
    ],
)
def test_routes(
    desk: Any, order_number: str, employee_id: str, category: str, amount: int, route: str
) -> None:
    before = desk.state["left"][order_number]
    filed = desk.file_claim("AA-0001", order_number, amount, employee_id, category)
    assert filed["route"] == route
    assert (filed["claim_id"] == "") == (route == "reject")
    spent = 0 if route == "reject" else amount
    assert desk.state["left"][order_number] == before - spent


# Adeyemi: field, up to 1500; Brandt (E-117): lab, up to 1500; Dunmore: all, up to 5000.
@pytest.mark.parametrize(
    ("order_number", "employee_id", "category", "amount", "approver", "decision"),
    [
        ("PO-3169", "E-246", "training", 1500, "Adeyemi", "approved"),
        ("PO-3169", "E-246", "training", 1501, "Adeyemi", "declined"),
        ("PO-3169", "E-246", "training", 5000, "Dunmore", "approved"),
        ("PO-3169", "E-246", "training", 5001, "Dunmore", "declined"),
        ("PO-3169", "E-246", "training", 600, "Brandt", "declined"),
        ("PO-3118", "E-104", "equipment", 700, "Brandt", "approved"),
        ("PO-3118", "E-117", "equipment", 700, "Brandt", "declined"),
        ("PO-3118", "E-117", "equipment", 700, "Dunmore", "approved"),
        ("PO-3140", "E-305", "travel", 700, "Castellano", "away"),
    ],
)
def test_decisions(
    desk: Any,
    order_number: str,
    employee_id: str,
    category: str,
    amount: int,
    approver: str,
    decision: str,
) -> None:
    desk.file_claim("AA-0001", order_number, amount, employee_id, category)
    answer = desk.request_approval("CL-AA0001", approver)
    assert answer["decision"] == decision
    assert (answer["reason"] == "") == (decision == "approved")
    if decision == "approved":
        assert desk.pay_claim("CL-AA0001", "transfer") == {"paid": amount, "pay_day": "2031-03-17"}
        return
    with pytest.raises(ValueError, match="cannot be paid"):
        desk.pay_claim("CL-AA0001", "transfer")


def test_who_is_away_names_a_deputy_and_leaves_the_claim_open(desk: Any) -> None:
    desk.file_claim("AA-0001", "PO-3140", 700, "E-305", "travel")
    assert desk.request_approval("CL-AA0001", "Castellano")["deputy"] == "Dunmore"
    assert desk.state["claims"]["CL-AA0001"]["status"] == "open"
    assert desk.request_approval("CL-AA0001", "Dunmore")["decision"] == "approved"
    assert desk.pay_claim("CL-AA0001", "salary")["pay_day"] == "2031-03-31"


def test_a_decline_is_final(desk: Any) -> None:
    desk.file_claim("AA-0001", "PO-3118", 700, "E-117", "equipment")
    desk.request_approval("CL-AA0001", "Brandt")
    with pytest.raises(ValueError, match="declined"):
        desk.request_approval("CL-AA0001", "Dunmore")


def test_an_invoice_is_filed_and_paid_once(desk: Any) -> None:
    desk.file_claim("AA-0001", "PO-3107", 200, "E-122", "training")
    desk.pay_claim("CL-AA0001", "transfer")
    assert desk.check_invoice("AA-0001", "PO-3118", 10)["match"] == "duplicate"
    with pytest.raises(ValueError, match="duplicate"):
        desk.file_claim("AA-0001", "PO-3107", 200, "E-122", "training")
    with pytest.raises(ValueError, match="it is paid"):
        desk.pay_claim("CL-AA0001", "transfer")
