"""What people see: results on standard output, progress and notes on standard error."""

from __future__ import annotations

import functools
import json
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console

# ESC and other control characters in run ids or labels could rewrite the terminal.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Verbosity:
    """How much is said on standard error: -1 only errors, 0 normal, 1 more."""

    level = 0


@functools.cache
def out() -> Console:
    """Standard output. A pipe gets 120 columns, so that tables are the same everywhere."""
    from rich.console import Console

    width = None if sys.stdout.isatty() else 120
    return Console(width=width, highlight=False, soft_wrap=False)


@functools.cache
def err() -> Console:
    """Standard error."""
    from rich.console import Console

    return Console(stderr=True, highlight=False, width=None if sys.stderr.isatty() else 120)


def clean(text: object) -> str:
    """Untrusted text for the terminal: control characters shown, markup escaped."""
    from rich.markup import escape

    return escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(text)))


def note(text: str) -> None:
    """One line for the person, unless -q."""
    if Verbosity.level >= 0:
        err().print(f"[dim]{clean(text)}[/dim]", soft_wrap=True)


def warn(text: str) -> None:
    """One line that matters, even with -q."""
    err().print(f"[yellow]{clean(text)}[/yellow]", soft_wrap=True)


def print_json(value: Any) -> None:
    """A JSON document on standard output."""
    sys.stdout.write(json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def warn_list(title: str, lines: Iterable[str], *, most: int = 10) -> None:
    """A title and its lines; the rest is counted, not dropped silently."""
    listed = list(lines)
    if not listed:
        return
    warn(title)
    for line in listed[:most]:
        warn(f"  {line}")
    if len(listed) > most:
        warn(f"  ... and {len(listed) - most} more")
