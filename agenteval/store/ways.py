"""In which way a source was asked, in words: so that judgings of different kinds are not mixed."""

from __future__ import annotations

from agenteval.records import Source


def way_of(source: Source) -> str:
    """How a judge was asked, "" for the plain way; several parts are joined by commas.

    "reversed scale", "wording b" and "injection probe" are the questions of `verify --probes`,
    "datamark" and "one per call" choices of who quantifies.
    """
    parameters = source.parameters
    found = []
    if parameters.get("one_per_call") is True:
        found.append("one per call")
    if parameters.get("datamark"):
        found.append("datamark")
    return ", ".join([*found, *_probed(source)])


def is_probe(source: Source) -> bool:
    """Whether it was asked to examine the judge: its ratings say nothing more about the runs."""
    return bool(_probed(source))


def _probed(source: Source) -> list[str]:
    found, parameters = [], source.parameters
    if parameters.get("reversed_scale") is True:
        found.append("reversed scale")
    if (wording := parameters.get("wording", "a")) != "a":
        found.append(f"wording {wording}")
    if probe := parameters.get("probe"):
        found.append(f"{str(probe).partition('/')[0]} probe")
    return found
