"""The tables of show, verify, compare, agree and the probes at every width of a terminal.

Names hold no digits, so that every word with a digit is a figure (or part of a sentence), and the
figures at 60 cells must be those of a terminal on which everything has room.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable

import pytest
from rich.cells import cell_len

from agenteval.cli.agree_table import Audited, Found, JuryOf, print_found
from agenteval.cli.agree_table import Comparison as Pair
from agenteval.cli.compare_sides import Sides
from agenteval.cli.compare_table import print_comparison
from agenteval.cli.console import out
from agenteval.cli.probes import print_probes
from agenteval.cli.table import Report, print_table, table_json
from agenteval.cli.verify_table import print_verified
from agenteval.evaluators.utility.probes.result import Probe
from agenteval.records import Criterion, Source, Usage
from agenteval.records.verification import Check, Effect, JudgeVerdict, Verification, VerifiedSet
from agenteval.stats import Interval
from agenteval.stats.scores import ScoreTable, score_table
from agenteval.trust.agreement import Agreement
from agenteval.trust.comparison import compare
from agenteval.trust.label_audit import Suspect, WithAndWithout, Witness
from agenteval.trust.means import Rating
from agenteval.trust.panel import Panel as Jury
from agenteval.trust.panel import PanelMember as Juror
from agenteval.trust.panel import RaterAgreement as Ceiling

WIDTHS = (60, 80, 100, 120, 200)
LONG = "does the answer say for every step why it is taken and what would follow without it, "
NAMES = ("Clarity", "数学の証明は完全か、それとも省略があるか", LONG + "first", LONG + "second")
SYSTEMS = ("a", "python:agents:serve_with_tools · flowchart-left", "システム甲",
           "python:agents:serve_with_tools · flowchart-right")  # fmt: skip
STATUSES = ("unscored:parse", "unscored:refusal", "unscored:timeout", "unscored:length",
            "unscored:unsupported", "unscored:server")  # fmt: skip

WITNESSES = (Witness("clarity", 0.9, 0.1, 0.2, 0.3, 5, 5, True, 0.9),) * 4


def interval(mean: float, half: float = 0.25, n: int = 118) -> Interval:
    return Interval(mean, mean - half, mean + half, 0.1, n, 22, "t")


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


def compared() -> None:
    def side(shift: float) -> ScoreTable:
        return score_table(
            {"run": f"r{i}", "case": f"c{i}", "criterion": name, "repeat": 0, "status": "scored",
             "value": ((i * 7 % 10) / 10 + 0.2 + shift * (i % 3)) / 2}
            for i in range(30) for name in NAMES
        )  # fmt: skip

    sides = Sides(side(0.0), side(-0.1), ("old", "new"), "case")
    print_comparison(sides, compare(sides.first, sides.second), [])


def agreed() -> None:
    names = {str(i): name for i, name in enumerate(NAMES)}
    rows = tuple(
        Agreement(
            i, "ordinal", 118, 22, interval(0.5), interval(-0.35), interval(0.1), interval(-0.2),
            interval(0.25), 0.52, 0.96, interval(-0.44), ("bad", "good"), ((10, 20), (30, 58)),
            0, {}, {}, None, (),
        )
        for i in names
    )  # fmt: skip
    jury = tuple(
        Jury(i, 118, 22, interval(0.3), 0.84, tuple(
            Juror(s, interval(0.33), -0.48, interval(0.36), interval(-0.11)) for s in SYSTEMS))
        for i in names
    )  # fmt: skip
    suspects = tuple(
        Suspect(LONG + end, "c", "s", True, tuple(names), 0.93, WITNESSES)
        for end in ("first", "second")
    )
    auc = tuple(WithAndWithout(i, interval(0.7), interval(0.8)) for i in names)
    found = Found(
        (Pair("judge", "A", rows),),
        tuple(Ceiling(i, ("A", "B"), 40, interval(0.9, 0.05), interval(0.8, 0.1)) for i in names),
        (JuryOf("A", jury),), (Audited("judge", suspects, auc),),
    )  # fmt: skip
    print_found(found, names, confusion=True)


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


@pytest.mark.parametrize("what", [scores, verified, compared, agreed, probed])
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
        if what is not agreed:  # there the ends of names stand between figures
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
