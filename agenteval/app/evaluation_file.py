"""An evaluation as a YAML file: which keys it may have, and how it is read.

The keys of a section are the options of the commands, so nothing is declared twice: types, bounds
and help texts come from the same groups of options (`agenteval.cli.options`). Unknown keys, wrong
types and values out of bounds are refused with file, line and the nearest key.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NoReturn, get_args

import yaml
from pydantic import TypeAdapter, ValidationError

from agenteval.analysis.gates import FailIf
from agenteval.app.options import ComparisonOptions
from agenteval.cli.arguments import LimitOptions
from agenteval.cli.command import command_options
from agenteval.errors import InputError
from agenteval.files import SMALL, read_text
from agenteval.readers.problems import first_problem
from agenteval.records import Task
from agenteval.utility.options import JudgeOptions, ProposeOptions

STEPS = ("criteria", "quantify", "verify", "compare", "report")
Pathway = tuple[str, ...]  # the keys that lead to a value


@dataclass(frozen=True)
class Key:
    """A key of a section: the keyword that it becomes, its type, bounds and help text."""

    keyword: str
    type: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the value."""
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        known = {name: bound for name, bound in bounds.items() if bound is not None}
        return {**TypeAdapter(self.type).json_schema(), "description": self.help, **known}


def keys_of(
    *groups: type, names: Mapping[str, str] | None = None, without: Collection[str] = ()
) -> dict[str, Key]:
    """Return the keys for the command-line options of some groups, under their own or other names.

    `names` maps fields to keys; fields in `without` are left out.
    """
    keys = {}
    for group in groups:
        for field, annotation in command_options(group).items():
            if field.name not in without:
                kind, option = get_args(annotation)
                name = (names or {}).get(field.name, field.name)
                keys[name] = Key(field.name, kind, option.help or "", option.min, option.max)
    return keys


_RUN = {"store", "retry_failed", "dry_run", "workers", "ray"}
_REQUESTS = {
    "reasoning_effort": Key(
        "reasoning_effort", str | None, "How long the model thinks: low, medium, high."
    ),
    "max_tokens": Key(
        "max_tokens", int | Literal["none"] | None, "Most tokens of one reply, or none."
    ),
    "parameters": Key("parameters", dict[str, Any], "Further parameters of every request."),
}
SECTIONS: dict[str, dict[str, Key]] = {
    "criteria": {
        "file": Key("file", str, "Criteria file. It is proposed and written if it is missing."),
        **keys_of(
            ProposeOptions,
            names={"seeds": "critics"},
            without={*_RUN, "output"},
        ),
        **_REQUESTS,
    },
    "judge": {
        **keys_of(
            JudgeOptions,
            names={"judge": "model"},
            without={*_RUN, "task", "mapping", "system", "limit"},
        ),
        **_REQUESTS,
        "max_unscored": Key(
            "max_unscored", float, "Exit 3 if a larger share of cells is unscored.", 0, 1
        ),
        "score_failed_runs": Key(
            "score_failed_runs", Literal["worst"] | None, "Count failed runs as the worst level."
        ),
    },
    "verify": {
        "perturbations": Key("perturbations", list[str], "Perturbations, see docs/verify.md."),
        "share": Key("share", float, "Share of a text that a perturbation changes.", 0.01, 0.9),
        "sample": Key("sample", int, "Verify on this many runs, drawn by seed.", 1),
        "seed": Key("seed", int, "Seed of the sample, perturbations and intervals.", 0),
        "repeats": Key("repeats", int, "How often each text is judged.", 1),
        "labels": Key("labels", str, "Labels of these runs by people."),
        "probes": Key("probes", bool, "Also ask in other ways and with attacks in the text."),
        "sequential": Key("sequential", bool, "Stop when no verdict is open."),
        "gate": Key("gate", bool, "Exit 4 (not enough data) or 5 (not trustworthy)."),
        "allow_criteria": Key("allow_criteria", list[str], "Refuted criteria that may pass."),
        "output": Key("output", str, "Where the criteria with their verdicts are written."),
    },
    "compare": {
        "baseline": Key("baseline", str, "System that the others are compared with."),
        **keys_of(
            ComparisonOptions,
            names={"planned": "sequential", "only": "criteria"},
            without={"other", "judges", "store", "scores", "task", "criteria"},
        ),
        "fail_if": Key("fail_if", FailIf | None, "Gate on every criterion."),
        "fail_under": Key("fail_under", dict[str, float], "Gate: a mean is not below a value."),
        "undecided": Key("undecided", Literal["pass", "fail"], "What undecided gates do."),
    },
    "limits": keys_of(LimitOptions),
}
_TOP: dict[str, Any] = {
    "task": str | dict[str, Any],
    "runs": str | dict[str, str],
    "map": dict[str, str],
    "report": str,
    "store": str,
}
_SECRET = re.compile(r"(?i)api_?key|authorization|password|secret|token$")


@dataclass(frozen=True)
class EvaluationFile:
    """A checked evaluation. Sections are keywords of the step's function; None without a section.

    `runs` are files by system, under "" for a single file whose runs name their systems.
    """

    path: Path
    task: str | Task
    runs: Mapping[str, str]
    mapping: Mapping[str, str] | None
    criteria: Mapping[str, Any]
    judge: Mapping[str, Any]
    verify: Mapping[str, Any] | None
    compare: Mapping[str, Any] | None
    limits: Mapping[str, Any]
    report: str | None
    store: str | None


def read_evaluation(path: str | Path, overrides: Iterable[str] = ()) -> EvaluationFile:
    """Read and check an evaluation file; `overrides` are texts such as "judge.repeats=3".

    Raises InputError with file, line and what to do.
    """
    path = Path(path)
    data, lines = _load(read_text(path, SMALL), str(path))
    for override in overrides:
        _override(data, lines, override)
    check = _Checker(str(path), lines)
    for name in data:
        if name not in _TOP and name not in SECTIONS:
            check.refuse_unknown((name,), [*_TOP, *SECTIONS])
    top = {k: check.value((k,), data[k], _TOP[k]) for k in _TOP if k in data}
    if "runs" not in top:
        check.refuse((), "`runs` is missing: name the file of runs, or one file for each system")
    sections = {k: check.section(k, data[k]) for k in SECTIONS if data.get(k) is not None}
    if "task" not in top:
        check.refuse((), "`task` is missing: name a task, or give its name and description")
    task = top["task"]
    if isinstance(task, dict):
        try:
            task = Task.model_validate(task)
        except ValidationError as error:
            check.refuse(("task",), first_problem(error))
    runs = {"": top["runs"]} if isinstance(top["runs"], str) else top["runs"]
    baseline = sections.get("compare", {}).get("baseline")
    if baseline is not None and "" not in runs and baseline not in runs:
        known = ", ".join(runs)
        check.refuse(("compare", "baseline"), f"no system {baseline!r} in `runs`; known: {known}")
    if "compare" in sections and baseline is None:
        check.refuse(("compare",), "`baseline` is missing: name the system to compare with")
    return EvaluationFile(
        path=path,
        task=task,
        runs=runs,
        mapping=top.get("map"),
        criteria=sections.get("criteria", {}),
        judge=sections.get("judge", {}),
        verify=sections.get("verify", {} if "verify" in data else None),
        compare=sections.get("compare"),
        limits=sections.get("limits", {}),
        report=top.get("report"),
        store=top.get("store"),
    )


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of evaluation files, for editors."""
    top = {name: TypeAdapter(kind).json_schema() for name, kind in _TOP.items()}
    sections = {
        name: {
            "type": ["object", "null"],
            "additionalProperties": False,
            "properties": {key: spec.schema() for key, spec in keys.items()},
        }
        for name, keys in SECTIONS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agenteval evaluation",
        "type": "object",
        "additionalProperties": False,
        "required": ["task", "runs"],
        "properties": {**top, **sections},
    }


class _Checker:
    """Checks values, and refuses them with file and line."""

    def __init__(self, file: str, lines: Mapping[Pathway, int | str]) -> None:
        self.file, self.lines = file, lines

    def refuse(self, pathway: Pathway, problem: str) -> NoReturn:
        while pathway and pathway not in self.lines:
            pathway = pathway[:-1]
        line = self.lines.get(pathway, 1)
        raise InputError(problem, line if isinstance(line, str) else f"{self.file}:{line}")

    def refuse_unknown(self, pathway: Pathway, names: Iterable[str]) -> NoReturn:
        near = get_close_matches(pathway[-1], names := sorted(names), 1, 0.5)
        hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"
        if _SECRET.search(pathway[-1]):
            hint = "secrets are read from the environment, for example AGENTEVAL_API_KEY"
        self.refuse(pathway, f"unknown key {'.'.join(pathway)!r}; {hint}")

    def value(self, pathway: Pathway, value: Any, kind: Any) -> Any:
        try:
            return TypeAdapter(kind).validate_python(value, strict=not isinstance(value, int))
        except ValidationError as error:
            problem = first_problem(error)
            self.refuse(pathway, f"{'.'.join(pathway)}: {value!r} is not valid ({problem})")

    def section(self, name: str, values: Any) -> dict[str, Any]:
        keys = SECTIONS[name]
        if not isinstance(values, dict):
            self.refuse((name,), f"`{name}` must have keys, such as {', '.join(list(keys)[:3])}")
        made = {}
        for key, value in values.items():
            if key not in keys:
                self.refuse_unknown((name, key), keys)
            spec = keys[key]
            checked = self.value((name, key), value, spec.type)
            low, high = spec.minimum, spec.maximum
            number = isinstance(checked, int | float) and not isinstance(checked, bool)
            outside = number and not (
                (low is None or checked >= low) and (high is None or checked <= high)
            )
            if outside:
                bounds = f"at least {low:g}" if high is None else f"from {low:g} to {high:g}"
                self.refuse((name, key), f"{name}.{key}: {checked} must be {bounds}")
            made[spec.keyword] = checked
        return made


class _Loader(yaml.SafeLoader):
    """YAML 1.2 scalars: only true and false are booleans, dates and 12:30 stay text."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [key.value for key, _ in node.value if key.tag != "tag:yaml.org,2002:merge"]
        if repeated := next((key for key in keys if keys.count(key) > 1), None):
            raise yaml.constructor.ConstructorError(
                None, None, f"the key {repeated!r} occurs twice", node.start_mark
            )
        return super().construct_mapping(node, deep=deep)


_LEFT_OUT = {f"tag:yaml.org,2002:{name}" for name in ("bool", "int", "float", "timestamp")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _LEFT_OUT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), list(_first)
    )


def _load(text: str, file: str) -> tuple[dict[str, Any], dict[Pathway, int | str]]:
    """Return the mapping of a file, and the line of each key."""
    try:
        node = yaml.compose(text, _Loader)
        data = yaml.load(text, _Loader)  # noqa: S506  a safe loader
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{file}:{mark.line + 1}" if mark else file
        raise InputError(f"not valid YAML ({error.problem})", place) from None
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"not valid YAML ({error})", file) from None
    if not isinstance(data, dict):
        raise InputError("an evaluation has keys such as task, runs and judge", f"{file}:1")
    lines: dict[Pathway, int | str] = {}
    _note_lines(node, (), lines)
    return data, lines


def _note_lines(node: yaml.Node | None, pathway: Pathway, lines: dict[Pathway, int | str]) -> None:
    if isinstance(node, yaml.MappingNode) and len(pathway) < 3:
        for key, value in node.value:
            if isinstance(key, yaml.ScalarNode):
                lines[*pathway, key.value] = key.start_mark.line + 1
                _note_lines(value, (*pathway, key.value), lines)


def _override(data: dict[str, Any], lines: dict[Pathway, int | str], text: str) -> None:
    """Set a value from "section.key=value", where the value is YAML."""
    name, sign, value = text.partition("=")
    *parents, last = name.strip().split(".")
    if not sign or not last or len(parents) > 2:
        raise InputError(f"{text!r}: write KEY=VALUE, for example judge.repeats=3", "--set")
    place = data
    for parent in parents:
        place = place.setdefault(parent, {})
        if not isinstance(place, dict):
            raise InputError(f"{text!r}: {parent} has no keys", "--set")
    try:
        place[last] = yaml.load(value, _Loader)  # noqa: S506  a safe loader
    except yaml.YAMLError:
        place[last] = value
    lines[*parents, last] = f"--set {name.strip()}"
