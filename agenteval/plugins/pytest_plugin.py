"""The pytest plugin: the fixture `judge`, the marker `agenteval`, a summary, evaluation files.

See docs/pytest.md. pytest loads this module at every start, so it imports nothing of agenteval
before the first test asks for the fixture, or an evaluation file is collected.

A judge that gives no score is an error of the test. pytest reports failures outside the test body
as errors, based on `report.when`; so the report of such a call is marked as setup. Terminal, JUnit
XML, xdist and other plugins then count one error and neither a pass nor a failure, whether the test
caught the exception or is expected to fail.
"""

from __future__ import annotations

from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from agenteval.plugins.pytest_judge import Judge

_judge = pytest.StashKey["Judge"]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add options of the whole suite; the marker has those that differ by test."""
    group = parser.getgroup("agenteval", "agenteval: tests judged by a model")
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "store": (
            "Database of the scores. Default: AGENTEVAL_STORE, else agenteval.db.",
            {"metavar": "PATH"},
        ),
        "dry-run": (
            "Send no requests: skip tests that need the judge, and print their cost.",
            {"action": "store_true"},
        ),
        "retry-failed": (
            "Retry permanent failures, such as malformed replies.",
            {"action": "store_true"},
        ),
        "max-calls": ("Maximum requests of a judge, including earlier ones.", {"type": int}),
        "max-cost": ("Maximum cost of a judge, including earlier calls.", {"type": float}),
        "price-in": ("Price per million prompt tokens.", {"type": float}),
        "price-out": ("Price per million reply tokens.", {"type": float}),
    }
    for name, (text, more) in options.items():
        group.addoption(f"--agenteval-{name}", help=text, **more)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker and the collector of results."""
    config.addinivalue_line(
        "markers",
        "agenteval(threshold, criteria, model, task, ...): how the fixture `judge` judges, and "
        "which value each criterion must reach; see docs/pytest.md of agenteval",
    )
    config.pluginmanager.register(_Summary(config), "agenteval-summary")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect eval.yaml and NAME.eval.yaml if named on the command line or in `testpaths`."""
    name = f".{file_path.name}"
    if not name.endswith((".eval.yaml", ".eval.yml")) or not parent.session.isinitpath(file_path):
        return None
    from agenteval.app.pytest_evaluation import EvaluationModule

    return EvaluationModule.from_parent(parent, path=file_path)


@pytest.fixture
def judge(request: pytest.FixtureRequest) -> Judge:
    """Judge a run of an agent: `judge(input=..., output=...)`; see `Judge` in
    `agenteval.plugins.pytest_judge`."""
    from agenteval.plugins.pytest_judge import Judge

    mark = pytest.mark.agenteval.mark
    for other in request.node.iter_markers("agenteval"):  # the closest first, which wins
        mark = other.combined_with(mark)
    fixture = request.node.stash[_judge] = Judge(request.node, *mark.args, **mark.kwargs)
    return fixture


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Attach the ratings to the report, and turn failed judging into an error."""
    report = yield
    judge = item.stash.get(_judge, None)
    if judge is None:
        return report
    # xdist sends it on as it is: plain values
    report.agenteval, judge.told = judge.told, []  # type: ignore[attr-defined]
    if call.when == "call" and judge.trouble is not None:
        report.when, report.outcome = "setup", "failed"
        report.longrepr = report.longrepr or judge.trouble
        vars(report).pop("wasxfail", None)
    return report


class _Summary:
    """Collects the results of this process and of xdist workers, and prints them at the end."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.told: list[dict[str, Any]] = []

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.told += getattr(report, "agenteval", ())

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.told:
            from agenteval.plugins.pytest_judge import summary

            terminalreporter.section("agenteval")
            width = self.config.get_terminal_writer().fullwidth
            terminalreporter.write_line(summary(self.told, self.config.option, width))
