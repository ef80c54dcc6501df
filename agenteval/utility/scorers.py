"""Use scorers of other frameworks as judges.

A framework is recognised by the module of a type, without importing it; its module in
`agenteval.plugins` calls its scorers and converts their results.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from importlib import import_module, metadata
from typing import Any, NoReturn

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.records import Criterion, Run, content_hash, slug

FRAMEWORKS = frozenset(
    ("autoevals", "deepeval", "inspect_ai", "mlflow", "openevals", "pydantic_evals")
)
NEEDS_VERSION = "give version=, any text that changes when the judge does"


@dataclass(frozen=True, slots=True)
class ScorerGrade:
    """One result of a scorer: a level or a number in [0, 1], None or NaN without a result.

    `name` is empty if the framework provides none; `error` is an error caught by the framework.
    """

    value: Any
    explanation: str | None = None
    name: str = ""
    error: str | None = None


@dataclass(frozen=True)
class Scorer:
    """A scorer of another framework: `score(run)` returns its results.

    The run has the problem as `input`, the final answer as `output`, and `reference` unless it is
    withheld. The scorer is identified by `definition`, its function or class, and `settings`, the
    values with which it was created.
    """

    name: str
    framework: str
    score: Callable[[Run], Awaitable[Sequence[ScorerGrade]]]
    definition: Any
    settings: Mapping[str, Any]

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Return parameters that identify the scorer, hashed because settings may contain keys.

        Raises InputError for objects without source text, and for settings that are neither plain
        values nor functions.
        """
        where = f"judge {self.name}"
        return {
            "code": content_hash(_described(self.definition, where, frozenset())),
            "settings": content_hash(_described(self.settings, where, frozenset())),
        }

    @property
    def version(self) -> str | None:
        """The installed version of the framework; None if unknown."""
        try:
            return metadata.version(self.framework)
        except metadata.PackageNotFoundError:
            return getattr(sys.modules[self.framework], "__version__", None)


class Withheld:
    """Placeholder for a value withheld from a scorer: any use raises LookupError, so that a
    comparison with it fails instead of giving a score."""

    def __init__(self, what: str) -> None:
        self._what = what

    def _refuse(self, *_: object) -> NoReturn:
        raise LookupError(f"{self._what} is not shown to the judge")

    __str__ = __repr__ = __eq__ = __ne__ = __hash__ = __bool__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __len__ = __iter__ = __getitem__ = _refuse
    __float__ = __contains__ = __getattr__ = _refuse

    def __deepcopy__(self, _: object) -> Withheld:
        return self


def reference_of(run: Run) -> Any:
    """Return the reference of a run, or the placeholder for a withheld one."""
    return Withheld("the reference") if run.reference is None else run.reference


def scorer_of(judge: object) -> Scorer | None:
    """Convert an object of another framework to a scorer; None for any other object.

    Raises InputError for a class, and for an object that cannot score runs.
    """
    kinds = judge.__mro__ if isinstance(judge, type) else type(judge).__mro__
    # inspect_ai marks the functions created by its decorator.
    for source in (*kinds, judge, type(getattr(judge, "__registry_info__", None))):
        framework = str(getattr(source, "__module__", "")).partition(".")[0]
        if framework not in FRAMEWORKS:
            continue
        if isinstance(judge, type):
            raise InputError(f"{judge.__qualname__} is a class; give an instance of it", "judge")
        scorer: Scorer = import_module(f"agenteval.plugins.{framework}").adapt(judge)
        return scorer
    return None


def refuse(judge: object, wanted: str) -> NoReturn:
    """Raise InputError for a framework's object that is not a `wanted`."""
    name = getattr(judge, "__qualname__", type(judge).__qualname__)
    raise InputError(f"{name} cannot judge runs: it is no {wanted}", "judge")


def grade_for(grades: Sequence[ScorerGrade], criterion: Criterion) -> ScorerGrade:
    """Return the only result, or the one with the criterion's name; otherwise a result without a
    value."""
    if len(grades) == 1:
        return grades[0]
    criterion_names = (criterion.id, slug(criterion.name))
    matching = [grade for grade in grades if slug(grade.name) in criterion_names]
    if len(matching) == 1:
        return matching[0]
    names = ", ".join(repr(grade.name) for grade in grades)
    return ScorerGrade(None, f"one of {names} for {criterion.name!r}" if names else None)


def _described(value: Any, where: str, seen: Set[int]) -> JsonValue:
    """Return plain values unchanged, and source text (with closure variables) for functions and
    classes. `seen` has the enclosing functions, to stop at cycles."""
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, Mapping):
        return {str(key): _described(item, where, seen) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_described(item, where, seen) for item in value]
    if not (inspect.isfunction(value) or isinstance(value, type)):
        what = f"a setting of type {type(value).__qualname__} has no source text"
        raise InputError(f"{what}: {NEEDS_VERSION}", where)
    if id(value) in seen:
        return None
    # A nested function also depends on the code of its enclosing function.
    outermost = value.__qualname__.partition(".<locals>")[0]
    maker = getattr(sys.modules.get(value.__module__), outermost, value)
    made_by = inspect.unwrap(maker) if callable(maker) else value
    try:
        texts = [inspect.getsource(made_by), inspect.getsource(value)]
    except (OSError, TypeError) as error:
        raise InputError(f"its source text cannot be read: {NEEDS_VERSION}", where) from error
    if isinstance(value, type):
        return [*texts]
    closed_over = inspect.getclosurevars(value).nonlocals
    return [*texts, _described(closed_over, where, seen | {id(value)})]
