"""Suites of planning tests, from a seed; with professions that a chat model invents."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_high
from typing import Any, Unpack

from agenteval.cli.options import read_options
from agenteval.cli.running import (
    Stopped,
    Watch,
    opened,
    planned,
    run_sync,
    synchronous,
)
from agenteval.engine import Estimate, RequestBounds, RequestCounter, answered, first_requests
from agenteval.engine import Progress as Counts
from agenteval.errors import InputError, ModelError
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.factory import Model, ModelChoice, choose_model, make_client, notes_on
from agenteval.models.limits import Limits
from agenteval.planning.case import Case
from agenteval.planning.invent import Invention, requests_for
from agenteval.planning.invent import invent as invent_professions
from agenteval.planning.options import SuiteKeywords, SuiteOptions
from agenteval.planning.suite import write_suite
from agenteval.planning.synthesis import Generator, Shape
from agenteval.planning.words import Lexicon, Topic, choose_topics, read_words
from agenteval.records.table import Cell, Column, Table
from agenteval.reporting.report import Report
from agenteval.store import Store

Range = str | int | tuple[int, int]
SLOW = Limits(timeout=600.0)  # a long reply of a model on this machine
_SIZES = ("actions", "sub_sentences", "constraints", "words")


@dataclass(frozen=True, kw_only=True)
class SuiteReport(Report):
    """Cases that were made, and what a model invented for them."""

    cases: tuple[Case, ...] = ()

    def write(self, path: str | Path) -> Path:
        """Write the suite as JSON lines, whole or not at all; returns the path."""
        write_suite(Path(path), self.cases)
        return Path(path)

    def records(self) -> list[dict[str, Any]]:
        """A row per case."""
        return [
            {"case": c.id, "topic": c.topic, "request": c.request, **_sizes(c)} for c in self.cases
        ]


async def aplan_suite(count: int = 100, **options: Unpack[SuiteKeywords]) -> SuiteReport:
    """Planning tests from a seed: the same seed and shape give the same suite, byte by byte.

    `n` actions, distinct `constraints` (by default n - 1 to 2n), `words` and clauses with a point
    of time (`times`, with `extended`) are numbers or ranges: 4, "3-5" or (3, 5). `topics` are
    professions. `lexicon` is a file of words and topics; `invent` asks `model` for so many new
    professions first and writes them there, with its replies kept in `store`.

    Raises InputError for a shape that no case can have, and ModelError when nothing of what a
    model invented could be kept.
    """
    how = read_options(SuiteOptions, options, aplan_suite)
    shape = Shape(
        actions=span(how.n, "--n"),
        constraints=None if how.constraints is None else span(how.constraints, "--constraints"),
        words=None if how.words is None else span(how.words, "--words"),
        times=span(how.times, "--times"),
        extended=how.extended,
    )
    watch = Watch(how.notify, how.progress)
    notes: list[str] = []
    refused: tuple[str, ...] = ()
    if how.invent is not None:
        path, choice = inventor(how.lexicon, how.model, how.base_url)
        with opened(how.store) as store:
            try:
                invention = await _invented(choice, how.invent, how.limits or SLOW, store, watch)
            except asyncio.CancelledError:
                told = "interrupted: the replies that came are stored; the same command goes on"
                report = SuiteReport(
                    title="Planning tests", tables=(), unfinished=(told,), exit_code=130
                )
                raise Stopped(report) from None
        invention.save(path)
        refused = invention.refused
        notes = [*watch.notes, *_told(invention, how.invent, path)]
    cases = []
    counts = Counts(count)
    for case in generator(shape, how.seed, how.topics, how.lexicon).cases(count):
        cases.append(case)
        counts.done += 1
        watch.progress(counts)
        await asyncio.sleep(0)  # an interrupt is heard here
    return SuiteReport(
        title=f"{len(cases)} planning tests",
        tables=(_size_table(cases),),
        notes=tuple(notes),
        data={"refused": list(refused)} if how.invent is not None else {},
        cases=tuple(cases),
    )


plan_suite = synchronous(aplan_suite)


def span(value: Range, option: str) -> tuple[int, int]:
    """The two ends of a range. InputError for what is none."""
    if isinstance(value, tuple):
        return value
    low, dash, high = str(value).partition("-")
    try:
        return int(low), int(high if dash else low)
    except ValueError:
        raise InputError(f"must be a number or FROM-TO, not {value!r}", option) from None


def generator(
    shape: Shape, seed: int, topics: Sequence[str] = (), lexicon: str | Path | None = None
) -> Generator:
    """The generator; a lexicon's file replaces the built-in words, and the topics if it has any."""
    words, known = words_of(lexicon)
    return Generator(shape, seed=seed, topics=choose_topics(topics, known), lexicon=words)


def words_of(path: str | Path | None) -> tuple[Lexicon | None, tuple[Topic, ...] | None]:
    """Words and topics of a file; None where the built-in ones are to be used."""
    return (None, None) if path is None else read_words(Path(path))


def inventor(
    lexicon: str | Path | None,
    model: Model,
    base_url: str | None,
    *,
    need_key: bool = True,
) -> tuple[Path, ModelChoice]:
    """The file to be written and the model to be asked. Raises InputError without a new file and
    for a model that does not chat."""
    if lexicon is None:
        raise InputError("--invent needs a file to write to", "--lexicon")
    if Path(lexicon).exists():
        raise InputError(
            f"{lexicon} exists; leave out --invent to use it, or name another file", "--lexicon"
        )
    choice = choose_model(model, base_url, need_key=need_key)
    if choice.kind == "embedded":
        raise InputError("inventing needs a chat model: PROVIDER:MODEL, or --base-url", "--model")
    return Path(lexicon), choice


def invention_estimate(choice: ModelChoice, professions: int) -> Estimate:
    """Return what inventing so many professions would ask, one question after another."""
    counter = RequestCounter()
    with planned() as store:
        work = invent_professions(make_client(choice, Limits(), store), professions)
        if first := run_sync(first_requests(work)):
            bounds = RequestBounds(1, MOST_REQUESTS * requests_for(professions))
            counter.count({"model": bounds}, first)
    about = (f"new professions: {professions}",)
    return Estimate(tuple(counter.lines.values()), about, notes_on(choice), "plan synth")


async def _invented(
    choice: ModelChoice,
    count: int,
    limits: Limits,
    store: Store,
    watch: Watch,
) -> Invention:
    """Professions from the model; its replies are kept, so that nothing is asked twice. Raises
    ModelError when none can be used."""
    requests = requests_for(count)
    watch.note(f"{choice.name}: {requests} requests, at most {2 * requests} with repairs")
    client = make_client(choice, limits, store)
    asking = invent_professions(client, count, lambda what: watch.note(f"asking for {what}"))
    try:
        invention = await answered(asking, client, watch.waiting)
    finally:
        await client.close()
    if not invention.topics:
        for line in _refused(invention):
            watch.warn(line)
        raise ModelError("none of the proposed professions can be used; no file was written")
    return invention


def _told(invention: Invention, asked: int, path: Path) -> Iterator[str]:
    named = ", ".join(f"{topic.role} ({len(topic.activities)})" for topic in invention.topics)
    yield f"new professions (activities): {named}"
    if len(invention.topics) < asked:
        yield f"{len(invention.topics)} of {asked} professions can be used"
    yield from _refused(invention)
    yield f"written to {path}; no person has reviewed it for overlap and natural order"


def _refused(invention: Invention, most: int = 20) -> Iterator[str]:
    """Return the first refusals; the file holds all of them."""
    if invention.refused:
        yield f"refused: {len(invention.refused)}"
        yield from (f"  {line}" for line in invention.refused[:most])
    if len(invention.refused) > most:
        yield f"  ... and {len(invention.refused) - most} more"


def _sizes(case: Case) -> dict[str, int | None]:
    stated = {name: getattr(case.size, name) if case.size else None for name in _SIZES[1:]}
    return {"actions": case.n, **stated}


def _size_table(cases: Sequence[Case]) -> Table:
    columns = (
        Column("size", "size"),
        Column("least", "least", "count"),
        Column("median", "median", "count"),
        Column("most", "most", "count"),
    )
    rows: list[dict[str, Cell]] = []
    for name in _SIZES:
        values = [v for case in cases if (v := _sizes(case)[name]) is not None]
        if values:
            middle = median_high(values)
            rows.append(
                {
                    "size": name.replace("_", "-"),
                    "least": min(values),
                    "median": middle,
                    "most": max(values),
                }
            )
    return Table("sizes", "Sizes of the cases", columns, tuple(rows))
