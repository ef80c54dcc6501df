"""Files: the same bytes for the same data, no trace of time or machine, nothing loaded early."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import matplotlib
import pytest
from matplotlib.figure import Figure

from agenteval.errors import InputError
from agenteval.report import plots, style
from agenteval.stats.scores import score_table


@pytest.mark.parametrize("draw", [plots.radar, plots.success_bars, plots.repeat_boxes,
                                  plots.correlation_map, plots.coverage_bars,
                                  plots.repeat_lines])  # fmt: skip
def test_the_same_data_give_the_same_svg(draw, small):
    first = style.svg(draw(small))
    assert first == style.svg(draw(small))
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert "<dc:date>" not in first
    assert matplotlib.__version__ not in first


@pytest.mark.parametrize("suffix", [".svg", ".png"])
def test_files_are_equal_bytes_in_another_process(suffix, tmp_path, small):
    code = (
        "import sys; from agenteval.report.plots import radar;"
        "from agenteval.report.style import save;"
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
    code = "import sys, agenteval.report.plots; print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_drawing_never_touches_pyplot_nor_the_settings_of_the_caller():
    code = (
        "import sys, matplotlib; before = matplotlib.rcParams.copy();"
        "from agenteval.report import plots, style; from agenteval.stats.scores import score_table;"
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
    with matplotlib.rc_context({"font.size": 20, "axes.grid": True, "xtick.labelsize": 30,
                                "svg.hashsalt": None, "svg.fonttype": "none"}):  # fmt: skip
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
