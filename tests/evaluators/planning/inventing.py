"""Replies of a model that invents, written by hand, and a server that gives them."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

Json = dict[str, Any]

KEEPER = [
    "lens polish with chamois", "fog horn greasing", "gull nest survey", "barometer reading",
    "stair rail painting", "supply boat welcome", "radio chat with the harbour", "lamp oil tasting",
    "kitchen stove repair", "postcard sale to a hiker", "seal pup rescue", "window caulking",
    "rain barrel inspection", "vegetable patch weeding", "tide table lecture", "boot resoling",
    "flag folding", "ghost story for a scout", "dory varnish", "telescope loan to a student",
]  # fmt: skip
RANGER = [
    "bear track casting", "trail map giveaway", "canoe hull patch", "campfire song for a troop",
    "lichen sketch", "outhouse roof repair", "badger photograph", "chainsaw sharpening",
    "litter hunt at the lake", "owl box mounting", "permit sale to an angler", "snake bite drill",
    "puddle depth measurement", "signpost carving", "goose census", "spring water test",
    "horse grooming", "poacher interview", "pine seedling planting", "jeep tyre swap",
]  # fmt: skip
WORDS: Json = {
    "VP_prec": [{"singular": "predates", "plural": "predate"}],
    "VP_succ": [{"singular": "comes behind", "plural": "come behind"}],
    "VP_none": [{"singular": "gets done", "plural": "get done"}],
    "P_prec": ["sooner than"],
    "P_succ": ["at a later point than"],
    "SC_prec": ["ahead of the moment when"],
    "SC_succ": ["posterior to the time when"],
}

Answer = Callable[[Json, int], str]


def professions(*entries: tuple[str, Sequence[Any]]) -> str:
    return json.dumps({"professions": [{"role": r, "activities": list(a)} for r, a in entries]})


def said(body: Json) -> str:
    """The first message of a request."""
    return str(body["messages"][0]["content"])


def wants_words(body: Json) -> bool:
    return "The kinds, with the wordings" in said(body)


def replies(words: Sequence[str], jobs: Sequence[str]) -> Answer:
    """An answer for `serve`: each text in turn, wordings and professions apart."""
    left = {True: list(words), False: list(jobs)}

    def answer(body: Json, _: int) -> str:
        return left[wants_words(body)].pop(0)

    return answer
