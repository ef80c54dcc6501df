"""How much a test tries: enough for every run, and more with `--hypothesis-profile=thorough`."""

from __future__ import annotations

from hypothesis import settings

PROFILE = "thorough"


def often(usual: int, thorough: int) -> int:
    """`thorough` under the profile of this name, else `usual`: examples, seeds, rounds."""
    return thorough if settings.get_current_profile_name() == PROFILE else usual
