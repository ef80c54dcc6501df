"""Prompt templates: loaded once, rendered strictly, identified by sha256.

Untrusted text enters through the filter `data`: between markers with a nonce it cannot know, with
look-alike markers and invisible characters inside it neutralised. What enters without the filter
loses the nonce's placeholder, so no text can write a marker that counts.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from agenteval.models.wire import NONCE

_MARKER = re.compile(r"(?<!<)<{2,}+(?=\s{0,9}/?\s{0,9}(?:BEGIN|END|SYS)\b)|(?<=-)>>", re.I)
# Turn and role tags of chat templates: <|im_start|>, <start_of_turn>, [INST], <system> ...
_TURN = r"(?:start|end)_of_turn|(?:system|user|assistant|human|tool|model)\s*>|s\s*>"
_ROLE_TAG = re.compile(
    rf"[<\[](?:(?<=<)(?=[|｜][^|｜<>\s]{{1,40}}[|｜]>|/?(?:{_TURN}))|(?<=\[)(?=/?INST\]))", re.I
)
# Zero-width, bidirectional, filler, tag and variation characters and controls: invisible to
# people, read by models. U+FE0F stays: it makes the emoji of honest text.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e01ef]"
)


def neutralise(text: str) -> str:
    """Untrusted text made harmless for a prompt: idempotent, and readable for the judge.

    Marker look-alikes and chat-template tags are broken by a space; invisible characters are
    shown as their code.
    """
    if not (text.isascii() and text.replace("\n", "").isprintable()):  # most texts are both
        text = text.replace(NONCE[0], "\ufffd")
        text = _INVISIBLE.sub(lambda m: f"[U+{ord(m.group()):04X}]", text)
    if "<<" in text or "->>" in text:
        text = _MARKER.sub(lambda m: " ".join(m.group()), text)
    return _ROLE_TAG.sub(lambda m: m.group() + " ", text)


def data_block(text: str, label: str) -> str:
    """The text between markers: `<<BEGIN label nonce>> ... <<END label nonce>>`."""
    return f"<<BEGIN {label} {NONCE}>>\n{neutralise(text)}\n<<END {label} {NONCE}>>"


class _Marked(str):
    """Text that may hold the placeholder: made here, not given from outside."""

    __slots__ = ()


def _marked_block(text: str, label: str) -> _Marked:
    return _Marked(data_block(text, label))


def _without_placeholder(value: object) -> object:
    """Jinja calls it for every value that a template puts out."""
    if isinstance(value, _Marked):
        return value
    text = str(value)
    return text.replace(NONCE[0], "\ufffd") if NONCE[0] in text else value


@dataclass(frozen=True)
class Prompt:
    """One template. `sha256` (hex) is part of the source of every score made with it."""

    name: str
    sha256: str
    template: Any

    def render(self, **values: object) -> str:
        """The text; a missing value raises jinja2.UndefinedError.

        The value `nonce` may be the placeholder (wire.NONCE); no other value may hold it.
        """
        if values.get("nonce") == NONCE:
            values["nonce"] = _Marked(NONCE)
        text: str = self.template.render(**values)
        return text.strip()


@functools.cache
def load_prompt(package: str, name: str) -> Prompt:
    """Template `prompts/<name>.md` of a package. Raises FileNotFoundError when it has none."""
    import jinja2

    source = files(package).joinpath("prompts").joinpath(f"{name}.md").read_text("utf-8")
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  no HTML
        finalize=_without_placeholder,
    )
    environment.filters["data"] = _marked_block
    # Jinja's own tojson writes ' as \\u0027; a label must stand as it has to be copied.
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    return Prompt(
        name, hashlib.sha256(source.encode()).hexdigest(), environment.from_string(source)
    )
