from by_hand import length, right
from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase


class Length(BaseMetric):
    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold

    def measure(self, test_case: LLMTestCase) -> float:
        self.score = length(test_case.actual_output)
        self.success = self.score >= self.threshold
        return self.score

    async def a_measure(self, test_case: LLMTestCase) -> float:
        return self.measure(test_case)

    def is_successful(self) -> bool:
        return self.success


class Right(Length):
    def measure(self, test_case: LLMTestCase) -> float:
        self.score = float(right(test_case.actual_output, test_case.expected_output))
        self.reason = f"the reference is {test_case.expected_output}"
        return self.score


counts, solves = Length(), Right()
