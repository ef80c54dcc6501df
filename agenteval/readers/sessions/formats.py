"""FORMATS: the supported session formats, how to recognize them, and which facts are read.

Formats are recognized by content, never by file name. The first value of a file decides its format;
a value of another format in the same file is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.chat_forms import RESPONSES
from agenteval.readers.fields import MESSAGES, Context, has_field
from agenteval.readers.formats import recognise
from agenteval.readers.gold import note_withheld, withheld_from, without_gold
from agenteval.readers.messages import is_event_list, is_message_list
from agenteval.readers.sessions import benchmarks, coding
from agenteval.readers.sessions.session import Session, SessionStep, to_run
from agenteval.readers.source_files import RunDefaults, described
from agenteval.readers.strict_json import Item, Notes
from agenteval.records import Run


@dataclass(frozen=True)
class SessionFormat:
    """One format of sessions.

    `matches` returns whether a value has this format, and never raises. For a format of `lines`,
    the whole file is one value, the list of its lines. `reads` documents which of turns, tools
    (calls with results), errors, tokens, cost and ending it contains. Formats without `of_runs` are
    read as runs elsewhere. With `one_system`, a file has the sessions of one system and is named
    after it.
    """

    name: str
    matches: Callable[[Any], bool]
    read: Callable[[Any], Session | Iterable[Session]]
    reads: str
    lines: bool = False
    of_runs: bool = True
    one_system: bool = False


# ---- recognizing formats -------------------------------------------------------------------------


def _has(*keys: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, dict) and all(key in value for key in keys)


def _list_of(key: str, test: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Return a test for objects that have a list under the key with a passing first item."""

    def matches(value: Any) -> bool:
        rows = value.get(key) if isinstance(value, dict) else None
        return isinstance(rows, list) and bool(rows) and test(rows[0])

    return matches


_CLAUDE = frozenset({"system", "result", "summary", "queue-operation"})
_CODEX = frozenset({"session_meta", "turn_context", "response_item", "event_msg", "compacted"})


def _is_claude(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    kind, of_session = str(value.get("type")), "sessionId" in value or "session_id" in value
    if kind in ("user", "assistant"):
        return of_session and isinstance(value.get("message"), dict)
    is_summary = "leafUuid" in value and "summary" in value
    is_snapshot = kind == "file-history-snapshot" and "snapshot" in value
    return (kind in _CLAUDE and of_session) or is_summary or is_snapshot


def _is_codex(value: Any) -> bool:
    return isinstance(value, dict) and (
        (str(value.get("type")) in _CODEX and "payload" in value)
        or (value.get("type") == "thread.started" and "thread_id" in value)
        or (_has("id", "timestamp", "instructions")(value) and "messages" not in value)
    )


def _is_contents(value: Any) -> bool:
    rows = value.get("history") if isinstance(value, dict) else value
    return isinstance(rows, list) and bool(rows) and all(map(_has("role", "parts"), rows))


def _is_openhands(value: Any) -> bool:
    rows = value.get("history", value.get("events")) if isinstance(value, dict) else value
    rows = rows if isinstance(rows, list) else []
    heads = [row[0] if isinstance(row, list) and row else row for row in rows[:5]]
    return bool(heads) and all(map(_is_openhands_event, heads))


def _is_openhands_event(value: Any) -> bool:
    if not isinstance(value, dict) or "source" not in value:
        return False
    kind = value.get("kind")
    of_v1 = isinstance(kind, str) and kind.endswith(("Event", "Observation"))
    return of_v1 or "observation" in value or ("action" in value and "args" in value)


def _is_atif(value: Any) -> bool:
    is_trajectory = _has("schema_version", "steps")(value)
    return is_trajectory and str(value["schema_version"]).startswith("ATIF")


def _is_simulation(value: Any) -> bool:
    single = _has("id", "task_id", "messages", "termination_reason")(value)
    return single or _has("tasks", "simulations")(value)


def _is_adk(value: Any) -> bool:
    rows = value.get("events") if isinstance(value, dict) else None
    by_app = _has("appName")(value) or _has("app_name")(value)
    return by_app and isinstance(rows, list) and all(map(_has("author"), rows))


def _is_run_state(value: Any) -> bool:
    held = ("modelResponses", "generatedItems"), ("model_responses", "generated_items")
    return _has("$schemaVersion")(value) and any(_has(*keys)(value) for keys in held)


def _is_swe(value: Any) -> bool:
    mini = _has("messages", "info", "trajectory_format")(value)
    return mini or _has("trajectory", "info")(value)


def _is_transcript(value: Any) -> bool:
    rows = benchmarks.turns(value)
    items = [row for row in rows if isinstance(row, dict)]
    messages = [row for row in items if row.get("type") not in RESPONSES]
    return (
        len(items) == len(rows) > 1
        and all("content" in row and isinstance(row.get("role"), str) for row in messages)
        and not any(has_field(row, "output", "messages") for row in messages)
        and len({benchmarks.speaker(row) for row in messages}) > 1
    )


def _is_record(value: Any) -> bool:
    if not isinstance(value, dict) or recognise(value) is None:
        return False
    lists = (value.get(key) for key in MESSAGES)
    return is_event_list(value.get("messages")) or any(map(is_message_list, lists))


# ---- records of runs, checkpoints ----------------------------------------------------------------


def _record(value: Any) -> Session:
    form = recognise(value)
    assert form is not None
    draft = form.to_draft(value, Context("", Notes()))
    steps = [
        SessionStep(m.role, m.content, list(m.tool_calls), name=m.name, result_of=m.tool_call_id)
        for m in draft.messages
    ]
    return Session(
        draft.id or draft.weak_id,
        model="" if draft.system == "unnamed" else draft.system,
        steps=steps,
        task=draft.input or None,
        output=draft.output,
        success=draft.success,
        reference=draft.reference,
        failure=draft.failure,
    )


def _contents(value: Any) -> Session:
    session = Session(agent="Gemini CLI")
    session.add({"contents": value["history"] if isinstance(value, dict) else value})
    return session


_ALL = "task, turns, tools, errors, tokens, cost, ending"
_NO_COST = "task, turns, tools, errors, tokens, ending"
_NO_ENDING = "task, turns, tools, errors, tokens"
_PROMPTS, _PYDANTIC = _has("sessionId", "messageId"), _has("kind", "parts")
FORMATS: tuple[SessionFormat, ...] = (
    SessionFormat("Claude Code", _is_claude, coding.claude_code, _ALL, lines=True),
    SessionFormat("Codex CLI", _is_codex, coding.codex, _NO_COST, lines=True),
    SessionFormat(
        "Gemini CLI chat", _has("sessionId", "projectHash"), coding.gemini, _NO_ENDING, lines=True
    ),
    SessionFormat(
        "Gemini CLI prompts",
        lambda value: isinstance(value, list) and bool(value) and _PROMPTS(value[0]),
        coding.gemini_prompts,
        "refused",
    ),
    SessionFormat("Gemini CLI checkpoint", _is_contents, _contents, "task, turns, tools"),
    SessionFormat("ATIF (Harbor)", _is_atif, coding.atif, "task, turns, tools, tokens, cost"),
    SessionFormat("OpenHands", _is_openhands, coding.openhands, _ALL),
    SessionFormat("OpenHands, lines", _is_openhands_event, coding.openhands, _ALL, lines=True),
    SessionFormat("SWE-agent", _is_swe, benchmarks.swe_trajectory, _ALL, of_runs=False),
    SessionFormat(
        "Who&When",
        _has("history", "mistake_agent", "mistake_step"),
        benchmarks.who_and_when,
        "task, turns, ending",
    ),
    SessionFormat(
        "AgentRx", _list_of("steps", _has("substeps")), benchmarks.agentrx, "task, turns"
    ),
    SessionFormat(
        "tau-bench",
        _has("task_id", "reward", "traj"),
        benchmarks.tau_bench,
        "task, turns, tools, cost",
        one_system=True,
    ),
    SessionFormat("tau2-bench", _is_simulation, benchmarks.tau2, _ALL, one_system=True),
    SessionFormat(
        "AgentDojo",
        _has("suite_name", "pipeline_name", "messages"),
        benchmarks.agentdojo,
        "task, turns, tools, errors",
    ),
    SessionFormat(
        "browser-use",
        _list_of("history", _has("model_output", "result")),
        benchmarks.browser_use,
        "turns, tools, errors, tokens, ending",
    ),
    SessionFormat("Google ADK session", _is_adk, benchmarks.adk_session, _NO_ENDING),
    SessionFormat(
        "pydantic-ai messages",
        lambda value: isinstance(value, list) and bool(value) and all(map(_PYDANTIC, value)),
        benchmarks.pydantic_ai,
        _NO_ENDING,
    ),
    SessionFormat(
        "OpenAI Agents SDK run state",
        _is_run_state,
        benchmarks.run_state,
        "task, turns, tools, tokens, ending",
    ),
    SessionFormat("record of a run", _is_record, _record, "task, turns, tools", of_runs=False),
    SessionFormat("transcript", _is_transcript, benchmarks.transcript, "task, turns, tools"),
)


def session_format(values: list[Any], *, of_runs: bool = False) -> SessionFormat | None:
    """Return the format of a file by its first values, or None for other files.

    `of_runs` excludes formats that are read as runs elsewhere.
    """
    first = values[0] if values else None
    inner = first[0] if isinstance(first, list) and first else None
    for form in FORMATS[:-1]:
        if form.matches(first) or form.matches(inner):
            return form if form.of_runs or not of_runs else None
    is_conversation = of_runs and is_message_list(first)
    is_lines = len(values) > 1 and _is_transcript(values)
    return FORMATS[-1] if is_lines or (_is_transcript(first) and not is_conversation) else None


def session_runs(
    form: SessionFormat,
    items: Iterable[Item],
    defaults: RunDefaults,
    notes: Notes,
    *,
    with_gold: bool = False,
) -> Iterator[tuple[Run, str]]:
    """Yield the runs of a file with their locations.

    Raises InputError for a value of another format or with an unexpected structure.
    """
    number = 0
    system = defaults.system if form.one_system else ""
    for values, place, line in _documents(form, items):
        runs = []
        try:
            sessions = form.read(values)
            for session in [sessions] if isinstance(sessions, Session) else sessions:
                if not session.steps and session.failure is None:
                    problem = f"a session of {form.name} without messages was skipped"
                    notes.add(problem, place)
                    continue
                number += 1
                name = defaults.id if line is None and number == 1 else f"{defaults.id}:{number}"
                run_defaults = RunDefaults(name, defaults.task, system)
                runs.append(to_run(session, form.name, run_defaults))
        except InputError as error:
            raise InputError(str(error), place) from None
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            why = str(error).partition("\n")[0]
            problem = f"not in the format of {form.name} ({type(error).__name__}: {why})"
            raise InputError(problem, place) from None
        for run in runs:
            if not with_gold:
                run = without_gold(run)
                note_withheld(withheld_from(run), Context(place, notes))
            yield run, place


def _documents(form: SessionFormat, items: Iterable[Item]) -> Iterator[tuple[Any, str, int | None]]:
    """Yield the documents of a file: its values, the items of a list, or all lines together."""
    rows = iter(items)
    first = next(rows)
    is_document = isinstance(first.value, list) and form.matches(first.value)
    together = not is_document and (form.lines or form is FORMATS[-1])
    lines: list[Any] = []
    for item in chain([first], rows):
        is_list = isinstance(item.value, list) and (together or not form.matches(item.value))
        for i, value in enumerate(item.value if is_list else [item.value]):
            place = f"{item.place}[{i}]" if is_list and not together else item.place
            _refuse_other(form, value, place)
            if together:
                lines.append(value)
            else:
                yield value, place, i if is_list else item.line
    if together:
        place = first.place if len(lines) == 1 else first.place.rpartition(":")[0] or first.place
        yield lines, place, None


def _refuse_other(form: SessionFormat, value: Any, place: str) -> None:
    if form.matches(value) or (form.lines and not isinstance(value, dict)):
        return
    matching = (other for other in FORMATS[:-1] if other is not form and other.matches(value))
    if (other := next(matching, None)) is not None:
        problem = f"this is {other.name}, but the file starts as {form.name}; split the file"
        raise InputError(problem, place)
    if not form.lines and form is not FORMATS[-1]:
        raise InputError(f"not of {form.name}, as the file begins: {described(value)}", place)
