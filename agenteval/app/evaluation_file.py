"""Evaluation files in YAML: their keys, and how they are read.

The keys of a section are the options of the commands, so nothing is declared twice: types, bounds
and help texts come from the same groups of options (`agenteval.cli.options`). Unknown keys, wrong
types and values out of bounds are refused with file, line and the nearest key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, get_args

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, create_model

from agenteval.analysis.gates import FailIf
from agenteval.app.options import ComparisonOptions
from agenteval.cli.arguments import LimitOptions
from agenteval.cli.command import command_options
from agenteval.errors import InputError
from agenteval.files import SMALL, read_text
from agenteval.planning.options import PlanTestOptions
from agenteval.readers.fields import check_name
from agenteval.readers.problems import first_problem
from agenteval.readers.strict_yaml import load_yaml
from agenteval.readers.table_files import MAPPED
from agenteval.records import Task
from agenteval.text import did_you_mean, redacted
from agenteval.traces.options import LocateOptions
from agenteval.utility.options import JudgeOptions, ProposeOptions
from agenteval.utility.perturb import OPERATORS
from agenteval.workflows.options import SessionOptions

STEPS = ("criteria", "quantify", "verify", "compare", "plan", "trace", "flow", "report")
Pathway = tuple[str, ...]  # the keys that lead to a value

_AGENTS = ("plan", "trace", "flow")  # they need no `task` and no `runs`
_JUDGED = ("task", "runs", "map", "criteria", "judge", "verify", "compare")
_SECRET = re.compile(r"(?i)api_?key|authorization|password|secret|(^|auth_?|access_?)token$")
_STRICT = ConfigDict(extra="forbid")
_RUN = {"store", "retry_failed", "dry_run", "workers", "ray"}


def _key(kind: Any, description: str, low: float | None = None, high: float | None = None) -> Any:
    """Return an optional key of a section for `create_model`."""
    bounds: dict[str, Any] = {"ge": low, "le": high}
    return Annotated[kind, Field(description=description, json_schema_extra=_plain, **bounds)], None


def _plain(schema: dict[str, Any]) -> None:
    schema.pop("default", None)  # null stands for "not given"


def _required(kind: Any, description: str) -> Any:
    return Annotated[kind, Field(description=description)], ...


def _options(
    group: type, *, names: Mapping[str, str] | None = None, without: Collection[str] = ()
) -> dict[str, Any]:
    """Return the keys for the command-line options of a group, by keyword of the function.

    `names` are the keys of fields that have another name in the file.
    """
    keys = {}
    for field, annotation in command_options(group).items():
        if field.name in without:
            continue
        kind, option = get_args(annotation)
        about = Field(
            alias=(names or {}).get(field.name),
            description=option.help or "",
            ge=option.min,
            le=option.max,
            json_schema_extra=_plain,
        )
        declared = field.metadata.get("option")
        convert = [AfterValidator(declared.convert)] if declared and declared.convert else []
        required = declared is not None and field.default is MISSING
        keys[field.name] = Annotated[kind, about, *convert], ... if required else None
    return keys


_REQUESTS: dict[str, Any] = {
    "reasoning_effort": _key(str | None, "Reasoning effort of the model: low, medium or high."),
    "max_tokens": _key(
        Annotated[int, Field(ge=1)] | Literal["none"] | None, "Maximum tokens per reply, or none."
    ),
    "parameters": _key(dict[str, Any], "Additional request parameters."),
}
_KEYS: dict[str, dict[str, Any]] = {
    "criteria": {
        "file": _key(str, "Criteria file. It is proposed and written if it is missing."),
        **_options(ProposeOptions, names={"seeds": "critics"}, without={*_RUN, "output"}),
        **_REQUESTS,
    },
    "judge": {
        **_options(JudgeOptions, without={*_RUN, "judge", "task", "mapping", "system", "limit"}),
        "judge": (
            Annotated[
                str | list[str] | None,
                Field(
                    alias="model",
                    description="The judge, as for --judge; several are a panel.",
                ),
            ],
            None,
        ),
        **_REQUESTS,
        "max_unscored": _key(float, "Exit 3 if a larger share of cells is unscored.", 0, 1),
        "score_failed_runs": _key(Literal["worst"] | None, "Count failed runs as the worst level."),
    },
    "verify": {
        "perturbations": _key(
            list[Literal[*OPERATORS]],  # type: ignore[valid-type]
            "Perturbations, see docs/verify.md.",
        ),
        "share": _key(float, "Share of a text that a perturbation changes.", 0.01, 0.9),
        "sample": _key(int, "Verify on this many runs, drawn by seed.", 1),
        "seed": _key(int, "Seed of the sample and the intervals.", 0),
        "repeats": _key(int, "How often each text is judged.", 1),
        "labels": _key(str, "Human labels of these runs."),
        "probes": _key(
            bool, "Also probe the judge with other prompts and with attacks in the text."
        ),
        "sequential": _key(bool, "Stop when every verdict is settled."),
        "gate": _key(bool, "Exit 4 (not enough data) or 5 (not trustworthy)."),
        "allow_criteria": _key(list[str], "Refuted criteria that the gate ignores."),
        "output": _key(str, "Output file of the criteria with their verdicts."),
    },
    "compare": {
        "baseline": _required(str, "System that the others are compared with."),
        **_options(
            ComparisonOptions,
            names={"planned": "sequential", "only": "criteria"},
            without={"other", "judges", "store", "scores", "task", "criteria"},
        ),
        "fail_if": _key(FailIf | None, "Gate on every criterion."),
        "fail_under": _key(dict[str, float], "Gate: fail if a mean is below a value."),
        "undecided": _key(Literal["pass", "fail"], "Whether an undecided gate fails or passes."),
    },
    "limits": _options(LimitOptions),
    "plan": {
        "suite": _required(str, "File with the planning tests."),
        **_options(PlanTestOptions, without=_RUN),
    },
    "trace": {
        "traces": _required(str, "File or folder with the traces."),
        **_options(LocateOptions, without=_RUN),
    },
    "flow": {
        "roles": _key(list[str], "Names or folders of roles. Default: all."),
        **_options(SessionOptions, without=_RUN),
    },
}
_Text = Annotated[str, Field(min_length=1)]
_FIELD: Any = Literal[*MAPPED]
_MAP: Any = Annotated[dict[_FIELD, str], Field(alias="map")]


def _model() -> type[BaseModel]:
    """Return the model of a file. Only sections without required keys may be empty."""
    sections: dict[str, Any] = {}
    for name, keys in _KEYS.items():
        section: Any = create_model(name, __config__=_STRICT, **keys)
        optional = not any(default is ... for _, default in keys.values())
        sections[name] = (section | None if optional else section, None)
    return create_model(
        "agenteval evaluation",
        __config__=_STRICT,
        task=(_Text | dict[str, Any], None),
        runs=(_Text | Annotated[dict[str, _Text], Field(min_length=1)], None),
        mapping=(_MAP, None),
        report=(_Text, None),
        store=(_Text, None),
        **sections,
    )


_Evaluation = _model()


@dataclass(frozen=True)
class EvaluationFile:
    """A checked evaluation. Sections are keywords of the step's function; None without a section.

    `runs` are files by system, under "" for a single file whose runs name their systems.
    """

    path: Path
    task: str | Task | None
    runs: Mapping[str, str]
    criteria: Mapping[str, Any]
    judge: Mapping[str, Any]
    limits: Mapping[str, Any]
    verify: Mapping[str, Any] | None = None
    compare: Mapping[str, Any] | None = None
    plan: Mapping[str, Any] | None = None
    trace: Mapping[str, Any] | None = None
    flow: Mapping[str, Any] | None = None
    mapping: Mapping[str, str] | None = None
    report: str | None = None
    store: str | None = None


def read_evaluation(path: str | Path, overrides: Iterable[str] = ()) -> EvaluationFile:
    """Read and check an evaluation file; `overrides` are texts such as "judge.repeats=3".

    Raises InputError with file, line and what to do.
    """
    path = Path(path)
    data, lines = _load(read_text(path, SMALL), str(path))
    for override in overrides:
        _override(data, lines, override)
    filled = {k: {} if v is None and k in _KEYS else v for k, v in data.items()}
    try:  # as JSON, where 1 is not true and a text may be a path
        values = _fields(_Evaluation.model_validate_json(json.dumps(filled), strict=True))
        sections: dict[str, Any] = {
            k: _fields(v) if isinstance(v, BaseModel) else v for k, v in values.items()
        }
        runs: Any = sections.pop("runs", {})
        sections["task"] = _task(sections.get("task"))
        sections["runs"] = {"": runs} if isinstance(runs, str) else runs
        always = {name: sections.pop(name, {}) for name in ("criteria", "judge", "limits")}
        file = EvaluationFile(path=path, **always, **sections)
        _check(file, data)
    except ValidationError as error:
        problem = _problem(error, lines)
    except _Problem as error:
        problem = error
    else:
        return file
    place = next((lines[p] for p in _above(problem.pathway) if p in lines), 1)
    raise InputError(str(problem), place if isinstance(place, str) else f"{path}:{place}")


class _Problem(Exception):
    """A problem with a key of the file."""

    def __init__(self, pathway: Pathway, problem: str) -> None:
        super().__init__(problem)
        self.pathway = pathway


def _task(task: str | dict[str, Any] | None) -> str | Task | None:
    if not isinstance(task, dict):
        return task
    try:
        checked = Task.model_validate_json(json.dumps(task))
    except ValidationError as error:
        raise _Problem(("task",), f"task: {first_problem(error)}") from None
    if not re.fullmatch(r"\w[\w .-]*", checked.name):  # it names files
        raise _Problem(("task", "name"), "task.name: use letters, digits, spaces and . - _")
    return checked


def _check(file: EvaluationFile, data: Mapping[str, Any]) -> None:
    """Check what depends on several keys. Raises _Problem."""
    if not any(name in data for name in _AGENTS) or any(name in data for name in _JUDGED):
        if not file.runs:
            raise _Problem((), "`runs` is missing: name the file, or a file for each system")
        if not file.task:
            raise _Problem((), "`task` is missing: name a task, or give name and description")
    for system in file.runs:
        if system or len(file.runs) > 1:
            try:
                check_name(system, "")
            except InputError as error:
                raise _Problem(("runs", system), str(error)) from None
    baseline = (file.compare or {}).get("baseline")
    if baseline is not None and "" not in file.runs and baseline not in file.runs:
        names = ", ".join(file.runs)
        raise _Problem(("compare", "baseline"), f"no system {baseline!r} in `runs`; known: {names}")
    if ("price_in" in file.limits) != ("price_out" in file.limits):
        raise _Problem(("limits",), "limits: give `price_in` and `price_out`, or neither")


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of evaluation files, for editors."""
    agents = {"anyOf": [{"required": [name]} for name in _AGENTS]}
    judged = ({"required": [name]} for name in _JUDGED)
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        **_Evaluation.model_json_schema(),
        "if": {"anyOf": [{"not": agents}, *judged]},
        "then": {"required": ["task", "runs"]},
    }


def _fields(model: BaseModel) -> dict[str, Any]:
    """Return the values that the file has, by keyword."""
    names = type(model).model_fields
    return {name: getattr(model, name) for name in names if name in model.model_fields_set}


def _above(pathway: Pathway) -> list[Pathway]:
    """Return the pathway and those above it, the longest first."""
    return [pathway[:end] for end in range(len(pathway), 0, -1)]


def _problem(error: ValidationError, lines: Mapping[Pathway, int | str]) -> _Problem:
    """Return the first problem."""
    first = error.errors()[0]
    full = tuple(map(str, first["loc"]))
    if first["type"] == "extra_forbidden":
        keys = _Evaluation.model_json_schema()
        if len(full) > 1:
            keys = keys["$defs"][full[0]]
        allowed = sorted(keys["properties"])
        hint = did_you_mean(full[-1], allowed, cutoff=0.5) or f"known: {', '.join(allowed)}"
        if _SECRET.search(full[-1]):
            hint = "secrets are read from the environment, for example AGENTEVAL_API_KEY"
        return _Problem(full, f"unknown key {'.'.join(full)!r}; {hint}")
    if first["type"] == "missing":
        return _Problem(full, f"`{'.'.join(full)}` is missing")
    pathway = next((p for p in _above(full) if p in lines), full)  # without members of unions
    problem = first_problem(error).removeprefix(".".join(full))
    return _Problem(pathway, ".".join(pathway) + problem)


def _load(text: str, file: str) -> tuple[dict[str, Any], dict[Pathway, int | str]]:
    """Return the mapping of a file, and the line of each key. Raises InputError."""
    data = load_yaml(text, file)
    if not isinstance(data, dict):
        raise InputError("an evaluation has keys such as task, runs and judge", f"{file}:1")
    lines: dict[Pathway, int | str] = {}
    for pathway, key, value in _nodes(yaml.compose(text, yaml.SafeLoader)):
        lines[pathway] = key.start_mark.line + 1
        shown = re.sub(r"^postgres(ql)?://[^/@:]+@", "", value)  # a user name alone is not a secret
        secret_key = "parameters" in pathway and _SECRET.search(pathway[-1])
        if secret_key or (pathway[0] != "task" and redacted(shown) != shown):
            raise InputError(
                "this looks like a secret; remove it and set an environment variable, such as "
                "AGENTEVAL_API_KEY, AGENTEVAL_HEADERS or AGENTEVAL_STORE",
                f"{file}:{lines[pathway]}",
            )
    return data, lines


def _nodes(
    node: yaml.Node | None, pathway: Pathway = ()
) -> Iterator[tuple[Pathway, yaml.Node, str]]:
    """Yield the pathway, key and text (of a scalar, else "") of each value; items of lists have
    their number."""
    children: list[tuple[yaml.Node, str, yaml.Node]] = []
    if isinstance(node, yaml.MappingNode):
        children = [(key, key.value, value) for key, value in node.value]
    elif isinstance(node, yaml.SequenceNode):
        children = [(item, str(n), item) for n, item in enumerate(node.value)]
    for key, name, value in children:
        yield (*pathway, name), key, value.value if isinstance(value, yaml.ScalarNode) else ""
        yield from _nodes(value, (*pathway, name))


def _override(data: dict[str, Any], lines: dict[Pathway, int | str], text: str) -> None:
    """Set a value from "section.key=value", where the value is YAML."""
    name, sign, value = text.partition("=")
    *parents, last = name.strip().split(".")
    if not sign or not last or not all(parents) or len(parents) > 2:
        raise InputError(f"{text!r}: write KEY=VALUE, for example judge.repeats=3", "--set")
    place = data
    for parent in parents:
        if place.get(parent) is None:
            place[parent] = {}
        place = place[parent]
        if not isinstance(place, dict):
            raise InputError(f"{text!r}: {parent} has no keys", "--set")
    place[last] = _load(f"value: {value}", "--set")[0]["value"]
    lines[*parents, last] = f"--set {name.strip()}"
