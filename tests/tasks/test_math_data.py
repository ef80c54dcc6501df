"""The data of ``tasks/math``: its form, and labels, lengths and tool outputs by computation.

The right answers are computed here, by brute force or symbolically; the field ``reference`` of the
file is compared with them and never used as their source.
"""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import sympy as sp  # type: ignore[import-untyped,unused-ignore]
import yaml
from sympy.parsing.sympy_parser import (  # type: ignore[import-untyped,unused-ignore]
    convert_xor,
    parse_expr,
    rationalize,
    standard_transformations,
)

Run = dict[str, Any]
Check = Callable[[list[Run]], list[str]]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tasks" / "math"
SYSTEMS = ("stepwise", "coder", "duo")
KINDS_TRUE = {"ok", "verbose", "unclear", "mended", "gap"}
KINDS_FALSE = {
    "slip",
    "off_by_one",
    "missed_case",
    "wrong_method",
    "bug",
    "unexecuted",
    "approximate",
}
FIELDS = {"id", "task", "system", "input", "output", "messages", "success", "reference", "metadata"}
META = {"problem", "field", "level", "answer", "kind"}

X = sp.symbols("x", real=True)


# --- the right answers, computed -------------------------------------------------------------


def p01() -> Any:
    return sum(1 for n in range(1, 501) if n % 2 == 0 and n % 7 == 3)


def p02() -> Any:
    return (3**100 + 5**100) % 13


def p03() -> Any:
    rows = itertools.product("RBY", repeat=6)
    return sum(1 for r in rows if all(pair != ("R", "R") for pair in itertools.pairwise(r)))


def p04() -> Any:
    draws = list(itertools.combinations("GGGGGWWWW", 3))
    return Fraction(sum(1 for d in draws if d.count("G") >= 2), len(draws))


def p05() -> Any:
    k, z = sp.symbols("k z")
    return sp.solveset(sp.discriminant(z**2 - (k + 2) * z + 2 * k + 1, z), k, sp.S.Reals)


def p06() -> Any:
    return sp.FiniteSet(*sp.solve(sp.sqrt(X + 7) - (X - 5), X))


def p07() -> Any:
    z = sp.symbols("z")
    roots = sp.Poly(z**3 - 6 * z**2 + 5 * z + 3, z).nroots(n=40)
    return sp.nsimplify(sp.re(sum(1 / r**2 for r in roots)), rational=True, tolerance=1e-25)


def p08() -> Any:
    a, b = sp.symbols("a b")
    pairs = sp.solve([a + b - 5, a**3 + b**3 - 50], [a, b])
    assert all(u.is_real and v.is_real for u, v in pairs)
    (value,) = {sp.simplify(u**4 + v**4) for u, v in pairs}
    return value


def p09() -> Any:
    return Fraction(80) * Fraction(75, 100) * Fraction(90, 100) * Fraction(105, 100)


def p10() -> Any:
    return Fraction(6 * 14 - 4 * 11, 2)


def p11() -> Any:
    a, b, c = sp.Point(0, 0), sp.Point(22, 0), sp.Point(16, sp.sqrt(100 - 36))
    assert b.distance(c) == 10
    return a.distance(c)


def p12() -> Any:
    # Twice the part of the disc around the origin that lies beyond the common chord u = 3.
    u = sp.symbols("u", nonnegative=True)
    return 2 * sp.integrate(2 * sp.sqrt(36 - u**2), (u, 3, 6))


def p13() -> Any:
    found = sp.solveset(sp.sin(2 * X) - sp.cos(X), X, sp.Interval.Ropen(0, 2 * sp.pi))
    return sp.simplify(sum(found))


def p14() -> Any:
    z = sp.symbols("z", positive=True)
    return sp.FiniteSet(*sp.solve(sp.log(z, 2) + sp.log(z, 4) + sp.log(z, 8) - 11, z))


def p15() -> Any:
    t = sp.symbols("t")
    pumps, drain = sp.Rational(1, 6) + sp.Rational(1, 4), sp.Rational(1, 12)
    return sp.solve(pumps * t - drain * (t - 1) - 1, t)[0]


def p16() -> Any:
    return Fraction(24) / (Fraction(12, 5 + 1) + Fraction(1, 2) + Fraction(12, 5 - 1))


def p17() -> Any:
    def strict(n: int) -> bool:
        pairs = list(itertools.pairwise(str(n)))
        return all(a < b for a, b in pairs) or all(a > b for a, b in pairs)

    return sum(1 for n in range(1000, 10000) if strict(n))


def p18() -> Any:
    # 1/a + 1/b = 1/12 with a <= b forces 12 < a <= 24; the other half is the mirror image.
    half = [(a, 12 * a // (a - 12)) for a in range(13, 25) if 12 * a % (a - 12) == 0]
    assert all(Fraction(1, a) + Fraction(1, b) == Fraction(1, 12) for a, b in half)
    return len({pair for a, b in half for pair in ((a, b), (b, a))})


def p19() -> Any:
    return next(n for n in itertools.count(1) if sum(7 + 4 * i for i in range(n)) > 1000)


def p20() -> Any:
    return Fraction(sum(max(roll) for roll in itertools.product(range(1, 7), repeat=2)), 36)


SOLVERS = (
    *(p01, p02, p03, p04, p05, p06, p07, p08, p09, p10),
    *(p11, p12, p13, p14, p15, p16, p17, p18, p19, p20),
)


# --- helpers ---------------------------------------------------------------------------------


def as_set(value: Any) -> Any:
    """The value as a finite set of exact sympy numbers; a text is parsed, commas separate."""
    if isinstance(value, str):
        rules = (*standard_transformations, convert_xor, rationalize)
        value = parse_expr(value, transformations=rules)
    if isinstance(value, sp.FiniteSet):
        return value
    items = value if isinstance(value, tuple | sp.Tuple) else (value,)
    return sp.FiniteSet(*(sp.nsimplify(sp.sympify(item)) for item in items))


def same(left: Any, right: Any) -> bool:
    """Whether two finite sets hold the same numbers."""
    a, b = list(as_set(left)), list(as_set(right))
    covers = all(any(sp.simplify(u - v) == 0 for v in b) for u in a)
    return len(a) == len(b) and covers


def plain(text: str) -> str:
    """The text with LaTeX, products and spacing of formulas brought to one spelling."""
    text = re.sub(r"\\[td]?frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", text)
    text = re.sub(r"\\sqrt\{([^{}]*)\}", r"sqrt(\1)", text)
    text = re.sub(r"√(\d+)", r"sqrt(\1)", text).replace("\\pi", "pi").replace("π", "pi")
    text = re.sub(r"\\cdot|[·*]", "", text)
    return re.sub(r"\s*([-+/^()])\s*", r"\1", text)


def claims(text: str, answer: str) -> bool:
    """Whether the answer stands in the text, not merely as a part of a longer number."""
    pattern = rf"(?<![\w./]){re.escape(plain(answer))}(?![\w/]|\.\d)"
    return re.search(pattern, plain(text)) is not None


def spoken(run: Run) -> str:
    """All messages but the user's."""
    return "\n".join(m["content"] for m in run["messages"] if m["role"] != "user")


def auc(scores: list[float], labels: list[bool]) -> float:
    """P(score of a true run > score of a false run), ties half (Mann-Whitney)."""
    good = [s for s, y in zip(scores, labels, strict=True) if y]
    bad = [s for s, y in zip(scores, labels, strict=True) if not y]
    wins = sum((g > b) + 0.5 * (g == b) for g in good for b in bad)
    return wins / (len(good) * len(bad))


def labels_of(runs: list[Run]) -> list[bool]:
    return [run["success"] for run in runs]


def executed(run: Run) -> Iterator[tuple[str, str]]:
    """Pairs (code block, output shown by the tool message that follows it)."""
    for before, after in itertools.pairwise(run["messages"]):
        if after["role"] == "tool":
            blocks = re.findall(r"```python\n(.*?)```", before["content"], flags=re.DOTALL)
            yield blocks[-1], after["content"]


# --- the checks ------------------------------------------------------------------------------


def check_form(runs: list[Run]) -> list[str]:
    """Fields, ids, roles, and one run of each system for each of 20 problems."""
    bad = []
    wanted = {f"math-{n:02d}-{system}" for n in range(1, 21) for system in SYSTEMS}
    if sorted(run["id"] for run in runs) != sorted(wanted):
        bad.append("ids are not the 20 x 3 expected ones")
    texts = {(run["metadata"]["problem"], run["input"]) for run in runs}
    if len(texts) != 20:
        bad.append("a problem has several texts, or two problems share one")
    for run in runs:
        meta, messages = run["metadata"], run["messages"]
        first, last = messages[0], messages[-1]
        kinds = KINDS_TRUE if run["success"] is True else KINDS_FALSE
        facts = {
            "fields": set(run) == FIELDS and set(meta) == META,
            "task": run["task"] == "math" and type(run["success"]) is bool,
            "id": run["id"] == f"math-{meta['problem'][1:]}-{run['system']}",
            "first": first == {"role": "user", "content": run["input"]},
            "last": last["role"] == "assistant" and last["content"] == run["output"],
            "text": all(m["content"].strip() for m in messages),
            "kind": meta["kind"] in kinds and meta["level"] in range(1, 6),
        }
        bad += [f"{run['id']}: {name}" for name, holds in facts.items() if not holds]
    return bad


@cache
def right_answers() -> dict[str, Any]:
    return {f"p{n:02d}": as_set(solve()) for n, solve in enumerate(SOLVERS, start=1)}


def check_labels(runs: list[Run]) -> list[str]:
    """``success``, ``reference`` and the claimed answer against the computed right answers."""
    right = right_answers()
    bad = []
    for run in runs:
        answer, truth = run["metadata"]["answer"], right[run["metadata"]["problem"]]
        if not same(run["reference"], truth):
            bad.append(f"{run['id']}: reference {run['reference']} is not {truth}")
        if run["success"] != (answer is not None and same(answer, truth)):
            bad.append(f"{run['id']}: success {run['success']} with answer {answer}, not {truth}")
        if answer is not None and not claims(run["output"], answer):
            bad.append(f"{run['id']}: the final message does not say {answer}")
        if (answer is None) != (run["metadata"]["kind"] == "unexecuted"):
            bad.append(f"{run['id']}: no answer goes with kind unexecuted only")
    return bad


def check_balance(runs: list[Run]) -> list[str]:
    """Per system 25 to 75 % true; at least 12 problems with a true and a false run."""
    bad = []
    for system in SYSTEMS:
        share = [run["success"] for run in runs if run["system"] == system]
        if not 0.25 <= sum(share) / len(share) <= 0.75:
            bad.append(f"{system}: {sum(share)} of {len(share)} true")
    if len(mixed(runs)) < 12:
        bad.append(f"only {len(mixed(runs))} mixed problems")
    return bad


def mixed(runs: list[Run]) -> list[str]:
    seen = defaultdict(set)
    for run in runs:
        seen[run["metadata"]["problem"]].add(run["success"])
    return sorted(problem for problem, values in seen.items() if len(values) == 2)


def check_length(runs: list[Run]) -> list[str]:
    """AUC of the number of characters against success within .40 to .60."""
    value = auc([len(spoken(run)) for run in runs], labels_of(runs))
    return [] if 0.40 <= value <= 0.60 else [f"AUC of length {value:.3f}"]


def check_tools(runs: list[Run]) -> list[str]:
    """Every tool message is what the code above it prints when it is run."""

    def judge(item: tuple[str, str, str]) -> list[str]:
        name, code, shown = item
        done = subprocess.run(
            [sys.executable, "-I", "-"], input=code, capture_output=True, text=True, timeout=120
        )
        fine = done.returncode == 0 and done.stdout.rstrip("\n") == shown
        return [] if fine else [f"{name}: shows {shown!r}, prints {done.stdout + done.stderr!r}"]

    items = [(run["id"], code, shown) for run in runs for code, shown in executed(run)]
    if not items:
        return ["no tool message at all"]
    with ThreadPoolExecutor(2) as pool:
        return [line for lines in pool.map(judge, items) for line in lines]


CHECKS = (check_form, check_labels, check_balance, check_length, check_tools)


# --- the tests -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    text = (FOLDER / "runs.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_data_passes(check: Check, runs: list[Run]) -> None:
    assert check(runs) == []


def test_claims_looks_at_whole_numbers() -> None:
    assert claims(r"so $\boxed{-\frac{11}{9}}$", "-11/9")
    assert claims("Length: 8·√5, about 17.89", "8*sqrt(5)")
    assert claims("Answer: 3π", "3*pi")
    assert not claims("There are 448 rows.", "4")
    assert not claims("about 20.5", "20")


def test_task_file_describes_the_task(runs: list[Run]) -> None:
    task = yaml.safe_load((FOLDER / "task.yaml").read_text(encoding="utf-8"))
    assert set(task) == {"name", "description", "examples"}
    assert task["name"] == "math"
    assert set(task["examples"]) == {"success", "failed"}
    known = {run["input"] for run in runs}
    for example in (*task["examples"]["success"], *task["examples"]["failed"]):
        assert set(example) == {"input", "output"}
        assert example["input"].strip() not in known


OPERATORS = {
    *("drop_sentences", "drop_words", "drop_middle", "shuffle_sentences"),
    *("truncate", "swap_numbers", "pad", "whitespace", "formatting"),
}
CONTROLS = {"whitespace", "formatting"}


def test_reviewed_criteria_are_well_formed() -> None:
    document = json.loads((ROOT / "criteria" / "math.reviewed.json").read_text(encoding="utf-8"))
    assert (document["schema"], document["task"]) == (1, "math")
    ids = [criterion["id"] for criterion in document["criteria"]]
    assert len(ids) == len(set(ids))
    assert {"clarity", "efficiency", "error-analysis", "completeness", "accuracy"} <= set(ids)
    for criterion in document["criteria"]:
        levels = [
            re.sub(r"\W+", " ", value.lower()).strip() for value in criterion["accepted_values"]
        ]
        assert 3 <= len(levels) == len(set(levels)) <= 5
        assert (criterion["scale"], criterion["order"]) == ("ordinal", "worst_to_best")
        assert set(criterion["expect"]) == OPERATORS
        assert set(criterion["expect"].values()) <= {"lower", "none", "higher", "unknown"}
        assert {criterion["expect"][control] for control in CONTROLS} == {"none"}
