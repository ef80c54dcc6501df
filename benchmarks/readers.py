"""Reading 100,000 runs: `python -m benchmarks.readers [RUNS]`.

Prints, for short records and for conversations, the seconds that `read_runs` takes and the ratio to
bare `json.loads` over the same lines (kept in a list, as the runs are). Every measurement runs in
its own process, so that peak memory is its own; both sides of a ratio run in the same invocation.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.folders import module
from benchmarks.outcome import Row, finish

SENTENCE = "The tank holds 240 litres and loses 3 litres an hour, so it lasts 80 hours. "


def short_record(i: int) -> dict[str, object]:
    """About 0.5 kB: an input, an output and a label under foreign names."""
    return {
        "run_id": f"r{i}",
        "question": f"Tank {i}: how long does it last?",
        "prediction": SENTENCE * 4,
        "is_correct": i % 3 == 0,
        "expected_answer": "80",
        "level": i % 5,
    }


def conversation(i: int) -> dict[str, object]:
    """About 2 kB: eight messages, one with a tool call."""
    turns: list[dict[str, object]] = [{"role": "user", "content": f"Tank {i}: how long?"}]
    call = {"name": "divide", "arguments": '{"a": 240, "b": 3}'}
    turns.append(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "c", "type": "function", "function": call}],
        }
    )
    turns.append({"role": "tool", "tool_call_id": "c", "content": "80"})
    turns.extend({"role": ("assistant", "user")[k % 2], "content": SENTENCE * 4} for k in range(5))
    return {"id": f"c{i}", "messages": turns, "success": True}


def measure(what: str, path: Path) -> None:
    """Print seconds and peak memory (MB) of one way of reading; runs in a process of its own."""
    if what == "read_runs":
        from agenteval.readers import read_runs

        start = time.perf_counter()
        count = len(read_runs(path).runs)
    else:
        start = time.perf_counter()
        with path.open("rb") as file:
            values = [json.loads(line) for line in file]
        count = len(values)
    seconds = time.perf_counter() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"runs": count, "seconds": seconds, "peak": peak}))


def child(what: str, path: Path) -> dict[str, float]:
    """Result of `measure` in a new process."""
    command = module("readers", "--measure", what, str(path))
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    result: dict[str, float] = json.loads(done.stdout)
    return result


def main(count: int) -> int:
    """Print one row per kind of record; 1 when records are missing."""
    rows, kinds = [], {}
    print(f"{'records':14} {'runs':>8} {'MB':>7} {'seconds':>8} {'ratio':>6} {'peak MB':>8}")
    for name, make in (("short", short_record), ("conversation", conversation)):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "runs.jsonl"
            with path.open("w") as file:
                file.writelines(json.dumps(make(i)) + "\n" for i in range(count))
            rounds = [(child("json", path), child("read_runs", path)) for _ in range(3)]
            plain, ours = (min(r[k]["seconds"] for r in rounds) for k in (0, 1))
            last = rounds[-1][1]
            size = path.stat().st_size / 1e6
        runs, ratio, peak = int(last["runs"]), ours / plain, last["peak"]
        print(f"{name:14} {runs:8,} {size:7.1f} {ours:8.2f} {ratio:6.1f} {peak:8.0f}")
        kinds[name] = {"runs": runs, "mb": size, "seconds": ours, "ratio": ratio, "peak_mb": peak}
        rows += [
            Row(f"{name} records read", f"{runs:,} in {ours:.2f} s, {peak:.0f} MB", f"{count:,}",
                runs == count),
            Row(f"{name} records, time over bare json.loads", f"{ratio:.1f} times"),
        ]  # fmt: skip
    print("ratio: read_runs over bare json.loads of the same lines, best of 3 each")
    return finish("readers", rows, kinds=kinds)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100_000))
