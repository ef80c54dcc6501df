"""The benchmark of the embedded judge: its constants, and each condition of its rule."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from scipy.stats import mannwhitneyu

from agenteval.records import Run
from agenteval.utility.embedded import CriterionKind, load_kinds
from benchmarks import embedded
from benchmarks.embedded import Texts

pytestmark = pytest.mark.slow

CASES = 24
FINE = {"pad": 1.0, "swap_numbers": 0.1, "whitespace": 0.05, "drop_sentences": -0.5}
KIND = CriterionKind("conciseness", True, "", "words", center=-0.5, scale=1.1)


def made(moves: dict[str, float], *, praise: float = 0.0, missing: int = 0) -> Texts:
    """Pairs of a success and a failure that is `praise` above it, and copies lower by `moves`.

    The last `missing` runs and their copies have no statistic.
    """
    levels = np.random.default_rng(0).normal(size=CASES // 2)
    runs = {
        f"r{i}": Run(id=f"r{i}", input=f"c{i}", output="x", success=i % 2 == 0)
        for i in range(CASES)
    }
    values = [float(levels[i // 2]) + praise * (i % 2) for i in range(CASES)]

    def texts(move: float) -> dict[str, float | None]:
        return {f"r{i}": v - move if i < CASES - missing else None for i, v in enumerate(values)}

    return Texts(runs, texts(0.0), {op: texts(move) for op, move in moves.items()})


@pytest.mark.parametrize(
    ("texts", "against"),
    [
        (made(FINE), ""),
        (made(FINE | {"pad": -1.0}), "pad does not surely lower it"),
        (made({"whitespace": 0.0}), "pad does not surely lower it"),
        (made(FINE | {"whitespace": 0.4}), "whitespace moves it"),
        (made(FINE | {"whitespace": -0.4}), "whitespace moves it"),
        (made(FINE | {"swap_numbers": 1.5}), "swap_numbers moves it"),
        (made(FINE, praise=2.0), "failed runs are surely higher"),
        (made(FINE, praise=0.1), ""),  # higher, by chance
        (made(FINE, missing=6), "it exists for 75%"),
        (made(FINE, missing=4), ""),
    ],
)
def test_each_condition_of_the_rule(texts: Texts, against: str) -> None:
    found = list(embedded.objections(KIND, texts))
    assert bool(found) == bool(against)
    assert not against or any(line.startswith(against) for line in found)


def test_area_is_that_of_mann_and_whitney() -> None:
    values = np.array([1.0, 2.0, 2.0, 3.0, 0.5])
    success = np.array([True, True, False, True, False])
    u = mannwhitneyu(values[success], values[~success]).statistic
    assert embedded.area(values, success) == pytest.approx(u / 6)
    assert embedded.area(values, np.ones(5, dtype=bool)) is None


def test_constants_by_hand() -> None:
    texts = made({"pad": 1.0})
    good = [v for v in texts.originals.values() if v is not None]
    both = [*good, *(v - 1 for v in good)]  # every copy lies one below its original
    kind = embedded.fit(texts)
    assert (kind.center, kind.scale) == (pytest.approx(np.mean(both)), pytest.approx(np.std(both)))
    same = made({"pad": 0.0})
    level = Texts(same.runs, dict.fromkeys(same.originals, -math.log(100)), {"pad": {}})
    level.copies["pad"] |= level.originals
    assert embedded.fit(level).scale == math.log(2)


def test_the_constants_of_the_judge_come_from_the_development_set() -> None:
    texts = embedded.read_texts(embedded.development(), ("pad",), rotate=False)
    written = embedded.record(embedded.fit(texts), [])
    assert written == json.loads(embedded.CONSTANTS.read_text("utf-8"))
    assert load_kinds()["conciseness"].supported
