"""Templates of the smaller pages: the parts of this package, and the macros of the large page."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any


@functools.cache
def part(name: str) -> str:
    """The text of a file of this package."""
    return files("agenteval.report").joinpath(name).read_text(encoding="utf-8").strip()


@functools.cache
def environment() -> Any:
    """Jinja, strict and escaping. `grid.html` are the macros before the page of `page.html`;
    `base.html` is what the smaller pages share, from the doctype to the foot."""
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(_template),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )


def raw(text: str) -> Any:
    """Text of ours that is markup already: style sheets, figures."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


def _template(name: str) -> str:
    if name == "grid.html":
        return part("page.html").partition("<!DOCTYPE html>")[0]
    return part(name)
