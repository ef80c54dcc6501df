"""Evaluation files in pytest: `pytest eval.yaml` is one test, which fails if a gate does."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import pytest
from rich.console import Console

from agenteval.analysis.gates import gate_lines
from agenteval.app.evaluation import EvaluationReport, run
from agenteval.errors import AgentevalError

_LIMITS = ("max_calls", "max_cost", "price_in", "price_out")


class EvaluationModule(pytest.File):
    """An evaluation file as pytest collects it."""

    def collect(self) -> Iterator[pytest.Item]:
        """Yield the only test of the file."""
        yield EvaluationItem.from_parent(self, name="gates")


class EvaluationItem(pytest.Item):
    """Runs the evaluation as set-up, so that a judge that fails is an error; checks its gates."""

    report: EvaluationReport

    def setup(self) -> None:
        """Run all steps; skip in a dry run."""
        option = self.config.option
        limits = {name: getattr(option, f"agenteval_{name}") for name in _LIMITS}
        try:
            with chdir(self.config.invocation_params.dir):
                self.report = run(
                    self.path,
                    dry_run=option.agenteval_dry_run,
                    overrides=[f"limits.{k}={v}" for k, v in limits.items() if v is not None],
                    store=option.agenteval_store,
                )
        except AgentevalError as error:
            raise pytest.fail.Exception(f"{type(error).__name__}: {error}", False) from None
        if self.report.estimate is not None:
            least, most = self.report.estimate.requests
            pytest.skip(f"dry run: {least} to {most} requests")
        text = io.StringIO()
        self.report.print(console=Console(file=text, width=80, highlight=False, emoji=False))
        self.add_report_section("setup", "agenteval", text.getvalue())
        if self.report.exit_code == 3:
            lines = [*self.report.unfinished, *self._open_gates()]
            pytest.fail("\n  ".join(("the evaluation is incomplete", *lines)), pytrace=False)

    def runtest(self) -> None:
        """Fail if the evaluation would end with another exit code than 0."""
        if self.report.exit_code:
            lines = self._open_gates() or [f"exit code {self.report.exit_code}"]
            pytest.fail("\n".join(lines), pytrace=False)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Return where the test is and its name."""
        return self.path, None, f"{self.path.name}::{self.name}"

    def _open_gates(self) -> list[str]:
        return gate_lines(gate for gate in self.report.gates if gate.outcome != "met")
