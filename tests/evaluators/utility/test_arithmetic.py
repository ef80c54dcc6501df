"""The arithmetic check: finds plain slips, and never blames what may be right."""

from __future__ import annotations

import json
import operator
import string
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.utility.arithmetic import Wrong, check_arithmetic
from agenteval.evaluators.utility.expressions import evaluate

DEVSET = Path(__file__).parents[3] / "benchmarks" / "devset" / "problems.jsonl"


@pytest.mark.parametrize(
    ("text", "excerpt", "expected"),
    [
        ("The morning gives 14 * 12 = 158 rolls.", "14 * 12 = 158", "168"),
        ("So 1,200 × 3 = 3,500 in all.", "1,200 * 3 = 3,500", "3600"),
        ("We get (3 + 4) · 2 = 15.", "(3 + 4) * 2 = 15", "14"),
        ("Then 3/4 + 1/8 = 5/8 of it remain.", "3/4 + 1/8 = 5/8", "0.875"),
        ("The share is 1 / 3 + 1 / 3 = 3/4.", "1 / 3 + 1 / 3 = 3/4", "2/3"),
        ("Here 2^10 = 1000 holds.", "2^10 = 1000", "1024"),
        ("Therefore 17.6 − 2.5 = 15.2 km.", "17.6 - 2.5 = 15.2", "15.1"),
        ("That is 20% of 80 = 18.", "20% of 80 = 18", "16"),
        (r"Hence $\frac{3}{4} \times 12 = 8$.", "((3)/(4)) * 12 = 8", "9"),
        (r"It follows that \(5 \cdot 7 = 36\).", "5 * 7 = 36", "35"),
        ("Squares: 3² + 4² = 24 remains.", "3^2 + 4^2 = 24", "25"),
        ("1. 14*12 = 158", "14*12 = 158", "168"),
        ("- 90 + 45 = 145 minutes", "- 90 + 45 = 145", "135"),
        ("total = 14 * 12 = 158", "14 * 12 = 158", "168"),
        ("168 = 14 * 13", "168 = 14 * 13", "182"),
        ("5 * 20 = 100 = 4 * 24", "100 = 4 * 24", "96"),
        ("243 rolls - 196 rolls = 48 rolls", "243 rolls - 196 rolls = 48", "47"),
        ("Then 2(3 + 4) = 16 follows.", "2(3 + 4) = 16", "14"),
        ("Then -3 + 5 = 8.", "-3 + 5 = 8", "2"),
        ("**14 + 3 = 18**", "14 + 3 = 18", "17"),
        ("10 / 4 ≈ 3.4", "10 / 4 ≈ 3.4", "2.5"),
        ("The cost is $5 + $3 = $9.", "5 + 3 = 9", "8"),
        ("The speed is 72 / 3 = 25 m/s.", "72 / 3 = 25", "24"),
        ("[assistant]\nSo 6 x 7 = 43.", "6*7 = 43", "42"),
    ],
)
def test_finds_slips(text: str, excerpt: str, expected: str) -> None:
    report = check_arithmetic(text)
    assert report.wrong == (Wrong(excerpt, expected),)
    assert report.checked >= 1


@pytest.mark.parametrize(
    "text",
    [
        # not a number on both sides
        "Let x = 5 and y = x + 3 = 8.",
        "From 8w = 208 we get w = 26; 2x + 5 = 17.",
        "f(2) = 4, C(5, 2) = 10, gcd(12, 18) = 6, 5! = 120, |-3| = 3",
        "x + 3 = 10 and 3 + x = 11 and 5 * x = 11",
        r"$\binom{5}{2} = 11$, $\sqrt{9 + 16} = 5$, $x^{2} = 5$, $a_{1} = 3$, $\sum_{i} i = 4$",
        "√16 + 2 = 6",
        # words that change what is said
        "Half of 12 + 6 = 9. Twice 5 + 1 = 12.",
        "The square root of 16 + 9 = 5.",
        "17 / 5 = 3 remainder 2, 17 / 5 = 3 R 2, 17 / 5 = 3 with 2 left over",
        "3 * 4 = 1 dozen, 2 * 500 = 1 thousand, 5 * 2 = 1 plus 9",
        "25 of 12 + 3 = 15",
        # units and conversions
        "90 + 45 = 2 hours 15 minutes",
        "90 + 45 = 2 h and 15 min",
        "45 + 45 = 1.5 hours",
        "2 hours * 60 = 120 minutes, 5 feet + 3 inches = 63 inches",
        "3 m * 4 m = 12 m²",
        "3 * 5 kg = 15000 g",
        "3x + 4 = 7x",
        # rounding
        "2 / 3 = 0.67, 2 / 3 = 0.66, 1 / 3 ≈ 0.33, 22 / 7 ≈ 3.14, 347 + 5 ≈ 350",
        "196 / 5 = 39 full bags, 41 / 6 = 7 buses",
        "1.05 * 4410 = 4630",
        # percentages
        "3 / 4 * 100 = 75%, 3 / 4 = 75 %, (18 - 15) / 15 = 20%, 80 + 5% = 84",
        "9600 + 5% = 10080, 60 - 15 = 45 percentage points",
        # chains and running totals
        "3 + 4 = 7 + 5 = 12 - 2 = 10",
        # ranges, clock times, dates, versions, lists
        "Read pages 10-15 = 6 pages.",
        "From 9:40 + 1:00 = 10:40 on. 22:30 + 2 = 0:30",
        "Version 1.2.3 + 4 = 5, x = 3,4 + 5 = 9",
        "1 000 + 500 = 1 500",
        "1.000 + 1 = 1001",
        "2 1/2 + 1 = 3.5",
        # bullets and labels
        "- 5 + 3 = 8",
        "Step 2 - 5 + 3 = 8",
        # ambiguous precedence
        "72 / 3 * 8 = 3, -3^2 = 9, -3^2 = -9, 6/2(1+2) = 1, 6/2(1+2) = 9",
        "2^3^2 = 64",
        # code and comparison
        "`3 + 4 = 8` and `a == 3`",
        "```\n3 + 4 = 8\n```",
        "3 + 4 == 8, 3 + 4 != 8, 3 + 4 <= 8, count += 1, 3 + 4 => 8",
        # the text itself does not claim it
        "It is wrong that 3 + 4 = 8.",
        "If 3 + 4 = 8, then everything follows.",
        "Is 3 + 4 = 8?",
        "3 + 4 = 8. Wait, that is wrong.",
        "So 14 * 12 = 158. That cannot be, since it must be divisible by 12.",
        "15 + 10 = 1 (mod 24)",
        "In binary, 1 + 1 = 10.",
        # unknowns, ellipses
        "5 + ? = 8, 1 + 2 + ... + 10 = 55, 1/3 = 0.333...",
        "1 / 0 = 5, 2^999999 = 4, ((((3 + 4 = 7",
        # what a tool or a user wrote is not the system's claim
        "[tool: calc]\n3 + 4 = 8\n\n[user]\n5 + 5 = 11",
        "",
        "=",
        "= = = 3 = + 4 =",
    ],
)
def test_no_false_alarm(text: str) -> None:
    assert check_arithmetic(text).wrong == ()


OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


@given(
    st.recursive(
        st.integers(0, 99).map(lambda n: (str(n), n)),
        lambda inner: st.tuples(inner, st.sampled_from(sorted(OPERATIONS)), inner).map(
            lambda t: (f"({t[0][0]} {t[1]} {t[2][0]})", OPERATIONS[t[1]](t[0][1], t[2][1]))
        ),
        max_leaves=8,
    ),
    st.integers(-5, 5),
)
def test_agrees_with_python(made: tuple[str, int], error: int) -> None:
    expression, value = made
    report = check_arithmetic(f"We find {expression} = {value + error}.")
    compound = any(c in expression for c in "+-*")
    assert bool(report.wrong) == (compound and error != 0)
    assert report.checked == compound


@given(st.text(alphabet=string.digits + " +-*/^()%.,=≈\n$\\{}abx≠", max_size=60))
def test_any_text_is_read(text: str) -> None:
    report = check_arithmetic(text)
    assert len(report.wrong) <= report.checked


def test_devset() -> None:
    """No false alarm on right and fluent wrong texts; slips in prose cannot be seen."""
    items = [json.loads(line) for line in DEVSET.read_text("utf-8").splitlines()]
    for key in ("good", "wrong"):
        alarms = {i["id"]: check_arithmetic(i[key]).wrong for i in items}
        assert {k: w for k, w in alarms.items() if w} == {}
    slips = [check_arithmetic(i["slip"]) for i in items if i["slip"] is not None]
    flagged = sum(bool(r.wrong) for r in slips)
    print(f"\n{flagged} of {len(slips)} slips flagged")
    assert flagged >= 0.7 * len(slips)


@pytest.mark.parametrize(
    ("tokens", "strict", "loose"),
    [
        ("1 / 2 * 3", Fraction(3, 2), Fraction(1, 6)),
        ("- 3 ^ 2", Fraction(-9), Fraction(9)),
        ("2 ^ - 1", Fraction(1, 2), Fraction(1, 2)),
        ("20 % of 80", Fraction(16), Fraction(16)),
        ("2 - - 3", Fraction(5), Fraction(5)),
    ],
)
def test_evaluate(tokens: str, strict: Fraction, loose: Fraction) -> None:
    assert evaluate(tokens.split()) == strict
    assert evaluate(tokens.split(), loose=True) == loose


@pytest.mark.parametrize("tokens", ["", "2 +", "( 3", "3 )", "80 + 5 %", "2 ^ 1000", "2 3"])
def test_evaluate_refuses(tokens: str) -> None:
    with pytest.raises(ValueError):
        evaluate(tokens.split())


def test_evaluate_bounds_depth() -> None:
    with pytest.raises(ValueError):
        evaluate([*"(" * 25, "1", *")" * 25])
