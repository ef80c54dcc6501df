"""agenteval show: the table again, or everything about one run."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import options
from agenteval.cli.console import clean, out, print_json
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.records import Source


def show(
    run: Annotated[str | None, typer.Option(help="Show one run: levels and explanations.")] = None,
    source: Annotated[
        str | None, typer.Option(help="Start of a source's hash; default: the latest.")
    ] = None,
    sources: Annotated[
        bool, typer.Option("--sources", help="List who gave results: judges, agents, finders.")
    ] = False,
    levels: Annotated[
        bool, typer.Option("--levels", help="Means in levels (0 = worst) instead of 0 to 1.")
    ] = False,
    store: options.StorePath = None,
    as_json: options.AsJson = False,
) -> None:
    """Print what is stored of a judge, an agent under test or a finder: the table, all of them,
    or one run with its explanations."""
    from agenteval.cli import begun
    from agenteval.store import Store, default_path
    from agenteval.store.experiments import unfinished_of

    with Store(store or default_path(), create=False) as opened, opened.snapshot():
        known = opened.sources(trials=True)
        if sources:
            _list_sources(opened, known, as_json)
            return
        key, record = pick_source(known, source)
        unfinished = unfinished_of(opened, [key])
        begun.say(unfinished, aside=as_json)
        if run is not None:
            _show_run(opened, key, run, as_json)
            return
        from agenteval.cli.table import print_table, table_json
        from agenteval.store.ways import way_of

        report, way = stored_report(opened, key, record), way_of(record)
        if as_json:
            more = {"unfinished": begun.as_json(unfinished), **({"way": way} if way else {})}
            print_json({**table_json(report), **more})
            return
        if way:
            out().print(f"asked in this way: {clean(way)}")
        if report.ratings:
            print_table(report, levels=levels)
        else:
            out().print(clean(_no_originals(opened, key, record)), soft_wrap=True)


def _no_originals(opened: Any, key: str, record: Source) -> str:
    """What a source holds that judged no run as it is."""
    from agenteval.store.ways import is_probe

    variants = Counter(r.key.variant.partition(":")[0] for r in opened.results(key))
    held = ", ".join(f"{n} of {name!r} copies" for name, n in sorted(variants.items()))
    what = "a source of `verify --probes`" if is_probe(record) else "this source"
    return (
        f"{what} ({record.model}): no run was judged as it is, so there is no table; results: "
        f"{held or 'none'}. `agenteval export FILE --source {key[:12]} --with-copies` "
        "writes them"
    )


def stored_report(opened: Any, key: str, record: Source) -> Any:
    """The report over everything a source has judged in the store."""
    from agenteval.cli.flags import stored_flags
    from agenteval.cli.table import Report
    from agenteval.trust.means import load_ratings

    ratings = load_ratings(opened, key)
    ids = {r.criterion_id for r in ratings}
    used = {c.id: c for k, c in opened.criteria_of(key).items() if c.id in ids}
    return Report(
        source=record,
        criteria=tuple(used.values()),
        ratings=tuple(ratings),
        usage=opened.usage(key),
        store=str(opened.path),
        flags=stored_flags(opened, {r.run_id for r in ratings}, key),
    )


def pick_source(known: list[tuple[str, Source]], start: str | None) -> tuple[str, Source]:
    """The source whose hash starts so, or the latest. Raises InputError when there is none."""
    if not known:
        raise InputError("the store holds no scores yet; run `agenteval quantify`", "--store")
    hits = [k for k in known if k[0].startswith(start or "")]
    if start is not None and len(hits) != 1:
        listed = ", ".join(k[:12] for k, _ in known)
        raise InputError(
            f"{len(hits)} sources start with {start!r}; there are {listed}", "--source"
        )
    return hits[-1]


def _list_sources(opened: Any, known: list[tuple[str, Source]], as_json: bool) -> None:
    from agenteval.cli import begun
    from agenteval.store.experiments import unfinished_of
    from agenteval.store.ways import way_of

    open_ = {k: unfinished_of(opened, [k]) for k, _ in known}
    rows = [
        {"source": k, "model": s.model, "evaluator": s.evaluator, "seed": s.seed,
         "way": way_of(s), "requests": opened.usage(k).requests,
         "unfinished": begun.as_json(open_[k])}
        for k, s in known
    ]  # fmt: skip
    if as_json:
        print_json(rows)
        return
    for row in rows:
        out().print(
            f"[bold]{str(row['source'])[:12]}[/bold]  {clean(row['model'])}  "
            f"{clean(row['evaluator'])}  seed {row['seed']}  {row['requests']} requests"
            + (f"  [yellow]{clean(row['way'])}[/yellow]" if row["way"] else "")
        )
        begun.say(open_[str(row["source"])], aside=False)


def _show_run(opened: Any, key: str, run: str, as_json: bool) -> None:
    from agenteval.cli.flags import stored_flags
    from agenteval.trust.means import load_ratings

    ratings = [r for r in load_ratings(opened, key) if r.run_id == run]
    if not ratings:
        raise InputError(f"no scores of run {run!r} by this judge", "--run")
    runs = opened.items()
    found = [r for r in opened.results(key, variant="original") if runs[r.key.run]["run_id"] == run]
    newest = {r.key.run for r in found} and next(
        k for k in reversed(runs) if k in {r.key.run for r in found}
    )
    results = {(r.criterion_id, r.key.repeat): r for r in found if r.key.run == newest}
    if as_json:
        print_json([r.model_dump(mode="json") for r in results.values()])
        return
    first = ratings[0]
    flags = stored_flags(opened, {run}, key)
    label = {True: "success", False: "failed", None: "success unknown"}[first.success]
    out().print(f"[bold]{clean(run)}[/bold]  system {clean(first.system)}  {label}")
    for flag in flags.found:
        signs = ", ".join(flag.signs)
        out().print(f"[yellow]its text seems to talk to the judge: {clean(signs)}[/yellow]")
    for rating in sorted(ratings, key=lambda r: (r.criterion_id, r.repeat)):
        result = results[rating.criterion_id, rating.repeat]
        value = "" if rating.value is None else f"{rating.value:.2f}"
        said = rating.label or rating.status
        why = rating.message or getattr(result, "explanation", None) or ""
        out().print(
            f"  {clean(rating.criterion_id):<28} repeat {rating.repeat}  {value:>5}  "
            f"[bold]{clean(said)}[/bold]  {clean(why)}"
        )
