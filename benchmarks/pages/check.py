"""What must hold of a page as text: the same elements as with harmless words, no handler, no
address, one policy; and what must be seen of a payload. Nothing here uses the code under test."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from html.parser import HTMLParser

_LOADS = frozenset(
    {"src", "srcset", "href", "xlink:href", "action", "formaction", "data", "poster", "ping"}
    | {"background", "srcdoc", "style", "manifest", "cite", "longdesc", "profile"}
)  # fmt: skip
_BEGIN = 40  # characters of a payload that must be seen
_HALF = re.compile("[\ud800-\udfff]")
_OWN = re.compile(r"#|data:image/png;base64,[A-Za-z0-9+/=\s]+\Z")
_DIRECTIVES = {
    "default-src": "'none'", "base-uri": "'none'", "form-action": "'none'", "img-src": "data:",
}  # fmt: skip


class Parsed(HTMLParser):
    """Elements (outside of figures), attributes, words, and what stands in scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: Counter[str] = Counter()
        self.names: Counter[str] = Counter()
        self.classes: Counter[str] = Counter()
        self.figure: set[str] = set()
        self.attributes: list[tuple[str, str, str]] = []
        self.raw: list[tuple[str, dict[str, str], str]] = []
        self.words: list[str] = []
        self.others = 0  # comments, declarations, processing instructions
        self._in: tuple[str, dict[str, str]] | None = None
        self._svg = 0
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = [(tag, name, value or "") for name, value in attrs]
        self.attributes += given
        if tag == "svg":
            self._svg += 1
        if self._svg:
            self.figure.add(tag)
            return
        self.tags[tag] += 1
        self.names.update(name for _, name, _ in given)
        self.classes.update(v for _, name, v in given if name == "class")
        if tag in ("script", "style"):
            self._in = (tag, {name: value for _, name, value in given})

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.handle_endtag(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "svg":
            self._svg -= 1
        if self._in and tag == self._in[0]:
            self._in = None

    def handle_data(self, data: str) -> None:
        if self._in:
            self.raw.append((*self._in, data))
        else:
            self.words.append(data)

    def handle_comment(self, data: str) -> None:
        self.others += 1

    def handle_pi(self, data: str) -> None:
        self.others += 1

    def unknown_decl(self, data: str) -> None:
        self.others += 1

    @property
    def text(self) -> str:
        """Words of the page, spaces as one."""
        return one_spaced("".join(self.words))


def unseen(hostile: Parsed, benign: Parsed, pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Payloads that are not shown as text where the harmless text in their place is. `pairs` are
    (payload, harmless text); only beginnings are looked for, since long texts are cut."""
    told, plain = re.sub("\ufffd+", "\ufffd", hostile.text), benign.text
    return [
        bad for bad, good in pairs
        if len(good) > 6 and one_spaced(good[:_BEGIN]) in plain
        and not any(form in told for form in _forms(bad[:_BEGIN]))
    ]  # fmt: skip


def _forms(text: str) -> Iterator[str]:
    """How it may stand on a page: as it is, with an escape or U+FFFD for half a character where it
    was kept as UTF-8, and quoted: as the JSON of a parameter, or as a name in a message."""
    escaped = text.encode("utf-8", "backslashreplace").decode()
    for form in (text, _HALF.sub("\ufffd", text), escaped):
        yield as_seen(form)
        yield as_seen(form.replace("_", " "))  # names of grades and operators
        yield as_seen(json.dumps(form, ensure_ascii=False)[1:-1])
        yield as_seen(repr(form)[1:-1])


def one_spaced(text: str) -> str:
    """The text with every run of spaces and line ends as one space."""
    return " ".join(text.split())


def changed_nodes(hostile: Parsed, benign: Parsed) -> list[str]:
    """Elements, attribute names, classes and comments whose number differs."""
    found = []
    for what in ("tags", "names", "classes"):
        a, b = getattr(hostile, what), getattr(benign, what)
        found += [
            f"{what} {k!r}: {a[k]} instead of {b[k]}" for k in sorted({*a, *b}) if a[k] != b[k]
        ]
    if hostile.others != benign.others:
        found.append(f"{hostile.others} comments instead of {benign.others}")
    return found


def faults(page: Parsed) -> list[str]:
    """What a page must not hold: handlers, addresses, foreign scripts, a weak policy, two elements
    of one id."""
    found = [f"handler {n} of {t}" for t, n, _ in page.attributes if n.startswith("on")]
    for tag, name, value in page.attributes:
        if name in _LOADS and not _OWN.match(value):
            if tag == "a" and re.match(r"https?://", value):
                continue
            found.append(f"{tag} {name}={value[:60]!r}")
    found += [f"url( in {n}" for _, n, v in page.attributes
              if "url(" in v and not re.fullmatch(r"url\(#[\w.-]+\)", v) and n not in ("class",)
              and n.startswith(("fill", "stroke", "clip", "mask", "filter", "style"))]  # fmt: skip
    found += [
        f"figure holds {tag}" for tag in page.figure & {"script", "style", "foreignobject", "a"}
    ]
    ids = Counter(v for _, name, v in page.attributes if name == "id")
    found += [f"id {v!r} stands {n} times" for v, n in ids.items() if n > 1]
    for tag, _, value in page.attributes:
        if tag == "a" and re.match(r"https?://", value):
            found += [] if _has(page, value, "noopener") else [f"link {value[:40]!r} has an opener"]
    return found + _policy_faults(page)


def _has(page: Parsed, href: str, word: str) -> bool:
    place = next(i for i, (_, _, v) in enumerate(page.attributes) if v == href)
    near = page.attributes[max(0, place - 4) : place + 5]
    return any(n == "rel" and word in v for _, n, v in near)


def _policy_faults(page: Parsed) -> list[str]:
    policies = [v for t, n, v in page.attributes if (t, n) == ("meta", "content") and "-src" in v]
    if len(policies) != 1:
        return [f"{len(policies)} policies"]
    rules = dict(p.strip().split(" ", 1) for p in policies[0].split(";"))
    styles = {_sha(text) for tag, _, text in page.raw if tag == "style"}
    scripts = {_sha(text) for tag, _, text in page.raw if tag == "script"}
    found = [f"{k} {rules.get(k)!r}" for k, v in _DIRECTIVES.items() if rules.get(k, v) != v]
    if "default-src" not in rules:
        found.append("no default-src")
    found += [] if {rules.get("style-src")} == styles else ["style-src is not the style's hash"]
    found += [] if {rules.get("script-src")} == scripts else ["script-src is not the script's hash"]
    return found


def _sha(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


_PRINTED = frozenset("\u200c\u200d")  # of words and emoji in many scripts; seen in what they join


def hidden_in(text: str) -> set[str]:
    """Characters that act or hide: controls but tab and line feed, halves, bidirectional controls,
    line separators, and other format characters that no script needs (Unicode, chapter 23)."""
    return {
        c for c in set(text)
        if c not in "\n\t" and c not in _PRINTED
        and (unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp", "Cf") and not _emoji_tag(c))
    }  # fmt: skip


def _emoji_tag(char: str) -> bool:
    return (
        False
        if 0xE0000 <= ord(char) <= 0xE007F
        else unicodedata.name(char, "").startswith(
            ("ARABIC NUMBER", "ARABIC END", "SYRIAC", "KAITHI", "EGYPTIAN", "MUSICAL", "SHORTHAND")
        )
    )


def as_seen(payload: str) -> str:
    """The payload as a page has to show it: what hides or acts as [U+XXXX], spaces as one."""
    shown = "".join(
        f"[U+{ord(c):04X}]" if hidden_in(c) or c in "\ufffe\uffff\u3164\u115f\u1160\uffa0" else c
        for c in payload.replace("\r\n", "\n")
    )
    return one_spaced(shown)
