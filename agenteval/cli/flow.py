"""agenteval flow: agents that must follow a procedure."""

from __future__ import annotations

import typer

from agenteval.cli import (
    flow_check,
    flow_convert,
    flow_report,
    flow_score,
    flow_session,
    flow_turn,
)

app = typer.Typer(
    help="Evaluate agents that serve users by a procedure: turn by turn against recorded "
    "sessions, or in whole sessions with simulated users and tools.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
app.command("check")(flow_check.check)
app.command("turn")(flow_turn.turn)
app.command("session")(flow_session.session)
app.command("score")(flow_score.score)
app.command("convert")(flow_convert.convert)
app.command("report")(flow_report.report)
