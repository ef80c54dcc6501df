"""Hostile files, made from a clean one: `inputs(clean, kind)` gives all that fit a kind of file.

Kinds: "json", "lines" (of JSON), "yaml", "csv", "text". Large ones are made when they are written.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

JSON = ("json", "lines")
IDS = (
    "../../etc/x", "/etc/x", "a/b", "con", "x" * 300, "a\0b", "a\nb", "a\x1b[31mb", "caf\u00e9",
    "cafe\u0301", "", ".", "..", " ", "\u202ex", "__proto__", "__class__", "None", "é" * 150,
)  # fmt: skip
VALUES: tuple[Any, ...] = (
    None, True, 0, -1, 1.5, 10**400, -0.0, 1e308, "", "x", "1", "true", [], {}, [None], [[]],
    {"a": None}, "\u2028", "x" * 100_000, ["x"] * 1000, {"__proto__": {"x": 1}}, {"__class__": 1},
)  # fmt: skip


@dataclass(frozen=True)
class Hostile:
    """A file to try. `put` makes it at a path.

    `outcome` is "clean" where the result must be that of the clean file, "refused" where there is
    nothing to read, and "either" where it depends on who reads.
    """

    family: str
    name: str
    put: Callable[[Path], None]
    outcome: str = "either"
    large: bool = False


def inputs(clean: bytes, kind: str) -> Iterator[Hostile]:
    """All hostile files of one kind of file."""
    yield from _encodings(clean, table=kind == "csv")
    yield from _places()
    yield from _sizes(clean, kind)
    if kind in JSON:
        yield from _json(clean, kind)
    elif kind == "yaml":
        yield from _yaml(clean)
    elif kind == "csv":
        yield from _csv(clean)
    elif kind == "text":
        yield from _procedures()
    if b"spanId" in clean:
        yield from _traces()


def _bytes(
    family: str, name: str, data: bytes | Callable[[], bytes], outcome: str = "either"
) -> Hostile:
    return Hostile(
        family, name, lambda path: _write(path, data() if callable(data) else data), outcome
    )


def _write(path: Path, data: bytes) -> None:
    path.write_bytes(data)


def _encodings(clean: bytes, *, table: bool) -> Iterator[Hostile]:
    text = clean.decode()
    middle = text.index("\n") if "\n" in text.strip() else len(text) // 2
    cut = len(text[:middle].encode())

    def spliced(extra: bytes) -> bytes:
        return clean[:cut] + extra + clean[cut:]

    def one(name: str, data: bytes | Callable[[], bytes], outcome: str) -> Hostile:
        return _bytes("encodings", name, data, outcome)

    yield one("BOM", b"\xef\xbb\xbf" + clean, "clean")
    yield one("CRLF", clean.replace(b"\n", b"\r\n"), "clean")
    yield one("no final newline", clean.rstrip(b"\n"), "clean")
    yield one("blank lines at the end", clean + b"\n\n\n", "clean")
    yield one("CR only", clean.replace(b"\n", b"\r"), "either")
    others = "either" if table else "refused"  # spreadsheets write tables in these
    for name in ("utf-16", "utf-16-le", "utf-16-be"):
        yield one(name, text.encode(name), others)
    for name in ("utf-32", "utf-32-le", "utf-32-be"):
        yield one(name, text.encode(name), "refused")
    yield one("latin-1", spliced("é".encode("latin-1")), others)
    yield one("overlong", spliced(b"\xc0\xaf"), "refused")
    yield one("a surrogate in UTF-8", spliced(b"\xed\xa0\x80"), "refused")
    yield one("NUL", spliced(b"\0"), "refused")
    yield one("NUL at the end", clean + b"\0" * 512, "refused")
    yield one("control characters", spliced(b"\x1b[2J\x07\x08"), "either")
    for name, data in (("empty", b""), ("blank", b" \r\n\t\n"), ("only a BOM", b"\xef\xbb\xbf")):
        yield one(name, data, "refused")
    yield one("gzip", lambda: gzip.compress(clean), "refused")
    yield one("a gzip bomb", lambda: gzip.compress(bytes(2**20)), "refused")
    yield one("zip", lambda: _zip(clean), "refused")
    yield one("random bytes", bytes(range(256)) * 16, "refused")
    yield one("half", clean[: len(clean) // 2], "either")


def _zip(data: bytes) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("../../x.json", data)
    return made.getvalue()


def _places() -> Iterator[Hostile]:
    def links_in_a_circle(path: Path) -> None:
        path.symlink_to(path.with_name("circle"))
        path.with_name("circle").symlink_to(path)

    yield Hostile("places", "nothing there", lambda path: None, "refused")
    yield Hostile("places", "a folder", lambda path: path.mkdir(), "refused")
    yield Hostile("places", "a pipe without a writer", lambda path: os.mkfifo(path), "refused")
    yield Hostile("places", "links in a circle", links_in_a_circle, "refused")
    yield Hostile("places", "a link to nothing", lambda p: p.symlink_to(p / "none"), "refused")
    yield Hostile("places", "/dev/zero", lambda p: p.symlink_to("/dev/zero"), "refused")
    yield Hostile("places", "/dev/null", lambda p: p.symlink_to("/dev/null"), "refused")


def _sizes(clean: bytes, kind: str) -> Iterator[Hostile]:
    yield Hostile("sizes", "1 GB of NUL (sparse)", lambda path: _sparse(path), "refused")
    yield Hostile("sizes", "one line of 100 MB", lambda p: _long_line(p, kind), "either", True)
    yield Hostile(
        "sizes", "40 MB of line ends", lambda p: _write(p, b"\n" * 40_000_000), "refused", True
    )


def _sparse(path: Path) -> None:
    path.touch()
    os.truncate(path, 10**9)


def _long_line(path: Path, kind: str) -> None:
    start = b'{"id": "a", "output": "' if kind in JSON else b"x: "
    with path.open("wb") as out:
        out.write(start)
        for _ in range(100):
            out.write(b"a" * 10**6)


def _json(clean: bytes, kind: str) -> Iterator[Hostile]:
    first = json.loads(clean.splitlines()[0] if kind == "lines" else clean)

    def one(
        family: str, name: str, text: str | Callable[[], str], outcome: str = "either"
    ) -> Hostile:
        return _bytes(
            family, name, lambda: (text() if callable(text) else text).encode() + b"\n", outcome
        )

    body = json.dumps(first)
    opened = body[:-1] + ", " if isinstance(first, dict) and first else None
    for mark in "[", '{"a":', '[{"a":':
        yield one("JSON", f"{mark} 100,000 deep", mark * 100_000, "refused")
    for depth in (65, 900, 5000):
        nested = "[" * depth + "]" * depth
        yield one("JSON", f"{depth} deep", nested, "refused")
        if opened:
            yield one("JSON", f"{depth} deep inside", f'{opened}"x": {nested}}}')
    yield from (one("JSON", f"the document {text}", text) for text in (
        "null", "true", "0", '""', "[]", "{}", "[null]", "[[]]", "[{}]", "[1, 2]", '{"": ""}',
        "nul", "[1,]", "{'a': 1}", '{"a" 1}', "// x\n{}", '{"a": 1} x', "NaN", "-",
    ))  # fmt: skip
    if opened is None:
        opened = '{"id": "a", '
    for number in ("NaN", "Infinity", "-Infinity", "1e999", "-1e999", "9" * 5000, "1" + "0" * 400,
                   "1e400000000", "-0", "00", "+1", ".5", "0x10"):  # fmt: skip
        yield one("JSON", f"the number {number[:12]}", f'{opened}"x": {number}}}')
    for text in (r"\ud800", r"\udfff x", r"\ud83d\ude00", r"\u0000", r"\u2028", "\u2028", r"\x"):
        yield one("JSON", f"the text {text!a}", f'{opened}"x": "{text}"}}')
    long = "y" * 10**7
    large: dict[str, Callable[[], str]] = {
        "200,000 keys": lambda: ", ".join(f'"k{i}": {i}' for i in range(200_000)),
        "1,000,000 items": lambda: f'"x": [{"0," * 999_999}0]',
        "a text of 10 MB": lambda: f'"x": "{long}"',
        "a key of 10 MB": lambda: f'"{long}": 1',
        "a key of 10 MB twice": lambda: f'"{long}": 1, "{long}": 1',
    }
    for name, rest in large.items():
        yield one("JSON", name, lambda rest=rest: f"{opened}{rest()}}}")  # type: ignore[misc]
    if isinstance(first, dict):
        yield from _fields(first)


def _fields(first: dict[str, Any]) -> Iterator[Hostile]:
    """Every field missing, doubled, of every other type; ids that mean harm as names of files."""

    def one(name: str, value: Any) -> Hostile:
        return _bytes(
            "fields", name, lambda: json.dumps(value, ensure_ascii=False).encode() + b"\n"
        )

    for key, item in first.items():
        yield one(f"no {key}", {k: v for k, v in first.items() if k != key})
        doubled = json.dumps(first)[:-1] + f", {json.dumps(key)}: {json.dumps(item)}}}"
        yield _bytes("fields", f"{key} twice", doubled.encode() + b"\n")
        yield one(f"{key} a million times wrong", {**first, key: [1] * 300_000})
        for number, value in enumerate(VALUES):
            yield one(f"{key} is value {number}", {**first, key: value})
    for key in ("id", "trace_id", "name", "task", "run"):
        for number, name in enumerate(IDS):
            yield one(f"{key} is name {number}", {**first, key: name})
    for name in ("__proto__", "__class__", "constructor", "self", "model_config", "x" * 300):
        yield one(f"unknown field {name[:12]}", {**first, name: {"x": 1}})


@cache
def _yaml_texts() -> dict[str, str]:
    laughs = "\n".join(
        f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9) if i else 'ha'}]" for i in range(9)
    )
    return {
        "a billion laughs": laughs,
        "an alias": "a: &x [1]\nb: *x",
        "a merge key": "<<: {a: 1}",
        "a tag of Python": "a: !!python/object/apply:os.system ['true']",
        "a tag": "a: !x y",
        "a doubled key": "k: 1\nk: 2",
        "a list as key": "? [a]\n: 1",
        "two documents": "a: 1\n---\nb: 2",
        "a tab": "\ta: 1",
        "100,000 deep, flow": "[" * 100_000,
        "100,000 deep, block": "a:\n " + "- " * 100_000,
        "100,000 keys of questions": "? " * 100_000,
        "100,000 keys": "".join(f"k{i}: v\n" for i in range(100_000)),
        "a scalar of 3 MB": "k: " + "x" * 3_000_000,
        "a folded scalar of 3 MB": "k: >\n" + "  x\n" * 750_000,
        "a number of 5,000 digits": "k: " + "9" * 5000,
        "a hexadecimal number of 100,000 digits": "k: 0x" + "f" * 100_000,
        "an infinity": "k: .inf",
        "half a character": 'k: "\\ud800"',
        "a directive": "%YAML 9.9\n---\na",
        "100,000 anchors": "".join(f"- &a{i} x\n" for i in range(100_000)),
        "100,000 commas": "[" + "," * 100_000,
        "100,000 quotes": "k: '" + "''" * 100_000,
    }


def _yaml(clean: bytes) -> Iterator[Hostile]:
    doubtful = ("no", "Yes", "ON", "off", "1e3", "010", "12:30:45", "1_000", "0b11", "0o17")
    for name, text in _yaml_texts().items():
        yield _bytes("YAML", name, (text + "\n").encode())
        yield _bytes("YAML", f"{name}, after the clean", clean + (text + "\n").encode())
    for word in doubtful:
        yield _bytes("YAML", f"the word {word}", f"description: {word}\n".encode(), "refused")


def _csv(clean: bytes) -> Iterator[Hostile]:
    head, _, rest = clean.decode().partition("\n")
    texts = {
        "a quote without end": f'{head}\n"{rest}',
        "a column twice": f"{head},{head}\n{rest}",
        "no head": rest,
        "a field of 200,000": f"{head}\n{'x' * 200_000},accuracy,1\n",
        "100,000 columns": ",".join(f"c{i}" for i in range(100_000)) + "\n",
        "100,000 columns and the head": f"{head},{',' * 100_000}\n{rest}",
        "more fields": f"{head}\n{rest.strip()},,,,,\n",
        "fewer fields": f"{head}\nx\n",
        "=formula": f"{head}\n=1+1,accuracy,1\n",
        "a line feed in quotes": f'{head}\n"a\nb",accuracy,1\n',
        "a head of 2 MB": "x" * 2_000_000,
    }
    for value in ("NaN", "inf", "1e999", "-1", "2", "1_0", "0x1", "٣", "1" * 5000, "", "true"):
        texts[f"the value {value[:8]}"] = f"{head}\na,accuracy,{value}\n"
    for number, name in enumerate(IDS):
        quoted = name.replace('"', '""')
        texts[f"run is name {number}"] = f'{head}\n"{quoted}",accuracy,1\n'
    for name, text in texts.items():
        yield _bytes("CSV", name, text.encode())


def _procedures() -> Iterator[Hostile]:
    """Charts and code of workflows: deep, large, in circles, and what would be work to evaluate."""
    charts = {
        "20,000 nodes": "".join(f"n{i} --> n{i + 1}\n" for i in range(20_000)),
        "a join of 2,000 with 2,000": f"{' & '.join(f'a{i}' for i in range(2000))} --> "
        f"{' & '.join(f'b{i}' for i in range(2000))}",
        "100,000 brackets": "A" + "[" * 100_000,
        "100,000 quotes": 'A["' + "'" * 100_000,
        "10,000 subgraphs": "subgraph x\n" * 10_000,
        "a circle": "A --> B\nB --> A\nA --> A",
        "a link of 100,000 dashes": "A " + "-" * 100_000 + "> B",
        "a condition of 10,000 brackets": f'A -->|"{"(" * 10_000}x = 1{")" * 10_000}"| B',
    }
    for name, text in charts.items():
        yield _bytes("procedures", f"chart: {name}", f"flowchart TD\n{text}\n".encode())
    code = {
        "powers": "if 9**9**9**9:\n    pass",
        "10,000 brackets": "x = " + "(" * 10_000 + ")" * 10_000,
        "10,000 minus signs": "x = " + "-" * 10_000 + "1",
        "10,000 sums": "x = " + "1+" * 10_000 + "1",
        "90 levels": "".join(" " * i + "if a:\n" for i in range(90)) + " " * 90 + "pass",
        "10,000 elifs": "if a:\n    pass\n" + "elif b:\n    pass\n" * 10_000,
        "a number of 10,000 digits": "x = " + "9" * 10_000,
        "a text of 900,000": f"x = '{'y' * 900_000}'",
    }
    for name, text in code.items():
        yield _bytes("procedures", f"code: {name}", f"{text}\n".encode())


def _traces() -> Iterator[Hostile]:
    """Spans in circles, in one long chain, at absurd times, with attributes of every type."""

    def spans(name: str, made: list[dict[str, Any]]) -> Hostile:
        return _bytes("traces", name, lambda: json.dumps({"spans": made}).encode() + b"\n")

    def span(id: str, parent: str | None = None, **more: Any) -> dict[str, Any]:
        return {"trace_id": "t" * 32, "span_id": id, "parent_span_id": parent, "name": "n", **more}

    yield spans("its own parent", [span("a", "a")])
    yield spans("a circle of 1,000", [span(str(i), str((i + 1) % 1000)) for i in range(1000)])
    yield spans("a chain of 20,000", [span(str(i), str(i - 1)) for i in range(20_000)])
    yield spans("20,000 children", [span(str(i), "0" if i else None) for i in range(20_000)])
    yield spans("one id 10,000 times", [span("a") for _ in range(10_000)])
    nested: dict[str, Any] = span("x")
    for i in range(60):
        nested = span(f"x{i}", childSpans=[nested])
    yield spans("children inside children", [nested])
    times: tuple[Any, ...] = (-1, 0, 10**40, -(10**40), 1e308, "soon", "9" * 5000, [1], {"a": 1},
                              "-99999-01-01", "0001-01-01T00:00:00+14:00", True, None)  # fmt: skip
    for number, value in enumerate(times):
        yield spans(f"time {number}", [span("a", start_time=value, end_time=value,
                                            startTimeUnixNano=value, duration=value)])  # fmt: skip
    kinds = ("openinference.span.kind", "gen_ai.operation.name", "input.value", "output.value",
             "llm.input_messages", "llm.input_messages.0.message.role", "llm.token_count.prompt",
             "llm.tools", "gen_ai.usage.input_tokens", "exception.message", "llm.model_name",
             "gen_ai.input.messages", "tool.name", "llm.finish_reason")  # fmt: skip
    for key in kinds:
        made = [span(str(i), attributes={key: v, "openinference.span.kind": "LLM", **(
            {key: v} if key == kinds[0] else {})}) for i, v in enumerate(VALUES)]  # fmt: skip
        yield spans(f"{key} of every type", made)
    odd = [span(str(i), status=v, events=v, attributes=v, resource=v) for i, v in enumerate(VALUES)]
    yield spans("parts of every type", odd)
    for number, name in enumerate(IDS):
        yield spans(f"ids are name {number}", [{**span(name), "trace_id": name}])
    pair = [{**span("a"), "trace_id": "Ab"}, {**span("b"), "trace_id": "aB"}]
    yield spans("traces that differ in case", pair)
    dots = {"llm.input_messages." + ".".join("0" * 20_000): "x"}
    yield spans("a key of 20,000 dots", [span("a", attributes=dots)])
