"""The page of a planning campaign: one file that loads nothing and runs nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from importlib.metadata import version
from typing import Any

from agenteval.errors import InputError
from agenteval.evaluators.planning import tallies
from agenteval.evaluators.planning.capability import bounds
from agenteval.evaluators.planning.contrasts import by_form
from agenteval.evaluators.planning.dsl.lexicon import Lexicon
from agenteval.evaluators.planning.run import Attempt
from agenteval.evaluators.planning.tallies import Cause
from agenteval.report.page import policy
from agenteval.report.pictures import Picture
from agenteval.report.planning_cases import chosen, lost_trials, wrong_plans
from agenteval.report.planning_material import Campaign, campaign
from agenteval.report.planning_tables import sheets
from agenteval.report.svg import inline
from agenteval.report.template import environment, part, raw
from agenteval.report.text import shown
from agenteval.stats import Interval
from agenteval.text import plural

MOST_WRONG = 200
_MOST_NAMED = 5


def planning_page(  # noqa: PLR0913  each is a part of the page
    attempts: Iterable[Attempt],
    causes: Iterable[Cause] = (),
    *,
    title: str = "Planning",
    facts: Sequence[tuple[str, str]] = (),
    lexicon: Lexicon | None = None,
    most_wrong: int = MOST_WRONG,
    unfinished: Sequence[str] = (),
) -> str:
    """The page as HTML. The same trials in the same order give the same text.

    `causes` are (case id, system, label) of dissected cases; `facts` are shown at the end as
    (name, text); `lexicon` has the words of the suite where they are not the built-in ones. At
    most `most_wrong` wrong plans can be unfolded; the page says how many there are. `unfinished`
    are sentences on campaigns that are not all there, said before everything else.
    """
    own = campaign(attempts, causes, lexicon)
    drawn, left_out = _pictures(own)
    some, wrong = chosen(own.attempts, most_wrong)
    lost_grid, lost, gone = lost_trials(own.attempts)
    style = part("page.css") + "\n" + part("planning.css")
    page: str = environment().get_template("planning.html").render(
        policy=policy(style, ""),
        style=raw(style),
        title=shown(title),
        unfinished=list(map(shown, unfinished)),
        systems=_names(own),
        headlines=headlines(own),
        tiles=_tiles(own),
        left_out=left_out,
        pictures=[{"title": p.title, "caption": p.caption, "svg": raw(p.svg)} for p in drawn],
        sheets=sheets(own),
        wrong=wrong_plans(some, lexicon),
        wrong_count=_count(len(some), wrong, "wrong plans"),
        lost=lost,
        lost_grid=lost_grid,
        lost_count=_count(len(lost), gone, "trials without a verdict"),
        facts=[(shown(name), shown(text)) for name, text in facts],
        version=version("agenteval"),
    )  # fmt: skip
    return page


def headlines(own: Campaign) -> list[str]:
    """One sentence per system: success, guessing, the bound, the commonest error."""
    said = {b.system: b.sentence for b in bounds(tallies.tallies(own.attempts, tallies.actions))}
    types = {s.system: s for s in tallies.errors(own.attempts)}
    lines = []
    for t in tallies.tallies(own.attempts):
        name = shown(t.system)
        without = f"{plural(t.failures, 'trial')} without a verdict" if t.failures else ""
        if t.rate.mean is None:
            lines.append(f"{name}: no verdict ({without})")
            continue
        parts = [f"{name} plans right in {_percent(t.rate)} of {_trials(t.rate)}"]
        if t.guess is not None:
            parts.append(f"random orders would in {t.guess:.0%}".replace("%", " %"))
        parts.append(said[t.system])
        most = max(types[t.system].parts, key=lambda p: p.count)
        if most.count:
            kind = most.label.replace("_", " ")
            parts.append(f"{most.count:,} of {types[t.system].total:,} errors are of type {kind}")
        if without:
            parts.append(f"{without}, in no rate")
        lines.append("; ".join(parts) + ".")
    return lines


def _percent(rate: Interval) -> str:
    assert rate.mean is not None
    text = f"{100 * rate.mean:.0f} %"
    if rate.low is None or rate.high is None:
        return f"{text} ({rate.reason})"
    return f"{text} (95 % interval {100 * rate.low:.0f} to {100 * rate.high:.0f} %)"


def _trials(rate: Interval) -> str:
    cases = plural(rate.n_clusters or 0, "case")
    return cases if rate.n == rate.n_clusters else f"{plural(rate.n, 'trial')} of {cases}"


def _names(own: Campaign) -> str:
    names = list(dict.fromkeys(a.system for a in own.attempts))
    rest = len(names) - _MOST_NAMED
    return shown(", ".join(names[:_MOST_NAMED]) + (f" and {rest} more" if rest > 0 else ""))


def _tiles(own: Campaign) -> list[tuple[str, str]]:
    graded = [a for a in own.attempts if a.verdict is not None]
    right = sum(a.outcome == "pass" for a in graded)
    numbers = [
        ("systems", len({a.system for a in own.attempts})),
        ("cases", len({a.case.id for a in own.attempts})),
        ("trials", len(own.attempts)),
        ("right", right),
        ("wrong", len(graded) - right),
        ("no verdict", len(own.attempts) - len(graded)),
        ("dissected", len(own.causes)),
    ]
    return [(f"{n:,}", name) for name, n in numbers if n or name != "dissected"]


def _count(here: int, in_all: int, what: str) -> str:
    if here == in_all:
        return f"All {in_all:,} {what}."
    return f"{here:,} of {in_all:,} {what}: the systems take turns, smallest cases first."


def _pictures(own: Campaign) -> tuple[list[Picture], list[str]]:
    """Figures that the trials allow, and a line for each that they do not."""
    from agenteval.figures import svg

    drawn: list[Picture] = []
    left_out: list[str] = []
    for i, (title, caption, draw) in enumerate(_plan(own)):
        try:
            drawn.append(Picture(title, caption, inline(svg(draw()), f"f{i}-")))
        except InputError as error:
            left_out.append(shown(f"{title}: {error}"))
    return drawn, left_out


def _plan(own: Campaign) -> list[tuple[str, str, Callable[[], Any]]]:
    from agenteval.figures import planning

    by_actions = tallies.tallies(own.attempts, tallies.actions)
    plan: list[tuple[str, str, Callable[[], Any]]] = [
        (
            "Success by number of actions",
            "The more actions, the harder. The ring is the capability bound: the last number of "
            "actions with a success of 20 % or more.",
            lambda: planning.success_by_actions(by_actions, bounds(by_actions)),
        ),
        (
            "Types of errors",
            "Each wrong plan has one type, the first that applies.",
            lambda: planning.share_bars(
                tallies.errors(own.attempts), "Types of errors by system", "error"
            ),
        ),
    ]
    if own.causes:
        plan.append((
            "Causes",
            "What made the same constraints solvable: chance, other words, another topic, another "
            "structure, or nothing.",
            lambda: planning.share_bars(
                tallies.causes(own.causes), "Causes by system", "dissected case"
            ),
        ))  # fmt: skip
    plan += [
        (
            "Clause forms",
            "Which forms of a clause go with failure. Not causal.",
            lambda: planning.form_forest(by_form(own.attempts, own.lexicon).contrasts),
        ),
        (
            "Topics",
            "Topics should not matter for planning; intervals of few cases are wide.",
            lambda: planning.success_by_topic(tallies.tallies(own.attempts, tallies.topic)),
        ),
    ]
    return plan
