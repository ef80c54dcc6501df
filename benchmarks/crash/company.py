"""Other commands beside the one that is killed: they come, look at its store, and go."""

from __future__ import annotations

import itertools
from pathlib import Path

from benchmarks.crash.checks import Findings
from benchmarks.crash.zygote import Job, Zygote

VISITS = (("show", "--json"), ("export", "visit.csv"), ("doctor", "--json"))
FINE = (0, 1, 2)  # read; `doctor` found nothing to judge with; no store or no results yet
STORE = ("--store", "s.db")


def keep_company(zygote: Zygote, number: int, folder: Path, found: Findings, about: str) -> int:
    """Visit until the command has ended, once at least; returns how many visits there were.

    A visitor that fails, or calls the store damaged, is a finding.
    """
    for visits, words in enumerate(itertools.cycle(VISITS), 1):
        ended = zygote.run(Job((*words, *STORE), str(folder)))
        if ended.code not in FINE or "damaged" in ended.err or "Traceback" in ended.err:
            found.corrupt.append(f"{about}: {words[0]} beside it: {ended.code}: {ended.err[-300:]}")
        if zygote.has_ended(number):
            return visits
    raise AssertionError("a cycle does not end")
