"""Calls made again in vain, and honest work that looks like it."""

from __future__ import annotations

import pytest

from tests.evaluators.traces.detectors.conftest import Trace, tool_spec

PRICE = {"item": "apple"}
PAGE = "A long page of text, the same each time it is shown. " * 6


def repeated(name: str, results: list[str], arguments: object = None, **spec: str) -> Trace:
    trace = Trace(tools=(tool_spec(name, **spec),))
    for result in results:
        trace.step(name, PRICE if arguments is None else arguments, result)
    trace.ask("Done.")
    return trace


@pytest.mark.parametrize(
    ("name", "results"),
    [
        ("get_price", ["3.20 EUR"] * 3),
        ("searchWeb", ["No results found for apple."] * 5),
        ("lookup", ['{"id": 7, "name": "apple"}'] * 3),
        ("page_down", [PAGE] * 3),
        ("weather", ["Sunny, 21 degrees"] * 4),
    ],
)
def test_the_last_of_equal_calls(name: str, results: list[str]) -> None:
    trace = repeated(name, results)
    (finding,) = trace.found()
    assert (finding.source, finding.category) == ("detector:repeated-call", "Resource Abuse")
    assert finding.span == trace.spans[-3].id  # the request before the last execution
    assert f"{len(results)} times" in finding.description


@pytest.mark.parametrize(
    ("name", "results", "spec"),
    [
        ("get_price", ["3.20 EUR"] * 2, {}),  # a retry
        ("get_price", ["3.20", "3.25", "3.20"], {}),  # results change
        ("check_job", ["pending", "pending", "pending", "done"], {}),
        ("get_order", ['{"state": "in_progress"}'] * 5, {}),
        ("job_status", ["42 of 90 parts"] * 4, {}),
        ("fetch_report", ["none so far"] * 4, {"description": "Poll this until it is there."}),
        ("wait", ["waited 5 s"] * 6, {}),
        ("next_page", ["ok"] * 4, {}),
        ("add_to_cart", ["Item added to the cart."] * 3, {}),
        ("press_key", ['{"success": true}'] * 5, {}),
        ("forward", ["moved"] * 9, {}),
        ("roll_dice", ["4"] * 3, {}),
        ("enqueue", ["Queued."] * 3, {}),
    ],
)
def test_waiting_and_acting(name: str, results: list[str], spec: dict[str, str]) -> None:
    assert repeated(name, results, **spec).found() == []


def test_the_same_failure_again() -> None:
    def tried(error: str) -> list[str]:
        trace = Trace()
        for _ in range(3):
            trace.ask("", ("book_room", {"day": "sun"}))
            trace.run("book_room", error, status="error", status_message="Tool execution failed")
        trace.ask("Done.")
        return trace.names()

    assert tried("RefusedError: closed on this day") == ["repeated-call"]
    assert tried("Error code: 429 - slow down") == ["rate-limit"]  # trying again is right
    assert tried("Request timed out.") == ["timeout"]


def test_other_arguments() -> None:
    trace = Trace()
    for page in range(1, 8):
        trace.step("search", {"q": "apple", "page": page}, "no results on this page, sorry")
    assert trace.found() == []
    order = Trace()  # the order of keys is no difference
    for arguments in ({"a": 1, "b": 2}, {"b": 2, "a": 1}, {"a": 1, "b": 2}):
        order.step("search", arguments, "nothing at all")
    assert order.names() == ["repeated-call"]


def test_work_between_calls_gives_a_reason_to_look_again() -> None:
    edited = Trace()
    for n in range(4):
        edited.step("edit_file", {"line": n}, f"changed line {n} of the file")
        edited.step("run_tests", {}, "1 failed, 12 passed")
    assert edited.found() == []
    read = Trace()
    for n in range(3):
        read.step("get_price", PRICE, "3.20 EUR")
        read.step("search_web", {"q": f"apples {n}"}, f"page {n}")
    (finding,) = read.found()
    assert finding.source == "detector:repeated-call"
    assert finding.span == "s9"  # requests and executions alternate: 1, 5, 9 ask for the price


def test_asked_again_by_the_user() -> None:
    trace = Trace()
    for _ in range(3):
        trace.step("get_price", PRICE, "3.20 EUR")
        trace.ask("It is 3.20 EUR.")
        trace.user("And now?")
    assert trace.found() == []


def test_results_that_come_back_as_user_messages() -> None:
    """smolagents shows results in messages of the user; they are no new request."""
    trace = Trace()
    for _ in range(3):
        trace.ask("", ("get_price", PRICE))
        trace.add(kind="tool", tool="get_price", input='{"item": "apple"}', output="3.20 EUR")
        trace.user("Observation:\n3.20 EUR")
    trace.ask("Done.")
    assert trace.names() == ["repeated-call"]


def test_samples_of_the_same_request_are_no_repeats() -> None:
    trace = Trace()
    before = list(trace.messages)
    for n in range(3):
        trace.messages = list(before)
        agent = trace.add(kind="agent", name="sample", id=f"agent{n}")
        trace.ask("", ("get_price", PRICE), parent_id=agent)
        trace.run("get_price", "3.20 EUR", parent_id=agent)
    assert trace.found() == []


def test_turns_of_one_agent_are_one_conversation() -> None:
    """A team of one: each turn is an agent span of its own, its messages go on."""
    trace = Trace()
    for n in range(3):
        agent = trace.add(kind="agent", name="assistant.on_messages_stream", id=f"turn{n}")
        trace.ask("", ("get_price", PRICE), parent_id=agent)
        trace.run("get_price", "3.20 EUR", parent_id=agent)
    trace.ask("Done.", parent_id=trace.add(kind="agent", name="assistant.on_messages_stream"))
    assert trace.names() == ["repeated-call"]


def test_tools_of_an_agent_whose_requests_hold_no_calls() -> None:
    trace = Trace()
    for _ in range(3):
        trace.add(kind="tool", tool="get_price", input='{"args": [], "kwargs": {"item": "apple"}}',
                  output="3.20 EUR", status="ok")  # fmt: skip
    (finding,) = trace.found()
    assert finding.span == "s3"


def test_parallel_calls_keep_their_own_results() -> None:
    trace = Trace()
    for n in range(3):
        trace.ask("", ("get_price", PRICE), ("get_price", {"item": "pear"}))
        trace.run("get_price", "3.20 EUR")
        trace.run("get_price", f"{n} EUR")
    trace.ask("Done.")
    (finding,) = trace.found()  # of apples; pears change
    assert (finding.span, "apple" in finding.evidence) == ("s7", True)


@pytest.mark.parametrize("period", [2, 3, 5])
def test_loops(period: int) -> None:
    trace = Trace()
    for _ in range(3):
        for n in range(period):
            trace.step(f"view_{'abcdef'[n]}", {"n": n}, f"this is view number {n}")
    last = trace.spans[-2].id
    trace.ask("Done.")
    (finding,) = trace.found()
    assert (finding.source, finding.span) == ("detector:call-loop", last)
    assert "came round 3 times" in finding.description


def test_rounds_that_are_no_loop() -> None:
    two = Trace()  # twice is not yet a loop
    for _ in range(2):
        two.step("lookup_a", {}, "this is the first")
        two.step("lookup_b", {}, "this is the second")
    assert two.found() == []
    moving = Trace()  # results differ from round to round
    for n in range(5):
        moving.step("lookup_a", {}, f"round {n} of a")
        moving.step("lookup_b", {}, "this is the second")
    assert moving.found("call-loop") == []
    polling = Trace()
    for _ in range(5):
        polling.step("sleep", {"s": 5}, "slept for 5 seconds")
        polling.step("get_build", {"id": 1}, "the build has 3 of 9 parts")
    assert polling.found("call-loop") == []
    game = Trace()
    for _ in range(5):
        game.step("turn_left", {}, "ok")
        game.step("forward", {}, "ok")
    assert game.found() == []
