"""The default answer is a valid instance of the schema asked for: pydantic is the judge."""

from __future__ import annotations

from enum import Enum
from typing import Annotated, Any, Literal, Union

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter

from agenteval.testing.answers import Picks, embeddings, instance
from agenteval.testing.wire import Refused
from tests.thorough import often


class Grade(Enum):
    BAD = "schlecht"
    FAIR = "fair"
    GOOD = 'very "good"'


class Cell(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=False)
    explanation: str = Field(min_length=20, max_length=30)
    label: Grade
    probability: Annotated[float, Field(gt=0, lt=1)]
    level: Annotated[int, Field(ge=1, le=5)]
    even: Annotated[int, Field(gt=2, lt=9, multiple_of=2)]
    maybe: int | None
    kind: Literal["a"] | Literal["b"]


LEAVES = st.sampled_from(
    [bool, int, str, Grade, Cell, type(None), Literal[1, 2, "x"], Annotated[int, Field(lt=-3)]]
)


def _list_of(item: Any, low: int) -> Any:
    return Annotated[list[item], Field(min_length=low, max_length=low + 1)]


TYPES: st.SearchStrategy[Any] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda pair: Union[pair]),  # noqa: UP007  (made at run time)
        st.tuples(inner, st.integers(0, 4)).map(lambda pair: _list_of(*pair)),
    ),
    max_leaves=4,
)


@given(kind=TYPES, seed=st.integers(0, 10**6))
@settings(max_examples=often(60, 150), deadline=None)
def test_instances_are_valid(kind: Any, seed: int) -> None:
    adapter = TypeAdapter(kind)
    text = instance(adapter.json_schema(), Picks(seed))
    adapter.validate_json(text)
    assert text == instance(adapter.json_schema(), Picks(seed))


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^a+$"},
        {"type": "object", "properties": {}, "required": ["x"]},
        {"$ref": "#/$defs/missing"},
        {"$ref": "#"},
        {"type": "colour"},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "number", "minimum": 3, "maximum": 2},
        {"type": "array", "minItems": 3, "maxItems": 2},
        {"type": "string", "minLength": 10**9},
        False,
        "object",
    ],
)
def test_what_cannot_be_served_is_said(schema: Any) -> None:
    with pytest.raises(Refused):
        instance(schema, Picks(1))


@given(st.text(min_size=1), st.integers(1, 600))
def test_embeddings_are_unit_vectors(text: str, size: int) -> None:
    made = embeddings({"model": "m", "input": [text, text + "!"], "dimensions": size}, 9)
    first, second = (item["embedding"] for item in made["data"])
    assert len(first) == size
    assert sum(x * x for x in first) == pytest.approx(1)
    assert first != second or size == 1
