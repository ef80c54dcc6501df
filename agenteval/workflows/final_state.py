"""Success by the final state: compare the state after the session with the state after the gold
calls.

Comparing the final state of a database with that after the gold actions follows tau-bench (Yao et
al., arXiv 2406.12045, section 3). The corrected tau2-bench tasks show why gold calls must be
executed first. A goal is achieved if the session's state has the changes of its calls, everything
that they only read was read, and the user was told what was required. States are compared as JSON:
objects by key, lists in order, so an entry inserted at the front changes all later ones. Values are
compared by the rules for parameters (`equality.equal_by_rule`).
"""

from __future__ import annotations

import json
import marshal
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from pydantic import Field, JsonValue

from agenteval.errors import InputError
from agenteval.records import Record, canonical_json
from agenteval.workflows.backend import BackendDefect, StatefulBackend, call_tool, fresh_backend
from agenteval.workflows.equality import assigned, contains_tokens, equal_by_rule
from agenteval.workflows.scenario import Action, Demand, Profile, Role, WorkflowTool, complaint
from agenteval.workflows.session import Change, SessionLog

_MAX_DIFFERENCES = 50
_MAX_SHOWN = 200  # characters of a value in a difference
_ABSENT = object()

Path = tuple[str | int, ...]


class Done(Record):
    """An executed gold call. `told` means that the final state does not show it, because it changed
    nothing or was undone; its result must be obtained."""

    action: Action
    result: JsonValue
    told: bool


class GoldGoal(Record):
    """The state paths changed by the calls of a goal, the calls, and the `words` that the user must
    be told."""

    changes: tuple[Path, ...] = ()
    done: tuple[Done, ...] = ()
    words: tuple[str, ...] = ()

    @property
    def told(self) -> tuple[Done, ...]:
        """The calls whose result must be obtained."""
        return tuple(d for d in self.done if d.told)


@dataclass(frozen=True, slots=True)
class Gold:
    """The state after all gold calls, and the effect of each goal. `begin` is the state before,
    `changed` is whether the two differ, and `refused` names the refused calls."""

    profile: str
    state: JsonValue
    goals: tuple[GoldGoal, ...]
    begin: JsonValue = None
    changed: bool = True
    refused: tuple[str, ...] = ()

    def satisfied_by_inaction(self, demand: Demand) -> bool:
        """Return whether an agent that calls no tool succeeds, whatever it says."""
        return not self.changed and not any(
            goal.words or (goal.told and demand == "state+reads") for goal in self.goals
        )


class StateVerdict(Record):
    """Verdict on the final state of a session.

    `goals` is whether each goal is achieved (always, for a goal without requirements). `progress`
    is the share of achieved goals. `success` requires gold's state and that the user was told all
    required words; with "state+reads", also all results that gold obtained. `differences` lists
    where the state differs from gold, as lines of a JSON pointer (RFC 6901) and both values: at
    most 50, in order of their paths. `omitted` counts the others. `unobtained` are the gold calls
    without a result, `untold` the missing words.
    """

    success: bool
    goals: tuple[bool, ...]
    progress: float = Field(ge=0, le=1)
    differences: tuple[str, ...] = ()
    omitted: int = Field(default=0, ge=0)
    unobtained: tuple[Action, ...] = ()
    untold: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[str, ...]:
        """The differences, missing results, and words that the user was not told, as lines."""
        more = [f"and {self.omitted:,} more places"] if self.omitted else []
        never = (
            f"never obtained: {a.tool}({json.dumps(a.arguments, ensure_ascii=False)})"
            for a in self.unobtained
        )
        silent = (f"never told: {words}" for words in self.untold)
        return (*self.differences, *more, *never, *silent)


def gold_state(
    role: Role,
    profile: Profile,
    make_backend: Callable[[], StatefulBackend],
    *,
    recorded: bool = False,
    base: JsonValue = None,
) -> Gold:
    """Execute the profile's gold calls on a fresh backend and return the resulting state. In a
    `recorded` task, whose gold calls come from elsewhere, a call that the backend refuses
    (ValueError) changes nothing and is named in `refused`. Parts of the state that equal parts of
    `base` are shared with it.

    Raises InputError with the profile and the call if a call does not fit the tool's schema, is
    refused, raises, or does not return a required JSON object; also if the backend cannot be
    created or its state is not JSON.
    """
    tools = {tool.name: tool for tool in role.tools_of(profile.scenarios)}
    where = f"{role.id}, profile {profile.id}"
    backend = fresh_backend(make_backend)
    begin = state = as_json(backend.state, f"{where}: the state", base)
    refused: list[str] = []
    executed = []
    for goal in profile.goals:
        before, calls = state, []
        for action in goal.actions:
            try:
                result = _carried_out(backend, tools, action, where)
            except InputError as error:
                if not (recorded and isinstance(error.__cause__, ValueError)):
                    raise
                refused.append(str(error))
                continue
            after = as_json(backend.state, f"{where}: the state", state)
            calls.append((action, result, [path for path, _, _ in _differing(state, after)]))
            state = after
        executed.append((calls, tuple(path for path, _, _ in _differing(before, state))))

    def done(action: Action, result: JsonValue, touched: list[Path]) -> Done:
        reported = tools[action.tool].effect == "read"
        reported = reported or all(_same_at(begin, state, path) for path in touched)
        return Done(action=action, result=result, told=reported)

    goals = tuple(
        GoldGoal(changes=changes, done=tuple(done(*call) for call in calls), words=goal.told)
        for goal, (calls, changes) in zip(profile.goals, executed, strict=True)
    )
    # Unchanged parts are the same object in both states: quick to compare, and stored once.
    end = restored(begin, changes_of(begin, state))
    return Gold(profile.id, end, goals, begin, not same(begin, end), tuple(refused))


def judged(gold: Gold, log: SessionLog, demand: Demand = "state") -> StateVerdict | None:
    """Return whether a session achieved the effects of the gold calls; None without a state.

    A result counts as obtained if an executed call of the same tool returned an equal one; gold
    calls with different arguments (for example, two days that are both full) need one call each.
    Results are required of gold calls that read, and of those that leave no trace in the final
    state because they changed nothing (for example, a declined booking) or their change was undone.
    Without these results a goal is not achieved; success requires them only with "state+reads".
    Words count as told if a reply to the user contains them. If gold changes nothing, a session
    that changed anything achieves no goal.
    """
    if log.state is None and log.changes is None:
        return None
    state = log.state if log.changes is None else restored(gold.begin, log.changes)
    due = [done for goal in gold.goals for done in goal.told]
    obtained = _obtained(due, log)
    unobtained = tuple(done.action for done in due if _key(done) not in obtained)
    replies = [m.content for m in log.messages if m.role == "assistant" and not m.tool_calls]
    untold = tuple(
        words
        for goal in gold.goals
        for words in goal.words
        if not any(contains_tokens(words, reply) for reply in replies)
    )
    differences = []
    for path, of_gold, of_session in _differing(gold.state, state):
        pointer = "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)
        differences.append(f"{pointer}: {_shown(of_session)}, gold {_shown(of_gold)}")
    goals = tuple(
        all(_same_at(gold.state, state, path) for path in goal.changes)
        and all(_key(done) in obtained for done in goal.told)
        and not any(words in untold for words in goal.words)
        and (gold.changed or not differences)
        for goal in gold.goals
    )
    return StateVerdict(
        success=not (differences or untold or (unobtained and demand == "state+reads")),
        goals=goals,
        progress=sum(goals) / len(goals),
        differences=tuple(differences[:_MAX_DIFFERENCES]),
        omitted=max(0, len(differences) - _MAX_DIFFERENCES),
        unobtained=unobtained,
        untold=untold,
    )


def _carried_out(
    backend: StatefulBackend, tools: Mapping[str, WorkflowTool], action: Action, where: str
) -> JsonValue:
    shown = f"{where}: gold call {action.tool}({_shown(action.arguments)})"
    if action.tool not in tools:
        raise InputError("no scenario of the profile has this tool", shown)
    if problem := complaint(tools[action.tool].parameters, action.arguments):
        raise InputError(problem, shown)
    try:
        result = call_tool(backend, action.tool, action.arguments)
    except ValueError as refused:
        raise InputError(f"refused ({refused})", shown) from refused
    except BackendDefect as defect:
        raise InputError(f"fails ({defect.reason})", shown) from defect
    answer = as_json(result, f"{shown}: the result")
    if tools[action.tool].returns and not isinstance(answer, dict):
        raise InputError("the result is not a JSON object", shown)
    return answer


def _key(done: Done) -> str:
    """Return one key for calls with the same arguments and result, which need only one answer."""
    return canonical_json([done.action.tool, done.action.arguments, held(done.result)])


def _obtained(due: Sequence[Done], log: SessionLog) -> frozenset[str]:
    """Return the keys of the gold calls whose result the session obtained.

    The session's answers are assigned one to one, first to the calls with the same arguments.
    """
    answers: dict[str, tuple[str, JsonValue, JsonValue]] = {}
    for call in log.calls:
        if call.status == "ok":
            answer = call.tool, call.arguments, held(call.result)
            answers[canonical_json(list(answer))] = answer
    unique = {_key(done): done for done in due}

    def rank(done: Done, tool: str, arguments: JsonValue, result: JsonValue) -> int:
        if tool != done.action.tool or not same(held(done.result), result):
            return 0
        return 2 if same(done.action.arguments, arguments) else 1

    ranks = [[rank(done, *answer) for answer in answers.values()] for done in unique.values()]
    return frozenset(list(unique)[row] for row, _ in assigned(ranks))


def held(value: JsonValue) -> JsonValue:
    """Return the value of a JSON text; other values and texts are unchanged."""
    while isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            break
    return value


def changes_of(begin: JsonValue, end: JsonValue) -> tuple[Change, ...]:
    """Return the changes from one state to another."""
    return tuple(
        Change(path=path) if right is _ABSENT else Change(path=path, value=right, there=True)
        for path, _, right in _differing(begin, end)
    )


def restored(begin: JsonValue, changes: Sequence[Change]) -> JsonValue:
    """Return the state with these changes; `begin` is not modified; shares unchanged parts."""
    root: Any = [begin]
    copies: dict[int, Any] = {}  # ids of copied parts, which may be modified
    for change in (
        *(c for c in changes if c.there),
        # Entries are removed from the end of a list, the last one first.
        *reversed([c for c in changes if not c.there]),
    ):
        at, keys = root, (0, *change.path)
        for key in keys[:-1]:
            if id(at[key]) not in copies:
                at[key] = at[key].copy()
                copies[id(at[key])] = at[key]
            at = at[key]
        if not change.there:
            del at[keys[-1]]
        elif isinstance(at, list) and keys[-1] == len(at):
            at.append(change.value)
        else:
            at[keys[-1]] = change.value
    return root[0]  # type: ignore[no-any-return]


def _same_at(left: JsonValue, right: JsonValue, path: Path) -> bool:
    a, b = _at(left, path), _at(right, path)
    return a is b if _ABSENT in (a, b) else same(a, b)


def _at(state: Any, path: Path) -> Any:
    for key in path:
        within = isinstance(state, list) and isinstance(key, int) and key < len(state)
        if not (within or (isinstance(state, dict) and key in state)):
            return _ABSENT
        state = state[key]
    return state


def same(left: Any, right: Any) -> bool:
    """Return whether JSON values are equal: lists in order, objects by key, values by rule."""
    return not any(_differing(left, right))


def _differing(left: Any, right: Any, path: Path = ()) -> Iterator[tuple[Path, Any, Any]]:
    """Yield differences of two JSON values by path: (path, left value, right value)."""
    if left is right or identical(left, right):
        return
    if isinstance(left, dict) and isinstance(right, dict):
        keys = {*left, *right}
        for key in sorted(k for k in keys if left.get(k, _ABSENT) is not right.get(k, _ABSENT)):
            yield from _differing(left.get(key, _ABSENT), right.get(key, _ABSENT), (*path, key))
    elif isinstance(left, list) and isinstance(right, list):
        for at in range(max(len(left), len(right))):
            a = left[at] if at < len(left) else _ABSENT
            b = right[at] if at < len(right) else _ABSENT
            yield from _differing(a, b, (*path, at))
    elif _ABSENT in (left, right) or not equal_by_rule(left, right):
        yield path, left, right


def _shown(value: Any) -> str:
    if value is _ABSENT:
        return "absent"
    text = json.dumps(value, ensure_ascii=False, sort_keys=True)
    return text if len(text) <= _MAX_SHOWN else text[: _MAX_SHOWN - 1] + "…"


def as_json(value: object, where: str, base: JsonValue = None) -> JsonValue:
    """Return a copy as JSON. Parts that equal parts of `base`, which is JSON, are shared with it.
    Raises InputError."""
    if isinstance(value, dict) and isinstance(base, dict) and all(type(k) is str for k in value):
        return _as_object(value, where, base)
    if isinstance(value, list) and isinstance(base, list):
        parts = zip_longest(value, base[: len(value)])
        return [as_json(part, where, like) for part, like in parts]
    try:
        copy: JsonValue = json.loads(json.dumps(value, ensure_ascii=False, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"is not JSON ({error})", where) from error
    return copy


def _as_object(
    value: dict[str, Any], where: str, base: dict[str, JsonValue]
) -> dict[str, JsonValue]:
    if identical(value, base):
        return base
    shared = {key: base[key] for key, part in value.items() if key in base and part == base[key]}
    if not identical([value[key] for key in shared], list(shared.values())):  # e.g. 1 == True
        shared = {}
    return {
        key: shared[key] if key in shared else as_json(part, where, base.get(key))
        for key, part in value.items()
    }


def identical(value: Any, base: Any) -> bool:
    """Return whether two values are identical JSON, including types (1 is not True) and the order
    of keys."""
    try:
        return value == base and marshal.dumps(value, 2) == marshal.dumps(base, 2)
    except (ValueError, RecursionError):  # values of other types, or nested too deeply
        return False
