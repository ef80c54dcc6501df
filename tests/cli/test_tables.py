"""The tables of show, verify and the probes at every width of a terminal.

Names hold no digits, so that every word with a digit is a figure (or part of a sentence), and the
figures at 60 cells must be those of a terminal on which everything has room.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
from rich.cells import cell_len

from agenteval.cli.console import out
from agenteval.cli.probes import print_probes
from agenteval.cli.table import Report, print_table, table_json
from agenteval.cli.verify_table import print_verified
from agenteval.evaluators.utility.probes.result import Probe
from agenteval.records import Criterion, Source, Usage
from agenteval.records.verification import Check, Effect, JudgeVerdict, Verification, VerifiedSet
from agenteval.trust.means import Rating

WIDTHS = (60, 80, 100, 120, 200)
LONG = "does the answer say for every step why it is taken and what would follow without it, "
NAMES = ("Clarity", "数学の証明は完全か、それとも省略があるか", LONG + "first", LONG + "second")
SYSTEMS = ("a", "python:agents:serve_with_tools · flowchart-left", "システム甲",
           "python:agents:serve_with_tools · flowchart-right")  # fmt: skip
STATUSES = ("unscored:parse", "unscored:refusal", "unscored:timeout", "unscored:length",
            "unscored:unsupported", "unscored:server")  # fmt: skip


def scores() -> None:
    criteria = tuple(
        Criterion(id=f"id-{i}", name=name, accepted_values=("bad", "good"))
        for i, name in enumerate(NAMES)
    )
    ratings = []
    for i, criterion in enumerate(criteria):
        for j, system in enumerate(SYSTEMS):
            for run in range(40):
                status = STATUSES[run % 6] if run % 7 == i else "ok"
                value = None if status != "ok" else ((run * 7 + i + j) % 11) / 10
                ratings += [
                    Rating(f"{system}{run}", system, f"c{run % 20}", run % 3 > 0, criterion.id,
                           repeat, status, value)
                    for repeat in range(3)
                ]  # fmt: skip
    source = Source(evaluator="utility.prompted", version=1, model="m", seed=0)
    print_table(Report(source, criteria, tuple(ratings), Usage(), "s.db"))


def verified() -> None:
    def check(name: str, estimate: float) -> Check:
        return Check(name=name, outcome="unknown", reason="r", estimate=estimate,
                     low=estimate - 0.2, high=estimate + 0.2)  # fmt: skip

    effects = tuple(
        Effect(variant=o, operator=o, share=0.25, expected="lower", outcome="fail", reason="r",
               estimate=-0.31, n=60, shorter=0.75)
        for o in ("drop_sentences", "shuffle_sentences", "swap_numbers", "pad_words", "respace",
                  "truncate_head", "truncate_tail")
    )  # fmt: skip
    found = tuple(
        Verification(
            criterion_id=str(i), verdict="undecided", reasons=("why",), runs=60, cases=20,
            repeats=5, coverage=1.0, mean=0.5 + i / 10, low=0.25, high=0.75, effects=effects,
            checks=(check("agreement", -0.17), check("discrimination", 0.45),
                    Check(name="redundancy", outcome="pass", reason="r", estimate=-0.05)),
        )
        for i in range(len(NAMES))
    )  # fmt: skip
    judge = JudgeVerdict(verdict="not enough data", reasons=("few cases",))
    names = {str(i): name for i, name in enumerate(NAMES)}
    print_verified(VerifiedSet(judge=judge, criteria=found), names, ["ratings"])


def probed() -> None:
    checks = tuple(
        Check(name=name, outcome="unknown", reason="r", unit="share of the scale", estimate=-0.25,
              low=-0.75, high=0.25, p=0.5, p_adjusted=0.00123, n=118)
        for name in NAMES
    )  # fmt: skip
    print_probes([Probe(name=n, outcome="fail", reason="why", checks=checks) for n in ("a", "b")])


@pytest.fixture
def at(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Callable[[], None], int], str]:
    """What is printed on a terminal of that width."""

    def shown(what: Callable[[], None], width: int) -> str:
        with monkeypatch.context() as patched:
            patched.setattr(out(), "width", width)
            what()
        return capsys.readouterr().out

    return shown


def figures(text: str) -> Counter[str]:
    """Every word with a digit in it, by how often it stands there."""
    words = text.replace("(95 %", "").split()  # a title stands above every part
    return Counter(word for word in words if re.search(r"\d", word))


def intervals(text: str) -> Counter[str]:
    """Every mean with its interval that stands on one line of a table."""
    lines = [line for line in text.splitlines() if line.startswith(" ")]
    return Counter(re.findall(r"\S+ \[\S+, \S+\](?: [✓✗?])?(?= |$)", "\n".join(lines), flags=re.M))


@pytest.mark.parametrize("what", [scores, verified, probed])
def test_at_every_width_all_figures_are_whole_and_no_line_is_too_long(
    what: Callable[[], None], at: Callable[[Callable[[], None], int], str]
) -> None:
    wide = at(what, 1000)
    assert sum(intervals(wide).values()) >= len(NAMES)
    for width in WIDTHS:
        shown = at(what, width)
        assert max(map(cell_len, shown.splitlines())) <= width
        assert figures(shown) == figures(wide)
        assert intervals(shown) == intervals(wide)
        assert "…" not in shown
        letters = "".join(shown.split())
        assert letters.count("first") >= 1 <= letters.count("second")


def test_the_table_of_verify_has_a_line_per_criterion_from_80_cells_on(
    at: Callable[[Callable[[], None], int], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.cli.test_tables.NAMES", ("Accuracy", "Choice of method"))
    for width, count in ((80, 2), (120, 1)):
        table = at(verified, width).split("original minus copy")[0]
        lines = [line for line in table.splitlines() if re.search("Accuracy|Choice", line)]
        assert len(lines) == 2 * count
        assert not re.search(r"^ *\[", table, flags=re.M)


def test_empty_replies_alone_are_not_shown_as_a_mean(capsys: pytest.CaptureFixture[str]) -> None:
    """A dead endpoint: three empty replies get the worst level by rule, nothing else is rated."""
    dead = "http://127.0.0.1:9/v1: cannot connect"
    criteria = tuple(
        Criterion(id=name, name=name, accepted_values=("bad", "good")) for name in ("x", "y")
    )
    ratings = [
        Rating(f"r{i}", system, f"c{i}", True, c.id, 0, "degenerate", 0.0) if i < 3
        else Rating(f"r{i}", system, f"c{i}", True, c.id, 0, "scored", 1.0)
        if (c.id, system) == ("y", "b")
        else Rating(f"r{i}", system, f"c{i}", True, c.id, 0, "error:infrastructure", None,
                    message=dead)
        for c in criteria for system in "ab" for i in range(5)
    ]  # fmt: skip
    source = Source(evaluator="utility.prompted", version=1, model="m", seed=0)
    report = Report(source, criteria, tuple(ratings), Usage(), "s.db")
    print_table(report)
    shown = " ".join(capsys.readouterr().out.split())
    assert f"no score: x: {dead}; not rated (6 empty replies)" in shown
    assert (
        "y: a: 2 infrastructure, 3 empty replies; b: 3 degenerate, mean without: 1.000 (2)" in shown
    )
    assert " a - - - 0 5 " in shown  # of y
    assert "2 of 20 rated, 12 at the worst level by rule (empty replies); not rated: 6" in shown
    row = table_json(report)["rows"][0]
    assert (row["overall"]["mean"], row["overall"]["n"], row["degenerate"]) == (None, 0, 3)


def test_show_says_what_is_counted_and_lists_failures_in_lines(
    at: Callable[[Callable[[], None], int], str],
) -> None:
    shown = " ".join(at(scores, 80).split())
    assert "in brackets the number of ratings" in shown
    assert "not rated, by criterion and system: Clarity: a: " in shown
    # criterion 0: runs 0, 7, 14, 21, 28, 35 of 40 fail, one status each, in 3 repeats
    each = "3 length, 3 parse, 3 refusal, 3 server, 3 timeout, 3 unsupported (with them the mean"
    assert f"Clarity: a: {each}" in shown
