"""Checks of the data in ``tasks/household``: form, balance, variety, length and wording."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.household.layout import KINDS, STEP_LIMIT
from tasks.household.make import make_runs, table
from tests.tasks.test_household_replay import commands, replayed

Run = dict[str, Any]
Check = Callable[[list[Run]], list[str]]

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tasks" / "household"
SYSTEMS = ("atlas", "birch", "cedar")
GOALS = 30
MEASURED = {"steps", "invalid_actions", "repeated_actions", "terminated_by", "claimed_success"}
MAX_CHARS = 6000
MARKER_MIN_RUNS = 8  # the wording rules look at words that occur in at least so many runs
SUCCESS_MAX_GAP = 0.20  # |AUC of a word's presence against success - .5|
SYSTEM_MAX_GAP = 0.25  # the same against being of one system
CLOSING_MAX_AUC = 0.64  # naive Bayes on closings: chance plus two standard errors (.07 at 51:28)


# --- helpers ---------------------------------------------------------------------------------


def spoken(run: Run) -> str:
    return "\n".join(m["content"] for m in run["messages"] if m["role"] == "assistant")


def thoughts(run: Run) -> str:
    return re.sub(r"^Do: .*$", "", spoken(run), flags=re.M)


def words(text: str) -> list[str]:
    return re.findall(r"[a-z][a-z0-9'-]+", text.lower())


def auc(scores: list[float], labels: list[bool]) -> float:
    """P(score of a true item > score of a false one), ties half, by counting all pairs."""
    good = [s for s, y in zip(scores, labels, strict=True) if y]
    bad = [s for s, y in zip(scores, labels, strict=True) if not y]
    return sum((g > b) + 0.5 * (g == b) for g in good for b in bad) / (len(good) * len(bad))


def labels_of(runs: list[Run]) -> list[bool]:
    return [run["success"] for run in runs]


def lengths(runs: list[Run]) -> dict[str, list[float]]:
    return {
        "characters": [float(len(spoken(run))) for run in runs],
        "steps": [float(run["metadata"]["measured"]["steps"]) for run in runs],
    }


def word_aucs(texts: list[str], labels: list[bool]) -> dict[str, float]:
    """AUC of a word's presence, for the words in at least MARKER_MIN_RUNS texts."""
    bags = [set(words(text)) for text in texts]
    common = {w for w in set().union(*bags) if sum(w in b for b in bags) >= MARKER_MIN_RUNS}
    return {w: auc([float(w in bag) for bag in bags], labels) for w in sorted(common)}


def text_auc(texts: list[str], labels: list[bool], goals: list[int]) -> float:
    """AUC of naive Bayes on the words present, each goal predicted from the other goals."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.model_selection import LeaveOneGroupOut, cross_val_predict
    from sklearn.naive_bayes import BernoulliNB
    from sklearn.pipeline import make_pipeline

    model = make_pipeline(CountVectorizer(analyzer=words, min_df=3), BernoulliNB())
    rows = cross_val_predict(
        model, texts, labels, groups=goals, cv=LeaveOneGroupOut(), method="predict_log_proba"
    )
    return auc([float(row[1] - row[0]) for row in rows], labels)


def goals_of(runs: list[Run]) -> list[int]:
    return [run["metadata"]["layout_seed"] for run in runs]


def deeds(run: Run) -> str:
    """What was done without how it was worded: the verb of each command, whether it was possible.

    Every verb becomes as many numbered words as it was used, so that presence tells the count.
    """
    given, possible = commands(run), replayed(run)[1]
    flags = [*possible, *([True] * (len(given) - len(possible)))]
    names = [c.split()[0] + ("" if f else "x") for c, f in zip(given, flags, strict=True)]
    kind = run["metadata"]["goal"].replace(" ", "")
    return " ".join([kind, *(f"{n}{names[:i].count(n)}" for i, n in enumerate(names))])


# --- the checks ------------------------------------------------------------------------------


def check_form(runs: list[Run]) -> list[str]:
    """Ids, fields, roles in turn, and a run of each system for each goal."""
    wanted = {f"household-{n:02d}-{s}" for n in range(1, GOALS + 1) for s in SYSTEMS}
    bad = [] if {r["id"] for r in runs} == wanted and len(runs) == len(wanted) else ["ids"]
    for run in runs:
        meta, messages = run["metadata"], run["messages"]
        limit = meta["measured"]["terminated_by"] == "limit"
        body = ["assistant", "tool"] * (meta["measured"]["steps"] - (0 if limit else 1))
        facts = {
            "fields": set(run)
            == {"id", "task", "system", "input", "output", "messages", "success", "metadata"},
            "metadata": set(meta) == {"goal", "layout_seed", "agent_seed", "measured"},
            "measured": set(meta["measured"]) == MEASURED,
            "task": run["task"] == "household" and type(run["success"]) is bool,
            "id": run["id"].endswith("-" + run["system"]),
            "first": messages[0] == {"role": "user", "content": run["input"]},
            "roles": [m["role"] for m in messages] == ["user", *body, "assistant"],
            "last": messages[-1]["content"] == run["output"],
            "text": all(m["content"].strip() for m in messages),
            "size": sum(len(m["content"]) for m in messages) <= MAX_CHARS,
            "limit": meta["measured"]["steps"] <= STEP_LIMIT,
        }
        bad += [f"{run['id']}: {name}" for name, holds in facts.items() if not holds]
    return bad


def check_balance(runs: list[Run]) -> list[str]:
    """Per system 25 to 75 % true; every kind has five goals and runs of both outcomes."""
    bad = []
    for system in SYSTEMS:
        share = [run["success"] for run in runs if run["system"] == system]
        if not 0.25 <= sum(share) / len(share) <= 0.75:
            bad.append(f"{system}: {sum(share)} of {len(share)} true")
    for kind in ("put", "put two", "clean", "heat", "cool", "examine"):
        part = [run for run in runs if run["metadata"]["goal"] == kind]
        if len({run["input"] for run in part}) != 5 or len(set(labels_of(part))) != 2:
            bad.append(f"{kind}: {len(part)} runs")
    return bad


def check_variety(runs: list[Run]) -> list[str]:
    """False claims, honest surrenders, runs into the limit and mended refusals all occur."""
    measured = [(run["success"], run["metadata"]["measured"]) for run in runs]
    counts = {
        "false claim": sum(m["claimed_success"] and not ok for ok, m in measured),
        "given up": sum(
            m["terminated_by"] == "agent" and not m["claimed_success"] for _, m in measured
        ),
        "limit, failed": sum(m["terminated_by"] == "limit" and not ok for ok, m in measured),
        "limit, reached": sum(m["terminated_by"] == "limit" and ok for ok, m in measured),
        "success after refusals": sum(m["invalid_actions"] > 0 and ok for ok, m in measured),
    }
    least = {"false claim": 10, "success after refusals": 10}
    return [f"{name}: {n}" for name, n in counts.items() if n < least.get(name, 1)]


def check_length(runs: list[Run]) -> list[str]:
    """AUC of characters and of steps against success within .40 to .60."""
    values = {name: auc(row, labels_of(runs)) for name, row in lengths(runs).items()}
    return [f"{name}: AUC {v:.3f}" for name, v in values.items() if not 0.40 <= v <= 0.60]


def check_markers(runs: list[Run]) -> list[str]:
    """No common word of the thoughts marks success or a system."""
    texts = [thoughts(run) for run in runs]
    found = word_aucs(texts, labels_of(runs)).items()
    bad = [f"{w}: {v:.3f}" for w, v in found if abs(v - 0.5) > SUCCESS_MAX_GAP]
    for system in SYSTEMS:
        found = word_aucs(texts, [run["system"] == system for run in runs]).items()
        bad += [f"{system} {w}: {v:.3f}" for w, v in found if abs(v - 0.5) > SYSTEM_MAX_GAP]
    return bad


def check_closings(runs: list[Run]) -> list[str]:
    """The wording of 'I am done' does not tell true claims from false ones."""
    part = [run for run in runs if run["metadata"]["measured"]["claimed_success"]]
    value = text_auc([run["output"] for run in part], labels_of(part), goals_of(part))
    return [] if value <= CLOSING_MAX_AUC else [f"closings: {value:.3f}"]


def check_thoughts(runs: list[Run]) -> list[str]:
    """All words of the thoughts tell no more than what was done tells without any wording."""
    worded = text_auc([thoughts(run) for run in runs], labels_of(runs), goals_of(runs))
    done = text_auc([deeds(run) for run in runs], labels_of(runs), goals_of(runs))
    return [] if worded <= done else [f"thoughts {worded:.3f}, deeds {done:.3f}"]


CHECKS: tuple[Check, ...] = (
    *(check_form, check_balance, check_variety),
    *(check_length, check_markers, check_closings, check_thoughts),
)


# --- the tests -------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def runs() -> list[Run]:
    text = (FOLDER / "runs.jsonl").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def test_the_file_is_what_the_maker_makes() -> None:
    made = "".join(json.dumps(run, ensure_ascii=False) + "\n" for run in make_runs())
    assert (FOLDER / "runs.jsonl").read_bytes() == made.encode("utf-8")


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_data_passes(check: Check, runs: list[Run]) -> None:
    assert check(runs) == []


def drop_run(runs: list[Run]) -> None:
    runs.pop()


def output_apart(runs: list[Run]) -> None:
    runs[0]["output"] += " Done."


def one_sided_system(runs: list[Run]) -> None:
    for run in runs:
        run["success"] = run["system"] == "birch" or run["success"]


def no_false_claims(runs: list[Run]) -> None:
    for run in runs:
        run["metadata"]["measured"]["claimed_success"] &= run["success"]


def pad_failures(runs: list[Run]) -> None:
    for run in runs:
        if not run["success"]:
            run["messages"][1]["content"] = "Hm. " * 200 + run["messages"][1]["content"]


def mark_failures(runs: list[Run]) -> None:
    for run in runs:
        if not run["success"]:
            run["messages"][-1]["content"] = run["output"] = "Hopefully. " + run["output"]


def mark_system(runs: list[Run]) -> None:
    for run in runs:
        if run["system"] == "cedar":
            run["messages"][1]["content"] = "Well then. Indeed.\n" + run["messages"][1]["content"]


DAMAGES: tuple[tuple[Callable[[list[Run]], None], Check], ...] = (
    *((drop_run, check_form), (output_apart, check_form), (one_sided_system, check_balance)),
    *((no_false_claims, check_variety), (pad_failures, check_length)),
    *((mark_failures, check_markers), (mark_failures, check_closings)),
    *((mark_failures, check_thoughts), (mark_system, check_markers)),
)


@pytest.mark.parametrize(("damage", "check"), DAMAGES, ids=lambda f: f.__name__)
def test_damage_is_noticed(
    damage: Callable[[list[Run]], None], check: Check, runs: list[Run]
) -> None:
    damaged = copy.deepcopy(runs)
    damage(damaged)
    assert check(damaged) != []


def test_length_is_balanced_by_the_agents_not_by_the_choice_of_seeds() -> None:
    many = make_runs(first_seed=5001, per_kind=40)
    assert check_length(many) == []


def test_print_summary(runs: list[Run]) -> None:
    """The figures behind the checks, shown with ``pytest -s``."""
    print("\n" + table(runs))
    for kind in KINDS:
        part = [run["success"] for run in runs if run["metadata"]["goal"] == kind]
        print(f"{kind:8s} {sum(part):2d} of {len(part)}")
    by_goal = {g: [r["success"] for r in runs if r["metadata"]["layout_seed"] == g]
               for g in goals_of(runs)}  # fmt: skip
    mixed = [g for g, outcomes in by_goal.items() if len(set(outcomes)) == 2]
    print(f"goals with a true and a false run: {len(mixed)} of {GOALS}")
    claims = [run for run in runs if run["metadata"]["measured"]["claimed_success"]]
    for name, part, text in (
        ("thoughts", runs, thoughts),
        ("deeds", runs, deeds),
        ("closings of claims", claims, lambda run: run["output"]),
    ):
        texts = [text(run) for run in part]
        gaps = {w: abs(v - 0.5) for w, v in word_aucs(texts, labels_of(part)).items()}
        worst = max(gaps, key=lambda w: gaps[w])
        value = text_auc(texts, labels_of(part), goals_of(part))
        print(f"{name}: AUC {value:.3f}; most telling of {len(gaps)} words", end=" ")
        print(f"{worst!r} with |AUC - .5| = {gaps[worst]:.3f}")
    assert len(mixed) >= GOALS / 2
