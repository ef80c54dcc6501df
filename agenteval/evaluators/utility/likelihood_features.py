"""What the log-probabilities of a text's tokens say about it, statistic by statistic.

The solution is scored as the assistant's answer to the problem (GPTScore, arXiv 2302.04166: the
quality of a text is its likelihood under a prompt). Only tokens inside the system's own prose are
used: headings, tool results, calls and code stand in the context but are not averaged, because
the constants that turn a statistic into a value come from prose.

Statistics (nats per token; higher means more expected by the model):

===========  ======================================================================
mean         all tokens
start        the first three tokens of each sentence
mean+start   the average of these two
worst        the least likely quarter of the tokens
numbers      tokens that hold a digit
answer       the last sentence
tokens       not a likelihood: minus the log of the number of tokens, the length baseline
===========  ======================================================================
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from agenteval.evaluators.utility.sentences import Sentence, split_sentences
from agenteval.models.embedded.chat import chat_prefix
from agenteval.records import content_hash

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

START_TOKENS = 3
WORST_SHARE = 0.25
STATISTICS = ("mean", "start", "mean+start", "worst", "numbers", "answer", "tokens")
# Written for any task. Which one is used should make no difference, so repeats vary it.
INSTRUCTIONS = (
    "{problem}",
    "Please deal with the following task, completely and clearly.\n\n{problem}",
    "{problem}\n\nWork through this carefully, from beginning to end.",
    "Here is a request. Write a full answer to it.\n\n{problem}",
)
PROMPT_SHA256 = content_hash(list(INSTRUCTIONS))


class TokenValues(Protocol):
    """Token log-probabilities of one text: three arrays of one length."""

    @property
    def logprobs(self) -> Floats:
        """Natural log of P(token | what stands before)."""
        ...

    @property
    def starts(self) -> Ints:
        """First character of each token."""
        ...

    @property
    def ends(self) -> Ints:
        """Character after each token."""
        ...


def prompt(problem: str, paraphrase: int) -> str:
    """The chat up to the answer; `paraphrase` counts modulo the number of instructions."""
    text = INSTRUCTIONS[paraphrase % len(INSTRUCTIONS)].format(problem=problem)
    return chat_prefix([{"role": "user", "content": text}])


@dataclass(frozen=True, eq=False)
class Features:
    """The scored tokens of one text; every statistic is computed from them.

    logprobs: (n,) nats. sentence: (n,) index of the token's sentence, ascending from 0.
    start, number: (n,) whether it is one of the first three of its sentence, holds a digit.
    keys: one number per sentence that stands for its wording (case, spacing and digits aside).
    """

    logprobs: Floats
    sentence: Ints
    start: NDArray[np.bool_]
    number: NDArray[np.bool_]
    keys: tuple[int, ...]

    @property
    def sentences(self) -> int:
        """How many sentences have tokens."""
        return len(self.keys)

    def statistics(self, chosen: Sequence[int] | Ints | None = None) -> dict[str, float]:
        """The statistics that exist, over all sentences or over `chosen` ones.

        `chosen` holds indices of sentences and may repeat them, so a bootstrap can draw sentences.
        `answer` is always the last sentence of the text, chosen or not; `tokens` is scaled to the
        number of sentences of the text. A statistic without a token (numbers, in a text without
        digits) is left out.
        """
        index = self._tokens(chosen)
        if not len(index):
            return {}
        values = self.logprobs[index]
        last = self.logprobs[self.sentence == self.sentence[-1]]
        mean, start = _mean(values), _mean(values[self.start[index]])
        found = {"mean": mean, "start": start, "mean+start": (mean + start) / 2}
        found["worst"] = _mean(np.sort(values)[: max(1, math.ceil(WORST_SHARE * len(values)))])
        if (numbers := values[self.number[index]]).size:
            found["numbers"] = _mean(numbers)
        found["answer"] = _mean(last)
        share = 1.0 if chosen is None else len(chosen) / self.sentences
        found["tokens"] = -math.log(len(values) / share)
        return found

    def _tokens(self, chosen: Sequence[int] | Ints | None) -> Ints:
        if chosen is None:
            return np.arange(len(self.logprobs))
        edges = np.searchsorted(self.sentence, np.arange(self.sentences + 1))
        parts = [np.arange(edges[i], edges[i + 1]) for i in chosen]
        return np.concatenate(parts) if parts else np.arange(0)

    def draw(self, seed: int, repeat: int) -> Ints:
        """Indices of sentences for one repeat: a Poisson bootstrap (Oza and Russell 2001).

        Each sentence appears k times, k from Poisson(1), drawn from seed, repeat and the wording of
        the sentence. So two texts that share a sentence weigh it alike: what differs between an
        original and its damaged copy is the damage, not the luck of the draw, though neither is
        known when the other is judged. If no sentence comes up, all count once.
        """
        counts = [int(np.random.default_rng([seed, repeat, key]).poisson()) for key in self.keys]
        if not any(counts):
            counts = [1] * self.sentences
        return np.repeat(np.arange(self.sentences), counts)


def _mean(values: Floats) -> float:
    return float(values.mean())


def features(
    values: TokenValues, text: str, sentences: Sequence[Sentence] | None = None
) -> Features:
    """Features of `text` from the log-probabilities of its tokens.

    `sentences` are the units whose tokens count, in order; by default the system's own prose. A
    token belongs to the sentence that holds its first visible character (a blank token: where it
    begins). Sentences without a token of their own are not counted.
    """
    if sentences is None:
        sentences = [s for s in split_sentences(text) if s.prose]
    at = _anchors(text, values.starts, values.ends)
    begins = np.array([s.start for s in sentences], dtype=np.int64)
    finishes = np.array([s.end for s in sentences], dtype=np.int64)
    owner = np.searchsorted(begins, at, side="right") - 1
    kept = np.flatnonzero((owner >= 0) & (at < finishes[owner] if len(finishes) else False))
    owned = owner[kept]
    names, sentence = np.unique(owned, return_inverse=True)
    first = np.searchsorted(owned, names)
    number = [
        any(c.isdigit() for c in text[values.starts[i] : values.ends[i]]) for i in kept.tolist()
    ]
    return Features(
        logprobs=values.logprobs[kept],
        sentence=sentence.astype(np.int64),
        start=np.arange(len(kept)) - first[sentence] < START_TOKENS,
        number=np.array(number, dtype=np.bool_),
        keys=tuple(_key(text[sentences[i].start : sentences[i].end]) for i in names.tolist()),
    )


def _key(sentence: str) -> int:
    return int(content_hash(re.sub(r"\d", "#", " ".join(sentence.casefold().split())))[:16], 16)


def _anchors(text: str, starts: Ints, ends: Ints) -> Ints:
    """Position of each token's first visible character; its start when it has none."""
    anchors = []
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        token = text[start:end]
        bare = token.lstrip()
        anchors.append(start + len(token) - len(bare) if bare else start)
    return np.array(anchors, dtype=np.int64)


def conciseness(minus_log_tokens: float, problem_tokens: int, slope: float) -> float:
    """The statistic `tokens` of a text beside the length of its problem: s + slope ln(m + 1).

    `slope` is how fast the log length of a good answer grows with that of its problem (a constant
    from the development set). Higher means shorter than answers to problems of this length are.
    """
    return minus_log_tokens + slope * math.log(problem_tokens + 1)


def rounded(values: Mapping[str, float]) -> dict[str, float]:
    """Six digits, for storing."""
    return {name: round(value, 6) for name, value in values.items()}
