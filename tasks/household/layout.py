"""Houses and goals: a layout seed gives furniture, objects, a goal, and the opening message."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .world import Goal, House, Place, Thing, listed

KINDS = ("put", "put two", "clean", "heat", "cool", "examine")
STEP_LIMIT = 24

_SURFACE, _BOX = (False, "none"), (True, "none")
# room -> (place, preposition, (closes, power))
FURNITURE: dict[str, tuple[tuple[str, str, tuple[bool, str]], ...]] = {
    "kitchen": (
        ("fridge", "in", (True, "cool")),
        ("microwave", "in", (True, "heat")),
        ("oven", "in", (True, "heat")),
        ("sink", "in", (False, "wash")),
        ("counter", "on", _SURFACE),
        ("cupboard", "in", _BOX),
        ("drawer", "in", _BOX),
    ),
    "bathroom": (
        ("washbasin", "in", (False, "wash")),
        ("towel shelf", "on", _SURFACE),
        ("mirror cabinet", "in", _BOX),
    ),
    "bedroom": (
        ("bed", "on", _SURFACE),
        ("nightstand", "on", _SURFACE),
        ("wardrobe", "in", _BOX),
        ("bedside lamp", "on", (False, "light")),
    ),
    "living room": (
        ("sofa", "on", _SURFACE),
        ("coffee table", "on", _SURFACE),
        ("sideboard", "in", _BOX),
        ("floor lamp", "on", (False, "light")),
    ),
    "study": (
        ("desk", "on", _SURFACE),
        ("wall shelf", "on", _SURFACE),
        ("filing cabinet", "in", _BOX),
        ("desk lamp", "on", (False, "light")),
    ),
    "hall": (
        ("shoe rack", "on", _SURFACE),
        ("console table", "on", _SURFACE),
        ("chest", "in", _BOX),
    ),
}
_COLOURS = ("red", "blue", "green", "white", "black", "yellow")
_SIZES = ("small", "large", "round")
_TABLES = ("counter", "coffee table", "console table", "desk", "nightstand")
_EATING = ("cupboard", "counter", "sink", "coffee table", "sideboard")
_LARDER = ("counter", "cupboard", "fridge")
_PAPERS = ("desk", "wall shelf", "coffee table", "nightstand", "filing cabinet", "sofa")


@dataclass(frozen=True, slots=True)
class Sort:
    """What a noun can undergo, where it is usually kept, and what it is easily taken for."""

    treatments: tuple[str, ...]
    homes: tuple[str, ...]
    like: str
    looks: tuple[str, ...] = _COLOURS


SORTS: dict[str, Sort] = {
    "potato": Sort(("hot", "cold", "clean"), _LARDER, "tomato", _SIZES),
    "tomato": Sort(("hot", "cold", "clean"), _LARDER, "potato", _SIZES),
    "apple": Sort(("hot", "cold", "clean"), _LARDER, "lemon", _SIZES),
    "lemon": Sort(("cold", "clean"), _LARDER, "apple", _SIZES),
    "bread roll": Sort(("hot", "cold"), _LARDER, "potato", _SIZES),
    "mug": Sort(("hot", "cold", "clean"), _EATING, "glass"),
    "glass": Sort(("cold", "clean"), _EATING, "mug"),
    "plate": Sort(("hot", "cold", "clean"), _EATING, "bowl"),
    "bowl": Sort(("hot", "cold", "clean"), _EATING, "plate"),
    "fork": Sort(("clean",), ("drawer", "sink", "counter"), "spoon"),
    "spoon": Sort(("clean",), ("drawer", "sink", "counter"), "fork"),
    "soap dish": Sort(("clean",), ("washbasin", "mirror cabinet", "towel shelf"), "bowl"),
    "towel": Sort((), ("towel shelf", "wardrobe", "bed"), "blanket"),
    "blanket": Sort((), ("bed", "sofa", "wardrobe", "chest"), "towel"),
    "book": Sort((), _PAPERS, "notebook"),
    "notebook": Sort((), _PAPERS, "book"),
    "letter": Sort((), ("console table", *_PAPERS), "notebook"),
    "pen": Sort((), ("desk", "console table", "drawer", "coffee table"), "pencil"),
    "pencil": Sort((), ("desk", "console table", "drawer", "wall shelf"), "pen"),
    "watch": Sort((), ("nightstand", "mirror cabinet", "console table", "desk"), "phone"),
    "phone": Sort((), ("nightstand", "sofa", "console table", "desk"), "watch"),
    "candle": Sort((), ("sideboard", "coffee table", "drawer", "nightstand"), "soap dish"),
}
# Places that a hasty reader of the goal confuses.
MISTAKEN_FOR = {
    "cupboard": ("drawer", "sideboard"),
    "drawer": ("cupboard",),
    "counter": ("coffee table",),
    "desk": ("nightstand", "wall shelf"),
    "nightstand": ("desk", "bed"),
    "coffee table": ("sideboard", "counter"),
    "console table": ("coffee table", "chest"),
    "sideboard": ("cupboard", "coffee table"),
    "wall shelf": ("desk", "towel shelf"),
    "towel shelf": ("mirror cabinet", "wall shelf"),
    "wardrobe": ("chest", "bed"),
    "filing cabinet": ("desk", "mirror cabinet"),
    "mirror cabinet": ("filing cabinet", "towel shelf"),
    "shoe rack": ("chest",),
    "chest": ("wardrobe", "shoe rack"),
    "bed": ("sofa", "nightstand"),
    "sofa": ("bed",),
}
TREATMENT = {"clean": "clean", "heat": "hot", "cool": "cold"}
_STUDIED = ("book", "notebook", "letter", "watch", "phone", "mug", "plate", "candle")
_WORDING = {
    "put": ("Put {a} {at} the {place}.", "Bring {a} to the {place} and leave it there."),
    "put two": ("Put {two} {at} the {place}.", "Find {two} and put both {at} the {place}."),
    "clean": ("Rinse {a} and put it {at} the {place}.", "Put a rinsed {noun} {at} the {place}."),
    "heat": ("Heat {a} and put it {at} the {place}.", "Put a hot {noun} {at} the {place}."),
    "cool": ("Chill {a} and put it {at} the {place}.", "Put a chilled {noun} {at} the {place}."),
    "examine": ("Study {a} under the {place}.", "Look at {a} by the light of the {place}."),
}
_RULES = f"""\
Every turn gives one command on a line that starts with "Do:". Commands: walk to ROOM; \
check PLACE; open PLACE; shut PLACE; pick OBJECT from PLACE; leave OBJECT at PLACE; \
rinse OBJECT at PLACE; run PLACE; switch on LAMP; switch off LAMP; study OBJECT under LAMP; hands; \
finish done; finish given up.
One object can be held at a time. What is in the microwave or the oven gets hot when it is run \
shut; what is in the fridge gets cold when the fridge is shut. After {STEP_LIMIT} commands the \
session ends."""


@dataclass(frozen=True, slots=True)
class Case:
    """One household with its goal, as made from a layout seed."""

    seed: int
    places: tuple[Place, ...]
    things: tuple[Thing, ...]
    start: str
    goal: Goal
    request: str

    def house(self) -> House:
        """A fresh house in its first state."""
        return House(self.places, self.things, self.start)

    def opening(self) -> str:
        """The message that starts a run: the request, the rooms, the commands."""
        house = self.house()
        rows = []
        for room in house.rooms:
            here = [p for p in self.places if p.room == room]
            names = [p.name + (" (shut)" if p.closes else "") for p in here]
            rows.append(f"- {room}: {', '.join(names)}")
        stand = f"You are in the {self.start}. Your hand is empty. All lamps are off."
        rooms = "\n".join(rows)
        return f"Goal: {self.request}\n\nThe house:\n{rooms}\n{stand}\n\n{_RULES}"


def make_case(kind: str, seed: int) -> Case:
    """The case of a goal kind and a layout seed. Raises KeyError for an unknown kind."""
    rng = random.Random(f"layout {kind} {seed}")  # noqa: S311  reproducible, not secret
    places = _places(rng, lamp=kind == "examine")
    goal = _goal(kind, places, rng)
    things = _things(goal, places, rng)
    by_name = {p.name: p for p in places}
    words = {
        "a": listed((goal.noun,)),
        "two": f"two {plural(goal.noun)}",
        "noun": goal.noun,
        "at": by_name[goal.place].at,
        "place": goal.place,
    }
    request = rng.choice(_WORDING[kind]).format(**words)
    rooms = sorted({p.room for p in places})
    return Case(seed, places, things, rng.choice(rooms), goal, request)


def plural(noun: str) -> str:
    """`potatoes`, `glasses`, `pens`."""
    if noun.endswith(("o", "ss", "ch", "sh")):
        return noun + "es"
    return noun + "s"


def _places(rng: random.Random, *, lamp: bool) -> tuple[Place, ...]:
    others = [room for room in FURNITURE if room != "kitchen"]
    rng.shuffle(others)
    if lamp and not {"bedroom", "living room", "study"} & set(others[:2]):
        others[0] = "study"
    dropped = rng.choice(("microwave", "oven"))
    return tuple(
        Place(name, room, at, closes, power)
        for room in ("kitchen", *others[:3])
        for name, at, (closes, power) in FURNITURE[room]
        if name != dropped
    )


def _goal(kind: str, places: tuple[Place, ...], rng: random.Random) -> Goal:
    if kind == "examine":
        lamps = [p.name for p in places if p.power == "light"]
        return Goal(kind, rng.choice(_STUDIED), rng.choice(lamps))
    treatment = TREATMENT.get(kind, "none")
    nouns = tuple(n for n, s in SORTS.items() if treatment in ("none", *s.treatments))
    spots = [p.name for p in places if p.power == "none"]
    return Goal(kind, rng.choice(nouns), rng.choice(spots), 1 + (kind == "put two"), treatment)


def _things(goal: Goal, places: tuple[Place, ...], rng: random.Random) -> tuple[Thing, ...]:
    present = [p.name for p in places if p.power != "light"]
    others = [n for n in SORTS if n not in (goal.noun, SORTS[goal.noun].like)]
    rng.shuffle(others)
    wanted = [goal.noun] * (goal.count + (rng.random() < 0.4))
    nouns = [*wanted, SORTS[goal.noun].like, *others[:8]]
    looks = {noun: rng.sample(SORTS[noun].looks, 3) for noun in nouns}
    things = []
    for noun in nouns:
        allowed = [p for p in present if noun != goal.noun or _apart(goal, p)]
        homes = [p for p in SORTS[noun].homes if p in allowed]
        spot = rng.choice(homes if homes and rng.random() < 0.7 else allowed)
        heat = "cold" if spot == "fridge" else "normal"
        things.append(Thing(f"{looks[noun].pop()} {noun}", noun, spot, heat=heat))
    return tuple(things)


def _apart(goal: Goal, place: str) -> bool:
    """Wanted things start neither where they have to go nor where they get their treatment."""
    treated = {"cold": "fridge", "hot": "microwave oven"}.get(goal.treatment, "")
    return place != goal.place and place not in treated.split()
