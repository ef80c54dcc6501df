"""Figures inside the page: only drawing, no style, no way out."""

from __future__ import annotations

import pytest

from agenteval.report.svg import inline

HEAD = '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '


def test_styles_become_attributes_and_ids_are_own() -> None:
    made = inline(
        HEAD + 'width="9pt" viewBox="0 0 9 9"><metadata>x</metadata><style>*{}</style>'
        '<defs><clipPath id="p"><rect width="1"/></clipPath></defs>'
        '<g id="a" clip-path="url(#p)"><path d="M0 0" style="fill: #fff; font: x; stroke: none"/>'
        '<use xlink:href="#a"/></g></svg>',
        "f1-",
    )
    assert made == (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 9 9"><defs><clipPath id="f1-p">'
        '<rect width="1" /></clipPath></defs><g id="f1-a" clip-path="url(#f1-p)">'
        '<path d="M0 0" fill="#fff" stroke="none" /><use href="#f1-a" /></g></svg>'
    )


@pytest.mark.parametrize(
    "inside",
    [
        "<script>alert(1)</script>",
        '<g onload="alert(1)"/>',
        '<a xlink:href="javascript:alert(1)"><path d=""/></a>',
        '<use xlink:href="http://example.invalid/x#y"/>',
        '<image xlink:href="http://example.invalid/x.png"/>',
        '<image xlink:href="data:image/svg+xml;base64,AAAA"/>',
        "<foreignObject><p>x</p></foreignObject>",
        '<path fill="url(http://example.invalid/#a)"/>',
        '<path style="fill: url( http://example.invalid/#a )"/>',
        "<!-- comment --><animate/><set/>",
    ],
)
def test_what_could_act_is_left_out(inside: str) -> None:
    made = inline(HEAD + f">{inside}</svg>", "f-")
    for word in ("script", "alert", "onload", "example", "svg+xml", "foreign", "comment", "anim"):
        assert word not in made


@pytest.mark.parametrize("text", ["", "<html/>", "<svg", "<svg/>"])
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="not an SVG"):
        inline(text, "f-")
