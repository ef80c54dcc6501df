"""Made-up results that fit a JSON schema, the same for the same call."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Mapping
from datetime import date, timedelta
from typing import Any

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.evaluators.workflows.scenario import WorkflowTool
from agenteval.evaluators.workflows.simulators.patterns import NoPatternError, matching
from agenteval.evaluators.workflows.simulators.schema import complaint
from agenteval.records import content_hash

_WORDS = ("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "jade", "north")
_DEEPEST = 12
_TRIES = 50  # texts of one pattern
Schema = Mapping[str, Any]


def generate(
    tool: WorkflowTool, arguments: Mapping[str, Any], *, seed: int = 0, today: str = "2031-01-01"
) -> JsonValue:
    """What the tool might return, by the hash of its name, the arguments and the seed.

    A returned value named like an argument repeats it where the schema allows. `today` (a text
    that begins with YYYY-MM-DD) is the day after which dates lie. Raises InputError for a schema
    that this cannot fill: references, contradictions, patterns that are not simple (`patterns`).
    """
    draw = random.Random(content_hash([tool.name, dict(arguments), seed]))  # noqa: S311
    maker = _Maker(draw, arguments, _day(today))
    try:
        value = maker.make(tool.returns, "", 0)
    except _CannotFillError as error:
        raise InputError(f"no value can be made up: {error}", f"{tool.name}.returns") from error
    problem = complaint(tool.returns, value)
    if problem:
        raise InputError(f"no value can be made up: {problem}", f"{tool.name}.returns")
    return value


class _CannotFillError(ValueError):
    pass


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return date(2031, 1, 1)


class _Maker:
    def __init__(self, draw: random.Random, arguments: Mapping[str, Any], today: date) -> None:
        self._draw = draw
        self._arguments = arguments
        self._today = today

    def make(self, schema: Any, name: str, depth: int) -> JsonValue:
        if schema is True or schema == {}:
            return self._text({}, name)
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            raise _CannotFillError(f"{name or 'the schema'} allows nothing, or goes too deep")
        for word in ("$ref", "allOf", "not", "if"):
            if word in schema and "const" not in schema and "enum" not in schema:
                raise _CannotFillError(f"{name or 'the schema'} uses {word!r}")
        echo = self._echo(schema, name)
        if echo is not None:
            return echo
        if "const" in schema:
            return _json(schema["const"])
        if schema.get("enum"):
            return _json(self._draw.choice(schema["enum"]))
        for word in ("anyOf", "oneOf"):
            if schema.get(word):
                return self.make(self._draw.choice(schema[word]), name, depth + 1)
        return self._typed(schema, name, depth)

    def _echo(self, schema: Schema, name: str) -> JsonValue:
        given: JsonValue = self._arguments.get(name)
        return given if given is not None and complaint(schema, given) is None else None

    def _typed(self, schema: Schema, name: str, depth: int) -> JsonValue:
        kind = schema.get("type", "object" if "properties" in schema else "string")
        if isinstance(kind, list):
            kind = next((k for k in kind if k != "null"), "null")
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, name, depth)
        makers: dict[str, Callable[[Schema, str], JsonValue]] = {
            "string": self._text,
            "integer": lambda s, _: self._number(s, whole=True),
            "number": lambda s, _: self._number(s, whole=False),
            "boolean": lambda *_: self._draw.random() < 0.5,
            "null": lambda *_: None,
        }
        if kind not in makers:
            raise _CannotFillError(f"{name} is of the unknown type {kind!r}")
        return makers[kind](schema, name)

    def _object(self, schema: Schema, depth: int) -> JsonValue:
        properties = {**dict.fromkeys(schema.get("required", ()), True)}
        properties |= schema.get("properties", {})
        return {name: self.make(inner, name, depth + 1) for name, inner in properties.items()}

    def _array(self, schema: Schema, name: str, depth: int) -> JsonValue:
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", max(least, 3))
        count = self._draw.randint(least, most) if least else self._draw.randint(min(1, most), most)
        return [self.make(schema.get("items", True), name, depth + 1) for _ in range(count)]

    def _number(self, schema: Schema, *, whole: bool) -> JsonValue:
        step = schema.get("multipleOf", 1 if whole else 0.01)
        low, high = schema.get("minimum", -math.inf), schema.get("maximum", math.inf)
        above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
        first = math.ceil(low / step - 1e-9) if low > -math.inf else -(10**9)
        if above is not None:
            first = max(first, math.floor(above / step + 1e-9) + 1)
        last = math.floor(high / step + 1e-9) if high < math.inf else 10**9
        if below is not None:
            last = min(last, math.ceil(below / step - 1e-9) - 1)
        if first == -(10**9):
            first = min(0, last - round(100 / step))
        if last == 10**9:
            last = first + max(1, round(100 / step))
        if first > last:
            raise _CannotFillError("no number lies within its bounds")
        value: float = self._draw.randint(first, last) * step
        return int(value) if whole else round(value, 6)

    def _text(self, schema: Schema, name: str) -> JsonValue:
        if "pattern" in schema:
            return self._matching(schema, name)
        form = schema.get("format") or (
            "date" if "YYYY-MM-DD" in str(schema.get("description", "")) else ""
        )
        if form:
            return self._formatted(form)
        least, most = schema.get("minLength", 0), schema.get("maxLength", math.inf)
        text = f"{name.replace('_', ' ')} {self._draw.choice(_WORDS)}-{self._draw.randrange(900)}"
        text = text.strip()
        if len(text) > most:
            text = self._draw.choice(_WORDS)[: int(most)]
        return text.ljust(least, "x")

    def _matching(self, schema: Schema, name: str) -> str:
        """A text of the pattern, of the right length where one comes up."""
        for _ in range(_TRIES):
            try:
                text = matching(schema["pattern"], self._draw)
            except NoPatternError as error:
                raise _CannotFillError(f"{name}: {error}") from error
            if complaint(schema, text) is None:
                return text
        raise _CannotFillError(f"{name}: no text of the pattern fits the rest of the schema")

    def _formatted(self, form: str) -> str:
        day = (self._today + timedelta(days=self._draw.randint(1, 60))).isoformat()
        clock = f"{self._draw.randint(8, 19):02d}:{self._draw.choice((0, 15, 30, 45)):02d}:00"
        word = self._draw.choice(_WORDS)
        texts = {
            "date": day,
            "time": f"{clock}Z",
            "date-time": f"{day}T{clock}Z",
            "email": f"{word}@example.org",
            "uri": f"https://example.org/{word}",
            "uuid": f"{self._draw.getrandbits(32):08x}-0000-4000-8000-{'0' * 12}",
        }
        if form not in texts:
            raise _CannotFillError(f"the format {form!r} is unknown")
        return texts[form]


def _json(value: Any) -> JsonValue:
    """A copy, so that nobody changes a schema."""
    copied: JsonValue = copy.deepcopy(value)
    return copied
