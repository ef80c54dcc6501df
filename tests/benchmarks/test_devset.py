"""The development set says what its README promises: form, balance, right and wrong arithmetic."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import math
import operator
import re
import sqlite3
from calendar import isleap
from collections import Counter
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import cache
from itertools import combinations, pairwise, product
from pathlib import Path
from typing import Any

import pytest

Item = dict[str, Any]

PROBLEMS = Path(__file__).parents[2] / "benchmarks" / "devset" / "problems.jsonl"
DOMAINS = {"mathematics": 24} | dict.fromkeys(
    ("code", "planning", "household", "explanation", "mail"), 8
)
FIELDS = {"id", "domain", "problem", "good", "wrong", "answer", "numbers"}
NUMBER = re.compile(r"\d+(?:[.:/]\d+)*")
EXPRESSION = re.compile(r"[\d+*/^().=×÷ -]*=[\d+*/^().=×÷ -]*")
OPERATORS: dict[type[ast.AST], Callable[[Fraction, Fraction], Fraction]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def clock(time: str) -> int:
    """Minutes since midnight."""
    hours, minutes = time.split(":")
    return int(hours) * 60 + int(minutes)


def best_split() -> int:
    """Shortest finishing time of the six print jobs on two machines, over all splits."""
    jobs = (50, 40, 30, 30, 20, 10)
    splits = product((True, False), repeat=len(jobs))
    loads = [sum(job for job, first in zip(jobs, split, strict=True) if first) for split in splits]
    return min(max(load, sum(jobs) - load) for load in loads)


def busiest_room() -> int:
    """Minutes in use by the largest set of meetings without overlap, over all subsets."""
    requests = "9:00-10:30 9:30-10:00 10:00-11:00 10:30-12:00 11:00-11:45 11:30-12:30 12:00-13:00"
    meetings = sorted(tuple(map(clock, r.split("-"))) for r in requests.split())
    subsets = [s for n in range(8) for s in combinations(meetings, n)]
    free = [s for s in subsets if all(a[1] <= b[0] for a, b in pairwise(s))]
    most = max(map(len, free))
    (minutes,) = {sum(end - start for start, end in s) for s in free if len(s) == most}
    return minutes


def computed() -> dict[str, float | int | Fraction]:
    """The answers, worked out from the problems in another way than the texts do it."""
    socks = list(combinations("bbbbbbgggg", 2))
    people = list(combinations("nnnnndddd", 3))
    return {
        "dev-001": divmod(14 * 12 + 75 - 196, 5)[0],
        "dev-002": next(m for m in range(580, 900) if 15 * (m - 540) == 25 * (m - 580)),
        "dev-003": 12 * (1 - Fraction(15, 60)),
        "dev-004": next(3 * w * w for w in range(1, 99) if 2 * (w + 3 * w) == 208),
        "dev-005": next(n for n in range(8, 999, 8) if n - n * 3 // 8 - (n * 5 // 8) * 0.4 == 72),
        "dev-006": next(x for x in range(101) if Fraction(72 + 85 + 64 + 91 + x, 5) == 80),
        "dev-007": next(t for t in range(99) if t * Fraction(72000, 3600) - 180 == 620),
        "dev-008": next(4 * s for s in range(1, 99) if 4 * s + 6 == 3 * (s + 6)),
        "dev-009": 4000 + 4000 * (Fraction(21, 20) ** 3 - 1) * Fraction(4, 5),
        "dev-010": sum("d" in team for team in people),
        "dev-011": Fraction(sum(a == b for a, b in socks), len(socks)),
        "dev-012": sum(t % 18 == t % 24 == t % 30 == 0 for t in range(3600)),
        "dev-013": next(c for c in range(121) if 9 * (120 - c) + 6 * c == 897),
        "dev-014": (2 * (18 + 12) * Fraction(3, 2) + 4 * Fraction(3, 2) ** 2) * 4,
        "dev-015": Fraction("8.5") / 100 * 340 * 2 * Fraction("1.6") / 4,
        "dev-016": Fraction("17.6") * 25000 / 100 / 1000 / 4 * 60 + 24,
        "dev-017": Fraction(str(round(math.sqrt(6.5**2 - 2.5**2) - math.sqrt(6.5**2 - 3.9**2), 9))),
        "dev-018": (437 * 7 - 59) // (30 * 8),
        "dev-019": sum(22 + 3 * row for row in range(16)) * Fraction(3, 4),
        "dev-020": clock("10:15") + 95 + 25 + 128 + 25 + 74,
        "dev-021": 9600 * Fraction(85, 100) * Fraction(5 - 3, 5 + 4 + 3),
        "dev-022": abs(Fraction(440, 720) * 360 - Fraction(20, 60) * 360),
        "dev-023": (Fraction(80 * 35 * (40 - 5), 1000) - 8) * Fraction(5, 15),
        "dev-024": Fraction(14 * 11 + 6 * 16, 14 + 6) * Fraction(12, 10) / 2,
        "dev-026": 1 + sum(k * k for k in range(2, 7)),
        "dev-028": len(list(combinations(range(20), 2))),
        "dev-029": Fraction(1200 * 800 * 3 * 4, 10**6),
        "dev-033": clock("19:00") - 15 - 90 - 20,
        "dev-034": clock("8:00") + best_split(),
        "dev-035": clock("8:30") + 50 * (math.ceil(36 / 12) + math.ceil(5 / 2)) + 60,
        "dev-036": Fraction((14 + 9 + 7) * 50, 12 - 2),
        "dev-037": 2 + max(3, 4) + 2 + 1,
        "dev-038": max(t for t in range(clock("12:25") - 51) if t % 60 in {5, 25, 45}) - 12,
        "dev-039": busiest_room(),
        "dev-040": 2 * 360 // 90 - 6,
        "dev-042": Fraction(250 * 10, 4),
        "dev-043": 150 + Fraction(45, 2) - 7,
        "dev-045": Fraction(8000, 39 + 1),
        "dev-048": math.ceil((2 * (4.2 + 3.3) * 2.5 - 4) * 2 / 9 / 2.5),
        "dev-050": Fraction(round(343 * 12, -2), 1000),
        "dev-051": 2000 * Fraction(104 - 101, 100),
        "dev-053": sum(isleap(year) for year in range(2001, 2101)),
        "dev-058": 2 * Fraction("18.5") - 10,
        "dev-059": 4 * 91 - 100,
        "dev-063": 26 * Fraction("5.5") + 60,
    }


@cache
def items() -> tuple[Item, ...]:
    """All 64 problems in the order of the file."""
    with PROBLEMS.open(encoding="utf-8") as lines:
        return tuple(json.loads(line) for line in lines)


def with_numbers() -> list[Item]:
    return [item for item in items() if item["numbers"]]


def evaluate(text: str) -> Fraction | None:
    """Exact value of an arithmetic expression; None when the text is not one."""
    source = text.strip().replace("×", "*").replace("÷", "/").replace("^", "**")
    if source[:1] in {"+", "-", "*", "/"}:  # the tail of something with a letter or a unit
        return None
    try:
        tree = ast.parse(source, mode="eval")
    except SyntaxError:
        return None

    def value(node: ast.AST) -> Fraction | None:
        if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
            return Fraction(str(node.value))
        if isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
            left, right = value(node.left), value(node.right)
            if left is None or right is None:
                return None
            return OPERATORS[type(node.op)](left, right)
        return None

    return value(tree.body)


def equations(text: str) -> Iterator[tuple[str, bool]]:
    """Each equation between two numeric expressions, and whether it holds exactly."""
    text = re.sub(r"[=!<>]=|\.(?=\s|$)", "#", text)
    for match in EXPRESSION.finditer(text):
        sides = match.group().split("=")
        # A letter that touches a side makes it no number: f(2) = 4, 8w = 208, 48 = 8w.
        if re.search(r"[\w\]%]$", text[: match.start()]) and not match.group().startswith(" "):
            sides[0] = ""
        if re.match(r"[^\W\d]", text[match.end() :]) and not match.group().endswith(" "):
            sides[-1] = ""
        for left, right in pairwise(sides):
            a, b = evaluate(left), evaluate(right)
            if a is not None and b is not None:
                yield f"{left.strip()} = {right.strip()}", a == b


def false_equations(text: str) -> list[str]:
    return [equation for equation, holds in equations(text) if not holds]


def sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+", text.strip()) if part]


def words(text: str) -> list[str]:
    return re.findall(r"[\w']+", text.lower())


def texts(item: Item) -> list[str]:
    return [item[key] for key in ("problem", "good", "wrong")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("14 * 12 = 168 rolls, then 168 + 75 = 244.", [True, False]),
        ("w = 208 / 8 = 26 m and 8w = 208 and 2x + 5 = 17.", [True]),
        ("So 6 × 7 ÷ 2 = 21. 3/12 = 1/4. Test `a == 3`, f(2) = 9, 5 = 5w.", [True, True]),
        ("Year 1: 0.1 + 0.2 = 0.3 = 0.4", [True, False]),
        ("16 * (22 + 67) / 2 = 712, (3/4) / (1/4) = 3", [True, True]),
    ],
)
def test_equation_reader(text: str, expected: list[bool]) -> None:
    assert [holds for _, holds in equations(text)] == expected


def test_schema() -> None:
    for item in items():
        assert set(item) == FIELDS
        assert item["domain"] in DOMAINS
        assert all(isinstance(item[key], str) and item[key] for key in ("problem", "good", "wrong"))
        assert isinstance(item["numbers"], bool)
        assert item["answer"] is not None or not item["numbers"]


def test_ids_are_unique_and_in_order() -> None:
    assert [item["id"] for item in items()] == [f"dev-{k:03d}" for k in range(1, 65)]


def test_domains() -> None:
    assert Counter(item["domain"] for item in items()) == DOMAINS


@pytest.mark.parametrize("key", ["good", "wrong"])
def test_six_to_fourteen_sentences(key: str) -> None:
    counts = {item["id"]: len(sentences(item[key])) for item in items()}
    assert {k: n for k, n in counts.items() if not 6 <= n <= 14} == {}


def test_wrong_texts_have_similar_length() -> None:
    ratios = {item["id"]: len(item["wrong"]) / len(item["good"]) for item in items()}
    assert {k: r for k, r in ratios.items() if not 0.75 <= r <= 1.25} == {}


def test_length_does_not_tell_good_from_wrong() -> None:
    longer = sum(len(item["wrong"]) > len(item["good"]) for item in items())
    assert 28 <= longer <= 36
    good, wrong = ([len(item[key]) for item in items()] for key in ("good", "wrong"))
    auc = sum((g > w) + (g == w) / 2 for g in good for w in wrong) / (len(good) * len(wrong))
    assert 0.4 <= auc <= 0.6


def test_good_and_wrong_texts_contain_no_false_equation() -> None:
    found = {
        (item["id"], key): false_equations(item[key])
        for item in items()
        for key in ("good", "wrong")
    }
    assert {place: wrong for place, wrong in found.items() if wrong} == {}


def test_answers_end_the_good_text_and_no_other() -> None:
    for item in with_numbers():
        answer = re.compile(rf"(?<![\d.:/]){NUMBER.findall(item['answer'])[0]}(?![\d:/]|\.\d)")
        assert answer.search(sentences(item["good"])[-1]), item["id"]
        assert not answer.search(sentences(item["wrong"])[-1]), item["id"]


def test_answers_are_right() -> None:
    """Times count as minutes since midnight."""
    stated = {
        item["id"]: clock(number) if ":" in number else Fraction(number)
        for item in with_numbers()
        for number in NUMBER.findall(item["answer"])[:1]
    }
    assert stated == computed()


def snippet(key: str, item_id: str, start: str) -> str:
    """The piece of code in backticks that begins with `start`."""
    (item,) = (item for item in items() if item["id"] == item_id)
    (code,) = (code for code in re.findall(r"`([^`]*)`", item[key]) if code.startswith(start))
    return str(code)


@pytest.mark.parametrize(
    ("item_id", "argument", "expected"),
    [
        ("dev-025", "  good   morning all", "all morning good"),
        ("dev-025", " one two ", "two one"),
        ("dev-031", [7, 9, 9, 4], 7),
        ("dev-031", [5, 5], None),
    ],
)
def test_functions_in_the_texts(item_id: str, argument: object, expected: object) -> None:
    results: list[object] = []
    for key in ("good", "wrong"):
        names: dict[str, Any] = {}
        exec(snippet(key, item_id, "def "), {}, names)
        (function,) = names.values()
        try:
            results.append(function(argument))
        except IndexError as error:
            results.append(error)
    assert results[0] == expected
    assert results[1] != expected


def test_the_query_in_the_texts() -> None:
    with contextlib.closing(sqlite3.connect(":memory:")) as database:
        database.executescript(
            "CREATE TABLE customers(id INTEGER PRIMARY KEY, name);"
            "CREATE TABLE orders(id INTEGER PRIMARY KEY, customer_id, total);"
            "INSERT INTO customers VALUES (1, 'Ana'), (2, 'Bo'), (3, 'Cy');"
            "INSERT INTO orders VALUES (1, 1, 20), (2, 3, 0), (3, 1, 5);"
        )
        rows = {
            key: database.execute(snippet(key, "dev-030", "SELECT")).fetchall()
            for key in ("good", "wrong")
        }
    assert rows == {"good": [("Bo",)], "wrong": [("Cy",)]}


def test_the_printed_number_in_the_texts() -> None:
    start, loop, last = (snippet("problem", "dev-026", word) for word in ("t =", "for", "print"))
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec("\n".join((start, loop, last)), {})
    assert printed.getvalue().strip() == items()[25]["answer"]


def test_different_problems_share_no_eight_words() -> None:
    seen: dict[tuple[str, ...], str] = {}
    for item in items():
        mine = {
            tuple(list_[k : k + 8])
            for list_ in map(words, texts(item))
            for k in range(len(list_) - 7)
        }
        shared = {gram: seen[gram] for gram in mine if gram in seen}
        assert shared == {}, item["id"]
        seen |= {gram: str(item["id"]) for gram in mine}
