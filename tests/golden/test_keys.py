"""Keys under which results are stored: equal keys find stored results again.

The hashes in `keys.json` come from the code at commit 0f3483b. A changed hash means that results in
existing stores are no longer found, so the file changes only together with a migration.
`python -m tests.golden.test_keys` writes it anew.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.agents.protocol import System
from agenteval.records import CriteriaSet, Criterion, Message, Run, Source, Span, View
from agenteval.store.experiments import Grid, StoredExperiment
from agenteval.store.rows import case_key
from agenteval.traces.outline import trace_key
from agenteval.traces.taxonomy import built_in
from agenteval.utility.perturb import variant_name

FILE = Path(__file__).with_name("keys.json")

PLAIN = {
    "name": "Clarity",
    "description": "How clear it is.",
    "accepted_values": ["poor", "fair", "good"],
}
CRITERIA = {
    "plain": PLAIN,
    "hint and na": {**PLAIN, "hint": "Read twice.", "allow_na": True},
    "expect": {**PLAIN, "expect": {"drop_sentences": "lower"}},
    "order unclear": {**PLAIN, "order": "unclear"},
    "levels reversed": {**PLAIN, "accepted_values": ["good", "fair", "poor"]},
    "numbers falling": {**PLAIN, "accepted_values": ["5", "4", "3"]},
    "nominal": {**PLAIN, "scale": "nominal"},
    "numeric": {"name": "Share", "scale": "numeric", "numeric_range": [0, 10]},
    "parts": {"name": "Whole", "sub_criteria": [PLAIN], "aggregation": "min"},
    "concept": {**PLAIN, "provenance": {"origin": "bank", "concept": "clarity"}},
    "verification": {**PLAIN, "verification": {"verdict": "keep"}},
    "computed": {"name": "Exact", "accepted_values": ["no", "yes"], "judge": "exact"},
    "computed with options": {
        "name": "Near",
        "accepted_values": ["no", "yes"],
        "judge": "number",
        "judge_options": {"tolerance": 0.01},
    },
}
VIEW = {"run_id": "r1", "problem": "What is 2 + 2?", "trajectory": "4"}
VIEWS = {
    "plain": VIEW,
    "reference": {**VIEW, "reference": "4"},
    "owner": {**VIEW, "owner": ("math", "alpha")},
    "origin": {**VIEW, "origin": "0" * 64, "owner": ("math", "alpha")},
    "computed from": {**VIEW, "computed_from": "1" * 64},
    "failed as worst": {**VIEW, "failed_as": "worst"},
    "failed as missing": {**VIEW, "failed_as": "missing"},
    "not ASCII": {**VIEW, "trajectory": "vier – ４ \ud800"},
}
SOURCE = {"evaluator": "quantifier", "version": 1, "model": "m", "prompt_sha256": "2" * 64}
SOURCES = {
    "plain": SOURCE,
    "seed": {**SOURCE, "seed": 3},
    "parameters": {**SOURCE, "parameters": {"temperature": 0.0, "way": None, "list": [1, "a"]}},
    "no prompt": {**SOURCE, "prompt_sha256": None},
}
RUN = {"id": "r1", "task": "math", "system": "alpha", "input": "What is 2 + 2?", "output": "4"}
RUNS = {
    "plain": RUN,
    "gold": {**RUN, "success": True, "reference": "4"},
    "no input": {**RUN, "input": ""},
    "spans": {
        **RUN,
        "spans": [
            Span(
                id="s1",
                name="call",
                kind="llm",
                start=1.0,
                end=2.5,
                messages=(Message(role="user", content="What is 2 + 2?"),),
                reply=(Message(role="assistant", content="4"),),
            ),
            Span(id="s2", parent_id="s1", kind="tool", tool="add", status="error"),
        ],
    },
}


def _experiment(*grids: Grid, system: str = "") -> str:
    return StoredExperiment("e" * 64, "quantifier", "q", "lock", grids, system).key


def keys() -> dict[str, dict[str, str]]:
    """Return the hashes by kind and case."""
    criteria = {name: Criterion.model_validate(fields) for name, fields in CRITERIA.items()}
    runs = {name: Run.model_validate(fields) for name, fields in RUNS.items()}
    pair = (criteria["plain"], criteria["numeric"])
    return {
        "criterion": {name: criterion.sha256 for name, criterion in criteria.items()},
        "criteria set": {
            "two": CriteriaSet(task="math", criteria=pair).sha256,
            "two, other order": CriteriaSet(task="math", criteria=pair[::-1]).sha256,
        },
        "view": {name: View.model_validate(fields).sha256 for name, fields in VIEWS.items()},
        "source": {name: Source.model_validate(fields).sha256 for name, fields in SOURCES.items()},
        "case": {name: case_key(run) for name, run in runs.items()},
        "trace": {name: trace_key(run) for name, run in runs.items()},
        "system": {
            "bare": System("alpha", lambda: None, {}).sha256,
            "parameters": System(
                "alpha", lambda: None, {"model": "m", "temperature": 0.5, "prompt": None}
            ).sha256,
        },
        "variant": {
            "drop": variant_name("drop_sentences", 0.25, 7),
            "whitespace": variant_name("whitespace", 1.0, 0),
        },
        "experiment": {
            "judging": _experiment(
                Grid(("a" * 16,), 2, "original", ("c" * 64,)),
                Grid(("b" * 16,), 1, "drop_sentences:0.25:7", ("c" * 64,)),
            ),
            "trials": _experiment(Grid(("a" * 16, "b" * 16), 3), system="d" * 64),
        },
        "taxonomy": {"built in": built_in().sha256},
    }


@pytest.mark.parametrize("kind", keys())
def test_keys_are_those_of_existing_stores(kind: str) -> None:
    assert keys()[kind] == json.loads(FILE.read_text("utf-8"))[kind]


def test_no_kind_is_missing() -> None:
    assert keys().keys() == json.loads(FILE.read_text("utf-8")).keys()


if __name__ == "__main__":
    FILE.write_text(json.dumps(keys(), indent=1) + "\n", encoding="utf-8")
