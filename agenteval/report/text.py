"""Text from outside, made fit to be shown: nothing hidden, nothing that could act, bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

# Controls (tab and line feed stay), soft hyphen, bidirectional, zero-width, tag characters: they
# could reorder or hide what a person reads. Half characters cannot be written as UTF-8.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u115f\u1160\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb\U000e0000-\U000e007f\ud800-\udfff\ufffe\uffff]"
)
_UNSAFE = re.compile("[<>&\u2028\u2029]")


def shown(text: object) -> str:
    """The text with line ends as line feeds and every invisible character shown as `[U+202E]`."""
    plain = str(text).replace("\r\n", "\n")
    return _HIDDEN.sub(lambda m: f"[U+{ord(m.group()):04X}]", plain)


def cut(text: object, most: int) -> str:
    """`shown` text of at most `most` characters; what was left out is counted in words."""
    raw = str(text)
    if len(raw) <= most:
        return shown(raw)
    return f"{shown(raw[:most])} [… cut: {most:,} of {len(raw):,} characters]"


def variant_label(name: str, among: Iterable[str] = ()) -> str:
    """`drop sentences 25 %` for `drop_sentences:0.25:7`; the seed too where only it differs."""
    operator, _, rest = name.partition(":")
    share, _, seed = rest.partition(":")
    try:
        dose = "" if share in ("", "-") else f" {float(share) * 100:.3g} %"
    except ValueError:
        return shown(name)
    label = operator.replace("_", " ") + dose
    twins = [v for v in among if v != name and v.rpartition(":")[0] == name.rpartition(":")[0]]
    return shown(f"{label}, seed {seed}" if twins and seed else label)


def json_block(value: Any) -> str:
    """JSON that may stand inside an HTML script element: no `<`, `>`, `&` or line separator.

    These are written as \\uXXXX, so that no text in it can end the element or open a comment
    (OWASP, Cross Site Scripting Prevention, "output encoding for JavaScript contexts"). Raises
    ValueError for NaN and infinity.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda m: f"\\u{ord(m.group()):04x}", text)
