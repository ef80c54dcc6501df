"""Which well-known hosted models take long prompts, write long replies and reason.

Windows of models that people serve themselves are not listed, since the server sets them.
"""

from __future__ import annotations

import re

UNKNOWN = 8192  # accepted by every current chat model
LARGEST = 128_000  # longer prompts are possible; judges find less in them (arXiv 2505.08638)

# Families of which every chat model takes at least LARGEST tokens, prompt and reply together, by
# their makers' pages; their variants for sound, pictures and search take less, or other things.
_LONG = re.compile(
    r"(?:chatgpt-)?gpt-4o|gpt-4-turbo|gpt-4\.1|gpt-5|o[134](?:-|$)"
    r"|claude-(?:3|opus|sonnet|haiku)|gemini-(?:1\.5|2)"
)
_OTHER = re.compile(r"realtime|audio|transcribe|tts|image|search|live|vision|embedding|research")


# Families that reason before they write, which uses tokens of the reply.
_REASONING = re.compile(
    r"o[134](?:-|$)|gpt-5|gpt-oss|deepseek-r|deepseek-reasoner|qwq|magistral|grok-(?:3-mini|4)"
    r"|gemini-(?:2\.5|3)|sonar-(?:reasoning|deep)|glm-(?:4\.[5-9]|5|z1)|minimax-m|phi-4-reasoning"
    r"|qwen3(?!.*instruct)|kimi-k2-thinking|nemotron|.*(?:-thinking|-reasoning|-reasoner)"
)
# Most tokens of one reply, thinking included, by the makers' pages (November 2026).
_LONGEST_REPLIES = (
    (r"gpt-5-chat|(?:chatgpt-)?gpt-4o", 16_384),
    (r"gpt-4\.1", 32_768),
    (r"gpt-4-turbo", 4096),
    (r"gpt-5|gpt-oss", 128_000),
    (r"o[134](?:-|$)", 100_000),
    (r"claude-3-(?:5|haiku)", 8192),
    (r"claude-", 128_000),
    (r"gemini-(?:1\.5|2\.0)", 8192),
    (r"gemini-[23]", 65_536),
    (r"deepseek-(?:chat|reasoner)", 65_536),
)


def reasons(model: str) -> bool:
    """Return whether the model is known to reason before it writes."""
    return _REASONING.match(_family(model)) is not None


def longest_reply(model: str) -> int | None:
    """Most tokens of one reply of a well-known model; None for an unknown one."""
    name = _family(model)
    return next((most for family, most in _LONGEST_REPLIES if re.match(family, name)), None)


def _family(model: str) -> str:
    return model.rsplit("/", 1)[-1].lower()


def context_of(model: str) -> int | None:
    """Return `LARGEST` for a model with at least this context window, or None for an unknown one.
    The part of the name before the last slash, such as a provider, is ignored."""
    name = _family(model)
    return LARGEST if _LONG.match(name) and not _OTHER.search(name) else None
