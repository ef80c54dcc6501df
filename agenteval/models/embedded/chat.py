"""The ChatML prompt, so that a text can be scored as the assistant's turn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from agenteval.errors import InputError

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"
"""The system turn that SmolLM2's own template adds when a conversation brings none."""

_CONTROL = ("<|im_start|>", "<|im_end|>", "<|endoftext|>")


def chat_prefix(messages: Sequence[Mapping[str, str]], *, system: str | None = SYSTEM) -> str:
    """Everything before the assistant's answer, ending in the open assistant turn.

    For SmolLM2 this is what the chat template in its GGUF renders with `add_generation_prompt`.
    `system` is put first when the first message is not a system message; None adds nothing (right
    for ChatML models whose template has no default). Where a content spells out a control token,
    a zero-width space breaks it up, so that what an agent wrote cannot end a turn.
    Raises InputError when a message lacks a role or a text content.
    """
    turns = list(messages)
    if system is not None and (not turns or turns[0].get("role") != "system"):
        turns.insert(0, {"role": "system", "content": system})
    return "".join(map(_turn, turns)) + "<|im_start|>assistant\n"


def _turn(message: Mapping[str, str]) -> str:
    role, content = message.get("role"), message.get("content")
    if not isinstance(role, str) or not isinstance(content, str):
        raise InputError("a chat message needs a role and a text content")
    return f"<|im_start|>{_broken(role)}\n{_broken(content)}<|im_end|>\n"


def _broken(text: str) -> str:
    for token in _CONTROL:
        text = text.replace(token, token[:2] + "\u200b" + token[2:])
    return text
