"""The invoice desk of Brackwater Instruments: orders, claims, approvals, payments, in whole euros.

Numbers of claims follow from the invoice alone, so that the order of calls changes no state.
"""

from __future__ import annotations

from typing import Any

DIRECTOR = "Dunmore"
NO_APPROVAL_UP_TO = {"travel": 300, "training": 500, "equipment": 150, "meals": 60}
EQUIPMENT_BY_PURCHASING = 800  # dearer equipment is bought by the purchasing department
PAY_DAYS = {"transfer": "2031-03-17", "salary": "2031-03-31"}

# number: department, category, euros left
_ORDERS: dict[str, tuple[str, str, int]] = {
    "PO-3107": ("lab", "training", 1200),
    "PO-3118": ("lab", "equipment", 2600),
    "PO-3126": ("field", "travel", 900),
    "PO-3133": ("field", "equipment", 480),
    "PO-3140": ("sales", "travel", 3400),
    "PO-3152": ("sales", "meals", 250),
    "PO-3169": ("field", "training", 5200),
}
_EMPLOYEES: dict[str, tuple[str, str]] = {
    "E-104": ("Petra Lindgren", "lab"),
    "E-117": ("Simon Brandt", "lab"),
    "E-122": ("Noor Vandermeer", "lab"),
    "E-223": ("Oluwaseun Bakare", "field"),
    "E-231": ("Teresa Quintal", "field"),
    "E-246": ("Mikkel Rask", "field"),
    "E-305": ("Yara Haddad", "sales"),
    "E-311": ("Ingrid Solheim", "sales"),
    "E-318": ("Gordon Pryce", "sales"),
}
# surname: employee number, department ("" for all), most euros, back on ("" when in the house)
_APPROVERS: dict[str, tuple[str, str, int, str]] = {
    "Adeyemi": ("E-201", "field", 1500, ""),
    "Brandt": ("E-117", "lab", 1500, ""),
    "Castellano": ("E-301", "sales", 1500, "2031-03-20"),
    DIRECTOR: ("E-001", "", 5000, ""),
}


class Backend:
    """State: euros left on orders, and claims by their number."""

    def __init__(self) -> None:
        self.state: dict[str, Any] = {
            "left": {number: left for number, (_, _, left) in _ORDERS.items()},
            "claims": {
                _claim_id("HW-7730"): {
                    "invoice_number": "HW-7730",
                    "order_number": "PO-3118",
                    "employee_id": "E-104",
                    "amount": 95,
                    "status": "paid",
                    "approver": "",
                    "payment": "transfer",
                },
            },
        }

    def check_invoice(self, invoice_number: str, order_number: str, amount: int) -> dict[str, Any]:
        """Whether the invoice was filed before, and fits what is left on the order."""
        if _claim_id(invoice_number) in self.state["claims"]:
            return {"match": "duplicate", "left": 0}
        left = self.state["left"].get(order_number)
        if left is None:
            return {"match": "no_order", "left": 0}
        return {"match": "fits" if amount <= left else "over_order", "left": left}

    def file_claim(
        self, invoice_number: str, order_number: str, amount: int, employee_id: str, category: str
    ) -> dict[str, Any]:
        """Files a claim and says which way it goes; one against the rules is not kept.

        Refused: the invoice does not fit (see check_invoice), or there is no such employee.
        """
        match = self.check_invoice(invoice_number, order_number, amount)["match"]
        if match != "fits":
            raise ValueError(f"the invoice {invoice_number} cannot be filed: {match}")
        if employee_id not in _EMPLOYEES:
            raise ValueError(f"there is no employee {employee_id}")
        broken = _broken_rule(order_number, amount, employee_id, category)
        if broken:
            return {"route": "reject", "claim_id": "", "rule": broken}
        claim_id, amount = _claim_id(invoice_number), int(amount)  # JSON may write 310 as 310.0
        most = NO_APPROVAL_UP_TO[category]
        free = amount <= most
        self.state["left"][order_number] -= amount
        self.state["claims"][claim_id] = {
            "invoice_number": invoice_number,
            "order_number": order_number,
            "employee_id": employee_id,
            "amount": amount,
            "status": "free" if free else "open",
            "approver": "",
            "payment": "",
        }
        rule = f"Claims for {category} need no approval up to {most} euros, else one."
        return {"route": "pay" if free else "approve", "claim_id": claim_id, "rule": rule}

    def request_approval(self, claim_id: str, approver: str) -> dict[str, Any]:
        """The approver's answer. Refused: no such claim, paid, declined, no such approver."""
        claim = self._claim(claim_id)
        if approver not in _APPROVERS:
            raise ValueError(f"{approver} approves no claims")
        if claim["status"] in ("paid", "declined"):
            raise ValueError(f"the claim {claim_id} is {claim['status']}")
        _, _, _, back_on = _APPROVERS[approver]
        if back_on:
            return {
                "decision": "away",
                "reason": f"{approver} is back on {back_on}.",
                "deputy": DIRECTOR,
            }
        reason = _why_not(claim, approver)
        decision = "declined" if reason else "approved"
        claim |= {"status": decision, "approver": approver}
        return {"decision": decision, "reason": reason, "deputy": ""}

    def pay_claim(self, claim_id: str, payment: str) -> dict[str, Any]:
        """Orders the payment. Refused: no such claim, paid, not approved, no such payment."""
        claim = self._claim(claim_id)
        if payment not in PAY_DAYS:
            raise ValueError(f"there is no payment by {payment}")
        if claim["status"] not in ("free", "approved"):
            raise ValueError(f"the claim {claim_id} cannot be paid, it is {claim['status']}")
        claim |= {"status": "paid", "payment": payment}
        return {"paid": claim["amount"], "pay_day": PAY_DAYS[payment]}

    def _claim(self, claim_id: str) -> dict[str, Any]:
        claim: dict[str, Any] | None = self.state["claims"].get(claim_id)
        if claim is None:
            raise ValueError(f"there is no claim {claim_id}")
        return claim


def _broken_rule(order_number: str, amount: int, employee_id: str, category: str) -> str:
    """The rule that forbids a claim; "" when none does. Refused: there is no such category."""
    if category not in NO_APPROVAL_UP_TO:
        raise ValueError(f"there is no category {category}")
    department, ordered, _ = _ORDERS[order_number]
    if _EMPLOYEES[employee_id][1] != department:
        return f"{order_number} is an order of the department {department}, for its people only."
    if category != ordered:
        return f"{order_number} is an order for {ordered}, not for {category}."
    if category == "equipment" and amount > EQUIPMENT_BY_PURCHASING:
        return f"Equipment above {EQUIPMENT_BY_PURCHASING} euros is bought by purchasing only."
    return ""


def _why_not(claim: dict[str, Any], approver: str) -> str:
    """Why an approver declines; "" for nothing."""
    number, department, most, _ = _APPROVERS[approver]
    if number == claim["employee_id"]:
        return "Nobody approves a claim of their own."
    if department and department != _ORDERS[claim["order_number"]][0]:
        return f"{approver} approves for the department {department} only."
    if claim["amount"] > most:
        return f"{approver} approves up to {most} euros."
    return ""


def _claim_id(invoice_number: str) -> str:
    """CL- and the number of the invoice: no invoice has two claims."""
    return f"CL-{invoice_number.replace('-', '')}"
