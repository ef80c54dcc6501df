"""pad: sentences that say nothing, between those of the system."""

from __future__ import annotations

import re

import numpy as np

from agenteval.evaluators.utility.perturb.edits import Change, Edit, nothing
from agenteval.evaluators.utility.perturb.layout import Layout

# Empty in any task: no claim, no number, no praise, no blame, nobody addressed.
FILLERS = (
    "This is something that may be mentioned here.",
    "It is perhaps worth pausing at this point for a moment.",
    "There is of course more than one way of putting it.",
    "All of this has its place in the overall picture.",
    "One thing follows another, as is so often the case.",
    "It should be kept in mind that this is one part of the whole.",
    "With that said, there is the rest to be looked at as well.",
    "As things stand, this is where matters are.",
    "Much the same could also be said in other words.",
    "That is the way it goes in cases of this kind.",
    "It goes without saying that this belongs here too.",
    "In a manner of speaking, that is what this part is about.",
    "What has been said so far may be taken as said.",
    "Generally speaking, it is what it is.",
    "This remark is made here for the sake of making it.",
    "So much for this point, and on to the next one.",
    "At the end of the day, everything comes in its turn.",
    "It may be noted in passing that this has been noted.",
    "All things considered, that is how it may be viewed.",
    "Needless to say, there is no need to say more about it.",
)
_ENDS = re.compile(r".*[.!?…][)\]\"'”’»*_]*", re.S)


def pad(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """Empty sentences are added until they make up `share` of the length of the system's prose.

    They stand behind random sentences that end in a full mark; where there is none, on a line of
    their own at the end of a turn's prose. No word of the original changes. At least one phrase is
    added; beyond that the sum is within half a phrase (some 30 characters) of the share. A larger
    share adds to the phrases of a smaller one. `applied` and `of` are characters.
    """
    pool = layout.sentences()
    if not pool:
        return nothing(layout.why_nothing())
    own = sum(layout.parts[i].end - layout.parts[i].start for i in pool)
    places, glue = _places(layout, pool)
    order = rng.permutation(len(places))
    phrases = rng.permutation(len(FILLERS))
    added: dict[int, list[str]] = {}
    size = count = 0
    while True:
        place = places[int(order[count % len(order)])]
        phrase = glue + FILLERS[int(phrases[count % len(phrases)])]
        if count and size + len(phrase) / 2 > share * own:  # nearer without it
            break
        added.setdefault(place, []).append(phrase)
        size += len(phrase)
        count += 1
    return Change(
        edits=tuple(Edit(at, at, "".join(texts)) for at, texts in sorted(added.items())),
        applied=size,
        of=own,
        detail=f"{count} empty sentences, {size} characters added to {own}",
    )


def _places(layout: Layout, pool: list[int]) -> tuple[list[int], str]:
    """Positions for a phrase, and what stands before it there."""
    ends = [layout.parts[i].end for i in pool if _ENDS.fullmatch(layout.of(i))]
    if ends:
        return ends, " "
    last: dict[int, int] = {}
    for i in pool:
        last[layout.parts[i].turn] = layout.parts[i].end
    return list(last.values()), "\n"
