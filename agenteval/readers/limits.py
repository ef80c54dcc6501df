"""Bounds on what a reader accepts, and the notes it takes on the way."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Limits:
    """Upper bounds; what lies above is an InputError, never cut silently.

    Bytes are bytes of the file as it lies on disk. `max_file_bytes` holds for files that are read
    line by line; a JSON document has to be held as a whole, hence the lower `max_document_bytes`.
    `max_depth` counts nested objects and arrays, `max_keys` the keys of one object, `max_values`
    the values of one document or line: at most, one takes about 200 bytes of memory.
    """

    max_file_bytes: int = 512 * 2**20
    max_document_bytes: int = 64 * 2**20
    max_line_bytes: int = 16 * 2**20
    max_depth: int = 64
    max_values: int = 4_000_000
    max_keys: int = 100_000
    max_lines: int = 10_000_000
    max_runs: int = 1_000_000


DEFAULT_LIMITS = Limits()
# Of files that people write: criteria, tasks, taxonomies, tools, word lists.
HAND_WRITTEN = Limits(max_document_bytes=16 * 2**20, max_values=500_000, max_keys=10_000)


@dataclass
class Notes:
    """Warnings of one reading, each text once with the first place and the number of places."""

    _seen: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, text: str, place: str) -> None:
        """Take down that `text` holds at `place`."""
        first, count = self._seen.get(text, (place, 0))
        self._seen[text] = (first, count + 1)

    def lines(self) -> list[str]:
        """One line per text: the first place, the text, how many more places."""
        return [
            f"{first}: {text}" + (f" (and {count - 1} more)" if count > 1 else "")
            for text, (first, count) in self._seen.items()
        ]
