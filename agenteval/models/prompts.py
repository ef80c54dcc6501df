"""Prompt templates: loaded once, rendered strictly, identified by sha256.

Untrusted text enters through the filter `data`: between markers with a nonce it cannot know, with
look-alike markers and invisible characters inside it neutralised.
"""

from __future__ import annotations

import functools
import hashlib
import re
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from agenteval.models.wire import NONCE

_MARKER = re.compile(r"<<(?=/?(?:BEGIN|END)\b)|(?<=-)>>", re.I)
_ROLE_TAG = re.compile(r"<\|(?=[a-z_]{2,20}\|>)", re.I)
# zero-width, bidirectional and tag characters: invisible to people, read by models
_INVISIBLE = re.compile(
    "[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\U000e0000-\U000e007f]"
)


def neutralise(text: str) -> str:
    """Untrusted text made harmless for a prompt: idempotent, and readable for the judge.

    Marker look-alikes and chat-template tags are broken by a space; invisible characters are
    shown as their code.
    """
    text = text.replace(NONCE[0], "\ufffd")
    text = _INVISIBLE.sub(lambda m: f"[U+{ord(m.group()):04X}]", text)
    text = _MARKER.sub(lambda m: " ".join(m.group()), text)
    return _ROLE_TAG.sub("< |", text)


def data_block(text: str, label: str) -> str:
    """The text between markers: `<<BEGIN label nonce>> ... <<END label nonce>>`."""
    return f"<<BEGIN {label} {NONCE}>>\n{neutralise(text)}\n<<END {label} {NONCE}>>"


@dataclass(frozen=True)
class Prompt:
    """One template. `sha256` (hex) is part of the source of every score made with it."""

    name: str
    sha256: str
    template: Any

    def render(self, **values: object) -> str:
        """The text; a missing value raises jinja2.UndefinedError."""
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
    )
    environment.filters["data"] = data_block
    return Prompt(
        name, hashlib.sha256(source.encode()).hexdigest(), environment.from_string(source)
    )
