"""The page of findings: errors on the spans of traces, one file that loads and runs nothing."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version

from agenteval.evaluators.traces.forest import DEFAULT, Bounds
from agenteval.evaluators.traces.tables import Finder
from agenteval.report.page import policy
from agenteval.report.template import environment, part, raw
from agenteval.report.text import shown
from agenteval.report.traces_material import Material
from agenteval.report.traces_tables import failures, sheets
from agenteval.report.traces_trees import tree
from agenteval.text import plural

MOST_TRACES = 100


def traces_page(
    material: Material,
    *,
    title: str = "Errors in traces",
    facts: Sequence[tuple[str, str]] = (),
    most_traces: int = MOST_TRACES,
    bounds: Bounds = DEFAULT,
    unfinished: Sequence[str] = (),
) -> str:
    """The page as HTML. The same material gives the same text.

    At most `most_traces` traces can be unfolded, those with most findings first; the page says how
    many there are. `facts` are shown at the end as (name, text). `unfinished` are sentences on
    finders that have not come to their end, said before everything else.
    """
    ordered = worth_reading(material)
    some = [tree(material, trace, bounds) for trace in ordered[:most_traces]]
    style = part("page.css") + "\n" + part("traces.css")
    page: str = environment().get_template("traces.html").render(
        policy=policy(style, ""),
        style=raw(style),
        title=shown(title),
        unfinished=list(map(shown, unfinished)),
        finders=shown(", ".join(f.name for f in material.finders)) or "nobody yet",
        headlines=headlines(material),
        tiles=_tiles(material),
        sheets=sheets(material),
        flagged=shown(material.flags.line),
        trees=some,
        count=_count(len(some), len(ordered)),
        facts=[(shown(name), shown(text)) for name, text in facts],
        version=version("agenteval"),
    )  # fmt: skip
    return page


def worth_reading(material: Material) -> list[str]:
    """All traces: those with most findings first, then those that a finder failed on."""

    def place(trace: str) -> tuple[int, int, str]:
        said = [f.findings[trace] for f in material.finders if trace in f.findings]
        return -sum(len(s.findings) for s in said), -sum(s.status is not None for s in said), trace

    return sorted(material.traces, key=place)


def headlines(material: Material) -> list[str]:
    """One sentence for each finder: how much it found, in how many traces, where it failed."""
    return [_headline(finder, len(material.traces)) for finder in material.finders]


def _headline(finder: Finder, total: int) -> str:
    known = list(finder.known())
    name = shown(finder.name) + (" (gold)" if finder.gold else "")
    failed, untried = failures(finder).total(), total - len(finder.findings)
    gaps = [f"could not examine {failed:,}" if failed else "",
            f"has not tried {untried:,}" if untried else ""]  # fmt: skip
    rest = "".join(f"; {gap}" for gap in gaps if gap)
    if not known:
        return f"{name}: nothing is known{rest}."
    found = sum(len(f.findings) for f in known)
    holding = sum(bool(f.findings) for f in known)
    return (
        f"{name} found {plural(found, 'error')} in {holding:,} of {plural(len(known), 'trace')} "
        f"examined{rest}."
    )


def _tiles(material: Material) -> list[tuple[str, str]]:
    known = [said for finder in material.finders for said in finder.known()]
    failed = sum(failures(finder).total() for finder in material.finders)
    numbers = [
        ("traces", len(material.traces)),
        ("spans", sum(o.total for o in material.outlines.values())),
        ("finders", len(material.finders)),
        ("findings", sum(len(f.findings) for f in known)),
        ("categories", len(material.categories())),
        ("failures", failed),
    ]
    tiles = [(f"{n:,}", name) for name, n in numbers]
    return [*tiles, *([material.flags.tile] if material.flags.examined else [])]


def _count(here: int, in_all: int) -> str:
    if here == in_all:
        return f"All {plural(in_all, 'trace')}, most findings first."
    return f"{here:,} of {plural(in_all, 'trace')}, those with most findings."
