"""Names and counts in words, looks, and files: the same bytes for the same data."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.reporting import plots, style
from agenteval.reporting.style import LOOKS, n_label, plain, span, wrapped
from agenteval.reporting.text import listed, variant_label
from agenteval.stats import mean_interval as interval
from agenteval.stats.scores import score_table


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


@given(st.text(alphabet=st.characters(min_codepoint=33, max_codepoint=126), max_size=100))
@example(r"a backslash \$ before".replace(" ", "_"))
def test_names_up_to_a_hundred_characters_are_whole(name):
    assert plain(name).replace(r"\$", "$") == name


def test_series_differ_in_more_than_colour():
    assert len({look.marker for look in LOOKS}) == len(LOOKS)
    assert len({str(look.line) for look in LOOKS}) == len(LOOKS)
    assert len({look.hatch for look in LOOKS}) == len(LOOKS)
    assert len({look.colour for look in LOOKS}) == len(LOOKS)


# Files


@pytest.mark.parametrize(
    "draw",
    [
        plots.radar,
        plots.success_bars,
        plots.repeat_boxes,
        plots.correlation_map,
        plots.coverage_bars,
        plots.repeat_lines,
    ],
)
def test_the_same_data_give_the_same_svg(draw, small):
    first = style.svg(draw(small))
    assert first == style.svg(draw(small))
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert "<dc:date>" not in first
    assert matplotlib.__version__ not in first


def test_other_formats_and_bad_folders_are_refused(tmp_path, small):
    ax = plots.radar(small)
    with pytest.raises(InputError, match=r"\.svg or \.pdf, not '\.gif'"):
        style.save(ax, tmp_path / "a.gif")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        style.save(ax, tmp_path / "file" / "a.svg")


def test_drawing_never_touches_pyplot_nor_the_settings_of_the_caller():
    code = (
        "import sys, matplotlib; before = matplotlib.rcParams.copy();"
        "from agenteval.reporting import plots, style;"
        " from agenteval.stats.scores import score_table;"
        "t = score_table({'run': str(i), 'criterion': c, 'value': i / 4, 'success': i < 2,"
        " 'system': 's'} for c in 'abc' for i in range(4));"
        "style.svg(plots.radar(t)); style.svg(plots.success_bars(t));"
        "print('matplotlib.pyplot' in sys.modules);"  # before the comparison, which loads it
        "print(all(before[k] == matplotlib.rcParams[k] for k in before if k != 'backend'))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.split() == ["False", "True"]


@pytest.mark.parametrize("name", ["$x^2$ and $", "a<b>&\"'--x-->", "line\nbreak\x00\x1b[0m", "  "])
def test_any_name_gives_a_readable_file(name, small):
    rows = [
        {
            "run": str(i),
            "criterion": f"{name}{c}",
            "value": i / 2,
            "success": bool(i),
            "system": name,
        }
        for c in "abc"
        for i in range(3)
    ]
    table = score_table(rows)
    for draw in (plots.success_bars, plots.radar, plots.correlation_map):
        ElementTree.fromstring(style.svg(draw(table)))


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("drop_sentences:0.25:7", "drop sentences 25%"),
        ("shuffle_sentences:-:0", "shuffle sentences"),
        ("odd:<b>:1", "odd:<b>:1"),
        ("original", "original"),
    ],
)
def test_variants_have_names_for_people(name: str, label: str) -> None:
    assert variant_label(name) == label


def test_seeds_tell_twins_apart() -> None:
    names = ["pad:0.25:1", "pad:0.25:2", "pad:0.5:1"]
    assert [variant_label(n, names) for n in names] == [
        "pad 25%, seed 1",
        "pad 25%, seed 2",
        "pad 50%",
    ]
