"""trace from end to end: show, locate, score, stats, report; bad input in one line."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from agenteval.testing import Fault, serve
from tests.cli import traces
from tests.cli.conftest import Cli, Result
from tests.cli.traces import (
    BROKEN,
    INFORMED,
    INVENTED,
    LIMITED,
    REFUSED,
    WEATHER,
    annotation,
    error,
    llm,
    span,
    trace,
)

HOSTILE = "\x1b]0;owned\x07[red]x[/red] \u202egnp"
GRADES = {
    **{
        n: {"reason": "because", "score": 2}
        for n in ("reliability", "security", "instruction_adherence", "plan_opt")
    },
    "overall": 2,
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for made in (traces.weather(), traces.limited()):
        traces.write(tmp_path / "traces", made)
    return tmp_path


@pytest.fixture
def gold(folder: Path) -> Path:
    annotation(folder / "gold", WEATHER, [error("Tool-related", INVENTED)], 2)
    annotation(folder / "gold", LIMITED, [error("Rate Limiting", REFUSED)], 3)
    return folder / "gold"


def judge(body: dict[str, Any], n: int) -> str:
    """Marks the span that says it has checked something, under the index that the prompt shows."""
    text = body["messages"][-1]["content"]
    if "the four grades" in text:
        return json.dumps(GRADES)
    found = []
    for index, said in re.findall(r"<<BEGIN (S\d+)[^\n]*\n(.*?)\n<<END", text, re.S):
        if "I have checked" in said:
            found.append(
                {
                    "span": index,
                    "category": "Tool-related",
                    "evidence": "I have checked the archive",
                    "description": "it never did",
                    "impact": "HIGH",
                    "confidence": 0.9,
                }
            )
    return json.dumps({"findings": found, "summary": "so far so good"})


def locate(cli: Cli, url: str, *more: object) -> Result:
    return cli("trace", "locate", "traces", "--model", "m", "--base-url", url, *more)


def marks(folder: Path) -> dict[str, list[tuple[str, str]]]:
    return {
        path.stem: [(e["category"], e["location"]) for e in json.loads(path.read_text())["errors"]]
        for path in sorted(folder.glob("*.json"))
    }


# -- show ----------------------------------------------------------------------------------------


def test_show_draws_the_tree_with_findings_at_their_spans(cli: Cli, folder: Path) -> None:
    traces.write(folder / "traces", traces.broken())
    done = cli("trace", "show", f"traces/{BROKEN}.json", "--detect")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    step = next(i for i, line in enumerate(lines) if "error name 'parcels'" in line)
    told = next(i for i, line in enumerate(lines) if "─ llm" in line and INFORMED in line)
    assert any("✗ Formatting Errors" in line for line in lines[told + 1 : told + 4])
    agent = next(line for line in lines if "─ agent CodeAgent.run" in line)
    assert agent.index("agent") < lines[step].index("chain")
    assert "150 tokens" in done.out
    assert "detectors: 1 finding\n" in done.out


def test_show_findings_of_a_folder_and_of_the_store(cli: Cli, folder: Path, gold: Path) -> None:
    shown = cli("trace", "show", f"traces/{WEATHER}.json", "--findings", "gold")
    assert "✗ Tool-related (HIGH, gold) written by hand" in shown.out
    assert "gold: 1 finding; grades: reliability 2" in shown.out
    with serve(judge) as server:
        assert locate(cli, server.base_url, "-q").code == 0
    stored = cli("trace", "show", f"traces/{WEATHER}.json", "--stored")
    assert "locator, confidence 0.90" in stored.out
    as_json = cli("trace", "show", f"traces/{WEATHER}.json", "--stored", "--json").json
    assert [f["finder"] for f in as_json["findings"]] == ["locator (m)"]
    assert len(as_json["trace"]["spans"]) == 5


def test_show_obeys_nothing_that_a_trace_says(cli: Cli, tmp_path: Path) -> None:
    made = trace(
        "d" * 32,
        [span(HOSTILE, "TOOL", 1, attributes={"output.value": HOSTILE}, error=("E", HOSTILE))],
    )
    traces.write(tmp_path, made)
    done = cli("trace", "show", f"{'d' * 32}.json", "--detect")
    assert done.code == 0, done.err
    assert not any(c in done.out for c in "\x1b\x07\u202e")
    assert "[red]x[/red]" in done.out
    assert "1 span with status error, not explained by a detector: " in done.out


def test_show_needs_to_know_which_of_several_traces(cli: Cli, folder: Path) -> None:
    lines = [json.dumps(s) for made in (traces.weather(), traces.limited()) for s in made["spans"]]
    (folder / "both.jsonl").write_text("\n".join(lines))
    several = cli("trace", "show", "both.jsonl")
    assert several.code == 2
    assert "2 traces are in this file" in several.err
    one = cli("trace", "show", "both.jsonl", "--trace", LIMITED)
    assert "archive_search" in one.out
    none = cli("trace", "show", "both.jsonl", "--trace", "zzz")
    assert none.code == 2
    assert WEATHER in none.err


# -- locate --------------------------------------------------------------------------------------


def test_a_context_that_can_never_do_is_told_before_anything_is_asked(
    cli: Cli, folder: Path
) -> None:
    with serve(judge) as server:
        for more in ((), ("--dry-run",)):
            done = locate(cli, server.base_url, "--context", 3000, *more)
            assert done.code == 2
            assert "context: a context of 3000 tokens leaves 0 for spans" in done.err
            assert done.err.count("\n") == 1
        assert server.count == 0


def test_a_judge_locates_resumes_and_writes_the_official_layout(cli: Cli, folder: Path) -> None:
    with serve(judge) as server:
        done = locate(cli, server.base_url, "-o", "found", "--context", 8192)
        assert done.code == 0, done.err
        asked = server.count
        assert asked == 4  # one part and the grades, for two traces
        again = locate(cli, server.base_url, "-o", "again")
        assert server.count == asked
        assert "0 traces to run, 2 done before" in again.err
    expected = {WEATHER: [("Tool-related", INVENTED)], LIMITED: []}
    assert marks(folder / "found") == marks(folder / "again") == expected
    first = json.loads((folder / "found" / f"{WEATHER}.json").read_text())
    assert first["scores"][0]["reliability_score"] == 2
    assert first["errors"][0]["evidence"] == "I have checked the archive"
    assert done.out == again.out


def test_another_taxonomy_or_mode_is_another_finder(cli: Cli, folder: Path) -> None:
    leaf = {"name": "Invention", "area": "Thought", "group": "G", "definition": "Not so."}
    (folder / "own.yaml").write_text(yaml.safe_dump({"name": "own", "leaves": [leaf]}))
    with serve(judge) as server:
        locate(cli, server.base_url, "-q")
        areas = locate(cli, server.base_url, "--mode", "areas")
        own = locate(cli, server.base_url, "--taxonomy", "own.yaml", "--json")
    assert "2 traces to run" in areas.err
    assert "2 traces to run" in own.err
    # this taxonomy has no "Tool-related": said, and not taken
    assert [row["findings"] for row in own.json["findings"]] == [[], []]
    assert any(row["rejected"] for row in own.json["findings"])


def test_an_answer_without_form_is_no_trace_without_errors(cli: Cli, folder: Path) -> None:
    healthy = False

    def answer(body: dict[str, Any], n: int) -> str:
        return judge(body, n) if healthy else "I would rather not."

    with serve(answer) as server:
        done = locate(cli, server.base_url, "-o", "found")
        assert done.code == 3
        assert "2 of 2 traces were not examined" in done.out
        text = (folder / "found" / f"{WEATHER}.json").read_text()
        assert "No output generated" in text
        with pytest.raises(ValueError):
            json.loads(text)
        asked, healthy = server.count, True
        assert locate(cli, server.base_url, "-q").code == 3
        assert server.count == asked  # what was not in form is not asked again by itself
        again = locate(cli, server.base_url, "--retry-failed", "-q", "-o", "found")
        assert again.code == 0, again.err
    assert marks(folder / "found")[WEATHER] == [("Tool-related", INVENTED)]


def test_an_outage_is_healed_by_the_same_command(cli: Cli, folder: Path) -> None:
    calls = {"n": 0}

    def shaky(body: dict[str, Any], n: int) -> str | Fault:
        calls["n"] += 1
        return Fault("status", status=404) if calls["n"] == 1 else judge(body, n)

    with serve(shaky) as server:
        first = locate(cli, server.base_url, "-j", 1)
        assert first.code == 3
        assert "error:infrastructure" in first.out + first.err
        second = locate(cli, server.base_url, "--json")
        assert second.code == 0, second.err
        assert "1 trace to run, 1 done before" in second.err
    assert {row["status"] for row in second.json["findings"]} == {None}


def test_the_cap_on_calls_stops_and_goes_on(cli: Cli, folder: Path) -> None:
    with serve(judge) as server:
        capped = locate(cli, server.base_url, "--max-calls", 3, "-j", 1)
        assert capped.code == 3
        assert "stopped, 1 traces not examined: " in capped.out
        assert server.count == 3
        done = locate(cli, server.base_url, "--json")
        assert done.code == 0, done.err
        assert server.count == 4  # three replies were kept
    assert [row["status"] for row in done.json["findings"]] == [None, None]


def test_a_dry_run_asks_and_writes_nothing(cli: Cli, folder: Path) -> None:
    with serve(judge) as server:
        dry = locate(cli, server.base_url, "--dry-run", "--price-in", 1, "--price-out", 1, "--json")
        assert dry.code == 0, dry.err
        assert server.count == 0
        assert not (folder / "agenteval.db").exists()
        told = dry.json["requests"]["least"]
        prompt = dry.json["prompt_tokens"]["most"]
        assert 0 < dry.json["cost"]["least"] < dry.json["cost"]["most"]
        locate(cli, server.base_url, "-q")
        assert server.count == told
        sent = sum(len(json.dumps(r.body["messages"])) for r in server.requests) / 4
        assert sent / 3 < prompt < 40 * sent
        later = locate(cli, server.base_url, "--dry-run")
    assert "to examine: 0" in later.out


def test_the_embedded_model_is_refused_with_both_ways_out(cli: Cli, folder: Path) -> None:
    done = cli("trace", "locate", "traces")
    assert done.code == 2
    assert "--detectors-only" in done.err
    assert len(done.err.splitlines()) == 1


def test_ids_that_are_no_file_names_are_refused_before_anything_is_paid(
    cli: Cli, tmp_path: Path
) -> None:
    made = trace("../../evil", [llm(1, "a", "b")])
    (tmp_path / "t.json").write_text(json.dumps(made))
    with serve(judge) as server:
        done = cli(
            "trace",
            "locate",
            "t.json",
            "--model",
            "m",
            "--base-url",
            server.base_url,
            "-o",
            "found",
        )
        assert server.count == 0
    assert done.code == 2
    assert "file name" in done.err
    assert not (tmp_path / "found").exists()


# -- score ---------------------------------------------------------------------------------------


def test_gates(cli: Cli, folder: Path, gold: Path) -> None:
    step = f"{2:016x}"  # the step around the span that was marked
    annotation(folder / "found", WEATHER, [error("Tool-related", step)])
    annotation(folder / "found", LIMITED, [error("Rate Limiting", REFUSED)])
    base = ("trace", "score", "--gold", "gold", "--pred", "found", "--gate", 0.9)
    strict = cli(*base)
    assert strict.code == 1
    assert "gate joint F1 at least 0.9: missed: 0.500" in strict.out
    annotation(folder / "found", WEATHER, [error("Tool-related", INVENTED)])
    right = cli(*base)
    assert right.code == 0, right.err
    assert "gate joint F1 at least 0.9: met: 1.000" in right.out


def test_missing_predictions_count_and_are_told(cli: Cli, folder: Path, gold: Path) -> None:
    annotation(folder / "found", LIMITED, [error("Rate Limiting", REFUSED)])
    base = ("trace", "score", "--gold", "gold", "--pred", "found", "--json")
    counted = cli(*base)
    assert counted.code == 3
    assert "1 of 2 traces have no readable prediction" in counted.err
    joint = next(o for o in counted.json["scores"]["levels"] if o["level"] == "joint")
    assert joint["micro"]["recall"]["mean"] == 0.5
    left = cli(*base, "--leave-out-missing", "--max-unscored", 1)
    assert left.code == 0, left.err
    joint = next(o for o in left.json["scores"]["levels"] if o["level"] == "joint")
    assert joint["micro"]["recall"]["mean"] == 1.0


# -- stats, report -------------------------------------------------------------------------------


def test_the_report_of_store_gold_and_folders(cli: Cli, folder: Path, gold: Path) -> None:
    with serve(judge) as server:
        locate(cli, server.base_url, "-q")
    cli("trace", "locate", "traces", "--detectors-only", "-q")
    done = cli("trace", "report", "--gold", "gold", "-o", "out/page.html", "--all")
    assert done.code == 0, done.err
    assert "gold (gold)" in done.out
    assert "locator (m): Findings against gold" in done.out
    assert "detectors: Comparison with trivial predictors" in done.out
    assert "spans x 20" in done.out  # the spans come from the store alone
    page = (folder / "out" / "page.html").read_text(encoding="utf-8")
    for part in ("locator (m)", "detectors", "I have checked the archive", "archive_search"):
        assert part in page
    only = cli("trace", "report", f"traces/{LIMITED}.json", "--json").json["findings"]
    assert {f["finder"] for f in only} == {"detectors", "locator (m)"}
    assert all([x["trace"] for x in f["findings"]] == [LIMITED] for f in only)


def test_the_report_without_a_store(cli: Cli, folder: Path, gold: Path) -> None:
    none = cli("trace", "report")
    assert none.code == 2
    assert "no store here" in none.err
    done = cli("trace", "report", "traces", "--findings", "gold", "-o", "page.html", "-q")
    assert done.code == 0, done.err
    assert not (folder / "agenteval.db").exists()
    assert "Tool-related" in (folder / "page.html").read_text()


# -- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ['{"hello": 1}', "[]", "{" * 100_000])
def test_what_is_no_trace_is_one_line(cli: Cli, tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.json").write_text(text)
    done = cli("trace", "locate", "bad.json", "--detectors-only")
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert "bad.json" in done.err
    assert not (tmp_path / "agenteval.db").exists()


def test_gold_in_spans_reaches_the_judge_only_on_request(cli: Cli, tmp_path: Path) -> None:
    row = json.dumps({"question": "Where?", "true_answer": "GOLD-VALUE"})
    for number in ("1" * 32, "2" * 32):
        asked = {"input.value": "Where?", "output.value": "Here."}
        agent = span("Agent.run", "AGENT", 2, attributes=asked)
        main = span("main", None, 1, attributes={"input.value": row}, children=[agent])
        traces.write(tmp_path / "traces", trace(number, [main]))
    with serve(judge) as server:
        dry = locate(cli, server.base_url, "--dry-run")
        assert "gold keys withheld from spans: true_answer (and 1 more)" in dry.err
        assert "withheld from 2 of 2 traces (true_answer)" in dry.out
        assert locate(cli, server.base_url).code == 0
        before = len(server.requests)
        assert before
        assert not any("GOLD-VALUE" in str(r.body) for r in server.requests)
        shown = locate(cli, server.base_url, "--with-reference")  # as another finder
        assert shown.code == 0
        assert any("GOLD-VALUE" in str(r.body) for r in server.requests[before:])
    assert cli("trace", "report", "traces", "-o", "t.html").code == 0
    assert "Gold answers, withheld from judges at" in (tmp_path / "t.html").read_text()
