"""The recipe of docs/recipes.md under `mlflow.genai.evaluate`."""

import mlflow
import three_answers as three

three.write()
from in_mlflow import Utility  # noqa: E402

data = [
    {
        "inputs": {"question": three.QUESTION},
        "outputs": said,
        "expectations": {"expected_response": three.EXPECTED},
    }
    for said in three.SAID
]
mlflow.set_tracking_uri("sqlite:///mlflow.db")
done = mlflow.genai.evaluate(data=data, scorers=[Utility()])
assert done.metrics == {"clarity/mean": 1.0, "right-answer/mean": 2 / 3}, done.metrics
print("means leave the failure out")
