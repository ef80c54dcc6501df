"""Run the golden cases and write what they give: `python -m tests.golden.freeze [NAME ...]`.

Frozen figures are written anew only where they differ beyond tolerance, so that the difference
that is committed is the difference in behaviour. Ends with 1 when a case could not be run.
"""

from __future__ import annotations

import contextlib
import io
import json
import math
import os
import shlex
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from agenteval.app.main import main as command_line
from agenteval.cli.console import Verbosity
from agenteval.testing import serve
from tests.golden.cases import CASES, PLACES, Case
from tests.golden.extract import Done, plain
from tests.golden.files import FROZEN

CLOSE = 1e-9  # relative
SAME = "same as"
DRAWN = 0.06  # absolute, of a key that ends in "~": other draws, the same behaviour


def run(case: Case, folder: Path) -> dict[str, Any]:
    """The figures of every step, by its number and command; works in this empty folder."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(contextlib.chdir(folder))
        stack.enter_context(_no_variables())
        url = stack.enter_context(serve(case.answer)).base_url if case.answer else ""
        if case.make is not None:
            case.make(folder)
        steps = {}
        for number, step in enumerate(case.steps):
            words = [w.format(url=url, **PLACES) for w in shlex.split(step.line)]
            done = call(words, folder)
            try:
                figures = step.figures(done)
            except Exception as error:
                error.add_note(f"{case.name}: {step.line}\nexit code {done.code}\n{done.err}")
                raise
            times = [s.line for s in case.steps[:number]].count(step.line)
            name = f"{step.line} ({times + 1})" if times else step.line
            steps[name] = {"code": done.code, "figures": plain(figures)}
    return json.loads(json.dumps(steps, default=float))  # type: ignore[no-any-return]


@contextlib.contextmanager
def _no_variables() -> Iterator[None]:
    """No variable names a model, a store or a width."""
    kept = dict(os.environ)
    for name in kept:
        if name.startswith(("AGENTEVAL_", "OPENAI_")) or name == "COLUMNS":
            del os.environ[name]
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(kept)


def call(words: list[str], folder: Path) -> Done:
    """Call the command line in this process."""
    before = _files(folder)
    Verbosity.level = 0
    streams = [io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2)]
    out, err = streams
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            command_line(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(end.code is not None)
    said = [stream.buffer.getvalue().decode("utf-8") for stream in streams]  # type: ignore[attr-defined]
    return Done(words, code, *said, folder, sorted(_files(folder) - before))


def _files(folder: Path) -> set[str]:
    """Files below, without those beside a database."""
    names = (path.relative_to(folder) for path in folder.rglob("*") if path.is_file())
    return {
        str(n) for n in names if ".locks" not in str(n) and not str(n).endswith(("-wal", "-shm"))
    }


def differences(new: Any, old: Any, place: str = "") -> Iterator[str]:
    """Where figures differ, one line each."""
    if isinstance(new, Mapping) and isinstance(old, Mapping):
        for key in sorted(new.keys() | old.keys()):
            inner = f"{place} > {key}" if place else key
            if key not in new or key not in old:
                yield f"{inner}: {'gone' if key in old else 'new'}"
            else:
                yield from differences(new[key], old[key], inner)
    elif isinstance(new, list) and isinstance(old, list) and len(new) == len(old):
        for i, (a, b) in enumerate(zip(new, old, strict=True)):
            yield from differences(a, b, f"{place}[{i}]")
    elif not _alike(new, old, drawn=place.endswith("~")):
        yield f"{place}: {json.dumps(old)} was frozen, now {json.dumps(new)}"


def _alike(new: Any, old: Any, *, drawn: bool) -> bool:
    numbers = all(isinstance(x, int | float) and not isinstance(x, bool) for x in (new, old))
    if not numbers:
        return type(new) is type(old) and new == old
    return math.isclose(new, old, rel_tol=CLOSE, abs_tol=DRAWN if drawn else 1e-12)


def frozen(case: Case) -> Any:
    """What was frozen; empty when nothing was."""
    path = FROZEN / f"{case.name}.json"
    steps = json.loads(path.read_text("utf-8")) if path.exists() else {}
    for step in steps.values():
        if SAME in step:
            step["figures"] = steps[step.pop(SAME)]["figures"]
    return steps


def freeze(case: Case, steps: dict[str, Any]) -> None:
    """Write the figures; of steps that say the same the later ones name the first."""
    kept: dict[str, Any] = {}
    for name, step in steps.items():
        first = next((n for n in kept if kept[n].get("figures") == step["figures"] != {}), None)
        kept[name] = step if first is None else {"code": step["code"], SAME: first}
    (FROZEN / f"{case.name}.json").write_text(_text(kept) + "\n", encoding="utf-8")


def _text(value: Any, depth: int = 1) -> str:
    """JSON with a line for what fits one, so that a difference can be read."""
    if isinstance(value, float):
        value = float(f"{value:.10g}")
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, dict | list) or (len(line) + depth < 100 and "." not in line):
        return line
    start = "\n" + depth * " "
    if isinstance(value, list):
        return f"[{start}" + f",{start}".join(_text(v, depth + 1) for v in value) + "]"
    rows = [f"{json.dumps(k, ensure_ascii=False)}: {_text(v, depth + 1)}" for k, v in value.items()]
    one = "{" + ", ".join(rows) + "}"
    short = len(one) + depth < 100 and "\n" not in one
    return one if short else f"{{{start}" + f",{start}".join(rows) + "}"


def main(names: list[str]) -> int:
    """Freeze these cases, or all."""
    failed = 0
    for case in CASES:
        if names and case.name not in names:
            continue
        begun = time.perf_counter()
        with tempfile.TemporaryDirectory() as folder:
            try:
                figures = run(case, Path(folder).resolve())
            except Exception as error:  # noqa: BLE001
                failed += 1
                print(
                    f"{case.name}: {type(error).__name__}: {error}",
                    *getattr(error, "__notes__", ()),
                )
                continue
        changed = list(differences(figures, frozen(case)))
        if changed:
            freeze(case, figures)
        seconds = time.perf_counter() - begun
        print(f"{case.name}: {seconds:.1f} s, {len(changed)} changed", flush=True)
        for line in changed[:20]:
            print(f"  {line}")
    return min(failed, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
