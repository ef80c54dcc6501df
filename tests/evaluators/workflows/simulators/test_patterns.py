"""Texts made of patterns match them; what is no simple pattern is refused."""

from __future__ import annotations

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.evaluators.workflows.simulators.patterns import NoPatternError, matching

ATOMS = st.sampled_from(
    ["a", "é", "-", "_", " ", r"\d", r"\w", r"\s", r"\D", r"\.", r"\[", "[A-Z]", "[a-f0-9_]",
     "[^a-z]", "[]x]", "[x-]", r"[\d.]", "."]
)  # fmt: skip
COUNTS = st.sampled_from(["", "", "?", "*", "+", "{2}", "{0,2}", "{1,}"])
PATTERNS = st.recursive(
    st.builds(str.__add__, ATOMS, COUNTS),
    lambda inner: (
        st.builds("{}{}".format, inner, inner)
        | st.builds("({}|{}){}".format, inner, inner, COUNTS)
        | st.builds("(?:{}){}".format, inner, COUNTS)
    ),
    max_leaves=6,
)


@given(pattern=PATTERNS, seed=st.integers(0, 99))
@settings(deadline=None)
def test_the_whole_text_matches(pattern: str, seed: int) -> None:
    assert re.fullmatch(pattern, matching(f"^{pattern}$", random.Random(seed)))


@pytest.mark.parametrize("pattern", [r"^R-\d{2}$", "^(AB|CD)-[0-9]{3,5}$", r"\d{4}-\d\d-\d\d"])
def test_all_that_can_be_drawn_is_drawn(pattern: str) -> None:
    made = {matching(pattern, random.Random(seed)) for seed in range(300)}
    assert len(made) > 60
    assert all(re.fullmatch(pattern, text) for text in made)
    assert matching(pattern, random.Random(7)) == matching(pattern, random.Random(7))


@pytest.mark.parametrize(
    "pattern",
    ["(?=x)y", "(?i)x", r"(a)\1", r"\bx", "a**", "a{3,1}", "a{300}", "(", ")", "(a", "[a", "[z-a]",
     "*", "a{2}{2}", "x\\", "^a^b", "((a{200}){200}){200}", "(" * 50, "[^\\w -./:#]"],
)  # fmt: skip
def test_what_is_not_simple_is_refused(pattern: str) -> None:
    with pytest.raises(NoPatternError, match="pattern"):
        matching(pattern, random.Random(1))
