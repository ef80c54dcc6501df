"""Suites: planning tests as JSON lines, generated or written by hand, checked when they are read.

A case written by hand needs an `id`, `actions` (noun phrases, or objects with `phrase` and `tool`),
a `request` or `text`, and the `constraints` that it states.
"""

from __future__ import annotations

import functools
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from agenteval.errors import InputError
from agenteval.files import SMALL, replacing, text_lines
from agenteval.models.prompts import Prompt, load_prompt
from agenteval.planning import solver
from agenteval.planning.case import (
    RESTART,
    START,
    Activity,
    Before,
    Case,
    OrderRule,
    Size,
    StatedConstraint,
    TimeRule,
    limits,
    mock_tools,
)
from agenteval.planning.grammar import Paragraph, constraints_of, from_json, render, to_json
from agenteval.planning.words import action
from agenteval.readers.strict_json import decode_line
from agenteval.records import canonical_json

_MAX_COUNTED = 7  # actions of an extended case whose orders are tried one by one


def case_line(case: Case) -> str:
    """Return the case as one line of a suite, without the line's end."""
    return json.dumps(case.model_dump(mode="json", exclude_none=True), ensure_ascii=False)


def write_suite(path: Path, cases: Iterable[Case]) -> None:
    """Write a suite whole or not at all."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{case_line(case)}\n" for case in cases)


def read_suite(path: Path) -> Iterator[Case]:
    """Yield the cases of a suite in its order, line by line, completed and checked.

    Raises InputError, with file and line, for unreadable lines, two cases of one id, contradictory
    constraints (naming a smallest contradictory set) and infeasible times.
    """
    seen: set[str] = set()
    for number, line in text_lines(path, most_line=SMALL):
        if line.strip():
            case = read_case(line, f"{path}:{number}")
            if case.id in seen:
                raise InputError(f"the id {case.id!r} stands here twice", f"{path}:{number}")
            seen.add(case.id)
            yield case
    if not seen:
        raise InputError("holds no case", str(path))


def read_case(line: str, place: str) -> Case:
    """Return the case of one line, completed and checked. Raises InputError as `read_suite`."""
    value: Any = decode_line(line, place)
    if not isinstance(value, dict):
        raise InputError("a case is a JSON object", place)
    entries = value.get("actions")
    if isinstance(entries, list):
        value["actions"] = [_action(e, n, place) for n, e in enumerate(entries)]
    try:
        case = Case.model_validate(value)
    except ValidationError as error:
        # A constraint is tried as both kinds: keys that one of them lacks say nothing.
        errors = error.errors(include_url=False, include_context=False)
        telling = (e for e in errors if e["type"] not in ("missing", "extra_forbidden"))
        first = next(telling, errors[0])
        where = ".".join(str(part) for part in first["loc"])
        message = first["msg"].removeprefix("Value error, ")
        raise InputError(f"{where}: {message}" if where else message, place) from None
    case = _completed(case, place)
    _check_tools(case, place)
    try:
        core = contradiction(case)
    except ValueError as error:
        raise InputError(str(error), place) from None
    if core:
        raise InputError(f"the constraints contradict each other: {'; '.join(core)}", place)
    return case


def _action(entry: Any, number: int, place: str) -> Any:
    """An action as an object, where it was given as a phrase."""
    if not (isinstance(entry, str) and entry.strip()):
        return entry
    try:
        return action(entry).model_dump()
    except ValidationError:
        raise InputError(
            f"actions.{number}: no name of a tool can be made of {entry!r}; give an object with "
            "`phrase` and `tool`",
            place,
        ) from None


def _completed(case: Case, place: str) -> Case:
    """The case with its request, tools and number of valid plans."""
    if case.text and not case.constraints:
        raise InputError(
            "constraints: list what the text demands; agenteval does not read it", place
        )
    changes: dict[str, Any] = {}
    if not case.request:
        if not case.text:
            raise InputError("a case needs a text or a request", place)
        extended = case.durations is not None
        changes["request"] = request_text(case.topic, case.n, case.text, extended=extended)
    if not case.tools:
        changes["tools"] = mock_tools(case)
    if case.valid_plans is None:
        changes["valid_plans"] = count_valid(case.n, case.stated, case.hours)
    return case.model_copy(update=changes)


def _check_tools(case: Case, place: str) -> None:
    """Tools given by hand: with one missing or refusing every call, no agent could pass."""
    names = Counter(tool.name for tool in case.tools)
    if twice := sorted(name for name, times in names.items() if times > 1):
        raise InputError(f"tools: {twice[0]!r} stands there twice", place)
    restart = () if case.durations is None else (RESTART,)
    for name in (*case.index, *restart):
        if name not in names:
            raise InputError(f"tools: {name!r} is missing", place)
    for tool in case.tools:
        if wrong := _schema_error(canonical_json(tool.parameters)):
            raise InputError(
                f"tools: the parameters of {tool.name!r} are no JSON schema: {wrong}", place
            )
        if case.durations is not None and tool.name in case.index:
            required = tool.parameters.get("required")
            if not isinstance(required, list) or START not in required:
                raise InputError(f"tools: {tool.name!r} must require {START!r}", place)


@functools.lru_cache(maxsize=64)  # the tools of a suite share a few schemas
def _schema_error(schema: str) -> str:
    """The error of a JSON schema; "" without."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(json.loads(schema))
    except SchemaError as error:
        return error.message
    return ""


def contradiction(case: Case) -> tuple[str, ...]:
    """Return a smallest contradictory set of the case's constraints in words; empty without."""
    core = solver.contradiction(case.n, [s.constraint for s in case.stated], case.hours)
    if core == ():
        return ("the durations alone are longer than a day",)
    return tuple(in_words(case.constraints[i]) for i in core or ())


def in_words(rule: OrderRule | TimeRule) -> str:
    """Return a constraint in words, with the numbers of its sub-sentences from 1."""
    source = f" (clause {', '.join(str(s + 1) for s in rule.sentences)})" if rule.sentences else ""
    if isinstance(rule, OrderRule):
        return f"{rule.first} before {rule.second}{source}"
    return f"{rule.tool} {rule.side} {rule.hour}:00{source}"


def template(*, extended: bool) -> Prompt:
    """Return the frame of a request, around the synthesized text."""
    return load_prompt("agenteval.planning", "extended" if extended else "base")


def request_text(role: str, n: int, text: str, *, extended: bool) -> str:
    """Return the prompt of the agent; without a role it is for an assistant."""
    return template(extended=extended).render(role=role or "assistant", n=n, text=text)


def build_case(
    identity: str,
    role: str,
    actions: Sequence[Activity],
    paragraph: Paragraph,
    durations: Sequence[int] | None = None,
) -> Case:
    """Return the case of a paragraph; durations (hours by action) make it an extended one."""
    text = render(paragraph, [action.phrase for action in actions])
    stated = constraints_of(paragraph)
    extended = durations is not None
    case = Case(
        id=identity,
        topic=role,
        actions=tuple(actions),
        constraints=rules_of(stated, actions),
        text=text,
        request=request_text(role, len(actions), text, extended=extended),
        durations={a.tool: d for a, d in zip(actions, durations, strict=True)}
        if durations
        else None,
        valid_plans=count_valid(len(actions), stated, durations),
        size=Size(
            actions=len(actions),
            sub_sentences=sum(1 for _ in paragraph.parts()),
            constraints=len(stated),
            words=len(text.split()),
        ),
        template=template(extended=extended).sha256[:12],
        tree=to_json(paragraph),
    )
    return case.model_copy(update={"tools": mock_tools(case)})


def rules_of(
    stated: Sequence[StatedConstraint], actions: Sequence[Activity]
) -> tuple[OrderRule | TimeRule, ...]:
    """Return the constraints with tool names, as a case has them."""
    rules: list[OrderRule | TimeRule] = []
    for entry in stated:
        c, where = entry.constraint, entry.sentences
        if isinstance(c, Before):
            first, second = actions[c.first].tool, actions[c.second].tool
            rules.append(OrderRule(first=first, second=second, sentences=where))
        else:
            tool = actions[c.action].tool
            rules.append(TimeRule(tool=tool, side=c.side, hour=c.hour, sentences=where))
    return tuple(rules)


def count_valid(
    n: int, stated: Sequence[StatedConstraint], durations: Sequence[int] | None = None
) -> int | None:
    """Return the number of valid plans; with durations, of orders for which start times exist.

    None where it is not counted: orders beyond the graph's limit, extended cases of more than 7
    actions, and time limits without durations.
    """
    constraints = [entry.constraint for entry in stated]
    if durations is None:
        return None if limits(constraints) else solver.count_plans(n, constraints)
    return None if n > _MAX_COUNTED else solver.count_schedulable(n, constraints, durations)


def paragraph_of(case: Case) -> Paragraph:
    """Return the syntax tree of a case's text.

    Raises InputError if the case has none, or if the tree does not give the text.
    """
    if case.tree is None:
        raise InputError(
            "its line in the suite has no `tree`; run `agenteval plan synth` again", case.id
        )
    try:
        paragraph = from_json(case.tree)
        text = render(paragraph, [action.phrase for action in case.actions])
    except (ValueError, IndexError) as error:
        raise InputError(f"its `tree` cannot be read: {error}", case.id) from None
    if text != case.text:
        raise InputError("its `tree` and its `text` differ", case.id)
    return paragraph
