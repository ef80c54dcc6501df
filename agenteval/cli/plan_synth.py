"""agenteval plan synth: a suite of planning tests from a seed."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, clean, clean_lines, json_text, note, out
from agenteval.cli.outputs import refuse_input
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.planning.case import Case
    from agenteval.evaluators.planning.dsl.lexicon import Lexicon
    from agenteval.evaluators.planning.synthesis.generate import Generator, Shape
    from agenteval.evaluators.planning.synthesis.topics import Topic

RANGE = "a number or FROM-TO"
Sizes = Annotated[str, typer.Option("--n", help=f"Actions of a case, {RANGE}.")]
Constraints = Annotated[
    str | None, typer.Option(help=f"Distinct constraints, {RANGE}. Default: n - 1 to 2n.")
]
Words = Annotated[str | None, typer.Option(help=f"Words of the text, {RANGE}. Default: any.")]
Extended = Annotated[
    bool, typer.Option("--extended", help="With points of time and hidden durations.")
]
Times = Annotated[str, typer.Option(help=f"Clauses with a point of time, {RANGE}.")]
Topics = Annotated[
    list[str] | None, typer.Option("--topic", help="A profession; may be given several times.")
]
Words_ = Annotated[
    Path | None, typer.Option("--lexicon", help="Word lists and topics of `--invent`.")
]


def synth(
    n: Sizes = "3-5",
    count: Annotated[int, typer.Option(help="Number of cases.", min=1)] = 100,
    seed: options.Seed = 0,
    constraints: Constraints = None,
    words: Words = None,
    extended: Extended = False,
    times: Times = "1-2",
    topic: Topics = None,
    lexicon: Words_ = None,
    invent: Annotated[
        int | None,
        typer.Option(
            help="Ask --model for this many new professions, write them to the file given with "
            "--lexicon, and use them.",
            min=1,
            max=50,
        ),
    ] = None,
    model: options.Model = None,
    base_url: options.BaseUrl = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Suite to write. Default: the terminal.")
    ] = None,
    show: Annotated[
        int, typer.Option(help="With -o: print this many requests to look at.", min=0)
    ] = 3,
    dry_run: options.DryRun = False,
    quiet: options.Quiet = False,
) -> None:
    """Synthesize planning tests. The same seed and shape give the same suite, byte by byte."""
    from agenteval.evaluators.planning.suite import case_line, write_suite

    Verbosity.level = -1 if quiet else Verbosity.level
    refuse_input(output, [lexicon])
    shape = make_shape(n, constraints, words, times, extended=extended)
    if invent is not None:
        from agenteval.cli.plan_invent import invent_lexicon

        invent_lexicon(invent, lexicon, model, base_url, dry_run=dry_run)
        if dry_run:
            return
    generator = make_generator(shape, seed, topic or [], lexicon)
    if dry_run:
        from agenteval.cli import dry

        out().print(f"{count} cases; {dry.LOCAL}")
        return
    if output is None:
        for case in generator.cases(count):
            sys.stdout.write(json_text(case_line(case)))
        return
    cases: list[Case] = []
    write_suite(output, _kept(generator.cases(count), cases))
    note(f"{count} cases written to {output}")
    _describe(cases, show)


def span(text: str, option: str) -> tuple[int, int]:
    """The numbers of `4` or `3-5`. InputError for anything else."""
    low, dash, high = text.partition("-")
    try:
        return int(low), int(high if dash else low)
    except ValueError:
        raise InputError(f"must be {RANGE}, not {text!r}", option) from None


def make_shape(
    n: str, constraints: str | None, words: str | None, times: str, *, extended: bool
) -> Shape:
    """The shape of the cases asked for. InputError for a range that is none."""
    from agenteval.evaluators.planning.synthesis.generate import Shape

    return Shape(
        actions=span(n, "--n"),
        constraints=span(constraints, "--constraints") if constraints else None,
        words=span(words, "--words") if words else None,
        times=span(times, "--times"),
        extended=extended,
    )


def make_generator(
    shape: Shape, seed: int, topics: Sequence[str], lexicon: Path | None
) -> Generator:
    """The generator; a lexicon's file replaces the built-in words, and the topics if it has any."""
    from agenteval.evaluators.planning.synthesis.generate import Generator
    from agenteval.evaluators.planning.synthesis.topics import choose_topics

    words, known = read_lexicon(lexicon)
    return Generator(shape, seed=seed, topics=choose_topics(topics, known), lexicon=words)


def read_lexicon(path: Path | None) -> tuple[Lexicon | None, tuple[Topic, ...] | None]:
    """Words and topics of a file; None where the built-in ones are to be used."""
    if path is None:
        return None, None
    from agenteval.evaluators.planning.synthesis.topics import read_words

    return read_words(path)


def _kept(cases: Iterator[Case], into: list[Case]) -> Iterator[Case]:
    from agenteval.cli.console import err

    if Verbosity.level < 0 or not err().is_terminal:
        for case in cases:
            into.append(case)
            yield case
        return
    from rich.progress import track

    for case in track(cases, "writing", console=err(), transient=True):
        into.append(case)
        yield case


def _describe(cases: Sequence[Case], show: int) -> None:
    sizes = Counter(case.n for case in cases)
    out().print("cases by actions: " + ", ".join(f"{n}: {k}" for n, k in sorted(sizes.items())))
    for what in ("sub_sentences", "constraints", "words"):
        values = sorted(getattr(case.size, what) for case in cases if case.size)
        middle = values[len(values) // 2]
        name = what.replace("_", "-")
        out().print(f"{name}: {values[0]} to {values[-1]}, median {middle}")
    for case in cases[:show]:
        plans = "not counted" if case.valid_plans is None else str(case.valid_plans)
        out().print(f"\n[bold]{clean(case.id)}[/bold] {clean(case.topic)}, valid plans: {plans}")
        out().print(clean_lines(case.text))
        if case.durations:
            hours = ", ".join(f"{k} {v} h" for k, v in case.durations.items())
            out().print(f"[dim]hidden durations: {clean(hours)}[/dim]")
