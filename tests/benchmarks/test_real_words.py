"""Recorded replies of critics and judges, counted on a folder made by hand."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks import real_words

pytestmark = pytest.mark.slow

LEVELS = {"accuracy": ["wrong", "right"], "clarity": ["unclear", "clear"]}


def run(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *more: str
) -> tuple[dict[str, str], str]:
    """The figures by what they tell, and what was printed."""
    monkeypatch.setattr("sys.argv", ["real_words", str(folder), *more])
    assert real_words.main() == 0
    printed = capsys.readouterr().out
    rows: list[dict[str, Any]] = json.loads(printed.splitlines()[-1])["rows"]
    return {row["what"]: row["measured"] for row in rows}, printed


def write(path: Path, *rows: dict[str, Any]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def test_critics(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    criteria = [
        {"name": "Accuracy", "accepted_values": ["right", "wrong"]},
        {"name": "Clarity", "accepted_values": ["unclear", "clear"]},
        {"name": "Stage", "accepted_values": ["north side", "poor", "south side"]},
        {"name": "Tone"},
    ]
    write(
        tmp_path / "critics.jsonl",
        {"speaker": "critic", "mode": "a", "raw": json.dumps(criteria)},
        {"mode": "a", "criteria": {"accuracy": {"accepted_values": ["wrong", "right"]}}},
        {"speaker": "critic", "mode": "a", "raw": "I cannot help with that."},
        {"note": "something else"},
    )
    figures, printed = run(tmp_path, monkeypatch, capsys, "--quick")
    assert figures["critics' replies by rung"] == "json 1, parsed already 1, unread 1"
    assert figures["scales turned round"] == "1"
    assert "critics.jsonl:1: Accuracy: turned round" in printed
    assert figures["scales of unclear order"].startswith("1 of 4")
    assert "critics.jsonl:1: Stage: north side | poor | south side" in printed
    assert "critics.jsonl:3: " in printed
    assert "critics.jsonl: 1" in printed  # the row that is neither


def test_judges_by_rung_and_levels_beside_a_literal_evaluation(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {name: {"accepted_values": values} for name, values in LEVELS.items()}
    replies = (
        '{"accuracy": "right", "clarity": "Clear"}',
        '{"accuracy": "right", "clarity": "so so"}',
        "{'accuracy': 'wrong', 'clarity': 'unclear'}",
        "It is fine.",
    )
    write(tmp_path / "judge.jsonl", *({"criteria": asked, "raw": text} for text in replies))
    figures, printed = run(tmp_path, monkeypatch, capsys)
    assert figures["judges' replies"] == "read 2, partly read 1, unread 1"
    assert figures["judges' replies by rung"] == "json 2, loose 1, none 1"
    assert figures["ratings read"].startswith("5 of 8: scored 5, ")
    assert figures["levels beside a literal evaluation"] == (
        "5 compared, 0 not equal letter by letter"
    )
    assert "clarity: 'so so' is none of the accepted values" in printed


def test_pairs_against_a_partition() -> None:
    names = real_words.Names(
        real_words.read_criteria(
            {n: {"accepted_values": ["poor", "good"]} for n in ("Speed", "Pace", "Tone", "Voice")}
        ).criteria,
        None,
    )  # pace, speed, tone, voice
    gold = {"pace": "T", "speed": "T", "tone": "S"}
    # of the pairs of known names one is right, two of three are joined where all are one group
    assert real_words._quality(names, [0, 0, 1, 1], gold) == " (precision 1.00 recall 1.00)"
    assert real_words._quality(names, [0, 0, 0, 1], gold) == " (precision 0.33 recall 1.00)"
    assert real_words._quality(names, [0, 1, 2, 3], gold) == " (precision 1.00 recall 0.00)"


@pytest.mark.parametrize("text", ["", "no json\n", '{"note": 1}\n'])
def test_nothing_to_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], text: str
) -> None:
    (tmp_path / "rows.jsonl").write_text(text)
    monkeypatch.setattr("sys.argv", ["real_words", str(tmp_path)])
    assert real_words.main() == 2
    assert capsys.readouterr().err.startswith("real_words: ")
