"""Checks of people's ratings of a task (``tasks/<task>/ratings.jsonl``), shared by the tests.

A ratings file holds one line per run, criterion and rater:
``{"run", "criterion", "rater", "label", "evidence", "status"}``. Rater A rates a run on all
criteria; rater B rates some runs a second time, without knowing the success or A's levels.

Everything is read here with ``json`` alone, and alpha is computed here from its definition, so
that the data are not judged by the package they serve to test.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

Line = dict[str, Any]
Run = dict[str, Any]
Delta = Callable[[int, int, Mapping[int, float]], float]

KEYS = {"run", "criterion", "rater", "label", "evidence", "status"}
EVIDENCE_LENGTH = (10, 160)  # characters
FOLDS = 5  # of the grouped cross-validation
TREES = 40  # of the boosting; more gain nothing on some 60 lines
UNDEFINED = "undefined"  # printed for alpha where all labels are the same


@dataclass(frozen=True)
class Material:
    """The ratings of a task with what they are about: runs and criteria by their ids."""

    runs: Mapping[str, Run]
    criteria: Mapping[str, dict[str, Any]]
    lines: Sequence[Line]

    def by(self, rater: str) -> list[Line]:
        """The lines of one rater, in the order of the file."""
        return [line for line in self.lines if line["rater"] == rater]

    def with_lines(self, lines: Iterable[Line]) -> Material:
        """The same runs and criteria with other ratings (for damaged copies)."""
        return replace(self, lines=list(lines))


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSONL file; raises ``ValueError`` on a line that is no JSON."""
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


def load(folder: Path, criteria: Path) -> Material:
    """``folder/runs.jsonl`` and ``folder/ratings.jsonl`` with a criteria file."""
    document = json.loads(criteria.read_text(encoding="utf-8"))
    return Material(
        runs={run["id"]: run for run in read_lines(folder / "runs.jsonl")},
        criteria={criterion["id"]: criterion for criterion in document["criteria"]},
        lines=read_lines(folder / "ratings.jsonl"),
    )


# --- legality ---------------------------------------------------------------------------------


def written(run: Run) -> list[str]:
    """The texts that the system under evaluation and its tools produced, not the user's."""
    return [m["content"] for m in run["messages"] if m["role"] in ("assistant", "tool")]


def label_complaint(line: Line, criterion: Mapping[str, Any]) -> str | None:
    """What is wrong with status and label, if anything."""
    if line["status"] == "not_applicable":
        if not criterion["allow_na"]:
            return "not_applicable, but the criterion always applies"
        return None if line["label"] is None else "not_applicable, but there is a label"
    if line["status"] != "scored":
        return f"unknown status {line['status']!r}"
    if line["label"] not in criterion["accepted_values"]:
        return f"{line['label']!r} is not an accepted value"
    return None


def evidence_complaint(line: Line, run: Run) -> str | None:
    """What is wrong with the evidence, if anything; a rating that does not apply needs none."""
    evidence = line["evidence"]
    if evidence is None and line["status"] == "not_applicable":
        return None
    if not isinstance(evidence, str):
        return "no evidence"
    shortest, longest = EVIDENCE_LENGTH
    if not shortest <= len(evidence) <= longest:
        return f"evidence has {len(evidence)} characters"
    if not any(evidence in text for text in written(run)):
        return f"evidence is not in the run: {evidence!r}"
    return None


def complaints_about(line: Line, material: Material) -> list[str]:
    """What is wrong with one line, each complaint with its place."""
    if set(line) != KEYS:
        return [f"{line}: keys"]
    place = f"{line['run']} × {line['criterion']} ({line['rater']})"
    if line["run"] not in material.runs or line["criterion"] not in material.criteria:
        return [f"{place}: no such run or criterion"]
    found = [
        label_complaint(line, material.criteria[line["criterion"]]),
        evidence_complaint(line, material.runs[line["run"]]),
    ]
    found.append(None if line["rater"] in ("A", "B") else "unknown rater")
    return [f"{place}: {text}" for text in found if text is not None]


def illegal(material: Material) -> list[str]:
    """Complaints about single lines of any rater."""
    return [text for line in material.lines for text in complaints_about(line, material)]


def uncovered(material: Material, rater: str, runs: Iterable[str]) -> list[str]:
    """Complaints unless the rater rated exactly these runs, each criterion once."""
    count = Counter((line["run"], line["criterion"]) for line in material.by(rater))
    due = {(run, criterion) for run in runs for criterion in material.criteria}
    return [
        f"{run} × {criterion}: {count[run, criterion]} ratings by {rater}"
        for run, criterion in sorted(due | set(count))
        if count[run, criterion] != ((run, criterion) in due)
    ]


def rated_runs(material: Material, rater: str) -> list[str]:
    """The runs of which the rater gave at least one rating, in the order of the file."""
    return list(dict.fromkeys(line["run"] for line in material.by(rater)))


# --- levels -----------------------------------------------------------------------------------


def rank(line: Line, material: Material) -> int | None:
    """Position of the label among the accepted values, 0 is worst; None if not applicable."""
    if line["label"] is None:
        return None
    values: list[str] = material.criteria[line["criterion"]]["accepted_values"]
    return values.index(line["label"])


def spread_share(material: Material, rater: str, gap: float = 1 / 3) -> float:
    """Share of the rater's runs in which two criteria differ by at least ``gap``.

    Compared is the rank divided by the number of levels less one, from 0 to 1.
    """
    values: dict[str, list[float]] = defaultdict(list)
    for line in material.by(rater):
        place = rank(line, material)
        if place is not None:
            top = len(material.criteria[line["criterion"]]["accepted_values"]) - 1
            values[line["run"]].append(place / top)
    wide = [max(v) - min(v) >= gap - 1e-9 for v in values.values()]
    return sum(wide) / len(wide)


def distribution(material: Material, rater: str) -> dict[str, dict[str, int]]:
    """Per criterion how often each accepted value was given, worst first."""
    count = Counter((line["criterion"], line["label"]) for line in material.by(rater))
    return {
        name: {value: count[name, value] for value in criterion["accepted_values"]}
        for name, criterion in material.criteria.items()
    }


# --- how far success, system and length say the level ------------------------------------------


@dataclass(frozen=True)
class Guess:
    """How often levels are guessed right: the commonest one always, and by the classifiers."""

    n: int
    majority: float
    boosting: float
    logistic: float


def features(run: Run, systems: Sequence[str]) -> list[float]:
    """Success, one column per system, and the number of characters in thousands."""
    one_hot = [float(run["system"] == system) for system in systems]
    return [float(run["success"]), *one_hot, sum(map(len, written(run))) / 1000]


def _hits(make: Callable[[], Any], x: Any, y: Any, groups: Any) -> float:
    """Accuracy over folds in which no problem is both learnt from and predicted."""
    from sklearn.model_selection import GroupKFold

    right = 0
    for train, test in GroupKFold(min(FOLDS, len(set(groups)))).split(x, y, groups):
        if len(set(y[train])) == 1:  # a classifier needs two classes to learn from
            right += int(np.sum(y[test] == y[train][0]))
        else:
            right += int(np.sum(make().fit(x[train], y[train]).predict(x[test]) == y[test]))
    return right / len(y)


def guess(material: Material, rater: str) -> dict[str, Guess]:
    """Per criterion how well success, system and length predict the rater's levels.

    Runs on the same input form a group. Needs scikit-learn and runs with a known success.
    """
    from sklearn.ensemble import GradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    systems = sorted({run["system"] for run in material.runs.values()})
    found = {}
    for name in material.criteria:
        lines = [r for r in material.by(rater) if r["criterion"] == name and r["label"] is not None]
        runs = [material.runs[line["run"]] for line in lines]
        x = np.array([features(run, systems) for run in runs])
        y = np.array([rank(line, material) for line in lines])
        groups = np.array([run["input"] for run in runs])
        found[name] = Guess(
            n=len(lines),
            majority=max(Counter(y.tolist()).values()) / len(y),
            boosting=_hits(
                lambda: GradientBoostingClassifier(n_estimators=TREES, random_state=0), x, y, groups
            ),
            logistic=_hits(
                lambda: make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000)),
                x,
                y,
                groups,
            ),
        )
    return found


def mean_guess(found: Mapping[str, Guess]) -> float:
    """Accuracy averaged over criteria, of the classifier that does better."""
    return max(
        sum(g.boosting for g in found.values()) / len(found),
        sum(g.logistic for g in found.values()) / len(found),
    )


# --- agreement --------------------------------------------------------------------------------


def nominal(c: int, k: int, counts: Mapping[int, float]) -> float:
    """1 for different values."""
    return float(c != k)


def interval(c: int, k: int, counts: Mapping[int, float]) -> float:
    """Squared difference of the values."""
    return float(c - k) ** 2


def ordinal(c: int, k: int, counts: Mapping[int, float]) -> float:
    """Squared number of values that lie between the two, both ends counted half."""
    low, high = min(c, k), max(c, k)
    between = sum(count for value, count in counts.items() if low <= value <= high)
    return (between - (counts[c] + counts[k]) / 2) ** 2


def alpha(units: Iterable[Sequence[int | None]], delta: Delta) -> float | None:
    """Krippendorff's alpha of units (each the values given to it, None where missing).

    Observed over expected disagreement from the coincidence matrix (Krippendorff 2011,
    "Computing Krippendorff's Alpha-Reliability", sections C and D). None where it is undefined:
    no unit with two values, or all values equal.
    """
    pairs: dict[tuple[int, int], float] = defaultdict(float)
    for unit in units:
        values = [value for value in unit if value is not None]
        for i, c in enumerate(values):
            for j, k in enumerate(values):
                if i != j:
                    pairs[c, k] += 1 / (len(values) - 1)
    counts: dict[int, float] = defaultdict(float)
    for (c, _), share in pairs.items():
        counts[c] += share
    total = sum(counts.values())
    expected = sum(counts[c] * counts[k] * delta(c, k, counts) for c in counts for k in counts)
    if expected == 0:
        return None
    observed = sum(share * delta(c, k, counts) for (c, k), share in pairs.items())
    return 1 - (total - 1) * observed / expected


def agreement(material: Material) -> dict[str, tuple[int, float | None]]:
    """Per criterion the number of runs with a level from both raters, and ordinal alpha."""
    ranks = {
        (line["rater"], line["run"], line["criterion"]): rank(line, material)
        for line in material.lines
    }
    found: dict[str, tuple[int, float | None]] = {}
    for name in material.criteria:
        both = [
            (ranks.get(("A", run, name)), ranks.get(("B", run, name)))
            for run in rated_runs(material, "B")
        ]
        units = [unit for unit in both if None not in unit]
        found[name] = (len(units), alpha(units, ordinal))
    return found


def shown(value: float | None, digits: int = 3) -> str:
    """Alpha as the README prints it."""
    return UNDEFINED if value is None else f"{value:.{digits}f}"


def alpha_table(found: Mapping[str, tuple[int, float | None]]) -> str:
    """The Markdown table that the README of a task is to hold."""
    rows = [f"| {name} | {n} | {shown(value)} |" for name, (n, value) in found.items()]
    return "\n".join(["| criterion | n | alpha |", "|---|---|---|", *rows])


def printed_alphas(readme: str) -> dict[str, tuple[int, str]]:
    """The rows below ``| criterion | n | alpha |`` in a README; empty without such a table."""
    head = re.search(r"^\| *criterion *\| *n *\| *alpha *\|\n\|[-:| ]+\|\n", readme, re.MULTILINE)
    found: dict[str, tuple[int, str]] = {}
    for row in readme[head.end() :].splitlines() if head else []:
        cells = [cell.strip(" `") for cell in row.strip().strip("|").split("|")]
        if not row.startswith("|") or len(cells) != 3:
            break
        found[cells[0]] = (int(cells[1]), cells[2].replace("−", "-"))
    return found


def misprinted(material: Material, readme: str) -> list[str]:
    """Complaints where the README's table differs from the figures, to the digits it prints."""
    due, there = agreement(material), printed_alphas(readme)
    if not there:
        return [f"the README has no table of alpha; it should be\n{alpha_table(due)}"]
    found = [f"{name}: not a criterion" for name in there if name not in due]
    for name, (n, value) in due.items():
        if name not in there:
            found.append(f"{name}: not in the table")
            continue
        rows, text = there[name]
        digits = max(2, len(text.partition(".")[2]))  # coarser figures would hide a difference
        if (rows, text) != (n, shown(value, digits)):
            found.append(f"{name}: printed {rows}, {text}; computed {n}, {shown(value)}")
    return found
