"""YAML that two programs would read differently is refused with the line; the rest is as always."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import assume, given
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.readers.strict_yaml import load_yaml, read_yaml


def refused(text: str) -> str:
    with pytest.raises(InputError) as caught:
        load_yaml(text, "f.yaml")
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 500
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "a: 1\nb: no",
            "f.yaml:2: not valid YAML (no: some programs read it as true or false; "
            'write true or false, or "no" for the text)',
        ),
        ("on: 1", "true or false"),
        ("- 12:30", "of base 60"),
        ("- 010", "another number"),
        ("- 0b11", "another number"),
        ("- 1_000", "another number"),
        ("- 1e3", "1e3: some programs read it as a text"),
        ("- .inf", "not a JSON number"),
        ("- .NaN", "not a JSON number"),
        ("- " + "9" * 5000, "too large for a number"),
        ("- 1.0e+999", "too large for a number"),
        (
            "a: 1\n\na: 2",
            "f.yaml:3: not valid YAML (the key 'a' occurs twice in the mapping at line 1)",
        ),
        ("true: x\nTrue: y", "the key True occurs twice"),
        ("a: &x [1]\nb: *x", "f.yaml:2: not valid YAML (aliases"),
        ("<<: {a: 1}", "merge keys"),
        ("a: !!python/object/apply:os.system ['true']", "tags are not allowed"),
        ("a: !!int x", "tags are not allowed"),
        ("? [a]\n: 1", "a list or a mapping cannot be a key"),
        ("{a: 1}: 2", "cannot be a key"),
        ("a: 1\n---\nb: 2", "f.yaml:2: not valid YAML (a second document begins here"),
        ("\ta: 1", "f.yaml:1:1: not valid YAML"),
        ("a: [1, 2", "not valid YAML"),
        ('a: "\\ud800"', "not valid YAML"),
        ("a: \x01", "not valid YAML"),
        ("%YAML 9.9\n---\na", "not valid YAML"),
    ],
)
def test_refused_with_its_line(text: str, says: str) -> None:
    assert says in refused(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("", None),
        ("# nothing", None),
        ("a:\nb: ~\nc: null", {"a": None, "b": None, "c": None}),
        ("- 'no'\n- \"12:30\"\n- '010'", ["no", "12:30", "010"]),
        ("- 09:30\n- 08\n- 0733902715\n- 2024-01-31", ["09:30", "08", "0733902715", "2024-01-31"]),
        ("- true\n- False", [True, False]),
        ("- 7\n- -1\n- +2\n- 0", [7, -1, 2, 0]),
        ("- 1.5\n- -.5\n- 2.\n- 1.5e+3", [1.5, -0.5, 2.0, 1500.0]),
        ("- nope\n- once\n- 1e\n- 12:x\n- 1.2.3", ["nope", "once", "1e", "12:x", "1.2.3"]),
        ("a: |\n  no\n  010\n", {"a": "no\n010\n"}),
        ("a: {b: [1, {c: d}]}", {"a": {"b": [1, {"c": "d"}]}}),
        ("- &x a\n- b", ["a", "b"]),
        ("\ufeffa: 1", {"a": 1}),
    ],
)
def test_read_as_written(text: str, value: Any) -> None:
    assert load_yaml(text, "f") == value
    assert repr(load_yaml(text, "f")) == repr(value)  # 1 is not True


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda x: st.lists(x, max_size=3) | st.dictionaries(st.text(max_size=5), x, max_size=3),
    max_leaves=10,
)


@given(plain)
def test_what_pyyaml_writes_is_read_as_it_was(value: Any) -> None:
    """Or refused: of what PyYAML leaves without quotes, some is text to it and a number to us."""
    text = yaml.safe_dump(value, allow_unicode=True)
    assume(yaml.safe_load(text) == value)  # it does not read back every line end it writes
    try:
        found = load_yaml(text, "f")
    except InputError as error:
        told = str(error)
    else:
        assert found == value
        return
    assert "some programs read it" in told


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "a:\n  " + "- " * 100_000, '{"a":' * 100_000, "? " * 100_000, "[" * 65]
)
def test_depth(text: str) -> None:
    assert "nested deeper than 64 levels" in refused(text)


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "f.yaml"
    path.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: [x, y]\r\n")
    assert read_yaml(path) == {"a": 1, "b": ["x", "y"]}
    path.write_bytes(b"a: caf\xe9\n")
    with pytest.raises(InputError, match=r"f\.yaml:1: not UTF-8 at byte offset 6"):
        read_yaml(path)
