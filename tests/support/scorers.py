"""Stand-ins of other frameworks: base classes with the module paths and shapes of the real ones.

The real packages are used by `make test-interop`. `modules()` are what `import` has to find;
`MAKERS` make, for each framework, the scorer that a team would write around `grade(answer,
reference) -> value`, with a setting of its own.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import Any

Grading = Callable[[str, Any], Any]


class BaseMetric:
    score = reason = error = None
    async_mode = True
    skipped = False

    def __init__(self, threshold: float = 0.5) -> None:
        self.threshold = threshold


@dataclass
class LLMTestCase:
    input: str
    actual_output: str
    expected_output: str | None = None


class MlflowScorer:
    is_session_level_scorer = False

    def __init__(self, name: str, function: Any) -> None:
        self.name, self._original_func = name, function

    def model_dump(self) -> dict[str, Any]:
        return {"name": self.name}

    def run(self, **given: Any) -> Any:
        names = inspect.signature(self._original_func).parameters
        return self._original_func(**{key: given[key] for key in names})


@dataclass
class Feedback:
    value: Any = None
    rationale: str | None = None
    name: str = "feedback"
    error: Any = None


class Target:
    def __init__(self, target: str) -> None:
        self.target: Any = [target]

    @property
    def text(self) -> str:
        return "".join(self.target)


class RegistryInfo(SimpleNamespace):
    pass


class InspectScore(SimpleNamespace):
    """The fields that are given, and no value where it was left out."""

    @classmethod
    def unscored(cls, **given: Any) -> InspectScore:
        return cls(value=float("nan"), **given)


def inspect_scorer(factory: Any) -> Any:
    """What `@scorer(metrics=[...])` makes of a function."""

    @functools.wraps(factory)
    def made(*args: Any, **settings: Any) -> Any:
        score = factory(*args, **settings)
        score.__registry_info__ = RegistryInfo(type="scorer", name=factory.__name__)
        score.__registry_params__ = settings
        return score

    made.__registry_info__ = RegistryInfo(type="scorer", name=factory.__name__)  # type: ignore[attr-defined]
    return made


class Evaluator:
    def get_default_evaluation_name(self) -> str:
        return type(self).__name__

    async def evaluate_async(self, context: Any) -> Any:
        return self.evaluate(context)  # type: ignore[attr-defined]


@dataclass
class EvaluationReason:
    value: Any
    reason: str | None = None


class AutoevalsScorer:
    async def eval_async(self, output: Any, expected: Any = None, **more: Any) -> Any:
        return self._run_eval_sync(output, expected, **more)  # type: ignore[attr-defined]


_HOMES: dict[str, dict[str, Any]] = {
    "deepeval.metrics": {"BaseMetric": BaseMetric},
    "deepeval.test_case": {"LLMTestCase": LLMTestCase},
    "mlflow.exceptions": {"MlflowException": ValueError},
    "mlflow.genai.scorers": {"Scorer": MlflowScorer},
    "mlflow.entities": {"Feedback": Feedback},
    "inspect_ai._util.registry": {"RegistryInfo": RegistryInfo},
    "inspect_ai.model": {
        "ChatMessageUser": SimpleNamespace,
        "ChatMessageAssistant": SimpleNamespace,
        "ModelName": str,
        "ModelOutput": SimpleNamespace(
            from_content=lambda _, text: SimpleNamespace(completion=text)
        ),
    },
    "inspect_ai.scorer": {
        "Target": Target,
        "Score": InspectScore,
        "Scorer": object,
        "mean": lambda: "mean",
        "stderr": lambda: "stderr",
        "scorer": lambda metrics: inspect_scorer,
    },
    "inspect_ai.solver": {"TaskState": SimpleNamespace},
    "pydantic_evals.evaluators": {
        "EvaluationReason": EvaluationReason,
        "Evaluator": Evaluator,
        "EvaluatorContext": SimpleNamespace,
    },
    "pydantic_evals.otel": {"SpanTreeRecordingError": ValueError},
    "autoevals": {"Scorer": AutoevalsScorer},
    "openevals.exact": {},
}
for _home, _named in _HOMES.items():
    for _thing in _named.values():
        if getattr(_thing, "__module__", "") == __name__:
            _thing.__module__ = _home


def modules() -> dict[str, ModuleType]:
    """By name, with their parents."""
    made: dict[str, ModuleType] = {}
    for home, named in _HOMES.items():
        parts = home.split(".")
        for end in range(1, len(parts) + 1):
            made.setdefault(".".join(parts[:end]), ModuleType(".".join(parts[:end])))
        vars(made[home]).update(named)
    return made


def deepeval_metric(grade: Grading, setting: float = 0.5) -> Any:
    class Metric(BaseMetric):
        async def a_measure(self, test_case: LLMTestCase) -> Any:
            self.score = grade(test_case.actual_output, test_case.expected_output)
            self.reason = "so it is"
            return self.score

    return Metric(setting)


def mlflow_scorer(grade: Grading, setting: float = 0.5) -> Any:
    def scored(outputs: str, expectations: dict[str, str] | None) -> Feedback:
        reference = expectations and expectations["expected_response"]
        return Feedback(grade(outputs, reference), "so it is", f"scored {setting}")

    return MlflowScorer("scored", scored)


@inspect_scorer
def of_inspect(grade: Grading = lambda answer, reference: 1.0, setting: float = 0.5) -> Any:
    async def score(state: Any, target: Any) -> Any:
        value = grade(state.output.completion, target)
        return SimpleNamespace(value=value, explanation=f"{'so it is':{int(setting)}}")

    return score


def inspect_ai_scorer(grade: Grading, setting: float = 0.5) -> Any:
    return of_inspect(grade=grade, setting=setting)


def pydantic_evaluator(grade: Grading, setting: float = 0.5) -> Any:
    @dataclass
    class Graded(Evaluator):
        setting: float

        def evaluate(self, ctx: Any) -> EvaluationReason:
            return EvaluationReason(grade(ctx.output, ctx.expected_output), "so it is")

    return Graded(setting)


def autoevals_scorer(grade: Grading, setting: float = 0.5) -> Any:
    class Graded(AutoevalsScorer):
        def __init__(self) -> None:
            self.setting = setting

        def _run_eval_sync(self, output: Any, expected: Any = None, **more: Any) -> Any:
            why = {"rationale": "so it is"}
            return SimpleNamespace(
                name="Graded", score=grade(output, expected), metadata=why, error=None
            )

    return Graded()


def openevals_evaluator(grade: Grading, setting: float = 0.5) -> Any:
    def graded(*, outputs: Any, reference_outputs: Any = None, **more: Any) -> dict[str, Any]:
        comment = "so it is" if setting else None
        return {"key": "graded", "score": grade(outputs, reference_outputs), "comment": comment}

    graded.__module__ = "openevals.exact"
    return graded


MAKERS: dict[str, Callable[..., Any]] = {
    "autoevals": autoevals_scorer,
    "deepeval": deepeval_metric,
    "inspect_ai": inspect_ai_scorer,
    "mlflow": mlflow_scorer,
    "openevals": openevals_evaluator,
    "pydantic_evals": pydantic_evaluator,
}
