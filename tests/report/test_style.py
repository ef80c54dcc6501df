"""Names and counts in words."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.report.style import LOOKS, listed, longest_word, n_label, plain, span, wrapped
from agenteval.stats import mean_interval


def interval(values, cases):
    return mean_interval(values, cases)


def test_counts_name_what_they_count():
    one = interval([0.1, 0.2, 0.3], ["a", "b", "c"])
    two = interval([0.1, 0.2, 0.3], ["a", "a", "b"])
    none = interval([], [])
    assert n_label([one]) == "n = 3 cases"
    assert n_label([two]) == "n = 2 cases, 3 ratings"
    assert n_label([two, one], "run") == "n = 2 to 3 cases, 3 runs"
    assert n_label([one, none]) == "n = 3 cases"
    assert n_label([none]) == "no cases"
    assert n_label([interval([0.5], ["a"])]) == "n = 1 case"


def test_spans_and_lists():
    assert span([5, 5], "run") == "5 runs"
    assert span([1200, 7], "run") == "7 to 1,200 runs"
    assert span([], "set") == "no sets"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(["a", "b", "c", "d", "e"]) == "a, b, c and 2 more"


@given(st.text(max_size=200), st.integers(6, 30))
def test_wrapped_names_keep_their_width_and_lines(name, width):
    lines = wrapped(name, width).split("\n")
    assert 1 <= len(lines) <= 3
    assert all(len(line) <= width or line == "(no name)" for line in lines)
    assert wrapped(name, width).replace("\n", "").isprintable()


def test_dollars_are_no_formula():
    assert plain("a $ b") == r"a \$ b"
    assert plain("tab\there\x07") == "tab here\ufffd"


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), max_size=100))
@example(r"a backslash \$ before".replace(" ", "_"))
def test_names_up_to_a_hundred_characters_are_whole(name):
    assert plain(name).replace(r"\$", "$") == name


def test_a_name_of_a_hundred_thousand_letters_is_cut_and_says_so():
    assert plain("x" * 100) == "x" * 100
    assert plain("x" * 101) == "x" * 98 + " …"
    assert plain("x" * 100_000) == "x" * 98 + " …"
    assert plain("$" * 100_000) == r"\$" * 98 + " …"
    assert plain(" " * 1000 + "y") == "…"
    assert len(listed(["y" * 100_000] * 5)) < 400


def test_words_break_at_hyphens_and_spaces():
    assert longest_word(["error-analysis", "two words"]) == len("analysis")
    assert wrapped("error-analysis", 9) == "error-\nanalysis"


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.03928 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_series_differ_in_more_than_colour():
    assert len({look.marker for look in LOOKS}) == len(LOOKS)
    assert len({str(look.line) for look in LOOKS}) == len(LOOKS)
    assert len({look.hatch for look in LOOKS}) == len(LOOKS)
    assert len({look.colour for look in LOOKS}) == len(LOOKS)


@pytest.mark.parametrize("look", LOOKS)
def test_the_pale_one_of_a_pair_is_paler(look):
    pale = "#" + "".join(f"{round(part * 255):02x}" for part in look.light())
    ratio = (luminance(pale) + 0.05) / (luminance(look.colour) + 0.05)
    assert ratio > 1.5
