from dataclasses import dataclass

from by_hand import length, right
from pydantic_evals.evaluators import EvaluationReason, Evaluator, EvaluatorContext


@dataclass
class Length(Evaluator):
    def evaluate(self, ctx: EvaluatorContext) -> float:
        return length(ctx.output)


@dataclass
class Right(Evaluator):
    async def evaluate(self, ctx: EvaluatorContext) -> EvaluationReason:
        return EvaluationReason(right(ctx.output, ctx.expected_output), "by hand")


counts, solves = Length(), Right()
