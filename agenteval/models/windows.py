"""Which well-known hosted models take long prompts. Models that people serve themselves are not
listed, since the server sets their window."""

from __future__ import annotations

import re

UNKNOWN = 8192  # what any chat model of today takes
LARGEST = 128_000  # longer prompts are possible; judges find less in them (arXiv 2505.08638)

# Families of which every chat model takes at least LARGEST tokens, prompt and reply together, by
# their makers' pages; their variants for sound, pictures and search take less, or other things.
_LONG = re.compile(
    r"(?:chatgpt-)?gpt-4o|gpt-4-turbo|gpt-4\.1|gpt-5|o[134](?:-|$)"
    r"|claude-(?:3|opus|sonnet|haiku)|gemini-(?:1\.5|2)"
)
_OTHER = re.compile(r"realtime|audio|transcribe|tts|image|search|live|vision|embedding|research")


def context_of(model: str) -> int | None:
    """`LARGEST` for a model that takes at least so many tokens; None for an unknown one.

    What stands before the last slash of the name, such as a provider, does not matter.
    """
    name = model.rsplit("/", 1)[-1].lower()
    return LARGEST if _LONG.match(name) and not _OTHER.search(name) else None
