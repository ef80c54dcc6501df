from by_hand import length, right
from inspect_ai.scorer import CORRECT, INCORRECT, Score, Scorer, Target, accuracy, mean, scorer
from inspect_ai.solver import TaskState


@scorer(metrics=[mean()])
def counts() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        return Score(value=length(state.output.completion))

    return score


@scorer(metrics=[accuracy()])
def solves() -> Scorer:
    async def score(state: TaskState, target: Target) -> Score:
        found = right(state.messages[-1].text, target.text)
        return Score(
            value=CORRECT if found else INCORRECT, explanation=f"the target is {target.text}"
        )

    return score
