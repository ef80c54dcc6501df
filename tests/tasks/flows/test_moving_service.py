"""The role ``tasks/flows/moving_service``: data against backend and chart, rules by hand."""

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

FOLDER = Path(__file__).resolve().parents[3] / "tasks" / "flows" / "moving_service"
FLOW = load(FOLDER, from_results=frozenset({"van", "reference"}))


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


def test_agents_say_the_sums_that_were_returned() -> None:
    """Sums and references stand in the rules or in a result or message before them; what is still
    to pay is only said after the payment, which returns it."""
    rules = FLOW.role.scenarios[0].background + str(FLOW.tool("book_van").parameters)
    for where, session, _ in FLOW.sessions():
        known = set(re.findall(r"\d+", rules))
        for turn in session.turns:
            if turn.kind == "reply":
                told = re.findall(r"\b(\d+) euros|\b(OX-\w+)", turn.text)
                assert {a or b for a, b in told} <= known, (where, turn.text)
            else:
                known |= set(re.findall(r"\d+|OX-\w+", turn.text or json.dumps(turn.result)))


def test_a_wrong_branch_leads_straight_to_another_call() -> None:
    """Here one van will do, and the surveyor is sent."""
    profile = next(p for p in FLOW.role.scenarios[0].profiles if p.id == "bettina")
    wrong = behaviours(FLOW.role, profile, backend=FLOW.backend)["wrong_branch"]
    assert wrong.system is not None
    assert wrong.system.parameters["edge"] == "Too much for one van (offer = survey)"


@pytest.fixture
def firm() -> Any:
    return FLOW.backend()


# Small vans carry 12 cubic metres: 160 and 1 for each km; large ones 32: 290 and 2 for each km.
@pytest.mark.parametrize(
    ("origin", "destination", "volume", "offer", "van", "price"),
    [
        ("Carrow", "Carrow", 1, "van", "small", 160),
        ("Carrow", "Dunmill", 12, "van", "small", 200),
        ("dunmill", "CARROW", 12, "van", "small", 200),
        ("Carrow", "Dunmill", 13, "van", "large", 370),
        ("Brenford", "Farlow", 32, "van", "large", 740),
        ("Brenford", "Farlow", 33, "survey", "", 0),
        ("Dunmill", "Haverby", 5, "van", "small", 450),  # 290 km
        ("Carrow", "Haverby", 5, "outside", "", 0),  # 330 km
        ("Carrow", "Haverby", 200, "outside", "", 0),
        ("Carrow", "Zellmark", 5, "outside", "", 0),
    ],
)
def test_quotes(
    firm: Any, origin: str, destination: str, volume: int, offer: str, van: str, price: int
) -> None:
    quote = firm.quote_move(origin, destination, volume)
    assert quote == {"offer": offer, "van": van, "price": price}


# 2031-06-14 is a Saturday. Of 3 small and 2 large vans some are taken.
@pytest.mark.parametrize(
    ("van", "day", "left", "surcharge", "next_day"),
    [
        ("small", "2031-06-13", 3, 0, "2031-06-16"),  # the 14th is full, the 15th a Sunday
        ("small", "2031-06-14", 0, 20, "2031-06-16"),
        ("large", "2031-06-14", 1, 20, "2031-06-16"),
        ("small", "2031-06-15", 0, 0, "2031-06-16"),
        ("small", "2031-06-16", 1, 0, "2031-06-17"),
        ("large", "2031-06-20", 0, 0, "2031-06-23"),
        ("small", "2031-08-09", 3, 20, ""),  # the last day that can be booked
    ],
)
def test_days(firm: Any, van: str, day: str, left: int, surcharge: int, next_day: str) -> None:
    checked = firm.check_day(van, day)
    assert checked == {"vans_left": left, "surcharge": surcharge, "next_day": next_day}


# Carrow to Dunmill: 200 small, 370 large. Saturday adds a fifth, full insurance 45 or 80.
@pytest.mark.parametrize(
    ("volume", "day", "insurance", "total", "deposit"),
    [
        (10, "2031-06-17", "basic", 200, 50),
        (10, "2031-06-17", "full", 245, 61),
        (10, "2031-06-21", "full", 285, 71),
        (20, "2031-06-17", "full", 450, 112),
        (20, "2031-07-05", "basic", 444, 111),
    ],
)
def test_totals(firm: Any, volume: int, day: str, insurance: str, total: int, deposit: int) -> None:
    booked = firm.book_van("Carrow", "Dunmill", volume, day, insurance, "0711111111")
    assert (booked["total"], booked["deposit"]) == (total, deposit)


def test_the_last_van_of_a_day(firm: Any) -> None:
    firm.book_van("Carrow", "Dunmill", 10, "2031-06-16", "basic", "0711111111")
    assert firm.check_day("small", "2031-06-16")["vans_left"] == 0
    with pytest.raises(ValueError, match="no small van is left"):
        firm.book_van("Carrow", "Dunmill", 10, "2031-06-16", "basic", "0722222222")
    assert firm.check_day("large", "2031-06-16")["vans_left"] == 2


def test_a_card_pays_a_deposit_once_and_only_with_credit(firm: Any) -> None:
    booked = firm.book_van("Carrow", "Dunmill", 10, "2031-06-17", "full", "0711111111")
    reference = booked["reference"]  # total 245, deposit 61
    for card in ("6371", "0000"):  # 50 euros of credit; unknown
        assert firm.pay_deposit(reference, card) == {"paid": False, "rest": 245}
    assert firm.state["moves"][reference]["status"] == "held"
    assert firm.pay_deposit(reference, "1188") == {"paid": True, "rest": 184}
    assert firm.state["cards"]["1188"] == 339
    with pytest.raises(ValueError, match="is paid"):
        firm.pay_deposit(reference, "2204")


# 2031-06-11 is a Wednesday. Mondays, Wednesdays and Fridays in the morning.
@pytest.mark.parametrize(
    ("day", "window"),
    [
        ("2031-06-11", "09:00-12:00"),
        ("2031-06-12", "13:00-17:00"),
        ("2031-06-13", "09:00-12:00"),
        ("2031-06-14", "13:00-17:00"),
    ],
)
def test_visits(firm: Any, day: str, window: str) -> None:
    assert firm.book_survey("Estwick", day, "0711111111")["window"] == window
    with pytest.raises(ValueError, match="already"):
        firm.book_survey("Estwick", day, "0711111111")


def _book(firm: Any, destination: str, volume: int, day: str) -> Any:
    return firm.book_van("Carrow", destination, volume, day, "basic", "0711111111")


REFUSED: list[tuple[str, Callable[[Any], Any]]] = [
    ("no day 2031-06-31", lambda d: d.check_day("small", "2031-06-31")),
    ("next 60 days", lambda d: d.check_day("small", "2031-06-10")),  # today
    ("next 60 days", lambda d: d.check_day("small", "2031-08-10")),
    ("outside", lambda d: _book(d, "Zellmark", 10, "2031-06-17")),
    ("survey", lambda d: _book(d, "Dunmill", 33, "2031-06-17")),
    ("no small van", lambda d: _book(d, "Dunmill", 10, "2031-06-15")),
    ("next 60 days", lambda d: _book(d, "Dunmill", 10, "2031-06-01")),
    ("no move", lambda d: d.pay_deposit("OX-AAAAAA", "2204")),
    ("Sundays", lambda d: d.book_survey("Carrow", "2031-06-15", "0711111111")),
]


@pytest.mark.parametrize(("why", "call"), REFUSED, ids=[f"{i}" for i in range(len(REFUSED))])
def test_refused_with_a_sentence(firm: Any, why: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(ValueError, match=why):
        call(firm)
    assert firm.state == FLOW.backend().state


def test_one_move_of_a_phone_on_a_day(firm: Any) -> None:
    _book(firm, "Dunmill", 10, "2031-06-17")
    with pytest.raises(ValueError, match="has booked a move"):
        _book(firm, "Estwick", 5, "2031-06-17")
    assert _book(firm, "Estwick", 5, "2031-06-18")["total"] == 270


def test_whole_numbers_may_be_written_with_a_point(firm: Any) -> None:
    """JSON Schema takes 10.0 for an integer."""
    other: Any = FLOW.backend()
    for desk, volume in ((firm, 10.0), (other, 10)):
        booked = desk.book_van("Carrow", "Dunmill", volume, "2031-06-17", "basic", "0711111111")
        assert json.dumps(booked["total"]) == "200"
    assert json.dumps(firm.state) == json.dumps(other.state)


def test_the_order_of_calls_changes_no_state() -> None:
    steps: list[Callable[[Any], Any]] = [
        lambda d: _book(d, "Dunmill", 10, "2031-06-17"),
        lambda d: _book(d, "Dunmill", 20, "2031-06-18"),
        lambda d: d.book_van("Farlow", "Carrow", 4, "2031-06-17", "full", "0722222222"),
        lambda d: d.book_survey("Estwick", "2031-06-13", "0733333333"),
    ]
    ends = []
    for order in permutations(steps):
        firm: Any = FLOW.backend()
        for step in order:
            step(firm)
        ends.append(firm.state)
    assert all(end == ends[0] for end in ends)


_PHONES = ["0711111111", "0722222222"]
_FIRM: Any = FLOW.backend()
_REFERENCES = [
    _FIRM.book_van("Carrow", "Dunmill", 20, "2031-06-16", "basic", phone)["reference"]
    for phone in _PHONES
]
_DATE = r"20[0-9]{2}-(0[0-9]|1[0-9])-[0-3][0-9]"
_TOWN = st.sampled_from(["Carrow", "Dunmill", "aldmouth", "Haverby", "Nowhere at all"])
_VALUES: dict[str, st.SearchStrategy[Any]] = {
    "origin": _TOWN,
    "destination": _TOWN | st.text(min_size=2, max_size=40),
    "volume": st.integers(1, 40) | st.integers(1, 200),
    "van": st.sampled_from(["small", "large"]),
    "day": st.sampled_from(["2031-06-14", "2031-06-15", "2031-06-16"])
    | st.from_regex(_DATE, fullmatch=True),
    "insurance": st.sampled_from(["basic", "full"]),
    "phone": st.sampled_from(_PHONES) | st.from_regex("07[0-9]{8}", fullmatch=True),
    "reference": st.sampled_from(_REFERENCES) | st.from_regex("OX-[A-Z2-7]{6}", fullmatch=True),
    "card": st.sampled_from(["2204", "6371"]) | st.from_regex("[0-9]{4}", fullmatch=True),
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
def test_no_van_and_no_euro_is_lost_whatever_is_called(calls: list[Any]) -> None:
    firm: Any = FLOW.backend()
    money, taken = sum(firm.state["cards"].values()), sum(firm.state["taken"].values())
    for tool, arguments in calls:
        assert CHECKS[tool.name, "in"].is_valid(arguments)
        before = json.dumps(firm.state)
        try:
            result = carry_out(firm, tool.name, arguments)
        except ValueError:
            assert json.dumps(firm.state) == before
            continue
        CHECKS[tool.name, "out"].validate(result)
        assert tool.effect == "write" or json.dumps(firm.state) == before
    moves = firm.state["moves"].values()
    paid = sum(m["deposit"] for m in moves if m["status"] == "confirmed")
    assert sum(firm.state["cards"].values()) == money - paid
    assert min(firm.state["cards"].values()) >= 0
    assert sum(firm.state["taken"].values()) == taken + len(moves)
    fleet = {"small": 3, "large": 2}
    assert all(n <= fleet[key.split("/")[0]] for key, n in firm.state["taken"].items())
