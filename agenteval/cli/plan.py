"""agenteval plan: planning tests, from their synthesis to the report."""

from __future__ import annotations

import typer

from agenteval.cli import plan_capability, plan_dissect, plan_report, plan_run, plan_synth

app = typer.Typer(
    help="Test whether an agent can plan: requests with known constraints, mock tools, exact "
    "verdicts without a judge.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("synth")(plan_synth.synth)
app.command("test")(plan_run.run_agent)
app.command("dissect")(plan_dissect.dissect)
app.command("capability")(plan_capability.capability)
app.command("report")(plan_report.report)
