"""Sessions and single turns whose text seems to talk to the judge.

Examined is what judges of workflows read and the agent or its tools wrote: what the agent says, the
tools and arguments of its calls, their results; of a turn the reply or the call. What a simulated
user says is not the agent's, nor is the recorded talk before a turn. It makes no difference whether
a judge was asked: the same log is judged when there is one.
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

Result = SessionResult | TurnResult
_BY_AGENT = frozenset({"assistant", "tool"})


def flow_signs(result: Result) -> tuple[str, ...] | None:
    """Names of the signs in what a judge reads of it; None where nothing can be judged."""
    if isinstance(result, SessionResult):
        log = result.log if isinstance(result.log, SessionLog) else None
        texts = None if log is None else _of_session(log)
    else:
        known = result.prediction if isinstance(result.prediction, Prediction) else None
        texts = None if known is None else _of_turn(known)
    if texts is None:
        return None
    return tuple(sign.name for sign in texts_signs(dict.fromkeys(filter(None, texts))))


def flow_flags(sessions: Sequence[SessionResult], turns: Sequence[TurnResult]) -> Flags:
    """The flags of all that can be judged, by case and, from the second on, trial."""
    flags, examined = [], 0
    results: list[Result] = [*sessions, *turns]
    for result in results:
        signs = flow_signs(result)
        examined += signs is not None
        if signs:
            flags.append(Flag(_name(result), result.system, signs))
    return Flags(tuple(flags), examined)


def row_flags(rows: Rows) -> Flags:
    """The flags of rows made elsewhere, from what a judge would read of a prediction or of the
    generated conversation, which is taken whole: rows need not say who speaks. What tells no
    prediction is not examined; no row names its system."""
    texts: list[tuple[str, Iterable[str]]] = [
        (f"{turn.gold.session}:{turn.gold.turn}", filter(None, _of_turn(read_reply(turn.predict))))
        for turn in rows.turns
        if not turn.failed
    ]
    texts += [(session.id, (session.dialogue,)) for session in rows.sessions]
    flags = []
    for name, own in texts:
        if signs := texts_signs(own):
            flags.append(Flag(name, None, tuple(sign.name for sign in signs)))
    return Flags(tuple(flags), len(texts))


def _name(result: Result) -> str:
    return result.case.id + (f", trial {result.trial}" if result.trial else "")


def _of_session(log: SessionLog) -> Iterator[str]:
    for message in log.messages:
        if message.role in _BY_AGENT:
            yield message.content
            for call in message.tool_calls:
                yield call.name
                yield from _leaves(call.arguments)
    for made in log.calls:  # what no message has: arguments as the judge of values gets them
        yield made.tool
        yield from _leaves(made.arguments)


def _of_turn(prediction: Prediction) -> Iterator[str]:
    if prediction.form == "call":
        yield prediction.tool
        yield from _leaves(prediction.arguments)
    else:
        yield prediction.response


def _leaves(value: JsonValue) -> Iterator[str]:
    """The names and texts in a JSON value, unescaped."""
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
