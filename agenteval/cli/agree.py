"""agenteval agree: does the judge say what people say, and which success labels does it doubt?"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from agenteval.cli import options
from agenteval.cli.console import Verbosity, print_json
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.cli.agree_sources import Material
    from agenteval.cli.agree_table import Found
    from agenteval.trust.agreement import AgreeOptions


def agree(
    labels: Annotated[
        Path | None, typer.Option(help="Ratings by people (CSV or JSONL), to compare with.")
    ] = None,
    rater: Annotated[
        list[str] | None,
        typer.Option(help="Only this rater of the labels; may be given often. Default: each."),
    ] = None,
    task: options.TaskName = None,
    criteria: Annotated[
        Path | None, typer.Option(help="Criteria file: the levels, worst to best.")
    ] = None,
    store: options.StorePath = None,
    scores: Annotated[
        list[Path] | None,
        typer.Option(help="Ratings to examine instead of the store's; may be given often."),
    ] = None,
    source: Annotated[
        list[str] | None,
        typer.Option(
            help="Judge: model or start of its hash in the store, or rater in --scores; may be "
            "given often. Default: the latest, or every rater."
        ),
    ] = None,
    runs: Annotated[
        str | None,
        typer.Option(help="Runs that give case and success. Default: runs.jsonl by the labels."),
    ] = None,
    cut: Annotated[
        float | None,
        typer.Option(help="A run is good from this value on (0 to 1), for the corrected rate."),
    ] = None,
    few: Annotated[
        int, typer.Option("--min-runs", help="Warn below this many runs rated by both.", min=2)
    ] = 30,
    confusion: Annotated[
        bool, typer.Option("--confusion", help="Print labels × judge levels per criterion.")
    ] = False,
    audit: Annotated[
        bool, typer.Option("--audit", help="List runs whose success label the judge contradicts.")
    ] = False,
    gate: Annotated[
        bool, typer.Option("--gate", help="Exit 4 when a criterion has fewer than --min-runs.")
    ] = False,
    seed: options.Seed = 0,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare the judge with ratings by people; audit the success labels."""
    from agenteval.cli.agree_sources import Asked, load
    from agenteval.cli.agree_table import print_found
    from agenteval.trust.agreement import AgreeOptions

    Verbosity.level = -1 if quiet else Verbosity.level
    if labels is None and not audit:
        raise InputError("give ratings to compare with, or --audit", "--labels")
    asked = Asked(
        labels, tuple(rater or ()), tuple(scores or ()), tuple(source or ()), store, task,
        criteria, runs,
    )  # fmt: skip
    how = AgreeOptions(few=few, cut=cut, seed=seed)
    material = load(asked)
    found = _find(material, how, audit=audit)
    if as_json:
        print_json(_json(found))
    else:
        print_found(found, {c.id: c.name for c in material.criteria}, confusion=confusion)
    short = any(a.compared < few for part in found.comparisons for a in part.criteria)
    raise typer.Exit(4 if gate and short else 0)


def _find(material: Material, how: AgreeOptions, *, audit: bool) -> Found:
    from agenteval.cli.agree_table import Audited, Comparison, Found, JuryOf
    from agenteval.trust.agreement import agree as compare
    from agenteval.trust.label_audit import audit as audit_labels
    from agenteval.trust.label_audit import with_and_without
    from agenteval.trust.panel import agreement_among as among
    from agenteval.trust.panel import panel as jury

    judges, labels, criteria = material.judges, material.labels, material.criteria
    comparisons = [
        Comparison(judge, rater, tuple(compare(table, said, criteria, how)))
        for judge, table in judges.items()
        for rater, said in labels.items()
    ]
    juries = [
        JuryOf(rater, tuple(jury(judges, said, criteria)))
        for rater, said in labels.items()
        if len(judges) > 1
    ]
    audits = []
    for judge, table in judges.items() if audit else ():
        suspects = tuple(audit_labels(table))
        named = {s.run for s in suspects if s.against}
        audits.append(Audited(judge, suspects, tuple(with_and_without(table, named))))
    ceiling = tuple(among(labels, criteria, how)) if len(labels) > 1 else ()
    return Found(tuple(comparisons), ceiling, tuple(juries), tuple(audits))


def _json(found: Found) -> Any:
    return asdict(found)
