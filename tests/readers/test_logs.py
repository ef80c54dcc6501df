"""Logs of inspect that were cut short or use zstd; `cases/logs.jsonl` has the others."""

from __future__ import annotations

import json
import sys
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.readers.scores import read_scores
from tests.support.inspect_logs import NAN, header, sample

SAMPLES = [
    sample("a/1", 1, {"match": "C", "parts": {"tone": 1, "wit": None}, "graded": 0.25}),
    sample("a/1", 2, {"match": "P", "parts": {"tone": True, "wit": 0.5}, "graded": NAN}),
    sample("b", 1, {"match": "N", "parts": {"tone": "no", "wit": "1"}, "graded": 1}),
    sample("c", 1, {"match": "I", "parts": NAN, "graded": 0}),
    sample("b", 2, None, error={"message": "model is away", "traceback": "..."}),
]


def test_an_evaluation_that_was_killed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "x.eval"
    start = {"version": 2, "eval": header(SAMPLES)["eval"]}
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("_journal/start.json", json.dumps(start))
        archive.writestr("samples/b_epoch_1.json", json.dumps(SAMPLES[2]))
    assert read_scores(path).statuses() == {"scored": 4}
    assert "1 of 6 samples are logged (status of the evaluation: started)" in caplog.text


def write_zstd(path: Path, pack: Callable[[bytes], bytes]) -> Path:
    """The entries of a log under compression method 93, whatever this Python can write."""
    entries = {"samples/1_epoch_1.json": SAMPLES[2], "header.json": header(SAMPLES[2:3])}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, value in entries.items():
            text = json.dumps(value).encode()
            archive.writestr(name, pack(text))
            info = archive.filelist[-1]
            info.compress_type, info.file_size, info.CRC = 93, len(text), zlib.crc32(text)
    return path


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="this Python reads zstd itself")
def test_zstd_without_a_reader_is_one_line(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setitem(sys.modules, "zstandard", None)
    path = write_zstd(tmp_path / "x.eval", bytes)
    with pytest.raises(InputError, match=r"zstd.*pip install 'agenteval\[inspect\]'"):
        read_scores(path)


def test_zstd(tmp_path: Path) -> None:
    zstandard = pytest.importorskip("zstandard")
    path = write_zstd(tmp_path / "x.eval", zstandard.ZstdCompressor().compress)
    assert read_scores(path).statuses() == {"scored": 4}
    with pytest.raises(InputError, match="cannot be read from the archive"):
        read_scores(write_zstd(tmp_path / "y.eval", bytes))
