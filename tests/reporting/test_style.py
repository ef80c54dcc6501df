"""Names and counts in words, looks, and files: the same bytes for the same data."""

from __future__ import annotations

import subprocess
import sys
from xml.etree import ElementTree

import matplotlib
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from matplotlib.figure import Figure

from agenteval.errors import InputError
from agenteval.reporting import plots, style
from agenteval.reporting.style import LOOKS, n_label, plain, span, wrapped
from agenteval.reporting.text import listed
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
    pale = look.light()
    ratio = (luminance(pale) + 0.05) / (luminance(look.colour) + 0.05)
    assert ratio > 1.5


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


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_files_are_equal_bytes_in_another_process(suffix, tmp_path, small):
    code = (
        "import sys; from agenteval.reporting.plots import radar;"
        "from agenteval.reporting.style import save;"
        "from agenteval.stats.scores import score_table;"
        "t = score_table({'run': str(i), 'criterion': c, 'value': i / 4, 'system': 's'}"
        " for c in 'abc' for i in range(4)); save(radar(t), sys.argv[1])"
    )
    written = []
    for name in ("one", "two"):
        path = tmp_path / f"{name}{suffix}"
        subprocess.run([sys.executable, "-c", code, str(path)], check=True)
        written.append(path.read_bytes())
    assert written[0] == written[1]
    assert len(written[0]) > 5000


def test_other_formats_and_bad_folders_are_refused(tmp_path, small):
    ax = plots.radar(small)
    with pytest.raises(InputError, match=r"\.svg or \.pdf, not '\.gif'"):
        style.save(ax, tmp_path / "a.gif")
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="cannot write"):
        style.save(ax, tmp_path / "file" / "a.svg")


def test_importing_the_package_does_not_load_matplotlib():
    code = "import sys, agenteval.reporting.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


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


def test_settings_of_the_caller_do_not_change_a_figure(small):
    plain = style.svg(plots.success_bars(small))
    with matplotlib.rc_context(
        {
            "font.size": 20,
            "axes.grid": True,
            "xtick.labelsize": 30,
            "svg.hashsalt": None,
            "svg.fonttype": "none",
        }
    ):
        assert style.svg(plots.success_bars(small)) == plain


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


def test_axes_without_a_figure_are_refused():
    figure = Figure()
    ax = figure.add_subplot()
    ax.remove()
    with pytest.raises(InputError, match="belong to no figure"):
        style.svg(ax)
