"""The page: everything about one judge in one file that loads nothing and runs nothing foreign."""

from __future__ import annotations

import base64
import functools
import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from importlib.resources import files
from typing import Any

from agenteval.records import Criterion
from agenteval.records.verification import Verification
from agenteval.report.details import details
from agenteval.report.grid import Grid
from agenteval.report.material import Material
from agenteval.report.numbers import (
    checks_grid,
    criteria_grid,
    effects_grid,
    missing_grid,
    originals,
    systems_grid,
)
from agenteval.report.pictures import Picture, pictures
from agenteval.report.runs import RunLine, run_lines, runs_grid, worth_reading
from agenteval.report.summary import summary
from agenteval.report.text import cut, shown

MOST_RUNS = 500  # runs that can be opened
_MOST_NAMED = 20_000  # other runs whose names are listed
_MOST_LABELS = 12


@dataclass(frozen=True)
class OneCriterion:
    """What can be unfolded of a criterion."""

    name: str
    verdict: str
    description: str
    levels: tuple[str, ...]
    order: str  # how the levels run
    why: str  # how that was decided
    reasons: tuple[str, ...]
    labels: str
    checks: Grid | None


def render(material: Material, *, most_runs: int = MOST_RUNS) -> str:
    """The page as HTML. The same material gives the same text.

    At most `most_runs` runs can be opened, those farthest from their label first; the page says
    how many are left out. Raises StoreError when the texts cannot be read.
    """
    lines = run_lines(material)
    made = details(material, worth_reading(lines, most_runs))
    drawn, left_out = pictures(material)
    style, script = _part("page.css"), _part("page.js")
    page: str = _environment().get_template("page.html").render(
        policy=policy(style, script),
        title=shown(material.title),
        unfinished=list(map(shown, material.unfinished)),
        facts=material.facts,
        s=summary(material, made, left_out),
        criteria=criteria_grid(material),
        each=[_criterion(material, c, i) for i, c in enumerate(material.criteria)],
        systems=systems_grid(material),
        effects=effects_grid(material),
        missing=missing_grid(material),
        pictures=[_safe(p) for p in drawn],
        runs=runs_grid(made.lines),
        show=shown(material.show.replace("{run}", "ID")),
        names=_raw(made.names),
        blocks=[_raw(b) for b in made.blocks],
        style=_raw(style),
        script=_raw(script),
        version=version("agenteval"),
        **_others(lines, made.lines),
    )  # fmt: skip
    return page


def policy(style: str, script: str) -> str:
    """The content security policy: nothing but this style sheet and this script, by their hashes.

    W3C, Content Security Policy Level 3, section 6.7.2 (hash sources).
    """
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@functools.cache
def _part(name: str) -> str:
    return files("agenteval.report").joinpath(name).read_text(encoding="utf-8").strip()


@functools.cache
def _environment() -> Any:
    from jinja2 import Environment, FunctionLoader, StrictUndefined

    return Environment(
        loader=FunctionLoader(_part),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
    )


def _raw(text: str) -> Any:
    """Text of ours that is markup already: our style sheet, script, figures, escaped JSON."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


def _safe(picture: Picture) -> dict[str, Any]:
    return {"title": picture.title, "caption": picture.caption, "svg": _raw(picture.svg)}


def _criterion(material: Material, criterion: Criterion, place: int) -> OneCriterion:
    found = material.findings.of(criterion.id) if material.findings else None
    return OneCriterion(
        shown(criterion.name),
        found.verdict if found else "",
        cut(criterion.description, 4000),
        tuple(shown(v) for v in criterion.accepted_values),
        "worst to best" if criterion.ordered else "in no known order, so without a mean",
        shown(criterion.order_reason or ""),
        tuple(shown(r) for r in (*found.reasons, *_next(found))) if found else (),
        _labels(material, criterion),
        checks_grid(found, place) if found and (found.checks or found.effects) else None,
    )


def _next(found: Verification) -> tuple[str, ...]:
    return (f"Next: {found.next_step}",) if found.next_step else ()


def _labels(material: Material, criterion: Criterion) -> str:
    """How often which label was given to originals, the levels in their order."""
    own = originals(material).of(criterion=criterion.id)
    codes = own.label.codes[own.label.codes >= 0]
    counts = Counter({own.label.names[c]: n for c, n in Counter(codes.tolist()).items()})
    order = [v for v in criterion.accepted_values if v in counts]
    order += [v for v, _ in counts.most_common() if v not in order]
    listed = [f"{cut(v, 80)} {counts[v]:,}" for v in order[:_MOST_LABELS]]
    rest = len(order) - len(listed)
    return ", ".join(listed) + (f" and {rest} more" if rest else "")


def _others(lines: Sequence[RunLine], here: Sequence[RunLine]) -> dict[str, str]:
    """What is said of the runs of the page, and the names of the others."""
    on_page = {line.run for line in here}
    names = [line.run for line in lines if line.run not in on_page]
    listed = ", ".join(shown(n) for n in names[:_MOST_NAMED])
    if len(names) > _MOST_NAMED:
        listed += f" and {len(names) - _MOST_NAMED:,} more"
    count = f"{len(here):,} of {len(lines):,} runs." if names else f"{len(lines):,} runs."
    return {
        "count": count + " Choose one to see what the judge saw and said.",
        "others": listed,
        "others_count": f"{len(names):,}",
    }
