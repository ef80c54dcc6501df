"""Which likelihood serves which kind of criterion: measured on the development set.

    python benchmarks/embedded.py [--half print] [--write] [--threads 2]

Every problem's right solution (the original) is compared with changed copies of itself:
drop (25 % of sentences), shuffle, tail and head cut (as many sentences as drop removes), swap
(numbers), pad (empty phrases), and with the written texts wrong and slip. Tables: the share of
same-problem pairs in which the original is higher, with a Wilson 95 % interval whose n is the
number of problems (several copies of one problem are averaged first, ties count half); the AUC over
all problems with a 95 % interval from 1000 bootstrap resamples of problems. The row `length` is
what the number of tokens alone would say. Token log-probabilities are kept in benchmarks/out/.

The rule (stated before the figures were seen)
----------------------------------------------
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
1994), so a value says about which share of such texts has a lower statistic.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parent))
import operators  # noqa: E402

from agenteval.evaluators.utility.arithmetic import check_arithmetic  # noqa: E402
from agenteval.evaluators.utility.likelihood_features import (  # noqa: E402
    INSTRUCTIONS,
    PROMPT_SHA256,
    STATISTICS,
    Features,
    conciseness,
    features,
    prompt,
)
from agenteval.models.embedded.likelihood import LikelihoodModel, TokenLogprobs  # noqa: E402

HERE = Path(__file__).parent
DEVSET = HERE / "devset" / "problems.jsonl"
CACHE = HERE / "out" / "embedded.npz"
CONSTANTS = HERE.parent / "agenteval" / "data" / "embedded_judge.json"
SEEDS = 2  # copies per problem and random operator
OPERATORS = ("drop", "shuffle", "tail", "head", "swap", "pad", "wrong", "slip")
LIKELIHOODS = tuple(s for s in STATISTICS if s != "tokens")
CHECKED = "numbers+arithmetic"
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
    """Every (prefix, text) of the analysis: all copies, then four texts per further paraphrase."""
    keys: list[Key] = []
    for item in items:
        made = copies(item)
        for p in range(len(INSTRUCTIONS)):
            texts = [item["good"], made["drop"][0], made["shuffle"][0], made["pad"][0]]
            if p == 0:
                texts = [item["good"], *(t for op in OPERATORS for t in made[op])]
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
        for at in range(0, len(missing), 64):
            part = missing[at : at + 64]
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
