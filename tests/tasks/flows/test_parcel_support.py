"""The role ``tasks/flows/parcel_support``: what holds of every role, and its rules, worked out
by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tasks.flows.checks import ByHand, Told, load, role_test

pytestmark = pytest.mark.xdist_group("parcel_support")  # so that one worker reads the role

# What people say instead of the value that a tool takes; all else must occur as it is.
ALIASES = {"neighbour": ("neighbor",)}
REFUSED: list[tuple[str, str, tuple[Any, ...]]] = [
    ("no parcel", "check_redirect", ("MP0000000", "home", "2031-11-22")),
    ("not on its way", "check_redirect", ("MP5030914", "home", "2031-11-22")),
    ("not on its way", "redirect_parcel", ("MP5019276", "home", "2031-11-22")),
    ("out of range", "check_redirect", ("MP5041773", "home", "2031-11-31")),
    ("no parcel", "open_claim", ("MP0000000", "damaged", 10)),
    ("still on its way", "open_claim", ("MP5041773", "not_received", 10)),
    ("not delivered", "open_claim", ("MP5019276", "damaged", 10, "F-2231")),
]
STEPS: list[tuple[str, tuple[Any, ...]]] = [
    ("redirect_parcel", ("MP5041773", "locker", "2031-11-22")),
    ("redirect_parcel", ("MP5043605", "shop", "2031-11-25")),
    ("open_claim", ("MP5030914", "damaged", 85, "F-2231")),
    ("open_claim", ("MP5019276", "not_received", 280, "D-1130")),
]
VALUES: dict[str, list[Any]] = {
    "tracking_number": ["MP5041773", "MP5043605", "MP5030914", "MP5019276", "MP0000000"],
    "postcode": ["27180", "30455", "00000"],
    "place": ["home", "neighbour", "locker", "shop"],
    "day": ["2031-11-21", "2031-11-23", "2031-11-24", "2031-11-31", "0000-01-01", "9999-12-31"],
    "problem": ["damaged", "missing_items", "not_received"],
    "value": [1, 60, 100000],
    "proof": ["F-2231", "D-1130", "F-0000"],
}


def keeps(before: Any, after: Any) -> None:
    """Nobody is paid more than the cover of the parcel."""
    for claim in after["claims"].values():
        assert claim["amount"] <= before["parcels"][claim["tracking_number"]]["cover"]


FLOW = load(
    "parcel_support",
    ByHand(
        told=Told(r"€(\d+)|\b[CFD]-\d+\b|\bMP\d+\b", least=9),
        weekdays=11,
        refused=REFUSED,
        steps=STEPS,
        values=VALUES,
        keeps=keeps,
        aliases=ALIASES,
    ),
)
test_role = role_test(FLOW)


@pytest.fixture
def depot() -> Any:
    return FLOW.backend()


# It is Thursday, 20 November 2031, 11:40.
@pytest.mark.parametrize(
    ("number", "postcode", "status"),
    [
        ("MP5041773", "27180", "on_the_way"),
        ("MP5041773", "27181", "unknown"),
        ("MP0000000", "27180", "unknown"),
        ("MP5044190", "27233", "on_the_way"),  # expected today
        ("MP5030914", "30455", "delivered"),
        ("MP5019276", "30517", "overdue"),  # by nine days
    ],
)
def test_tracking(depot: Any, number: str, postcode: str, status: str) -> None:
    assert depot.track_parcel(number, postcode)["status"] == status


@pytest.mark.parametrize(("expected", "status"), [("14", "overdue"), ("15", "on_the_way")])
def test_overdue_is_more_than_five_days(depot: Any, expected: str, status: str) -> None:
    depot.state["parcels"]["MP5019276"]["expected"] = f"2031-11-{expected}"
    assert depot.track_parcel("MP5019276", "30517")["status"] == status


# MP5041773: expected on Friday 21; MP5043605: Monday 24, signature; MP5033348: Tuesday 25, 12 kg.
@pytest.mark.parametrize(
    ("number", "place", "day", "fee", "reason"),
    [
        ("MP5041773", "home", "2031-11-22", 0, ""),
        ("MP5041773", "shop", "2031-11-21", 0, ""),  # until 18:00 today
        ("MP5041773", "locker", "2031-11-28", 2, ""),  # seven days later
        ("MP5041773", "neighbour", "2031-11-24", 3, ""),
        ("MP5041773", "locker", "2031-11-29", 0, "day_not_possible"),
        ("MP5041773", "locker", "2031-11-20", 0, "day_not_possible"),
        ("MP5041773", "locker", "2031-11-23", 0, "sunday"),
        ("MP5044190", "home", "2031-11-21", 0, "deadline_passed"),
        ("MP5043605", "neighbour", "2031-11-24", 0, "signature_needed"),
        ("MP5043605", "locker", "2031-11-24", 0, "signature_needed"),
        ("MP5043605", "shop", "2031-11-24", 0, ""),
        ("MP5033348", "locker", "2031-11-25", 0, "too_heavy"),
        ("MP5033348", "neighbour", "2031-11-25", 3, ""),
    ],
)
def test_redirections(depot: Any, number: str, place: str, day: str, fee: int, reason: str) -> None:
    found = depot.check_redirect(number, place, day)
    assert found == {"possible": reason == "", "fee": fee, "reason": reason}
    if reason:
        with pytest.raises(ValueError, match=reason):
            depot.redirect_parcel(number, place, day)
        assert depot.state == FLOW.backend().state
    else:
        assert depot.redirect_parcel(number, place, day)["charged"] == fee
        assert depot.state["parcels"][number]["expected"] == day
        again = depot.check_redirect(number, "home", day)
        assert (again["possible"], again["reason"]) == (False, "redirected_before")


# MP5030914: two days ago, cover 50; MP5028467: twelve days ago, cover 120; MP5034071: signed for;
# MP5019276: never came, cover 300.
@pytest.mark.parametrize(
    ("number", "problem", "value", "proof", "verdict", "told"),
    [
        ("MP5030914", "damaged", 85, "F-2231", "accepted", 50),
        ("MP5030914", "missing_items", 20, "F-2231", "accepted", 20),
        ("MP5030914", "damaged", 85, None, "proof_missing", "photo_needed"),
        ("MP5030914", "damaged", 85, "D-1107", "proof_missing", "photo_needed"),
        ("MP5030914", "damaged", 85, "F-2260", "proof_missing", "proof_unknown"),
        ("MP5030914", "not_received", 85, "F-2231", "proof_missing", "declaration_needed"),
        ("MP5028467", "damaged", 60, "F-2260", "refused", "deadline_passed"),
        ("MP5028467", "not_received", 60, None, "proof_missing", "declaration_needed"),
        ("MP5034071", "not_received", 60, "D-1107", "refused", "signed_for"),
        ("MP5034071", "damaged", 60, None, "proof_missing", "photo_needed"),
        ("MP5019276", "not_received", 280, "D-1130", "accepted", 280),
        ("MP5019276", "not_received", 380, "D-1130", "accepted", 300),
    ],
)
def test_claims(
    depot: Any,
    number: str,
    problem: str,
    value: int,
    proof: str | None,
    verdict: str,
    told: int | str,
) -> None:
    found = depot.open_claim(number, problem, value, proof)
    assert found["verdict"] == verdict
    assert told == (found["amount"] if verdict == "accepted" else found["reason"])
    amounts = [c["amount"] for c in depot.state["claims"].values()]
    assert amounts == ([told] if verdict == "accepted" else [])


@pytest.mark.parametrize(
    ("problem", "delivered", "verdict"),
    [
        ("damaged", "2031-11-13", "accepted"),  # seven days
        ("damaged", "2031-11-12", "refused"),
        ("not_received", "2031-10-30", "proof_missing"),  # 21 days
        ("not_received", "2031-10-29", "refused"),
    ],
)
def test_deadlines_of_claims(depot: Any, problem: str, delivered: str, verdict: str) -> None:
    depot.state["parcels"]["MP5030914"]["delivered"] = delivered
    assert depot.open_claim("MP5030914", problem, 10, "F-2231")["verdict"] == verdict


def test_a_parcel_is_claimed_once(depot: Any) -> None:
    depot.open_claim("MP5030914", "damaged", 85, "F-2231")
    with pytest.raises(ValueError, match="already"):
        depot.open_claim("MP5030914", "missing_items", 10, "F-2231")
