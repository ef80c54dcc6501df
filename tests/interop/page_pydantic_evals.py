"""The recipe of docs/recipes.md under `Dataset.evaluate_sync`."""

import three_answers as three
from pydantic_evals import Case, Dataset

three.write()
from in_pydantic_evals import Utility  # noqa: E402

answers = iter(three.SAID)
cases = [Case(name=said, inputs=three.QUESTION, expected_output="4") for said in three.SAID]
dataset = Dataset(
    name="sums", cases=cases, evaluators=[Utility("clarity"), Utility("right-answer")]
)
done = dataset.evaluate_sync(lambda question: next(answers), progress=False, max_concurrency=1)
said = [{name: score.value for name, score in case.scores.items()} for case in done.cases]
assert said == three.SCORES, said
failures = [failure.error_message for case in done.cases for failure in case.evaluator_failures]
assert len(failures) == 1, failures
assert three.FAILURE in failures[0], failures
print("a failure is an EvaluatorFailure, without a score")
