"""Logs as inspect_ai 0.3.285 writes them, in the parts that are read."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NAN = float("nan")
Sample = dict[str, Any]


def sample(id: Any, epoch: int = 1, scores: dict[str, Any] | None = None, **more: Any) -> Sample:
    """A sample with one exchange; `scores` holds the value of each scorer."""
    answer = f"It is {id}."
    return {
        "id": id,
        "epoch": epoch,
        "input": f"What is {id}?",
        "target": str(id),
        "messages": [
            {"id": "m1", "role": "user", "content": f"What is {id}?", "source": "input"},
            {"id": "m2", "role": "assistant", "content": answer, "source": "generate"},
        ],
        "output": {"model": "m", "choices": [], "completion": answer},
        "scores": {k: {"value": v, "history": []} for k, v in (scores or {}).items()},
        "metadata": {},
        "events": [{"event": "span_begin", "span_id": "x"}],
        **more,
    }


def header(samples: list[Sample], **more: Any) -> dict[str, Any]:
    """The header of their log. It says of no sample that it has no score."""
    scorers = list(dict.fromkeys(name for s in samples for name in s.get("scores") or ()))
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "task": "pkg/sums",
            "model": more.pop("model", "mockllm/model"),
            "config": {"epochs": max([s["epoch"] for s in samples], default=1)},
            "dataset": {"sample_ids": list(dict.fromkeys(s["id"] for s in samples))},
        },
        "results": {
            "total_samples": len(samples),
            "scores": [{"name": n, "scorer": n, "unscored_samples": 0} for n in scorers],
        },
        **more,
    }


def write_eval(
    path: Path, samples: list[Sample], entries: Iterable[tuple[str, Any]] = (), **more: Any
) -> Path:
    """An `.eval` file of samples and further entries; `more` goes to the header."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for s in samples:
            archive.writestr(f"samples/{s['id']}_epoch_{s['epoch']}.json", json.dumps(s))
        for name, value in [*entries, ("header.json", header(samples, **more))]:
            archive.writestr(name, json.dumps(value))
    return path


def many(unscored: int = 99) -> list[Sample]:
    """300 samples in 3 epochs, of which the scorer gave the first `unscored` no value."""
    places = [(i, epoch) for i in range(300) for epoch in (1, 2, 3)]
    return [
        sample(i, epoch, {"graded": NAN if at < unscored else (i * 7 + epoch) % 11 / 10})
        for at, (i, epoch) in enumerate(places)
    ]
