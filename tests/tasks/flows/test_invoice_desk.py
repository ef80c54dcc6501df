"""The role ``tasks/flows/invoice_desk``: data against backend and chart, rules by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agenteval.evaluators.workflows.scripted.behaviours import CAUSE, behaviours
from tests.tasks.flows.checks import ALL, Check, load
from tests.tasks.flows.flow import carry_out

FOLDER = Path(__file__).resolve().parents[3] / "tasks" / "flows" / "invoice_desk"
FLOW = load(FOLDER, from_results=frozenset({"claim_id"}))


@pytest.mark.parametrize("check", ALL, ids=lambda f: f.__name__)
def test_role(check: Check) -> None:
    assert check(FLOW) == []


def test_every_mistake_can_be_planted_for_somebody() -> None:
    planted = {
        name
        for profile in FLOW.role.scenarios[0].profiles
        for name, b in behaviours(FLOW.role, profile, backend=FLOW.backend).items()
        if b.system is not None
    }
    assert planted >= set(CAUSE)


def test_agents_say_the_numbers_that_were_returned() -> None:
    """Sums and numbers of claims stand in the scenario or in a result or message before them."""
    for where, session, _ in FLOW.sessions():
        known = set(re.findall(r"\d+", FLOW.role.scenarios[0].background))
        for turn in session.turns:
            if turn.kind == "reply":
                told = re.findall(r"\b(\d+) euros|\b(CL-\w+)", turn.text)
                assert {a or b for a, b in told} <= known, (where, turn.text)
            else:
                said = turn.text or json.dumps([turn.arguments, turn.result])
                known |= set(re.findall(r"\d+|CL-\w+", said))


def test_a_wrong_branch_leads_straight_to_another_call() -> None:
    """Here who need no approval are asked for one."""
    profile = next(p for p in FLOW.role.scenarios[0].profiles if p.id == "noor")
    wrong = behaviours(FLOW.role, profile, backend=FLOW.backend)["wrong_branch"]
    assert wrong.system is not None
    assert wrong.system.parameters["edge"] == "Above the limit (route = approve)"


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


REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("no_order", lambda d: d.file_claim("AA-0001", "PO-9999", 10, "E-104", "travel")),
    ("over_order", lambda d: d.file_claim("AA-0001", "PO-3152", 251, "E-305", "meals")),
    ("no employee E-999", lambda d: d.file_claim("AA-0001", "PO-3152", 20, "E-999", "meals")),
    ("no claim", lambda d: d.request_approval("CL-AA0001", "Brandt")),
    ("is paid", lambda d: d.request_approval("CL-HW7730", "Brandt")),
    ("no claim", lambda d: d.pay_claim("CL-AA0001", "salary")),
    ("is paid", lambda d: d.pay_claim("CL-HW7730", "salary")),
]


@pytest.mark.parametrize(("why", "call"), REFUSED, ids=[f"{i}" for i in range(len(REFUSED))])
def test_refused_with_a_sentence(desk: Any, why: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=why):
        call(desk)
    assert desk.state == FLOW.backend().state


def test_whole_numbers_may_be_written_with_a_point(desk: Any) -> None:
    """JSON Schema takes 200.0 for an integer."""
    desk.file_claim("AA-0001", "PO-3107", 200.0, "E-122", "training")
    other: Any = FLOW.backend()
    other.file_claim("AA-0001", "PO-3107", 200, "E-122", "training")
    assert json.dumps(desk.state) == json.dumps(other.state)


def test_the_order_of_calls_changes_no_state() -> None:
    steps: list[Callable[[Any], Any]] = [
        lambda d: d.file_claim("AA-0001", "PO-3118", 700, "E-104", "equipment"),
        lambda d: d.file_claim("AA-0002", "PO-3118", 90, "E-122", "equipment"),
        lambda d: d.file_claim("AA-0003", "PO-3140", 500, "E-318", "travel"),
        lambda d: d.file_claim("AA-0004", "PO-3169", 2000, "E-246", "training"),
    ]
    ends = []
    for order in permutations(steps):
        desk: Any = FLOW.backend()
        for step in order:
            step(desk)
        ends.append(desk.state)
    assert all(end == ends[0] for end in ends)


def _or_any(known: list[str], pattern: str) -> st.SearchStrategy[str]:
    return st.sampled_from(known) | st.from_regex(pattern, fullmatch=True)


_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "invoice_number": _or_any(["HW-7730", "AA-0001", "AA-0002"], "[A-Z]{2}-[0-9]{4}"),
    "order_number": _or_any(["PO-3107", "PO-3118", "PO-3169", "PO-3152"], "PO-[0-9]{4}"),
    "amount": st.integers(1, 400) | st.integers(1, 20000),
    "employee_id": _or_any(["E-104", "E-117", "E-246", "E-305"], "E-[0-9]{3}"),
    "category": st.sampled_from(["travel", "training", "equipment", "meals"]),
    "claim_id": _or_any(["CL-AA0001", "CL-AA0002", "CL-HW7730"], "CL-[A-Z]{2}[0-9]{4}"),
    "approver": st.sampled_from(["Adeyemi", "Brandt", "Castellano", "Dunmore"]),
    "payment": st.sampled_from(["transfer", "salary"]),
}
_CALLS = st.sampled_from(FLOW.role.scenarios[0].tools).flatmap(
    lambda tool: st.tuples(
        st.just(tool), st.fixed_dictionaries({n: _VALUES[n] for n in tool.required})
    )
)

CHECKS = {
    (t.name, way): Draft202012Validator(schema)
    for t in FLOW.role.scenarios[0].tools
    for way, schema in (("in", t.parameters), ("out", t.returns))
}


@settings(max_examples=30)
@given(st.lists(_CALLS, max_size=12))
def test_no_euro_is_lost_whatever_is_called(calls: list[Any]) -> None:
    desk: Any = FLOW.backend()
    budget = dict(desk.state["left"])
    for tool, arguments in calls:
        assert CHECKS[tool.name, "in"].is_valid(arguments)
        before = json.dumps(desk.state)
        try:
            result = carry_out(desk, tool.name, arguments)
        except ValueError:
            assert json.dumps(desk.state) == before
            continue
        CHECKS[tool.name, "out"].validate(result)
        assert tool.effect == "write" or json.dumps(desk.state) == before
    for claim in desk.state["claims"].values():
        if claim["invoice_number"] != "HW-7730":  # filed before
            budget[claim["order_number"]] -= claim["amount"]
        assert (claim["payment"] != "") == (claim["status"] == "paid")
    assert budget == desk.state["left"]
    assert min(budget.values()) >= 0
