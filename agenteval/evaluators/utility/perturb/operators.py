"""The registry: every operator with its kind and a line that says what it does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from agenteval.evaluators.utility.perturb.answer import drop_answer
from agenteval.evaluators.utility.perturb.controls import formatting, whitespace
from agenteval.evaluators.utility.perturb.drops import (
    drop_middle,
    drop_sentences,
    drop_words,
    truncate,
)
from agenteval.evaluators.utility.perturb.edits import Change
from agenteval.evaluators.utility.perturb.layout import Layout
from agenteval.evaluators.utility.perturb.numbers import swap_numbers
from agenteval.evaluators.utility.perturb.pad import pad
from agenteval.evaluators.utility.perturb.paraphrase import paraphrase
from agenteval.evaluators.utility.perturb.shuffle import shuffle_sentences

Apply = Callable[[Layout, float, np.random.Generator], Change]
OperatorKind = Literal["directional", "invariant"]


@dataclass(frozen=True, slots=True)
class Operator:
    """One way to change a trajectory.

    `directional`: a criterion's `expect` says which way the score moves. `invariant`: a control
    that must change no score.
    """

    name: str
    kind: OperatorKind
    takes_share: bool
    description: str
    apply: Apply


def _operators() -> Mapping[str, Operator]:
    rows: tuple[tuple[Apply, OperatorKind, bool, str], ...] = (
        (drop_sentences, "directional", True, "a share of the system's sentences is dropped"),
        (drop_words, "directional", True, "a share of the words is dropped"),
        (drop_answer, "directional", False, "all statements of the final answer are dropped"),
        (drop_middle, "directional", False, "one step of the middle third is dropped"),
        (shuffle_sentences, "directional", False, "each speaker's sentences change places"),
        (truncate, "directional", True, "the last share of the text is cut off"),
        (swap_numbers, "directional", True, "a share of the numbers get other digits"),
        (pad, "directional", True, "empty sentences are added, a share of the length"),
        (whitespace, "invariant", False, "gaps between sentences get wider"),
        (formatting, "invariant", False, "Markdown is toggled: bold, bullets, headings"),
        (paraphrase, "invariant", False, "words become others of the same meaning, by rule"),
    )
    made = (Operator(a.__name__, kind, takes, says, a) for a, kind, takes, says in rows)
    return MappingProxyType({operator.name: operator for operator in made})


BANK_OPERATORS = _operators()
