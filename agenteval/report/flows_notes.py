"""What must be said below the tables of a campaign of workflows, where there is cause to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agenteval.evaluators.workflows.results import SessionResult, TurnResult
from agenteval.report.text import shown
from agenteval.stats import Interval

_SUFFIX = re.compile(r" \[[0-9a-f]{6}\]")
_MOST_TEXT = 80


def suffixes(names: Iterable[str]) -> str:
    """What a piece of a hash behind a name means; nothing where no name has one."""
    if not any(_SUFFIX.search(name) for name in names):
        return ""
    return (
        "[…] behind a name: same name, other settings, source or procedure; the suffix tells them "
        "apart."
    )


def unequal(results: Sequence[SessionResult] | Sequence[TurnResult], what: str) -> str:
    """That the systems did not all get the same `what`; nothing where they did."""
    given: dict[str, set[str]] = {}
    for r in results:
        given.setdefault(r.system, set()).add(r.case.id)
    sets = list(given.values())
    if all(own == sets[0] for own in sets):
        return ""
    common, sizes = len(set.intersection(*sets)), sorted(map(len, sets))
    each = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
    found = f"{common:,} of them common to all" if common else "none of them common to all"
    formats = {(r.agent, r.format) for r in results}
    paired = len({agent for agent, _ in formats}) < len(formats)
    return (
        f"Systems were not tried on the same {what} ({each} each, {found}): differences between "
        "rows may be those of the tasks. Compare only systems tried on the same ones"
        + ("; formats of one agent are paired below." if paired else ".")
    )


def bare(rates: Iterable[Interval]) -> str:
    """Why some rates have no interval beside them; nothing where all have one."""
    found = {
        _reason(rate)
        for rate in rates
        if rate.mean is not None and (rate.low is None or rate.low == rate.high)
    }
    return f"No interval: {' or '.join(sorted(found))}." if found else ""


def _reason(rate: Interval) -> str:
    if (rate.n_clusters or rate.n) < 2:
        return "a single task"
    if rate.reason is None or rate.reason.startswith("no variation"):
        return "no variation between tasks"
    return "too few tasks" if "too few" in rate.reason else rate.reason  # of however many there are


def joined(*notes: str) -> str:
    """The notes that say something, in one."""
    return " ".join(note for note in notes if note)


def sample(text: str) -> str:
    """The beginning of a message in one line."""
    line = " ".join(text.split())
    return shown(line if len(line) <= _MOST_TEXT else f"{line[: _MOST_TEXT - 1]}…")
