"""Prompt templates: loaded once, rendered strictly, identified by sha256.

Untrusted text enters through the filter `data`: between markers with a nonce it cannot know, with
look-alike markers and invisible characters inside it neutralised. What enters without the filter
loses the nonce's placeholder, so no text can write a marker that counts. Within a block, `line` and
`indented` keep one text from posing as another: a name stays on its line, and no later line of a
description begins where an entry begins.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
import unicodedata
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from agenteval.models.wire import NONCE

_MARKER = re.compile(
    r"(?<![<＜‹〈])[<＜‹〈]{2,}+(?=\s{0,9}/?\s{0,9}(?:BEGIN|END|SYS)\b)|(?<=-)>>", re.I
)
# Turn and role tags of chat templates: <|im_start|>, <start_of_turn>, [INST], <system> ...
_TURN = (
    r"(?:start|end)_of_turn|(?:system|user|assistant|human|tool|model|s|bos|eos|think|"
    r"tool_call|tool_response|reserved_\d{1,4})\s{0,9}>"
)
_SQUARE = r"INST|SYSTEM_PROMPT|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS"
_ROLE_TAG = re.compile(
    rf"[<\[](?:(?<=<)(?=[|｜][^|｜<>\s]{{1,40}}[|｜]>|/?(?:{_TURN}))|(?<=\[)(?=/?(?:{_SQUARE})\]))",
    re.I,
)
# Zero-width, bidirectional, filler, tag and variation characters and controls: invisible to
# people, read by models; a carriage return alone hides a line. U+FE0F stays: it makes emoji.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff9-\ufffb"
    "\U000e0000-\U000e01ef]|\r(?!\n)"
)
_NON_JOINER, _JOINER = "\u200c", "\u200d"
# Scripts that are spelled with the two: Arabic to N'Ko, Devanagari to Sinhala, Khmer, Mongolian.
_JOINING = ((0x0600, 0x07FF), (0x08A0, 0x0DFF), (0x1780, 0x18AF), (0xFB50, 0xFDFF))


def neutralise(text: str) -> str:
    """Untrusted text made harmless for a prompt: idempotent, and readable for the judge.

    Marker look-alikes and chat-template tags are broken by a space; invisible characters are
    shown as their code. Nothing is taken away, so `cat <<END` reads `cat < <END`, and code with
    `a << b`, `vector<vector<int>>`, HTML or LaTeX stays as it is. Joiners stay where they spell:
    between letters of a script that needs them, and within an emoji.
    """
    if not (text.isascii() and text.replace("\n", "").isprintable()):  # most texts are both
        text = text.replace(NONCE[0], "\ufffd")
        text = _INVISIBLE.sub(_shown, text)
        text = _MARKER.sub(_parted, text)
    elif "<<" in text or "->>" in text:
        text = _MARKER.sub(_parted, text)
    if "<" in text or "[" in text:
        text = _ROLE_TAG.sub(lambda m: m.group() + " ", text)
    return text


def _parted(match: re.Match[str]) -> str:
    return " ".join(match.group())


def _shown(match: re.Match[str]) -> str:
    sign, text, at = match.group(), match.string, match.start()
    if sign in (_NON_JOINER, _JOINER) and _spells(sign, text[at - 1 : at], text[at + 1 : at + 2]):
        return sign
    return f"[U+{ord(sign):04X}]"


def _spells(sign: str, before: str, after: str) -> bool:
    """Whether a joiner between these two is part of the spelling, not a hidden sign."""
    if not before or not after or _INVISIBLE.match(before) or _INVISIBLE.match(after):
        return False
    if sign == _JOINER and _is_emoji(after) and (before == "\ufe0f" or _is_emoji(before)):
        return True
    return all(
        any(low <= ord(c) <= high for low, high in _JOINING) and unicodedata.category(c)[0] in "LM"
        for c in (before, after)
    )


def _is_emoji(character: str) -> bool:
    """Pictures and the tones of skin that follow them."""
    return ord(character) >= 0x2190 and unicodedata.category(character) in ("So", "Sk")


def one_line(text: object) -> str:
    """Untrusted text for one line of a prompt: neutralised, with single spaces."""
    return neutralise(" ".join(str(text).split()))


def indented(text: object) -> str:
    """Untrusted text of several lines as one entry of a list: later lines stand 4 spaces in.

    What any reader may take for the end of a line is one.
    """
    return neutralise("\n    ".join(str(text).splitlines()))


def data_block(text: str, label: str) -> str:
    """The text between markers: `<<BEGIN label nonce>> ... <<END label nonce>>`."""
    return f"<<BEGIN {label} {NONCE}>>\n{neutralise(text)}\n<<END {label} {NONCE}>>"


class _Marked(str):
    """Text that may hold the placeholder: made here, not given from outside."""

    __slots__ = ()


def _without_placeholder(value: object) -> object:
    """Jinja calls it for every value that a template puts out."""
    if isinstance(value, _Marked):
        return value
    text = str(value)
    return text.replace(NONCE[0], "\ufffd") if NONCE[0] in text else value


@dataclass(frozen=True)
class Prompt:
    """One template. `sha256` (hex) is part of the source of every score made with it."""

    name: str
    sha256: str
    template: Any
    package: str = ""

    def __reduce__(self) -> tuple[Any, ...]:
        return load_prompt, (self.package, self.name)  # a template cannot be pickled

    def render(self, **values: object) -> str:
        """The text; a missing value raises jinja2.UndefinedError.

        The value `nonce` may be the placeholder (wire.NONCE); no other value may hold it.
        """
        if values.get("nonce") == NONCE:
            values["nonce"] = _Marked(NONCE)
        text: str = self.template.render(**values)
        return text.strip()


def template_text(package: str, name: str) -> str:
    """The source of a template. Raises FileNotFoundError when the package has none such."""
    return files(package).joinpath("prompts").joinpath(f"{name}.md").read_text("utf-8")


@functools.cache
def load_prompt(package: str, name: str) -> Prompt:
    """Template `prompts/<name>.md` of a package. Raises FileNotFoundError when it has none."""
    import jinja2

    source = template_text(package, name)
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701  no HTML
        finalize=_without_placeholder,
    )
    # `range` and the like: no template asks for them, and each rendering would copy them
    environment.globals.clear()
    environment.filters["data"] = lambda text, label: _Marked(data_block(text, label))
    environment.filters["line"] = one_line
    environment.filters["indented"] = indented
    # Jinja's own tojson writes ' as \\u0027; a label must stand as it has to be copied.
    environment.filters["quoted"] = lambda text: json.dumps(text, ensure_ascii=False)
    sha256 = hashlib.sha256(source.encode()).hexdigest()
    return Prompt(name, sha256, environment.from_string(source), package)
