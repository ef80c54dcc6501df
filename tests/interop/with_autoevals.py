from typing import Any

from autoevals import Score, Scorer
from by_hand import length, right


class Length(Scorer):
    def _run_eval_sync(self, output: Any, expected: Any = None, **more: Any) -> Score:
        return Score(name="Length", score=length(output))


class Right(Scorer):
    def _run_eval_sync(self, output: Any, expected: Any = None, **more: Any) -> Score:
        return Score(name="Right", score=float(right(output, expected)))


counts, solves = Length(), Right()
