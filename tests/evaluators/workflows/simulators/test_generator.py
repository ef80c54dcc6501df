"""Made-up results fit their schema."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agenteval.errors import InputError
from agenteval.evaluators.workflows.scenario import WorkflowTool
from agenteval.evaluators.workflows.simulators.generator import generate
from tests.evaluators.workflows.simulators.desk import TOOLS


def tool(returns: dict[str, Any]) -> WorkflowTool:
    return WorkflowTool(
        name="look", description="", parameters={"type": "object"}, returns=returns, effect="read"
    )


def holding(schema: dict[str, Any]) -> WorkflowTool:
    return tool({"type": "object", "properties": {"x": schema}, "required": ["x"]})


@st.composite
def numbers(draw: st.DrawFn) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": draw(st.sampled_from(["integer", "number"]))}
    low = draw(st.integers(-1000, 1000))
    for name, value in (("minimum", low), ("maximum", low + draw(st.integers(3, 500)))):
        if draw(st.booleans()):
            exclusive = draw(st.booleans())
            schema[f"exclusive{name.title()}" if exclusive else name] = value
    return schema


@st.composite
def texts(draw: st.DrawFn) -> dict[str, Any]:
    if draw(st.booleans()):
        return {"type": "string", "format": draw(st.sampled_from(["date", "date-time", "email"]))}
    least = draw(st.integers(0, 40))
    return {"type": "string", "minLength": least, "maxLength": least + draw(st.integers(0, 40))}


SIMPLE = (
    numbers()
    | texts()
    | st.just({"type": "boolean"})
    | st.just({"type": ["string", "null"]})
    | st.builds(lambda v: {"enum": v}, st.lists(st.integers() | st.text(), min_size=1, max_size=3))
)
SCHEMAS = st.recursive(
    SIMPLE,
    lambda inner: (
        st.builds(
            lambda items, n: {"type": "array", "items": items, "minItems": n, "maxItems": n + 1},
            inner,
            st.integers(0, 3),
        )
        | st.builds(
            lambda properties: {
                "type": "object",
                "properties": properties,
                "required": list(properties),
                "additionalProperties": False,
            },
            st.dictionaries(st.sampled_from("abcd"), inner, max_size=3),
        )
        | st.builds(lambda one, two: {"anyOf": [one, two]}, inner, inner)
    ),
    max_leaves=6,
)


@settings(max_examples=60, deadline=None)
@given(SCHEMAS, st.integers(0, 5))
def test_every_result_fits_its_schema(schema: dict[str, Any], seed: int) -> None:
    made = generate(holding(schema), {"q": 1}, seed=seed)
    Draft202012Validator(holding(schema).returns).validate(made)


def test_equal_calls_have_equal_answers_and_others_differ() -> None:
    look = holding({"type": "integer", "minimum": 0, "maximum": 10**9})
    first = generate(look, {"a": 1, "b": 2})
    assert generate(look, {"b": 2, "a": 1}) == first
    others = [generate(look, {"a": 1, "b": 3}), generate(look, {"a": 1, "b": 2}, seed=1)]
    assert first not in others


def test_arguments_come_back_where_the_schema_allows() -> None:
    look = holding({"type": "string"})
    assert generate(look, {"x": "Dune"}) == {"x": "Dune"}
    assert generate(holding({"type": "integer"}), {"x": "Dune"}) != {"x": "Dune"}


def test_a_day_said_in_words_is_one_after_today() -> None:
    made = generate(TOOLS["lend_book"], {"title": "Dune"}, today="2031-03-12 10:00")
    assert isinstance(made, dict)
    assert "2031-03-13" <= str(made["due"]) <= "2031-05-11"


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "pattern": "^(?=R)"},
        {"type": "string", "pattern": "^R-[0-9]$", "maxLength": 2},
        {"$ref": "#/$defs/x"},
        {"type": "integer", "minimum": 3, "maximum": 2},
        {"type": "string", "format": "ipv6"},
        {"type": "tuple"},
        False,
        {"type": "integer", "allOf": [{"minimum": 3}]},
    ],
)
def test_what_cannot_be_filled_is_said(schema: Any) -> None:
    with pytest.raises(InputError, match=r"look\.returns"):
        generate(holding(schema), {})


def test_simple_patterns_are_filled_within_the_length() -> None:
    schema = {"type": "string", "pattern": "^R-[0-9]+$", "minLength": 5}
    texts = {generate(holding(schema), {}, seed=n)["x"] for n in range(30)}  # type: ignore[index,call-overload]
    assert len(texts) > 10
    assert all(re.fullmatch("R-[0-9]{3,}", str(text)) for text in texts)
    assert generate(holding(schema), {"x": "R-4711"}) == {"x": "R-4711"}
