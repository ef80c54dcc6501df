"""Replies of a model that invents, written by hand, and a server that gives them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

Json = dict[str, Any]
KEEPER = re.split(
    ", ",
    "lens polish with chamois, fog horn greasing, gull nest survey, barometer reading, "
    "stair rail painting, supply boat welcome, radio chat with the harbour, lamp oil tasting, "
    "kitchen stove repair, postcard sale to a hiker, seal pup rescue, window caulking, "
    "rain barrel inspection, vegetable patch weeding, tide table lecture, boot resoling, "
    "flag folding, ghost story for a scout, dory varnish, telescope loan to a student",
)
RANGER = re.split(
    ", ",
    "bear track casting, trail map giveaway, canoe hull patch, campfire song for a troop, "
    "lichen sketch, outhouse roof repair, badger photograph, chainsaw sharpening, "
    "litter hunt at the lake, owl box mounting, permit sale to an angler, snake bite drill, "
    "puddle depth measurement, signpost carving, goose census, spring water test, "
    "horse grooming, poacher interview, pine seedling planting, jeep tyre swap",
)
Answer = Callable[[Json, int], str]


def professions(*entries: tuple[str, Sequence[Any]]) -> str:
    return json.dumps({"professions": [{"role": r, "activities": list(a)} for r, a in entries]})


def replies(*texts: str) -> Answer:
    """An answer for `serve`: each text in turn."""
    remaining = list(texts)
    return lambda _body, _number: remaining.pop(0)
