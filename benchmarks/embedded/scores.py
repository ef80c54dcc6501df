"""Texts of the development set, their copies, and their token log-probabilities, kept on disk."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agenteval.evaluators.utility.arithmetic import check_arithmetic
from agenteval.evaluators.utility.likelihood_features import (
    INSTRUCTIONS,
    Features,
    features,
    prompt,
)
from agenteval.models.embedded.likelihood import LikelihoodModel, TokenLogprobs
from benchmarks.embedded import operators
from benchmarks.folders import OUT, ROOT

DEVSET = ROOT / "benchmarks" / "devset" / "problems.jsonl"
CACHE = OUT / "embedded.npz"
SEEDS = 2  # copies per problem and random operator
OPERATORS = ("drop", "shuffle", "tail", "head", "swap", "pad", "wrong", "slip")
CHECKED = "numbers+arithmetic"

Item = dict[str, Any]
Floats = NDArray[np.float64]
Key = tuple[str, str]  # prefix, text


def load_items() -> list[Item]:
    """The problems of the development set."""
    return [json.loads(line) for line in DEVSET.read_text("utf-8").splitlines()]


def copies(item: Item) -> dict[str, list[str]]:
    """The texts to compare the original with, by operator; empty where there are none."""
    good: str = item["good"]

    def seeded(change: Callable[[str, np.random.Generator], str | None]) -> list[str | None]:
        words = [int(item["id"][-3:]), sum(map(ord, change.__name__))]
        return [change(good, np.random.default_rng([*words, s])) for s in range(SEEDS)]

    made: dict[str, list[str | None]] = {
        "drop": seeded(operators.drop),
        "shuffle": seeded(operators.shuffle),
        "tail": [operators.cut_tail(good)],
        "head": [operators.cut_head(good)],
        "swap": seeded(operators.swap_numbers),
        "pad": seeded(operators.pad),
        "wrong": [item["wrong"]],
        "slip": [item["slip"]],
    }
    return {op: [t for t in texts if t is not None] for op, texts in made.items()}


# Scoring, with a cache of raw token log-probabilities


def wanted(items: Sequence[Item]) -> list[Key]:
    """Every (prefix, text) of the analysis: all copies under paraphrase 0, then what the offsets
    (originals) and the table of judged values (in `print`: a dropped and a shuffled copy) need.
    """
    keys: list[Key] = [("", item["problem"]) for item in items]  # for its number of tokens
    for p in range(len(INSTRUCTIONS)):
        for item in items:
            made = copies(item)
            texts = [item["good"]]
            if p == 0:
                texts += [t for op in OPERATORS for t in made[op]]
            elif item["half"] == "print":
                texts += [made["drop"][0], made["shuffle"][0]]
            keys += [(prompt(item["problem"], p), text) for text in texts]
    return list(dict.fromkeys(keys))


def score(keys: Sequence[Key], threads: int) -> tuple[dict[Key, TokenLogprobs], str]:
    """Token log-probabilities of each key, and the model's sha256; computed once, then cached."""
    from agenteval.models import weights

    sha = weights.SMOLLM2.sha256
    known = _read_cache(sha)
    missing = [key for key in keys if _digest(key) not in known]
    if missing:
        model = LikelihoodModel.load(weights.require(), threads=threads)
        began, tokens = time.perf_counter(), 0
        for at in range(0, len(missing), 32):
            part = missing[at : at + 32]
            for key, found in zip(part, model.many(part), strict=True):
                known[_digest(key)] = found
                tokens += len(found.logprobs)
            spent = time.perf_counter() - began
            done = at + len(part)
            print(f"{done}/{len(missing)} texts, {spent / done:.2f} s per text", file=sys.stderr)
            _write_cache(sha, known)
    return {key: known[_digest(key)] for key in keys}, sha


def _digest(key: Key) -> str:
    return hashlib.sha256("\0".join(key).encode()).hexdigest()


def _read_cache(sha: str) -> dict[str, TokenLogprobs]:
    if not CACHE.exists():
        return {}
    with np.load(CACHE) as file:
        if str(file["model"]) != sha:
            return {}
        parts = np.cumsum(file["lengths"])[:-1]
        columns = [np.split(file[name], parts) for name in ("logprobs", "starts", "ends")]
        return {
            str(key): TokenLogprobs(*row) for key, *row in zip(file["keys"], *columns, strict=True)
        }


def _write_cache(sha: str, known: dict[str, TokenLogprobs]) -> None:
    CACHE.parent.mkdir(exist_ok=True)
    values = list(known.values())
    partial = CACHE.with_suffix(".tmp.npz")
    np.savez_compressed(
        partial,
        model=sha,
        keys=np.array(list(known)),
        lengths=np.array([len(v.logprobs) for v in values]),
        logprobs=np.concatenate([v.logprobs for v in values]),
        starts=np.concatenate([v.starts for v in values]),
        ends=np.concatenate([v.ends for v in values]),
    )
    partial.replace(CACHE)


# Statistics of the texts


@dataclass(frozen=True)
class Texts:
    """One half of the development set with the features of all its texts under paraphrase 0."""

    items: list[Item]
    good: list[dict[str, Any]]
    other: dict[str, list[list[dict[str, Any]]]]  # operator -> per problem -> copies


def read_half(items: Sequence[Item], half: str, values: dict[Key, TokenLogprobs]) -> Texts:
    """Statistics of every text of a half."""
    mine = [item for item in items if item["half"] == half]

    def row(item: Item, text: str) -> dict[str, Any]:
        return all_statistics(featured(values, item, text, 0), text)

    made = [copies(item) for item in mine]
    return Texts(
        items=mine,
        good=[row(item, item["good"]) for item in mine],
        other={
            op: [[row(item, t) for t in m[op]] for item, m in zip(mine, made, strict=True)]
            for op in OPERATORS
        },
    )


def featured(values: dict[Key, TokenLogprobs], item: Item, text: str, paraphrase: int) -> Features:
    """Features of a text as the answer to its problem."""
    return features(values[prompt(item["problem"], paraphrase), text], text)


def all_statistics(found: Features, text: str) -> dict[str, Any]:
    """The statistics, the length, and number tokens after the check of the written arithmetic."""
    row: dict[str, Any] = dict(found.statistics())
    row["length"] = -row["tokens"]
    if "numbers" in row:
        row[CHECKED] = (not check_arithmetic(text).wrong, row["numbers"])
    return row


def problem_lengths(items: Sequence[Item], values: dict[Key, TokenLogprobs]) -> Floats:
    """ln(m + 1) for the m tokens of each problem."""
    return np.log([len(values["", item["problem"]].logprobs) + 1 for item in items])
