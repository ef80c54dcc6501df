"""What arXiv 2404.17833v1 prints, tables 2 to 7, as data to stand beside one's own figures.

Other models, other requests, windows of 60 minutes and no intervals: for orientation, never a
test. Shares of tables 3, 4, 6 and 7 are per cent; the paper does not state their numbers of
cases, beyond "100 sampled errors" of table 4. GPT-3.5 is gpt-3.5-turbo-1106, GPT-4 is
gpt-4-1106-preview.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

SOURCE = "arXiv 2404.17833v1 (27 April 2024)"
CAVEAT = "published, other models and tests"
MODELS = ("GPT-3.5", "GPT-4")
FRAMEWORKS = ("ReAct", "OpenAI Tools", "OpenAI Assistant")


@dataclass(frozen=True, slots=True)
class Found:
    """A row of table 2: 60 minutes of testing; times in seconds."""

    model: str
    framework: str
    generated: int
    errors: int
    z3_calls: int
    z3_seconds: float
    synthesis_seconds: float
    agent_seconds: float

    @property
    def error_rate(self) -> float:
        """Errors per case, in [0, 1]."""
        return self.errors / self.generated

    @property
    def seconds_per_case(self) -> tuple[float, float, float]:
        """Synthesis, Z3 and agent, each per case."""
        times = (self.synthesis_seconds, self.z3_seconds, self.agent_seconds)
        a, b, c = (t / self.generated for t in times)
        return a, b, c


@dataclass(frozen=True, slots=True)
class Percentages:
    """A row of table 3, 4, 6 or 7: per cent by label; None where the paper prints NaN."""

    model: str
    framework: str
    values: Mapping[str, float] | None


def _row(
    where: tuple[int, int], counts: tuple[int, int, int], times: tuple[float, float, float]
) -> Found:
    return Found(MODELS[where[0]], FRAMEWORKS[where[1]], *counts, *times)


TABLE_2 = (
    _row((0, 0), (843, 519, 99_972), (24.96, 59.13, 3480.86)),
    _row((0, 1), (1168, 635, 133_008), (34.30, 80.49, 3431.94)),
    _row((0, 2), (327, 179, 36_694), (9.67, 22.52, 3562.24)),
    _row((1, 0), (160, 47, 19_726), (5.03, 11.73, 3594.44)),
    _row((1, 1), (144, 32, 16_253), (4.13, 9.66, 3580.41)),
    _row((1, 2), (111, 40, 12_775), (3.38, 7.75, 3594.25)),
)

_TYPES = ("timeout", "act_error", "action_lost", "order_error")
_TYPES_EXTENDED = (*_TYPES, "parameter_error")
_CAUSES = ("Probability", "Terminal", "Topic", "Structure", "Constraint")


def _table(
    labels: tuple[str, ...], models: tuple[str, ...], rows: tuple[tuple[float, ...] | None, ...]
) -> tuple[Percentages, ...]:
    places = [(m, f) for m in models for f in FRAMEWORKS]
    return tuple(
        Percentages(m, f, None if row is None else dict(zip(labels, row, strict=True)))
        for (m, f), row in zip(places, rows, strict=True)
    )


TABLE_3 = _table(_TYPES, MODELS, (
    (0, 1.03, 8.25, 90.72), (0, 0, 0.46, 99.54), (0, 0.80, 0.40, 98.80),
    (0, 1.27, 0, 98.73), (0, 1.12, 0, 98.88), (0, 1.61, 0.13, 98.26),
))  # fmt: skip
TABLE_4 = _table(_CAUSES, MODELS, (
    (19, 50, 18, 9, 4), (8, 42, 22, 15, 13), (27, 28, 15, 18, 12),
    (19, 44, 14, 18, 5), (15, 37, 23, 17, 8), (28, 30, 14, 17, 11),
))  # fmt: skip
TABLE_6 = _table(_TYPES_EXTENDED, MODELS, (
    None, (0, 7.14, 0, 28.57, 64.29), (0, 0, 0, 50, 50),
    (0, 64.44, 0, 33.33, 2.22), (0, 3.77, 2.83, 66.04, 27.36), (0, 0.74, 1.12, 64.31, 33.83),
))  # fmt: skip
TABLE_7 = _table(_CAUSES, MODELS[1:], (
    (8, 22, 11, 14, 45), (25, 32, 12, 8, 23), (23, 22, 11, 5, 39),
))  # fmt: skip

# Table 5: the five topics with most errors, and how many of the 50 topics had none.
TABLE_5: Mapping[str, Mapping[str, int]] = {
    "GPT-3.5": {"Waiter/Waitress": 6, "Computer Programmer": 5, "Physical Therapist": 4,
                "Marketing Manager": 4, "Stock Broker": 4},
    "GPT-4": {"Graphic Designer": 5, "Electrician": 4, "Human Resources Manager": 4,
              "Journalist": 4, "Video Game Designer": 4},
}  # fmt: skip
TOPICS_WITHOUT_ERROR = {"GPT-3.5": 19, "GPT-4": 16}

# Section 6.2: success falls below 20 % there (which reading of the bound is not stated).
BOUNDS = {"GPT-3.5": 4, "GPT-4": 8}


def relative_reduction() -> float:
    """Mean over the three frameworks of (GPT-3.5's error rate - GPT-4's) / GPT-3.5's.

    The paper prints 48.53 %; this is recomputed from the counts of table 2.
    """
    rates = {(row.model, row.framework): row.error_rate for row in TABLE_2}
    falls = [1 - rates[MODELS[1], f] / rates[MODELS[0], f] for f in FRAMEWORKS]
    return sum(falls) / len(falls)
