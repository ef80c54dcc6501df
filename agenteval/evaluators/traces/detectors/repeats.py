"""Calls that were made again although nothing could have changed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from agenteval.evaluators.traces.detectors.conversations import Call, Conversations
from agenteval.evaluators.traces.detectors.failures import Fact, all_facts, classify
from agenteval.evaluators.traces.detectors.registry import (
    Hit,
    TraceView,
    arguments_text,
    quote,
    rule,
)

TIMES = 3  # equal calls, and rounds of a cycle, that are needed
LONGEST = 6  # calls in one round of a cycle
_LONG = 200  # characters: a result this long that stays the same is no mere acknowledgement
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_WAITING = {
    "wait", "sleep", "poll", "pause", "monitor", "watch", "heartbeat", "progress", "status",
    "await", "pending", "job", "ready", "tick", "ping", "health", "queue", "inbox",
}  # fmt: skip
_ACTING = {
    "add", "append", "push", "press", "click", "move", "go", "step", "turn", "scroll", "page",
    "next", "prev", "previous", "up", "down", "left", "right", "forward", "back", "advance",
    "increment", "decrement", "increase", "decrease", "send", "post", "type", "key", "write",
    "roll", "draw", "flip", "random", "shuffle", "sample", "generate", "retry", "continue",
    "insert", "create", "delete", "remove", "buy", "order", "book", "pay", "charge", "transfer",
    "notify", "say", "ask", "tell", "pop", "shift", "take", "drop", "pick", "set", "toggle",
    "undo", "redo", "zoom", "swipe", "tap", "drag", "rotate", "feed", "pour", "print", "log",
    "time", "now", "clock", "date",
}  # fmt: skip
_READING = {
    "get", "search", "find", "lookup", "look", "list", "read", "fetch", "query", "show", "view",
    "describe", "retrieve", "browse", "visit", "open", "load", "inspect", "calculate", "compute",
    "convert", "translate", "count", "grep", "cat", "ls",
}  # fmt: skip
_UNFINISHED = re.compile(
    r"\b(?:pending|queued|running|in[_ -]progress|processing|waiting|not ready|not yet|starting"
    r"|building|provisioning|scheduled|try again|retry|still|no new|nothing new|unchanged"
    r"|no (?:\w+ )?(?:messages|events|updates))\b",
    re.IGNORECASE,
)
_BARE = re.compile(
    r"\W*(?:ok|okay|done|success(?:ful(?:ly)?)?|true|null|none|yes|accepted|acknowledged|"
    r"\w+(?:ed|sent|set|put))?\W*",
    re.IGNORECASE,
)
_TOLD = re.compile(r"\b(?:poll(?:s|ed|ing)?|wait(?:s|ing)? (?:for|until)|until)\b", re.IGNORECASE)


_PASSING = (
    "rate",
    "timeout",
    "service",
    "exhausted",
)  # failures after which a call may be tried again


@lru_cache(maxsize=1024)
def _words(name: str) -> frozenset[str]:
    return frozenset(word.lower() for word in _WORD.findall(name))


def reads(call: Call) -> bool:
    """Whether the tool's name says that it only reads, so that it changes nothing for others."""
    words = _words(call.name)
    return bool(words & _READING) and not words & (_ACTING | _WAITING)


def telling(call: Call, failed: Sequence[Fact] = ()) -> bool:
    """Whether making this call again with the same result tells that nothing changes by it.

    Not so where the result is unknown, a mere acknowledgement, or says that something is not ready
    yet; where it failed for a reason that may pass; nor for a tool that is named or described as
    one that waits; nor, unless the result is long, for one named as acting on the world: a
    "next page" that says "ok" may have moved."""
    if call.result is None or _UNFINISHED.search(call.result[:2000]):
        return False
    words = _words(call.name)
    if words & _WAITING or _TOLD.search(_description(call)):
        return False
    if failed:
        return all((v := classify(fact)) is None or v.kind not in _PASSING for fact in failed)
    if len(call.result) >= _LONG:
        return True
    return not words & _ACTING and not _acknowledges(call.result)


def _acknowledges(result: str) -> bool:
    if _BARE.fullmatch(result):
        return True
    if result.lstrip()[:1] != "{":
        words = result.split()
        return len(words) <= 8 and any(w.strip(".!,").lower().endswith("ed") for w in words)
    try:
        value = json.loads(result)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and all(
        v is None or isinstance(v, bool) or (isinstance(v, str) and _BARE.fullmatch(v))
        for v in value.values()
    )


def _description(call: Call) -> str:
    return next((t.description for t in call.span.tools if t.name == call.name), "")


class _Row:
    """Calls of one epoch of a conversation, each as a number: equal calls with equal results have
    the same one, a call that tells nothing has one of its own."""

    def __init__(self, view: TraceView, calls: list[Call]) -> None:
        self.calls, facts = calls, view.once(all_facts)
        known: dict[tuple[tuple[str, str], str], int] = {}
        self.codes: list[int] = []
        for i, call in enumerate(calls):
            ran = call.execution
            if not telling(call, facts[view.position[ran.id]] if ran else ()):
                self.codes.append(-1 - i)
            else:
                self.codes.append(known.setdefault((call.same, call.result or ""), len(known)))

    def cycles(self) -> Iterator[tuple[int, int, int]]:
        """(first, last, period) of stretches in which 2 to 6 calls came round three times."""
        taken = -1
        for first, last, period in sorted(self._stretches(), key=lambda row: (row[0], row[2])):
            if first > taken:
                taken = last
                yield first, last, period

    def _stretches(self) -> Iterator[tuple[int, int, int]]:
        codes = self.codes
        for period in range(2, LONGEST + 1):
            run = 0
            for i in range(period, len(codes) + 1):
                if i < len(codes) and codes[i] == codes[i - period]:
                    run += 1
                    continue
                if run >= (TIMES - 1) * period and len(set(codes[i - period : i])) > 1:
                    yield i - run - period, i - 1, period
                run = 0


def _rows(view: TraceView) -> list[_Row]:
    rows = []
    for conversation in view.once(Conversations).all:
        epochs: dict[int, list[Call]] = {}
        for call in conversation.calls:
            epochs.setdefault(call.epoch, []).append(call)
        for calls in epochs.values():
            if len(calls) >= TIMES:
                rows.append(_Row(view, calls))
    return rows


def _hit(call: Call, description: str) -> Hit:
    span = call.span
    words = quote(span, arguments_text(call.arguments) if call.arguments else "", call.name)
    return Hit(span, words or quote(span, span.input, span.name), description)


@rule(
    "repeated-call",
    "Resource Abuse",
    "MEDIUM",
    "The same tool was called three times or more with equal arguments and equal results, with no "
    "new message of the user and nothing but reading calls between; waiting tools, "
    "acknowledgements, results that say 'not yet' and repeats in other words are not covered.",
)
def repeated_call(view: TraceView) -> Iterator[Hit]:
    """The last of equal calls, one for each tool in an epoch of a conversation."""
    for row in view.once(_rows):
        looping = {i for first, last, _ in row.cycles() for i in range(first, last + 1)}
        last_of: dict[str, tuple[int, int]] = {}  # tool: position of the last call, how often
        streaks: dict[int, list[int]] = {}
        for i, (code, call) in enumerate(zip(row.codes, row.calls, strict=True)):
            if code >= 0 and i not in looping:
                streak = streaks.setdefault(code, [])
                streak.append(i)
                if len(streak) >= TIMES:
                    last_of[call.name] = i, len(streak)
            if not reads(call):  # it may have changed what others would find
                streaks = {code: streaks[code]} if code in streaks else {}
        for i, times in sorted(last_of.values()):
            name = row.calls[i].name
            yield _hit(row.calls[i], f"{name} was called {times} times with the same result")


@rule(
    "call-loop",
    "Resource Abuse",
    "HIGH",
    "Two to six different calls came round three times or more with equal arguments and equal "
    "results; rounds that differ in an argument or a result are not covered.",
)
def call_loop(view: TraceView) -> Iterator[Hit]:
    """The last call of a cycle."""
    for row in view.once(_rows):
        for first, last, period in row.cycles():
            names = ", ".join(call.name for call in row.calls[first : first + period])
            rounds = (last - first + 1) // period
            yield _hit(row.calls[last], f"the calls {names} came round {rounds} times")
