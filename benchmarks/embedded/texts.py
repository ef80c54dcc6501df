"""Runs of the development set and of three tasks with perturbed copies, and their statistics."""

from __future__ import annotations

import hashlib
import json
import math
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from agenteval.evaluators.utility.embedded import MIN_SENTENCES, read_prose
from agenteval.evaluators.utility.plan import Item
from agenteval.evaluators.utility.sentences import split_sentences
from agenteval.models.embedded.chat import chat_prefix
from agenteval.models.embedded.likelihood import LikelihoodModel, TokenLogprobs
from agenteval.readers import make_view, read_runs
from agenteval.records import Run, View
from agenteval.trust.verification import Copies, make_copies
from benchmarks.folders import OUT, ROOT

DEVSET = ROOT / "benchmarks" / "devset" / "problems.jsonl"
CACHE = OUT / "embedded.npz"
DEVELOPMENT = "development"
TASKS = ("math", "household", "support")
MOVING = ("drop_sentences", "truncate", "shuffle_sentences", "swap_numbers", "pad")
CONTROLS = ("whitespace", "formatting", "paraphrase")
SHARE, SEED = 0.25, 0  # as `agenteval verify` makes its copies
START_TOKENS, WORST_SHARE = 3, 0.25

Key = tuple[str, str]  # prefix, text


@dataclass(frozen=True)
class Text:
    """An original or a copy: its case, what is known of the run, and its statistics."""

    run: str
    case: str
    success: bool | None
    statistics: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Texts:
    """One set of texts: originals by run, and by operator the copies by run."""

    originals: dict[str, Text]
    copies: dict[str, dict[str, Text]]


@dataclass(frozen=True)
class Material:
    """The runs of a set, and copies of one run of each case, the systems taking turns."""

    items: list[Item]
    copied: list[Item]
    copies: list[Copies]

    def views(self) -> list[View]:
        """Everything that must be scored."""
        return [v for _, v in (*self.items, *(i for c in self.copies for i in c.items))]


def load_material(name: str, operators: Sequence[str], cases: int | None = None) -> Material:
    """A set by its name, the first `cases` cases of it."""
    by_case: dict[str, list[Item]] = {}
    for run in _development() if name == DEVELOPMENT else _task(name):
        by_case.setdefault((run.input or run.id), []).append((run, make_view(run)))
    groups = list(by_case.values())[:cases]
    copied = [group[i % len(group)] for i, group in enumerate(groups)]
    if name == DEVELOPMENT:
        copied = [group[0] for group in groups]  # the good solution
    copies = make_copies(copied, operators, share=SHARE, seed=SEED)
    return Material([item for group in groups for item in group], copied, copies)


def _task(name: str) -> list[Run]:
    return list(read_runs(ROOT / "tasks" / name / "runs.jsonl", task=name).runs)


def _development() -> list[Run]:
    """The right solution of every problem as a success, the wrong one as a failure."""
    rows = [json.loads(line) for line in DEVSET.read_text("utf-8").splitlines()]
    return [
        Run(id=f"{row['id']}-{which}", system=which, input=row["problem"], output=row[which],
            success=which == "good")
        for row in rows
        for which in ("good", "wrong")
    ]  # fmt: skip


class RememberedModel:
    """The embedded model with the token log-probabilities of earlier runs, kept on disk."""

    def __init__(self, threads: int) -> None:
        from agenteval.models import weights

        self.sha256 = weights.SMOLLM2.sha256
        self._model = LikelihoodModel.load(weights.require(), threads=threads)
        self._known = _read_cache(self.sha256)

    def many(self, keys: Sequence[Key]) -> list[TokenLogprobs]:
        """Of each (prefix, text); what is not known is computed and kept."""
        missing = [key for key in dict.fromkeys(keys) if _digest(key) not in self._known]
        began = time.perf_counter()
        for at in range(0, len(missing), 32):
            part = missing[at : at + 32]
            for key, values in zip(part, self._model.many(part), strict=True):
                self._known[_digest(key)] = values
            done = at + len(part)
            spent = time.perf_counter() - began
            print(f"{done}/{len(missing)} texts, {spent / done:.2f} s per text", file=sys.stderr)
            _write_cache(self.sha256, self._known)
        return [self._known[_digest(key)] for key in keys]


def read_texts(material: Material, model: RememberedModel) -> Texts:
    """Statistics of every text of a set."""
    views = material.views()
    values = model.many([_key(view) for view in views])
    known = {
        _key(view): statistics(one, view.trajectory)
        for view, one in zip(views, values, strict=True)
    }

    def texts(items: Sequence[Item]) -> dict[str, Text]:
        return {
            run.id: Text(run.id, run.input or run.id, run.success, known[_key(view)])
            for run, view in items
        }

    return Texts(
        texts(material.items),
        {one.variant.partition(":")[0]: texts(one.items) for one in material.copies},
    )


def statistics(values: TokenLogprobs, text: str) -> dict[str, float]:
    """Every statistic that may serve a kind of criterion, higher is better; those that exist.

    The solution is scored as the assistant's answer to the problem (GPTScore, arXiv 2302.04166), in
    nats per token of the system's own prose: `mean` of all tokens, `start` (the first three of each
    sentence), `mean+start` (the average of the two), `worst` (the least likely quarter), `numbers`
    (tokens that hold a digit), `answer` (the last sentence). `words` is the judge's shortness.
    """
    prose = read_prose(text)
    if len(prose.words) < MIN_SENTENCES:
        return {}
    sentence, index = _owners(values, text)
    logprobs = values.logprobs[index]
    place = np.arange(len(index)) - np.searchsorted(sentence, sentence)
    lowest = np.sort(logprobs)[: max(1, math.ceil(WORST_SHARE * len(index)))]
    mean, start = float(logprobs.mean()), float(logprobs[place < START_TOKENS].mean())
    table = {
        "words": prose.shortness(),
        "mean": mean,
        "start": start,
        "mean+start": (mean + start) / 2,
        "worst": float(lowest.mean()),
        "answer": float(logprobs[sentence == sentence[-1]].mean()),
    }
    spans = zip(values.starts[index], values.ends[index], strict=True)
    number = np.array([any(c.isdigit() for c in text[a:b]) for a, b in spans])
    return table | ({"numbers": float(logprobs[number].mean())} if number.any() else {})


def _owners(values: TokenLogprobs, text: str) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """For each token inside the prose the number of its sentence, and its index among all tokens.

    A token belongs to the sentence that holds its first visible character (a blank token: where it
    begins).
    """
    spans = [(s.start, s.end) for s in split_sentences(text) if s.prose]
    begins, ends = np.array(spans).T
    at = np.array(
        [
            a + (len(token) - len(bare) if (bare := token.lstrip()) else 0)
            for a, b in zip(values.starts.tolist(), values.ends.tolist(), strict=True)
            for token in [text[a:b]]
        ]
    )
    owner = np.searchsorted(begins, at, side="right") - 1
    index = np.flatnonzero((owner >= 0) & (at < ends[owner]))
    return owner[index], index


def _key(view: View) -> Key:
    return chat_prefix([{"role": "user", "content": view.problem}]), view.trajectory


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
