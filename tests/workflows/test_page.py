"""The page of workflows: what it says, where it puts it, bounds and escapes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from agenteval.agents import AgentFailure
from agenteval.records import Message, ToolCall
from agenteval.workflows.conformance import Deviation
from agenteval.workflows.equality import Judgement
from agenteval.workflows.judges import GoalsVerdict, GoalVerdict, JudgeFailure
from agenteval.workflows.reports import trials_report
from agenteval.workflows.results import CaseInfo, SessionResult, SessionVerdict, TurnResult
from agenteval.workflows.scores import TurnVerdict
from agenteval.workflows.session import (
    Prediction,
    SessionCall,
    SessionFailure,
    SessionLog,
    SimulatorMistake,
)
from tests.reporting.making import Seen, assert_harmless

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\u200b\x1b[31m$x$&amp;"


def message(role, text="", *calls, of=None):
    requested = tuple(ToolCall(name=n, arguments=arguments, id=id) for n, arguments, id in calls)
    return Message(role=role, content=text, tool_calls=requested, tool_call_id=of)


def called(tool, arguments, result, turn, status="ok"):
    answered = "backend" if status == "ok" else "refused"
    return SessionCall(
        tool=tool, arguments=arguments, result=result, turn=turn, status=status, answered=answered
    )


LOG = SessionLog(
    messages=(
        message("user", "A room, please."),
        message("assistant", "I look it up", ("find", {"day": "Monday"}, "c1")),
        message("tool", "{found}", of="c1"),
        message("assistant", "Which one?"),
        message("user", "The first."),
        message("assistant", "", ("book", {"room": 7}, "c2")),
        message("tool", "no such room", of="c2"),
        message("assistant", "Done."),
    ),
    calls=(
        called("find", {"day": "Monday"}, "{found}", 0),
        called("", "{room 7", "not readable", 1, "malformed"),
        called("book", {"room": 7}, "no such room", 1, "bad_arguments"),
    ),
    mistakes=(SimulatorMistake(who="user", kind="repeats itself", turn=1, text="The first."),),
    ended="user",
    turns=2,
)
DEVIATIONS = (
    Deviation(cause="wrong_order", at=0, tool="find", edge=("A", "B"), detail="too early"),
    Deviation(cause="missing_step", at=2, tool="quote"),
    Deviation(cause="tool_use", at=2, tool="book", node="B", detail="room: 7, gold 1"),
    Deviation(cause="missing_step", at=3, tool="confirm"),
)
ACHIEVED = GoalVerdict(
    goal="Book a room.", achieved=True, evidence="It is booked", reason="says so"
)
MISSED = GoalVerdict(goal="Ask the price.", achieved=False)
JUDGE = GoalsVerdict(goals=(ACHIEVED, MISSED), achieved=1, total=2, said=False)


def verdict(success=False, **more):
    fields = {
        "decided_by": "state" if success is not None else None,
        "progress": 0.5,
        "right": 1,
        "gold": 2,
        "generated": 3,
        "conforms": False,
        "fitness": 0.25,
        "cause": "wrong_order" if success is False else None,
    }
    return SessionVerdict(success=success, **fields | more)


FULL = verdict(
    state_success=False,
    state_goals=(False, True),
    differences=("/rooms/7: 1, gold 0",),
    judge=JUDGE,
    deviations=DEVIATIONS,
    nodes=("A", "B", "C"),
    edges=(("A", "B"), ("B", "C")),
    unchecked=1,
)


def session(success=False, task="r/s/ann", system="a · text", log=LOG, verdict_=None):
    info = CaseInfo(
        level="session",
        id=task,
        task=task,
        role="r",
        domain="D",
        scenarios=("s",),
        persona="Ann, in a hurry.",
        goals=("Book a room.", "Ask the price."),
    )
    judged = None if isinstance(log, SessionFailure) else verdict_ or verdict(success)
    return SessionResult(info, system, "a", "text", {}, 0, log, judged)


LOST = session(
    task="r/s/bob",
    log=SessionFailure(status="error:infrastructure", message="connection <refused>", who="tools"),
)


def turn(prediction, gold='book({"room": 1, "day": "Monday"})', index=3, **more):
    info = CaseInfo(
        level="turn",
        id=f"r/s/rec:{index}",
        task="r/s/rec",
        role="r",
        domain="D",
        scenarios=("s",),
        said="The first.",
        gold=gold,
    )
    judged = None
    if isinstance(prediction, Prediction):
        fields = {"form": prediction.form, "gold_call": True, **more}
        judged = TurnVerdict(session="rec", turn=index, **fields)
    return TurnResult(info, "t · code", "t", "code", {}, 0, prediction, judged)


ROOM = Judgement(tool="book", parameter="room", gold=1, given=7, verdict="different", by="exact")
WRONG = turn(
    Prediction(form="call", tool="book", arguments={"room": 7, "cat": True}),
    call="wrong",
    name_right=True,
    gold_parameters=2,
    given_parameters=2,
    parameters=(ROOM,),
)


def workflows_page(sessions, turns, most_sessions=100):
    return trials_report(sessions, turns, ()).page(most_sessions)


def words_of(sessions, turns=()):
    """The words of the page, in their order."""
    return Seen(workflows_page(sessions, turns)).words.replace("\u00a0", " ")


def assert_in_order(words, *expected):
    at = 0
    for text in expected:
        at = words.find(text, at)
        assert at >= 0, text
        at += len(text)


def test_the_head_says_what_was_found() -> None:
    """3 of 4 users succeed: 30 to 95% by Wilson; one failure, one that nobody could decide."""
    four = [session(i > 0, f"r/s/u{i}") for i in range(4)]
    page = workflows_page([*four, LOST, session(None, "r/s/eve")], [WRONG])
    words = Seen(page).words.replace("\u00a0", " ")
    assert "a · text succeeds in 75% (95% interval 30 to 95%) of 4 sessions" in words
    assert "most common cause of failure: wrong order (1 of 1)" in words
    assert "1 session without a verdict, 1 undecided, excluded from rates" in words
    assert "t · code, single turns: 0%" in words
    assert "no session: error:infrastructure" in words
    assert "connection <refused>" in words
    tiles = dict(re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd></div>", page))
    assert [tiles[name] for name in ("sessions", "succeeded", "failed", "not decided")] == list(
        "6312"
    )
    assert [tiles[name] for name in ("single turns", "wrong turns", "no prediction")] == list("110")
    assert tiles["address the judge"] == "0 of 6"


def test_nothing_at_all_and_nothing_decided_are_pages_too() -> None:
    empty = words_of([])
    assert "There are no trials." in empty
    assert "None could be drawn." in empty
    words = words_of([LOST])
    assert "a · text: no session has a verdict (1 session without a verdict)." in words
    assert "Why sessions failed: no failed sessions to draw" in words
    assert "Success in sessions: there are no rates to draw" in words
    silent = words_of([session(log=SessionLog(ended="agent"))])
    assert "There are no messages." in silent


def test_the_conversation_has_every_call_with_its_answer_and_deviations_at_their_calls() -> None:
    assert_in_order(
        words_of([session(verdict_=FULL)]),
        *("user, turn 1", "A room, please.", "agent, to itself", "I look it up"),
        *("call 1, answered by the backend", "find", "day = "),
        *("wrong order: too early", "(edge A → B)", "agent", "Which one?"),
        *("user, turn 2", "The first.", "call 2, malformed", "(no tool could be read)"),
        *("not done", "missing step quote", "call 3, refused", "book", "room = 7"),
        *("no such room", "tool use: room: 7, gold 1", "(node B)", "Done."),
        *("not done", "missing step confirm"),
    )


def test_calls_without_a_message_or_without_an_answer_are_shown() -> None:
    requested = (("f", {"n": 1}, "1"), ("g", {}, "2"), ("h", {"n": 2}, "3"))
    log = SessionLog(
        messages=(message("user", "x"), message("assistant", "", *requested)),
        calls=(called("f", {"n": 1}, "one", 0), called("g", {}, "gee", 0)),
        ended="agent",
    )
    assert_in_order(words_of([session(log=log)]), "n = 1", "one", "gee", "the answer is unknown")
    quiet = SessionLog(messages=log.messages[:1], calls=log.calls[:1], ended="agent")
    assert_in_order(words_of([session(log=quiet)]), "user, turn 1", "call 1", "n = 1", "one")


def test_long_conversations_are_bounded() -> None:
    messages = tuple(message("user", "w" * 9_000) for _ in range(500))
    page = workflows_page([session(log=SessionLog(messages=messages, ended="turns", turns=15))], [])
    words = Seen(page).words
    assert "… and 420 more" in words
    assert "[… cut: 2,000 of 9,000 characters]" in words
    assert len(page) < 600_000


def test_a_session_shows_goals_walk_state_mistakes_and_who_decided() -> None:
    words = words_of([session(verdict_=FULL)])
    assert_in_order(words, "Ann, in a hurry.", "Goals", "final state", "judge", "Book a room.")
    for expected in (
        "“It is booked” is not in the conversation",
        "/rooms/7: 1, gold 0",
        "1 of 2 transitions depend on the user's choice",
        "user: repeats itself · turn 2: The first.",
        "1 right of 3 made, 2 gold",
        "decided bythe final state",
        "before call 3: missing step quote",
        "at the end: missing step confirm",
        "call 3: tool use book: room: 7, gold 1 (node B)",
    ):
        assert expected in words
    failure = JudgeFailure(status="unscored:parse", message="no JSON")
    undecided = words_of([session(verdict_=verdict(None, judge=failure))])
    assert "The judge gave no verdict (unscored:parse): no JSON" in undecided
    assert "There is no final state to compare." in undecided
    assert "decided bynobody could" in undecided
    same = words_of([session(verdict_=verdict(state_success=False))])
    assert "a result that they obtain is missing" in same


def test_failed_ones_first_systems_take_turns_and_the_others_are_counted() -> None:
    short = SessionLog(messages=LOG.messages[:1], ended="user")
    results = [
        session(True, "r/s/a", "x · text"),
        session(None, "r/s/b", "x · text"),
        session(False, "r/s/c", "x · text"),
        session(False, "r/s/d", "x · text", short),
        session(False, "r/s/e", "y · text"),
        LOST,
    ]
    page = workflows_page(results, [], most_sessions=4)
    titles = re.findall(r"r/s/(\w) · ", page[page.index("<h2>Sessions</h2>") :])
    assert titles[:4] == ["d", "e", "c", "b"]
    assert "4 of 5 sessions with a verdict" in page
    assert page.count('<details class="case">') == 4
    assert "<h2>Sessions</h2>" not in workflows_page(results, [], most_sessions=0)


def test_wrong_turns_say_what_differs() -> None:
    other = Prediction(form="call", tool="find", arguments={}, node="Q")
    turns = [
        WRONG,
        turn(Prediction(form="reply", response="Which room?"), index=5),
        turn(Prediction(form="unreadable"), index=7),
        turn(other, index=9, call="wrong", name_right=False, node_right=False),
        turn(other, "Hello.", index=11, gold_call=False, call="wrong"),
        turn(other, index=13, call="right", name_right=True),
        turn(AgentFailure(status="error:infrastructure", message="it <b>crashed</b>"), index=15),
    ]
    assert_in_order(
        words_of([], turns),
        *("All 5 wrong turns.", "wrong call", 'book({"room": 7, "cat": true})'),
        *("room: 7, gold 1", 'day: not given, gold "Monday"', "cat: true, which is not in gold"),
        *("no call", "a call was expected, not a reply"),
        *("unreadable", "neither a call nor a reply could be read; expected was a call"),
        *("another tool was expected", "names the wrong node, Q"),
        *("call instead of a reply", "a reply was expected, not a call"),
    )
    assert "it <b>crashed</b>" in words_of([], turns)  # in the table of missing predictions


def test_the_same_results_give_the_same_page_and_anchors_are_unique() -> None:
    results = [session(verdict_=FULL), session(), session(True, "r/s/z"), LOST]
    page = workflows_page(results, [WRONG])
    assert workflows_page(results, [WRONG]) == page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    assert set(re.findall(r'href="#([^"]+)"', page)) <= set(ids)


def test_hostile_words_stay_words() -> None:
    log = SessionLog(
        messages=(
            message("user", HOSTILE),
            message("assistant", HOSTILE, (HOSTILE, {HOSTILE: 1}, "1")),
            message("system", HOSTILE),
            message("assistant", HOSTILE),
        ),
        calls=(called(HOSTILE, {HOSTILE: HOSTILE}, HOSTILE, 0), called("f", HOSTILE, HOSTILE, 0)),
        mistakes=(SimulatorMistake(who="tools", kind=HOSTILE, turn=0, text=HOSTILE),),
        ended="user",
    )
    goal = GoalVerdict(goal=HOSTILE, achieved=True, evidence=HOSTILE, reason=HOSTILE)
    judged = verdict(
        differences=(HOSTILE,),
        nodes=(HOSTILE,),
        state_success=False,
        judge=GoalsVerdict(goals=(goal,), achieved=1, total=1, said=False),
        deviations=(
            Deviation(cause="tool_use", at=0, tool=HOSTILE, node=HOSTILE, detail=HOSTILE),
            Deviation(cause="missing_step", at=2, tool=HOSTILE, edge=(HOSTILE, HOSTILE)),
        ),
    )
    texts = dict.fromkeys(("id", "task", "role", "domain", "persona", "said", "gold"), HOSTILE)
    info = CaseInfo(level="session", **texts, scenarios=(HOSTILE,), goals=(HOSTILE, HOSTILE))
    turn_info = info.model_copy(update={"id": f"{HOSTILE}:3"})
    gone = SessionFailure(status="error:infrastructure", message=HOSTILE)
    failure = AgentFailure(status="error:infrastructure", message=HOSTILE)
    calls = Prediction(
        form="call", tool=HOSTILE, arguments={HOSTILE: HOSTILE}, thought=HOSTILE, further=(HOSTILE,)
    )
    names = (HOSTILE, HOSTILE, "text", {})
    page = workflows_page(
        [SessionResult(info, *names, 0, log, judged), SessionResult(info, *names, 1, gone, None)],
        [
            TurnResult(info, *names, 0, calls, WRONG.verdict),
            TurnResult(turn_info, *names, 1, failure, None),
        ],
    )
    assert_harmless(page)


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_in_a_browser_nothing_sticks_out_and_a_link_unfolds_its_call(open_page: Any) -> None:
    results = [session(verdict_=FULL), session(False, "r/s/" + "x" * 300, "y" * 300)]
    watched = open_page(workflows_page(results, [WRONG]), width=390)
    page = watched.page
    assert page.locator(".call").first.is_visible() is False
    anchor = page.evaluate("document.querySelector('.call[id$=c3]').id")
    page.evaluate(f"location.hash = '{anchor}'")
    page.wait_for_function("document.querySelector('.case').open")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert watched.quiet, (watched.console, watched.requests)
