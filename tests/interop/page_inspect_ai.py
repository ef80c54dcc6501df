"""The task of docs/logs.md with `agenteval/quantify`, and an old log scored by name."""

import json
import math
import subprocess
import sys
from pathlib import Path

import inspect_ai
import three_answers as three
from inspect_ai.log import read_eval_log
from inspect_ai.model import ChatMessageAssistant, ModelOutput
from inspect_ai.scorer import Score
from inspect_ai.solver import TaskState, solver

three.write()
from sums import sums  # noqa: E402

from agenteval.plugins.inspect_scorer import quantify  # noqa: E402


@solver
def adds():
    """In the place of the model: wrong on s5, odd on s3."""

    async def solve(state: TaskState, generate: object) -> TaskState:
        number = int(str(state.sample_id)[1:])
        said = f"{'?! ' if number == 3 else ''}It is {2 * number + (number == 5)}"
        state.output = ModelOutput.from_content("mockllm/model", said)
        state.messages.append(ChatMessageAssistant(content=said))
        return state

    return solve


task = sums()
assert "s5" in {sample.id for sample in task.dataset}
task.solver = adds()
task.scorer = [
    quantify(
        criteria="criteria.json",
        judge="python:judges:judge",
        store="inspect.db",
        with_reference=True,
    )
]
(log,) = inspect_ai.eval(task, model="mockllm/model", epochs=2, display="none", log_dir="logs")
assert log.status == "success", log.error
means = {
    s.name: (s.metrics["mean"].value, s.scored_samples, s.unscored_samples)
    for s in log.results.scores
}
assert means["clarity"] == (1.0, 5, 1), means
assert math.isclose(means["right-answer"][0], 5 / 6), means
assert means["right-answer"][1:] == (6, 0), means
for sample in log.samples:
    score: Score = sample.scores["quantify"]
    assert math.isnan(score.value["clarity"]) == (sample.id == "s3"), score
    assert (three.FAILURE in score.explanation) == (sample.id == "s3"), score
    assert score.reason == ("grader_failed" if sample.id == "s3" else None), score

Path("broken.py").write_text("def judge(run, criterion): raise ValueError('a bug')\n")
options = {"criteria": "criteria.json", "judge": "python:broken:judge", "store": "broken.db"}
subprocess.run(
    [
        Path(sys.executable).with_name("inspect"),
        "score",
        log.location,
        "--scorer",
        "agenteval/quantify",
        *(word for o in options.items() for word in ("-S", "=".join(o))),
        "--action",
        "overwrite",
        "--overwrite",
        "--display",
        "none",
    ],
    check=True,
)
again = read_eval_log(log.location)
assert all(math.isnan(s.scores["quantify"].value) for s in again.samples)
assert all("a bug" in s.scores["quantify"].explanation for s in again.samples)
print(json.dumps(means))
