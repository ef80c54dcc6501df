"""The tokenizer of a GGUF file, rebuilt exactly from the file's own vocabulary and merges.

Byte-level BPE only (`tokenizer.ggml.model` = "gpt2": SmolLM2, Qwen, Llama 3 and many others).
The pre-tokenizer is chosen by `tokenizer.ggml.pre`, with the regular expressions that llama.cpp
uses for that name (src/llama-vocab.cpp); an unknown name is refused, because a wrong split would
give wrong likelihoods without any error. No post-processor is set: it would trim blanks from the
character offsets.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from agenteval.errors import InputError, ModelUnavailable

_CASED = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|"
_REST = r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_SPLITS = {
    "qwen2": _CASED + r"\p{N}" + _REST,
    "llama-bpe": _CASED + r"\p{N}{1,3}" + _REST,
}
_CONTROL, _USER_DEFINED = 3, 4


def build(fields: Mapping[str, Any]) -> Any:
    """A `tokenizers.Tokenizer` from the fields of a GGUF file (`tokenizer.ggml.*`).

    Raises ModelUnavailable for a kind of tokenizer that cannot be rebuilt exactly.
    """
    from tokenizers import AddedToken, Tokenizer
    from tokenizers.models import BPE

    kind, pre = fields.get("tokenizer.ggml.model"), fields.get("tokenizer.ggml.pre")
    if kind != "gpt2":
        raise ModelUnavailable(f"likelihood needs a byte-level BPE tokenizer, this file has {kind}")
    tokens: list[str] = fields["tokenizer.ggml.tokens"]
    merges = [tuple(merge.split(" ", 1)) for merge in fields["tokenizer.ggml.merges"]]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    if len(vocabulary) != len(tokens):
        raise ModelUnavailable("the vocabulary of this GGUF file holds a token twice")
    tokenizer = Tokenizer(BPE(vocab=vocabulary, merges=merges, ignore_merges=pre == "llama-bpe"))
    tokenizer.pre_tokenizer = _pre_tokenizer(str(pre))
    kinds = fields.get("tokenizer.ggml.token_type") or []
    for token, token_kind in zip(tokens, kinds, strict=False):
        if token_kind in (_CONTROL, _USER_DEFINED):
            added = AddedToken(token, special=token_kind == _CONTROL, normalized=False)
            (tokenizer.add_special_tokens if added.special else tokenizer.add_tokens)([added])
    return tokenizer


def _pre_tokenizer(pre: str) -> Any:
    from tokenizers import Regex
    from tokenizers.pre_tokenizers import ByteLevel, Digits, Sequence, Split

    whole = ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=True)
    if pre == "gpt-2":
        return whole
    if pre == "smollm":
        return Sequence([Digits(individual_digits=True), whole])
    if pre in _SPLITS:
        plain = ByteLevel(add_prefix_space=False, trim_offsets=False, use_regex=False)
        return Sequence([Split(Regex(_SPLITS[pre]), "isolated"), plain])
    raise ModelUnavailable(
        f"likelihood does not know the pre-tokenizer {pre!r} of this GGUF file; known:"
        f" gpt-2, smollm, {', '.join(_SPLITS)}"
    )


class Tokenizer:
    """Two views of one vocabulary: prompts, where control tokens count, and texts, where not."""

    def __init__(self, serialised: str) -> None:
        """`serialised` is the JSON form. Raises ValueError when it cannot be read."""
        from tokenizers import Tokenizer as Rust

        json.loads(serialised)  # the library itself raises a bare Exception
        self._prompt = Rust.from_str(serialised)
        self._text = Rust.from_str(serialised)
        # What an agent wrote must not become a control token, or it could end its own turn.
        self._text.encode_special_tokens = True

    def prompt(self, text: str) -> list[int]:
        """Token ids of a prompt; control tokens such as <|im_start|> are recognised."""
        return list(self._prompt.encode(_clean(text), add_special_tokens=False).ids)

    def text(self, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Token ids of a text and the character span (start, end) of each in the text.

        Control tokens are read as plain characters. The tokens of one character that needs
        several of them all carry that character's span; apart from this the spans abut.
        """
        encoded = self._text.encode(_clean(text), add_special_tokens=False)
        return list(encoded.ids), list(encoded.offsets)

    def id_of(self, token: str) -> int | None:
        """Id of a token by its spelling, or None."""
        number = self._prompt.token_to_id(token)
        return None if number is None else int(number)


def _clean(text: str) -> str:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            f"character {error.start} is half of a surrogate pair; the text is not valid Unicode"
        ) from error
    return text
