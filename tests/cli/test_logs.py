"""The commands of docs/logs.md, on logs of 300 samples in 3 epochs with 99 unscored."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Cli
from tests.support.inspect_logs import many, sample, write_eval

PAGE = (Path(__file__).parents[2] / "docs" / "logs.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page(cli: Cli, tmp_path: Path) -> None:
    write_eval(tmp_path / "old.eval", many())
    better = many(0)
    for row in better:
        row["scores"]["graded"]["value"] = min(1, row["scores"]["graded"]["value"] + 0.2)
    write_eval(tmp_path / "new.eval", better, model="mockllm/new")
    (tmp_path / "people.csv").write_text(
        "run,criterion,value\n"
        + "".join(f"{i},graded,{(i * 7 + 1) % 11 / 10}\n" for i in range(99))
    )
    shell, _ = re.findall(r"^```sh\n(.*?)^```$", PAGE, re.M | re.S)
    shown: dict[str, str] = {}
    for line in shell.splitlines():
        name, *arguments = line.removeprefix("agenteval ").split()
        result = cli(name, *arguments)
        assert result.code == 0, result.err
        shown[name] = " ".join(result.out.split())
    counted = PAGE.partition("\nwarning: ")[2].partition("\n")[0]
    assert counted.startswith("graded: 89%")
    assert counted in shown["verify"]
    assert shown["compare"].startswith("A = mockllm/model, B = mockllm/new")
    assert "300 common cases" in shown["compare"]
    assert "better graded" in shown["compare"]
    assert "99 missing of 900" in shown["compare"]
    assert "99 unscored" in (tmp_path / "old.html").read_text(encoding="utf-8")
    assert len((tmp_path / "copies.jsonl").read_text().splitlines()) > 900


def test_a_log_that_cannot_be_used_ends_with_2(cli: Cli, tmp_path: Path) -> None:
    write_eval(tmp_path / "x.eval", many(1)[:3], version=1)
    result = cli("verify", "--scores", "x.eval")
    assert (result.code, result.out) == (2, "")
    assert result.err.strip().endswith("x.eval: a log of inspect in version 1; version 2 is read")


def test_epochs_with_different_answers_are_runs_of_their_own(cli: Cli, tmp_path: Path) -> None:
    samples = [sample(i, epoch, {"graded": i % 2}) for i in range(20) for epoch in (1, 2)]
    write_eval(tmp_path / "same.eval", samples)
    assert "answered in several ways" not in cli("verify", "--scores", "same.eval").err
    samples[1]["messages"][1]["content"] = samples[1]["output"]["completion"] = "Another answer."
    write_eval(tmp_path / "differs.eval", samples)
    result = cli("verify", "--scores", "differs.eval", "--all")
    assert "1 of 20 samples were answered in several ways" in result.out + result.err
