"""The taxonomy of errors: areas, groups, and leaves with definitions. Findings name leaves."""

from __future__ import annotations

from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError, model_validator

from agenteval.errors import InputError
from agenteval.readers.problems import first_problem
from agenteval.readers.strict_json import read_json
from agenteval.readers.strict_yaml import read_yaml
from agenteval.records import Record, content_hash


class Leaf(Record):
    """One category of error. `signs` are its indicators, `aliases` other spellings. `locate` says
    which span to mark if the error repeats. `assigned` is False for a label that scorers know but
    finders do not use."""

    name: str = Field(min_length=1)
    area: str
    group: str
    definition: str
    signs: str = ""
    aliases: tuple[str, ...] = ()
    locate: Literal["first", "last"] = "first"
    assigned: bool = True


class Guidance(Record):
    """How to distinguish similar kinds; `kinds` are leaves."""

    kinds: tuple[str, ...] = Field(min_length=1)
    text: str = Field(min_length=1)


class Taxonomy(Record):
    """Ordered leaves, with guidance on similar ones."""

    name: str
    version: int = 1
    note: str = ""
    guidance: tuple[Guidance, ...] = ()
    leaves: tuple[Leaf, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _unambiguous(self) -> Taxonomy:
        seen: dict[str, str] = {}
        for leaf in self.leaves:
            for text in (leaf.name, *leaf.aliases):
                if not _plain(text):
                    raise ValueError(f"{text!r} of {leaf.name!r} has no letter or digit")
                if seen.setdefault(_plain(text), leaf.name) != leaf.name:
                    raise ValueError(
                        f"{text!r} matches both {seen[_plain(text)]!r} and {leaf.name!r}"
                    )
        for kind in (kind for entry in self.guidance for kind in entry.kinds):
            if _plain(kind) not in seen:
                raise ValueError(f"guidance about {kind!r}, which is not a leaf")
        return self

    @cached_property
    def _by_name(self) -> dict[str, Leaf]:
        return {_plain(t): leaf for leaf in self.leaves for t in (leaf.name, *leaf.aliases)}

    @property
    def assigned(self) -> tuple[Leaf, ...]:
        """The leaves that a finder may use."""
        return tuple(leaf for leaf in self.leaves if leaf.assigned)

    @property
    def areas(self) -> tuple[str, ...]:
        """Names of the areas, in order."""
        return tuple(dict.fromkeys(leaf.area for leaf in self.leaves))

    def find(self, text: str) -> Leaf | None:
        """Find a leaf by name or alias, ignoring case, blanks and hyphens, or return None."""
        return self._by_name.get(_plain(text))

    @cached_property
    def sha256(self) -> str:
        """Content hash (hex)."""
        return content_hash(self.model_dump(mode="json"))


def _plain(text: str) -> str:
    return "".join(c for c in text.casefold() if c.isalnum())


@cache
def built_in() -> Taxonomy:
    """Return the 20 leaves of TRAIL (arXiv 2505.08638) in 3 areas, in our own words.

    TRAIL's scorer knows a 21st label, but finders are not asked for it.
    """
    text = files("agenteval.traces").joinpath("data/taxonomy.json").read_text("utf-8")
    return Taxonomy.model_validate_json(text)


def load_taxonomy(path: Path) -> Taxonomy:
    """Read a taxonomy from JSON or YAML (.yaml, .yml) in the format of the built-in one.

    Raises InputError with the line of a syntax error, else with the key.
    """
    is_yaml = path.suffix.lower() in (".yaml", ".yml")
    data: Any = read_yaml(path) if is_yaml else read_json(path)
    if not isinstance(data, dict):
        raise InputError("a taxonomy must be a mapping with name and leaves", str(path))
    try:
        return Taxonomy.model_validate(data)
    except ValidationError as error:
        raise InputError(first_problem(error), str(path)) from error
