"""Merging many criteria: seconds, peak memory, and a check of the clusters.

    python -m benchmarks.merge [--n 10000] [--tau 0.7] [--embed | --dense]

Without --embed the vectors are planted: a direction per concept and noise around it. With --embed
the texts go through the default embedder, and its time counts. With --dense every name is distinct
and nearly all are alike: the worst case for memory. The target for 10,000
criteria is 120 seconds and 2 GB, embedding included. Ends with 1 when a target or the check is
missed.
"""

from __future__ import annotations

import argparse
import hashlib
import itertools
import resource
import sys
import time
from collections import Counter
from collections.abc import Sequence

import numpy as np

from agenteval.evaluators.utility.merge import Names
from agenteval.models.embeddings import Embedder, make_embedder
from agenteval.records import Criterion, Provenance
from benchmarks.outcome import Row, finish

SECONDS, GIGABYTES = 120, 2.0

QUALITIES = [
    ("Clarity", "how easily the {part} can be followed"),
    ("Readability", "how pleasant the {part} is to read"),
    ("Completeness", "whether every necessary element of the {part} is there"),
    ("Accuracy", "whether the {part} is free of mistakes"),
    ("Correctness", "whether the {part} is right"),
    ("Efficiency", "how little effort the {part} spends on what is not needed"),
    ("Conciseness", "how briefly the {part} says what it has to say"),
    ("Depth", "how far the {part} goes below the surface"),
    ("Originality", "how new the idea behind the {part} is"),
    ("Relevance", "how closely the {part} keeps to what was asked"),
    ("Consistency", "whether the {part} never contradicts itself"),
    ("Structure", "how well the {part} is ordered"),
    ("Justification", "whether the {part} gives reasons for what it claims"),
    ("Robustness", "how the {part} copes with unusual cases"),
    ("Safety", "whether the {part} avoids harm"),
    ("Tone", "whether the {part} addresses the reader politely"),
    ("Verification", "whether the {part} checks itself"),
    ("Transparency", "whether the {part} names its assumptions and limits"),
]
PARTS = [
    "answer", "calculation", "derivation", "final result", "plan", "code", "tool call", "dialogue",
    "explanation", "summary", "diagram", "example", "proof", "argument", "notation", "source",
    "error message", "table", "test", "conclusion", "introduction", "search", "schedule",
    "translation", "data handling", "user interface", "memory of earlier turns", "recovery",
    "question to the user", "unit conversion", "estimate", "reference list",
]  # fmt: skip
NAMES = ["{q} of the {p}", "{p} {q}", "{q} in the {p}", "Quality of the {p}: {q}", "{q} ({p})"]
OPENINGS = ["Judges", "The degree to which one can see", "Looks at", "Rates", "Says"]


def generate(n: int, *, numbered: bool) -> list[Criterion]:
    """`n` criteria of 50 seeds: combinations of qualities, parts and phrasings, then repeats.

    `numbered` makes every name distinct.
    """
    rng = np.random.default_rng(0)
    wordings = list(itertools.product(QUALITIES, PARTS, NAMES, OPENINGS))
    order = rng.permutation(len(wordings))
    result = []
    for i in range(n):
        (quality, about), part, name, opening = wordings[order[i % len(wordings)]]
        result.append(
            Criterion(
                name=name.format(q=quality, p=part).capitalize() + f" {i}" * numbered,
                description=f"{opening} {about.format(part=part)}.",
                accepted_values=("poor", "fair", "good"),
                provenance=Provenance(origin="critic", seeds=(int(rng.integers(50)),)),
            )
        )
    return result


class Planted:
    """A centre per name, `centres` in all; the noise puts pairs on both sides of 0.7."""

    name = "planted"
    default_tau = 0.7

    def __init__(self, centres: int, dimensions: int = 384) -> None:
        self.centres = centres
        self.dimensions = dimensions

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Unit rows (n, dimensions), a function of the text alone."""
        rows = np.stack([self._direction(text) for text in texts])
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows.astype(np.float32)

    def _direction(self, text: str) -> np.ndarray:
        if text.startswith(tuple(opening.casefold() for opening in OPENINGS)):
            return np.ones(self.dimensions)  # a description: it tells nothing
        centre = np.random.default_rng(number_of(text) % self.centres).normal(size=self.dimensions)
        noise = np.random.default_rng(number_of(text)).normal(size=self.dimensions)
        return centre + 0.6 * noise


def number_of(text: str) -> int:
    """A number that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")


class Timed:
    """Passes texts on and measures the time."""

    def __init__(self, inner: Embedder) -> None:
        self.name, self.default_tau = inner.name, inner.default_tau
        self.inner = inner
        self.seconds = 0.0

    def embed(self, texts: Sequence[str]) -> np.ndarray:
        """Rows of the inner embedder."""
        start = time.perf_counter()
        rows = self.inner.embed(texts)
        self.seconds += time.perf_counter() - start
        return rows


def least_mean(vectors: np.ndarray, labels: Sequence[int]) -> tuple[int, float]:
    """How many groups hold several names, and the least mean cosine of the pairs of one.

    Each join of average linkage has a mean of at least tau, so all pairs together have.
    """
    means = []
    for label, count in Counter(labels).items():
        if count > 1:
            rows = vectors[[i for i, own in enumerate(labels) if own == label]].astype(np.float64)
            total = np.square(rows.sum(axis=0)).sum() - np.square(rows).sum()
            means.append(float(total / (count * (count - 1))))
    return len(means), min(means, default=1.0)


def main() -> int:
    """Run once and print; the exit code says whether the targets held."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--n", type=int, default=10_000)
    parser.add_argument("--tau", type=float)
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument("--embed", action="store_true", help="use the default embedder")
    kind.add_argument("--dense", action="store_true", help="one component, distinct names")
    options = parser.parse_args()
    criteria = generate(options.n, numbered=options.dense)
    planted = Planted(1 if options.dense else max(1, options.n // 20))
    embedder = Timed(make_embedder(None) if options.embed else planted)
    tau = embedder.default_tau if options.tau is None else options.tau
    start = time.perf_counter()
    names = Names(criteria, embedder)
    labels = names.partition(tau)
    merged = names.merged(labels)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (
        1024**3 if sys.platform == "darwin" else 1024**2
    )
    kept = sum(1 + len(c.provenance.aliases) for c in merged)
    assert names.vectors is not None  # there is an embedder
    groups, least = least_mean(names.vectors, labels)
    print(f"{options.n} criteria, embedder {embedder.name}, tau {tau:g}")
    print(f"  {len(labels)} distinct names -> {len(merged)} criteria ({kept} kept)")
    print(f"  {seconds:.1f} s, of which embedding {embedder.seconds:.1f} s (target {SECONDS} s)")
    print(f"  peak memory {peak:.2f} GB (target {GIGABYTES:g} GB)")
    print(f"  {groups} groups of several names checked, least mean cosine {least:.4f}")
    rows = [
        Row(f"seconds to merge {options.n:,} criteria", f"{seconds:.1f} s", f"<= {SECONDS} s",
            seconds <= SECONDS),
        Row("peak memory", f"{peak:.2f} GB", f"<= {GIGABYTES:g} GB", peak <= GIGABYTES),
        Row("criteria kept, themselves or as an alias", f"{kept:,}", f"{options.n:,}",
            kept == options.n),
        Row("least mean cosine of the names of a group", f"{least:.4f} ({groups} groups)",
            f">= {tau:g}", groups > 0 and least >= tau - 1e-5),
    ]  # fmt: skip
    return finish(
        "merge", rows, n=options.n, embedder=embedder.name, tau=tau, merged=len(merged),
        seconds=round(seconds, 1), embedding_s=round(embedder.seconds, 1), peak_gb=round(peak, 2),
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
