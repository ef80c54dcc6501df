"""`plan check`: validate PDDL plans by executing them step by step, as the validator VAL does.

Supports STRIPS with types, constants, negative conditions and equality (PDDL 1.2, McDermott et al.
1998), as used by PlanBench (arXiv 2206.10498). Other features are refused by name, because a
verdict that ignores a condition would be wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from agenteval.errors import InputError
from agenteval.files import LARGE, read_text
from agenteval.readers.strict_json import read_json
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report

_TOKEN = re.compile(r"[()]|[^\s()]+")
_COMMENT = re.compile(r";[^\n]*")
_STEP = re.compile(r"^\s*(?:\d+(?:\.\d+)?\s*:)?\s*\(?\s*([^()\s][^()]*?)\s*\)?\s*(?:\[[^\]]*\])?$")
_FEATURES = frozenset(
    {":strips", ":typing", ":negative-preconditions", ":equality", ":action-costs"}
)
_OPERATORS = ("and", "or", "not", "imply", "forall", "exists", "when", "increase")
_DEEPEST = 50

Tree = str | list["Tree"]
Atom = tuple[str, ...]


@dataclass(frozen=True)
class Literal:
    """An atom, or its negation."""

    atom: Atom
    positive: bool = True


@dataclass(frozen=True)
class PddlAction:
    """An action: parameters with their types, conditions, and effects."""

    name: str
    parameters: Mapping[str, str]
    conditions: tuple[Literal, ...]
    effects: tuple[Literal, ...]


@dataclass(frozen=True)
class PddlProblem:
    """A problem with the actions and types of its domain; `objects` and constants by type."""

    actions: Mapping[str, PddlAction]
    supertypes: Mapping[str, str]
    objects: Mapping[str, str]
    initial: frozenset[Atom]
    goal: tuple[Literal, ...]


@dataclass(frozen=True)
class PlanVerdict:
    """Whether a plan is valid; if not, the reason and the number of the step (None: at the end)."""

    valid: bool
    step: int | None = None
    reason: str = ""


# -- reading ---------------------------------------------------------------------------------------


def read_problem(domain: str, problem: str) -> PddlProblem:
    """Parse a domain and a problem in PDDL.

    Raises InputError, with `domain` or `problem` as its place, for syntax errors and unsupported
    features.
    """
    try:
        sections = _sections(domain, "domain")
        objects = _typed(_flat(sections, ":constants"))
        supertypes = _typed(_flat(sections, ":types"))
        actions = [_action(section) for section in sections if section[0] == ":action"]
    except InputError as error:
        raise InputError(str(error), "domain") from None
    try:
        sections = _sections(problem, "problem")
        objects |= _typed(_flat(sections, ":objects"))
        initial = _flat(sections, ":init")
        goal = next((section for section in sections if section[0] == ":goal"), None)
        if goal is None or len(goal) != 2:
            raise InputError("the problem needs exactly one :goal")
        start = [fact for fact in initial if fact[:1] != ["="]]  # costs
        return PddlProblem(
            {action.name: action for action in actions},
            supertypes,
            objects,
            frozenset(_atom(fact) for fact in start),
            tuple(_literals(goal[1])),
        )
    except InputError as error:
        raise InputError(str(error), "problem") from None


def _sections(text: str, kind: str) -> list[list[Tree]]:
    """Return the sections of a definition. Raises InputError."""
    tree = _tree(text)
    head = tree[1] if len(tree) > 1 and tree[0] == "define" else None
    if not isinstance(head, list) or head[:1] != [kind]:
        raise InputError(f"not a definition of a {kind}: (define ({kind} NAME) ...)")
    sections = [section for section in tree[2:] if isinstance(section, list) and section]
    goals = [str(name) for section in sections if section[0] == ":requirements" for name in section]
    strange = sorted({*goals[1:]} - _FEATURES)
    strange += [str(s[0]) for s in sections if s[0] in (":derived", ":durative-action", ":axiom")]
    if strange:
        raise InputError(f"{strange[0]} is not one of: {', '.join(sorted(_FEATURES))}")
    return sections


def _tree(text: str) -> list[Tree]:
    stack: list[list[Tree]] = [[]]
    for word in _TOKEN.findall(_COMMENT.sub("", text).lower()):
        if word == "(":
            stack.append([])
            if len(stack) > _DEEPEST:
                raise InputError(f"nested deeper than {_DEEPEST} levels")
        elif word != ")":
            stack[-1].append(word)
        elif len(stack) == 1:
            raise InputError("one closing parenthesis too many")
        else:
            inner = stack.pop()
            stack[-1].append(inner)
    if len(stack) != 1 or len(stack[0]) != 1 or isinstance(stack[0][0], str):
        raise InputError("not one complete expression in parentheses")
    return stack[0][0]


def _flat(sections: list[list[Tree]], name: str) -> list[Tree]:
    return [item for section in sections if section[0] == name for item in section[1:]]


def _typed(items: list[Tree]) -> dict[str, str]:
    """Return the type of each name: `a b - block c` is block, block and object."""
    types: dict[str, str] = {}
    waiting: list[str] = []
    remaining = iter(items)
    for item in remaining:
        if not isinstance(item, str):
            raise InputError("a list of names has parentheses (either?)")
        if item != "-":
            waiting.append(item)
            continue
        kind = next(remaining, None)
        if not isinstance(kind, str):
            raise InputError("a type is not a name (either?)")
        types |= dict.fromkeys(waiting, kind)
        waiting = []
    return types | dict.fromkeys(waiting, "object")


def _action(section: list[Tree]) -> PddlAction:
    if len(section) < 2 or not isinstance(section[1], str) or len(section) % 2:
        raise InputError("an :action has no name, or a key without a value")
    parts = dict(zip(map(str, section[2::2]), section[3::2], strict=True))
    parameters = parts.get(":parameters", [])
    try:
        return PddlAction(
            section[1],
            _typed(parameters if isinstance(parameters, list) else [parameters]),
            tuple(_literals(parts.get(":precondition", []))),
            tuple(_literals(parts.get(":effect", []), effect=True)),
        )
    except InputError as error:
        raise InputError(f"action {section[1]}: {error}") from None


def _literals(tree: Tree, *, effect: bool = False) -> Iterator[Literal]:
    """Yield the literals of a conjunction. Raises InputError for anything else."""
    head = tree[0] if isinstance(tree, list) and tree else None
    if isinstance(tree, list) and head == "and":
        for part in tree[1:]:
            yield from _literals(part, effect=effect)
    elif isinstance(tree, list) and head == "not" and len(tree) == 2:
        yield Literal(_atom(tree[1]), positive=False)
    elif tree and not (effect and head == "increase"):  # costs do not change facts
        yield Literal(_atom(tree))


def _atom(tree: Tree) -> Atom:
    if isinstance(tree, list) and tree and tree[0] in _OPERATORS:
        raise InputError(f"{tree[0]!r} is not supported here: {_shown(tree)}")
    if not isinstance(tree, list) or not tree or not all(isinstance(part, str) for part in tree):
        raise InputError(f"not an atom: {_shown(tree)}")
    return tuple(map(str, tree))


def _shown(tree: Tree) -> str:
    text = tree if isinstance(tree, str) else f"({' '.join(map(_shown, tree))})"
    return text if len(text) <= 80 else f"{text[:80]}…"


def plan_steps(text: str) -> list[Atom]:
    """Return the steps of a plan, one per line: `(stack a b)` or `0: stack a b [1]`.

    Raises InputError with the line that is not a step.
    """
    steps = []
    for number, line in enumerate(_COMMENT.sub("", text).lower().splitlines(), start=1):
        match = _STEP.fullmatch(line)
        if line.strip() and match is None:
            raise InputError(f"line {number} is not a step in parentheses: {line.strip()[:60]!r}")
        if match is not None:
            steps.append(tuple(match[1].split()))
    return steps


# -- execution -------------------------------------------------------------------------------------


def verdict_of(problem: PddlProblem, steps: Sequence[Atom]) -> PlanVerdict:
    """Execute the steps from the initial state, and return the first error, or a valid plan.

    Effects that delete atoms are applied before those that add them.
    """
    state = set(problem.initial)
    for number, (name, *arguments) in enumerate(steps, start=1):
        action = problem.actions.get(name)
        if action is None:
            return PlanVerdict(False, number, f"unknown action {name}")
        if why := _unfit(problem, action, arguments):
            return PlanVerdict(False, number, why)
        binding = dict(zip(action.parameters, arguments, strict=True))
        for condition in action.conditions:
            if not _holds(bound := _bound(condition, binding), state):
                return PlanVerdict(False, number, f"unmet: {_text(bound)}")
        effects = [_bound(effect, binding) for effect in action.effects]
        state -= {effect.atom for effect in effects if not effect.positive}
        state |= {effect.atom for effect in effects if effect.positive}
    missing = [_text(goal) for goal in problem.goal if not _holds(goal, state)]
    return PlanVerdict(
        not missing, None, f"goal not reached: {', '.join(missing)}" if missing else ""
    )


def _unfit(problem: PddlProblem, action: PddlAction, arguments: list[str]) -> str:
    if len(arguments) != len(action.parameters):
        return f"{action.name} takes {len(action.parameters)} arguments, not {len(arguments)}"
    for argument, kind in zip(arguments, action.parameters.values(), strict=True):
        if argument not in problem.objects:
            return f"unknown object {argument}"
        of_type, seen = problem.objects[argument], set[str]()
        while of_type != kind and of_type not in seen and of_type in problem.supertypes:
            seen.add(of_type)
            of_type = problem.supertypes[of_type]
        if kind not in (of_type, "object"):
            return f"{argument} is not of type {kind}"
    return ""


def _bound(literal: Literal, binding: Mapping[str, str]) -> Literal:
    return Literal(tuple(binding.get(part, part) for part in literal.atom), literal.positive)


def _holds(literal: Literal, state: set[Atom]) -> bool:
    is_equality = literal.atom[0] == "=" and len(literal.atom) == 3
    is_true = literal.atom[1] == literal.atom[2] if is_equality else literal.atom in state
    return is_true == literal.positive


def _text(literal: Literal) -> str:
    text = f"({' '.join(literal.atom)})"
    return text if literal.positive else f"(not {text})"


# -- files ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class PlanRow:
    """One plan and its verdict."""

    plan: str = column("plan")
    verdict: str = column("verdict")
    step: int | None = column("step", "count")
    reason: str = column("reason")


def check_plans(plans: Path, *, domain: Path, problem: Path) -> Report:
    """Execute plans in PDDL; the report says which are valid, and where the others fail.

    `plans` is a file with one plan, or PlanBench's results for plan generation: JSON with
    `instances` that have an `extracted_llm_plan`. In the second case, the problem of instance N is
    the file `instance-N.pddl` in the folder `problem`, and an instance without a plan is invalid,
    as in PlanBench. The exit code is 1 if a plan is invalid. Raises InputError.
    """
    definition, rows = read_text(domain, LARGE), []
    for name, text, file in _plans(plans, problem):
        try:
            task = read_problem(definition, read_text(file, LARGE))
        except InputError as error:
            raise InputError(str(error), f"{domain}, {file}") from None
        try:
            verdict = verdict_of(task, plan_steps(text))
        except InputError as error:
            verdict = PlanVerdict(False, None, str(error))
        if not text.strip() and not verdict.valid:
            verdict = PlanVerdict(False, None, f"no plan; {verdict.reason}")
        word = "valid" if verdict.valid else "invalid"
        rows.append(PlanRow(name, word, verdict.step, verdict.reason))
    valid = sum(row.verdict == "valid" for row in rows)
    return Report(
        title=f"{valid:,} of {len(rows):,} plans are valid",
        tables=(table_of(PlanRow, "plans", "Plans", rows),),
        exit_code=int(valid < len(rows)),
    )


def _plans(plans: Path, problem: Path) -> Iterator[tuple[str, str, Path]]:
    """Yield the name of each plan, its text, and the file of its problem."""
    if plans.suffix.lower() != ".json":
        yield plans.stem, read_text(plans, LARGE), problem
        return
    results = read_json(plans)
    instances = results.get("instances") if isinstance(results, dict) else None
    if not isinstance(instances, list) or not instances:
        raise InputError("not PlanBench results: there is no list of `instances`", str(plans))
    for i, instance in enumerate(instances):
        number = instance.get("instance_id") if isinstance(instance, dict) else None
        if type(number) is not int:
            raise InputError(f"instances[{i}] needs an integer `instance_id`", str(plans))
        text = instance.get("extracted_llm_plan")
        yield (
            str(number),
            text if isinstance(text, str) else "",
            problem / f"instance-{number}.pddl",
        )
