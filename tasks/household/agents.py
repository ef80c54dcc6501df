"""Three scripted agents: one way of deciding, three profiles of attention, memory and patience."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from .beliefs import Beliefs, Step
from .layout import MISTAKEN_FOR, SORTS, Case
from .voice import Voice
from .world import Goal, Reply


@dataclass(frozen=True, slots=True)
class Profile:
    """Probabilities. `per run` ones are drawn once, the others at every turn that offers them."""

    plans: tuple[float, float, float, float]  # per run: none, vague, with a gap, full
    tidy: float  # per run: searches usual places first, room by room
    misread: float  # per run: takes one part of the goal wrongly
    skip: float  # per run: will not think of the treatment or of the second thing
    review: float  # per run: goes over goal and deeds before finishing, and mends what is missing
    linger: float  # per run: does not notice that it is done and goes on looking about
    forget: float  # a checked place is forgotten
    mix_up: float  # a seen thing is believed elsewhere
    slip: float  # a command is worded freely, or given before what it needs
    stubborn: float  # a refused command is given again
    rut: float  # begins to repeat a pair of commands
    leave_rut: float
    hasty: float  # declares the goal reached once it has handled the thing
    weary: float  # gives up, at each turn of a long search


PROFILES = {
    "atlas": Profile(
        plans=(0.05, 0.15, 0.15, 0.65),
        tidy=0.9,
        misread=0.15,
        skip=0.22,
        review=0.5,
        linger=0.2,
        forget=0.04,
        mix_up=0.05,
        slip=0.06,
        stubborn=0.1,
        rut=0.005,
        leave_rut=0.7,
        hasty=0.025,
        weary=0.03,
    ),
    "birch": Profile(
        plans=(0.2, 0.4, 0.25, 0.15),
        tidy=0.5,
        misread=0.15,
        skip=0.3,
        review=0.3,
        linger=0.4,
        forget=0.2,
        mix_up=0.12,
        slip=0.09,
        stubborn=0.15,
        rut=0.01,
        leave_rut=0.6,
        hasty=0.035,
        weary=0.035,
    ),
    "cedar": Profile(
        plans=(0.15, 0.3, 0.2, 0.35),
        tidy=0.7,
        misread=0.12,
        skip=0.12,
        review=0.3,
        linger=0.35,
        forget=0.03,
        mix_up=0.02,
        slip=0.13,
        stubborn=0.7,
        rut=0.06,
        leave_rut=0.2,
        hasty=0.045,
        weary=0.045,
    ),
}
_FREE_WORDING = (
    ("walk to ", "go to "),
    ("pick ", "grab "),
    ("leave ", "put "),
    ("rinse ", "wash "),
    ("run ", "start "),
    ("check ", "look at "),
    ("shut ", "close "),
    ("study ", "read "),
)


class Agent:
    """One agent in one run. `turn` takes the reply to its last command, None at the start."""

    def __init__(self, profile: Profile, case: Case, rng: random.Random) -> None:
        self.profile, self.rng, self.true_goal = profile, rng, case.goal
        places = {p.name: p for p in case.places}
        self.mind = Beliefs(places, self._read(case, profile.misread), case.start)
        self.tidy = rng.random() < profile.tidy
        self.skips = rng.random() < profile.skip
        self.reviews = rng.random() < profile.review
        self.lingers = rng.random() < profile.linger
        self.order = {name: rng.random() for name in places}
        self.voice = Voice(rng, self.mind)
        self.last: Step | None = None
        self.cycle: list[Step] = []
        self.turns = self.repeats = 0
        self.resume = ""

    def turn(self, reply: Reply | None) -> tuple[str, str]:
        """The thought and the command of the next turn. A thought may be empty."""
        if reply is not None and self.last is not None:
            self.mind.learn(self.last, reply)
            if reply.reason == "dark":
                self.skips = False  # the lamp has been brought to mind
        self.turns += 1
        self.resume = ""
        step = self._choose(reply)
        self.last = step
        if self.turns == 1:
            return self.voice.plan(self._plan_kind(), step), step.action
        return self.voice.think(self.resume or step.why, step, reply), step.action

    def farewell(self, reply: Reply) -> str:
        """What the agent says when the session ended, after `reply`, without a declared stop."""
        if self.last is not None:
            self.mind.learn(self.last, reply)
        if self.mind.finished():
            return self.voice.closing("late done", self.mind.placed)
        return self.voice.closing("late open", self.mind.placed)

    # --- choice -------------------------------------------------------------------------------

    def _choose(self, reply: Reply | None) -> Step:
        if step := self._in_rut():
            return step
        if reply is not None and not reply.ok and self.last:
            if self.rng.random() < self.profile.stubborn * 0.8**self.repeats:
                self.repeats += 1
                return replace(self.last, why="again")
            self.resume = "refused"
        self.repeats = 0
        self._lapse()
        if step := self._stop_early():
            return step
        step = self._want()
        if step.why == "finish":
            step = self._before_finish(step)
        if self.turns > 1 and step.why != "finish":
            corrected = reply is not None and reply.reason == "unknown"
            step = step if corrected else self._slip(step)
            self._enter_rut(step)
        return step

    def _in_rut(self) -> Step | None:
        if not self.cycle:
            return None
        if self.rng.random() < self.profile.leave_rut:
            self.cycle = []
            self.resume = "snap"
            return None
        self.cycle = self.cycle[1:] + self.cycle[:1]
        return self.cycle[-1]

    def _enter_rut(self, step: Step) -> None:
        """From the next turn on, repeat what belongs to this step instead of going further."""
        if self.rng.random() >= self.profile.rut or step.why.startswith("linger"):
            return
        place = self.mind.places.get(step.place)
        if step.action.startswith("open ") and place:
            pair = (Step("rut", f"shut {place.name}", place.name), step)
        elif step.action.startswith("walk to ") and place:
            pair = (Step("rut", f"walk to {self.mind.room}"), step)
        elif place and place.power == "none":
            pair = (Step("rut", f"check {place.name}", place.name),) * 2
        else:
            pair = (Step("rut", "hands"),) * 2
        self.cycle = [replace(s, why="rut") for s in pair]

    def _lapse(self) -> None:
        if self.rng.random() < self.profile.forget:
            self.mind.forget_place(self.rng)
        if self.rng.random() < self.profile.mix_up:
            self.mind.mix_up(self.rng)

    def _stop_early(self) -> Step | None:
        mind = self.mind
        if mind.finished():
            return None
        busy = mind.hand is not None or mind.inside is not None or bool(mind.placed)
        if busy and self.rng.random() < self.profile.hasty:
            return Step("finish", "finish done")
        long = len(mind.checked) >= 5 and not busy and mind.target() is None
        if long and self.rng.random() < self.profile.weary:
            return Step("give up", "finish given up")
        return None

    def _before_finish(self, step: Step) -> Step:
        if self.reviews:
            self.reviews = False
            if self._review():
                self.resume = "review"
                return self._want()
        if self.lingers:
            self.lingers = self.rng.random() < 0.8
            return self._linger()
        return step

    def _linger(self) -> Step:
        place = self.mind.goal.place
        if step := self.mind.way_in(place, "linger"):
            return replace(step, why="linger")
        if self.rng.random() < 0.5:
            return Step("linger", f"check {place}", place)
        others = sorted({p.room for p in self.mind.places.values()} - {self.mind.room})
        return Step("linger", f"walk to {self.rng.choice(others)}")

    def _slip(self, step: Step) -> Step:
        if self.rng.random() >= self.profile.slip:
            return step
        ahead = step.why.partition(":")[2]
        if ahead and self.rng.random() < 0.6:
            return self._ahead(step, ahead)
        for plain, free in _FREE_WORDING:
            if step.action.startswith(plain):
                return replace(step, action=free + step.action.removeprefix(plain))
        return step

    def _ahead(self, step: Step, why: str) -> Step:
        """The command that a walk or a door was to prepare, given too soon."""
        place, hand, target = step.place, self.mind.hand, self.mind.target()
        if why == "fetch" and target:
            return Step(why, f"pick {target} from {place}", place, target)
        if why in ("deliver", "insert") and hand:
            return Step(why, f"leave {hand} at {place}", place, hand)
        return Step(why, f"check {place}", place) if why == "search" else step

    # --- goal ---------------------------------------------------------------------------------

    def _read(self, case: Case, misread: float) -> Goal:
        goal = case.goal
        if self.rng.random() >= misread:
            return goal
        readings = [replace(goal, noun=SORTS[goal.noun].like)]
        if goal.kind != "examine":
            boxes = [p.name for p in case.places if p.power == "none" and p.name != goal.place]
            near = [p for p in boxes if p in MISTAKEN_FOR.get(goal.place, ())]
            readings.append(replace(goal, place=self.rng.choice(near or boxes)))
        return self.rng.choice(readings)

    def _review(self) -> bool:
        """Compare what was done with the goal as written; True when something is left to do."""
        mind = self.mind
        mind.goal, self.skips = self.true_goal, False
        need = self.true_goal.treatment
        if need != "none":
            mind.treated = {thing for thing, effect in mind.done_to if effect == need}
        for thing, place in list(mind.placed.items()):
            fits = thing.endswith(" " + mind.goal.noun) and place == mind.goal.place
            if not fits or (need != "none" and thing not in mind.treated):
                del mind.placed[thing]
        return not mind.finished()

    def _plan_kind(self) -> str:
        draw, kinds = self.rng.random(), ("none", "vague", "gap", "full")
        for kind, share in zip(kinds, self.profile.plans, strict=True):
            draw -= share
            if draw < 0:
                return kind
        return "full"

    # --- what to do next ------------------------------------------------------------------------

    def _want(self) -> Step:
        mind = self.mind
        if self._content():
            return Step("finish", "finish done")
        if mind.inside:
            return self._treat_inside(mind.inside)
        if mind.hand:
            return self._carry(mind.hand)
        target = mind.target()
        if not target:
            return self._search()
        place = mind.seen[target]
        if step := mind.way_in(place, "fetch"):
            return step
        return Step("fetch", f"pick {target} from {place}", place, target)

    def _content(self) -> bool:
        enough = 1 if self.skips else self.mind.goal.count
        return len(self.mind.placed) >= enough

    def _carry(self, thing: str) -> Step:
        mind, goal = self.mind, self.mind.goal
        if not thing.endswith(" " + goal.noun) or thing in mind.placed:
            return self._put_away(thing)
        if goal.kind == "examine":
            return self._examine(thing, goal.place)
        if goal.treatment != "none" and thing not in mind.treated and not self.skips:
            return self._treat(thing)
        if step := mind.way_in(goal.place, "deliver"):
            return step
        return Step("deliver", f"leave {thing} at {goal.place}", goal.place, thing)

    def _examine(self, thing: str, lamp: str) -> Step:
        if step := self.mind.walk_first(lamp, "lamp"):
            return step
        if lamp not in self.mind.lit and not self.skips:
            return Step("lamp", f"switch on {lamp}", lamp, thing)
        return Step("study", f"study {thing} under {lamp}", lamp, thing)

    def _treat(self, thing: str) -> Step:
        power = {"clean": "wash", "hot": "heat", "cold": "cool"}[self.mind.goal.treatment]
        fit = [p for p in self.mind.places.values() if p.power == power]
        place = min(fit, key=lambda p: (p.room != self.mind.room, p.name)).name
        if power == "wash":
            if step := self.mind.walk_first(place, "wash"):
                return step
            return Step("wash", f"rinse {thing} at {place}", place, thing)
        if step := self.mind.way_in(place, "insert"):
            return step
        return Step("insert", f"leave {thing} at {place}", place, thing)

    def _treat_inside(self, thing: str) -> Step:
        mind = self.mind
        place = mind.seen.get(thing)
        if place is None:
            mind.inside = None
            return self._search()
        if step := mind.walk_first(place, "treat"):
            return step
        if thing not in mind.treated and not self.skips:
            if place in mind.open:
                return Step("close", f"shut {place}", place, thing)
            if mind.places[place].power == "heat":
                return Step("treat", f"run {place}", place, thing)
        if step := mind.way_in(place, "take out"):
            return step
        return Step("take out", f"pick {thing} from {place}", place, thing)

    def _put_away(self, thing: str) -> Step:
        here = [p for p in self.mind.places.values() if p.room == self.mind.room]
        free = [p.name for p in here if p.power == "none" and not p.closes]
        boxes = [p.name for p in here if p.closes and p.name in self.mind.open]
        place = (free or boxes or [here[0].name])[0]
        return Step("put away", f"leave {thing} at {place}", place, thing)

    def _search(self) -> Step:
        mind, homes = self.mind, SORTS[self.mind.goal.noun].homes
        places = [p.name for p in mind.places.values() if p.power != "light"]
        if mind.checked >= set(places):
            mind.checked.clear()  # all seen, nothing found: from the beginning
        left = [p for p in places if p not in mind.checked]
        left = [p for p in left if p != mind.goal.place] or left
        order = self._tidy_order(homes) if self.tidy else self._plain_order
        place = min(left, key=order)
        if step := mind.way_in(place, "search"):
            return step
        return Step("search", f"check {place}", place)

    def _tidy_order(self, homes: tuple[str, ...]) -> Callable[[str], tuple[float, ...]]:
        places, room = self.mind.places, self.mind.room
        return lambda name: (name not in homes, places[name].room != room, self.order[name])

    def _plain_order(self, name: str) -> tuple[float, ...]:
        away = self.mind.places[name].room != self.mind.room
        return (self.order[name] + 0.4 * away,)
