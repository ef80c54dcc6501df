"""Commands and options of earlier versions are refused in one line that names what to use."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli


@pytest.mark.parametrize(
    ("arguments", "what", "instead"),
    [
        ("verify runs.jsonl --rounds 2", "--rounds", "agenteval criteria"),
        ("verify runs.jsonl --allow-code", "--allow-code", "docs/computed.md"),
        ("quantify runs.jsonl --allow-code", "--allow-code", "docs/computed.md"),
        ("quantify runs.jsonl --datamark", "--datamark", "verify --probes"),
        ("quantify runs.jsonl --findings=f.json", "--findings", "without findings"),
        ("flow session desk --record f.jsonl", "--record", "export --replies"),
        ("trace locate t --undecided", "--undecided", "remove it"),
        ("trace score f --tolerance 1", "--tolerance", "hits are exact"),
        ("flow score f --published", "--published", "--reference"),
        ("init t runs.csv --yes", "--yes", "init asks no questions"),
        ("trace plant t", "agenteval trace plant", "tasks/traces"),
        ("trace annotate t", "agenteval trace annotate", "docs/traces.md"),
        ("flow convert w", "agenteval flow convert", "agenteval flow check"),
        ("work", "agenteval work", "--workers N"),
    ],
)
def test_what_was_removed_is_refused_in_one_line(
    cli: Cli, arguments: str, what: str, instead: str
) -> None:
    refused = cli(*arguments.split())
    assert (refused.code, refused.err.count("\n")) == (2, 1)
    assert f"{what}: removed" in refused.err
    assert instead in refused.err


def test_several_endpoints_are_refused(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    """They once shared the requests; typer alone would take the last one in silence."""
    urls = ["http://127.0.0.1:1/v1", "http://127.0.0.1:2/v1"]
    twice = cli("doctor", "--model", "m", "--base-url", urls[0], f"--base-url={urls[1]}")
    assert (twice.code, twice.err.count("\n")) == (2, 1)
    assert "--base-url: give one URL" in twice.err
    monkeypatch.setenv("AGENTEVAL_BASE_URL", " ".join(urls))
    assert "give one URL" in cli("doctor", "--model", "m").out
