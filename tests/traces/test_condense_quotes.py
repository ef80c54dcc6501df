"""How much of the words that people quote survives condensing, on annotated traces."""

from __future__ import annotations

import re
from statistics import fmean

import pytest

from agenteval.readers.traces import read_traces
from agenteval.records import Run
from agenteval.traces.annotations import read_folder
from agenteval.traces.condense import Options, condense
from benchmarks.detectors import DATA

# budget in tokens: mean over 271 quotes of the share of their five-word sequences that is shown
SHARES = {20_000: 0.80, 10_000: 0.69, 5_000: 0.46}


def sequences(text: str) -> set[tuple[str, ...]]:
    words = re.findall(r"\w+", text.casefold())
    return {tuple(words[i : i + 5]) for i in range(max(1, len(words) - 4))} if words else set()


@pytest.mark.slow
@pytest.mark.skipif(not DATA.is_dir(), reason="the annotated traces are not here")
def test_quotes_of_annotators_survive() -> None:
    runs: dict[str, Run] = {}
    for path in DATA.glob("*/traces/*.json"):
        runs |= {run.id: run for run in read_traces(path).runs}
    annotations = [a for folder in DATA.glob("*/gold") for a in read_folder(folder)]
    for budget, least in SHARES.items():
        shares = []
        for annotation in annotations:
            pieces = condense(runs[annotation.trace], Options(budget=budget)).pieces
            shown = sequences("\n".join(piece.text for piece in pieces))
            for finding in annotation.findings.findings:
                if quoted := sequences(finding.evidence):
                    shares.append(len(quoted & shown) / len(quoted))
        assert len(shares) == 271
        assert fmean(shares) > least, budget
