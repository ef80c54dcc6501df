"""How many tokens well-known hosted models take at least, prompt and reply together.

The figures are floors from the makers' model pages: a model of a family may take more, none takes
less. Models that people serve themselves are not listed, since the server sets their window.
"""

from __future__ import annotations

import re

UNKNOWN = 8192  # what any chat model of today takes
LARGEST = 128_000  # longer prompts are possible; judges find less in them (arXiv 2505.08638)

_FAMILIES = (
    (r"gpt-3\.5-turbo", 16_385),
    (r"(?:chatgpt-)?gpt-4o|chatgpt-4o|gpt-4-turbo|gpt-4\.1|gpt-[5-9]|o[1-9](?:-|$)", 128_000),
    (r"claude-(?:3|opus|sonnet|haiku)", 200_000),
    (r"gemini-(?:1\.5|[2-9])", 1_000_000),
    (r"deepseek-(?:chat|reasoner)", 64_000),
    (r"mistral-large|command-(?:r|a)|grok-[2-9]", 128_000),
)


def context_of(model: str) -> int | None:
    """Tokens that a model of this name takes at least, at most `LARGEST`; None for an unknown one.

    What stands before the last slash, such as a provider, does not matter.
    """
    name = model.rsplit("/", 1)[-1].lower()
    known = next((size for family, size in _FAMILIES if re.match(family, name)), None)
    return None if known is None else min(known, LARGEST)
