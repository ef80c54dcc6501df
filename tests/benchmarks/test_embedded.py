"""The bench of the embedded judge: its figures and its rule, on made-up texts."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import binomtest, mannwhitneyu

from agenteval.evaluators.utility.embedded import CriterionKind
from benchmarks.embedded import __main__ as embedded
from benchmarks.embedded import texts as embedded_texts
from benchmarks.embedded.texts import DEVELOPMENT, Text, Texts

pytestmark = pytest.mark.slow

N = 24


@pytest.mark.parametrize(("won", "n"), [(0, 8), (5, 8), (32, 32), (17, 23)])
def test_wilson(won: int, n: int) -> None:
    expected = binomtest(won, n).proportion_ci(method="wilson")
    assert embedded.wilson(won, n) == pytest.approx((expected.low, expected.high))


def test_wins_count_ties_half() -> None:
    found = embedded.wins([(3.0, 1.0), (1.0, 4.0), (2.0, 2.0), (5.0, 2.0)])
    assert found is not None
    assert (found.share, found.cases) == (2.5 / 4, 4)
    assert embedded.wins([]) is None


def test_auc_is_that_of_mann_and_whitney() -> None:
    values = np.array([1.0, 2.0, 2.0, 3.0, 0.5])
    success = np.array([True, True, False, True, False])
    u = mannwhitneyu(values[success], values[~success]).statistic
    assert embedded.auc(values, success) == pytest.approx(u / 6)
    assert embedded.auc(values, np.ones(5, dtype=bool)) is None


def made(moves: dict[str, float], *, praise: float = 0.0, missing: int = 0) -> Texts:
    """Originals with a normal `mean`, a failure `praise` above the success beside it, copies lower
    by `moves`.

    The last `missing` originals and their copies have no statistic.
    """
    levels = np.random.default_rng(0).normal(size=N // 2)
    originals, copies = {}, {op: {} for op in moves}
    for i in range(N):
        level = float(levels[i // 2]) + (praise if i % 2 else 0.0)
        here = i < N - missing

        def text(value: float, i: int = i, here: bool = here) -> Text:
            return Text(f"r{i}", f"c{i}", i % 2 == 0, {"mean": value} if here else {})

        originals[f"r{i}"] = text(level)
        for op, move in moves.items():
            copies[op][f"r{i}"] = text(level - move)
    return Texts(originals, copies)


@pytest.fixture(autouse=True)
def _claims_of_a_statistic_by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """The rule holds of any kind; these two have statistics that the tests make up."""
    made_up = {
        "coherence": embedded.Claim(("shuffle_sentences",), "mean"),
        "calculation-accuracy": embedded.Claim(("swap_numbers",), "numbers", True),
    }
    monkeypatch.setattr(embedded, "CLAIMS", embedded.CLAIMS | made_up)


FINE = {"shuffle_sentences": 1.0, "swap_numbers": 0.1, "whitespace": 0.05, "drop_sentences": 0.0}
COHERENCE = CriterionKind("coherence", True, "", "mean", center=-0.5, scale=1.1)


@pytest.mark.parametrize(
    ("texts", "against"),
    [
        (made(FINE), ""),
        (made(FINE | {"shuffle_sentences": 0.0}), "shuffle_sentences lowers it in 50%"),
        (made(FINE | {"shuffle_sentences": -1.0}), "shuffle_sentences lowers it in 0%"),
        (made({"whitespace": 0.0}), "shuffle_sentences has no copy"),
        (made(FINE | {"whitespace": 0.4}), "whitespace moves it by 0."),
        (made(FINE | {"whitespace": -0.4}), "whitespace moves it by -0."),
        (made(FINE | {"swap_numbers": 1.5}), "swap_numbers moves it by 0."),
        (made(FINE | {"drop_sentences": 1.5}), ""),  # expected to lower it
        (made(FINE, praise=2.0), "failed runs are surely higher (AUC 0."),
        (made(FINE, praise=0.1), ""),  # higher, by chance
        (made(FINE, missing=6), "it exists for 75% of the texts"),
        (made(FINE, missing=4), ""),
    ],
)
def test_each_condition_of_the_rule(texts: Texts, against: str) -> None:
    held = embedded.examine(COHERENCE, texts)
    assert held.holds == (not against)
    assert any(why.startswith(against) for why in held.against) == bool(against)


def test_a_kind_that_tells_success_must_surely_do_so() -> None:
    moves = {"swap_numbers": 1.0}
    kind = CriterionKind("calculation-accuracy", True, "", "numbers", center=-0.5, scale=1.1)

    def numbers(texts: Texts) -> Texts:
        def renamed(t: Text) -> Text:
            return Text(t.run, t.case, t.success, {"numbers": t.statistics["mean"]})

        return Texts(
            {k: renamed(t) for k, t in texts.originals.items()},
            {op: {k: renamed(t) for k, t in c.items()} for op, c in texts.copies.items()},
        )

    assert embedded.examine(kind, numbers(made(moves, praise=-3.0))).holds
    level = embedded.examine(kind, numbers(made(moves, praise=-0.3)))
    assert any("success" in why or "failed" in why for why in level.against)


def test_constants_by_hand() -> None:
    texts = made({"shuffle_sentences": 1.0})
    kind = embedded.fit("coherence", "mean", texts)
    good = [t.statistics["mean"] for t in texts.originals.values()]
    pool = [*good, *(v - 1 for v in good)]  # every copy lies one below its original
    assert (kind.center, kind.scale) == (
        pytest.approx(np.mean(pool)),
        pytest.approx(np.std(pool)),
    )


def test_twice_as_long_is_at_least_one_deviation_of_conciseness() -> None:
    same = {f"r{n}": Text(f"r{n}", f"c{n}", None, {"words": -math.log(100)}) for n in range(3)}
    kind = embedded.fit("conciseness", "words", Texts(same, {"pad": same}))
    assert (kind.center, kind.scale) == (pytest.approx(-math.log(100)), math.log(2))


def test_only_what_holds_everywhere_is_offered() -> None:
    good, bad = made(FINE), made(FINE | {"shuffle_sentences": 0.0})
    for household, offered in ((good, True), (bad, False)):
        sets = {DEVELOPMENT: good, "math": good, "household": household, "support": good}
        content = embedded.record(embedded.trials(sets, {}))
        json.dumps(content, allow_nan=False)
        coherence = content["kinds"]["coherence"]
        assert coherence["supported"] is offered
        assert ("household" in coherence["reason"]) or not offered
        assert not any(k["supported"] for n, k in content["kinds"].items() if n != "coherence")


@pytest.mark.parametrize(
    ("bad", "full", "met"), [(False, True, True), (True, True, False), (True, False, None)]
)
def test_an_offered_kind_that_does_not_hold_misses_its_target(
    bad: bool, full: bool, met: bool | None
) -> None:
    sets = {name: made(FINE) for name in (DEVELOPMENT, "math", "household", "support")}
    if bad:
        sets["support"] = made(FINE | {"shuffle_sentences": 0.0})
    frozen = {name: CriterionKind(name, name == "coherence", "") for name in embedded.CLAIMS}
    table = embedded.trials(sets, {})
    rows = {r.what: r for r in embedded.rows(table, frozen, {}, full=full)}
    assert rows.pop("embedded judge, coherence: offered").met is met
    assert {r.met for r in rows.values()} == {None}


@pytest.mark.parametrize("name", ["math", "support", DEVELOPMENT])
def test_copies_are_of_one_run_of_each_case_and_the_systems_take_turns(name: str) -> None:
    material = embedded_texts.load_material(name, ("shuffle_sentences", "whitespace"), 4)
    assert len({run.input for run, _ in material.items}) == len(material.copied) == 4
    systems = {run.system for run, _ in material.copied}
    assert systems == {"good"} if name == DEVELOPMENT else len(systems) == 3
    for copies in material.copies:
        for run, view in copies.items:
            original = next(v for r, v in material.items if r.id == run.id)
            assert view.trajectory != original.trajectory
