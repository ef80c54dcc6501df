"""Tables of how sessions ended, and of what brought no verdict, with a message of each kind."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from agenteval.agents import AgentFailure
from agenteval.evaluators.workflows.endings import Endings
from agenteval.evaluators.workflows.results import SessionResult, SessionVerdict, TurnResult
from agenteval.evaluators.workflows.session import Prediction, SessionFailure
from agenteval.evaluators.workflows.session_judge import GoalsFailure
from agenteval.report.flows_notes import sample
from agenteval.report.grid import Cell, Grid, Head, count, words
from agenteval.report.sheet import Sheet

_Found = tuple[str, str, str]  # system, what happened, what was said of it


def ended_sheet(rows: Sequence[Endings]) -> Sheet | None:
    """How the sessions ended; None where every user said goodbye and every call was carried out."""
    if not any(r.cut_short or r.refused for r in rows):
        return None
    heads = (Head("system"), Head("sessions", "", True),
             Head("user said goodbye", "", True),
             Head("limit of turns", "the session was cut off", True),
             Head("limit of calls", "the session was cut off", True),
             Head("agent stopped", "by time or iterations within a turn, or it said nothing", True),
             Head("calls", "made in these sessions", True),
             Head("malformed", "calls that could not be read", True),
             Head("bad arguments", "calls whose arguments are not as the tool declares", True),
             Head("unknown tool", "calls of a tool that there is not", True))  # fmt: skip
    cells = tuple(
        (words(r.system), count(r.sessions),
         *(part(r.ended[k], r.sessions) for k in ("user", "turns", "calls", "agent")),
         count(r.calls),
         *(part(r.statuses[k], r.calls) for k in ("malformed", "bad_arguments", "unknown_tool")))
        for r in rows
        if r.cut_short or r.refused
    )  # fmt: skip
    note = "Agent stopped: out of time or iterations within a turn, or it said nothing."
    if len(cells) < len(rows):
        note += " Systems whose users all said goodbye, without a refused call, are left out."
    return Sheet(Grid("ended", "How sessions ended", heads, cells), note)


def part(n: int, total: int) -> Cell:
    """A count with its share; zero is pale."""
    if not n:
        return count(0)
    return Cell(f"{n:,}: {100 * n / total:.0f} %", n / total, True)


def lost_sheet(results: Sequence[SessionResult]) -> Sheet | None:
    """Failures and simulators' mistakes by name; None where everything went well."""
    found = [one for r in results for one in _of_session(r)]
    caption = "What brought no verdict, and what simulators did wrong"
    return _sheet("lost", caption, found, "None of it is charged to the agent.")


def turns_lost_sheet(results: Sequence[TurnResult]) -> Sheet | None:
    """What brought no prediction or grade; None where everything went well."""
    found = [one for r in results for one in _of_turn(r)]
    return _sheet("turns-lost", "What brought no prediction or grade", found, "")


def _sheet(id: str, caption: str, found: Sequence[_Found], note: str) -> Sheet | None:
    if not found:
        return None
    times = Counter((system, what) for system, what, _ in found)
    order = {system: i for i, system in enumerate(dict.fromkeys(s for s, _, _ in found))}
    said: dict[tuple[str, str], str] = {}
    for system, what, text in found:
        said[system, what] = said.get((system, what)) or text
    heads = (Head("system"), Head("what"), Head("times", "", True),
             Head("for example", "the beginning of a message"))  # fmt: skip
    ordered = sorted(times, key=lambda key: (order[key[0]], key[1]))
    cells = tuple(
        (words(key[0]), words(key[1]), count(times[key]), Cell(sample(said[key]) or "–"))
        for key in ordered
    )
    return Sheet(Grid(id, caption, heads, cells), note)


def _of_session(r: SessionResult) -> Iterator[_Found]:
    failure = r.log if isinstance(r.log, SessionFailure) else None
    log = failure.log if failure else r.log
    if failure:
        yield r.system, f"no session: {failure.status}", failure.message
    elif r.verdict is None:
        yield r.system, "not judged yet", ""
    elif r.verdict.success is None:
        yield r.system, "no verdict: undecided", ""
    for m in log.mistakes if log and not isinstance(log, SessionFailure) else ():
        yield r.system, f"simulator's mistake, {m.who}: {m.kind}", m.text
    for status in r.verdict.failures if r.verdict else ():
        yield r.system, f"a judge failed: {status}", _judge_said(r.verdict, status)


def _judge_said(verdict: SessionVerdict | None, status: str) -> str:
    judge = verdict.judge if verdict else None
    return judge.message if isinstance(judge, GoalsFailure) and judge.status == status else ""


def _of_turn(r: TurnResult) -> Iterator[_Found]:
    if isinstance(r.prediction, AgentFailure):
        yield r.system, f"no prediction: {r.prediction.status}", r.prediction.message
    if r.grade is not None and r.grade.status is not None:
        yield r.system, f"no grade: {r.grade.status}", r.grade.message
    if r.verdict is None and isinstance(r.prediction, Prediction):
        yield r.system, "not judged yet", ""
    for one in r.verdict.parameters if r.verdict else ():
        if one.status is not None:
            yield r.system, f"a judge of a value failed: {one.status}", one.message
