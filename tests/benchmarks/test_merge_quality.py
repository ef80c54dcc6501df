"""The bench of merging: pairs counted one by one, the rule, the resampling unit, the halves."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest

from agenteval.evaluators.utility.bank import load_bank
from agenteval.evaluators.utility.merge import merge_criteria
from agenteval.records import Criterion, Provenance
from benchmarks.merge_quality import __main__ as merge_quality
from benchmarks.merge_quality import embedders as merge_embedders
from benchmarks.merge_quality import figures as merge_figures
from benchmarks.merge_quality import pairs as mp
from benchmarks.merge_quality import print as merge_print
from benchmarks.merge_quality import unique as merge_unique

ITEMS = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=14)


def brute(items: Sequence[tuple[Any, int, int]]) -> tuple[int, int, int]:
    """Right, wrong and missed pairs of (concept, copy, cluster), pair by pair.

    Two copies of one concept do not meet.
    """
    right = wrong = missed = 0
    for (a, i, k), (b, j, m) in combinations(items, 2):
        if a == b and i == j:
            right += k == m
            missed += k != m
        elif a != b:
            wrong += k == m
    return right, wrong, missed


@given(ITEMS)
def test_pairs_are_those_counted_one_by_one(items: list[tuple[int, int]]) -> None:
    pairs = mp.count_pairs([a for a, _ in items], [k for _, k in items])
    n = len({a for a, _ in items})
    found = tuple(x[0] for x in mp.weighed(pairs, np.ones((1, n))))
    assert found == brute([(a, 0, k) for a, k in items])


@given(ITEMS, st.integers(0, 9))
def test_a_resample_draws_whole_concepts(items: list[tuple[int, int]], seed: int) -> None:
    concepts = list(dict.fromkeys(a for a, _ in items))
    weights = mp.draw_weights(len(concepts), 3, seed)
    assert (weights.sum(axis=1) == len(concepts)).all()
    pairs = mp.count_pairs([a for a, _ in items], [k for _, k in items])
    for row, found in zip(weights, zip(*mp.weighed(pairs, weights), strict=True), strict=True):
        times = dict(zip(concepts, row.astype(int).tolist(), strict=True))
        copies = [(a, i, k) for a, k in items for i in range(times[a])]
        assert found == brute(copies)


def test_hand_made_clusters() -> None:
    """a: 3 in one cluster. b: 2 together with one c, 1 alone. c: the other 2 together.

    Right 3 + 1 + 1, wrong 2 (both b with c), missed 2 (b) + 2 (c).
    """
    concepts = ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    found = mp.measure(
        mp.count_pairs(concepts, [0, 0, 0, 1, 1, 2, 1, 3, 3]), mp.draw_weights(3, 400)
    )
    assert (found.merged, found.wrong, found.same, found.concepts) == (7, 2, 9, 3)
    assert found.precision.value == pytest.approx(5 / 7)
    assert found.recall.value == pytest.approx(5 / 9)
    assert found.f1.value == pytest.approx(10 / 16)
    for share in (found.precision, found.recall, found.f1):
        assert share.low <= share.value <= share.high
    # the resample aaa has no missed pair; bbb and ccc have one right of three
    assert (found.recall.low, found.recall.high) == (pytest.approx(1 / 3), 1.0)


def test_shares_without_variation_get_exact_bounds_over_concepts() -> None:
    concepts = [c for c in "abcdefg" for _ in range(3)]
    whole = [ord(c) for c in concepts]
    weights = mp.draw_weights(7, 50)
    perfect = mp.measure(mp.count_pairs(concepts, whole), weights)
    exact = binomtest(7, 7).proportion_ci(method="exact")
    assert (perfect.precision.value, perfect.precision.high) == (1.0, 1.0)
    assert perfect.precision.low == pytest.approx(exact.low)
    assert perfect.recall.low == pytest.approx(exact.low)
    alone = mp.measure(mp.count_pairs(concepts, list(range(21))), weights)
    assert alone.precision == mp.Share(None, None, None)
    assert alone.recall.high == pytest.approx(binomtest(0, 7).proportion_ci(method="exact").high)
    assert alone.f1 == mp.Share(0.0, None, None)
    # one pair joined: only one concept bears on precision
    one = mp.measure(mp.count_pairs(concepts, [0, 0, *range(2, 21)]), weights)
    assert one.precision.low == pytest.approx(binomtest(1, 1).proportion_ci(method="exact").low)


def test_what_cannot_be_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="2 concepts but 1 clusters"):
        mp.count_pairs(["a", "b"], [0])
    with pytest.raises(ValueError, match="not defined"):
        mp.f1_of(mp.count_pairs(["a", "b"], [0, 1]), np.ones((1, 2)))


def test_gain_is_paired() -> None:
    concepts = [c for c in "abcd" for _ in range(2)]
    old = mp.count_pairs(concepts, [0, 0, 1, 1, 2, 3, 4, 5])  # 2 of 4: F1 = 4 / 6
    new = mp.count_pairs(concepts, [0, 0, 1, 1, 2, 2, 3, 3])
    weights = mp.draw_weights(4, 500)
    gain = mp.f1_gain(new, old, weights)
    assert gain.value == pytest.approx(1 / 3)
    assert gain.low >= 0
    assert mp.f1_gain(new, new, weights) == mp.Share(0.0, 0.0, 0.0)


def quality(precision: float | None, f1: float) -> Any:
    none = mp.Share(None, None, None)
    return mp.Quality(mp.Share(precision, None, None), none, mp.Share(f1, None, None), 0, 0, 1, 1)


def test_the_rule() -> None:
    table = {
        0.5: quality(0.949, 0.99),  # best, not precise enough
        0.6: quality(0.95, 0.80),
        0.65: quality(0.97, 0.90),
        0.7: quality(1.0, 0.90),  # as good: the higher one
        0.8: quality(1.0, 0.40),
        0.9: quality(None, 0.0),  # merges nothing: has no precision
    }
    assert mp.choose_tau(table) == 0.7
    assert mp.choose_tau({t: q for t, q in table.items() if t < 0.65}) == 0.6
    assert mp.choose_tau({t: q for t, q in table.items() if t in (0.5, 0.9)}) is None


def test_halves_depend_on_the_id_alone() -> None:
    for name in ("clarity", "completeness", "größe"):
        even = int(hashlib.sha256(name.encode("utf-8")).hexdigest()[:2], 16) % 2 == 0
        assert mp.half(name) == ("choose" if even else "print")
    bank = load_bank()
    halves = [merge_quality.Half.of(bank, name) for name in ("choose", "print")]
    ids = [set(h.concepts) for h in halves]
    assert not ids[0] & ids[1]
    assert ids[0] | ids[1] == {c.id for c in bank}
    assert sum(len(h.criteria) for h in halves) == sum(len(c.phrasings) for c in bank)
    assert min(h.n for h in halves) >= len(bank) // 3
    again = merge_quality.Half.of(bank[::-1], "print")
    assert set(again.concepts) == ids[1]


class Planted:
    """Vectors written by hand."""

    name, default_tau, tau_is_measured = "planted", 0.7, False

    def __init__(self, rows: dict[str, list[float]]) -> None:
        self.rows = rows

    def embed(self, texts: Sequence[str]) -> Any:
        return np.array([self.rows[t] for t in texts], dtype=np.float32)


def criterion(name: str, description: str, concept: str | None, seed: int = 0) -> Criterion:
    about = Provenance(origin="bank", concept=concept, seeds=(seed,))
    return Criterion(
        name=name, description=description, accepted_values=("bad", "good"), provenance=about
    )


def test_clusters_are_those_of_merge_criteria_in_any_form_of_the_text() -> None:
    made = [
        criterion("Clear", "x", "a"),
        criterion("Lucid", "y", "a"),
        criterion("Short", "x", "b"),
    ]
    rows = {
        "Clear": [1.0, 0.0], "Lucid": [0.8, 0.6], "Short": [0.0, 1.0],
        "x": [1.0, 0.0], "y": [0.0, 1.0],
    }  # fmt: skip
    for form, tau, expected in (
        ("name", 0.75, [0, 0, 1]),
        ("name", 0.85, [0, 1, 2]),
        ("description", 0.75, [0, 1, 0]),
    ):
        known, vectors = merge_embedders.in_form(made, "planted", Planted(rows).embed, form)
        found = merge_embedders.labels(made, known, tau)
        groups = [[i for i in range(3) if found[i] == k] for k in dict.fromkeys(found)]
        assert groups == [[i for i in range(3) if expected[i] == k] for k in sorted({*expected})]
        assert len(merge_criteria(made, known, tau=tau)) == len(groups)
    assert vectors.tolist() == [[1, 0], [0, 1], [1, 0]]
    known, vectors = merge_embedders.in_form(made, "planted", Planted(rows).embed, "name")
    assert merge_embedders.ceiling(["a", "a", "b"], vectors, 0.75) == 1.0
    assert merge_embedders.ceiling(["a", "a", "b"], vectors, 0.85) == 0.0
    assert merge_embedders.ceiling(["a", "b", "a"], vectors, 0.01) == 0.0  # Clear, Short


def test_strangers_are_named_and_wordings_count_once() -> None:
    rows = {"Clear: x": [1.0, 0.0], "Lucid: y": [1.0, 0.0], "Short: z": [0.9, 0.43588989]}
    made = [
        criterion("Clear", "x", "a", 0), criterion("Clear", "x", "a", 1),
        criterion("Lucid", "y", "a"), criterion("Short", "z", "b"),
    ]  # fmt: skip
    found = merge_quality.together(made, Planted(rows), 0.7)
    assert (found.criteria, found.clusters, found.quality.wrong) == (3, 1, 2)
    assert found.strangers == [("Clear", "Short"), ("Lucid", "Short")]
    with pytest.raises(ValueError, match="without a concept"):
        merge_quality.together([criterion("Clear", "x", None)], Planted(rows), 0.7)


@pytest.mark.parametrize("name", list(merge_embedders.N_GRAMS))
def test_n_grams_are_unit_rows_and_refuse_empty_ones(name: str) -> None:
    rows = merge_embedders.n_grams(name, ["a clear answer", "a clear answer", "other words"])
    assert np.linalg.norm(rows, axis=1) == pytest.approx([1, 1, 1], abs=1e-6)
    assert rows[0] @ rows[1] == pytest.approx(1)
    assert rows[0] @ rows[2] < 0.2
    with pytest.raises(ValueError, match="no n-gram"):
        merge_embedders.n_grams(name, ["words here", " "])


def test_measure_print_and_draw_without_a_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bank = load_bank()
    choose, shown = (merge_quality.Half.of(bank, name) for name in ("choose", "print"))

    def characters(texts: Sequence[str]) -> Any:
        return merge_embedders.n_grams("TF-IDF characters", texts)

    methods = [
        merge_quality.Method("characters", merge_embedders.MERGED, characters),
        merge_quality.Method("equal names", "name", None),
    ]
    results = [merge_quality.measured(m, choose, shown, 50) for m in methods]
    first = results[0]
    assert first.chosen in first.table
    assert first.on_choose.precision.value >= 0.95
    recalls = [first.table[t].recall.value for t in sorted(first.table)]
    assert all(  # no more can be joined than has the cosine: the bank has no equal names
        first.table[t].recall.value <= first.ceilings[t] for t in first.table
    )
    assert recalls[0] > recalls[-1]
    for result in results:
        merge_print.print_result(result)
    rows = json.loads(json.dumps([merge_print.row(r) for r in results], allow_nan=False))
    assert [set(r) for r in rows] == [{"embedder", "text", "chosen_tau", "by_tau"}] * 2
    verdict = merge_print.judge_default(first, 0.7, 50)
    assert set(verdict) == {"default", "chosen", "f1_gain", "change"}
    merge_figures.draw_quality(results, 0.7, tmp_path / "quality.png")
    assert (tmp_path / "quality.png").stat().st_size > 10_000
    assert f"chosen τ {first.chosen:.2f}" in capsys.readouterr().out


def test_curves_count_concepts_and_clusters(tmp_path: Path) -> None:
    """Three seeds propose a and b, a in other words, b. Means over all subsets by hand."""
    rows = {"Clear: x": [1.0, 0.0], "Lucid: y": [0.8, 0.6], "Short: z": [0.0, 1.0]}
    sets = [
        [criterion("Clear", "x", "a"), criterion("Short", "z", "b")],
        [criterion("Lucid", "y", "a", 1)],
        [criterion("Short", "z", "b", 2)],
    ]
    found = merge_unique.mode_curves(sets, Planted(rows))
    assert (found.seeds, found.proposed) == (3, 4)
    assert found.by_tau[1.0].mean == pytest.approx([4 / 3, (3 + 2 + 2) / 3, 3])
    # as the concepts: Clear and Lucid have a cosine of .8
    assert found.by_tau[0.7].mean == pytest.approx([4 / 3, 2, 2])
    assert found.by_tau[0.85].mean == pytest.approx(found.by_tau[1.0].mean)
    assert found.concepts.mean == pytest.approx([4 / 3, 2, 2])
    merge_figures.draw_curves({"task-based": found}, tmp_path / "unique.png")
    assert (tmp_path / "unique.png").stat().st_size > 10_000
    nobody = [[criterion("Clear", "x", None)]]
    assert merge_unique.mode_curves(nobody, Planted(rows)).concepts is None


def test_recorded_replies_are_read_and_bad_ones_named(tmp_path: Path) -> None:
    good = {"clarity": {"description": "Is it clear?", "accepted_values": ["poor", "good"]}}
    lines = [{"raw": json.dumps(good)}, {"raw": "I cannot do that."}]
    text = "".join(json.dumps(line) + "\n" for line in lines)
    (tmp_path / "replies.jsonl").write_text(text, encoding="utf-8")
    sets, failed = merge_unique.recorded(tmp_path)
    assert [[c.name for c in s] for s in sets] == [["Clarity"]]
    assert len(failed) == 1
    assert failed[0].startswith("replies.jsonl:2: ")
    (tmp_path / "replies.jsonl").write_text(json.dumps(lines[1]), encoding="utf-8")
    with pytest.raises(ValueError, match="no critic reply"):
        merge_unique.recorded(tmp_path)
