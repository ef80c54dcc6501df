"""Recorded trajectories are replayed on the tool shed of docs/recorded.md."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.workflows.cases import open_role
from agenteval.workflows.final_state import as_json, changes_of, restored
from agenteval.workflows.session import SessionFailure, SessionLog
from agenteval.workflows.trajectories import Trajectory, case_of, read_trajectories, replayed

SHED = Path(__file__).parents[2] / "docs/tool_shed"
ROLE = open_role(SHED)
M1 = {"has": [], "overdue": False}


def call(name: str, arguments: Any, id: str = "c") -> dict[str, Any]:
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    function = {"name": name, "arguments": text}
    return {"role": "assistant", "tool_calls": [{"id": id, "function": function}]}


def answer(content: Any, id: str = "c") -> dict[str, Any]:
    text = content if isinstance(content, str) else json.dumps(content)
    return {"role": "tool", "tool_call_id": id, "content": text}


HELLO = {"role": "user", "content": "Hello"}
BYE = {"role": "user", "content": "###STOP###"}
FIND = call("find_member", {"member": "M1"})


def record(*messages: Any, **more: Any) -> dict[str, Any]:
    task = {"actions": [], "outputs": [], "instruction": "Look."}
    return {"task_id": 7, "trial": 0, "info": {"task": task}, "traj": list(messages), **more}


def read(tmp_path: Path, value: Any, name: str = "a.json") -> tuple[list[Trajectory], list[str]]:
    path = tmp_path / name
    path.write_text(json.dumps(value), encoding="utf-8")
    return read_trajectories([path])


def replay(tmp_path: Path, *messages: Any, **more: Any) -> SessionLog | SessionFailure:
    (one,) = read(tmp_path, record(HELLO, *messages, **more))[0]
    return replayed(case_of(ROLE, one), one)


@pytest.mark.parametrize(
    ("messages", "status", "differing"),
    [
        ((FIND, answer(M1)), "ok", 0),
        ((FIND,), "ok", 0),  # a log may end before the answer
        ((FIND, answer({"has": ["saw"], "overdue": False})), "ok", 1),
        ((call("find_member", {"member": "M9"}), answer("Error: none")), "bad_arguments", 0),
        (
            (call("take_back", {"member": "M9", "tool": "saw"}), answer("Error: 'M9'")),
            "bad_arguments",
            0,
        ),
        ((call("find_member", {"name": "M1"}), answer("no")), "bad_arguments", 0),
        ((call("find_member", "not json"), answer("no")), "bad_arguments", 0),
        ((call("find_person", {}), answer("Unknown action find_person")), "unknown_tool", 0),
    ],
)
def test_what_becomes_of_a_call(
    tmp_path: Path, messages: tuple[Any, ...], status: str, differing: int
) -> None:
    log = replay(tmp_path, *messages)
    assert isinstance(log, SessionLog)
    assert [c.status for c in log.calls] == [status]
    assert len(log.differing) == differing
    assert log.changes == ()


@pytest.mark.parametrize(
    ("messages", "status", "told"),
    [
        (
            (call("find_membr", {}), answer("ok")),
            "unscored:unsupported",
            "it calls 'find_membr', which is not a tool of the role; did you mean find_member?",
        ),
        (
            (call("take_back", {"member": "M9", "tool": "saw"}), answer({"fee": 0})),
            "unscored:unsupported",
            "defect of the backend: take_back raised KeyError: 'M9'",
        ),
    ],
)
def test_what_cannot_be_replayed_has_no_verdict(
    tmp_path: Path, messages: tuple[Any, ...], status: str, told: str
) -> None:
    failure = replay(tmp_path, *messages)
    assert isinstance(failure, SessionFailure)
    assert (failure.status, failure.who) == (status, "tools")
    assert told in failure.message


@pytest.mark.parametrize(
    ("asked", "told", "changed"),
    [
        ({"member": "M1", "tool": "drill"}, {"back_by": "2031-05-21"}, True),
        ({"member": "M1", "tool": "drill"}, "Error: system down", False),  # it was refused then
        ({"member": "M9", "tool": "drill"}, "Error: 'M9'", False),  # the method breaks half way
    ],
)
def test_a_call_that_was_refused_changes_nothing(
    tmp_path: Path, asked: dict[str, str], told: Any, changed: bool
) -> None:
    log = replay(tmp_path, call("lend", asked), answer(told))
    assert isinstance(log, SessionLog)
    assert bool(log.changes) == changed


def test_results_of_tau2_bench(tmp_path: Path) -> None:
    actions = [{"action_id": "1", "name": "find_member", "arguments": {"member": "M1"}}]
    task = {"id": "7", "evaluation_criteria": {"actions": actions, "communicate_info": ["no"]}}
    found = {"role": "tool", "id": "k", "content": json.dumps(M1), "requestor": "assistant"}
    asked = {"id": "k", "name": "find_member", "arguments": {"member": "M1"}}
    messages = [HELLO, {"role": "assistant", "content": None, "tool_calls": [asked]}, found, BYE]
    run = {"id": "s", "task_id": "7", "trial": 2, "reward_info": {"reward": 1.0}}
    run |= {"messages": messages, "termination_reason": "user_stop"}
    (one,) = read(tmp_path, {"tasks": [task], "simulations": [run]})[0]
    assert (one.task, one.trial, one.reward) == ("7", 2, 1.0)
    assert one.goal is not None
    assert [(a.tool, a.arguments) for a in one.goal.actions] == [("find_member", {"member": "M1"})]
    assert one.goal.told == ("no",)
    log = replayed(case_of(ROLE, one), one)
    assert isinstance(log, SessionLog)
    assert [(c.tool, c.status, c.answered) for c in log.calls] == [
        ("find_member", "ok", "recorded")
    ]


def test_a_session_of_another_tool_names_the_commands_that_read_it(tmp_path: Path) -> None:
    line = {"type": "user", "sessionId": "s", "message": {"role": "user", "content": "Hi"}}
    with pytest.raises(InputError) as refusal:
        read(tmp_path, line)
    for word in ("a.json", "Claude Code", "quantify", "trace"):
        assert word in str(refusal.value)


def test_a_session_that_never_was_has_the_goal_of_its_task(tmp_path: Path) -> None:
    crashed = {"task_id": 7, "trial": 1, "info": {"error": "boom"}, "traj": []}
    _, lost = read(tmp_path, [record(HELLO), crashed])[0]
    failure = replayed(case_of(ROLE, lost), lost)
    assert isinstance(failure, SessionFailure)
    assert failure.message == "boom"
    (alone,) = read(tmp_path, [crashed])[0]
    with pytest.raises(InputError, match="boom"):
        case_of(ROLE, alone)


def test_ids_that_come_again_and_calls_side_by_side(tmp_path: Path) -> None:
    lend = call("lend", {"member": "M1", "tool": "drill"})["tool_calls"][0]
    both = {
        "role": "assistant",
        "content": "thinking",
        "tool_calls": [{**FIND["tool_calls"][0], "id": "a"}, {**lend, "id": "b"}],
    }
    done = {"role": "assistant", "content": "Done."}
    answers = answer({"back_by": "x"}, "b"), answer(M1, "a")
    log = replay(tmp_path, FIND, answer("first"), both, *answers, done, BYE, reward=1.0)
    assert isinstance(log, SessionLog)
    assert [json.loads(c.result) if "{" in c.result else c.result for c in log.calls] == [
        "first",
        M1,
        {"back_by": "x"},
    ]
    assert (log.turns, log.ended, log.reward, log.differing) == (1, "user", 1.0, (0, 2))
    assert {c.path: c.value for c in log.changes or ()} == {
        ("tools", "drill"): "out",
        ("members", "M1", "has", 0): "drill",
    }


def test_calls_that_are_written_as_text(tmp_path: Path) -> None:
    def act(name: str, **arguments: Any) -> dict[str, Any]:
        text = json.dumps({"name": name, "arguments": arguments})
        return {"role": "assistant", "content": f"Thought: so.\nAction:\n{text}"}

    output = {"role": "user", "content": f"API output: {json.dumps(M1)}"}
    log = replay(
        tmp_path, act("find_member", member="M1"), output, act("respond", content="Nothing."), BYE
    )
    assert isinstance(log, SessionLog)
    (found,) = log.calls
    assert (found.tool, found.status, json.loads(found.result)) == ("find_member", "ok", M1)
    assert [m.content for m in log.messages if m.role == "assistant"][1:] == ["Nothing."]
    assert (log.turns, log.differing) == (1, ())


@pytest.mark.parametrize(
    ("value", "told"),
    [
        (3, "a trajectory must be an object"),
        ({"task_id": 1}, "needs a list of messages in `traj` or `messages`"),
        (record(HELLO, trial=-1), "trial must be a number from 0, not -1"),
        (record(HELLO, reward="good"), "reward must be a number, not 'good'"),
        (record(HELLO, reward=10**400), "reward must be a number, not 1000"),
        (record(HELLO, reward=True), "reward must be a number, not True"),
        (record({"role": "wizard"}), "traj[0] has no known role"),
        (record(HELLO, info={"task": {"actions": [{"kwargs": {}}]}}), "actions must be objects"),
        (record(HELLO, info={"task": {"actions": [], "outputs": "15"}}), "outputs must be a list"),
    ],
)
def test_a_record_that_is_none_is_named_and_the_rest_goes_on(
    tmp_path: Path, value: Any, told: str
) -> None:
    trajectories, problems = read(tmp_path, [value, record(HELLO)])
    assert [one.place for one in trajectories] == [f"{tmp_path / 'a.json'}[1]"]
    (problem,) = problems
    assert problem.startswith(f"{tmp_path / 'a.json'}[0]: ")
    assert told in problem


def test_whose_session_it_was(tmp_path: Path) -> None:
    (one,) = read(
        tmp_path, {"id": "x y", "actions": [{"name": "respond", "kwargs": {}}], "messages": [HELLO]}
    )[0]
    case = case_of(ROLE, one)
    assert case.profile.actions == ()
    assert case.recorded
    wrong = {"messages": [HELLO], "actions": [{"name": "sell", "arguments": {}}]}
    (one,) = read(tmp_path, wrong)[0]
    with pytest.raises(InputError, match="what was wanted calls 'sell', which is not a tool"):
        case_of(ROLE, one)
    (one,) = read(tmp_path, [HELLO])[0]  # bare messages
    with pytest.raises(
        InputError, match=r"it does not name a task \(`task_id`\), and it has no `actions`"
    ):
        case_of(ROLE, one)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(0, 2) | st.sampled_from(["", "x"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=8,
)


@given(begin=JSON, end=JSON)
def test_changes_lead_from_one_state_to_the_other(begin: Any, end: Any) -> None:
    before = json.dumps(begin)
    assert json.dumps(restored(begin, changes_of(begin, end)), sort_keys=True) == json.dumps(
        end, sort_keys=True
    )
    assert json.dumps(begin) == before


@pytest.mark.parametrize("state", ["{'a': [1], 'b': {}}", "defaultdict(list, {'a': [1], 'b': {}})"])
def test_a_refused_call_leaves_the_state_as_a_deep_copy_of_it_would(
    tmp_path: Path, state: str
) -> None:
    """Lists that are at two places of the state stay one list, also after a refusal."""
    (tmp_path / "policy.md").write_text("Count.", encoding="utf-8")
    (tmp_path / "backend.py").write_text(
        f"from collections import defaultdict\nstate = {state}\n\n"
        "def share() -> None:\n    state['b']['too'] = state['a']\n\n"
        "def add(n: int) -> None:\n    state['a'].append(n)\n"
        "    if n > 5:\n        raise ValueError('too many')\n",
        encoding="utf-8",
    )
    calls = [("add", {"n": 2}), ("share", {}), ("add", {"n": 9}), ("add", {"n": 3})]
    messages = [call(name, arguments, str(i)) for i, (name, arguments) in enumerate(calls)]
    (one,) = read(tmp_path, record(HELLO, *messages))[0]
    log = replayed(case_of(open_role(tmp_path), one), one)
    assert isinstance(log, SessionLog)
    assert [c.status for c in log.calls] == ["ok", "ok", "bad_arguments", "ok"]
    end = {"a": [1, 2, 3], "b": {"too": [1, 2, 3]}}
    assert restored({"a": [1], "b": {}}, log.changes or ()) == end


def test_a_backend_keeps_its_references_into_the_state_after_a_refused_call(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("Count.", encoding="utf-8")
    (tmp_path / "backend.py").write_text(
        "class Backend:\n    def __init__(self) -> None:\n"
        "        self.state = {'orders': {'a': [1]}, 'last': None}\n"
        "        self.orders = self.state['orders']\n\n"
        '    def add(self, name: str, n: int) -> None:\n        """Add."""\n'
        "        self.state['last'] = self.orders.setdefault(name, [])\n"
        "        self.orders[name].append(n)\n"
        "        if n > 5:\n            raise ValueError('too many')\n",
        encoding="utf-8",
    )
    steps = [("a", 9), ("b", 9), ("a", 2)]
    messages = [call("add", {"name": name, "n": n}, name + str(n)) for name, n in steps]
    (one,) = read(tmp_path, record(HELLO, *messages))[0]
    log = replayed(case_of(open_role(tmp_path), one), one)
    assert isinstance(log, SessionLog)
    assert [c.status for c in log.calls] == ["bad_arguments", "bad_arguments", "ok"]
    end = restored({"orders": {"a": [1]}, "last": None}, log.changes or ())
    assert end == {"orders": {"a": [1, 2]}, "last": [1, 2]}


@given(value=JSON | st.just((1,)) | st.floats(allow_nan=False), base=JSON)
def test_a_copy_that_shares_parts_is_the_copy(value: Any, base: Any) -> None:
    for pair in ((value, base), ({"a": value, "b": 1}, {"a": base, "b": True})):
        copied = as_json(pair[0], "", pair[1])
        assert repr(copied) == repr(json.loads(json.dumps(pair[0])))
