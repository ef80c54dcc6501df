"""What an agent believes about the house. It is right only as far as the agent pays attention."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from .world import Goal, Place, Reply


@dataclass(frozen=True, slots=True)
class Step:
    """One command and the reason for it; `place` is where the agent means to act."""

    why: str
    action: str
    place: str = ""
    thing: str = ""


@dataclass(slots=True)
class Beliefs:
    """The agent's picture of the house, built from replies alone."""

    places: dict[str, Place]
    goal: Goal
    room: str
    hand: str | None = None
    seen: dict[str, str] = field(default_factory=dict)
    checked: set[str] = field(default_factory=set)
    latest: str = ""  # the place checked last
    open: set[str] = field(default_factory=set)
    lit: set[str] = field(default_factory=set)
    treated: set[str] = field(default_factory=set)  # believed
    done_to: set[tuple[str, str]] = field(default_factory=set)  # (thing, treatment) that was shown
    placed: dict[str, str] = field(default_factory=dict)  # things put where the agent wanted them
    inside: str | None = None  # what was put into an appliance for treatment

    def learn(self, step: Step, reply: Reply) -> None:
        """Take in the reply to one's own command."""
        if reply.reason:
            self._learn_refusal(step, reply)
            return
        verb, _, rest = step.action.partition(" ")
        if reply.inside is not None and step.place:
            self._learn_contents(step.place, reply.inside)
        if verb == "walk":
            self.room = rest.removeprefix("to ")
        elif verb == "open":
            self.open.add(rest)
        elif verb == "switch":
            self.lit.add(step.place)
        elif verb in ("shut", "run", "rinse"):
            self._learn_treatment(verb, step)
        elif verb in ("pick", "leave", "study"):
            self._learn_handling(verb, step)

    def _learn_contents(self, place: str, inside: tuple[str, ...]) -> None:
        self.checked.add(place)
        self.latest = place
        for thing in [t for t, where in self.seen.items() if where == place]:
            del self.seen[thing]
        self.seen.update(dict.fromkeys(inside, place))

    def _learn_treatment(self, verb: str, step: Step) -> None:
        power = self.places[step.place].power
        if verb == "shut":
            self.open.discard(step.place)
        change = {("shut", "cool"): "cold", ("run", "heat"): "hot", ("rinse", "wash"): "clean"}
        thing = self.hand if verb == "rinse" else self.inside
        effect = change.get((verb, power))
        if thing and effect:
            self.done_to.add((thing, effect))
            if effect == self.goal.treatment:
                self.treated.add(thing)

    def _learn_handling(self, verb: str, step: Step) -> None:
        if verb == "pick":
            self.hand = step.thing
            self.seen.pop(step.thing, None)
            if self.inside == step.thing:
                self.inside = None
        elif verb == "study":
            self.placed[step.thing] = step.place
        else:
            self.hand = None
            self.seen[step.thing] = step.place
            if step.why == "insert":
                self.inside = step.thing
            elif step.why == "deliver":
                self.placed[step.thing] = step.place

    def _learn_refusal(self, step: Step, reply: Reply) -> None:
        about, place = reply.about, step.place
        if reply.reason == "shut":
            self.open.discard(about)
        elif reply.reason == "elsewhere":
            self.room = about
        elif reply.reason == "absent":
            self.seen.pop(about, None)
        elif reply.reason in ("full", "not held"):
            self.hand = about or None
        elif reply.reason == "open":
            self.open.add(about)
        elif reply.reason == "already":
            self._learn_already(step.action.split()[0], about)
        elif reply.reason == "dark":
            self.lit.discard(place)

    def _learn_already(self, verb: str, about: str) -> None:
        if verb == "open":
            self.open.add(about)
            self.checked.discard(about)
        elif verb == "shut":
            self.open.discard(about)
        elif verb == "switch":
            self.lit.add(about)
        else:
            self.room = about

    # --- errors of memory ---------------------------------------------------------------------

    def forget_place(self, rng: random.Random) -> None:
        """Lose one place checked before the latest one, and what was seen there."""
        if earlier := sorted(self.checked - {self.latest}):
            lost = rng.choice(earlier)
            self.checked.discard(lost)
            for thing in [t for t, where in self.seen.items() if where == lost]:
                del self.seen[thing]

    def mix_up(self, rng: random.Random) -> None:
        """Believe a seen thing of the wanted noun to be at another place than it was."""
        wanted = [t for t in self.seen if t.endswith(f" {self.goal.noun}") and t not in self.placed]
        others = sorted(self.checked - set(self.placed.values()))
        if wanted and len(others) > 1 and self.inside is None:
            self.seen[rng.choice(sorted(wanted))] = rng.choice(others)

    # --- what follows from the beliefs ----------------------------------------------------------

    def finished(self) -> bool:
        """Whether the agent thinks that nothing is left to do."""
        return len(self.placed) >= self.goal.count

    def target(self) -> str | None:
        """A wanted thing whose place is believed known."""
        names = [t for t in sorted(self.seen) if t.endswith(" " + self.goal.noun)]
        return next((t for t in names if t not in self.placed), None)

    def walk_first(self, place: str, why: str) -> Step | None:
        """The walk to the room of a place, or None where the agent thinks it is there."""
        room = self.places[place].room
        return None if room == self.room else Step("walk:" + why, f"walk to {room}", place)

    def way_in(self, place: str, why: str) -> Step | None:
        """What comes before acting in or on a place: the walk, then the door."""
        if step := self.walk_first(place, why):
            return step
        if self.places[place].closes and place not in self.open:
            return Step("open:" + why, f"open {place}", place)
        return None
