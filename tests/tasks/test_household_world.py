"""The rules of the household by hand-made cases, and what no sequence of commands can do."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tasks.household.layout import KINDS, SORTS, make_case
from tasks.household.world import HAND, Goal, House, Place, Thing
from tests.thorough import often

PLACES = (
    Place("fridge", "kitchen", "in", True, "cool"),
    Place("oven", "kitchen", "in", True, "heat"),
    Place("sink", "kitchen", "in", False, "wash"),
    Place("counter", "kitchen"),
    Place("desk", "study"),
    Place("chest", "study", "in", True),
    Place("desk lamp", "study", "on", False, "light"),
)
THINGS = (
    Thing("red mug", "mug", "counter"),
    Thing("blue mug", "mug", "fridge", heat="cold"),
    Thing("small potato", "potato", "counter"),
    Thing("black book", "book", "desk"),
)
MUG_TO_DESK = ("pick red mug from counter", "walk to study", "leave red mug at desk")


def after(*commands: str) -> House:
    """The house after the commands, all of which have to be possible."""
    house = House(PLACES, THINGS, "kitchen")
    for command in commands:
        reply = house.do(command)
        assert reply.ok, reply.text
    return house


@pytest.mark.parametrize(
    ("before", "command", "reason"),
    [
        ((), "pick blue mug from fridge", "shut"),
        ((), "check fridge", "shut"),
        (("pick red mug from counter",), "leave red mug at fridge", "shut"),
        ((), "pick black book from desk", "elsewhere"),
        ((), "pick red mug from sink", "absent"),
        ((), "pick moon from counter", "absent"),
        (("pick red mug from counter",), "pick small potato from counter", "full"),
        (("pick red mug from counter",), "pick red mug from counter", "full"),
        ((), "leave red mug at counter", "not held"),
        ((), "rinse red mug at sink", "not held"),
        (("pick red mug from counter",), "rinse red mug at counter", "wrong place"),
        ((), "run oven", "empty"),
        (("open oven",), "run oven", "open"),
        ((), "run fridge", "wrong place"),
        ((), "open counter", "wrong place"),
        ((), "shut fridge", "already"),
        (("open fridge",), "open fridge", "already"),
        ((), "walk to kitchen", "already"),
        ((), "walk to attic", "no such place"),
        ((), "check attic", "no such place"),
        ((), "switch on desk lamp", "elsewhere"),
        (("walk to study",), "switch off desk lamp", "already"),
        (("walk to study",), "switch on desk", "wrong place"),
        (("walk to study", "switch on desk lamp"), "study black book under desk lamp", "not held"),
        (
            ("walk to study", "pick black book from desk"),
            "study black book under desk lamp",
            "dark",
        ),
        (MUG_TO_DESK[:2], "leave red mug at desk lamp", "wrong place"),
        ((), "grab red mug from counter", "unknown"),
        ((), "", "unknown"),
        ((), "Walk to study", "unknown"),
    ],
)
def test_refusals_name_their_reason_and_change_nothing(
    before: tuple[str, ...], command: str, reason: str
) -> None:
    house = after(*before)
    state = house.state()
    reply = house.do(command)
    assert reply.reason == reason
    assert reply.text.startswith(("Not possible: ", "Not understood: "))
    assert house.state() == state


def test_what_is_seen() -> None:
    house = after()
    assert house.do("check counter").text == "On the counter: a red mug, a small potato."
    assert house.do("open fridge").text == "The fridge swings open. In the fridge: a blue mug."
    assert house.do("check sink").text == "There is nothing in the sink."
    walked = house.do("walk to study").text
    assert walked == "You are in the study now. Here: desk, chest (shut), desk lamp (off)."
    house.do("switch on desk lamp")
    house.do("open chest")
    assert house.do("check desk lamp").text == "The desk lamp is on."
    house.do("walk to kitchen")
    assert house.do("walk to study").text.endswith("chest (open), desk lamp (on).")


def test_put() -> None:
    goal = Goal("put", "mug", "desk")
    assert not after(*MUG_TO_DESK[:2]).holds(goal)
    house = after(*MUG_TO_DESK)
    assert house.holds(goal)
    assert not house.holds(Goal("put", "book", "counter"))
    house.do("pick red mug from desk")
    assert not house.holds(goal), "taken away again"


def test_put_two() -> None:
    goal = Goal("put two", "mug", "desk", 2)
    one = after(*MUG_TO_DESK)
    assert not one.holds(goal)
    for command in ("walk to kitchen", "open fridge", "pick blue mug from fridge", "walk to study"):
        one.do(command)
    assert not one.holds(goal)
    one.do("leave blue mug at desk")
    assert one.holds(goal)


def test_clean() -> None:
    goal = Goal("clean", "mug", "desk", treatment="clean")
    assert not after(*MUG_TO_DESK).holds(goal)
    assert after(MUG_TO_DESK[0], "rinse red mug at sink", *MUG_TO_DESK[1:]).holds(goal)


BAKE = ("pick small potato from counter", "open oven", "leave small potato at oven", "shut oven")
SERVE = ("open oven", "pick small potato from oven", "walk to study", "leave small potato at desk")


def test_heat_needs_the_oven_shut_and_run() -> None:
    goal = Goal("heat", "potato", "desk", treatment="hot")
    assert not after(*BAKE, *SERVE).holds(goal)
    assert after(*BAKE, "run oven", *SERVE).holds(goal)
    assert not after(*BAKE, "run oven").holds(goal)


def test_cool_needs_the_fridge_shut_on_it_and_the_last_treatment_counts() -> None:
    goal = Goal("cool", "potato", "counter", treatment="cold")
    into = ("pick small potato from counter", "open fridge", "leave small potato at fridge")
    out = ("pick small potato from fridge", "leave small potato at counter")
    assert not after(*into, *out).holds(goal)
    cold = after(*into, "shut fridge", "open fridge", *out)
    assert cold.holds(goal)
    for command in (*BAKE, "run oven", *SERVE[:2], "leave small potato at counter"):
        assert cold.do(command).ok
    assert not cold.holds(goal), "it is hot now"


def test_examine_needs_the_lamp_lit_when_it_is_studied() -> None:
    goal = Goal("examine", "book", "desk lamp")
    way = ("walk to study", "pick black book from desk")
    lit = (*way, "switch on desk lamp")
    assert not after(*lit).holds(goal)
    house = after(*lit, "study black book under desk lamp")
    assert house.holds(goal)
    assert not house.holds(Goal("examine", "mug", "desk lamp"))


@pytest.mark.parametrize("kind", KINDS)
def test_layouts_pose_a_goal_that_is_open_and_can_be_reached(kind: str) -> None:
    for seed in range(60):
        case = make_case(kind, seed)
        house = case.house()
        names = [t.name for t in case.things]
        wanted = [t for t in case.things if t.noun == case.goal.noun]
        assert make_case(kind, seed) == case
        assert len(names) == len(set(names))
        assert not house.holds(case.goal)
        assert len(wanted) >= case.goal.count
        assert all(t.spot in house.places and t.spot != case.goal.place for t in wanted)
        need = case.goal.treatment
        assert need == "none" or need in SORTS[case.goal.noun].treatments
        fit = {"clean": "wash", "hot": "heat", "cold": "cool"}.get(need)
        assert fit is None or any(p.power == fit for p in case.places)
        assert (house.places[case.goal.place].power == "light") is (kind == "examine")


PLACE_NAMES = [p.name for p in PLACES]
THING_NAMES = [t.name for t in THINGS]
place, thing = st.sampled_from(PLACE_NAMES), st.sampled_from(THING_NAMES)
command = st.one_of(
    st.builds("walk to {}".format, st.sampled_from(["kitchen", "study", "attic"])),
    st.builds("{} {}".format, st.sampled_from(["check", "open", "shut", "run"]), place),
    st.builds("pick {} from {}".format, thing, place),
    st.builds("leave {} at {}".format, thing, place),
    st.builds("rinse {} at {}".format, thing, place),
    st.builds("study {} under {}".format, thing, place),
    st.builds("switch {} {}".format, st.sampled_from(["on", "off"]), place),
    st.just("hands"),
)


@settings(max_examples=often(60, 150), deadline=None)
@given(st.lists(command, max_size=60))
def test_nothing_is_lost_doubled_or_moved_behind_doors(commands: list[str]) -> None:
    house = House(PLACES, THINGS, "kitchen")
    for text in commands:
        before, shut = dict(house.things), set(PLACE_NAMES) - house.open
        reply = house.do(text)
        assert sorted(house.things) == sorted(THING_NAMES)
        shown = [n for p in PLACE_NAMES for n in house.inside(p)] + [*house.inside(HAND)]
        assert sorted(shown) == sorted(THING_NAMES), "each thing is at exactly one place"
        assert len(house.inside(HAND)) <= 1
        moved = [n for n in THING_NAMES if before[n].spot != house.things[n].spot]
        assert len(moved) <= 1
        doors = {p.name for p in PLACES if p.closes} & shut
        spots = {before[n].spot for n in moved} | {house.things[n].spot for n in moved}
        assert not spots & doors
        assert [n for n in THING_NAMES if house.things[n].noun != before[n].noun] == []
        assert reply.text
