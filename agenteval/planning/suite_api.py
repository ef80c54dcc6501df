"""Generate suites of planning tests from a seed, optionally with professions from a chat model."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median_high
from typing import Any, Unpack

from agenteval.cli.options import read_options
from agenteval.cli.running import Stopped, Watch, opened, planned, run_sync, synchronous
from agenteval.engine import CostEstimate, RequestBounds, RequestCounter, answered, first_requests
from agenteval.engine import Progress as Counts
from agenteval.errors import InputError, ModelError
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.factory import ModelChoice, choose_model, make_client, notes_on
from agenteval.models.limits import Limits
from agenteval.planning.case import Case
from agenteval.planning.invent import Invention, invent, requests_for
from agenteval.planning.options import Range, SuiteKeywords, SuiteOptions
from agenteval.planning.suite import write_suite
from agenteval.planning.synthesis import Generator, Shape
from agenteval.planning.words import choose_topics, read_topics
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.text import plural

SLOW = Limits(timeout=600.0)  # a local model needs minutes for a long reply
_SIZES = ("actions", "sub_sentences", "constraints", "words")
_MAX_REFUSED = 20


@dataclass(frozen=True, kw_only=True)
class SuiteReport(Report):
    """Generated cases, and the professions that a model invented."""

    cases: tuple[Case, ...] = ()

    def write(self, path: str | Path) -> Path:
        """Write the suite as JSON lines, atomically, and return the path."""
        write_suite(Path(path), self.cases)
        return Path(path)

    def records(self) -> list[dict[str, Any]]:
        """Return one row per case."""
        return [
            {"case": c.id, "topic": c.topic, "request": c.request, **_sizes(c)} for c in self.cases
        ]


async def aplan_suite(count: int = 100, **options: Unpack[SuiteKeywords]) -> SuiteReport:
    """Generate planning tests. The same seed and shape give the same suite, byte by byte.

    `n` actions, distinct `constraints` (by default n - 1 to 2n), `words` and clauses with a time
    limit (`times`, with `extended`) are numbers or ranges: 4, "3-5" or (3, 5). `topics` are
    professions. `lexicon` is a file of topics; `invent` first asks `model` for this many
    new professions and writes them to that file, with its replies kept in `store`.

    Returns the suite, to be saved or passed to `plan_test`. Raises InputError for an impossible
    shape, and ModelError if no invented profession is usable.
    """
    settings = read_options(SuiteOptions, options, aplan_suite)
    constraints, words = settings.constraints, settings.words
    shape = Shape(
        actions=span(settings.n, "--n"),
        constraints=None if constraints is None else span(constraints, "--constraints"),
        words=None if words is None else span(words, "--words"),
        times=span(settings.times, "--times"),
        extended=settings.extended,
    )
    watch = Watch(settings.notify, settings.progress)
    notes: list[str] = []
    data: dict[str, Any] = {}
    if settings.invent is not None:
        path, choice = _inventor(settings, need_key=True)
        try:
            invention = await _invent(settings, settings.invent, choice, watch)
        except asyncio.CancelledError:
            line = "interrupted: replies so far are stored; run the same command to continue"
            raise Stopped(
                SuiteReport(title="Planning tests", tables=(), unfinished=(line,), exit_code=130)
            ) from None
        invention.save(path)
        data = {"refused": list(invention.refused)}
        notes = [*watch.notes, *_invention_notes(invention, settings.invent, path)]
    cases = []
    counts = Counts(count)
    for case in generator(shape, settings.seed, settings.topics, settings.lexicon).cases(count):
        cases.append(case)
        counts.done += 1
        watch.progress(counts)
        await asyncio.sleep(0)  # allows an interrupt
    return SuiteReport(
        title=f"{len(cases)} planning tests",
        tables=(table_of(_SizeRow, "sizes", "Sizes of the cases", _size_rows(cases)),),
        notes=tuple(notes),
        data=data,
        cases=tuple(cases),
    )


plan_suite = synchronous(aplan_suite)


def span(value: Range, option: str) -> tuple[int, int]:
    """Return both ends of a range. Raises InputError for anything else."""
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
    """Return the generator of a suite; topics from a file replace the built-in ones."""
    every = None if lexicon is None else read_topics(lexicon)
    return Generator(shape, seed=seed, topics=choose_topics(topics, every))


def invention_estimate(settings: SuiteOptions, professions: int) -> CostEstimate:
    """Estimate the requests for new professions. Raises InputError for invalid options."""
    _, choice = _inventor(settings, need_key=False)
    counter = RequestCounter()
    with planned() as store:
        work = invent(make_client(choice, Limits(), store), professions)
        if first := run_sync(first_requests(work)):
            bounds = RequestBounds(1, MOST_REQUESTS * requests_for(professions))
            counter.count({"model": bounds}, first)
    about = (f"new professions: {professions}",)
    return CostEstimate(tuple(counter.lines.values()), about, notes_on(choice), "plan synth")


def _inventor(settings: SuiteOptions, *, need_key: bool) -> tuple[Path, ModelChoice]:
    """Return the output file and the chat model. Raises InputError without them."""
    if settings.lexicon is None:
        raise InputError("--invent needs a file to write to", "--lexicon")
    if Path(settings.lexicon).exists():
        raise InputError(
            f"{settings.lexicon} exists; remove --invent to use it, or choose another file",
            "--lexicon",
        )
    choice = choose_model(settings.model, settings.base_url, need_key=need_key)
    if choice.kind == "embedded":
        raise InputError("inventing needs a chat model: PROVIDER:MODEL, or --base-url", "--model")
    return Path(settings.lexicon), choice


async def _invent(
    settings: SuiteOptions, count: int, choice: ModelChoice, watch: Watch
) -> Invention:
    """Ask the model for professions; stored replies are reused. Raises ModelError if no profession
    is usable."""
    requests = requests_for(count)
    watch.note(f"{choice.name}: {plural(requests, 'request')}, at most {2 * requests} with repairs")
    with opened(settings.store) as store:
        client = make_client(choice, settings.limits or SLOW, store)
        asking = invent(client, count, lambda part: watch.note(f"asking for {part}"))
        try:
            invention = await answered(asking, client, watch.waiting)
        finally:
            await client.close()
    if not invention.topics:
        watch.warn_list(f"refused: {len(invention.refused)}", invention.refused, most=_MAX_REFUSED)
        raise ModelError("none of the proposed professions can be used; no file was written")
    return invention


def _invention_notes(invention: Invention, requested: int, path: Path) -> Iterator[str]:
    topics = ", ".join(f"{topic.role} ({len(topic.activities)})" for topic in invention.topics)
    yield f"new professions (activities): {topics}"
    if len(invention.topics) < requested:
        yield f"{len(invention.topics)} of {requested} professions can be used"
    if invention.refused:  # the file has all of them
        yield f"refused: {len(invention.refused)}"
        yield from (f"  {line}" for line in invention.refused[:_MAX_REFUSED])
    if len(invention.refused) > _MAX_REFUSED:
        yield f"  ... and {len(invention.refused) - _MAX_REFUSED} more"
    yield f"written to {path}; no person has reviewed it for overlap and natural order"


def _sizes(case: Case) -> dict[str, int | None]:
    return {"actions": case.n} | {name: getattr(case.size, name, None) for name in _SIZES[1:]}


@dataclass(frozen=True)
class _SizeRow:
    size: str = column("size")
    least: int = column("least", "count")
    median: int = column("median", "count")
    most: int = column("most", "count")


def _size_rows(cases: Sequence[Case]) -> Iterator[_SizeRow]:
    for name in _SIZES:
        values = [v for case in cases if (v := _sizes(case)[name]) is not None]
        if values:
            name = name.replace("_", "-")
            yield _SizeRow(name, min(values), median_high(values), max(values))
