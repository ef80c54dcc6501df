"""Calls that no tool could take, and those that only look so."""

from __future__ import annotations

import pytest

from agenteval.records import ToolSpec
from tests.evaluators.traces.detectors.conftest import Trace, tool_spec

SEARCH = tool_spec("search_web", required=("query",), query={"type": "string"},
                   top={"type": "integer", "minimum": 1})  # fmt: skip
BOOK = ToolSpec(
    name="book",
    parameters={
        "type": "object",
        "properties": {"day": {"enum": ["mon", "tue"]}, "seats": {"$ref": "#/$defs/n"}},
        "required": ["day"],
        "additionalProperties": False,
        "$defs": {"n": {"type": "integer"}},
    },
)
FREE = ToolSpec(name="shell")


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_web", '{"query": "rome'),
        ("search_web", "query=rome"),
        ("search_web", "{'query': 'rome'}"),
        ("search_web", ["rome"]),
        ("search_web", 3),
        ("shell", '{"cmd": "ls"'),
    ],
)
def test_malformed_arguments(name: str, arguments: object) -> None:
    trace = Trace(tools=(SEARCH, FREE))
    at = trace.ask("", (name, arguments))
    (finding,) = trace.found()
    assert (finding.source, finding.span) == ("detector:malformed-arguments", at)
    assert finding.category == "Formatting Errors"


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_web", {"query": '{"broken": '}),
        ("search_web", {"query": "a \"quoted\" {'x'"}),
        ("shell", "ls -l | grep '{'"),
        ("shell", None),
        ("shell", ""),
        ("search_web", {"query": "x", "top": 1}),
        ("search_web", {"query": "x", "more": "allowed by an open schema"}),
        ("book", {"day": "mon", "seats": 2}),
    ],
)
def test_arguments_that_are_fine(name: str, arguments: object) -> None:
    trace = Trace(tools=(SEARCH, FREE, BOOK))
    trace.ask("", (name, arguments))
    assert trace.found() == []


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("search_web", {}),
        ("search_web", {"query": 5}),
        ("search_web", {"query": "x", "top": 0}),
        ("search_web", {"query": None}),
        ("book", {"day": "sun"}),
        ("book", {"day": "mon", "seats": "two"}),
        ("book", {"day": "mon", "window": True}),
    ],
)
def test_violations_of_the_schema(name: str, arguments: object) -> None:
    trace = Trace(tools=(SEARCH, FREE, BOOK))
    at = trace.ask("", (name, arguments))
    (finding,) = trace.found()
    assert (finding.source, finding.span) == ("detector:schema-violation", at)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"$ref": "http://127.0.0.1:9/none.json"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/nowhere"}}},
        {"type": "object", "properties": {"a": {"type": "string", "pattern": "(a+)+$"}}},
        {"type": "object", "properties": {"a": {"$ref": "#/properties/a"}}},
        {"type": "object", "patternProperties": {"(a+)+$": False}},
    ],
)
def test_schemas_that_cannot_be_used_are_not(schema: dict[str, object]) -> None:
    trace = Trace(tools=(ToolSpec.model_validate({"name": "f", "parameters": schema}),))
    trace.ask("", ("f", {"a": "a" * 40 + "!"}))
    assert trace.found() == []


def test_drafts() -> None:
    old = "http://json-schema.org/draft-07/schema#"
    pair = {"type": "array", "items": [{"type": "integer"}, {"type": "string"}]}
    for draft, expected in ((old, ["schema-violation"]), ("https://example.org/own", [])):
        schema = {"$schema": draft, "type": "object", "properties": {"a": pair}}
        trace = Trace(tools=(ToolSpec.model_validate({"name": "f", "parameters": schema}),))
        trace.ask("", ("f", {"a": [1, "x"]}))
        trace.ask("", ("f", {"a": ["x", 1]}))
        assert trace.names() == expected
    slow = {"type": "string", "pattern": "(a+)+$"}
    for draft in (old, "https://json-schema.org/draft/2020-12/schema"):
        for schema in (
            {"$schema": draft, "properties": {"a": slow}},
            {"properties": {"a": {"$schema": draft, **slow}}},
        ):
            trace = Trace(tools=(ToolSpec.model_validate({"name": "f", "parameters": schema}),))
            trace.ask("", ("f", {"a": "a" * 40 + "!"}))
            assert trace.found() == []


def test_unknown_tools() -> None:
    trace = Trace(tools=(SEARCH,))
    at = trace.ask("", ("browse", {"url": "x"}))
    trace.run("browse", "Error: tool 'browse' not found in any workbench", status="error")
    trace.ask("", ("browse", {"url": "x"}))
    trace.ask("It is so.")
    (finding,) = trace.found()
    assert (finding.source, finding.category, finding.span, finding.evidence) == (
        "detector:unknown-tool", "Tool-related", at, "browse",
    )  # fmt: skip


@pytest.mark.parametrize(
    "answer",
    [
        "Error: tool 'browse' not found in any workbench",
        "Error: browse is not a valid tool, try one of [search_web].",
        "Unknown tool: browse",
        "Unknown tool 'browse', should be one of: search_web.",
    ],
)
def test_tools_that_the_framework_does_not_know(answer: str) -> None:
    trace = Trace()  # the trace does not tell what was offered
    at = trace.ask("", ("browse", {"url": "x"}))
    trace.run("browse", answer, status="error")
    trace.ask("It is so.")
    assert [(f.source, f.span) for f in trace.found()] == [("detector:unknown-tool", at)]


def test_tools_that_are_not_unknown() -> None:
    built_in = Trace(tools=(SEARCH,))  # a tool of the provider's own, which ran well
    built_in.step("code_interpreter", {"code": "1"}, "1")
    assert built_in.found() == []
    untold = Trace()
    untold.step("browse", {"url": "x"}, "a page that says: Unknown tool: browse, in passing")
    assert untold.found() == []
    two = Trace(tools=(SEARCH,))  # another request is offered another tool
    two.ask("", ("search_web", {"query": "x"}))
    two.ask("", ("book", {"day": "mon"}), tools=(BOOK,))
    assert two.found() == []
