"""Judges that give distributions from end to end: the two ways to ask, their bill, recordings."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from agenteval.store import Store
from agenteval.testing import Server, serve
from tests.cli.conftest import Cli

PAGE = (Path(__file__).parents[2] / "docs/verify.md").read_text("utf-8")
MASSES = {"A": 0.1, "B": 0.3, "C": 0.6}


def answer(body: dict[str, Any], n: int) -> dict[str, Any]:
    """The same distribution over three levels, whichever way it is asked for; for one run the
    second question is declined."""
    if "questions" not in body:
        return {"probabilities": MASSES}
    answers = [
        {
            "name": q["name"],
            "type": "score",
            "score": 1.5,
            "confidence": 0.6,
            "probabilities": [
                {"value": i, "label": level["label"], "probability": p}
                for i, (level, p) in enumerate(zip(q["levels"], MASSES.values(), strict=True))
            ],
        }
        for q in body["questions"]
    ]
    if "2 + 2" in body["input"][0]["content"]:
        answers[1] = {"name": answers[1]["name"], "type": "refusal"}
    return {"answers": answers}


def served(command: str, server: Server) -> tuple[str, ...]:
    words = shlex.split(command, comments=True)[1:]
    if "--base-url" not in words and words[0] != "export":
        words += ["--base-url", server.base_url]
    return tuple(words)


def results(path: Path) -> list[Any]:
    with Store(path, create=False) as store:
        ((key, _),) = store.sources()
        return list(store.results(key))


@pytest.mark.parametrize(
    ("model", "option", "requests", "refused"),
    [("decisions:gpt-6-luna", (), 6, 2), ("m", ("--probabilities",), 12, 0)],
)
def test_dry_run_run_resume_and_replay(
    cli: Cli, project: Path, model: str, option: tuple[str, ...], requests: int, refused: int
) -> None:
    with serve(answer) as server:
        words = f"quantify runs.jsonl --task sums --model {model} --base-url {server.base_url}"
        asked = (f"{words} --max-unscored 0.5", *option)
        bounds = cli(*asked, "--dry-run", "--json").json["requests"]
        assert bounds["least"] == requests <= bounds["most"]
        assert server.count == 0
        capped = cli(*asked, "--max-calls", "4", "--store", "capped.db")
        assert capped.code == 3
        assert server.count == 4
        first = cli(*asked)
        assert first.code == 0, first.err
        assert server.count == 4 + requests
        assert cli(*asked).code == 0
        assert server.count == 4 + requests
    assert cli("export", "--replies", "said.jsonl").code == 0
    found = results(project / "agenteval.db")
    assert [r.status for r in found].count("unscored:refusal") == refused
    scored = [r for r in found if r.status == "scored"]
    assert len(scored) == 12 - refused
    for one in scored:
        assert one.value == pytest.approx(0.3 * 0.5 + 0.6)
        assert one.probabilities == pytest.approx(
            dict(zip(one.probabilities, (0.1, 0.3, 0.6), strict=True))
        )
        assert one.label in ("clear", "correct")
    prefix = "decisions:" if model.startswith("decisions:") else ""
    again = cli(
        f"quantify runs.jsonl --task sums --model {prefix}replay:said.jsonl",
        *option,
        *("--store", "replayed.db", "--max-unscored", "0.5"),
    )
    assert again.code == 0, again.err
    replayed = results(project / "replayed.db")
    assert [(r.status, getattr(r, "value", None)) for r in replayed] == [
        (r.status, getattr(r, "value", None)) for r in found
    ]


def test_who_cannot_be_asked_so_is_told_in_a_line(cli: Cli, project: Path) -> None:
    (project / "judge.py").write_text("def judge(run, criterion):\n    return 1.0\n")
    quantify = "quantify", "runs.jsonl", "--task", "sums"
    for arguments, said in (
        (("criteria", "--task", "sums", "--model", "decisions:x"), "writes no text"),
        ((*quantify, "--model", "embedded", "--probabilities"), "embedded has none"),
        ((*quantify, "--model", "recorded", "--probabilities"), "recorded has none"),
        ((*quantify, "--model", "python:judge:judge", "--probabilities"), "--probabilities"),
        ((*quantify, "--model", "decisions:recorded"), "cannot decide"),
    ):
        result = cli(*arguments)
        assert result.code == 2, arguments
        assert said in result.err
        assert (
            len([line for line in result.err.splitlines() if line.startswith("agenteval: ")]) == 1
        )
    assert not (project / "agenteval.db").exists()


def test_an_endpoint_without_log_probabilities_scores_nothing(cli: Cli, project: Path) -> None:
    said = {
        "choices": [{"message": {"role": "assistant", "content": "C"}, "finish_reason": "stop"}]
    }
    with serve(lambda body, n: said) as server:
        result = cli(
            "quantify runs.jsonl --task sums --model m --probabilities --base-url "
            f"{server.base_url}",
        )
    assert result.code == 3
    assert "gives no log-probabilities" in result.out.replace("\n", " ")
    assert {r.status for r in results(project / "agenteval.db")} == {"unscored:missing"}


def test_verify_says_what_repeats_are_worth(cli: Cli, project: Path) -> None:
    with serve(answer) as server:
        asked = (
            f"verify runs.jsonl --task sums --model decisions:x --base-url {server.base_url} "
            "--perturb pad"
        )
        twice = cli(asked)
        assert twice.code == 0, twice.err
        assert "--deterministic --repeats 1 does without them" in twice.err
        count = server.count
        once = cli(asked, "--deterministic", "--repeats", "1", "--probes")
        assert once.code == 0, once.err
        assert "does without them" not in once.err
        assert server.count == count + 4  # an attack and a control in the two runs that failed


def test_agree_gives_brier_and_calibration(cli: Cli, project: Path) -> None:
    with serve(answer) as server:
        cli(
            "quantify runs.jsonl --task sums --model m --probabilities --base-url "
            f"{server.base_url}",
        )
    rows = [
        f"{s}-{i},clarity,{'clear' if i != 2 else 'unclear'}"
        for s in ("alpha", "beta")
        for i in (1, 2, 3)
    ]
    (project / "labels.csv").write_text("run,criterion,label\n" + "\n".join(rows) + "\n")
    right, wrong = 0.1**2 + 0.3**2 + 0.4**2, 0.9**2 + 0.3**2 + 0.6**2
    asked = "agree", "--labels", "labels.csv", "--task", "sums", "--json"
    assert cli("export", "scores.jsonl").code == 0
    for how in ((), ("--scores", "scores.jsonl")):
        found = cli(*asked, *how)
        assert found.code == 0, found.err
        (row,) = found.json["tables"]["calibration"]["rows"]
        assert row["brier"]["value"] == pytest.approx((4 * right + 2 * wrong) / 6)


def test_the_commands_of_the_page(cli: Cli, project: Path) -> None:
    section = PAGE.split("## Judges that give probabilities")[1].split("\n## ")[0]
    commands = [
        line
        for block in re.findall(r"^```sh\n(.*?)^```$", section, re.M | re.S)
        for line in block.splitlines()
        if line.startswith("agenteval ")
    ]
    assert len(commands) >= 3
    with serve(answer) as server:
        for line in commands:
            of_task = () if " export " in line else ("--task", "sums")
            result = cli(*served(line, server), *of_task)
            assert result.code in (0, 3), (line, result.err)
            assert "error:" not in result.out
    assert json.loads((project / "said.jsonl").read_text().splitlines()[0])["role"] == "decisions"
