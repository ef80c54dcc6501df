"""From bytes to JSON values: one document, or one value per line, told apart by content."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO

from agenteval.errors import InputError
from agenteval.files import decoded, refuse_other_kinds
from agenteval.readers.decode import Decoder
from agenteval.readers.limits import Limits, Notes

_BOM = b"\xef\xbb\xbf"


@dataclass(frozen=True)
class Item:
    """One JSON value and where it stands. `line` is None for a whole document."""

    value: Any
    place: str
    line: int | None


class Reader:
    """Reads one open file. `lines` says that every line is a value; else the content decides."""

    def __init__(
        self, stream: BinaryIO, name: str, limits: Limits, notes: Notes, *, lines: bool
    ) -> None:
        self._stream = stream
        self._name = name
        self._limits = limits
        self._decoder = Decoder(limits, notes)
        self._lines = lines
        self._offset = 0  # bytes before the line in hand
        self._line = 0

    def items(self) -> Iterator[Item]:
        """Values in order of the file; blank lines are passed over.

        Raises InputError, with file, line and column or byte offset, for anything that is not
        UTF-8, not JSON or above the limits.
        """
        first = self._next_line()
        if first is None:
            return
        if self._lines:
            yield from self._line_items(first)
            return
        second = self._next_line() if _is_value(first.data) else None
        if second is None:
            yield from self._document(first)
        else:
            yield self._item(first)
            yield from self._line_items(second)

    def _line_items(self, line: _Line | None) -> Iterator[Item]:
        while line is not None:
            yield self._item(line)
            line = self._next_line()

    def _item(self, line: _Line) -> Item:
        if len(line.data) > self._limits.max_line_bytes:
            limit = f"{self._limits.max_line_bytes:,}"
            raise InputError(f"line longer than {limit} bytes", f"{self._name}:{line.number}")
        text = decoded(line.data, self._name, line=line.number, offset=line.offset)
        value = self._decoder.decode(text, self._name, line.number)
        return Item(value, f"{self._name}:{line.number}", line.number)

    def _next_line(self) -> _Line | None:
        """The next line that is not blank; at most one byte more than the limit of a line."""
        while True:
            data = self._stream.readline(self._limits.max_line_bytes + 1)
            if not data:
                return None
            offset, self._offset = self._offset, self._offset + len(data)
            self._line += 1
            if self._line > self._limits.max_lines:
                raise InputError(f"more than {self._limits.max_lines:,} lines", self._name)
            if self._offset > self._limits.max_file_bytes:
                limit = f"{self._limits.max_file_bytes:,}"
                raise InputError(f"larger than {limit} bytes", self._name)
            if offset == 0:
                refuse_other_kinds(data, self._name)
                if data.startswith(_BOM):
                    data, offset = data[3:], 3
            if data.strip():
                return _Line(data, self._line, offset)

    def _document(self, first: _Line) -> Iterator[Item]:
        limit = self._limits.max_document_bytes
        data = first.data + self._stream.read(max(0, limit + 1 - len(first.data)))
        if first.offset + len(data) > limit + len(_BOM):
            raise InputError(
                f"a JSON document larger than {limit:,} bytes; JSON lines may be larger", self._name
            )
        # Line numbers of errors count from the start of the file, so blank lines are put back.
        blank = "\n" * (first.number - 1)
        text = blank + decoded(data, self._name, line=first.number, offset=first.offset)
        yield Item(self._decoder.decode(text, self._name), self._name, None)


@dataclass(frozen=True)
class _Line:
    data: bytes
    number: int
    offset: int  # of the first byte, in the file


def _is_value(line: bytes) -> bool:
    """Whether the line alone is a JSON object or array, as in JSON lines."""
    try:
        return isinstance(json.loads(line), (dict, list))
    except (ValueError, RecursionError):
        return False
