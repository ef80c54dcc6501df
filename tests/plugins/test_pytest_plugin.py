"""Tests that are judged: passed, failed and error, the store, xdist, a dry run; each in a pytest of
its own against the loopback server. The plugin comes by -p, as where it is not installed."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Et

import pytest

import agenteval
from agenteval.testing import Fault, Rule, Server, serve

ROOT = Path(__file__).parents[2]
PLUGIN = "agenteval.plugins.pytest_plugin"
PAGE = (ROOT / "docs/pytest.md").read_text("utf-8")


def reply(label: str, why: str = "Seen.") -> dict[str, str]:
    return {"label": label, "explanation": why}


def examiner(body: dict[str, Any], n: int) -> str:
    """Does the sums again; of 11 + 11 it says nothing, of 12 + 12 nothing on clarity."""
    a, b, total = map(int, re.findall(r"(\d+)\+(\d+) is (\d+)", json.dumps(body["messages"]))[-1])
    if a == 11:
        return "I would rather not say."
    right = reply("right") if a + b == total else reply("wrong", f"{a} and {b} is {a + b}.")
    return json.dumps({"accuracy": right, "clarity": reply("n/a" if a == 12 else "clear")})


HEAD = """
import pytest
from agenteval import Criterion, Failure, Task

ACCURACY = Criterion(name="Accuracy", accepted_values=("wrong", "partly right", "right"))
CLARITY = Criterion(name="Clarity", accepted_values=("unclear", "clear"), allow_na=True)
KIND = Criterion(name="Kind", accepted_values=("sum", "product"), scale="nominal")
TASK = Task(name="sums", description="Add the numbers.")
pytestmark = pytest.mark.agenteval(task=TASK, criteria=[ACCURACY, CLARITY], threshold=0.5)
"""
SUITE = (
    HEAD
    + """
@pytest.mark.parametrize("n", range(20))
def test_sum(judge, n):
    total = n + n + (n in (3, 7))
    judge(input=f"{n}+{n}", output=f"{n}+{n} is {total}")
"""
)


@dataclass(frozen=True)
class Ended:
    """How a pytest ended: counts by outcome, of its last line."""

    code: int
    text: str

    @property
    def counts(self) -> dict[str, int]:
        last = self.text.strip().splitlines()[-1]
        return {word.rstrip("s"): int(n) for n, word in re.findall(r"(\d+) ([a-z]+)", last)}


Suite = Callable[..., Ended]


@pytest.fixture
def server() -> Iterator[Server]:
    with serve(examiner) as made:
        yield made


@pytest.fixture
def suite(tmp_path: Path, server: Server) -> Suite:
    """Run pytest on a text in a folder of its own."""
    kept = {
        k: v for k, v in os.environ.items() if not k.startswith(("AGENTEVAL", "OPENAI", "PYTEST"))
    }
    own = {
        "AGENTEVAL_BASE_URL": server.base_url,
        "AGENTEVAL_MODEL": "test-model",
        "AGENTEVAL_API_KEY": "none",
        "PYTHONPATH": str(ROOT),
        "COLUMNS": "120",
    }

    def run(text: str, *arguments: object, **more: str) -> Ended:
        (tmp_path / "pytest.ini").write_text("[pytest]\naddopts = --strict-markers\n")
        (tmp_path / "test_agent.py").write_text(text)
        options = f"-m pytest -q -p {PLUGIN} -p no:cacheprovider -p no:asyncio"
        command = [sys.executable, *options.split(), *map(str, arguments)]
        done = subprocess.run(
            command,
            cwd=tmp_path,
            env=kept | own | more,
            text=True,
            capture_output=True,
            timeout=120,
        )
        return Ended(done.returncode, done.stdout + done.stderr)

    return run


@pytest.mark.slow
def test_a_suite_and_a_second_run_that_asks_nobody(
    suite: Suite, server: Server, tmp_path: Path
) -> None:
    first = suite(SUITE, "--junitxml=j.xml")
    assert first.counts == {"failed": 2, "passed": 17, "error": 1}, first.text
    assert first.code == 1
    assert "Accuracy: wrong (0.00), below 0.5: 3 and 3 is 6." in first.text
    assert "Clarity: clear (1.00), not below 0.5" in first.text
    assert "ERROR test_agent.py::test_sum[11]" in first.text
    asked = server.count
    assert asked == 21  # one reply was out of form, and asked for once more
    assert f"asked now: {asked} requests" in first.text
    attributes = Et.parse(tmp_path / "j.xml").getroot()[0].attrib
    counts = {k: int(attributes[k]) for k in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": 20, "failures": 2, "errors": 1, "skipped": 0}
    # by hand: 17 of 19 sums are right, so the mean is 17 / 19
    assert re.search(r"Accuracy +unnamed +0\.89 \[.*\] +19 +19 +1$", first.text, re.M), first.text
    second = suite(SUITE, PYTHONHASHSEED="1")
    assert second.counts == first.counts
    assert server.count == asked
    assert "asked now: 0 requests" in second.text
    stored = agenteval.scores(store=tmp_path / "agenteval.db")
    assert (len(stored.scores), len(stored.failures)) == (38, 2)


@pytest.mark.slow
def test_workers_share_the_store_and_tell_one_summary(suite: Suite, server: Server) -> None:
    ended = suite(SUITE, "-n", 2)
    assert ended.counts == {"failed": 2, "passed": 17, "error": 1}, ended.text
    assert ended.text.count("asked now: 21 requests") == 1
    assert "20 runs of 20 cases" in ended.text
    assert server.count == 21
    alone = suite(SUITE)
    assert (server.count, alone.counts) == (21, ended.counts)
    # xdist writes the group into node ids: it is the same test all the same
    grouped = SUITE.replace("@pytest", '@pytest.mark.xdist_group("g")\n@pytest')
    assert suite(grouped, "-n", 2, "--dist", "loadgroup").counts == ended.counts
    assert server.count == 21


RULES = (
    HEAD
    + """
def good(judge, **more):
    return judge(input="1+1", output="1+1 is 2", **more)

def bad(judge):
    return judge(input="1+1", output="1+1 is 3")

def silent(judge):
    return judge(input="11+11", output="11+11 is 22")

@pytest.mark.agenteval(threshold={"Accuracy": 1})
def test_passes_of_one_criterion(judge):
    judged = good(judge)
    assert judged.values == {"accuracy": 1.0, "clarity": 1.0}
    assert [s.label for s in judged.scores] == ["right", "clear"] and judged.failures == ()

@pytest.mark.agenteval(threshold=None)
def test_passes_on_its_own_assertion(judge):
    assert bad(judge).values["accuracy"] == 0

def test_passes_twice(judge):
    good(judge)
    judge(input="2+2", messages=[{"role": "assistant", "content": "2+2 is 4"}])

def test_passes_beside_a_running_loop(judge):
    import asyncio
    async def body():
        good(judge)
    asyncio.run(body())

def test_passes_elsewhere(judge, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    good(judge)

@pytest.mark.xfail(strict=True)
def test_xfails(judge):
    bad(judge)

def test_fails(judge):
    bad(judge)

@pytest.mark.xfail
def test_error_though_it_may_fail(judge):
    silent(judge)

def test_error_though_it_catches(judge):
    try:
        silent(judge)
    except Exception:
        pass

@pytest.mark.agenteval(threshold=None)
def test_error_without_a_threshold(judge):
    silent(judge)

@pytest.mark.agenteval(threshold={"Speed": 1})
def test_error_unknown_criterion(judge):
    good(judge)

@pytest.mark.agenteval(threshold=3)
def test_error_no_share(judge):
    good(judge)

@pytest.mark.agenteval(criteria=[KIND])
def test_error_without_an_order(judge):
    good(judge)

@pytest.mark.agenteval(treshold=1)
def test_error_misspelt(judge):
    good(judge)

def test_passes_where_one_does_not_apply(judge):
    assert judge(input="12+12", output="12+12 is 24").values["clarity"] is None

@pytest.mark.agenteval(threshold={"Clarity": 1})
def test_error_where_nothing_applies(judge):
    judge(input="12+12", output="12+12 is 24")

@pytest.mark.agenteval(criteria="nowhere.json")
def test_error_no_file(judge):
    good(judge)

@pytest.mark.agenteval(model=lambda run, criterion: 1 / 0)
def test_error_in_a_judge(judge):
    good(judge)

@pytest.mark.agenteval(model=lambda run, criterion: 0.5, repeats=2)
def test_passes_by_a_function(judge):
    assert len(good(judge).scores) == 4
"""
)


def test_what_passes_what_fails_and_what_is_an_error(suite: Suite) -> None:
    ended = suite(RULES, "-rA")
    outcomes = dict(
        line.split(" - ")[0].split(" test_agent.py::")[::-1]
        for line in ended.text.splitlines()
        if " test_agent.py::" in line
    )
    tests = re.findall(r"^def (test_\w+)", RULES, re.M)
    kinds = {"passes": "PASSED", "fails": "FAILED", "xfails": "XFAIL", "error": "ERROR"}
    assert outcomes == {name: kinds[name.split("_")[1]] for name in tests}, ended.text
    for said in (
        "threshold: no ordered criterion is called 'Speed'; choose from accuracy, clarity",
        "threshold: 3 is not a number from 0 to 1",
        "threshold: no criterion has an order: the test could not fail",
        "unexpected keyword argument 'treshold'",
        "error:judge: ZeroDivisionError",
        "no criterion with a threshold applies: nothing was rated",
    ):
        assert said in ended.text


def test_a_dry_run_asks_nobody_and_tells_the_bill(
    suite: Suite, server: Server, tmp_path: Path
) -> None:
    prices = ("--agenteval-price-in", 1, "--agenteval-price-out", 2)
    dry = suite(SUITE + "\ndef test_other(): pass\n", "--agenteval-dry-run", *prices)
    assert dry.counts == {"passed": 1, "skipped": 20}, dry.text
    assert dry.code == 0
    assert "requests: at least 20, at most 40" in dry.text
    assert re.search(r"^cost: at least about 0\.0\d+, at most about", dry.text, re.M)
    assert server.count == 0
    assert not (tmp_path / "agenteval.db").exists()


@pytest.mark.slow
def test_a_cap_is_kept_over_tests_and_its_prices_are_told(suite: Suite, server: Server) -> None:
    capped = suite(SUITE, "--agenteval-max-calls", 5)
    assert server.count == 5
    assert capped.counts == {"failed": 1, "passed": 4, "error": 15}, capped.text
    assert "the cap of 5 calls is reached" in capped.text
    unpriced = suite(SUITE, "--agenteval-dry-run")
    assert "unknown; give --agenteval-price-in and" in unpriced.text
    ended = suite(SUITE, "--agenteval-price-in", 10, "--agenteval-price-out", 20)
    assert ended.counts == {"failed": 2, "passed": 17, "error": 1}
    assert re.search(r"asked now: 16 requests, .* cost 0\.\d+;", ended.text), ended.text
    wrong = suite(SUITE, "--agenteval-price-in", 10, "-k", "19")
    assert "--agenteval-price: " in wrong.text


@pytest.mark.slow
def test_what_the_endpoint_failed_is_asked_again_what_failed_for_good_on_demand(
    suite: Suite, server: Server
) -> None:
    text = SUITE.replace("range(20)", "(1, 11)")
    assert suite(text).counts == {"passed": 1, "error": 1}
    asked = server.count
    assert suite(text).counts == {"passed": 1, "error": 1}
    assert server.count == asked
    assert suite(text, "--agenteval-retry-failed").counts == {"passed": 1, "error": 1}
    assert server.count > asked
    broken = [Rule(Fault("status", status=401))]
    with serve(examiner, broken) as refusing:
        ended = suite(text, AGENTEVAL_BASE_URL=refusing.base_url)
    assert ended.counts == {"error": 2}, ended.text


def test_the_plugin_is_light_and_silent_until_it_is_used(suite: Suite) -> None:
    loaded = """
import sys

def test_one():
    print("loaded", sorted(m for m in sys.modules if m.startswith("agenteval")))
    print("heavy", {"pydantic", "numpy", "sqlalchemy", "openai", "rich"} & set(sys.modules))
"""
    ended = suite(loaded, "-s", "-p", "no:hypothesispytest")
    modules = re.search(r"loaded (\[.*\])", ended.text)
    assert modules is not None
    assert ast.literal_eval(modules[1]) == ["agenteval", "agenteval.plugins", PLUGIN]
    assert "heavy set()" in ended.text
    assert "= agenteval =" not in ended.text


def test_installed_and_named_it_is_one(suite: Suite, tmp_path: Path) -> None:
    """The entry point as pyproject.toml has it, in a package that stands in for ours."""
    import tomllib

    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    points = project["entry-points"]["pytest11"]
    assert points == {PLUGIN: PLUGIN}
    about = tmp_path / "path" / "stand_in-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: stand-in\nVersion: 1\n")
    lines = "".join(f"{name} = {value}\n" for name, value in points.items())
    (about / "entry_points.txt").write_text(f"[pytest11]\n{lines}")
    path = os.pathsep.join((str(about.parent), str(ROOT)))
    ended = suite("def test_one(judge): pass\n", "-W", "error", "--fixtures", PYTHONPATH=path)
    assert ended.code == 0, ended.text
    assert re.search(rf"fixtures defined from {re.escape(PLUGIN)} ", ended.text), ended.text


def test_the_example_of_the_page(suite: Suite, server: Server) -> None:
    def answer(body: dict[str, Any], n: int) -> str:
        days = int(re.findall(r"bought it (\d+) days", json.dumps(body["messages"]))[-1])
        late = reply("wrong", f"{days} days are more than 30.")
        accuracy = late if 30 < days < 40 else reply("right")
        kind = reply("polite", "It says so kindly.")
        return json.dumps({"accuracy": accuracy, "politeness": kind})

    server.engine.settings = type(server.engine.settings)(answer=answer)
    (code,) = re.findall(r"^```python\n# test_refunds.py\n(.*?)^```$", PAGE, re.M | re.S)
    ended = suite(code)
    assert ended.counts == {"failed": 1, "passed": 3}, ended.text
    shown = ended.text.replace("test_agent.py", "test_refunds.py")
    blocks = [
        text for kind, text in re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.M | re.S) if not kind
    ]
    assert len(blocks) == 2
    for block in blocks:
        assert block in shown, f"{block}\n{shown}"


RUNS = "id,system,input,output\n" + "".join(
    f"{n}-{system},{system},{n}+{n},{n}+{n} is {n + n + (system == 'b')}\n"
    for n in range(13, 45)
    for system in "ab"
)
EVALUATION = """
task: {name: sums, description: Add the numbers.}
runs: runs.csv
criteria: {file: criteria.json}
compare: {baseline: a, fail_if: surely-worse}
"""
ACCURACY = {"name": "Accuracy", "accepted_values": ["wrong", "right"], "order": "worst_to_best"}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "arguments", "counts", "words"),
    [
        (("", ""), (), {"failed": 1}, "of accuracy: missed"),
        (("baseline: a", "baseline: b"), (), {"passed": 1}, ""),
        (("", ""), ("--agenteval-max-calls", 5), {"error": 1}, "incomplete"),
        (("", ""), ("--agenteval-dry-run",), {"skipped": 1}, "64 to 128 requests"),
        (("fail_if", "fial_if"), (), {"error": 1}, "eval.yaml:5: unknown key"),
    ],
)
def test_an_evaluation_file_is_a_test(
    suite: Suite,
    tmp_path: Path,
    change: tuple[str, str],
    arguments: tuple[object, ...],
    counts: dict[str, int],
    words: str,
) -> None:
    (tmp_path / "runs.csv").write_text(RUNS)
    (tmp_path / "criteria.json").write_text(json.dumps({"criteria": [ACCURACY]}))
    (tmp_path / "eval.yaml").write_text(EVALUATION.replace(*change))
    ended = suite("", "eval.yaml", "-rs", *arguments)
    assert ended.counts == counts, ended.text
    assert words in ended.text


def test_an_evaluation_file_is_collected_only_if_it_is_named(suite: Suite, tmp_path: Path) -> None:
    (tmp_path / "eval.yaml").write_text(EVALUATION)
    assert suite("def test_it(): pass").counts == {"passed": 1}
