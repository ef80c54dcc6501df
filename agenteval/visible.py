"""Characters that hide, reorder or act, shown as their code: for pages and terminals alike."""

from __future__ import annotations

import re

# Controls (tab and line feed stay), soft hyphen, bidirectional, zero-width, tag characters: they
# could reorder or hide what a person reads. Half characters cannot be written as UTF-8.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff\ufffe\uffff]"
)


def visible(text: object) -> str:
    """The text with line ends as line feeds and every invisible character shown as `[U+202E]`."""
    plain = str(text).replace("\r\n", "\n")
    if plain.isascii() and plain.isprintable():
        return plain
    return HIDDEN.sub(lambda m: f"[U+{ord(m.group()):04X}]", plain)


def visible_line(text: object) -> str:
    """The same on one line: a line break, which could fake a line of ours, is shown as ⏎."""
    return visible(text).replace("\n", " ⏎ ").replace("\t", " ")
