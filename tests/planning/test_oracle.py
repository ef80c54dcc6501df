from itertools import permutations
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.agents import AgentLog, ToolEvent
from agenteval.planning.case import Activity, Before, Case, OrderRule, TimeRule
from agenteval.planning.oracle import CheckRules, ParameterError, PlanStep, Slip, check
from agenteval.planning.solver import count_plans, graph_of, schedule
from tests.golden.files import published
from tests.thorough import often

Ending = Literal["finished", "timeout", "iterations"]
STRICT = CheckRules(strict=True)
LOGGED = CheckRules(log_order=True)


def case(
    *rules: OrderRule | TimeRule, tools: str = "abc", durations: dict[str, int] | None = None
) -> Case:
    actions = tuple(Activity(phrase=f"task {t}", tool=t) for t in tools)
    return Case(id="x", actions=actions, constraints=rules, durations=durations)


def before(first: str, second: str, *sentences: int) -> OrderRule:
    return OrderRule(first=first, second=second, sentences=sentences)


def log(*turns: str, ending: Ending = "finished") -> AgentLog:
    """One string a turn, one letter a call; "!" is a call that could not be read."""
    events = [
        ToolEvent(
            name="" if call == "!" else call, turn=i, status="malformed" if call == "!" else "ok"
        )
        for i, turn in enumerate(turns)
        for call in turn
    ]
    return AgentLog(events=tuple(events), ending=ending)


def timed(*calls: tuple[str, int] | str, turns: tuple[int, ...] = ()) -> AgentLog:
    """Calls with start hours; a bare name is called without arguments."""
    events = []
    for i, call in enumerate(calls):
        name, start = (call, None) if isinstance(call, str) else call
        arguments: Any = {} if start is None else {"start_time": start}
        events.append(ToolEvent(name=name, arguments=arguments, turn=turns[i] if turns else i))
    return AgentLog(events=tuple(events))


AB = case(before("a", "b", 2))


@pytest.mark.parametrize(
    ("played", "rules", "outcome"),
    [
        (log("a", "b", "c"), CheckRules(), "pass"),
        (log("c", "b", "a"), CheckRules(), "order_error"),
        (log("b", "a"), CheckRules(), "action_lost"),
        (log(), CheckRules(), "action_lost"),
        (log("b", "a", "!"), CheckRules(), "act_error"),
        (log("b", "a", "!", ending="timeout"), CheckRules(), "timeout"),
        (log("a", "b", "c", ending="iterations"), CheckRules(), "timeout"),
        # slips that were made good
        (log("!", "a", "b", "c"), CheckRules(), "pass"),
        (log("!", "b", "a", "c"), CheckRules(), "order_error"),
        (log("!", "a", "b", "c"), STRICT, "act_error"),
        (log("a", "b", "c"), STRICT, "pass"),
        (log("!", "a", "b", "c", ending="timeout"), STRICT, "timeout"),
        # calls of one turn are simultaneous
        (log("ab", "c"), CheckRules(), "order_error"),
        (log("ba", "c"), CheckRules(), "order_error"),
        (log("ac", "b"), CheckRules(), "pass"),
        (log("a", "cb"), CheckRules(), "pass"),
        # in the order of the log
        (log("ab", "c"), LOGGED, "pass"),
        (log("ba", "c"), LOGGED, "order_error"),
        (log("a", "ab", "c"), LOGGED, "pass"),
        # repeated calls
        (log("a", "a", "c", "b", "b"), CheckRules(), "pass"),
        (log("a", "b", "a", "c"), CheckRules(), "order_error"),
        (log("b", "a", "b", "c"), CheckRules(), "order_error"),
        (log("a", "ab", "c"), CheckRules(), "order_error"),
    ],
)
def test_outcomes(played: AgentLog, rules: CheckRules, outcome: str) -> None:
    assert check(AB, played, rules).outcome == outcome


def test_all_violations_with_sentences_and_reasons() -> None:
    verdict = check(
        case(before("a", "b", 0), before("a", "c", 0, 3), before("c", "d", 1), tools="abcd"),
        log("d", "cb", "a"),
    )
    assert [(v.constraint, v.rule.sentences) for v in verdict.violated] == [
        (0, (0,)),
        (1, (0, 3)),
        (2, (1,)),
    ]
    assert [v.why for v in verdict.violated] == [
        "'a' was called as call 4, but 'b', which must come later, as call 3",
        "'a' was called as call 4, but 'c', which must come later, as call 2",
        "'c' was called as call 2, but 'd', which must come later, as call 1",
    ]
    assert [s.tool for s in verdict.sequence] == ["d", "c", "b", "a"]


def test_lost_repeated_and_slips_are_reported() -> None:
    events = (
        ToolEvent(name="a", turn=0),
        ToolEvent(name="nap", status="unknown_tool", turn=1),
        ToolEvent(name="b", status="bad_arguments", turn=2),
        ToolEvent(name="a", turn=3),
        ToolEvent(name="restart_plan", turn=4),  # no such tool in a base case, whatever is claimed
    )
    verdict = check(AB, AgentLog(events=events))
    assert (verdict.outcome, verdict.lost, verdict.repeated) == ("act_error", ("b", "c"), ("a",))
    assert verdict.slips == (
        Slip(call=2, name="nap", why="there is no such tool"),
        Slip(call=3, name="b", why="its arguments were refused"),
        Slip(call=5, name="restart_plan", why="there is no such tool"),
    )
    assert (verdict.attempts, verdict.violated) == (1, ())


HOURS = {"a": 2, "b": 1, "c": 3}
TIMED = case(
    before("a", "b", 0),
    TimeRule(tool="b", side="before", hour=15, sentences=(1,)),
    TimeRule(tool="c", side="after", hour=8, sentences=(2,)),
    durations=HOURS,
)


@pytest.mark.parametrize(
    ("played", "outcome", "violated"),
    [
        (timed(("a", 6), ("c", 8), ("b", 11)), "pass", []),
        (timed(("a", 6), ("c", 8), ("b", 14)), "pass", []),
        (timed(("a", 6), ("c", 8), ("b", 15)), "order_error", [1]),
        (timed(("c", 7), ("b", 14), ("a", 15)), "order_error", [0, 2]),
        (timed(("a", 6), ("b", 7), ("c", 8)), "parameter_error", []),
        (timed(("c", 8), ("a", 11), ("b", 0)), "parameter_error", []),
        (timed(("a", 10), ("b", 12), ("c", 22)), "parameter_error", []),
        (timed(("a", 10), ("b", 12), ("c", 21)), "pass", []),
        # every call of a repeated tool must keep the limit
        (timed(("a", 1), ("b", 3), ("c", 8), ("b", 14)), "pass", []),
        (timed(("a", 1), ("b", 3), ("c", 8), ("b", 15)), "order_error", [1]),
        (timed(("a", 1), ("b", 3)), "action_lost", []),
        (timed(("a", 1), ("b", 3), "c"), "act_error", []),
        (timed(("a", True), ("b", 3), ("c", 8)), "act_error", []),
        (timed(("a", 10), ("b", 8)), "action_lost", []),
        # calls of one turn are ordered by the times given
        (timed(("a", 6), ("b", 8), ("c", 9), turns=(0, 0, 0)), "pass", []),
        (timed(("b", 8), ("a", 9), ("c", 11), turns=(0, 0, 0)), "order_error", [0]),
    ],
)
def test_extended_outcomes(played: AgentLog, outcome: str, violated: list[int]) -> None:
    verdict = check(TIMED, played)
    assert (verdict.outcome, [v.constraint for v in verdict.violated]) == (outcome, violated)


def test_parameter_errors_in_full() -> None:
    verdict = check(TIMED, timed(("a", 10), ("b", 8), ("c", 11), ("c", 22), ("b", -1)))
    assert verdict.parameter_errors == (
        ParameterError(call=2, tool="b", given=8, earliest=12, latest=23),
        ParameterError(call=3, tool="c", given=11, earliest=12, latest=21),
        ParameterError(call=4, tool="c", given=22, earliest=14, latest=21),
        ParameterError(call=5, tool="b", given=-1, earliest=25, latest=23),
    )


def test_violations_of_extended_cases_are_explained() -> None:
    verdict = check(TIMED, timed(("c", 7), ("b", 16), ("a", 17)))
    assert [v.why for v in verdict.violated] == [
        "'a' was called as call 3, but 'b', which must come later, as call 2",
        "'b' ended at 17:00, but must end by 15:00",
        "'c' started at 7:00, but must not start before 8:00",
    ]
    assert verdict.sequence[1] == PlanStep(tool="b", start=16)


def test_the_last_attempt_is_graded() -> None:
    played = timed(("b", 8), "nowhere", ("c", 9), "restart_plan", ("a", 6), ("b", 8), ("c", 9))
    verdict = check(TIMED, played)
    assert (verdict.outcome, verdict.attempts, len(verdict.sequence)) == ("pass", 2, 3)
    assert [slip.call for slip in verdict.slips] == [2]
    assert check(TIMED, played, STRICT).outcome == "act_error"
    slipless = timed(("b", 8), ("c", 9), "restart_plan", ("a", 6), ("b", 8), ("c", 9))
    assert check(TIMED, slipless).outcome == "pass"
    whole = check(TIMED, slipless, STRICT)
    assert (whole.outcome, whole.attempts, whole.repeated) == ("parameter_error", 2, ("b", "c"))
    assert len(whole.sequence) == 5
    idle = timed(("a", 6), ("b", 8), ("c", 9), "restart_plan")
    assert check(TIMED, idle).outcome == "action_lost"
    assert check(TIMED, idle, STRICT).outcome == "pass"


@st.composite
def random_cases(draw: st.DrawFn) -> Case:
    tools = "abcde"[: draw(st.integers(1, 5))]
    name = st.sampled_from(tools)
    sentences = st.tuples(st.integers(0, 3))
    pair = st.lists(name, min_size=2, max_size=2, unique=True)
    order = st.builds(lambda p, s: before(*p, *s), pair, sentences)
    orders = st.nothing() if len(tools) < 2 else order
    rules: list[Any] = draw(st.lists(orders, max_size=0 if len(tools) < 2 else 5))
    if draw(st.booleans()):
        return case(*rules, tools=tools)
    limit = st.builds(
        TimeRule,
        tool=name,
        side=st.sampled_from(["before", "after"]),
        hour=st.integers(0, 24),
        sentences=sentences,
    )
    rules += draw(st.lists(limit, max_size=3))
    return case(*rules, tools=tools, durations={t: draw(st.integers(1, 9)) for t in tools})


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)
EVENTS = st.builds(
    ToolEvent,
    name=st.sampled_from([*"abcde", "restart_plan", ""]) | st.text(max_size=5),
    arguments=JSON | st.fixed_dictionaries({"start_time": st.integers(-2, 26) | JSON}),
    status=st.sampled_from(["ok", "ok", "ok", "unknown_tool", "bad_arguments", "malformed"]),
    turn=st.integers(0, 8),
)
LOGS = st.builds(
    AgentLog,
    events=st.lists(EVENTS, max_size=10).map(tuple),
    ending=st.sampled_from(["finished", "finished", "timeout", "iterations"]),
)
RULES = st.builds(CheckRules, strict=st.booleans(), log_order=st.booleans())


@settings(max_examples=often(80, 300), deadline=None)
@given(random_cases(), LOGS, RULES)
def test_any_log_gets_a_verdict(tested: Case, played: AgentLog, rules: CheckRules) -> None:
    verdict = check(tested, played, rules)
    assert type(verdict).model_validate_json(verdict.model_dump_json()) == verdict
    carried_out = {step.tool for step in verdict.sequence}
    assert set(verdict.lost) == {a.tool for a in tested.actions} - carried_out
    flawless = not (verdict.lost or verdict.violated or verdict.parameter_errors)
    if verdict.passed:
        assert flawless
        assert played.ending == "finished"
    if flawless and played.ending == "finished" and not verdict.slips:
        assert verdict.passed


@given(random_cases())
def test_passes_are_the_permutations_that_keep_the_orders(tested: Case) -> None:
    if tested.durations is not None:
        return
    for plan in permutations(a.tool for a in tested.actions):
        kept = all(
            plan.index(r.first) < plan.index(r.second)
            for r in tested.constraints
            if isinstance(r, OrderRule)
        )
        assert check(tested, log(*plan)).passed == kept


# Golden cases, which were worked out without this package

GOLDEN: dict[str, Any] = published("planning_cases")


def golden_cases(key: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in GOLDEN[key]]


def made(golden: dict[str, Any]) -> Case:
    orders = [OrderRule(first=f"a{a}", second=f"a{b}") for a, b in golden["constraints_before"]]
    times = [
        TimeRule(tool=f"a{a}", side=side, hour=hour)
        for a, side, hour in golden.get("time_constraints", [])
    ]
    hours = golden.get("durations")
    return Case(
        id=golden["name"],
        actions=tuple(Activity(phrase=f"a{i}", tool=f"a{i}") for i in range(1, golden["n"] + 1)),
        constraints=(*orders, *times),
        durations=hours and {f"a{i}": d for i, d in hours.items()},
    )


def test_all_golden_cases_are_here() -> None:
    assert (len(GOLDEN["base"]), len(GOLDEN["extended"])) == (14, 8)


@pytest.mark.parametrize("golden", golden_cases("base"))
def test_golden_base(golden: dict[str, Any]) -> None:
    tested = made(golden)
    orders = [Before(a - 1, b - 1) for a, b in golden["constraints_before"]]
    assert count_plans(golden["n"], orders) == golden["valid_plans"]
    assert (graph_of(golden["n"], orders) is not None) == golden["satisfiable"]
    if golden["log"] is None:
        return
    events = [ToolEvent(name=f"a{a}", turn=i) for i, a in enumerate(golden["log"])]
    if golden["flags"].get("act_error"):
        events.append(ToolEvent(name="a9", status="unknown_tool", turn=len(events)))
    ending = "timeout" if golden["flags"].get("timeout") else "finished"
    verdict = check(tested, AgentLog(events=tuple(events), ending=ending))
    assert verdict.outcome == golden["verdict"]
    assert [v.constraint for v in verdict.violated] == golden["violated"]


@pytest.mark.parametrize("golden", golden_cases("extended"))
def test_golden_extended(golden: dict[str, Any]) -> None:
    tested = made(golden)
    assert tested.hours is not None
    constraints = [s.constraint for s in tested.stated]
    assert (schedule(tested.n, constraints, tested.hours) is not None) == golden["feasible"]
    events = tuple(
        ToolEvent(name=f"a{a}", arguments={"start_time": start}, turn=i)
        for i, (a, start) in enumerate(golden["log_action_start"])
    )
    verdict = check(tested, AgentLog(events=events))
    first_time = len(golden["constraints_before"])
    violated = [
        v.constraint if v.constraint < first_time else f"t{v.constraint - first_time}"
        for v in verdict.violated
    ]
    assert verdict.outcome == golden["verdict"]
    assert violated == golden["violated"]
    assert [[int(e.tool[1:]), e.given, e.earliest] for e in verdict.parameter_errors] == golden[
        "parameter_violations"
    ]
