"""verify from end to end: copies are judged and stored, verdicts shown, written and gated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from agenteval.store import Store
from agenteval.testing import serve
from tests.cli.conftest import Cli


def answer(body: dict[str, Any], n: int) -> str:
    """Always the same levels."""
    return json.dumps(
        {
            "clarity": {"explanation": "c.", "label": "clear"},
            "accuracy": {"explanation": "a.", "label": "correct"},
        }
    )


def test_originals_and_copies_are_judged_once(cli: Cli, project: Path) -> None:
    with serve(answer) as server:
        command = (
            "verify",
            "runs.jsonl",
            "--model",
            "m",
            "--base-url",
            server.base_url,
            "--perturb",
            "pad",
            "--perturb",
            "whitespace",
        )
        dry = cli(*command, "--dry-run")
        assert server.count == 0
        first = cli(*command, "--json")
        asked = server.count
        again = cli(*command, "--json")
        assert server.count == asked
    assert first.code == 0, first.err
    runs = len((project / "runs.jsonl").read_text().splitlines())
    assert f"texts: {runs} originals and" in dry.out
    assert first.json == again.json
    assert first.json["judge"]["verdict"] == "not enough data"
    with Store(project / "agenteval.db", create=False) as store:
        rows = store.runs().values()
    copies = [r for r in rows if r["origin"]]
    assert copies
    assert asked == 2 * (runs + len(copies))
    written = json.loads((project / "criteria" / "sums.verified.json").read_text())
    verdicts = {c["id"]: c["verification"]["verdict"] for c in written["criteria"]}
    assert verdicts == {"clarity": "undecided", "accuracy": "undecided"}  # three cases


def test_the_file_is_read_again_where_a_criterion_has_no_mean(cli: Cli, project: Path) -> None:
    """The embedded judge cannot grade accuracy: nothing is known of its mean."""
    done = cli("verify", "runs.jsonl", "--model", "embedded", "--perturb", "pad")
    assert done.code == 0, done.err
    page = cli("report", "--criteria", "criteria/sums.verified.json", "-o", "page.html")
    assert page.code == 0, page.err


def test_the_verdicts_on_another_file_of_criteria_are_written_beside_it(
    cli: Cli, project: Path
) -> None:
    criteria = project / "criteria"
    (criteria / "other.json").write_bytes((criteria / "sums.json").read_bytes())
    for name in ("sums", "other"):
        asked = () if name == "sums" else ("--criteria", "criteria/other.json")
        done = cli("verify", "runs.jsonl", "--model", "embedded", "--perturb", "pad", *asked)
        assert done.code == 0, done.err
        assert f"written to criteria/{name}.verified.json" in done.err
    assert (criteria / "other.verified.json").is_file()


def test_bad_input_is_one_line(cli: Cli, project: Path) -> None:
    for arguments, said in (
        ((), "say which runs"),
        (("runs.jsonl", "--perturb", "nonsense"), "the perturbation 'nonsense' does not exist"),
        (("--scores", "none.jsonl"), "cannot read"),
        (("runs.jsonl", "--scores", "s.jsonl"), "(--scores)"),
        (("runs.jsonl", "--deterministic"), "--deterministic: needs --scores"),
    ):
        result = cli("verify", *arguments)
        assert result.code == 2
        assert said in result.err
        assert len(result.err.strip().splitlines()) <= 3
