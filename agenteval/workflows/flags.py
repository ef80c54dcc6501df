"""Sessions and single turns whose text seems to address the judge.

Examined is what judges of workflows read and the agent or its tools wrote: what the agent says, the
tools and arguments of its calls, their results; of a turn the reply or the call. What a simulated
user says is not the agent's, nor is the recorded conversation before a turn. Logs are examined
whether or not a judge was asked: one may be later.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from agenteval.analysis.flagged import Flag, Flags
from agenteval.readers.injection import texts_signs
from agenteval.workflows.flowbench_rows import Rows
from agenteval.workflows.reply_text import read_reply
from agenteval.workflows.results import SessionResult, TurnResult
from agenteval.workflows.session import Prediction, SessionLog


def flow_signs(result: SessionResult | TurnResult) -> tuple[str, ...] | None:
    """Return the names of the signs in what a judge reads of it; None where nothing can be
    judged."""
    log = result.log if isinstance(result, SessionResult) else result.prediction
    if isinstance(log, SessionLog):
        return _signs(_of_session(log))
    return _signs(_of_turn(log)) if isinstance(log, Prediction) else None


def flow_flags(sessions: Sequence[SessionResult], turns: Sequence[TurnResult]) -> Flags:
    """Return the flags of all that can be judged, by case and, from the second on, trial."""
    flags, examined = [], 0
    results: list[SessionResult | TurnResult] = [*sessions, *turns]
    for result in results:
        signs = flow_signs(result)
        examined += signs is not None
        if signs:
            trial = f", trial {result.trial}" if result.trial else ""
            flags.append(Flag(result.case.id + trial, result.system, signs))
    return Flags(tuple(flags), examined)


def row_flags(rows: Rows) -> Flags:
    """Return the flags of existing rows.

    Examined is what a judge would read of a prediction, or the generated conversation as a whole:
    rows need not say who speaks. Failed rows are not examined; no row names its system.
    """
    texts: list[tuple[str, Iterable[str]]] = [
        (f"{turn.gold.session}:{turn.gold.turn}", _of_turn(read_reply(turn.predict)))
        for turn in rows.turns
        if not turn.failed
    ]
    texts += [(session.id, [session.dialogue]) for session in rows.sessions]
    flags = [Flag(name, None, signs) for name, of in texts if (signs := _signs(of))]
    return Flags(tuple(flags), len(texts))


def _signs(texts: Iterable[str]) -> tuple[str, ...]:
    return tuple(sign.name for sign in texts_signs(dict.fromkeys(filter(None, texts))))


def _of_session(log: SessionLog) -> Iterator[str]:
    messages = [m for m in log.messages if m.role in ("assistant", "tool")]
    yield from (message.content for message in messages)
    # Of the log as the judge of values gets them, also those in no message.
    calls = [(call.name, call.arguments) for m in messages for call in m.tool_calls]
    for tool, arguments in (*calls, *((call.tool, call.arguments) for call in log.calls)):
        yield from _leaves([tool, arguments])


def _of_turn(prediction: Prediction) -> Iterator[str]:
    called = prediction.form == "call"
    return _leaves([prediction.tool, prediction.arguments] if called else prediction.response)


def _leaves(value: JsonValue) -> Iterator[str]:
    """Yield the names and texts in a JSON value, unescaped."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            yield from part
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)
