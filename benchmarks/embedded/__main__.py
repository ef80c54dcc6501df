"""Which likelihood serves which kind of criterion: measured on the development set.

    python -m benchmarks.embedded [--half print] [--write] [--threads 2]

Every problem's right solution (the original) is compared with changed copies of itself:
drop (25 % of sentences), shuffle, tail and head cut (as many sentences as drop removes), swap
(numbers), pad (empty phrases), and with the written texts wrong and slip. Tables: the share of
same-problem pairs in which the original is higher, with a Wilson 95 % interval whose n is the
number of problems (several copies of one problem are averaged first, ties count half); the AUC over
all problems with a 95 % interval from 1000 bootstrap resamples of problems. The row `length` is
what the number of tokens alone would say. Token log-probabilities are kept in benchmarks/out/.

The rule (stated before the figures on the tasks were seen)
-----------------------------------------------------------
A calibration chooses for a kind, on one set of texts, the statistic that wins most surely: the
lower 95 % bound of pairs won (original above its own copy, ties half; Wilson, n cases) on the
operator where it is lowest, of those that the kind must react to. Its constants come from the same
texts. A chosen statistic holds on another set when there
1. it wins: the lower bound is above .50 for every operator that the kind must react to;
2. it keeps still: the value's mean change by whitespace, formatting and paraphrase is within 5 % of
   the scale, and what the bank expects to change nothing changes it less than each operator that
   the kind must react to;
3. it does not praise failures: where the outcome is known the AUC of success against failure is at
   least .50; for a kind that claims to tell them apart its lower 95 % bound (bootstrap over cases)
   is above .50;
4. it exists for 80 % of the runs and copies.

A kind is offered when what the development set chooses holds on math, household and support, what
math chooses holds on household and support, and what household chooses holds on math and support.

On the halves, until now
------------------------
Choices use the half `choose`; tables come from the half `print`.

Each kind has operators that it must react to and, where these change the length, controls that do
not let length alone pass:

============  ====================  =======================================  ===================
kind          must react to         control (lower bound above .50)          candidates
============  ====================  =======================================  ===================
completeness  drop                  tail and head cut together               all likelihoods
coherence     shuffle               none needed: same length                 all likelihoods
clarity       drop, shuffle, pad    shuffle (same length) is among them      all likelihoods
calculation   swap, slip            none needed: same length                 numbers, alone and
                                                                             after the arithmetic
                                                                             check
conciseness   pad                   none: it is a count, not a likelihood    tokens
============  ====================  =======================================  ===================

A candidate's strength is the lower Wilson bound of the share on the operator where it is lowest.
The strongest candidate that passes its control is chosen; ties go to the higher share, then to the
order of the table. A kind whose best strength is .60 or less is unsupported. What clarity must
react to is what the criteria bank expects of it.

Constants, from originals and the copies by the kind's operators (half the weight each) in `choose`:
value = 1 / (1 + exp(-1.702 (s - center - offset_p) / scale)), with center and scale the weighted
mean and standard deviation of the statistic s, and offset_p the mean change of s under paraphrase p
of the prompt. The logistic with 1.702 is within .01 of the normal distribution function (Camilli
1994), so a value says about which share of such texts has a lower statistic. For conciseness the
scale is at least ln 2: the development set was written to one length, so its spread says nothing
about the spread of real answers, and twice as long is counted as one standard deviation.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from agenteval.evaluators.utility.arithmetic import check_arithmetic
from agenteval.evaluators.utility.calibration import Kind, load_calibration
from agenteval.evaluators.utility.likelihood_features import INSTRUCTIONS, PROMPT_SHA256, STATISTICS
from agenteval.models.embedded.likelihood import TokenLogprobs
from benchmarks.embedded.scores import (
    CHECKED,
    DEVSET,
    OPERATORS,
    Item,
    Key,
    Texts,
    copies,
    featured,
    load_items,
    problem_lengths,
    read_half,
    score,
    wanted,
)
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish

MODEL = "SmolLM2-135M-Instruct-Q4_1"
CONSTANTS = ROOT / "agenteval" / "data" / "embedded_judge.json"
LIKELIHOODS = tuple(s for s in STATISTICS if s != "tokens")
ROWS = (*LIKELIHOODS, CHECKED, "tokens", "length")
KINDS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "completeness": (("drop",), LIKELIHOODS),
    "coherence": (("shuffle",), LIKELIHOODS),
    "clarity": (("drop", "shuffle", "pad"), LIKELIHOODS),
    "calculation": (("swap", "slip"), ("numbers", CHECKED)),
    "conciseness": (("pad",), ("tokens",)),
}
CONTROLS = {"completeness": ("tail", "head")}
THRESHOLD, CHANCE, Z95 = 0.60, 0.50, 1.959963984540054
CONCEPTS = {
    "completeness": "completeness",
    "coherence": "coherence",
    "clarity": "clarity",
    "calculation-accuracy": "calculation",
    "conciseness": "conciseness",
}


# Statistics


@dataclass(frozen=True)
class Figure:
    """Share of pairs with the original higher, its interval, and the AUC with its interval."""

    share: float
    low: float
    high: float
    auc: float
    auc_low: float
    auc_high: float
    problems: int
    texts: int


def wilson(wins: float, n: int) -> tuple[float, float]:
    """Wilson score interval at 95 % (Wilson 1927); `wins` may be fractional."""
    p, z2 = wins / n, Z95 * Z95
    centre = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(p * (1 - p) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return centre - half, centre + half


def win(a: Any, b: Any) -> float:
    """1 when a is higher, 1/2 for a tie. Works for numbers and tuples alike."""
    return 1.0 if a > b else 0.5 if a == b else 0.0


def compare(originals: Sequence[Any], others: Sequence[Sequence[Any]]) -> Figure | None:
    """originals[i] against others[i], the copies of the same problem, where there are some."""
    pairs = [(a, b) for a, b in zip(originals, others, strict=True) if b]
    if not pairs:
        return None
    n = len(pairs)
    table = np.array([[np.mean([win(a, x) for x in b]) for _, b in pairs] for a, _ in pairs])
    wins = float(np.trace(table))
    rng = np.random.default_rng(20)
    draws = rng.integers(0, n, size=(1000, n))
    times = np.zeros((len(draws), n))  # how often a problem is in a draw
    np.add.at(times, (np.arange(len(draws))[:, None], draws), 1)
    aucs = ((times @ table) * times).sum(axis=1) / n**2  # the mean over table[np.ix_(d, d)]
    low, high = wilson(wins, n)
    auc_low, auc_high = np.quantile(aucs, [0.025, 0.975])
    texts = sum(len(b) for _, b in pairs)
    return Figure(
        wins / n, low, high, float(table.mean()), float(auc_low), float(auc_high), n, texts
    )


def figures(texts: Texts) -> dict[str, dict[str, Figure | None]]:
    """Statistic -> operator -> figure. Texts for which a statistic does not exist are left out."""
    table: dict[str, dict[str, Figure | None]] = {}
    for name in ROWS:
        table[name] = {}
        for op in OPERATORS:
            have = [i for i, g in enumerate(texts.good) if name in g]
            others = [[c[name] for c in texts.other[op][i] if name in c] for i in have]
            table[name][op] = compare([texts.good[i][name] for i in have], others)
    return table


# The choice


def choose(texts: Texts, table: dict[str, dict[str, Figure | None]]) -> dict[str, dict[str, Any]]:
    """The rule of the docstring, kind by kind: statistic, support, the figures it rests on."""
    chosen: dict[str, dict[str, Any]] = {}
    for kind, (ops, candidates) in KINDS.items():
        ranked = []
        for name in candidates:
            found = [f for op in ops if (f := table[name][op]) is not None]
            if len(found) == len(ops):
                weakest = min(found, key=lambda f: (f.low, f.share))
                passed = passes(texts, name, CONTROLS.get(kind, ()))
                ranked.append((passed, weakest.low, weakest.share, name))
        passed, low, _, best = max(ranked, key=lambda r: r[:3])
        supported = passed and low > THRESHOLD
        chosen[kind] = {
            "supported": supported,
            "relative": kind == "calculation",
            "statistic": "numbers" if best == CHECKED else best,
            "reason": reason(kind, supported, passed, f"{low:.2f} for {best}"),
            "chosen": best,
            "figures": {
                name: {op: brief(table[name][op]) for op in OPERATORS} for name in candidates
            },
        }
    return chosen


def reason(kind: str, supported: bool, passed: bool, strength: str) -> str:
    """In words, why a kind is or is not supported."""
    ops = ", ".join(KINDS[kind][0])
    found = f"lower 95 % bound of pairs won on {ops} {strength}, {THRESHOLD:.2f} needed"
    if supported:
        return found
    controls = " and ".join(CONTROLS.get(kind, ()))
    control = "" if passed else f", and no statistic surely tells {controls} cuts from the original"
    return f"no likelihood was found that grades {kind} ({found}{control})"


def passes(texts: Texts, name: str, controls: Sequence[str]) -> bool:
    """Whether the share over all controls together exceeds chance."""
    if not controls:
        return True
    others = [
        [c[name] for op in controls for c in texts.other[op][i] if name in c]
        for i in range(len(texts.items))
    ]
    have = [i for i, g in enumerate(texts.good) if name in g]
    found = compare([texts.good[i][name] for i in have], [others[i] for i in have])
    return found is not None and found.low > CHANCE


def brief(figure: Figure | None) -> dict[str, float | int] | None:
    """A figure in three digits, for the file of constants."""
    if figure is None:
        return None
    return {
        "share": round(figure.share, 3),
        "low": round(figure.low, 3),
        "high": round(figure.high, 3),
        "auc": round(figure.auc, 3),
        "problems": figure.problems,
    }


# The constants


def constants(
    texts: Texts, kind: str, statistic: str, values: dict[Key, TokenLogprobs]
) -> dict[str, Any]:
    """center, scale and offsets of a kind, and for conciseness the slope against the problem."""
    ops = KINDS[kind][0]
    good = np.array([g[statistic] for g in texts.good])
    slope = 0.0
    problems = problem_lengths(texts.items, values)
    if kind == "conciseness":
        slope = float(np.polyfit(problems, -good, 1)[0])
    shift = slope * problems
    other = np.array(
        [
            copy[statistic] + shift[i]
            for op in ops
            for i, made in enumerate(texts.other[op])
            for copy in made
        ]
    )
    good = good + shift
    center = (good.mean() + other.mean()) / 2
    spread = (((good - center) ** 2).mean() + ((other - center) ** 2).mean()) / 2
    scale = math.sqrt(float(spread))
    if kind == "conciseness":
        scale = max(scale, math.log(2))
    offsets = []
    for p in range(len(INSTRUCTIONS)):
        moved = [
            featured(values, item, item["good"], p).statistics()[statistic] for item in texts.items
        ]
        offsets.append(float(np.mean(moved)) - float(np.mean(good - shift)))
    return {
        "center": round(float(center), 6),
        "scale": round(scale, 6),
        "offsets": [round(o, 6) + 0.0 for o in offsets],
        "slope": round(slope, 6),
    }


def record(texts: Texts, values: dict[Key, TokenLogprobs], sha: str) -> dict[str, Any]:
    """The content of embedded_judge.json."""
    kinds = choose(texts, figures(texts))
    for name, kind in kinds.items():
        if kind["supported"] and not kind["relative"]:
            kind |= constants(texts, name, kind["statistic"], values)
    return {
        "schema": 1,
        "about": "Written by benchmarks/embedded --write, which states the rule. Figures: share"
        " of same-problem pairs with the original higher, half `choose` of the development set.",
        "model": {"name": MODEL, "sha256": sha},
        "devset_sha256": hashlib.sha256(DEVSET.read_bytes()).hexdigest(),
        "prompt_sha256": PROMPT_SHA256,
        "concepts": CONCEPTS,
        "kinds": kinds,
    }


# The tables


def print_tables(texts: Texts, half: str) -> None:
    """Shares of pairs, then AUC."""
    from rich.console import Console
    from rich.table import Table

    console = Console(width=140)
    table = figures(texts)
    for title, show in (("% of pairs, original higher", shown_share), ("AUC × 100", shown_auc)):
        grid = Table(title=f"{title} [95 % interval], half `{half}`", title_justify="left")
        grid.add_column("statistic", no_wrap=True)
        for op in OPERATORS:
            grid.add_column(op, justify="right", no_wrap=True)
        for name in ROWS:
            cells = [table[name][op] for op in OPERATORS]
            grid.add_row(name, *("" if f is None else show(f) for f in cells))
        console.print(grid)
    sizes = {op: table["mean"][op] for op in OPERATORS}
    parts = [f"{op} {f.problems} ({f.texts})" for op, f in sizes.items() if f]
    console.print("problems (texts): " + ", ".join(parts))


def shown_share(figure: Figure) -> str:
    """Share with its Wilson interval in per cent; bold where the interval lies above one half."""
    return shown(figure.share, figure.low, figure.high)


def shown_auc(figure: Figure) -> str:
    """AUC with its bootstrap interval in hundredths; bold where it lies above one half."""
    return shown(figure.auc, figure.auc_low, figure.auc_high)


def shown(value: float, low: float, high: float) -> str:
    """Three numbers in hundredths."""
    text = f"{100 * value:.0f} \\[{100 * low:.0f}, {100 * high:.0f}]"
    return f"[bold]{text}[/bold]" if low > CHANCE else text


def print_arithmetic(items: Sequence[Item]) -> None:
    """Equalities checked and texts flagged. The rules were written with both halves in sight."""
    for key in ("good", "wrong", "slip"):
        reports = [check_arithmetic(item[key]) for item in items if item[key] is not None]
        flagged = sum(bool(r.wrong) for r in reports)
        checked = sum(r.checked for r in reports)
        print(f"arithmetic, {key}: {flagged} of {len(reports)} texts flagged, {checked} checked")


def print_judged(items: Sequence[Item], values: dict[Key, TokenLogprobs]) -> list[Row]:
    """What the judge's own values do: one repeat, and the mean of as many as there are prompts.

    Every repeat resamples sentences and changes the paraphrase, as in the evaluator.
    """
    calibration = load_calibration(CONSTANTS)
    mine = [item for item in items if item["half"] == "print"]
    pairs = {"completeness": "drop", "coherence": "shuffle", "clarity": "shuffle"}
    found = []
    for name, op in pairs.items():
        kind = calibration.kinds[name]
        if not kind.supported:
            print(f"{name}: unsupported, {kind.reason}")
            found.append(Row(f"{name} by the embedded judge", "unsupported"))
            continue
        rows = [
            [repeats(kind, values, item, text) for text in (item["good"], copies(item)[op][0])]
            for item in mine
        ]
        one = sum(win(a[0], b[0]) for a, b in rows)
        mean = sum(win(float(np.mean(a)), float(np.mean(b))) for a, b in rows)
        n, good, bad = len(rows), np.mean([a for a, _ in rows]), np.mean([b for _, b in rows])
        print(
            f"{name} as judged, original above {op} copy: {one / n:.2f} with one repeat,"
            f" {mean / n:.2f} with {len(INSTRUCTIONS)} (n = {n}); means {good:.2f}, {bad:.2f}"
        )
        found.append(
            Row(f"{name} by the embedded judge: original above its {op} copy",
                f"{one / n:.2f} with one repeat, {mean / n:.2f} with {len(INSTRUCTIONS)} (n = {n})")
        )  # fmt: skip
    return found


def repeats(kind: Kind, values: dict[Key, TokenLogprobs], item: Item, text: str) -> list[float]:
    """Values of a text, one per paraphrase, each from its own draw of sentences."""
    found = []
    for p in range(len(INSTRUCTIONS)):
        seen = featured(values, item, text, p)
        drawn = seen.statistics(seen.draw(0, p))
        found.append(kind.value(drawn[kind.statistic], p))
    return found


def main() -> int:
    """Score what is missing, print the tables, and with --write freeze the constants."""
    parser = argparse.ArgumentParser(description="Measure the embedded likelihood judge.")
    parser.add_argument("--half", choices=["choose", "print"], default="print")
    parser.add_argument("--write", action="store_true", help="write the constants of the judge")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    items = load_items()
    values, sha = score(wanted(items), options.threads)
    if options.write:
        content = record(read_half(items, "choose", values), values, sha)
        CONSTANTS.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", "utf-8")
        for name, kind in content["kinds"].items():
            print(
                f"{name}: {'supported' if kind['supported'] else 'UNSUPPORTED'}, {kind['reason']}"
            )
    print_tables(read_half(items, options.half, values), options.half)
    print_arithmetic([item for item in items if item["half"] == options.half])
    return finish("embedded", print_judged(items, values), half=options.half)


if __name__ == "__main__":
    sys.exit(main())
