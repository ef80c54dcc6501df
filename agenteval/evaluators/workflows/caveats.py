"""What must be known beside the rates: what was lost and why, and what may not be compared."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from agenteval.agents import AgentFailure
from agenteval.evaluators.workflows.results import SessionResult, SessionVerdict, TurnResult
from agenteval.evaluators.workflows.session import Prediction, SessionFailure, SessionLog
from agenteval.evaluators.workflows.session_judge import GoalsFailure
from agenteval.records.table import Column, Table
from agenteval.stats import Interval

Loss = tuple[str, str, str]  # system, what happened, the message
_MOST_TEXT = 80
_SUFFIX = re.compile(r" \[[0-9a-f]{6}\]")


def lost_table(key: str, title: str, found: Sequence[Loss], *notes: str) -> Table:
    """What happened how often to whom, each with the first message there is."""
    times = Counter((system, what) for system, what, _ in found)
    order = {system: i for i, system in enumerate(dict.fromkeys(s for s, _, _ in found))}
    messages: dict[tuple[str, str], str] = {}
    for system, what, message in found:
        messages[system, what] = messages.get((system, what)) or message
    return Table(
        key,
        title,
        (Column("system", "system"), Column("what", "what"), Column("times", "times", "count"),
         Column("example", "for example", hint="the beginning of a message")),
        tuple(
            {"system": system, "what": what, "times": times[system, what],
             "example": _beginning(messages[system, what]) or None}
            for system, what in sorted(times, key=lambda k: (order[k[0]], k[1]))
        ),
        notes, "system",
    )  # fmt: skip


def losses_of_session(r: SessionResult) -> Iterator[Loss]:
    """What was lost of a session, and simulators' mistakes in it."""
    failure = r.log if isinstance(r.log, SessionFailure) else None
    log = failure.log if failure else r.log
    if failure:
        yield r.system, f"no session: {failure.status}", failure.message
    elif r.verdict is None:
        yield r.system, "not judged yet", ""
    elif r.verdict.success is None:
        who = " and ".join(log.spoiled_by) if isinstance(log, SessionLog) else ""
        yield r.system, f"no verdict: {who or 'undecided'}", ""
    for m in log.mistakes if log and not isinstance(log, SessionFailure) else ():
        repaired = ", made good" if m.repaired else ""
        yield r.system, f"simulator's mistake{repaired}, {m.who}: {m.kind}", m.text
    for status in r.verdict.failures if r.verdict else ():
        yield r.system, f"a judge failed: {status}", _judge_message(r.verdict, status)


def _judge_message(verdict: SessionVerdict | None, status: str) -> str:
    judge = verdict.judge if verdict else None
    return judge.message if isinstance(judge, GoalsFailure) and judge.status == status else ""


def losses_of_turn(r: TurnResult) -> Iterator[Loss]:
    """What was lost of a turn."""
    if isinstance(r.prediction, AgentFailure):
        yield r.system, f"no prediction: {r.prediction.status}", r.prediction.message
    if r.grade is not None and r.grade.status is not None:
        yield r.system, f"no grade: {r.grade.status}", r.grade.message
    if r.verdict is None and isinstance(r.prediction, Prediction):
        yield r.system, "not judged yet", ""
    for one in r.verdict.parameters if r.verdict else ():
        if one.status is not None:
            yield r.system, f"a judge of a value failed: {one.status}", one.message


def _beginning(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _MOST_TEXT else f"{line[: _MOST_TEXT - 1]}…"


def suffixes(names: Iterable[str]) -> str:
    """What a piece of a hash behind a name means; nothing where no name has one."""
    if not any(_SUFFIX.search(name) for name in names):
        return ""
    return (
        "[…] behind a name: same name, other settings, source or procedure; the suffix tells them "
        "apart."
    )


def unequal(results: Sequence[SessionResult] | Sequence[TurnResult], what: str) -> str:
    """That the systems did not all get the same `what`; nothing where they did."""
    given: dict[str, set[str]] = {}
    for r in results:
        given.setdefault(r.system, set()).add(r.case.id)
    sets = list(given.values())
    if all(own == sets[0] for own in sets):
        return ""
    common, sizes = len(set.intersection(*sets)), sorted(map(len, sets))
    each = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    shared = f"{common:,} of them common to all" if common else "none of them common to all"
    formats = {(r.agent, r.format) for r in results}
    paired = len({agent for agent, _ in formats}) < len(formats)
    return (
        f"Systems were not tried on the same {what} ({each} each, {shared}): differences between "
        "rows may be those of the tasks. Compare only systems tried on the same ones"
        + ("; formats of one agent are paired below." if paired else ".")
    )


def bare(rates: Iterable[Interval]) -> str:
    """Why some rates have no interval beside them; nothing where all have one."""
    reasons = set()
    for rate in rates:
        if rate.mean is None or (rate.low is not None and rate.low != rate.high):
            continue
        if (rate.n_clusters or rate.n) < 2:
            reasons.add("a single task")
        elif rate.reason is None or rate.reason.startswith("no variation"):
            reasons.add("no variation between tasks")
        else:  # of however many there are
            reasons.add("too few tasks" if "too few" in rate.reason else rate.reason)
    return f"No interval: {' or '.join(sorted(reasons))}." if reasons else ""
