"""How the agents word their thoughts: templates by occasion, none twice in a run while others last.

All three agents draw from the same templates, and closings are chosen by what the agent believes,
never by whether it is right.
"""

from __future__ import annotations

import random
import re

from .beliefs import Beliefs, Step
from .world import Reply

_THOUGHTS: dict[str, tuple[str, ...]] = {
    "walk": (
        "On to the {room}.",
        "The {room} is where I should be now.",
        "I have to be in the {room} for this.",
        "Next stop: the {room}.",
        "That means going over to the {room}.",
        "Off to the {room}, then.",
        "From here I go to the {room}.",
        "The {place} is in the {room}, so that is my way.",
        "I need the {place}, and it is in the {room}.",
        "Let me change rooms; the {place} is elsewhere.",
    ),
    "walk:search": (
        "Maybe the {room} has {a}.",
        "The {place} in the {room} could hold {a}.",
        "I have not seen {a} so far; the {room} comes next.",
        "Let me look around the {room}.",
        "A {noun} might be kept in the {room}.",
        "Time to search the {room}.",
        "I would try the {place} next, over in the {room}.",
        "Perhaps someone left {a} in the {room}.",
        "The search goes on in the {room}.",
        "Still looking for {a}. To the {room}.",
    ),
    "open": (
        "The {place} has to be opened first.",
        "Opening the {place}.",
        "I cannot get at the {place} while its door is shut.",
        "First the door of the {place}.",
        "The {place} is shut, so I open it.",
        "Let me open the {place}.",
        "For that the {place} must be open.",
        "Door first.",
    ),
    "open:search": (
        "What is in the {place}?",
        "{a_cap} could well be in the {place}.",
        "I will look into the {place}.",
        "Behind the door of the {place} there may be {a}.",
        "The {place} is worth a look inside.",
        "Let me see what the {place} holds.",
        "Next I open the {place} and look for {a}.",
        "Could {a} be in the {place}?",
        "The {place} has not been looked at yet.",
        "Trying the {place}.",
    ),
    "search": (
        "Any {noun} {at} the {place}?",
        "I will look at the {place}.",
        "The {place} is quick to check.",
        "What lies {at} the {place}?",
        "Let me check the {place} for {a}.",
        "Now the {place}.",
        "{a_cap} may be {at} the {place}.",
        "A glance at the {place}.",
        "The {place} would be a place for it.",
        "The {place} comes next on my round.",
        "Let me rule out the {place}.",
    ),
    "fetch": (
        "That is what I was after. I take the {thing}.",
        "The {thing} will do.",
        "I pick up the {thing}.",
        "The {thing} it is.",
        "Taking the {thing} from the {place}.",
        "The {thing} is {at} the {place}; into my hand it goes.",
        "Good, I can use the {thing}.",
        "I get the {thing} now.",
        "This {noun} fits what is wanted.",
    ),
    "deliver": (
        "The {thing} belongs {at} the {place}.",
        "Putting it {at} the {place}, as asked.",
        "Here it goes.",
        "The {place} is the place to leave it.",
        "I set the {thing} down {at} the {place}.",
        "This is where the {thing} has to be.",
        "Now I can put the {thing} {at} the {place}.",
        "The {thing} goes {at} the {place}.",
    ),
    "insert": (
        "Into the {place} with it.",
        "The {thing} has to go into the {place} for a while.",
        "I put the {thing} in the {place}.",
        "The {place} will do the work; in it goes.",
        "It needs the {place} before I carry it anywhere.",
        "First the {place}, then the {goal_place}.",
    ),
    "close": (
        "The {place} does nothing with its door open.",
        "Door shut, then it works.",
        "I shut the {place} on the {thing}.",
        "Now close it.",
        "The door has to be shut for this.",
        "With the {thing} inside I can shut the {place}.",
    ),
    "treat": (
        "Start the {place}.",
        "Now let the {place} run.",
        "The {thing} is in and the door is shut.",
        "Everything is set, so I run it.",
        "It should get hot now.",
    ),
    "take out": (
        "Out with the {thing}.",
        "I take the {thing} out of the {place}.",
        "That should be enough time in the {place}.",
        "Now I need the {thing} back in my hand.",
        "The {thing} can come out.",
        "Fetching the {thing} from the {place}.",
    ),
    "wash": (
        "Water here. I rinse the {thing}.",
        "The {thing} gets rinsed at the {place}.",
        "A rinse first.",
        "It has to be clean before it goes anywhere.",
        "The {place} has water, so I wash the {thing} now.",
        "I hold it under the tap.",
    ),
    "lamp": (
        "I need light from the {place}.",
        "Lamp on first.",
        "The {place} should be lit for this.",
        "Switching the {place} on.",
        "Without light there is nothing to see.",
        "Let there be light.",
    ),
    "study": (
        "Now I can look at the {thing} properly.",
        "The {thing} goes under the light.",
        "A close look at the {thing}.",
        "Under the {place} I study the {thing}.",
        "This is what the request was about: looking at the {thing}.",
        "I hold the {thing} to the lamp.",
    ),
    "put away": (
        "I have no use for the {thing}.",
        "My hand must be free, so the {thing} stays here.",
        "The {thing} is not what I need at present.",
        "Let me lay the {thing} aside.",
        "The {thing} can rest {at} the {place}.",
    ),
    "linger": (
        "I would like to see how things stand.",
        "Was there anything else to do here?",
        "Let me look once more.",
        "I am not sure whether that was all.",
        "Another look will do no harm.",
        "Let me go over this again.",
        "Is everything where it ought to be?",
        "I think something may still be open.",
        "Just to see.",
        "There might be more to it.",
    ),
    "again": (
        "That should have worked. Once more.",
        "Let me try that again.",
        "Maybe this time.",
        "Again.",
        "I will repeat that.",
        "Odd. Same thing again.",
        "It ought to work, so I give it another try.",
        "Perhaps I was too quick; again.",
    ),
    "rut": (
        "Let me do that again.",
        "Hm, back to this.",
        "I want to be sure about this.",
        "One more time.",
        "Let me see it again.",
        "I go back to that.",
        "That again.",
        "Did I miss something here?",
        "Same step, just in case.",
        "Let me double-check that.",
    ),
    "finish": ("",),
}
_AFTER_REFUSAL: dict[str, tuple[str, ...]] = {
    "shut": ("So the {about} is shut.", "Of course, the door.", "Right, it has to be open."),
    "elsewhere": ("I see, I am in the {about}.", "Wrong room.", "I mixed up where I am."),
    "absent": (
        "The {about} is not there after all.",
        "Gone, or I remember it wrongly.",
        "Not here.",
    ),
    "full": ("My hand is taken by the {about}.", "One thing at a time.", "I still hold something."),
    "already": ("That was the case already.", "No need for that.", "Fine, that is settled."),
    "unknown": ("The wording was off.", "I must keep to the commands.", "Other words, then."),
    "other": ("That does not go.", "Fine, differently then.", "I have to do this another way."),
}
_SNAP = (
    "Enough of this.",
    "I am going in circles.",
    "This leads nowhere; back to the matter.",
    "Stop, that brings nothing new.",
    "What was I about to do?",
)
_REVIEW = (
    "Reading the request again, something is missing.",
    "Wait, that is not all the request says.",
    "Going through what I did: it is not complete.",
    "Let me compare with the request. There is more to do.",
    "Hold on, I passed over a part of it.",
)
_FOUND = (
    "There is one.",
    "The {found} is {at} the {place}.",
    "A {noun} at last.",
    "Good, {a}.",
    "That is the kind of thing I need.",
    "I see the {found}.",
)
_NOTHING = (
    "No {noun} there.",
    "Nothing of use.",
    "Not what I need.",
    "Not there.",
    "No luck.",
    "That was not it.",
    "Only other things, if any.",
)
_SIGHT = (
    "Let me get an idea of the place first.",
    "I will start and see.",
    "First a look around.",
    "Let me begin somewhere.",
    "I have to find {a}, so let me start.",
    "Somewhere here there is {a}.",
    "We will see how this goes.",
)
_PLANS = (
    "Plan: {parts}.",
    "My plan is to {parts}.",
    "What I have to do: {parts}.",
    "In order: {parts}.",
    "Steps: {parts}. Let me start.",
    "I will {parts}.",
    "The way I see it: {parts}.",
)
_DONE = (
    "{fact}.",
    "{fact}, so I stop here.",
    "{fact}. That is what was asked.",
    "{fact}, which completes the request.",
    "I am through: {fact_low}.",
    "Finished. {fact}.",
    "As requested, {fact_low}.",
    "{fact}. Nothing is left to do.",
    "My work ends here; {fact_low}.",
    "That should be all: {fact_low}.",
    "{fact}, and with that I close.",
    "This concludes it: {fact_low}.",
)
_GIVE_UP = (
    "I have looked in many places and found no {noun}. I stop here.",
    "There seems to be no {noun} in this house, so I give up.",
    "I cannot find {a}; going on would not help.",
    "After all this searching no {noun} has turned up. I leave it at that.",
)
_LATE_OPEN = (
    "The steps are used up before I was through with the {noun}.",
    "Out of commands; the {goal_place} is still to be dealt with.",
    "No turns left. I was still busy with the {noun}.",
    "My turns are over, with part of the work ahead of me.",
    "That was the last command. The {noun} was not yet where I wanted it.",
)
_LATE_DONE = (
    "The turns are over. {fact}.",
    "Out of commands; {fact_low}.",
    "The session ends here. {fact}.",
    "No steps left, but {fact_low}.",
)
_CLOSINGS = {"finish": _DONE, "give up": _GIVE_UP, "late open": _LATE_OPEN, "late done": _LATE_DONE}


class Voice:
    """The wording of one agent in one run."""

    def __init__(self, rng: random.Random, mind: Beliefs) -> None:
        self.rng, self.mind = rng, mind
        self.used: set[str] = set()

    def plan(self, kind: str, step: Step) -> str:
        """The first thought: a plan (full or with a gap), a vague one, or none."""
        if kind == "none":
            return self._fill(_THOUGHTS[self._bank(step.why)], step)
        if kind == "vague":
            return self._fill(_SIGHT, step)
        parts = self._parts()
        if kind == "gap" and len(parts) > 2:
            del parts[self.rng.randrange(1, len(parts))]
        elif kind == "gap":
            parts = parts[:1]
        joined = ", ".join(parts[:-1]) + (", then " if len(parts) > 1 else "") + parts[-1]
        return self._pick(_PLANS).format(parts=joined)

    def think(self, occasion: str, step: Step, reply: Reply | None) -> str:
        """The thought before a command; empty at some routine turns."""
        if step.why in ("finish", "give up"):
            return self.closing(step.why, self.mind.placed)
        if occasion == "snap":
            return self._pick(_SNAP)
        if occasion == "review":
            return f"{self._pick(_REVIEW)} {self._fill(_THOUGHTS[self._bank(step.why)], step)}"
        if occasion == "refused" and reply is not None:
            bank = _AFTER_REFUSAL.get(reply.reason, _AFTER_REFUSAL["other"])
            remark = self._pick(bank).format(about=reply.about)
            return f"{remark} {self._fill(_THOUGHTS[self._bank(step.why)], step)}"
        if self.rng.random() < 0.12:
            return ""
        remark = self._remark(step, reply)
        return (remark + self._fill(_THOUGHTS[self._bank(step.why)], step)).strip()

    def closing(self, kind: str, placed: dict[str, str]) -> str:
        """The last message, by what the agent believes."""
        fact = self._fact(placed)
        slots = {**self._slots(Step("", "")), "fact": fact, "fact_low": fact[0].lower() + fact[1:]}
        return self._pick(_CLOSINGS[kind]).format(**slots)

    def _remark(self, step: Step, reply: Reply | None) -> str:
        if reply is None or reply.inside is None or self.rng.random() < 0.45:
            return ""
        if step.why.endswith("fetch") and step.thing in reply.inside:
            return self._pick(_FOUND).format(**self._slots(step), found=step.thing) + " "
        if step.why.endswith("search"):
            return self._pick(_NOTHING).format(**self._slots(step)) + " "
        return ""

    def _bank(self, why: str) -> str:
        return why if why in _THOUGHTS else why.partition(":")[0]

    def _fill(self, bank: tuple[str, ...], step: Step) -> str:
        return self._pick(bank).format(**self._slots(step))

    def _pick(self, bank: tuple[str, ...]) -> str:
        fresh = [text for text in bank if text not in self.used]
        if not fresh:
            self.used.difference_update(bank)
            fresh = list(bank)
        text = self.rng.choice(fresh)
        self.used.add(text)
        return text

    def _slots(self, step: Step) -> dict[str, str]:
        noun = self.mind.goal.noun
        a = f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"
        place = self.mind.places.get(step.place)
        walked = re.fullmatch(r"(?:walk|go) to (.+)", step.action)
        return {
            "noun": noun,
            "a": a,
            "a_cap": a[0].upper() + a[1:],
            "place": step.place,
            "at": place.at if place else "on",
            "room": walked[1] if walked else self.mind.room,
            "thing": step.thing,
            "goal_place": self.mind.goal.place,
        }

    def _parts(self) -> list[str]:
        goal = self.mind.goal
        noun = f"{'an' if goal.noun[0] in 'aeiou' else 'a'} {goal.noun}"
        if goal.kind == "examine":
            return [f"find {noun}", f"switch on the {goal.place}", "study it there"]
        put = f"{self.mind.places[goal.place].at} the {goal.place}"
        if goal.count == 2:
            return [f"find {noun}", f"put it {put}", "do the same with another one"]
        treat = {"clean": "rinse it", "hot": "heat it", "cold": "let it get cold"}
        middle = [treat[goal.treatment]] if goal.treatment in treat else []
        return [f"find {noun}", *middle, f"put it {put}"]

    def _fact(self, placed: dict[str, str]) -> str:
        goal = self.mind.goal
        the = f"The {goal.noun}"
        if goal.kind == "examine":
            return f"{the} has been studied under the {goal.place}"
        put = f"{self.mind.places[goal.place].at} the {goal.place}"
        if goal.count == 2:
            both = " and the ".join(sorted(placed))
            return (
                f"The {both} {'are' if len(placed) > 1 else 'is'} {put}"
                if both
                else f"{the} is {put}"
            )
        state = {"clean": "clean and ", "hot": "hot and ", "cold": "cold and "}
        return f"{the} is {state.get(goal.treatment, '')}{put}"
