"""The page of a workflow campaign: what it says, where it puts it, bounds and escapes."""

from __future__ import annotations

import re

import pytest

from agenteval.agents import AgentFailure
from agenteval.records import Message, ToolCall
from agenteval.reporting.page import Fragment
from agenteval.workflows.conformance import Deviation
from agenteval.workflows.equality import Judgement
from agenteval.workflows.page import headlines, workflows_page
from agenteval.workflows.page_sessions import MOST_ITEMS, chosen, session_items, talk, wrong_turns
from agenteval.workflows.results import (
    CaseInfo,
    SessionResult,
    SessionVerdict,
    TurnResult,
)
from agenteval.workflows.session import (
    Prediction,
    SessionCall,
    SessionFailure,
    SessionLog,
    SimulatorMistake,
)
from agenteval.workflows.session_judge import GoalsFailure, GoalsVerdict, GoalVerdict
from agenteval.workflows.tallies import Tallies
from agenteval.workflows.turn_score import TurnVerdict
from tests.reporting.making import Seen, assert_harmless
from tests.support.browser import Open

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\u202e\u200b\x1b[31m$x$&amp;"


def said(role, text="", *calls, of=None):
    made = tuple(ToolCall(name=name, arguments=given, id=id) for name, given, id in calls)
    return Message(role=role, content=text, tool_calls=made, tool_call_id=of)


def called(tool, given, result, turn, step=0, status="ok", answered="backend"):
    return SessionCall(
        tool=tool, arguments=given, result=result, turn=turn, step=step, status=status,
        answered=answered,
    )  # fmt: skip


LOG = SessionLog(
    messages=(
        said("user", "A room, please."),
        said("assistant", "I look it up", ("find", {"day": "Monday"}, "c1")),
        said("tool", "{found}", of="c1"),
        said("assistant", "Which one?"),
        said("user", "The first."),
        said("assistant", "", ("book", {"room": 7}, "c2")),
        said("tool", "no such room", of="c2"),
        said("assistant", "Done."),
    ),
    calls=(
        called("find", {"day": "Monday"}, "{found}", 0),
        called("", "{room 7", "not readable", 1, 0, "malformed", "refused"),
        called("book", {"room": 7}, "no such room", 1, 1, "bad_arguments", "refused"),
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
JUDGE = GoalsVerdict(
    goals=(
        GoalVerdict(goal="Book a room.", achieved=True, evidence="It is booked", reason="says so"),
        GoalVerdict(goal="Ask the price.", achieved=False),
    ),
    achieved=1, total=2, said=False,
)  # fmt: skip


def case(task="r/s/ann", **more):
    return CaseInfo(
        level="session", id=task, task=task, role="r", domain="D", scenarios=("s",),
        persona="Ann, in a hurry.", goals=("Book a room.", "Ask the price."), **more,
    )  # fmt: skip


def verdict(success=False, **more):
    given = {
        "decided_by": "state" if success is not None else None, "progress": 0.5,
        "right": 1, "gold": 2, "generated": 3, "conforms": False, "fitness": 0.25,
        "cause": "wrong_order" if success is False else None,
    }  # fmt: skip
    return SessionVerdict(success=success, **given | more)


FULL = verdict(
    state_success=False, state_goals=(False, True), differences=("/rooms/7: 1, gold 0",),
    judge=JUDGE, deviations=DEVIATIONS, nodes=("A", "B", "C"), edges=(("A", "B"), ("B", "C")),
    unchecked=1,
)  # fmt: skip


def session(success=False, task="r/s/ann", system="a · text", log=LOG, **more):
    made = more.pop("verdict", None) or verdict(success)
    return SessionResult(case(task), system, "a", "text", {}, more.get("trial", 0), log, made)


def lost(task="r/s/bob", message="connection <refused>", who="tools"):
    log = SessionFailure(status="error:infrastructure", message=message, who=who)
    return SessionResult(case(task), "a · text", "a", "text", {}, 0, log, None)


def turn(given, gold='book({"room": 1, "day": "Monday"})', system="t · code", index=3, **more):
    info = CaseInfo(
        level="turn", id=f"r/s/rec:{index}", task="r/s/rec", role="r", domain="D",
        scenarios=("s",), said="The first.", gold=gold,
    )  # fmt: skip
    told = {"form": given.form, "gold_call": True, **more}
    return TurnResult(
        info, system, "t", "code", {}, 0, given, TurnVerdict(session="rec", turn=index, **told)
    )


WRONG = turn(
    Prediction(form="call", tool="book", arguments={"room": 7, "cat": True}),
    call="wrong", name_right=True, gold_parameters=2, given_parameters=2,
    parameters=(Judgement(tool="book", parameter="room", gold=1, given=7, verdict="different",
                          by="exact"),),
)  # fmt: skip


def test_the_head_says_what_was_found() -> None:
    """3 of 4 users succeed: 30 to 95% by Wilson; one failure, one that nobody could decide."""
    four = [session(i > 0, f"r/s/u{i}") for i in range(4)]
    page = workflows_page([*four, lost(), session(None, "r/s/eve")], [WRONG], title="May")
    words = Seen(page).words.replace("\u00a0", " ")
    assert "a · text succeeds in 75% (95% interval 30 to 95%) of 4 sessions" in words
    assert "commonest cause of failure: wrong order (1 of 1)" in words
    assert "1 session without a verdict, 1 undecided, in no rate" in words
    assert "t · code, single turns: 0%" in words
    assert "tools, error:infrastructure: connection <refused>" in words
    tiles = re.findall(r"<dt>([^<]+)</dt><dd>([^<]+)</dd></div>", page)
    assert dict(tiles) == {
        "systems": "2", "sessions": "6", "succeeded": "3", "failed": "1", "not decided": "2",
        "single turns": "1", "right calls": "0", "wrong turns": "1", "no prediction": "0",
        "address the judge": "0 of 6",
    }  # fmt: skip


def test_nothing_at_all_and_nothing_decided_are_pages_too() -> None:
    empty = Seen(workflows_page([], [])).words
    assert "There is no trial." in empty
    assert "None could be drawn." in empty
    words = Seen(workflows_page([lost()], [])).words
    assert "a · text: no session is decided (1 session without a verdict)." in words
    assert "Why sessions failed: there are no failed sessions to draw" in words
    assert "Success in sessions: there is no rate to draw" in words
    stored = session()
    waiting = SessionResult(
        stored.case, stored.system, "a", "text", {}, 0, LOG, None
    )  # fmt: skip
    assert headlines(Tallies([waiting])) == [
        "a · text: no session is decided (not judged yet); 2 of 3 calls could not be carried out "
        "(bad arguments 1, malformed 1)."
    ]


def words_of(block):
    """The text of a block or head, with that of the blocks in it."""
    if isinstance(block, str | Fragment):
        return block if isinstance(block, str) else block.text
    if isinstance(block, tuple | list):
        return "".join(map(words_of, block))
    if hasattr(block, "cards"):
        return " | ".join(f"{words_of(c.head)} {words_of(c.blocks)}" for c in block.cards)
    own = getattr(block, "text", None) or getattr(block, "lines", None) or ()
    return words_of(own)


def test_the_talk_has_every_call_with_its_answer_and_deviations_at_their_calls() -> None:
    cards, rest = talk("s", LOG, DEVIATIONS)
    assert rest == 0
    assert [(c.kind, c.head) for c in cards] == [
        ("user", "user, turn 1"), ("thought", "agent, to itself"),
        ("call wrong", "call 1, answered by the backend"), ("agent", "agent"),
        ("user", "user, turn 2"), ("call refused", "call 2, malformed"), ("missing", "not done"),
        ("call wrong", "call 3, refused"), ("agent", "agent"), ("missing", "not done"),
    ]  # fmt: skip
    by_id = {c.id: words_of(c.blocks) for c in cards if c.id}
    assert set(by_id) == {"s-c1", "s-c2", "s-c3", "s-end"}
    assert "wrong order: too early (edge A → B)" in by_id["s-c1"]
    assert by_id["s-c2"].startswith("(no tool could be read)")
    assert by_id["s-c3"] == "bookroom = 7no such roomtool use: room: 7, gold 1 (node B)"
    missing = [words_of(c.blocks) for c in cards if c.kind == "missing"]
    assert missing == ["missing step quote", "missing step confirm"]


def test_calls_asked_for_at_once_get_their_own_answers() -> None:
    log = SessionLog(
        messages=(
            said("user", "x"),
            said("assistant", "", ("f", {"n": 1}, "1"), ("g", {}, "2"), ("f", {"n": 2}, "3")),
        ),
        calls=tuple(called(t, g, r, 0) for t, g, r in
                    (("f", {"n": 2}, "two"), ("f", {"n": 1}, "one"), ("g", {}, "gee"))),
        ended="agent",
    )  # fmt: skip
    cards, _ = talk("s", log, ())
    calls = [tuple(map(words_of, c.blocks)) for c in cards if c.kind == "call"]
    assert calls == [("f", "n = 2", "two"), ("f", "n = 1", "one"), ("g", "gee")]


def test_a_call_that_no_message_or_no_log_has_is_shown_all_the_same() -> None:
    quiet = SessionLog(messages=(said("user", "x"),), calls=LOG.calls[:1], ended="agent")
    cards, _ = talk("s", quiet, ())
    assert [c.kind for c in cards] == ["user", "call"]
    unlogged = SessionLog(messages=LOG.messages[:2], ended="agent")
    cards, _ = talk("s", unlogged, ())
    assert cards[-1].head == "no answer is known"


def test_long_talks_are_bounded_and_say_so() -> None:
    many = SessionLog(
        messages=tuple(said("user", "w" * 9_000) for _ in range(500)), ended="turns", turns=15
    )
    cards, rest = talk("s", many, ())
    assert (len(cards), rest) == (MOST_ITEMS, 500 - MOST_ITEMS)
    assert "[… cut: 2,000 of 9,000 characters]" in words_of(cards[0].blocks)
    assert len(workflows_page([session(log=many)], [])) < 600_000


def test_a_session_shows_goals_walk_state_mistakes_and_who_decided() -> None:
    (item,) = session_items([session(verdict=FULL)])
    right = item.blocks[-1].right
    badges = [[p.kind for p in line if isinstance(p, Fragment) and "badge" in p.kind]
              for line in next(b for b in right if b.title == "Goals").lines]  # fmt: skip
    assert badges == [["badge drop", "badge keep"], ["badge keep", "badge drop"]]
    walk = next(b for b in right if b.title == "Walk through the chart").lines
    assert [node[0].kind for node in walk] == ["off", "off", ""]  # marked where off
    words = Seen(workflows_page([session(verdict=FULL)], [])).words
    for expected in (
        "“It is booked” is not in the conversation", "/rooms/7: 1, gold 0",
        "1 of 2 transitions hang on the user's will", "user: repeats itself · turn 2: The first.",
        "1 right of 3 made, 2 gold", "decided bythe final state", "Ann, in a hurry.",
        "before call 3: missing step quote", "at the end: missing step confirm",
        "call 3: tool use book: room: 7, gold 1 (node B)",
    ):  # fmt: skip
        assert expected in words


def test_what_judge_and_state_do_not_say_is_said() -> None:
    failure = GoalsFailure(status="unscored:parse", message="no JSON")
    words = Seen(workflows_page([session(verdict=verdict(None, judge=failure))], [])).words
    assert "The judge gave no verdict (unscored:parse): no JSON" in words
    assert "There is no final state to compare." in words
    assert "decided bynobody could" in words
    same = Seen(workflows_page([session(verdict=verdict(state_success=False))], [])).words
    assert "a result that they obtain was never obtained" in same


def test_failed_ones_first_systems_take_turns_and_the_rest_is_counted() -> None:
    short = SessionLog(messages=LOG.messages[:1], ended="user")
    results = [
        session(True, "r/s/a", "x · text"), session(None, "r/s/b", "x · text"),
        session(False, "r/s/c", "x · text"), session(False, "r/s/d", "x · text", short),
        session(False, "r/s/e", "y · text"), lost(),
    ]  # fmt: skip
    some, known = chosen(results, 4)
    assert ([r.case.task[-1] for r in some], known) == (["d", "e", "c", "b"], 5)
    page = workflows_page(results, [], most_sessions=2)
    assert "2 of 5 sessions with a verdict" in page
    assert page.count('<details class="case">') == 2
    assert "<h2>Sessions</h2>" not in workflows_page(results, [], most_sessions=0)


def test_wrong_turns_say_what_differs() -> None:
    reply = Prediction(form="reply", response="Which room?")
    nothing = Prediction(form="unreadable")
    other = Prediction(form="call", tool="find", arguments={}, node="Q")
    results = [
        WRONG,
        turn(reply, index=5),
        turn(nothing, index=7),
        turn(other, index=9, call="wrong", name_right=False, node_right=False),
        turn(other, "Hello.", index=11, gold_call=False, call="wrong"),
        turn(other, index=13, call="right", name_right=True),
    ]
    found, in_all = wrong_turns(results, 10)
    assert in_all == 5
    assert [(t.badges[0].text, tuple(t.blocks[-1].lines)) for t in found] == [
        ("wrong call",
         ("room: 7, gold 1", 'day: not given, gold "Monday"', "cat: true, which gold has not")),
        ("no call", ("a call was due, not a reply",)),
        ("unreadable", ("neither call nor reply could be read; due was a call",)),
        ("wrong call", ("another tool was due", "says that it stands at node Q: wrong")),
        ("call instead of a reply", ("a reply was due, not a call",)),
    ]  # fmt: skip
    facts = {name: words_of(text) for name, text in found[0].blocks[0].pairs}
    assert facts["predicted"] == 'book({"room": 7, "cat": true})'
    words = Seen(workflows_page([], results)).words
    assert "All 5 wrong turns." in words


def test_turns_without_a_prediction_are_listed_with_their_reasons() -> None:
    gone = TurnResult(
        WRONG.case, "t · code", "t", "code", {}, 0,
        AgentFailure(status="error:infrastructure", message="it <b>crashed</b>"), None,
    )  # fmt: skip
    words = Seen(workflows_page([], [WRONG, gone])).words
    assert "The one turn without a prediction." in words
    assert "error:infrastructure: it <b>crashed</b>" in words


def test_the_same_results_give_the_same_page_and_anchors_are_unique() -> None:
    results = [session(verdict=FULL), session(), session(True, "r/s/z"), lost()]
    page = workflows_page(results, [WRONG])
    assert workflows_page(results, [WRONG]) == page
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    links = re.findall(r'href="#([^"]+)"', page)
    assert set(links) <= set(ids)


def test_hostile_words_stay_words() -> None:
    log = SessionLog(
        messages=(said("user", HOSTILE), said("assistant", HOSTILE, (HOSTILE, {HOSTILE: 1}, "1")),
                  said("system", HOSTILE), said("assistant", HOSTILE)),
        calls=(called(HOSTILE, {HOSTILE: HOSTILE}, HOSTILE, 0), called("f", HOSTILE, HOSTILE, 0)),
        mistakes=(SimulatorMistake(who="tools", kind=HOSTILE, turn=0, text=HOSTILE),),
        ended="user",
    )  # fmt: skip
    goal = GoalVerdict(goal=HOSTILE, achieved=True, evidence=HOSTILE, reason=HOSTILE)
    bad = verdict(
        differences=(HOSTILE,), nodes=(HOSTILE,), state_success=False,
        judge=GoalsVerdict(goals=(goal,), achieved=1, total=1, said=False),
        deviations=(
            Deviation(cause="tool_use", at=0, tool=HOSTILE, node=HOSTILE, detail=HOSTILE),
            Deviation(cause="missing_step", at=2, tool=HOSTILE, edge=(HOSTILE, HOSTILE)),
        ),
    )  # fmt: skip
    info = CaseInfo(
        level="session", id=HOSTILE, task=HOSTILE, role=HOSTILE, domain=HOSTILE,
        scenarios=(HOSTILE,), persona=HOSTILE, goals=(HOSTILE, HOSTILE), said=HOSTILE, gold=HOSTILE,
    )  # fmt: skip
    gone = SessionFailure(status="error:infrastructure", message=HOSTILE)
    calls = Prediction(form="call", tool=HOSTILE, arguments={HOSTILE: HOSTILE}, thought=HOSTILE,
                       further=(HOSTILE,))  # fmt: skip
    page = workflows_page(
        [SessionResult(info, HOSTILE, HOSTILE, "text", {}, 0, log, bad),
         SessionResult(info, HOSTILE, HOSTILE, "code", {}, 1, gone, None)],
        [TurnResult(info, HOSTILE, HOSTILE, "text", {}, 0, calls, WRONG.verdict),
         TurnResult(info.model_copy(update={"id": f"{HOSTILE}:3"}), HOSTILE, HOSTILE, "text", {},
                    1, AgentFailure(status="error:infrastructure", message=HOSTILE), None)],
        title=HOSTILE, facts=[(HOSTILE, HOSTILE)],
    )  # fmt: skip
    assert_harmless(page)


@pytest.mark.slow
@pytest.mark.xdist_group("browser")
def test_in_a_browser_nothing_sticks_out_and_a_link_unfolds_its_call(open_page: Open) -> None:
    results = [session(verdict=FULL), session(False, "r/s/" + "x" * 300, "y" * 300)]
    watched = open_page(workflows_page(results, [WRONG]), width=390)
    page = watched.page
    assert page.locator(".call").first.is_visible() is False
    anchor = page.evaluate("document.querySelector('.call[id$=c3]').id")
    page.evaluate(f"location.hash = '{anchor}'")
    page.wait_for_function("document.querySelector('.case').open")
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert watched.quiet, (watched.console, watched.requests)


def ended(how, task, *statuses):
    calls = tuple(called("t", {}, "", 0, status=status) for status in statuses)
    return session(True, task, log=SessionLog(ended=how, turns=1, calls=calls))


def test_ends_without_a_goodbye_are_said_at_the_top_above_a_tenth():
    nine = [ended("user", f"r/s/{i}", "ok") for i in range(9)]
    (line,) = headlines(Tallies([*nine, ended("turns", "r/s/x", "malformed")]))
    assert "goodbye" not in line  # one of ten is no more than a tenth
    assert "could not be carried out" not in line
    more = [ended("turns", "r/s/x", "malformed"), ended("agent", "r/s/y", "unknown_tool")]
    (line,) = headlines(Tallies([*nine, *more]))
    assert (
        "2 of 11 sessions ended without the user's goodbye (limit of turns 1, agent stopped or "
        "silent 1); 2 of 11 calls could not be carried out (malformed 1, unknown tool 1)."
    ) in line


def test_figures_that_could_not_be_drawn_stand_below_the_others():
    page = workflows_page([session(True)], [])
    at = page.index("Figures that could not be drawn")
    assert page.index("<h2>Figures</h2>") < at < page.index("<h2>Tables</h2>")
    assert "Why sessions failed: " in page[at:]
    assert page.count("Figures that could not be drawn") == 1
    assert "The one session with a verdict." in page


def test_a_session_in_which_nothing_was_said_is_shown() -> None:
    silent = session(log=SessionLog(ended="agent"))
    assert talk("s", silent.log, ()) == ([], 0)
    assert "Nothing was said." in Seen(workflows_page([silent], [])).words
