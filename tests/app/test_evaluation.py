"""`agenteval run`: an evaluation file, its steps, what is stored, and what is refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

import agenteval
from agenteval.errors import InputError
from agenteval.testing import serve
from tests.cli.conftest import Cli, cli  # noqa: F401  a fixture

TASK = {"name": "sums", "description": "Add the numbers and explain the result."}
CRITERIA = {
    "criteria": [
        {
            "name": "Clarity",
            "accepted_values": ["unclear", "clear"],
            "order": "worst_to_best",
            "expect": {"drop_sentences": "lower"},
        }
    ]
}
PROPOSAL = json.dumps(
    {
        "criteria": [
            {
                "name": "Clarity",
                "description": "Is it easy to follow?",
                "scale": "ordinal",
                "accepted_values": ["unclear", "clear"],
                "order": "worst_to_best",
                "allow_na": False,
                "expect": {"drop_sentences": "lower"},
            }
        ]
    }
)


def reply(body: dict[str, Any], number: int) -> str:
    """Propose one criterion; find every text clear."""
    if "criteria" in body["response_format"]["json_schema"]["schema"]["properties"]:
        return PROPOSAL
    return json.dumps({"clarity": {"explanation": "Short.", "label": "clear"}})


@pytest.fixture
def evaluation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """Write runs of two systems and an evaluation file with further sections."""
    monkeypatch.chdir(tmp_path)
    for system, word in (("v1", "perhaps"), ("v2", "certainly")):
        rows = (f'{n} + {n}?,"It is {word} {2 * n}. I have checked it."\n' for n in range(30))
        Path(f"{system}.csv").write_text("question,reply\n" + "".join(rows))
    Path("criteria.json").write_text(json.dumps(CRITERIA))

    def write(**sections: Any) -> Path:
        file = Path("eval.yaml")
        basis = {
            "task": TASK,
            "runs": {"v1": "v1.csv", "v2": "v2.csv"},
            "map": {"input": "question", "output": "reply"},
            "criteria": {"file": "criteria.json"},
            "store": "e.db",
        }
        file.write_text(yaml.safe_dump(basis | sections))
        return file

    return write


def test_all_steps_run_and_stored_results_are_not_asked_for_again(
    evaluation: Callable[..., Path],
) -> None:
    with serve(reply) as server:
        file = evaluation(
            criteria={"file": "new.json", "critics": 1, "model": "m", "base_url": server.base_url},
            judge={"model": "m", "base_url": server.base_url, "repeats": 2},
            verify={"perturbations": ["drop_sentences", "whitespace"]},
            compare={"baseline": "v1", "fail_if": "surely-worse"},
            report="page.html",
        )
        report = agenteval.run(file)
        assert list(report.steps) == ["criteria", "quantify", "verify", "compare", "report"]
        assert report.exit_code == 0  # all texts are clear: no difference in any pair
        assert Path("new.json").is_file()
        assert Path("page.html").is_file()
        rated = report.steps["quantify"]
        systems = {row["system"] for row in rated["scores"].rows}
        assert {"v1", "v2"} <= systems
        # 60 runs, each once with two repeats; and copies of what the perturbations change
        asked = server.count
        again = agenteval.run(file)
        assert list(again.steps) == ["quantify", "verify", "compare", "report"]
        assert server.count == asked
        lines: list[str] = []
        other = agenteval.run(
            file, only=["quantify"], overrides=["judge.temperature=0.5"], notify=lines.append
        )
        assert server.count == asked + 120
        assert other.exit_code == 0
        assert any("the judge changed (parameters): 120 new requests" in line for line in lines)


def test_a_dry_run_sends_nothing_and_bounds_the_requests(evaluation: Callable[..., Path]) -> None:
    with serve(reply) as server:
        file = evaluation(judge={"model": "m", "base_url": server.base_url}, verify={})
        estimate = agenteval.run(file, dry_run=True).estimate
        assert estimate is not None
        assert server.count == 0
        assert not Path("e.db").exists()
        agenteval.run(file)
        least, most = estimate.requests
        assert least <= server.count <= most


def test_the_exit_code_is_that_of_a_missed_gate(
    evaluation: Callable[..., Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Path("my_judge.py").write_text(
        "def judge(run, criterion):\n    return 'clear' if 'perhaps' in run.output else 'unclear'\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    file = evaluation(
        judge={"model": "python:my_judge:judge"},
        compare={"baseline": "v1", "fail_if": "surely-worse"},
    )
    report = agenteval.run(file)
    assert report.exit_code == 1
    (gate,) = [g for g in report.steps["compare"].gates if g.outcome == "missed"]
    assert gate.criterion == "clarity"


@pytest.mark.parametrize(
    ("text", "where", "words"),
    [
        ("task: m\nruns: r\njudge: {modle: x}\n", ":3", ("judge.modle", "'model'")),
        ("task: m\nruns: r\njudge:\n  repeats: three\n", ":4", ("judge.repeats", "three")),
        ("task: m\nruns: r\njudge:\n  repeats: 0\n", ":4", ("at least 1",)),
        ("task: m\nruns: r\nlimits: {api_key: s}\n", ":3", ("AGENTEVAL_API_KEY",)),
        ("task: m\nrusn: r\n", ":2", ("rusn", "'runs'")),
        ("task: m\nruns: r\nruns: s\n", ":3", ("runs", "twice")),
        ("task: m\n", ":1", ("runs",)),
        ("runs: r\n", ":1", ("task",)),
        ("- a\n", ":1", ("task",)),
        ("task: [\n", ":2", ("YAML",)),
        ("task: m\nruns: {a: f}\ncompare: {baseline: b}\n", ":3", ("'b'", "a")),
        ("task: m\nruns: r\ncompare: {margin: 0.1}\n", ":3", ("baseline",)),
        ("task: m\nruns: r\ncompare: {baseline: a, fail_if: never}\n", ":3", ("fail_if",)),
    ],
)
def test_bad_files_are_refused_with_file_and_line(
    tmp_path: Path, text: str, where: str, words: tuple[str, ...]
) -> None:
    file = tmp_path / "eval.yaml"
    file.write_text(text)
    with pytest.raises(InputError) as error:
        agenteval.run(file)
    message = str(error.value)
    assert f"eval.yaml{where}" in message
    assert all(word in message for word in words), message


def test_anchors_and_merge_keys_are_read_and_words_keep_their_meaning(tmp_path: Path) -> None:
    from agenteval.app.evaluation_file import read_evaluation

    file = tmp_path / "eval.yaml"
    file.write_text(
        "task: no\nruns: r.jsonl\n"
        "judge: &judge {model: m, repeats: 3}\n"
        "criteria: {model: m, critics: 2}\n"
        "verify: {sample: 12}\n"
    )
    read = read_evaluation(file, ["judge.reasoning_effort=low", "limits.max_cost=5"])
    assert read.task == "no"  # not false, as in YAML 1.1
    assert read.judge == {"judge": "m", "repeats": 3, "reasoning_effort": "low"}
    assert read.criteria == {"model": "m", "seeds": 2}
    assert read.limits == {"max_cost": 5.0}
    file.write_text("x: &x {model: m}\ntask: t\nruns: r\njudge: {<<: *x, repeats: 2}\n")
    with pytest.raises(InputError, match=r"eval.yaml:1.*'x'"):
        read_evaluation(file)
    file.write_text("task: t\nruns: r\ncriteria: &x {model: m}\njudge: {<<: *x, repeats: 2}\n")
    assert read_evaluation(file).judge == {"judge": "m", "repeats": 2}


def test_the_schema_accepts_what_is_read_and_refuses_unknown_keys(cli: Cli) -> None:  # noqa: F811
    done = cli("run", "--schema")
    assert done.code == 0
    schema = json.loads(done.out)
    jsonschema.Draft202012Validator.check_schema(schema)
    good = {"task": "t", "runs": {"a": "f"}, "judge": {"model": "m", "repeats": 2}}
    jsonschema.validate(good, schema)
    for bad in ({"judge": {"modle": "m"}}, {"judge": {"repeats": 0}}, {"rusn": "f"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(good | bad, schema)


def test_the_command_names_the_step_and_ends_with_2_for_bad_input(
    evaluation: Callable[..., Path],
    cli: Cli,  # noqa: F811
) -> None:
    file = evaluation(judge={"model": "m", "base_url": "http://127.0.0.1:9/v1"})
    assert cli("run", str(file), "--only", "quantfy").code == 2
    assert cli("run", str(file), "--set", "judge.repeats").code == 2
    assert cli("run").code == 2
    done = cli("run", str(file), "--dry-run")
    assert done.code == 0
    assert "at least" in done.out
