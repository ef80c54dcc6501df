"""The kinds of errors: areas, groups and leaves, with definitions; only leaves are assigned."""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from pydantic import Field, model_validator

from agenteval.records import Record, content_hash


class Leaf(Record):
    """One kind of error.

    `definition` says what it is, `signs` what a reader looks for. `aliases` are other spellings.
    `locate` says which span is marked when it occurs several times. `assigned` is False for a
    label that a scorer knows but that no finder is asked for.
    """

    name: str = Field(min_length=1)
    area: str
    group: str
    definition: str
    signs: str = ""
    aliases: tuple[str, ...] = ()
    locate: Literal["first", "last"] = "first"
    assigned: bool = True


class Taxonomy(Record):
    """Leaves in their order, under a name."""

    name: str
    version: int = 1
    note: str = ""
    leaves: tuple[Leaf, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _unambiguous(self) -> Taxonomy:
        seen: dict[str, str] = {}
        for leaf in self.leaves:
            for text in (leaf.name, *leaf.aliases):
                if seen.setdefault(_plain(text), leaf.name) != leaf.name:
                    raise ValueError(
                        f"{text!r} stands for both {seen[_plain(text)]!r} and {leaf.name!r}"
                    )
        return self

    @cached_property
    def _by_name(self) -> dict[str, Leaf]:
        return {_plain(t): leaf for leaf in self.leaves for t in (leaf.name, *leaf.aliases)}

    @property
    def assigned(self) -> tuple[Leaf, ...]:
        """The leaves a finder may name."""
        return tuple(leaf for leaf in self.leaves if leaf.assigned)

    @property
    def areas(self) -> tuple[str, ...]:
        """Names of the areas, in their order."""
        return tuple(dict.fromkeys(leaf.area for leaf in self.leaves))

    def find(self, text: str) -> Leaf | None:
        """The leaf of a name or alias, whatever its case, blanks and hyphens; None if unknown."""
        return self._by_name.get(_plain(text))

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex)."""
        return content_hash(self.model_dump(mode="json"))


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())
