"""An evaluation as a YAML file: which keys it may have, and how it is read.

The keys of a section are the options of the commands, so nothing is declared twice: types, bounds
and help texts come from the same groups of options (`agenteval.cli.options`). Unknown keys, wrong
types and values out of bounds are refused with file, line and the nearest key.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NoReturn, get_args

import yaml
from pydantic import Field, TypeAdapter, ValidationError

from agenteval.analysis.gates import FailIf
from agenteval.app.options import ComparisonOptions
from agenteval.cli.arguments import LimitOptions
from agenteval.cli.command import command_options
from agenteval.errors import InputError
from agenteval.files import SMALL, read_text
from agenteval.planning.options import PlanTestOptions
from agenteval.readers.fields import check_name
from agenteval.readers.problems import first_problem
from agenteval.readers.strict_json import MOST_DEPTH
from agenteval.readers.table_files import MAPPED
from agenteval.records import Task
from agenteval.text import did_you_mean, redacted
from agenteval.traces.options import LocateOptions
from agenteval.utility.options import JudgeOptions, ProposeOptions
from agenteval.utility.perturb import OPERATORS
from agenteval.workflows.options import SessionOptions

STEPS = ("criteria", "quantify", "verify", "compare", "plan", "trace", "flow", "report")
MOST_VALUES = 20_000  # aliases count each time
Pathway = tuple[str, ...]  # the keys that lead to a value


@dataclass(frozen=True)
class Key:
    """A key of a section: the keyword that it becomes, its type, bounds and help text."""

    keyword: str
    type: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    required: bool = False
    convert: Callable[[Any], Any] | None = None

    def schema(self) -> dict[str, Any]:
        """Return the JSON Schema of the value."""
        bounds = {"minimum": self.minimum, "maximum": self.maximum}
        limits = {name: bound for name, bound in bounds.items() if bound is not None}
        return {**TypeAdapter(self.type).json_schema(), "description": self.help, **limits}


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
                declared = field.metadata.get("option")
                keys[name] = Key(
                    field.name,
                    kind,
                    option.help or "",
                    option.min,
                    option.max,
                    required=declared is not None and field.default is MISSING,
                    convert=declared and declared.convert,
                )
    return keys


_RUN = {"store", "retry_failed", "dry_run", "workers", "ray"}
_REQUESTS = {
    "reasoning_effort": Key(
        "reasoning_effort", str | None, "Reasoning effort of the model: low, medium or high."
    ),
    "max_tokens": Key(
        "max_tokens", int | Literal["none"] | None, "Maximum tokens per reply, or none.", 1
    ),
    "parameters": Key("parameters", dict[str, Any], "Additional request parameters."),
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
            without={*_RUN, "judge", "task", "mapping", "system", "limit"},
        ),
        "model": Key(
            "judge", str | list[str] | None, "The judge, as for --judge; several are a panel."
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
        "perturbations": Key(
            "perturbations",
            list[Literal[*OPERATORS]],  # type: ignore[valid-type]
            "Perturbations, see docs/verify.md.",
        ),
        "share": Key("share", float, "Share of a text that a perturbation changes.", 0.01, 0.9),
        "sample": Key("sample", int, "Verify on this many runs, drawn by seed.", 1),
        "seed": Key("seed", int, "Seed of the sample and the intervals.", 0),
        "repeats": Key("repeats", int, "How often each text is judged.", 1),
        "labels": Key("labels", str, "Human labels of these runs."),
        "probes": Key(
            "probes", bool, "Also probe the judge with other prompts and with attacks in the text."
        ),
        "sequential": Key("sequential", bool, "Stop when every verdict is settled."),
        "gate": Key("gate", bool, "Exit 4 (not enough data) or 5 (not trustworthy)."),
        "allow_criteria": Key(
            "allow_criteria", list[str], "Refuted criteria that the gate ignores."
        ),
        "output": Key("output", str, "Output file of the criteria with their verdicts."),
    },
    "compare": {
        "baseline": Key(
            "baseline", str, "System that the others are compared with.", required=True
        ),
        **keys_of(
            ComparisonOptions,
            names={"planned": "sequential", "only": "criteria"},
            without={"other", "judges", "store", "scores", "task", "criteria"},
        ),
        "fail_if": Key("fail_if", FailIf | None, "Gate on every criterion."),
        "fail_under": Key("fail_under", dict[str, float], "Gate: fail if a mean is below a value."),
        "undecided": Key(
            "undecided", Literal["pass", "fail"], "Whether an undecided gate fails or passes."
        ),
    },
    "limits": keys_of(LimitOptions),
    "plan": {
        "suite": Key("suite", str, "File with the planning tests.", required=True),
        **keys_of(PlanTestOptions, without=_RUN),
    },
    "trace": {
        "traces": Key("traces", str, "File or folder with the traces.", required=True),
        **keys_of(LocateOptions, without=_RUN),
    },
    "flow": {
        "roles": Key("roles", list[str], "Names or folders of roles. Default: all."),
        **keys_of(SessionOptions, without=_RUN),
    },
}
_AGENTS = ("plan", "trace", "flow")  # they need no `task` and no `runs`
_JUDGED = ("task", "runs", "map", "criteria", "judge", "verify", "compare")
_Text = Annotated[str, Field(min_length=1)]
_TOP: dict[str, Any] = {
    "task": _Text | dict[str, Any],
    "runs": _Text | Annotated[dict[str, _Text], Field(min_length=1)],
    "map": dict[Literal[*MAPPED], str],  # type: ignore[valid-type]
    "report": _Text,
    "store": _Text,
}
_SECRET = re.compile(r"(?i)api_?key|authorization|password|secret|(^|auth_?|access_?)token$")


@dataclass(frozen=True)
class EvaluationFile:
    """A checked evaluation. Sections are keywords of the step's function; None without a section.

    `runs` are files by system, under "" for a single file whose runs name their systems.
    """

    path: Path
    task: str | Task | None
    runs: Mapping[str, str]
    mapping: Mapping[str, str] | None
    criteria: Mapping[str, Any]
    judge: Mapping[str, Any]
    verify: Mapping[str, Any] | None
    compare: Mapping[str, Any] | None
    plan: Mapping[str, Any] | None
    trace: Mapping[str, Any] | None
    flow: Mapping[str, Any] | None
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
    sections = {
        k: check.section(k, {} if data[k] is None else data[k]) for k in SECTIONS if k in data
    }
    runs, task = top.get("runs", {}), top.get("task")
    if not any(name in data for name in _AGENTS) or any(name in data for name in _JUDGED):
        if not runs:
            check.refuse((), "`runs` is missing: name the file, or a file for each system")
        if not task:
            check.refuse((), "`task` is missing: name a task, or give name and description")
    if isinstance(task, dict):
        task = check.task(task)
    runs = {"": runs} if isinstance(runs, str) else runs
    check.systems(runs, sections.get("compare", {}).get("baseline"))
    limits = sections.get("limits", {})
    if ("price_in" in limits) != ("price_out" in limits):
        check.refuse(("limits",), "limits: give `price_in` and `price_out`, or neither")
    always = {name: sections.pop(name, {}) for name in ("criteria", "judge", "limits")}
    optional: dict[str, Any] = {
        name: sections.get(name) for name in ("verify", "compare", *_AGENTS)
    }
    return EvaluationFile(
        path=path,
        task=task,
        runs=runs,
        mapping=top.get("map"),
        report=top.get("report"),
        store=top.get("store"),
        **always,
        **optional,
    )


_OPTIONAL = ["object", "null"]


def json_schema() -> dict[str, Any]:
    """Return the JSON Schema of evaluation files, for editors."""
    top = {name: TypeAdapter(kind).json_schema() for name, kind in _TOP.items()}
    sections = {
        name: {
            "type": "object" if (required := [k for k in keys if keys[k].required]) else _OPTIONAL,
            "additionalProperties": False,
            "required": required,
            "properties": {key: spec.schema() for key, spec in keys.items()},
        }
        for name, keys in SECTIONS.items()
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "agenteval evaluation",
        "type": "object",
        "additionalProperties": False,
        "if": {
            "anyOf": [
                {"not": {"anyOf": [{"required": [name]} for name in _AGENTS]}},
                *({"required": [name]} for name in _JUDGED),
            ]
        },
        "then": {"required": ["task", "runs"]},
        "properties": {**top, **sections},
    }


class _Checker:
    """Checks values, and refuses them with file and line."""

    def __init__(self, file: str, lines: Mapping[Pathway, int | str]) -> None:
        self.file, self.lines = file, lines

    def place(self, pathway: Pathway) -> str:
        """Return file and line of a key, or of the nearest key above it."""
        while pathway and pathway not in self.lines:
            pathway = pathway[:-1]
        line = self.lines.get(pathway, 1)
        return line if isinstance(line, str) else f"{self.file}:{line}"

    def refuse(self, pathway: Pathway, problem: str) -> NoReturn:
        raise InputError(problem, self.place(pathway))

    def refuse_unknown(self, pathway: Pathway, names: Iterable[str]) -> NoReturn:
        allowed = sorted(names)
        hint = did_you_mean(pathway[-1], allowed, cutoff=0.5) or f"known: {', '.join(allowed)}"
        if _SECRET.search(pathway[-1]):
            hint = "secrets are read from the environment, for example AGENTEVAL_API_KEY"
        self.refuse(pathway, f"unknown key {'.'.join(pathway)!r}; {hint}")

    def value(self, pathway: Pathway, value: Any, kind: Any) -> Any:
        try:  # as JSON, where 1 is not true and a text may be a path
            return TypeAdapter(kind).validate_json(json.dumps(value), strict=True)
        except ValidationError as error:
            self.refuse(pathway, f"{'.'.join(pathway)}: {first_problem(error)}")

    def systems(self, runs: Mapping[str, str], baseline: str | None) -> None:
        """Refuse names that no system can have, and an unknown baseline."""
        for system in runs:
            if system or len(runs) > 1:
                check_name(system, self.place(("runs", system)))
        if baseline is not None and "" not in runs and baseline not in runs:
            problem = f"no system {baseline!r} in `runs`; known: {', '.join(runs)}"
            self.refuse(("compare", "baseline"), problem)

    def task(self, values: Any) -> Task:
        """Return the task of a mapping."""
        try:
            task = Task.model_validate_json(json.dumps(values))
        except ValidationError as error:
            self.refuse(("task",), f"task: {first_problem(error)}")
        if not re.fullmatch(r"\w[\w .-]*", task.name):  # it names files
            self.refuse(("task", "name"), "task.name: use letters, digits, spaces and . - _")
        return task

    def section(self, name: str, values: Any) -> dict[str, Any]:
        keys = SECTIONS[name]
        if not isinstance(values, dict):
            self.refuse((name,), f"`{name}` must have keys, such as {', '.join(list(keys)[:3])}")
        section = {}
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
            section[spec.keyword] = spec.convert(checked) if spec.convert else checked
        for key, spec in keys.items():
            if spec.required and key not in values:
                self.refuse((name,), f"`{name}.{key}` is missing: {spec.help}")
        return section


class _Loader(yaml.SafeLoader):
    """YAML 1.2 scalars: only true and false are booleans, dates and 12:30 stay text."""


_TAG = "tag:yaml.org,2002:"
_MAKE: dict[str, Callable[[str], Any]] = {
    "str": str,
    "null": lambda text: None,
    "bool": {"true": True, "false": False}.__getitem__,
    "int": int,
    "float": float,
}
_LEFT_OUT = {_TAG + name for name in ("bool", "int", "float", "timestamp")}
_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _LEFT_OUT]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for _tag, _pattern, _first in (
    ("bool", r"true|false", "tf"),
    ("int", r"[-+]?(?:0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _Loader.add_implicit_resolver(_TAG + _tag, re.compile(rf"(?:{_pattern})\Z"), list(_first))


class _Values:
    """Makes plain values of YAML nodes: keys are text, merge keys are applied, no other tags."""

    def __init__(self, file: str) -> None:
        self.file, self.lines, self.count = file, dict[Pathway, int | str](), 0

    def value(self, node: yaml.Node, pathway: Pathway = ()) -> Any:
        """Return the value of a node. Raises InputError."""
        self._count(node, len(pathway))
        if isinstance(node, yaml.MappingNode):
            result = {}
            for name, (key, value) in self._pairs(node, len(pathway)).items():
                self.lines[*pathway, name] = key.start_mark.line + 1
                if "parameters" in pathway and _SECRET.search(name):
                    self._refuse_secret(key)
                result[name] = self.value(value, (*pathway, name))
            return result
        if isinstance(node, yaml.SequenceNode):
            return [self.value(item, (*pathway, str(n))) for n, item in enumerate(node.value)]
        try:
            result = _MAKE[node.tag.removeprefix(_TAG)](node.value)
        except (KeyError, ValueError):
            self._refuse(node, f"{node.value[:40]!r} is not a value of {node.tag[:80]}")
        if isinstance(result, int | float) and not abs(result) < 2**63:  # infinity too
            self._refuse(node, f"{node.value[:20]} is too large")
        if isinstance(result, str) and re.search("[\0\ud800-\udfff]", result):
            self._refuse(node, "the text has a NUL or an incomplete character")
        if isinstance(result, str) and pathway[:1] != ("task",):
            shown = re.sub(r"^postgres(ql)?://[^/@:]+@", "", result)  # a user alone is no secret
            if redacted(shown) != shown:
                self._refuse_secret(node)
        return result

    def _pairs(self, node: yaml.MappingNode, depth: int) -> dict[str, tuple[yaml.Node, yaml.Node]]:
        """Return keys and values of a mapping with those that it merges."""
        explicit: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        merged: dict[str, tuple[yaml.Node, yaml.Node]] = {}
        for key, value in node.value:
            if key.tag == _TAG + "merge":
                for part in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    self._count(key, depth)
                    if not isinstance(part, yaml.MappingNode):
                        self._refuse(key, "<< takes a mapping or a list of mappings")
                    merged = self._pairs(part, depth + 1) | merged
            elif not isinstance(key, yaml.ScalarNode):
                self._refuse(key, "a list or a mapping cannot be a key")
            elif key.value in explicit:
                self._refuse(key, f"the key {key.value[:80]!r} occurs twice")
            else:
                explicit[key.value] = (key, value)
        return merged | explicit

    def _count(self, node: yaml.Node, depth: int) -> None:
        self.count += 1
        if depth > MOST_DEPTH:
            self._refuse(node, f"nested deeper than {MOST_DEPTH} levels")
        if self.count > MOST_VALUES:
            self._refuse(node, f"more than {MOST_VALUES:,} values")

    def _refuse_secret(self, node: yaml.Node) -> NoReturn:
        self._refuse(
            node,
            "this looks like a secret; remove it and set an environment variable, such as "
            "AGENTEVAL_API_KEY, AGENTEVAL_HEADERS or AGENTEVAL_STORE",
        )

    def _refuse(self, node: yaml.Node, problem: str) -> NoReturn:
        raise InputError(problem, f"{self.file}:{node.start_mark.line + 1}")


def _load(text: str, file: str) -> tuple[dict[str, Any], dict[Pathway, int | str]]:
    """Return the mapping of a file, and the line of each key."""
    values = _Values(file)
    try:
        node = yaml.compose(text, _Loader)
        data = None if node is None else values.value(node)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = f"{file}:{mark.line + 1}" if mark else file
        raise InputError(f"not valid YAML ({error.problem})", place) from None
    except RecursionError:
        raise InputError(f"nested deeper than {MOST_DEPTH} levels", file) from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(f"not valid YAML ({error.reason})", f"{file}:{line}") from None
    if not isinstance(data, dict):
        raise InputError("an evaluation has keys such as task, runs and judge", f"{file}:1")
    return data, values.lines


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
