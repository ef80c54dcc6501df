"""The rules of the household: what each command changes, what it shows, and when a goal holds."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

HAND = "hand"


@dataclass(frozen=True, slots=True)
class Place:
    """Furniture or an appliance. `power` is wash, heat, cool, light or none."""

    name: str
    room: str
    at: str = "on"  # preposition
    closes: bool = False
    power: str = "none"


@dataclass(frozen=True, slots=True)
class Thing:
    """An object. `spot` is the name of a place, or HAND; `studied` are the lamps it was read by."""

    name: str
    noun: str
    spot: str
    clean: bool = False
    heat: str = "normal"  # normal, hot or cold
    studied: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Goal:
    """`count` things called `noun`, with `treatment` (clean, hot, cold or none), at `place`.

    For the kind `examine` the place is a lamp and the thing has to have been studied under it.
    """

    kind: str
    noun: str
    place: str
    count: int = 1
    treatment: str = "none"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a command brought: `reason` is empty when it was carried out, `inside` what was seen."""

    text: str
    reason: str = ""
    about: str = ""
    inside: tuple[str, ...] | None = None

    @property
    def ok(self) -> bool:
        return not self.reason


class Refused(Exception):
    """A command that cannot be carried out, or is none."""

    def __init__(self, reason: str, about: str, text: str) -> None:
        super().__init__(text)
        self.reply = Reply(text, reason, about)


def listed(names: tuple[str, ...]) -> str:
    """`a red pen, an old book`."""
    return ", ".join(f"{'an' if n[0] in 'aeiou' else 'a'} {n}" for n in names)


class House:
    """The state of one household. `do` is the only way to change it."""

    def __init__(self, places: tuple[Place, ...], things: tuple[Thing, ...], room: str) -> None:
        self.places = {p.name: p for p in places}
        self.things = {t.name: t for t in things}
        self.rooms = tuple(dict.fromkeys(p.room for p in places))
        self.room = room
        self.open: set[str] = set()
        self.lit: set[str] = set()

    def do(self, command: str) -> Reply:
        """Carry out one command. A refused one changes nothing and says why in `reason`."""
        for pattern, act in _COMMANDS:
            if found := re.fullmatch(pattern, command):
                try:
                    return act(self, *found.groups())
                except Refused as error:
                    return replace(error.reply, text=f"Not possible: {error.reply.text}")
        return Reply(f"Not understood: {command}", "unknown", command)

    def holds(self, goal: Goal) -> bool:
        """Whether the goal is met in the present state."""
        things = [t for t in self.things.values() if t.noun == goal.noun]
        if goal.kind == "examine":
            return any(goal.place in t.studied for t in things)
        ready = [t for t in things if t.spot == goal.place and _treated(t, goal.treatment)]
        return len(ready) >= goal.count

    def state(self) -> tuple[object, ...]:
        """Everything that commands can change, hashable."""
        lasting = tuple(self.things[name] for name in sorted(self.things))
        return self.room, frozenset(self.open), frozenset(self.lit), lasting

    def held(self) -> str | None:
        """Name of the thing in the hand."""
        return next((t.name for t in self.things.values() if t.spot == HAND), None)

    def inside(self, place: str) -> tuple[str, ...]:
        """Names of the things at a place, sorted."""
        return tuple(sorted(t.name for t in self.things.values() if t.spot == place))

    # --- conditions ---------------------------------------------------------------------------

    def _here(self, name: str) -> Place:
        if name not in self.places:
            raise Refused("no such place", name, f"this house has no place called {name}.")
        place = self.places[name]
        if place.room != self.room:
            text = f"the {name} is in the {place.room}, you are in the {self.room}."
            raise Refused("elsewhere", self.room, text)
        return place

    def _reach(self, name: str) -> Place:
        place = self._here(name)
        if place.closes and name not in self.open:
            raise Refused("shut", name, f"the {name} is shut.")
        return place

    def _with_power(self, name: str, power: str, verb: str) -> Place:
        place = self._here(name)
        if place.power != power:
            raise Refused("wrong place", name, f"the {name} is not there to {verb}.")
        return place

    def _in_hand(self, name: str) -> Thing:
        if self.held() != name:
            text = f"you do not hold any {name}; your hand is {_hand(self.held())}."
            raise Refused("not held", self.held() or "", text)
        return self.things[name]

    # --- commands -----------------------------------------------------------------------------

    def _walk(self, room: str) -> Reply:
        if room not in self.rooms:
            raise Refused("no such place", room, f"this house has no {room}.")
        if room == self.room:
            raise Refused("already", room, f"you are in the {room} already.")
        self.room = room
        return Reply(f"You are in the {room} now. {self._around()}")

    def _around(self) -> str:
        marks = []
        for place in (p for p in self.places.values() if p.room == self.room):
            mark = " (open)" if place.name in self.open else " (shut)" if place.closes else ""
            if place.power == "light":
                mark = " (on)" if place.name in self.lit else " (off)"
            marks.append(place.name + mark)
        return f"Here: {', '.join(marks)}."

    def _check(self, name: str) -> Reply:
        place = self._reach(name)
        if place.power == "light":
            return Reply(f"The {name} is {'on' if name in self.lit else 'off'}.", inside=())
        return self._contents(place)

    def _contents(self, place: Place) -> Reply:
        names = self.inside(place.name)
        if not names:
            return Reply(f"There is nothing {place.at} the {place.name}.", inside=())
        return Reply(f"{place.at.title()} the {place.name}: {listed(names)}.", inside=names)

    def _open(self, name: str) -> Reply:
        place = self._here(name)
        if not place.closes:
            raise Refused("wrong place", name, f"the {name} has nothing to open.")
        if name in self.open:
            raise Refused("already", name, f"the {name} is open already.")
        self.open.add(name)
        seen = self._contents(place)
        return replace(seen, text=f"The {name} swings open. {seen.text}")

    def _shut(self, name: str) -> Reply:
        place = self._here(name)
        if not place.closes:
            raise Refused("wrong place", name, f"the {name} has nothing to shut.")
        if name not in self.open:
            raise Refused("already", name, f"the {name} is shut already.")
        self.open.remove(name)
        inside = self.inside(name)
        if place.power == "cool" and inside:
            for thing in inside:
                self.things[thing] = replace(self.things[thing], heat="cold")
            return Reply(f"The {name} is shut. Getting cold in it: {listed(inside)}.")
        return Reply(f"The {name} is shut.")

    def _pick(self, name: str, where: str) -> Reply:
        place = self._reach(where)
        if held := self.held():
            raise Refused("full", held, f"you can hold one thing, and you hold the {held}.")
        if name not in self.inside(where):
            raise Refused("absent", name, f"there is no {name} {place.at} the {where}.")
        self.things[name] = replace(self.things[name], spot=HAND)
        return Reply(f"You hold the {name} now.")

    def _leave(self, name: str, where: str) -> Reply:
        thing, place = self._in_hand(name), self._reach(where)
        if place.power == "light":
            raise Refused("wrong place", where, f"nothing can be left on the {where}.")
        self.things[name] = replace(thing, spot=where)
        return Reply(f"The {name} is now {place.at} the {where}.")

    def _rinse(self, name: str, where: str) -> Reply:
        self._with_power(where, "wash", "rinse things")
        self.things[name] = replace(self._in_hand(name), clean=True)
        return Reply(f"Water runs over the {name}. It is clean.")

    def _run(self, name: str) -> Reply:
        self._with_power(name, "heat", "be run")
        if name in self.open:
            raise Refused("open", name, f"the {name} runs only when it is shut.")
        inside = self.inside(name)
        if not inside:
            raise Refused("empty", name, f"the {name} is empty.")
        for thing in inside:
            self.things[thing] = replace(self.things[thing], heat="hot")
        return Reply(f"The {name} runs for a while and stops. Hot inside: {listed(inside)}.")

    def _switch(self, how: str, name: str) -> Reply:
        self._with_power(name, "light", "be switched")
        if (how == "on") == (name in self.lit):
            raise Refused("already", name, f"the {name} is {how} already.")
        self.lit ^= {name}
        return Reply(f"The {name} is {how}.")

    def _study(self, name: str, lamp: str) -> Reply:
        self._with_power(lamp, "light", "study things by")
        thing = self._in_hand(name)
        if lamp not in self.lit:
            raise Refused("dark", lamp, f"the {lamp} is off.")
        self.things[name] = replace(thing, studied=thing.studied | {lamp})
        return Reply(f"By the light of the {lamp} you look at the {name} from all sides.")

    def _hands(self) -> Reply:
        return Reply(f"Your hand is {_hand(self.held())}. You are in the {self.room}.")


def _hand(held: str | None) -> str:
    return f"holding the {held}" if held else "empty"


def _treated(thing: Thing, treatment: str) -> bool:
    if treatment == "clean":
        return thing.clean
    return treatment == "none" or thing.heat == treatment


_COMMANDS: tuple[tuple[str, Callable[..., Reply]], ...] = (
    (r"walk to (.+)", House._walk),
    (r"check (.+)", House._check),
    (r"open (.+)", House._open),
    (r"shut (.+)", House._shut),
    (r"pick (.+) from (.+)", House._pick),
    (r"leave (.+) at (.+)", House._leave),
    (r"rinse (.+) at (.+)", House._rinse),
    (r"run (.+)", House._run),
    (r"switch (on|off) (.+)", House._switch),
    (r"study (.+) under (.+)", House._study),
    (r"hands", House._hands),
)
