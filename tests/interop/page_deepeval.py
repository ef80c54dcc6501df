"""The recipe of docs/recipes.md under `deepeval.evaluate`."""

import three_answers as three
from deepeval import evaluate
from deepeval.evaluate import AsyncConfig, DisplayConfig, ErrorConfig
from deepeval.test_case import LLMTestCase

three.write()
from in_deepeval import Utility  # noqa: E402

cases = [
    LLMTestCase(input=three.QUESTION, actual_output=said, expected_output=three.EXPECTED)
    for said in three.SAID
]
names = ("clarity", "right-answer")
done = evaluate(
    cases,
    [Utility(name) for name in names],
    async_config=AsyncConfig(run_async=False),
    display_config=DisplayConfig(show_indicator=False, print_results=False),
    error_config=ErrorConfig(ignore_errors=True),
)
results = sorted(done.test_results, key=lambda r: three.SAID.index(r.actual_output))
for result, scores in zip(results, three.SCORES, strict=True):
    for name, metric in zip(names, result.metrics_data, strict=True):
        assert metric.score == scores.get(name), metric
        assert name in scores or three.FAILURE in metric.error, metric
print("a failure is an error of its metric, without a score")
