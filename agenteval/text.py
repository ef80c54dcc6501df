"""Text for display: counts, visible codes for invisible characters, and no keys or passwords. Keys
are removed in two steps. Known values are removed literally, in every spelling used by servers and
libraries; anything else that looks like a credential is removed by its form. Runs and replies are
not changed, except for known values.
"""

from __future__ import annotations

import base64
import io
import json
import logging
import os
import re
import traceback
from collections.abc import Callable, Iterable, Iterator
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TextIO
from urllib.parse import quote, quote_plus, unquote

MARK = "[hidden]"
SECRET_NAMES = ("key", "token", "secret", "password", "passwd")
_SHORTEST = 8  # characters: shorter ones would be found in any text
_PIECE = 12  # characters of a known value that may stand at the end of a text that was cut
_URLS = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "AGENTEVAL_BASE_URL", "OPENAI_BASE_URL")

# RFC 3986, section 3.2.1: user information ends at the last @ before the path.
_USER = re.compile(r"(?<=://)[^/?#\s\"'<>]*@")
_FORMS: tuple[tuple[re.Pattern[str], str], ...] = (
    (_USER, f"{MARK}@"),
    (
        re.compile(
            r"([?&;](?:[\w.-]*(?:key|token|secret|password|passwd|signature)|auth|sig|code|pwd)=)"
            r"[^&#;\s\"'<>]+",
            re.I,
        ),
        rf"\g<1>{MARK}",
    ),
    (re.compile(r"\b(bearer)(\s+)(?=\S*\d)[\w.~+/=-]{8,}", re.I), rf"\g<1>\g<2>{MARK}"),
    (
        re.compile(
            r"\b((?:proxy-)?authorization|(?:x-)?(?:goog-)?(?:api|subscription)[-_]?key)"
            r"(\\?[\"']?\s*[:=,]\s*b?\\?[\"']?(?:(?:bearer|basic)\s+)?)(?!\[hidden\])"
            r"[^\s\"',)\]}\\]{8,}",
            re.I,
        ),
        rf"\g<1>\g<2>{MARK}",
    ),
    (
        re.compile(
            r"\b(?:[sprg]k[-_]|ghp_|gho_|github_pat_|glpat-|hf_|xox[bp]-|AKIA|AIza)"
            r"(?=[\w-]*\d)[\w-]{8,}"
        ),
        MARK,
    ),
    (re.compile(r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*"), MARK),  # RFC 7519: a signed token
)

_known: set[str] = set()  # in every spelling


def keep_secret(values: Iterable[str | None]) -> None:
    """Remember values that must not be shown, and keep them out of logs from now on.

    Values below 8 characters are ignored, because they occur in ordinary texts.
    """
    _known.update(s for value in values if value for s in spellings(value))
    guard_logs()


def spellings(value: str) -> Iterator[str]:
    """A value as servers and libraries write it: as it is, in a URL, in JSON, and in a Basic header
    (RFC 7617); nothing of values below 8 characters."""
    if len(value) < _SHORTEST:
        return
    plain = unquote(value)
    yield from dict.fromkeys((value, plain, quote(plain, safe=""), quote(plain), quote_plus(plain)))
    yield json.dumps(plain)[1:-1]
    for plain_form in (plain, f":{plain}", f"{plain}:"):
        yield base64.b64encode(plain_form.encode("utf-8", "replace")).decode()


def environment_secrets() -> list[str]:
    """Return environment variables with secret-like names, and credentials in their URLs."""
    secrets = [
        value
        for name, value in os.environ.items()
        if len(value) >= _SHORTEST and name.lower().endswith(SECRET_NAMES)
    ]
    for name in _URLS:
        for url in (os.environ.get(name, ""), os.environ.get(name.lower(), "")):
            secrets += [s for u in url.split() for s in url_secrets(u) if len(s) >= _SHORTEST]
    return secrets


def without_known(text: str) -> str:
    """The text without the values remembered and those of the environment, in any spelling; and
    without the beginning of one at its end, where the text was cut."""
    secrets = {s for value in environment_secrets() for s in spellings(value)} | _known
    for secret in sorted(secrets, key=len, reverse=True):  # the longest first
        if secret in text:
            text = text.replace(secret, MARK)
        elif secret[:_PIECE] in text:
            text = _without_cut(text, secret)
    return text


def _without_cut(text: str, secret: str) -> str:
    start = text.rfind(secret[:_PIECE])
    tail = text[start:].rstrip(" .…)\"'}]")
    return text[:start] + MARK if secret.startswith(tail) else text


def redacted(text: object) -> str:
    """The text for logs and messages: without known values and anything in the form of a
    credential.

    Forms: `Bearer`, values of key headers, sk-… and other keys known by their beginning, `?key=`
    and the like in URLs, `user:password@` before a host.
    """
    plain = without_known(str(text))
    for form, instead in _FORMS:
        plain = form.sub(instead, plain)
    return plain


def public_url(url: str) -> str:
    """The URL without user, password, query and fragment: it is shown, stored and hashed."""
    return _USER.sub("", url).partition("?")[0].partition("#")[0]


def url_secrets(url: str) -> tuple[str, ...]:
    """Return the parts that `public_url` removes, as they may occur in messages."""
    user = "".join(_USER.findall(url)).removesuffix("@")
    query = url.partition("?")[2]
    values = [part.partition("=")[2] for part in query.partition("#")[0].split("&")]
    return tuple(s for s in (user, user.partition(":")[2], query, *values) if s)


def guard_logs(shape: Callable[[str], str] | None = None) -> None:
    """Every log record of this process is `redacted` from now on, whatever handler it goes to.

    A filter of the root logger would not see the records of other loggers, so it is done when
    records are created. `shape` is then applied to messages, for example to show control
    characters.
    """
    before = logging.getLogRecordFactory()
    if getattr(before, "shape", ...) is shape or (shape is None and hasattr(before, "shape")):
        return
    make = getattr(before, "inner", before)

    def guarded(*args: Any, **more: Any) -> logging.LogRecord:
        record: logging.LogRecord = make(*args, **more)
        _guard(record, shape)
        return record

    guarded.shape = shape  # type: ignore[attr-defined]
    guarded.inner = make  # type: ignore[attr-defined]
    logging.setLogRecordFactory(guarded)


def _guard(record: logging.LogRecord, shape: Callable[[str], str] | None) -> None:
    try:
        message = record.getMessage()
    except (TypeError, ValueError, KeyError):  # of the caller: logging itself reports it
        return
    clean = redacted(message)
    clean = clean if shape is None else shape(clean)
    if clean != message:
        record.msg, record.args = clean, None
    if record.exc_info and record.exc_info[0] is not None:
        # formatters use this text where it is set, instead of the exception itself
        shown = redacted("".join(traceback.format_exception(*record.exc_info)).rstrip("\n"))
        record.exc_text = shown if shape is None else shape(shown)


# Controls (tab and line feed stay), soft hyphen, bidirectional, zero-width, tag characters: they
# could reorder or hide text. Lone surrogates cannot be written as UTF-8.
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


def is_utf(stream: TextIO) -> bool:
    """Return whether the stream can encode every character, as one without an encoding does."""
    return (getattr(stream, "encoding", None) or "utf-8").lower().startswith("utf")


def replace_unencodable(stream: TextIO) -> None:
    """Make the stream write `?` for characters that its encoding lacks, instead of raising
    UnicodeEncodeError. An error handler that PYTHONIOENCODING names stays."""
    chosen = ":" in os.environ.get("PYTHONIOENCODING", "")
    if isinstance(stream, io.TextIOWrapper) and not is_utf(stream) and not chosen:
        stream.reconfigure(errors="replace")


_IRREGULAR = {
    "reply": "replies",
    "criterion": "criteria",
    "copy": "copies",
    "empty reply": "empty replies",
}


def encodable(value: str) -> str:
    """Return the text as valid UTF-8: lone surrogates become escapes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return value.encode("utf-8", "backslashreplace").decode()
    return value


def plural(count: int, word: str) -> str:
    """Return a count with its noun: "1 case", "3,000 cases", "2 criteria"."""
    return f"{count:,} {word if count == 1 else _IRREGULAR.get(word, word + 's')}"


def did_you_mean(name: str, names: Iterable[str], *, most: int = 1, cutoff: float = 0.6) -> str:
    """Return "did you mean math?" with the nearest of the names, "" if none is near."""
    near = get_close_matches(name[:80], list(names), most, cutoff)
    return f"did you mean {', '.join(near)}?" if near else ""


def raised_at(error: BaseException, file: str | None = None) -> str:
    """Return the line outside this package where the error was raised, as " (FILE, line 3: the
    line)", or "". The innermost line of `file` is preferred."""
    frames = traceback.extract_tb(error.__traceback__)
    package = str(Path(__file__).parent)
    outside = [frame for frame in frames if not frame.filename.startswith(package)]
    in_file = [frame for frame in outside if frame.filename == file] or outside
    return (
        f" ({in_file[-1].filename}, line {in_file[-1].lineno}: {in_file[-1].line})"
        if in_file
        else ""
    )
