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
from agenteval.app.evaluation_file import read_evaluation
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
REGRESSION = {"baseline": "v1", "fail_if": "surely-worse"}
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
        assert any("(parameters): at least 120 new requests" in line for line in lines)


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
        ("task: m\nruns: r\njudge: {modle: x}\n", ":3", ("judge.modle", "did you mean model?")),
        ("task: m\nruns: r\njudge:\n  repeats: 0\n", ":4", ("equal to 1",)),
        ("task: m\nruns: r\nlimits: {api_key: s}\n", ":3", ("AGENTEVAL_API_KEY",)),
        ("task: m\nrusn: r\n", ":2", ("rusn", "did you mean runs?")),
        ("task: m\n", ":1", ("runs",)),
        ("runs: r\n", ":1", ("task",)),
        ("task: [\n", ":2", ("YAML",)),
        ("task: m\nruns: {a: f}\ncompare: {baseline: b}\n", ":3", ("'b'", "a")),
        ("task: m\nruns: r\ncompare: {margin: 0.1}\n", ":3", ("baseline",)),
        ("task: m\nruns: r\ncompare:\n", ":3", ("baseline",)),
        ("", ":1", ("task",)),
        ("1: x\ntask: m\nruns: r\n", ":1", ("'1'",)),
        ("task: m\nruns: r\njudge: {repeats: true}\n", ":3", ("judge.repeats", "True")),
        ("task: m\nruns: r\njudge: {max_tokens: 0}\n", ":3", ("equal to 1",)),
        ("task: m\nruns: r\nlimits: {price_in: 1}\n", ":3", ("price_out",)),
        ("task: m\nruns: r\njudge: {<<: x}\n", ":3", ("merge keys",)),
        ("task: m\nruns: r\nmap: {inptu: question}\n", ":3", ("inptu",)),
        ("task: m\nruns: {}\n", ":2", ("runs",)),
        ("task: m\nruns: {a: f, '': g}\n", ":2", ("system's name",)),
        ("task: {name: ../m, description: d}\nruns: r\n", ":1", ("task.name",)),
        ("task: m\nruns: r\nverify:\n  perturbations: [foo]\n", ":4", ("drop_sentences",)),
        ("task: m\nruns: r\njudge: {parameters: {api_key: x}}\n", ":3", ("secret",)),
        ("plan: {agent: scripted:perfect}\n", ":1", ("plan.suite",)),
        ("report: r.html\n", ":1", ("`runs`",)),
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


def test_a_password_in_the_file_is_refused_and_not_repeated(tmp_path: Path) -> None:
    file = tmp_path / "eval.yaml"
    file.write_text("task: t\nruns: r\nstore: postgresql://me:hunter2hunter@h/db\n")
    with pytest.raises(InputError, match=r"eval.yaml:3: .*AGENTEVAL_STORE") as error:
        agenteval.run(file)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"report": "v1.csv"}, "report"),
        ({"report": "eval.yaml"}, "report"),
        ({"verify": {"output": "criteria.json"}}, "verify.output"),
        ({"verify": {"labels": "missing.csv"}}, "missing.csv"),
        ({"verify": {"gate": True, "allow_criteria": ["depth"]}}, "depth.*Clarity"),
        ({"compare": {"baseline": "v1", "fail_under": {"depth": 0.5}}}, "depth.*clarity"),
        ({"compare": {"baseline": "v1", "fail_under": {"success": 0.5}}}, "'v1'.*succeeded"),
        ({"runs": {"v1": "v1.csv"}, "compare": {"baseline": "v1"}}, "compare.baseline"),
        (
            {"runs": {"v1": "v1.csv", "v3": "other.csv"}, "compare": {"baseline": "v1"}},
            "'v3'.*case",
        ),
        ({"criteria": {"file": "plain.json"}, "compare": REGRESSION}, "compare.fail_if"),
        ({"limits": {"max_cost": 1}}, "eval.yaml: --max-cost"),
    ],
)
def test_what_a_later_step_refuses_is_refused_before_anything_is_sent(
    evaluation: Callable[..., Path], sections: dict[str, Any], words: str
) -> None:
    Path("other.csv").write_text("question,reply\nanother,text\n")
    unordered = {"name": "Tone", "accepted_values": ["warm", "dry"], "order": "unclear"}
    Path("plain.json").write_text(json.dumps({"criteria": [unordered]}))
    with serve(reply) as server:
        file = evaluation(**{"judge": {"model": "m", "base_url": server.base_url}, **sections})
        with pytest.raises(InputError, match=words):
            agenteval.run(file)
        assert server.count == 0
    assert not Path("e.db").exists()


@pytest.mark.parametrize(
    ("sections", "words"),
    [
        ({"judge": {"model": "python:absent_module:judge"}}, "absent_module"),
        ({"verify": {"labels": "missing.csv"}}, "missing.csv"),
        ({"compare": {"baseline": "v1", "fail_under": {"success": 0.5}}}, "'v1'.*succeeded"),
        (
            {"runs": {"v1": "v1.csv", "v3": "other.csv"}, "compare": {"baseline": "v1"}},
            "'v3'.*case",
        ),
        ({"plan": {"suite": "missing.jsonl", "agent": "scripted:perfect"}}, "missing.jsonl"),
    ],
)
def test_before_criteria_are_proposed_everything_else_is_checked(
    evaluation: Callable[..., Path], sections: dict[str, Any], words: str
) -> None:
    Path("other.csv").write_text("question,reply\nanother,text\n")
    with serve(reply) as server:
        model = {"model": "m", "base_url": server.base_url}
        file = evaluation(**{"criteria": {"file": "new.json", **model}, "judge": model, **sections})
        with pytest.raises(InputError, match=words):
            agenteval.run(file)
        assert server.count == 0
    assert not Path("new.json").exists()


def test_parameters_of_requests_reach_the_judge(evaluation: Callable[..., Path]) -> None:
    bodies = []

    def keep(body: dict[str, Any], number: int) -> str:
        bodies.append(body)
        return reply(body, number)

    judge = {"max_tokens": "none", "reasoning_effort": "low", "parameters": {"top_p": 0.5}}
    with serve(keep) as server:
        agenteval.run(
            evaluation(
                judge={"model": "m", "base_url": server.base_url, "temperature": -1, **judge}
            )
        )
    assert all(b["reasoning_effort"] == "low" and b["top_p"] == 0.5 for b in bodies)
    assert not any("max_tokens" in b or "temperature" in b for b in bodies)


@pytest.mark.slow
def test_verify_comparison_and_page_are_about_the_judge_of_the_file(
    evaluation: Callable[..., Path],
) -> None:
    with serve(reply) as server:
        judge = {"model": "m", "base_url": server.base_url, "seed": 3}
        verify = {"perturbations": ["whitespace"], "sample": 25, "seed": 4}
        file = evaluation(judge=judge, verify=verify, compare={"baseline": "v1"}, report="p.html")
        report = agenteval.run(file)
        # 60 runs; the second judgement of 25 of them; two of each copy
        assert server.count == 60 + 25 + 50
        agenteval.run(file, only=["quantify"], overrides=["judge.seed=8"])
        again = agenteval.run(file, only=["report", "compare"])
        assert list(again.steps) == ["compare", "report"]
        assert again.steps["compare"].title == report.steps["compare"].title
        assert again.steps["compare"]["rows"].rows == report.steps["compare"]["rows"].rows


def test_a_cap_ends_the_evaluation_and_the_same_file_continues(
    evaluation: Callable[..., Path],
) -> None:
    with serve(reply) as server:
        judge = {"model": "m", "base_url": server.base_url}
        file = evaluation(judge=judge, limits={"max_calls": 20}, compare={"baseline": "v1"})
        stopped = agenteval.run(file)
        assert (stopped.exit_code, list(stopped.steps), server.count) == (3, ["quantify"], 20)
        assert stopped.unfinished
        estimate = agenteval.run(file, dry_run=True).estimate
        assert estimate is not None
        assert estimate.requests == (0, 0)  # the cap counts what was sent before
        done = agenteval.run(file, overrides=["limits.max_calls=100"])
        assert (done.exit_code, list(done.steps), server.count) == (0, ["quantify", "compare"], 60)


def test_runs_of_several_systems_are_not_taken_for_one(evaluation: Callable[..., Path]) -> None:
    rows = [{"id": n, "system": "ab"[n % 2], "input": "1?", "output": f"{n}"} for n in range(4)]
    Path("v1.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    with pytest.raises(InputError, match=r"v1.jsonl: under 'v1' in `runs`, but of systems a, b"):
        agenteval.run(evaluation(runs={"v1": "v1.jsonl"}, map={}))


def test_agents_traces_and_workflows_are_tested_without_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    traces = next((Path(__file__).parents[2] / "tasks/traces/traces").glob("194*.jsonl"))
    monkeypatch.chdir(tmp_path)
    agenteval.plan_suite(2, n="3").write("suite.jsonl")
    flow = {"roles": ["meeting_rooms"], "agent": "recorded:perfect", "user": "scripted", "limit": 1}
    sections = {
        "plan": {"suite": "suite.jsonl", "agent": "scripted:perfect", "gate": 0.9},
        "trace": {"traces": str(traces), "detectors_only": True},
        "flow": flow,
        "store": "tests.db",
        "report": "page.html",
    }
    Path("eval.yaml").write_text(yaml.safe_dump(sections))
    assert agenteval.run("eval.yaml", dry_run=True).estimate is not None
    assert not Path("tests.db").exists()
    report = agenteval.run("eval.yaml")
    assert list(report.steps) == ["plan", "trace", "flow", "report"]
    assert all(Path(f"page-{step}.html").stat().st_size for step in ("plan", "trace", "flow"))
    assert report.exit_code == 0
    assert all(gate.outcome == "met" for gate in report.gates)
    assert len(report.steps["plan"].gates) == 2
    assert list(agenteval.run("eval.yaml", only=["plan"]).steps) == ["plan"]
    capped = agenteval.run("eval.yaml", dry_run=True, overrides=["limits.max_calls=1"]).estimate
    assert capped is not None
    assert any("limit each step" in note for note in capped.notes)
    with pytest.raises(InputError, match="step 'verify'"):
        agenteval.run("eval.yaml", only=["verify"])


def test_keys_become_keywords_and_options_of_the_call_win(tmp_path: Path) -> None:
    file = tmp_path / "eval.yaml"
    file.write_text(
        'task: "no"\nruns: r.jsonl\njudge: {model: m, repeats: 3}\n'
        "criteria: {model: m, critics: 2}\nverify: {sample: 12}\n"
    )
    read = read_evaluation(file, ["judge.reasoning_effort=low", "limits.max_cost=5"])
    assert read.task == "no"
    assert read.judge == {"judge": "m", "repeats": 3, "reasoning_effort": "low"}
    assert read.criteria == {"model": "m", "seeds": 2}
    assert read.limits == {"max_cost": 5.0}


def test_the_schema_and_the_reader_agree(tmp_path: Path, cli: Cli) -> None:  # noqa: F811
    done = cli("run", "--schema")
    assert done.code == 0
    schema = json.loads(done.out)
    jsonschema.Draft202012Validator.check_schema(schema)
    file = tmp_path / "eval.yaml"
    for changes, accepted in (
        ({}, True),
        ({"judge": {"model": "m", "repeats": 2, "max_tokens": "none"}, "verify": None}, True),
        ({"compare": {"baseline": "a", "margin": 0}, "limits": None}, True),
        ({"judge": {"modle": "m"}}, False),
        ({"judge": {"repeats": 0}}, False),
        ({"judge": {"repeats": True}}, False),
        ({"judge": {"one_per_call": 1}}, False),
        ({"verify": {"perturbations": ["foo"]}}, False),
        ({"compare": {"margin": 0.1}}, False),
        ({"compare": None}, False),
        ({"map": None}, False),
        ({"map": {"inptu": "x"}}, False),
        ({"runs": {}}, False),
        ({"report": ""}, False),
        ({"rusn": "f"}, False),
        ({"plan": {"agent": "scripted:perfect"}}, False),
    ):
        data = {"task": "t", "runs": {"a": "f"}} | changes
        file.write_text(yaml.safe_dump(data))
        valid = jsonschema.Draft202012Validator(schema).is_valid(data)
        try:
            read_evaluation(file)
            read = True
        except InputError:
            read = False
        assert (valid, read) == (accepted, accepted), data


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
