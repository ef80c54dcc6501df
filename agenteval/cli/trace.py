"""agenteval trace: errors in traces of agents, from reading them to the report."""

from __future__ import annotations

import typer

from agenteval.cli import (
    trace_annotate,
    trace_locate,
    trace_plant,
    trace_report,
    trace_score,
    trace_show,
    trace_stats,
)

app = typer.Typer(
    help="Find, locate and grade errors in traces of agents, and measure whoever finds them.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("show")(trace_show.show)
app.command("locate")(trace_locate.locate)
app.command("score")(trace_score.score)
app.command("stats")(trace_stats.stats)
app.command("plant")(trace_plant.plant)
app.add_typer(trace_annotate.app, name="annotate")
app.command("report")(trace_report.report)
