"""The parts of a world by themselves: dice, notation, demands, refusals, health, damage."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.traces.plant.endpoint import BROKEN_FINALS, damage, damage_final
from agenteval.evaluators.traces.plant.policy import (
    Call,
    Final,
    Mind,
    Seen,
    Thinking,
    in_words,
    obey,
    read,
    think,
)
from agenteval.evaluators.traces.plant.service import (
    model_refusal,
    refusal,
    sick,
    too_long,
)
from agenteval.evaluators.traces.plant.system import MARKS, demand
from agenteval.evaluators.traces.plant.world import STYLES, Dice, World


def test_dice_are_seeded_and_pick_everything() -> None:
    first, same = Dice("a", 1), Dice("a", 1)
    assert [first.between(0, 9) for _ in range(50)] == [same.between(0, 9) for _ in range(50)]
    assert [Dice("a", n).between(0, 999) for n in range(9)] != [Dice("b", n).between(0, 999)
                                                               for n in range(9)]  # fmt: skip
    dice = Dice("c")
    assert {dice.pick("xyz") for _ in range(100)} == set("xyz")
    assert sorted(dice.some(range(5), 5)) == [0, 1, 2, 3, 4]


@given(
    st.dictionaries(st.text("ab_", min_size=1), st.text() | st.integers(), max_size=4), st.data()
)
def test_damaged_arguments_never_begin_with_json(
    values: dict[str, object], data: st.DataObject
) -> None:
    text = json.dumps(values, ensure_ascii=False)
    broken = damage(text, Dice(data.draw(st.integers())))
    with pytest.raises(ValueError):
        json.JSONDecoder().raw_decode(broken)


@pytest.mark.parametrize("how", BROKEN_FINALS)
def test_damaged_answers_are_no_json(how: str) -> None:
    with pytest.raises(ValueError):
        json.loads(damage_final(json.dumps({"order": "ORD-1", "total": 3.5}), how))


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
@pytest.mark.parametrize("style", sorted(STYLES))
def test_refusals_have_the_form_they_claim(status: int, style: str) -> None:
    answer = refusal(status, style, Dice(status, style), "/orders/1")
    assert answer.status == status
    if "json" in answer.content_type:
        assert isinstance(json.loads(answer.body), dict)
    if answer.content_type == "text/html":
        assert str(status) in answer.body


@pytest.mark.parametrize("status", [401, 403, 404, 429, 500, 503])
def test_a_model_refuses_with_the_status(status: int) -> None:
    assert model_refusal(status, Dice(status), "/v1").status == status
    assert {too_long(9, 5, Dice(n)).status for n in range(9)} == {400}


@pytest.mark.parametrize(
    ("state", "statuses"),
    [
        ({"key_good": False}, [401, 401]),
        ({"forbidden": True}, [403, 403]),
        ({"down": True, "spared": 1}, [None, 503]),
        ({"down": True, "healthy_after": 1}, [503, None]),
        ({"quota": 1}, [None, 429]),
        ({"quota": 0, "healthy_after": 2}, [429, 429, None]),
        ({"defect": True}, [500, 500]),
        ({"gone": True}, [404, 404]),
        ({}, [None, None]),
    ],
)
def test_a_service_refuses_as_its_state_says(
    tmp_path: Path, state: dict[str, object], statuses: list[int | None]
) -> None:
    world = World(tmp_path, Dice("x"))
    for name, value in state.items():
        setattr(world.service, name, value)
    seen = [
        sick(world, world.service, lambda c: refusal(c, "plain", world.dice, "/")) for _ in statuses
    ]
    assert [answer and answer.status for answer in seen] == statuses
    # nobody announced a fault, so every refusal is a surprise and none is gold
    assert len(world.surprises) == len([s for s in statuses if s])
    assert not world.acts


def test_only_the_first_refusal_is_gold(tmp_path: Path) -> None:
    world = World(tmp_path, Dice("x"))
    world.is_wrong("Rate Limiting", "too many", "LOW")
    world.requests = 1
    world.entered("look", "ab")
    world.note("Rate Limiting", "429")
    world.left()
    world.requests = 2
    world.note("Rate Limiting", "429")
    assert [(a.category, a.call, a.request, a.impact) for a in world.acts] == [
        ("Rate Limiting", 0, -1, "LOW")
    ]


def _two_steps(mind: Mind) -> Thinking:
    first = yield Call("one", {"q": mind.request})
    second = yield Call("two", {"after": first})
    yield Final(f"{first} and {second}")


def _seen(*observations: str) -> Seen:
    return Seen("", "go", observations, react=False)


def test_a_policy_is_replayed_over_what_it_is_shown() -> None:
    def step(*observations: str, broken: int | None = None) -> object:
        seen = _seen(*observations)
        return think(_two_steps, Mind(seen, Dice("m")), seen, broken)

    assert step() == Call("one", {"q": "go"})
    assert step("a") == Call("two", {"after": "a"})
    assert step("a", "b") == Final("a and b")
    assert step("a", "b", "c") is None  # it would have ended before
    assert step("unreadable", broken=0) == Call("one", {"q": "go"})
    assert step("unreadable", "a", broken=0) == Call("two", {"after": "a"})


def test_both_notations_are_read_alike() -> None:
    call, told = Call("one", {"q": 1}, "why"), "seen"
    chat = [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "go"},
        in_words(call, False, 0),
        {"role": "tool", "content": told, "tool_call_id": "call_0000"},
    ]
    react = [
        *chat[:2],
        in_words(call, True, 0),
        {"role": "user", "content": f"Observation: {told}"},
    ]
    one = read({"messages": chat, "tools": [{}]})
    other = read({"messages": react})
    assert (
        (one.request, one.observations) == (other.request, other.observations) == ("go", ("seen",))
    )
    assert (other.react, one.react) == (True, False)
    assert read({"messages": chat[2:], "tools": [{}]}).request is None


@pytest.mark.parametrize("seed", range(12))
def test_demands_are_understood_in_all_their_wordings(seed: int) -> None:
    dice, keys = Dice(seed), ("order", "total")
    final = Final("It costs 3. That is all.", {"order": "A", "total": 3})
    said = obey(final, demand("json", dice, keys)).text
    assert json.loads(said) == {"order": "A", "total": 3}
    assert obey(final, demand("short", dice, keys)).text == "It costs 3."
    assert obey(final, demand("mark", dice, keys)).text.splitlines()[-1] in MARKS
    assert obey(final, demand("none", dice, keys)).text == final.text
