"""Do the predicted calls come in the order of the gold calls?

Precision, recall and F1 over sets of calls do not see order. Two measures that do:

- the longest common subsequence of the tool names, as precision, recall and F1. WorFBench (Qiao et
  al., arXiv 2410.07869, section 3.3) scores chains of a workflow by the longest increasing
  subsequence of the predicted nodes that were matched to gold nodes by the similarity of their
  texts. Tools have names, so nodes match when the names are equal; the best matching then makes the
  longest increasing subsequence the longest common subsequence.
- Kendall's tau (Kendall 1938, Biometrika 30) of the positions of matched pairs, the i-th predicted
  call of a tool being matched with the i-th gold call of it: pairs in the same order less pairs in
  the reverse order, over all pairs. There are no ties, so tau-a and tau-b are the same.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Sequence
from itertools import combinations

from pydantic import Field

from agenteval.records import Record


class OrderScore(Record):
    """Order-aware scores of one session; None where there is nothing to compare.

    `common` is the length of the longest common subsequence; `precision` = common / predicted
    (None without predicted calls), `recall` = common / gold (None without gold calls), `f1` = 2
    common / (predicted + gold) (None without either). `tau` is in [-1, 1], None with fewer than
    two of the `matched` pairs.
    """

    common: int = Field(ge=0)
    matched: int = Field(ge=0)
    precision: float | None = Field(default=None, ge=0, le=1)
    recall: float | None = Field(default=None, ge=0, le=1)
    f1: float | None = Field(default=None, ge=0, le=1)
    tau: float | None = Field(default=None, ge=-1, le=1)


def order_score(predicted: Sequence[str], gold: Sequence[str]) -> OrderScore:
    """Scores of the names of predicted tools against those of gold, both in their order.

    Time is the product of the two lengths.
    """
    common = longest_common(predicted, gold)
    pairs = _matched(predicted, gold)
    return OrderScore(
        common=common,
        matched=len(pairs),
        precision=common / len(predicted) if predicted else None,
        recall=common / len(gold) if gold else None,
        f1=2 * common / (len(predicted) + len(gold)) if predicted or gold else None,
        tau=_tau(pairs),
    )


def longest_common(left: Sequence[str], right: Sequence[str]) -> int:
    """Length of the longest common subsequence (Wagner and Fischer 1974, by rows)."""
    row = [0] * (len(right) + 1)
    for a in left:
        diagonal = 0
        for at, b in enumerate(right, 1):
            above = row[at]
            row[at] = diagonal + 1 if a == b else max(above, row[at - 1])
            diagonal = above
    return row[-1]


def _matched(predicted: Sequence[str], gold: Sequence[str]) -> list[int]:
    """Positions in `predicted` of the matched gold calls, in the order of gold."""
    where: defaultdict[str, deque[int]] = defaultdict(deque)
    for at, name in enumerate(predicted):
        where[name].append(at)
    return [where[name].popleft() for name in gold if where[name]]


def _tau(positions: Sequence[int]) -> float | None:
    if len(positions) < 2:
        return None
    signs = [1 if a < b else -1 for a, b in combinations(positions, 2)]
    return sum(signs) / len(signs)
