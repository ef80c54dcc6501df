"""Read and write suites: planning tests as JSON lines, validated when they are read.

Your own cases need an `id`, `actions` (noun phrases, or objects with `phrase` and `tool`), a
`request` or `text`, and the `constraints` that it states.
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

_MAX_COUNTED = 7  # actions of an extended case, to enumerate their orders


def case_line(case: Case) -> str:
    """Return the case as one line of a suite, without a line break."""
    return json.dumps(case.model_dump(mode="json", exclude_none=True), ensure_ascii=False)


def write_suite(path: Path, cases: Iterable[Case]) -> None:
    """Write a suite atomically."""
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8", newline="\n") as out:
        out.writelines(f"{case_line(case)}\n" for case in cases)


def read_suite(path: Path) -> Iterator[Case]:
    """Yield the cases of a suite in order, completed and validated.

    Raises InputError, with file and line, for unreadable lines, duplicate ids, contradictory
    constraints (naming a minimal contradictory set) and infeasible times.
    """
    seen: set[str] = set()
    for number, line in text_lines(path, most_line=SMALL):
        if line.strip():
            case = read_case(line, f"{path}:{number}")
            if case.id in seen:
                raise InputError(f"duplicate id {case.id!r}", f"{path}:{number}")
            seen.add(case.id)
            yield case
    if not seen:
        raise InputError("contains no cases", str(path))


def read_case(line: str, place: str) -> Case:
    """Return the completed and validated case of a line. Raises InputError as `read_suite` does."""
    value: Any = decode_line(line, place)
    if not isinstance(value, dict):
        raise InputError("a case must be a JSON object", place)
    entries = value.get("actions")
    if isinstance(entries, list):
        value["actions"] = [_action(e, n, place) for n, e in enumerate(entries)]
    try:
        case = Case.model_validate(value)
    except ValidationError as error:
        # pydantic tries both kinds of constraint; ignore errors about keys that one of them lacks.
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
    """Convert an action given as a phrase to an object."""
    if not (isinstance(entry, str) and entry.strip()):
        return entry
    try:
        return action(entry).model_dump()
    except ValidationError:
        raise InputError(
            f"actions.{number}: {entry!r} cannot be turned into a tool name; use an object with "
            "`phrase` and `tool`",
            place,
        ) from None


def _completed(case: Case, place: str) -> Case:
    """Add the request, tools and number of valid plans to a case."""
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
    """Validate the tools of a case: if one is missing or rejects every call, no agent can pass."""
    names = Counter(tool.name for tool in case.tools)
    if twice := sorted(name for name, times in names.items() if times > 1):
        raise InputError(f"tools: duplicate {twice[0]!r}", place)
    restart = () if case.durations is None else (RESTART,)
    for name in (*case.index, *restart):
        if name not in names:
            raise InputError(f"tools: {name!r} is missing", place)
    for tool in case.tools:
        if wrong := _schema_error(canonical_json(tool.parameters)):
            raise InputError(
                f"tools: the parameters of {tool.name!r} are not a JSON schema: {wrong}", place
            )
        if case.durations is not None and tool.name in case.index:
            required = tool.parameters.get("required")
            if not isinstance(required, list) or START not in required:
                raise InputError(f"tools: {tool.name!r} must require {START!r}", place)


@functools.lru_cache(maxsize=64)  # the tools of a suite share a few schemas
def _schema_error(schema: str) -> str:
    """Return the error in a JSON schema, or ""."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import SchemaError

    try:
        Draft202012Validator.check_schema(json.loads(schema))
    except SchemaError as error:
        return error.message
    return ""


def contradiction(case: Case) -> tuple[str, ...]:
    """Return a minimal contradictory set of the case's constraints in words, or ()."""
    core = solver.contradiction(case.n, [s.constraint for s in case.stated], case.hours)
    if core == ():
        return ("the durations alone are longer than a day",)
    return tuple(in_words(case.constraints[i]) for i in core or ())


def in_words(rule: OrderRule | TimeRule) -> str:
    """Format a constraint, with the numbers of its sub-sentences from 1."""
    source = f" (clause {', '.join(str(s + 1) for s in rule.sentences)})" if rule.sentences else ""
    if isinstance(rule, OrderRule):
        return f"{rule.first} before {rule.second}{source}"
    return f"{rule.tool} {rule.side} {rule.hour}:00{source}"


def template(*, extended: bool) -> Prompt:
    """Return the template of a request, which contains the synthesized text."""
    return load_prompt("agenteval.planning", "extended" if extended else "base")


def request_text(role: str, n: int, text: str, *, extended: bool) -> str:
    """Return the prompt for the agent; without a role, it is for an assistant."""
    return template(extended=extended).render(role=role or "assistant", n=n, text=text)


def build_case(
    identity: str,
    role: str,
    actions: Sequence[Activity],
    paragraph: Paragraph,
    durations: Sequence[int] | None = None,
) -> Case:
    """Return the case of a paragraph; with durations (hours by action), an extended one."""
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
    """Return the constraints with tool names, as in a case."""
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

    None if not counted: for orders beyond the graph's limit, extended cases with more than 7
    actions, and time limits without durations.
    """
    constraints = [entry.constraint for entry in stated]
    if durations is None:
        return None if limits(constraints) else solver.count_plans(n, constraints)
    return None if n > _MAX_COUNTED else solver.count_schedulable(n, constraints, durations)


def paragraph_of(case: Case) -> Paragraph:
    """Return the syntax tree of a case's text.

    Raises InputError if the case has none, or if the tree does not match the text.
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
