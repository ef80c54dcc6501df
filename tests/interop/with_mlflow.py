from by_hand import length, right
from mlflow.entities import Feedback
from mlflow.genai.scorers import scorer


@scorer
def counts(outputs: str) -> float:
    return length(outputs)


@scorer
def solves(outputs: str, expectations: dict[str, str]) -> Feedback:
    reference = expectations["expected_response"]
    return Feedback(value=right(outputs, reference), rationale=f"the reference is {reference}")
