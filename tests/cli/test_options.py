"""Options are declared once: keywords of functions, fields of groups and commands agree."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

import agenteval
from agenteval.app.main import command_of
from agenteval.cli.arguments import LimitOptions, OutputOptions
from agenteval.cli.command import finish, grouped
from agenteval.planning import options as plan_options
from agenteval.records.table import Column, Table
from agenteval.reporting.report import Report
from agenteval.traces import options as trace_options
from agenteval.utility import options as utility_options
from agenteval.utility.perturb import OPERATORS
from agenteval.workflows import options as flow_options
from tests.cli.conftest import Cli

GROUPS = [
    (utility_options.JudgeOptions, utility_options.JudgeKeywords),
    (utility_options.ProposeOptions, utility_options.ProposeKeywords),
    (plan_options.SuiteOptions, plan_options.SuiteKeywords),
    (plan_options.PlanTestOptions, plan_options.PlanTestKeywords),
    (plan_options.DissectionOptions, plan_options.DissectionKeywords),
    (plan_options.CapabilityOptions, plan_options.CapabilityKeywords),
    (flow_options.FlowScoreOptions, flow_options.FlowScoreKeywords),
    (flow_options.TurnOptions, flow_options.TurnKeywords),
    (flow_options.SessionOptions, flow_options.SessionKeywords),
    (trace_options.LocateOptions, trace_options.LocateKeywords),
]


@pytest.mark.parametrize(("group", "keywords"), GROUPS)
def test_every_field_is_a_keyword_with_the_same_type(group: type, keywords: type) -> None:
    declared = {
        name: annotation
        for kind in reversed(keywords.__mro__)
        for name, annotation in getattr(kind, "__annotations__", {}).items()
    }
    positional = {"agent"} - set(declared)  # of plan_test, dissect and plan_capability
    types = {f.name: f.type for f in fields(group) if f.name not in positional}
    assert {
        name: getattr(kind, "__forward_arg__", kind) for name, kind in declared.items()
    } == types


@pytest.mark.parametrize(
    ("function", "wrong", "right"),
    [
        (agenteval.quantify, "temprature", "temperature"),
        (agenteval.quantify, "max_unscord", "max_unscored"),
        (agenteval.verify, "judg", "judge"),
        (agenteval.propose, "seed_count", "seed"),
        (agenteval.plan_suite, "topic", "topics"),
        (agenteval.locate, "reply_token", "reply_tokens"),
        (agenteval.flow_sessions, "simulater", "simulator"),
        (agenteval.flow_turns, "judge_ur", "judge_url"),
    ],
)
def test_an_unknown_keyword_is_a_type_error_that_names_the_nearest(
    function: Any, wrong: str, right: str
) -> None:
    with pytest.raises(TypeError, match=f"{function.__name__}.*{wrong!r}.*{right!r}"):
        function("runs.jsonl", **{wrong: 1})


def test_a_group_of_an_experiment_becomes_options_of_a_command() -> None:
    app = typer.Typer()
    app.command("judge")(grouped(_judge))
    app.command("other")(lambda: None)
    words = ["judge", "--judge", "openai:m", "--map", "output=answer", "--temperature", "-1"]
    result = CliRunner().invoke(app, words)
    assert result.output.split() == ["openai:m", "{'output':", "'answer'}", "None", "2"]
    assert CliRunner().invoke(app, ["judge", "--version", "1"]).exit_code == 2  # only in Python


def _judge(judge: utility_options.VerifiedJudge) -> None:
    typer.echo(f"{judge.judge} {judge.mapping} {judge.temperature} {judge.repeats}")


@pytest.mark.parametrize("arguments", [["quantify"], ["verify"], ["flow", "session"], ["agree"]])
def test_help_has_the_usual_options_first_and_all_fit_80_columns(
    arguments: list[str], cli: Cli
) -> None:
    text = cli(*arguments, "-h").out
    sections = re.findall(r"^([A-Z]\w+):$", text, re.M)
    assert sections.index("Options") <= 1
    assert {"Runs", "Store", "Output"} <= set(sections)
    usual = text.partition("Options:\n")[2].partition("\n\n")[0]
    assert len(re.findall(r"^  -", usual, re.M)) <= 15
    assert max(map(len, text.splitlines())) <= 80
    command = command_of(arguments[0])
    for name in arguments[1:]:
        command = command.commands[name]
    shown = set(re.findall(r"--[\w-]+", text))
    assert shown >= {name for p in command.params for name in p.opts if name.startswith("--")}


def test_the_help_names_every_perturbation(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "1000")
    told = " ".join(cli("verify", "--help").out.split())
    listed = told.partition("Perturbation (repeatable): ")[2].partition(";")[0].split(", ")
    assert sorted(listed) == sorted(OPERATORS)


app = typer.Typer()


@app.command()
@grouped
def command(
    name: Annotated[str, typer.Argument()],
    limits: LimitOptions,
    output: OutputOptions,
    times: Annotated[int, typer.Option(min=1)] = 2,
) -> None:
    table = Table("t", "", (Column("name", "name"),), ({"name": name},) * times)
    finish(Report(title=f"{limits.max_calls}", tables=(table,), exit_code=4), output)


@app.command()
def other() -> None:
    """So that commands have names."""


def test_options_of_groups_and_own_ones() -> None:
    result = CliRunner().invoke(app, ["command", "x", "--max-calls", "7", "--times", "3", "--json"])
    assert result.exit_code == 4
    assert '"title": "7"' in result.stdout
    assert result.stdout.count('"name": "x"') == 3
    assert CliRunner().invoke(app, ["command", "x", "--concurrency", "0"]).exit_code == 2
