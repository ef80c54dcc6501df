"""SVG files of our figures made fit to stand inside a page: known elements only, no style.

A page whose policy allows styles by hash only ignores `style` attributes, so they become
attributes of the same name. Ids get a prefix, since several figures share a page.
"""

from __future__ import annotations

import re
from xml.etree import ElementTree

_SVG = "http://www.w3.org/2000/svg"
_XLINK = "{http://www.w3.org/1999/xlink}href"
_ELEMENTS = frozenset(
    {"svg", "g", "defs", "path", "use", "clipPath", "rect", "pattern", "image", "linearGradient",
     "stop", "circle", "line", "polyline", "polygon", "ellipse"}
)  # fmt: skip
_ATTRIBUTES = frozenset(
    {"id", "d", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "rx", "ry", "width", "height",
     "viewBox", "transform", "points", "clip-path", "patternUnits", "offset", "version",
     "gradientUnits", "preserveAspectRatio"}
)  # fmt: skip
_STYLES = frozenset(
    {"fill", "fill-opacity", "fill-rule", "stroke", "stroke-width", "stroke-opacity",
     "stroke-linejoin", "stroke-linecap", "stroke-dasharray", "stroke-dashoffset",
     "stroke-miterlimit", "opacity", "clip-path", "clip-rule", "stop-color", "stop-opacity",
     "image-rendering", "display"}
)  # fmt: skip
_OWN_URL = re.compile(r"url\(\s*#([\w.-]+)\s*\)")
_PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]+")


def inline(text: str, prefix: str) -> str:
    """The figure as an `<svg>` element without title, metadata, style sheet or foreign content.

    `text` is a file that this package has drawn. What is not on the lists is left out; references
    may only point into the figure itself. Raises ValueError when it is no SVG.
    """
    try:
        root = ElementTree.fromstring(text)  # noqa: S314  our own file, entities are not expanded
    except ElementTree.ParseError as error:
        raise ValueError(f"not an SVG file: {error}") from error
    clean = _copied(root, prefix)
    if clean is None or clean.tag != f"{{{_SVG}}}svg":
        raise ValueError("not an SVG file")
    for size in ("width", "height"):
        clean.attrib.pop(size, None)
    _unique_ids(clean)
    ElementTree.register_namespace("", _SVG)
    return ElementTree.tostring(clean, encoding="unicode", short_empty_elements=True)


def _unique_ids(root: ElementTree.Element) -> None:
    """The first element of an id keeps it: a group drawn several times has one name."""
    seen: set[str] = set()
    for element in root.iter():
        name = element.get("id")
        if name is not None and name in seen:
            del element.attrib["id"]
        elif name is not None:
            seen.add(name)


def _copied(element: ElementTree.Element, prefix: str) -> ElementTree.Element | None:
    namespace, _, name = str(element.tag).rpartition("}")
    if namespace != f"{{{_SVG}" or name not in _ELEMENTS:
        return None
    made = ElementTree.Element(element.tag, _attributes(element, name, prefix))
    for child in element:
        if (part := _copied(child, prefix)) is not None:
            made.append(part)
    return made


def _attributes(element: ElementTree.Element, name: str, prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in element.attrib.items():
        if key == "style":
            found |= _presented(value, prefix)
        elif key == "id":
            found["id"] = prefix + value
        elif key in (_XLINK, "href"):
            if value.startswith("#"):
                found["href"] = f"#{prefix}{value[1:]}"
            elif name == "image" and _PICTURE.fullmatch(value):
                found["href"] = value
        elif key in _ATTRIBUTES or key in _STYLES:
            found |= _safe(key, value, prefix)
    return found


def _presented(style: str, prefix: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for part in style.split(";"):
        key, _, value = part.partition(":")
        if key.strip() in _STYLES:
            found |= _safe(key.strip(), value.strip(), prefix)
    return found


def _safe(key: str, value: str, prefix: str) -> dict[str, str]:
    """The attribute with its own references renamed; nothing when it points elsewhere."""
    renamed = _OWN_URL.sub(lambda m: f"url(#{prefix}{m.group(1)})", value)
    if "url(" in _OWN_URL.sub("", value).lower():
        return {}
    return {key: renamed}
