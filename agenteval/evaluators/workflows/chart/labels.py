"""What is written in a label and what it says: entities, quotes, lines."""

from __future__ import annotations

import html
import re

_ENTITY = re.compile(r"#(\w{1,31});")


def decoded(written: str) -> str:
    """Mermaid's entities resolved (`#quot;`, `#35;`), and the text `cleaned`."""
    text = _ENTITY.sub(_character, written)
    return cleaned(text)


def _character(match: re.Match[str]) -> str:
    name = f"#{match[1]};" if match[1].isdigit() else f"{match[1]};"
    text = html.unescape(f"&{name}")
    return match.group() if text.startswith("&") and len(text) > 1 else text


def cleaned(text: str) -> str:
    """Lines stripped and joined by line feeds, without empty ones at the beginning and the end."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return "\n".join(line.strip() for line in lines).strip("\n")
