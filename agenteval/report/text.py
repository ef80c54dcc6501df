"""Text from outside, made fit to be shown: nothing hidden, nothing that could act, bounded."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any

from agenteval.text import visible

_UNSAFE = re.compile("[<>&\u2028\u2029]")


shown = visible


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
